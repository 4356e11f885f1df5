//! Records submissions, waits for queues and labels of queues.

use crate::api::arguments::{find, slice};
use crate::device::Device;
use crate::hooks::labels;
use crate::host_call::HostCallTimer;
use crate::submission::{Batch, Batches, Semaphores, SubmitTarget};
use ash::vk;
use gapscope_spool::event::HostCallKind;
use gapscope_spool::hook::guard;
use gapscope_vulkan_layer::command::Label;
use gapscope_vulkan_layer::layer::QueueHooks;
use std::ffi::c_void;

/// `VkSubmitInfo` or `VkSubmitInfo2`.
trait SubmitInfo: Clone {
    /// An entry of the list of command buffers.
    type Entry;

    /// # Safety
    /// The program's own structure, during its call.
    unsafe fn command_buffers(&self) -> impl Iterator<Item = vk::CommandBuffer> + Clone;

    /// # Safety
    /// As for [`Self::command_buffers`]; the program is submitting it.
    unsafe fn batch(&self, target: SubmitTarget) -> Batch;

    /// Returns the entry of a command buffer of the layer.
    fn entry(command_buffer: vk::CommandBuffer) -> Self::Entry;

    /// Lists other command buffers, which must live as long as the structure is used.
    fn set_command_buffers(&mut self, entries: &[Self::Entry]);
}

/// Passes on a submission of the program in either form; `call` is the next layer's function.
///
/// # Safety
/// The program's own call: the structures are valid until it returns.
unsafe fn submit<I: SubmitInfo>(
    device: &'static Device,
    handle: vk::Queue,
    infos: &[I],
    call: impl Fn(*const I) -> vk::Result,
) -> vk::Result {
    let timer = HostCallTimer::start(device.recorder);
    let target = device
        .queues
        .get(handle)
        .map(|queue| SubmitTarget { device, queue });
    // SAFETY: as the caller promises.
    let batches = target.and_then(|target| unsafe {
        if timer.start_ns().is_some() {
            return guard(|| infos.iter().map(|info| info.batch(target)).collect());
        }
        if device.queries.are_recorded() {
            let command_buffers = infos.iter().flat_map(|info| info.command_buffers());
            guard(|| target.submit_unrecorded(command_buffers));
        }
        None::<Batches>
    });
    let (Some(target), Some(batches)) = (target, batches) else {
        return call(infos.as_ptr());
    };
    let result = if batches.iter().all(|b| b.command_buffers.is_empty()) {
        call(infos.as_ptr())
    } else {
        let mut changed = infos.to_vec();
        let lists: Vec<Vec<I::Entry>> = batches
            .iter()
            .map(|b| b.command_buffers.iter().map(|cb| I::entry(*cb)).collect())
            .collect();
        for (info, list) in changed.iter_mut().zip(&lists) {
            if !list.is_empty() {
                info.set_command_buffers(list);
            }
        }
        call(changed.as_ptr())
    };
    guard(|| target.finish(batches, timer, HostCallKind::Submit, result));
    result
}

impl QueueHooks for Device {
    unsafe fn submit(
        &'static self,
        queue: vk::Queue,
        infos: &[vk::SubmitInfo<'_>],
        fence: vk::Fence,
        next: vk::PFN_vkQueueSubmit,
    ) -> vk::Result {
        let count = infos.len() as u32;
        // SAFETY: as the caller promises.
        unsafe { submit(self, queue, infos, |infos| next(queue, count, infos, fence)) }
    }

    unsafe fn submit2(
        &'static self,
        queue: vk::Queue,
        infos: &[vk::SubmitInfo2<'_>],
        fence: vk::Fence,
        next: vk::PFN_vkQueueSubmit2,
    ) -> vk::Result {
        let count = infos.len() as u32;
        // SAFETY: as the caller promises.
        unsafe { submit(self, queue, infos, |infos| next(queue, count, infos, fence)) }
    }

    unsafe fn bind_sparse(
        &'static self,
        queue: vk::Queue,
        infos: &[vk::BindSparseInfo<'_>],
        pass_on: impl FnOnce() -> vk::Result,
    ) -> vk::Result {
        let timer = HostCallTimer::start(self.recorder);
        let target = self
            .queues
            .get(queue)
            .filter(|_| timer.start_ns().is_some())
            .map(|queue| SubmitTarget {
                device: self,
                queue,
            });
        // Other work may wait for the binding, and the binding for other work.
        let batches = target.and_then(|target| {
            // SAFETY: as the caller promises.
            let batch = |info: &vk::BindSparseInfo<'_>| unsafe {
                let waits = slice(info.p_wait_semaphores, info.wait_semaphore_count);
                let signals = slice(info.p_signal_semaphores, info.signal_semaphore_count);
                Batch::with_semaphores(semaphores(target, info.p_next, waits, signals))
            };
            guard(|| infos.iter().map(batch).collect::<Batches>())
        });
        let result = pass_on();
        guard(|| match target.zip(batches) {
            Some((target, batches)) => {
                target.finish(batches, timer, HostCallKind::BindSparse, result);
            }
            None => self.note_result(result),
        });
        result
    }

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
                    let queue = self.queue_id(queue);
                    timer.finish_on_queue(HostCallKind::WaitQueueIdle, result, queue);
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

/// Returns the semaphores with the values that the chain may give for them.
///
/// # Safety
/// The program's own structures, during its call.
unsafe fn semaphores(
    target: SubmitTarget,
    chain: *const c_void,
    waits: &[vk::Semaphore],
    signals: &[vk::Semaphore],
) -> (Semaphores, Semaphores) {
    fn with_values(
        semaphores: &[vk::Semaphore],
        values: &[u64],
    ) -> impl Iterator<Item = (vk::Semaphore, u64)> {
        let values = values.iter().copied().chain(std::iter::repeat(0));
        semaphores.iter().copied().zip(values)
    }
    // SAFETY: as the caller promises.
    let (wait_values, signal_values): (&[u64], &[u64]) = unsafe {
        let timeline = find::<vk::TimelineSemaphoreSubmitInfo<'_>>(
            chain,
            vk::StructureType::TIMELINE_SEMAPHORE_SUBMIT_INFO,
        );
        timeline.map_or((&[], &[]), |t| {
            (
                slice(t.p_wait_semaphore_values, t.wait_semaphore_value_count),
                slice(t.p_signal_semaphore_values, t.signal_semaphore_value_count),
            )
        })
    };
    (
        target.waits(with_values(waits, wait_values)),
        target.signals(with_values(signals, signal_values)),
    )
}

impl SubmitInfo for vk::SubmitInfo<'_> {
    type Entry = vk::CommandBuffer;

    unsafe fn command_buffers(&self) -> impl Iterator<Item = vk::CommandBuffer> + Clone {
        // SAFETY: as the caller promises.
        unsafe { slice(self.p_command_buffers, self.command_buffer_count) }
            .iter()
            .copied()
    }

    unsafe fn batch(&self, target: SubmitTarget) -> Batch {
        // SAFETY: as the caller promises.
        unsafe {
            // A device group has a mask for each command buffer, and what is submitted as protected must all be so:
            // no brackets are added there.
            let group = find::<vk::DeviceGroupSubmitInfo<'_>>(
                self.p_next,
                vk::StructureType::DEVICE_GROUP_SUBMIT_INFO,
            );
            let protected = find::<vk::ProtectedSubmitInfo<'_>>(
                self.p_next,
                vk::StructureType::PROTECTED_SUBMIT_INFO,
            );
            let may_bracket =
                group.is_none() && protected.is_none_or(|info| info.protected_submit == vk::FALSE);
            let waits = slice(self.p_wait_semaphores, self.wait_semaphore_count);
            let signals = slice(self.p_signal_semaphores, self.signal_semaphore_count);
            let semaphores = semaphores(target, self.p_next, waits, signals);
            target.batch(self.command_buffers(), may_bracket, semaphores)
        }
    }

    fn entry(command_buffer: vk::CommandBuffer) -> vk::CommandBuffer {
        command_buffer
    }

    fn set_command_buffers(&mut self, entries: &[vk::CommandBuffer]) {
        self.command_buffer_count = entries.len() as u32;
        self.p_command_buffers = entries.as_ptr();
    }
}

impl<'a> SubmitInfo for vk::SubmitInfo2<'a> {
    type Entry = vk::CommandBufferSubmitInfo<'a>;

    unsafe fn command_buffers(&self) -> impl Iterator<Item = vk::CommandBuffer> + Clone {
        // SAFETY: as the caller promises.
        unsafe { slice(self.p_command_buffer_infos, self.command_buffer_info_count) }
            .iter()
            .map(|entry| entry.command_buffer)
    }

    unsafe fn batch(&self, target: SubmitTarget) -> Batch {
        // SAFETY: as the caller promises.
        unsafe {
            let grouped = slice(self.p_command_buffer_infos, self.command_buffer_info_count)
                .iter()
                .any(|cb| cb.device_mask != 0 || !cb.p_next.is_null());
            let protected = self.flags.contains(vk::SubmitFlags::PROTECTED);
            let with_value = |info: &vk::SemaphoreSubmitInfo<'_>| (info.semaphore, info.value);
            let waits = slice(self.p_wait_semaphore_infos, self.wait_semaphore_info_count);
            let signals = slice(
                self.p_signal_semaphore_infos,
                self.signal_semaphore_info_count,
            );
            let semaphores = (
                target.waits(waits.iter().map(with_value)),
                target.signals(signals.iter().map(with_value)),
            );
            target.batch(self.command_buffers(), !grouped && !protected, semaphores)
        }
    }

    fn entry(command_buffer: vk::CommandBuffer) -> vk::CommandBufferSubmitInfo<'a> {
        vk::CommandBufferSubmitInfo::default().command_buffer(command_buffer)
    }

    fn set_command_buffers(&mut self, entries: &[vk::CommandBufferSubmitInfo<'a>]) {
        self.command_buffer_info_count = entries.len() as u32;
        self.p_command_buffer_infos = entries.as_ptr();
    }
}
