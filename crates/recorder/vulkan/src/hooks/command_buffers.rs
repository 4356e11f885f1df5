//! Command buffers as programs start, end and reset their recording.

use crate::command_buffers;
use crate::devices;
use ash::vk;
use gapscope_spool::hook::guard;

pub unsafe extern "system" fn begin_command_buffer(
    cb: vk::CommandBuffer,
    info: *const vk::CommandBufferBeginInfo<'_>,
) -> vk::Result {
    // SAFETY: the program's own call, which gives it the command buffer.
    unsafe {
        let Some((_, call)) = devices::with(cb, |f| f.begin_command_buffer) else {
            return vk::Result::ERROR_INITIALIZATION_FAILED;
        };
        let result = call(cb, info);
        if result == vk::Result::SUCCESS {
            guard(|| {
                if let Some(state) = command_buffers::state(cb) {
                    state.start_recording(&*info);
                }
            });
        }
        result
    }
}

pub unsafe extern "system" fn end_command_buffer(cb: vk::CommandBuffer) -> vk::Result {
    // SAFETY: the program's own call, which gives it the command buffer.
    unsafe {
        let Some((_, call)) = devices::with(cb, |f| f.end_command_buffer) else {
            return vk::Result::ERROR_INITIALIZATION_FAILED;
        };
        guard(|| {
            if let Some(state) = command_buffers::state(cb) {
                state.finish_recording();
            }
        });
        call(cb)
    }
}

pub unsafe extern "system" fn reset_command_buffer(
    cb: vk::CommandBuffer,
    flags: vk::CommandBufferResetFlags,
) -> vk::Result {
    // SAFETY: the program's own call, which gives it the command buffer.
    unsafe {
        let Some((_, call)) = devices::with(cb, |f| f.reset_command_buffer) else {
            return vk::Result::ERROR_INITIALIZATION_FAILED;
        };
        guard(|| {
            if let Some(state) = command_buffers::state(cb) {
                state.forget_recording();
            }
        });
        call(cb, flags)
    }
}
