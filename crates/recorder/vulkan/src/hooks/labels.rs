//! Records debug labels, by which programs describe their work, and the names that they give to objects.

use crate::command_buffers;
use crate::device::Device;
use crate::recorder::Recorder;
use ash::vk;
use ash::vk::Handle;
use gapscope_spool::event::{Command, CommonEvent, LabelEdge, LabelScope, NO_QUERY, Object, Op};
use gapscope_spool::{ids, monotonic_ns};
use gapscope_vulkan_layer::command::Label;

/// Returns the edge of a label (begin, end or instant) and the id of its text, which an end does not have. A text
/// that contains the session's start label starts the recorder.
fn edge(recorder: &Recorder, label: &Label<'_>) -> (LabelEdge, ids::Text) {
    match label {
        Label::Begin(text) => (LabelEdge::Begin, recorder.text(text)),
        Label::End => (LabelEdge::End, ids::Text::NONE),
        Label::Instant(text) => (LabelEdge::Instant, recorder.text(text)),
    }
}

/// Records a label of a command buffer, if the command buffer is recorded.
///
/// # Safety
/// The program's own call on the command buffer.
pub unsafe fn label_command_buffer(handle: vk::CommandBuffer, label: &Label<'_>) {
    // SAFETY: as the caller promises.
    let Some(state) = (unsafe { command_buffers::state(handle) }) else {
        return;
    };
    let (edge, text) = edge(state.device.recorder, label);
    let op = match edge {
        LabelEdge::Begin => Op::LabelBegin,
        LabelEdge::End => Op::LabelEnd,
        LabelEdge::Instant => Op::LabelInstant,
    };
    if state.is_recorded() {
        state.push(Command::new(op, NO_QUERY, [text.0, 0, 0, 0]));
    }
}

/// Records a label of a queue that the program has asked for, while the recorder is on.
pub fn label_queue(device: &Device, handle: vk::Queue, label: &Label<'_>) {
    let Some(queue) = device.queue_id(handle) else {
        return;
    };
    let (edge, text) = edge(device.recorder, label);
    if device.recorder.recording() {
        device.recorder.write(&CommonEvent::Label {
            scope: LabelScope::Queue(queue),
            edge,
            text,
            at_ns: monotonic_ns(),
        });
    }
}

/// Writes the name of an object that events refer to; the name of a shader module is kept for its later kernels.
///
/// # Safety
/// `handle` is a live object of that type, to which the calling thread has the access that naming it demands.
pub unsafe fn name_object(device: &Device, kind: vk::ObjectType, handle: u64, name: &str) {
    let object = match kind {
        vk::ObjectType::PIPELINE => device
            .kernels
            .kernel_of(vk::Pipeline::from_raw(handle))
            .map(Object::Kernel),
        vk::ObjectType::SHADER_EXT => device
            .kernels
            .kernel_of_shader(vk::ShaderEXT::from_raw(handle))
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
                .map(Object::CommandRecording)
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
