//! Queue submissions.

use crate::brackets::Bracket;
use crate::command_buffer;
use crate::device::{self, Device};
use crate::harvest::{Pending, Times};
use crate::host_calls::HostCallTimer;
use crate::instance::{find, slice};
use crate::recorder::next_id;
use crate::timing::Timing;
use ash::vk;
use ash::vk::Handle;
use gapscope_spool::Event;
use gapscope_spool::event::{Call, Instance, Outcome, SemaphoreValue};
use gapscope_spool::hook::guard;
use std::borrow::Cow;
use std::sync::Arc;
use std::sync::atomic::Ordering::Relaxed;

/// A queue, leaked like its device.
pub struct Queue {
    pub device: &'static Device,
    pub id: u32,
    family: u32,
}

/// A semaphore.
#[derive(Clone, Copy)]
pub struct Semaphore {
    pub id: u32,
    timeline: bool,
}

/// What one batch (VkSubmitInfo) will run.
#[derive(Default)]
struct Batch {
    instances: Vec<Instance>,
    pending: Vec<Pending>,
    waits: Vec<SemaphoreValue>,
    signals: Vec<SemaphoreValue>,
    /// The command buffers with brackets around some; empty: as the program has them.
    command_buffers: Vec<vk::CommandBuffer>,
}

impl Queue {
    pub fn new(device: &'static Device, id: u32, family: u32) -> Queue {
        Queue { device, id, family }
    }

    /// Prepares the instances of a batch. `may_bracket`: command buffers may be added to it.
    fn batch(
        &self,
        command_buffers: impl Iterator<Item = vk::CommandBuffer> + Clone,
        may_bracket: bool,
    ) -> Batch {
        let mut batch = Batch::default();
        let mut brackets: Vec<(usize, vk::CommandBuffer, vk::CommandBuffer)> = Vec::new();
        for (place, handle) in command_buffers.clone().enumerate() {
            // SAFETY: a command buffer that is being submitted is not being recorded.
            let Some(state) = (unsafe { command_buffer::state(handle) }) else {
                continue;
            };
            let instance = self.device.recorder.ids.instance.fetch_add(1, Relaxed);
            batch.instances.push(Instance {
                instance,
                recording: state.recording,
            });
            let times = if state.simultaneous && state.is_recorded() {
                match may_bracket
                    .then(|| self.device.brackets.take(self.device, self.family))
                    .flatten()
                {
                    Some(bracket) => {
                        let Bracket { before, after, .. } = bracket;
                        brackets.push((place, before, after));
                        let inner = state.timing.clone();
                        if let Some(inner) = &inner {
                            inner.begin_overlapping();
                        }
                        Times::Bracket(bracket, inner)
                    }
                    None => Times::None(self.untimed()),
                }
            } else if let Some(timing) = &state.timing {
                self.ready(timing);
                Times::Inner(Arc::clone(timing))
            } else {
                Times::None(if state.is_recorded() {
                    self.untimed()
                } else {
                    Outcome::NotInstrumented
                })
            };
            batch.pending.push(Pending { instance, times });
        }
        if !brackets.is_empty() {
            let mut next = brackets.into_iter().peekable();
            for (place, handle) in command_buffers.enumerate() {
                match next.next_if(|(at, ..)| *at == place) {
                    Some((_, before, after)) => {
                        batch.command_buffers.extend([before, handle, after])
                    }
                    None => batch.command_buffers.push(handle),
                }
            }
        }
        batch
    }

    /// Prepares command buffers that were recorded while recording was on and are submitted while it is off: their
    /// queries must be reset before they are written again, and what they hold is then of no instance.
    #[cold]
    fn submit_unrecorded(&self, command_buffers: impl Iterator<Item = vk::CommandBuffer>) {
        for handle in command_buffers {
            // SAFETY: a command buffer that is being submitted is not being recorded.
            let Some(state) = (unsafe { command_buffer::state(handle) }) else {
                continue;
            };
            if let Some(timing) = &state.timing {
                if !state.simultaneous {
                    self.ready(timing);
                }
                timing.begin_unrecorded(state.simultaneous);
            }
        }
    }

    fn untimed(&self) -> Outcome {
        match self.device.family(self.family) {
            Some(family) if family.timestamp_bits == 0 => Outcome::NoTimestamps,
            _ => Outcome::NoQueries,
        }
    }

    /// Makes the queries of a recording free for its next execution.
    fn ready(&self, timing: &Arc<Timing>) {
        // The command buffer has one reference; another is an earlier instance that has not been collected.
        if Arc::strong_count(timing) > 1 {
            self.device.harvester.settle(self.device, timing);
        }
        for child in &timing.children {
            if Arc::strong_count(child) > 2 {
                self.device.harvester.settle(self.device, child);
            }
        }
        // SAFETY: the earlier instance has been collected, and the program may submit a recording that is not for
        // simultaneous use only when it is not pending.
        unsafe { timing.prepare() };
    }

    fn semaphores<'a>(
        &self,
        semaphores: impl Iterator<Item = (vk::Semaphore, u64)> + 'a,
    ) -> Vec<SemaphoreValue> {
        semaphores
            .filter_map(|(semaphore, value)| {
                let known = self.device.semaphores.get(semaphore.as_raw())?;
                // Programs may give a value for a binary semaphore, which means nothing.
                let value = if known.timeline { value } else { 0 };
                Some(SemaphoreValue {
                    semaphore: known.id,
                    value,
                })
            })
            .collect()
    }

    /// Writes what has been submitted, and lets the harvester watch it.
    fn submitted(&self, batches: Vec<Batch>, timer: HostCallTimer, result: vk::Result) {
        let (Some(begin_ns), recorder) = (timer.begin_ns(), self.device.recorder) else {
            return;
        };
        let end_ns = gapscope_spool::monotonic_ns();
        timer.finish(
            self.device,
            Call::Submit,
            result.as_raw(),
            Some(self.id),
            None,
        );
        if result != vk::Result::SUCCESS {
            // What was not submitted does not run; brackets are idle again.
            for pending in batches.into_iter().flat_map(|b| b.pending) {
                if let Times::Bracket(bracket, inner) = pending.times {
                    if let Some(inner) = inner {
                        inner.end_overlapping(&mut Vec::new(), &mut |_, _, _| {});
                    }
                    self.device.brackets.give_back(bracket);
                }
            }
            self.device.note_result(result);
            return;
        }
        for batch in batches {
            recorder.write(&Event::Submit {
                submission: next_id(&recorder.ids.submission),
                queue: self.id,
                begin_ns,
                end_ns,
                instances: Cow::Borrowed(&batch.instances),
                waits: Cow::Borrowed(&batch.waits),
                signals: Cow::Borrowed(&batch.signals),
            });
            if !batch.pending.is_empty() {
                self.device
                    .harvester
                    .add(self.device, self.id, batch.pending.into_iter());
            }
        }
    }
}

pub unsafe extern "system" fn queue_submit(
    handle: vk::Queue,
    count: u32,
    infos: *const vk::SubmitInfo<'_>,
    fence: vk::Fence,
) -> vk::Result {
    // SAFETY: the program's own call; its structures are valid, and copies of them are changed only in their lists of
    // command buffers, which live until the call returns.
    unsafe {
        let Some((device, call)) = device::with(handle, |f| f.queue_submit) else {
            return vk::Result::ERROR_INITIALIZATION_FAILED;
        };
        let timer = HostCallTimer::start(device);
        if timer.begin_ns().is_none() {
            if device.has_queries.load(Relaxed) {
                guard(|| {
                    let queue = device.queue(handle)?;
                    let all = slice(infos, count).iter();
                    queue.submit_unrecorded(all.flat_map(|info| {
                        slice(info.p_command_buffers, info.command_buffer_count)
                            .iter()
                            .copied()
                    }));
                    Some(())
                });
            }
            return call(handle, count, infos, fence);
        }
        let Some(queue) = device.queue(handle) else {
            return call(handle, count, infos, fence);
        };
        let infos_given = slice(infos, count);
        let batches = guard(|| {
            infos_given
                .iter()
                .map(|info| queue.batch_of(info))
                .collect::<Vec<_>>()
        });
        let Some(batches) = batches else {
            return call(handle, count, infos, fence);
        };
        let result = if batches.iter().all(|b| b.command_buffers.is_empty()) {
            call(handle, count, infos, fence)
        } else {
            let mut changed = infos_given.to_vec();
            for (info, batch) in changed.iter_mut().zip(&batches) {
                if !batch.command_buffers.is_empty() {
                    info.command_buffer_count = batch.command_buffers.len() as u32;
                    info.p_command_buffers = batch.command_buffers.as_ptr();
                }
            }
            call(handle, count, changed.as_ptr(), fence)
        };
        guard(|| queue.submitted(batches, timer, result));
        result
    }
}

pub unsafe extern "system" fn queue_submit2(
    handle: vk::Queue,
    count: u32,
    infos: *const vk::SubmitInfo2<'_>,
    fence: vk::Fence,
) -> vk::Result {
    // SAFETY: as for `queue_submit`.
    unsafe {
        let Some((device, call)) = device::with(handle, |f| f.queue_submit2) else {
            return vk::Result::ERROR_INITIALIZATION_FAILED;
        };
        let timer = HostCallTimer::start(device);
        if timer.begin_ns().is_none() {
            if device.has_queries.load(Relaxed) {
                guard(|| {
                    let queue = device.queue(handle)?;
                    let all = slice(infos, count).iter();
                    queue.submit_unrecorded(all.flat_map(|info| {
                        slice(info.p_command_buffer_infos, info.command_buffer_info_count)
                            .iter()
                            .map(|cb| cb.command_buffer)
                    }));
                    Some(())
                });
            }
            return call(handle, count, infos, fence);
        }
        let Some(queue) = device.queue(handle) else {
            return call(handle, count, infos, fence);
        };
        let infos_given = slice(infos, count);
        let batches = guard(|| {
            infos_given
                .iter()
                .map(|info| queue.batch_of2(info))
                .collect::<Vec<_>>()
        });
        let Some(batches) = batches else {
            return call(handle, count, infos, fence);
        };
        let result = if batches.iter().all(|b| b.command_buffers.is_empty()) {
            call(handle, count, infos, fence)
        } else {
            let lists: Vec<Vec<vk::CommandBufferSubmitInfo<'_>>> = batches
                .iter()
                .map(|b| {
                    let info = |cb: &vk::CommandBuffer| {
                        vk::CommandBufferSubmitInfo::default().command_buffer(*cb)
                    };
                    b.command_buffers.iter().map(info).collect()
                })
                .collect();
            let mut changed = infos_given.to_vec();
            for (info, list) in changed.iter_mut().zip(&lists) {
                if !list.is_empty() {
                    info.command_buffer_info_count = list.len() as u32;
                    info.p_command_buffer_infos = list.as_ptr();
                }
            }
            call(handle, count, changed.as_ptr(), fence)
        };
        guard(|| queue.submitted(batches, timer, result));
        result
    }
}

impl Queue {
    /// # Safety
    /// The program's own structure, during its call.
    unsafe fn batch_of(&self, info: &vk::SubmitInfo<'_>) -> Batch {
        // SAFETY: as the caller promises.
        unsafe {
            let command_buffers = slice(info.p_command_buffers, info.command_buffer_count);
            // A device group lists a mask for each command buffer: we add none there.
            let group = find::<vk::DeviceGroupSubmitInfo<'_>>(
                info.p_next,
                vk::StructureType::DEVICE_GROUP_SUBMIT_INFO,
            );
            let mut batch = self.batch(command_buffers.iter().copied(), group.is_none());
            let timeline = find::<vk::TimelineSemaphoreSubmitInfo<'_>>(
                info.p_next,
                vk::StructureType::TIMELINE_SEMAPHORE_SUBMIT_INFO,
            );
            let (wait_values, signal_values): (&[u64], &[u64]) = timeline.map_or((&[], &[]), |t| {
                (
                    slice(t.p_wait_semaphore_values, t.wait_semaphore_value_count),
                    slice(t.p_signal_semaphore_values, t.signal_semaphore_value_count),
                )
            });
            let with_values = |semaphores: &[vk::Semaphore], values: &[u64]| {
                let values = values.iter().copied().chain(std::iter::repeat(0));
                self.semaphores(semaphores.iter().copied().zip(values))
            };
            batch.waits = with_values(
                slice(info.p_wait_semaphores, info.wait_semaphore_count),
                wait_values,
            );
            batch.signals = with_values(
                slice(info.p_signal_semaphores, info.signal_semaphore_count),
                signal_values,
            );
            batch
        }
    }

    /// # Safety
    /// The program's own structure, during its call.
    unsafe fn batch_of2(&self, info: &vk::SubmitInfo2<'_>) -> Batch {
        // SAFETY: as the caller promises.
        unsafe {
            let command_buffers =
                slice(info.p_command_buffer_infos, info.command_buffer_info_count);
            let grouped = command_buffers
                .iter()
                .any(|cb| cb.device_mask != 0 || !cb.p_next.is_null());
            let mut batch =
                self.batch(command_buffers.iter().map(|cb| cb.command_buffer), !grouped);
            let of = |list: &[vk::SemaphoreSubmitInfo<'_>]| {
                self.semaphores(list.iter().map(|s| (s.semaphore, s.value)))
            };
            batch.waits = of(slice(
                info.p_wait_semaphore_infos,
                info.wait_semaphore_info_count,
            ));
            batch.signals = of(slice(
                info.p_signal_semaphore_infos,
                info.signal_semaphore_info_count,
            ));
            batch
        }
    }
}

pub unsafe extern "system" fn queue_bind_sparse(
    handle: vk::Queue,
    count: u32,
    infos: *const vk::BindSparseInfo<'_>,
    fence: vk::Fence,
) -> vk::Result {
    // SAFETY: the program's own call.
    unsafe {
        let Some((device, call)) = device::with(handle, |f| f.queue_bind_sparse) else {
            return vk::Result::ERROR_INITIALIZATION_FAILED;
        };
        let timer = HostCallTimer::start(device);
        let result = call(handle, count, infos, fence);
        guard(|| {
            timer.finish(
                device,
                Call::BindSparse,
                result.as_raw(),
                device.queue(handle).map(|q| q.id),
                None,
            );
            device.note_result(result);
        });
        result
    }
}

pub unsafe extern "system" fn create_semaphore(
    handle: vk::Device,
    info: *const vk::SemaphoreCreateInfo<'_>,
    allocator: *const vk::AllocationCallbacks<'_>,
    out: *mut vk::Semaphore,
) -> vk::Result {
    // SAFETY: the program's own call.
    unsafe {
        let Some((device, call)) = device::with(handle, |f| f.create_semaphore) else {
            return vk::Result::ERROR_INITIALIZATION_FAILED;
        };
        let result = call(handle, info, allocator, out);
        if result == vk::Result::SUCCESS {
            guard(|| {
                let kind = find::<vk::SemaphoreTypeCreateInfo<'_>>(
                    (*info).p_next,
                    vk::StructureType::SEMAPHORE_TYPE_CREATE_INFO,
                );
                let semaphore = Semaphore {
                    id: next_id(&device.recorder.ids.semaphore),
                    timeline: kind.is_some_and(|k| k.semaphore_type == vk::SemaphoreType::TIMELINE),
                };
                device.semaphores.insert((*out).as_raw(), semaphore);
            });
        }
        result
    }
}

pub unsafe extern "system" fn destroy_semaphore(
    handle: vk::Device,
    semaphore: vk::Semaphore,
    allocator: *const vk::AllocationCallbacks<'_>,
) {
    // SAFETY: the program's own call.
    unsafe {
        let Some((device, call)) = device::with(handle, |f| f.destroy_semaphore) else {
            return;
        };
        guard(|| device.semaphores.remove(semaphore.as_raw()));
        call(handle, semaphore, allocator);
    }
}
