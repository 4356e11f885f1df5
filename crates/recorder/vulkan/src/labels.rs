//! Debug labels and object names.

use crate::command_buffer::{self, CommandBuffer};
use crate::device::{self, Device, text_at};
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
            let Some(state) = command_buffer::state(cb) else {
                return;
            };
            let text = if info.is_null() {
                ids::Text::NONE
            } else {
                text_id(state, info)
            };
            if state.is_recorded() {
                state.push(Command::new(op, NO_QUERY, [text.0, 0, 0, 0]));
            }
        }
    });
}

/// # Safety
/// `info` is a valid label.
unsafe fn text_id(state: &CommandBuffer, info: *const vk::DebugUtilsLabelEXT<'_>) -> ids::Text {
    // SAFETY: as the caller promises.
    unsafe { state.device.recorder.text(&text_at((*info).p_label_name)) }
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
                if let Some((_, call)) = device::with(cb, |f| f.$function) {
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
        if let Some((_, call)) = device::with(cb, |f| f.cmd_end_debug_utils_label) {
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
            let Some(device) = device::of(handle.as_raw()) else {
                return;
            };
            let Some(queue) = device.queue(handle) else {
                return;
            };
            let text = if info.is_null() {
                ids::Text::NONE
            } else {
                device.recorder.text(&text_at((*info).p_label_name))
            };
            if device.recorder.recording() {
                let scope = LabelScope::Queue(queue.id);
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
                if let Some((_, call)) = device::with(queue, |f| f.$function) {
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
        if let Some((_, call)) = device::with(queue, |f| f.queue_end_debug_utils_label) {
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
        let Some(device) = device::of(handle.as_raw()) else {
            return vk::Result::SUCCESS;
        };
        guard(|| {
            let info = &*info;
            let name = text_at(info.p_object_name);
            device.name_object(info.object_type, info.object_handle, &name);
        });
        match device.next.set_debug_utils_object_name {
            Some(call) => call(handle, info),
            None => vk::Result::SUCCESS,
        }
    }
}

impl Device {
    fn name_object(&self, kind: vk::ObjectType, handle: u64, name: &str) {
        let object = match kind {
            vk::ObjectType::PIPELINE => {
                self.pipelines.get(handle).map(|p| Object::Kernel(p.kernel))
            }
            vk::ObjectType::BUFFER => self
                .buffer_id(vk::Buffer::from_raw(handle))
                .some()
                .map(Object::Buffer),
            vk::ObjectType::QUEUE => self
                .queue(vk::Queue::from_raw(handle))
                .map(|q| Object::Queue(q.id)),
            vk::ObjectType::COMMAND_BUFFER => command_buffer::name(handle, name),
            vk::ObjectType::SHADER_MODULE => {
                self.modules
                    .with(handle, |module| name.clone_into(&mut module.name));
                None
            }
            _ => None,
        };
        if let Some(object) = object {
            self.recorder.write(&CommonEvent::Name { object, name });
        }
    }
}
