//! Debug labels and object names.

use ash::vk::{self, Handle};
use gapscope_capture::model::Label;
use gapscope_spool::hook::guard;
use gapscope_vulkan_layer::arguments::text_at;
use gapscope_vulkan_layer::handles::lock;

use crate::api::device;
use crate::command::Command;
use crate::hooks::commands::push;
use crate::window;

/// # Safety
/// `info` is null or a valid label.
unsafe fn text(info: *const vk::DebugUtilsLabelEXT<'_>) -> String {
    if info.is_null() {
        return String::new();
    }
    // SAFETY: as the caller promises.
    unsafe { text_at((*info).p_label_name) }.into_owned()
}

pub unsafe extern "system" fn cmd_begin_label(
    buffer: vk::CommandBuffer,
    info: *const vk::DebugUtilsLabelEXT<'_>,
) {
    // SAFETY: the program's own call on a command buffer.
    unsafe {
        let Some(device) = push(buffer, || Command::Label(Label::Begin(text(info)))) else {
            return;
        };
        if let Some(call) = device.debug_utils.cmd_begin_label {
            call(buffer, info);
        }
    }
}

pub unsafe extern "system" fn cmd_insert_label(
    buffer: vk::CommandBuffer,
    info: *const vk::DebugUtilsLabelEXT<'_>,
) {
    // SAFETY: the program's own call on a command buffer.
    unsafe {
        let label = || Command::Label(Label::Instant(text(info)));
        let Some(device) = push(buffer, label) else {
            return;
        };
        if let Some(call) = device.debug_utils.cmd_insert_label {
            call(buffer, info);
        }
    }
}

pub unsafe extern "system" fn cmd_end_label(buffer: vk::CommandBuffer) {
    // SAFETY: the program's own call on a command buffer.
    unsafe {
        let Some(device) = push(buffer, || Command::Label(Label::End)) else {
            return;
        };
        if let Some(call) = device.debug_utils.cmd_end_label {
            call(buffer);
        }
    }
}

pub unsafe extern "system" fn queue_begin_label(
    queue: vk::Queue,
    info: *const vk::DebugUtilsLabelEXT<'_>,
) {
    // SAFETY: the program's own call on a queue.
    unsafe {
        let Some(device) = device::of(queue) else {
            return;
        };
        guard(|| {
            if let Some(capture) = window::capture() {
                capture.labels.begin(queue.as_raw(), text(info));
            }
        });
        if let Some(call) = device.debug_utils.queue_begin_label {
            call(queue, info);
        }
    }
}

pub unsafe extern "system" fn queue_end_label(queue: vk::Queue) {
    // SAFETY: the program's own call on a queue.
    unsafe {
        let Some(device) = device::of(queue) else {
            return;
        };
        guard(|| {
            if let Some(capture) = window::capture() {
                capture.labels.end(queue.as_raw());
            }
        });
        if let Some(call) = device.debug_utils.queue_end_label {
            call(queue);
        }
    }
}

pub unsafe extern "system" fn set_object_name(
    handle: vk::Device,
    info: *const vk::DebugUtilsObjectNameInfoEXT<'_>,
) -> vk::Result {
    // SAFETY: the program's own call on a live device.
    unsafe {
        let Some(device) = device::of(handle) else {
            return vk::Result::SUCCESS;
        };
        guard(|| {
            let name = text_at((*info).p_object_name).into_owned();
            let name = Some(name).filter(|name| !name.is_empty());
            let (objects, raw) = (&device.objects, (*info).object_handle);
            match (*info).object_type {
                vk::ObjectType::BUFFER => {
                    objects
                        .buffers
                        .with(raw, |buffer| *lock(&buffer.name) = name);
                }
                vk::ObjectType::PIPELINE => {
                    objects
                        .pipelines
                        .with(raw, |pipeline| *lock(&pipeline.name) = name);
                }
                vk::ObjectType::SHADER_MODULE => {
                    objects
                        .modules
                        .with(raw, |module| *lock(&module.name) = name);
                }
                _ => {}
            }
        });
        match device.debug_utils.set_object_name {
            Some(call) => call(handle, info),
            None => vk::Result::SUCCESS,
        }
    }
}
