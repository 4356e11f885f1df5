//! Hands each submission to the capture, which may write it to a window, and keeps waits of the program for queues
//! apart from those of the layer.

use std::cell::Cell;
use std::sync::PoisonError;

use ash::vk::{self, Handle};
use gapscope_vulkan_layer::command::Label;
use gapscope_vulkan_layer::layer::QueueHooks;

use crate::api::device::Device;
use crate::window::{self, SubmitCall, SubmitInfos};

impl Device {
    /// # Safety
    /// The program's own call.
    unsafe fn submit_batches(
        &'static self,
        queue: vk::Queue,
        batches: SubmitInfos<'_>,
        fence: vk::Fence,
    ) -> vk::Result {
        let call = SubmitCall {
            device: self,
            queue,
            batches,
            fence,
            passed: Cell::default(),
        };
        // SAFETY: as the caller promises.
        unsafe {
            match window::capture() {
                Some(capture) => capture.submit(&call),
                None => call.pass_on(),
            }
        }
    }
}

impl QueueHooks for Device {
    unsafe fn submit(
        &'static self,
        queue: vk::Queue,
        infos: &[vk::SubmitInfo<'_>],
        fence: vk::Fence,
        next: vk::PFN_vkQueueSubmit,
    ) -> vk::Result {
        // SAFETY: as the caller promises.
        unsafe { self.submit_batches(queue, SubmitInfos::One(infos, next), fence) }
    }

    unsafe fn submit2(
        &'static self,
        queue: vk::Queue,
        infos: &[vk::SubmitInfo2<'_>],
        fence: vk::Fence,
        next: vk::PFN_vkQueueSubmit2,
    ) -> vk::Result {
        // SAFETY: as the caller promises.
        unsafe { self.submit_batches(queue, SubmitInfos::Two(infos, next), fence) }
    }

    unsafe fn bind_sparse(
        &'static self,
        _: vk::Queue,
        _: &[vk::BindSparseInfo<'_>],
        pass_on: impl FnOnce() -> vk::Result,
    ) -> vk::Result {
        match window::capture() {
            Some(capture) => capture.refuse("vkQueueBindSparse", pass_on),
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
        if let Some(capture) = window::capture() {
            match label {
                Label::Begin(text) => capture.labels.begin(queue.as_raw(), text.into_owned()),
                Label::End => capture.labels.end(queue.as_raw()),
                Label::Instant(_) => {}
            }
        }
    }
}
