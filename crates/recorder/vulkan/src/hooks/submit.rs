//! Records submissions of command buffers to queues, waits for queues, and labels of queues. A submission consists of
//! batches (`VkSubmitInfo`); brackets are the layer's own command buffers, which time one of the program's.

use crate::api::arguments::slice;
use crate::device::Device;
use crate::hooks::labels;
use crate::host_call::HostCallTimer;
use crate::objects::queues::Queue;
use crate::submission::{Batch, Batches, SubmitTarget};
use ash::vk;
use gapscope_spool::event::{self, HostCallKind};
use gapscope_spool::hook::guard;
use gapscope_vulkan_layer::command::Label;
use gapscope_vulkan_layer::layer::QueueHooks;
use gapscope_vulkan_layer::submissions::{
    SemaphoreUse, SubmitFunction, SubmitInfo, with_command_buffers, with_values,
};

/// Returns a batch of a submission as it will be recorded, with brackets prepared where they are needed.
///
/// # Safety
/// The program's own structure, which it is submitting.
unsafe fn batch<I: SubmitInfo>(info: &I, target: SubmitTarget) -> Batch {
    let with_value = |used: SemaphoreUse| (used.semaphore, used.value);
    let submitted = target.next_submission();
    // SAFETY: as the caller promises.
    unsafe {
        // A device group has a mask for each command buffer, and what is submitted as protected must all be so: no
        // brackets are added there.
        let may_bracket = !info.is_for_group() && !info.is_protected();
        let semaphores = (
            target.waits(info.waits().map(with_value)),
            target.signals(info.signals().map(with_value), submitted),
        );
        let batch = Batch::new(submitted, semaphores);
        target.batch(batch, info.command_buffers(), may_bracket)
    }
}

/// Returns the function as the spool names it.
fn spool_function(function: SubmitFunction) -> event::SubmitFunction {
    match function {
        SubmitFunction::Submit => event::SubmitFunction::QueueSubmit,
        SubmitFunction::Submit2 => event::SubmitFunction::QueueSubmit2,
        SubmitFunction::Submit2Khr => event::SubmitFunction::QueueSubmit2Khr,
    }
}

impl QueueHooks for Device {
    /// Passes on a submission of the program, with brackets where they are needed, and records it.
    unsafe fn submit<I: SubmitInfo>(
        &'static self,
        queue: vk::Queue,
        function: SubmitFunction,
        infos: &[I],
        fence: vk::Fence,
        call: impl Fn(&[I]) -> vk::Result,
    ) -> vk::Result {
        let timer = HostCallTimer::start(self.recorder);
        let target = self.submit_target(queue);
        // SAFETY: as the caller promises.
        let batches = target.and_then(|target| unsafe {
            if timer.start_ns().is_some() {
                return guard(|| infos.iter().map(|info| batch(info, target)).collect());
            }
            guard(|| {
                if self.queries.are_recorded() {
                    let command_buffers = infos.iter().flat_map(|info| info.command_buffers());
                    target.submit_unrecorded(command_buffers);
                }
                let signals = infos.iter().flat_map(|info| info.signals());
                target.forget(signals.map(|used| (used.semaphore, used.value)), fence);
            });
            None::<Batches>
        });
        let (Some(target), Some(batches)) = (target, batches) else {
            return call(infos);
        };
        let result = if batches.iter().all(|b| b.command_buffers.is_empty()) {
            call(infos)
        } else {
            let lists = batches
                .iter()
                .map(|batch| Some(&batch.command_buffers).filter(|list| !list.is_empty()));
            // SAFETY: as the caller promises; brackets are executable where they are.
            unsafe { with_command_buffers(infos, lists, call) }
        };
        let call = (spool_function(function), fence);
        guard(|| target.finish(batches, timer, call, result));
        result
    }

    /// Passes on a binding of sparse memory, and records it as a submission of batches that run nothing.
    unsafe fn bind_sparse(
        &'static self,
        queue: vk::Queue,
        infos: &[vk::BindSparseInfo<'_>],
        fence: vk::Fence,
        pass_on: impl FnOnce() -> vk::Result,
    ) -> vk::Result {
        let timer = HostCallTimer::start(self.recorder);
        let target = self.submit_target(queue);
        // Other work may wait for the binding, and the binding for other work.
        let batches = target.and_then(|target| {
            // SAFETY: as the caller promises.
            let semaphores = |info: &vk::BindSparseInfo<'_>| unsafe {
                let waits = slice(info.p_wait_semaphores, info.wait_semaphore_count);
                let signals = slice(info.p_signal_semaphores, info.signal_semaphore_count);
                with_values(info.p_next, waits, signals)
            };
            if timer.start_ns().is_none() {
                let signals = infos.iter().flat_map(|info| {
                    let [_, signals] = semaphores(info);
                    signals
                });
                guard(|| target.forget(signals, fence));
                return None;
            }
            let batch = |info: &vk::BindSparseInfo<'_>| {
                let submitted = target.next_submission();
                let [waits, signals] = semaphores(info);
                let semaphores = (target.waits(waits), target.signals(signals, submitted));
                Batch::new(submitted, semaphores)
            };
            guard(|| infos.iter().map(batch).collect::<Batches>())
        });
        let result = pass_on();
        guard(|| match target.zip(batches) {
            Some((target, batches)) => {
                let call = (event::SubmitFunction::QueueBindSparse, fence);
                target.finish(batches, timer, call, result);
            }
            None => self.note_result(result),
        });
        result
    }

    /// Passes on a wait for a queue, or for the whole device (`None`), and records its time.
    fn wait_idle(
        &'static self,
        queue: Option<vk::Queue>,
        pass_on: impl FnOnce() -> vk::Result,
    ) -> vk::Result {
        let timer = HostCallTimer::start(self.recorder);
        let result = pass_on();
        guard(|| {
            match queue {
                Some(queue) => {
                    let queue = self.queues.get(queue);
                    let id = queue.map(|queue| queue.id);
                    timer.finish_wait_for_queue(result, id, queue.and_then(Queue::last));
                }
                None => timer.finish(HostCallKind::WaitDeviceIdle, result),
            }
            self.after_wait(result);
        });
        result
    }

    fn label_queue(&self, queue: vk::Queue, label: Label<'_>) {
        labels::label_queue(self, queue, &label);
    }
}

impl Device {
    /// Returns a queue with its device; `None` for a queue that the program has not asked for.
    fn submit_target(&'static self, queue: vk::Queue) -> Option<SubmitTarget> {
        let queue = self.queues.get(queue)?;
        Some(SubmitTarget {
            device: self,
            queue,
        })
    }
}
