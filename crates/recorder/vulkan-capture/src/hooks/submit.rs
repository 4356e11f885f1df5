//! What hands work to queues.

use std::cell::Cell;

use ash::vk;
use gapscope_vulkan_layer::arguments::slice;

use crate::api::device;
use crate::window::{self, Batches, Call};

/// # Safety
/// It is the program's own call on a live queue.
unsafe fn submit(queue: vk::Queue, batches: Batches<'_>, fence: vk::Fence) -> vk::Result {
    // SAFETY: as the caller promises.
    unsafe {
        let Some(device) = device::of(queue) else {
            return vk::Result::ERROR_DEVICE_LOST;
        };
        let call = Call {
            device,
            queue,
            batches,
            fence,
            passed: Cell::default(),
        };
        match window::capture() {
            Some(capture) => capture.submit(&call),
            None => call.pass_on(),
        }
    }
}

pub unsafe extern "system" fn queue_submit(
    queue: vk::Queue,
    count: u32,
    infos: *const vk::SubmitInfo<'_>,
    fence: vk::Fence,
) -> vk::Result {
    // SAFETY: the program's own call on a live queue.
    unsafe { submit(queue, Batches::One(slice(infos, count)), fence) }
}

pub unsafe extern "system" fn queue_submit2(
    queue: vk::Queue,
    count: u32,
    infos: *const vk::SubmitInfo2<'_>,
    fence: vk::Fence,
) -> vk::Result {
    // SAFETY: the program's own call on a live queue.
    unsafe { submit(queue, Batches::Two(slice(infos, count)), fence) }
}

pub unsafe extern "system" fn queue_bind_sparse(
    queue: vk::Queue,
    count: u32,
    infos: *const vk::BindSparseInfo<'_>,
    fence: vk::Fence,
) -> vk::Result {
    // SAFETY: the program's own call on a live queue.
    unsafe {
        let Some(device) = device::of(queue) else {
            return vk::Result::ERROR_DEVICE_LOST;
        };
        let call = device.next.fp_v1_0().queue_bind_sparse;
        match window::capture() {
            Some(capture) => {
                capture.refuse("vkQueueBindSparse", || call(queue, count, infos, fence))
            }
            None => call(queue, count, infos, fence),
        }
    }
}
