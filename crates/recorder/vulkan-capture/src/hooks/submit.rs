//! Hands each submission to the control of windows (captured parts of the run), which may write it to a window, and
//! keeps waits of the program for queues apart from those of the layer.

use std::sync::PoisonError;

use ash::vk::{self, Handle};
use gapscope_spool::hook::guard;
use gapscope_vulkan_layer::command::Label;
use gapscope_vulkan_layer::layer::QueueHooks;
use gapscope_vulkan_layer::submissions::{SubmitFunction, SubmitInfo, with_command_buffers};

use crate::api::device::Device;
use crate::window::{self, SubmitCall};

impl QueueHooks for Device {
    unsafe fn submit<I: SubmitInfo>(
        &'static self,
        queue: vk::Queue,
        _: SubmitFunction,
        infos: &[I],
        _: vk::Fence,
        call: impl Fn(&[I]) -> vk::Result,
    ) -> vk::Result {
        let pass_on = |lists: Option<&[Vec<vk::CommandBuffer>]>| match lists {
            // SAFETY: as the caller promises; the command buffers are executable where they are.
            Some(lists) => unsafe { with_command_buffers(infos, lists.iter().map(Some), &call) },
            None => call(infos),
        };
        let control = window::control().filter(|control| control.is_armed());
        // SAFETY: as the caller promises.
        let read = || unsafe { SubmitCall::new(self, queue, infos, &pass_on) };
        match control.and_then(|control| Some((control, guard(read)?))) {
            // SAFETY: as the caller promises.
            Some((control, call)) => unsafe { control.submit(&call) },
            None => call(infos),
        }
    }

    unsafe fn bind_sparse(
        &'static self,
        _: vk::Queue,
        _: &[vk::BindSparseInfo<'_>],
        _: vk::Fence,
        pass_on: impl FnOnce() -> vk::Result,
    ) -> vk::Result {
        match window::control() {
            Some(control) => control.refuse("vkQueueBindSparse", pass_on),
            None => pass_on(),
        }
    }

    fn wait_idle(
        &'static self,
        _: Option<vk::Queue>,
        pass_on: impl FnOnce() -> vk::Result,
    ) -> vk::Result {
        let _alone = self.waits.read().unwrap_or_else(PoisonError::into_inner);
        pass_on()
    }

    fn label_queue(&self, queue: vk::Queue, label: Label<'_>) {
        if let Some(control) = window::control() {
            match label {
                Label::Begin(text) => control.labels.begin(queue.as_raw(), text.into_owned()),
                Label::End => control.labels.end(queue.as_raw()),
                Label::Instant(_) => {}
            }
        }
    }
}
