//! Debug labels and object names.

use crate::api::arguments::text_at;
use crate::command_buffers;
use crate::device::Device;
use crate::devices;
use crate::recorder::Recorder;
use ash::vk;
use ash::vk::Handle;
use gapscope_spool::event::{Command, CommonEvent, LabelEdge, LabelScope, NO_QUERY, Object, Op};
use gapscope_spool::hook::guard;
use gapscope_spool::{ids, monotonic_ns};

/// # Safety
/// The program's own call on a command buffer that is being recorded.
unsafe fn label(cb: vk::CommandBuffer, op: Op, info: *const vk::DebugUtilsLabelEXT<'_>) {
    guard(|| {
        // SAFETY: as the caller promises.
        unsafe {
            let Some(state) = command_buffers::state(cb) else {
                return;
            };
            let text = text_id(state.device.recorder, info);
            if state.is_recorded() {
                state.push(Command::new(op, NO_QUERY, [text.0, 0, 0, 0]));
            }
        }
    });
}

/// The id of a label's text; none where there is no label.
///
/// # Safety
/// `info` is null or a valid label.
unsafe fn text_id(recorder: &Recorder, info: *const vk::DebugUtilsLabelEXT<'_>) -> ids::Text {
    if info.is_null() {
        return ids::Text::NONE;
    }
    // SAFETY: as the caller promises.
    recorder.text(&unsafe { text_at((*info).p_label_name) })
}

macro_rules! command_label {
    ($name:ident, $function:ident, $op:expr) => {
        pub unsafe extern "system" fn $name(
            cb: vk::CommandBuffer,
            info: *const vk::DebugUtilsLabelEXT<'_>,
        ) {
            // SAFETY: the program's own call. A driver without debug utils has no such function.
            unsafe {
                label(cb, $op, info);
                if let Some((_, call)) = devices::with(cb, |f| f.$function) {
                    call(cb, info);
                }
            }
        }
    };
}

command_label!(cmd_begin_label, cmd_begin_debug_utils_label, Op::LabelBegin);
command_label!(
    cmd_insert_label,
    cmd_insert_debug_utils_label,
    Op::LabelInstant
);

pub unsafe extern "system" fn cmd_end_label(cb: vk::CommandBuffer) {
    // SAFETY: as for `command_label`.
    unsafe {
        label(cb, Op::LabelEnd, std::ptr::null());
        if let Some((_, call)) = devices::with(cb, |f| f.cmd_end_debug_utils_label) {
            call(cb);
        }
    }
}

/// # Safety
/// The program's own call.
unsafe fn queue_label(handle: vk::Queue, edge: LabelEdge, info: *const vk::DebugUtilsLabelEXT<'_>) {
    guard(|| {
        // SAFETY: as the caller promises.
        unsafe {
            let Some(device) = devices::of(handle) else {
                return;
            };
            let Some(queue) = device.queue_id(handle) else {
                return;
            };
            let text = text_id(device.recorder, info);
            if device.recorder.recording() {
                let scope = LabelScope::Queue(queue);
                device.recorder.write(&CommonEvent::Label {
                    scope,
                    edge,
                    text,
                    at_ns: monotonic_ns(),
                });
            }
        }
    });
}

macro_rules! queue_label {
    ($name:ident, $function:ident, $edge:expr) => {
        pub unsafe extern "system" fn $name(
            queue: vk::Queue,
            info: *const vk::DebugUtilsLabelEXT<'_>,
        ) {
            // SAFETY: as for `command_label`.
            unsafe {
                queue_label(queue, $edge, info);
                if let Some((_, call)) = devices::with(queue, |f| f.$function) {
                    call(queue, info);
                }
            }
        }
    };
}

queue_label!(
    queue_begin_label,
    queue_begin_debug_utils_label,
    LabelEdge::Begin
);
queue_label!(
    queue_insert_label,
    queue_insert_debug_utils_label,
    LabelEdge::Instant
);

pub unsafe extern "system" fn queue_end_label(queue: vk::Queue) {
    // SAFETY: as for `command_label`.
    unsafe {
        queue_label(queue, LabelEdge::End, std::ptr::null());
        if let Some((_, call)) = devices::with(queue, |f| f.queue_end_debug_utils_label) {
            call(queue);
        }
    }
}

pub unsafe extern "system" fn set_object_name(
    handle: vk::Device,
    info: *const vk::DebugUtilsObjectNameInfoEXT<'_>,
) -> vk::Result {
    // SAFETY: the program's own call.
    unsafe {
        let Some(device) = devices::of(handle) else {
            return vk::Result::SUCCESS;
        };
        guard(|| {
            let info = &*info;
            let name = text_at(info.p_object_name);
            name_object(device, info.object_type, info.object_handle, &name);
        });
        match device.functions.set_debug_utils_object_name {
            Some(call) => call(handle, info),
            None => vk::Result::SUCCESS,
        }
    }
}

/// Writes the name of an object that events refer to.
///
/// # Safety
/// `handle` is a live object of that type, to which the calling thread has the access that naming it demands.
unsafe fn name_object(device: &Device, kind: vk::ObjectType, handle: u64, name: &str) {
    let object = match kind {
        vk::ObjectType::PIPELINE => device
            .kernels
            .of(vk::Pipeline::from_raw(handle))
            .map(Object::Kernel),
        vk::ObjectType::SHADER_EXT => device
            .kernels
            .of_shader(vk::ShaderEXT::from_raw(handle))
            .map(Object::Kernel),
        vk::ObjectType::BUFFER => device
            .memory
            .buffer_id(vk::Buffer::from_raw(handle))
            .some()
            .map(Object::Buffer),
        vk::ObjectType::QUEUE => device
            .queue_id(vk::Queue::from_raw(handle))
            .map(Object::Queue),
        vk::ObjectType::COMMAND_BUFFER => {
            // SAFETY: naming an object is externally synchronised like recording it.
            let state = unsafe { command_buffers::state(vk::CommandBuffer::from_raw(handle)) };
            state
                .and_then(|state| state.set_name(name))
                .map(Object::Recording)
        }
        vk::ObjectType::SHADER_MODULE => {
            let module = vk::ShaderModule::from_raw(handle);
            device.kernels.name_module(module, name);
            None
        }
        _ => None,
    };
    if let Some(object) = object {
        device.recorder.write(&CommonEvent::Name { object, name });
    }
}
