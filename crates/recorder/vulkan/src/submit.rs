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
use gapscope_spool::event::{
    HostCallKind as Call, Instance, Outcome, SemaphoreValue, Span, VulkanEvent,
};
use gapscope_spool::hook::guard;
use gapscope_spool::ids;
use smallvec::SmallVec;
use std::borrow::Cow;
use std::sync::Arc;
use std::sync::atomic::Ordering::Relaxed;

/// A queue, leaked like its device.
pub struct Queue {
    pub device: &'static Device,
    pub id: ids::Queue,
    family: u32,
}

/// A semaphore.
#[derive(Clone, Copy)]
pub struct Semaphore {
    pub id: ids::Semaphore,
    timeline: bool,
}

/// What one batch (VkSubmitInfo) will run. Most are small: a submission allocates nothing.
#[derive(Default)]
struct Batch {
    instances: SmallVec<[Instance; 4]>,
    pending: SmallVec<[Pending; 4]>,
    waits: SmallVec<[SemaphoreValue; 4]>,
    signals: SmallVec<[SemaphoreValue; 4]>,
    /// The command buffers with brackets around some; empty: as the program has them.
    command_buffers: Vec<vk::CommandBuffer>,
}

type Batches = SmallVec<[Batch; 2]>;

/// `VkSubmitInfo` or `VkSubmitInfo2`.
trait SubmitInfo: Clone {
    /// How it lists a command buffer.
    type Entry;

    /// # Safety
    /// The program's own structure, during its call.
    unsafe fn command_buffers(&self) -> impl Iterator<Item = vk::CommandBuffer> + Clone;

    /// # Safety
    /// As for [`Self::command_buffers`].
    unsafe fn batch(&self, queue: &Queue) -> Batch;

    fn entry(command_buffer: vk::CommandBuffer) -> Self::Entry;

    /// Lists other command buffers, which must live as long as it is used.
    fn set_command_buffers(&mut self, entries: &[Self::Entry]);
}

impl Queue {
    pub fn new(device: &'static Device, id: ids::Queue, family: u32) -> Queue {
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
            let instance = self.device.recorder.ids.instance.next();
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
    ) -> SmallVec<[SemaphoreValue; 4]> {
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
    fn submitted(&self, batches: Batches, timer: HostCallTimer, result: vk::Result) {
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
            recorder.write(&VulkanEvent::Submit {
                queue: self.id,
                span: Span::between(begin_ns, end_ns),
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

/// A submission of the program, in either form; `call` is the next layer's function.
///
/// # Safety
/// The program's own call: the structures are valid until it returns.
unsafe fn submit<I: SubmitInfo>(
    device: &'static Device,
    handle: vk::Queue,
    infos: &[I],
    call: impl Fn(*const I) -> vk::Result,
) -> vk::Result {
    let timer = HostCallTimer::start(device);
    let queue = device.queue(handle);
    // SAFETY: as the caller promises.
    let batches = queue.and_then(|queue| unsafe {
        if timer.begin_ns().is_some() {
            return guard(|| infos.iter().map(|info| info.batch(queue)).collect());
        }
        if device.has_queries.load(Relaxed) {
            guard(|| queue.submit_unrecorded(infos.iter().flat_map(|i| i.command_buffers())));
        }
        None::<Batches>
    });
    let (Some(queue), Some(batches)) = (queue, batches) else {
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
    guard(|| queue.submitted(batches, timer, result));
    result
}

pub unsafe extern "system" fn queue_submit(
    handle: vk::Queue,
    count: u32,
    infos: *const vk::SubmitInfo<'_>,
    fence: vk::Fence,
) -> vk::Result {
    // SAFETY: the program's own call.
    unsafe {
        let Some((device, call)) = device::with(handle, |f| f.queue_submit) else {
            return vk::Result::ERROR_INITIALIZATION_FAILED;
        };
        let next = |infos| call(handle, count, infos, fence);
        submit(device, handle, slice(infos, count), next)
    }
}

pub unsafe extern "system" fn queue_submit2(
    handle: vk::Queue,
    count: u32,
    infos: *const vk::SubmitInfo2<'_>,
    fence: vk::Fence,
) -> vk::Result {
    // SAFETY: the program's own call.
    unsafe {
        let Some((device, call)) = device::with(handle, |f| f.queue_submit2) else {
            return vk::Result::ERROR_INITIALIZATION_FAILED;
        };
        let next = |infos| call(handle, count, infos, fence);
        submit(device, handle, slice(infos, count), next)
    }
}

impl SubmitInfo for vk::SubmitInfo<'_> {
    type Entry = vk::CommandBuffer;

    unsafe fn command_buffers(&self) -> impl Iterator<Item = vk::CommandBuffer> + Clone {
        // SAFETY: as the caller promises.
        unsafe { slice(self.p_command_buffers, self.command_buffer_count) }
            .iter()
            .copied()
    }

    unsafe fn batch(&self, queue: &Queue) -> Batch {
        // SAFETY: as the caller promises.
        unsafe {
            // A device group lists a mask for each command buffer: we add none there.
            let group = find::<vk::DeviceGroupSubmitInfo<'_>>(
                self.p_next,
                vk::StructureType::DEVICE_GROUP_SUBMIT_INFO,
            );
            let timeline = find::<vk::TimelineSemaphoreSubmitInfo<'_>>(
                self.p_next,
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
                queue.semaphores(semaphores.iter().copied().zip(values))
            };
            let waits = slice(self.p_wait_semaphores, self.wait_semaphore_count);
            let signals = slice(self.p_signal_semaphores, self.signal_semaphore_count);
            Batch {
                waits: with_values(waits, wait_values),
                signals: with_values(signals, signal_values),
                ..queue.batch(self.command_buffers(), group.is_none())
            }
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

    unsafe fn batch(&self, queue: &Queue) -> Batch {
        // SAFETY: as the caller promises.
        unsafe {
            let grouped = slice(self.p_command_buffer_infos, self.command_buffer_info_count)
                .iter()
                .any(|cb| cb.device_mask != 0 || !cb.p_next.is_null());
            let of = |list: &[vk::SemaphoreSubmitInfo<'_>]| {
                queue.semaphores(list.iter().map(|s| (s.semaphore, s.value)))
            };
            let waits = slice(self.p_wait_semaphore_infos, self.wait_semaphore_info_count);
            let signals = slice(
                self.p_signal_semaphore_infos,
                self.signal_semaphore_info_count,
            );
            Batch {
                waits: of(waits),
                signals: of(signals),
                ..queue.batch(self.command_buffers(), !grouped)
            }
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
