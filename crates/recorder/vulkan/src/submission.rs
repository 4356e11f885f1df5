//! Prepares a submission before it reaches its queue, and writes it as events afterwards. Each submitted command
//! buffer becomes an instance: one execution of its command recording. [`crate::hooks::submit`] calls
//! [`SubmitTarget::batch`] for each batch, then the next layer's function, then [`SubmitTarget::finish`].

use crate::command_buffer::CommandBuffer;
use crate::command_buffers;
use crate::device::Device;
use crate::host_call::HostCallTimer;
use crate::objects::queues::Queue;
use crate::submitted::Submitted;
use crate::timing::brackets::Bracket;
use crate::timing::command_recording::Timing;
use crate::timing::pending::{PendingInstance, TimeSource};
use ash::vk;
use gapscope_spool::event::{Instance, Outcome, SemaphoreValue, Span, SubmitFunction, VulkanEvent};
use gapscope_spool::{ids, monotonic_ns, stacks};
use smallvec::SmallVec;
use std::borrow::Cow;
use std::sync::Arc;

/// The semaphores that a batch waits for, or those that it signals.
pub type Semaphores = SmallVec<[SemaphoreValue; 4]>;

/// The instances and semaphores of one batch (VkSubmitInfo). Most batches are small, so that a submission allocates nothing.
pub struct Batch {
    /// The batch as a submission that others wait for.
    submitted: Submitted,
    instances: SmallVec<[Instance; 4]>,
    /// For each instance, where its times come from.
    pending: SmallVec<[PendingInstance; 4]>,
    waits: Semaphores,
    signals: Semaphores,
    /// The command buffers with brackets (the layer's own, which write timestamps) around some; empty if they are as
    /// the program has them.
    pub command_buffers: Vec<vk::CommandBuffer>,
}

impl Batch {
    /// Returns a batch that waits for some semaphores, signals others and runs nothing.
    pub fn new(submitted: Submitted, (waits, signals): (Semaphores, Semaphores)) -> Batch {
        Batch {
            submitted,
            instances: SmallVec::new(),
            pending: SmallVec::new(),
            waits,
            signals,
            command_buffers: Vec::new(),
        }
    }
}

/// The batches of one submission.
pub type Batches = SmallVec<[Batch; 2]>;

/// A queue to which the program submits.
#[derive(Clone, Copy)]
pub struct SubmitTarget {
    pub device: &'static Device,
    pub queue: Queue,
}

impl SubmitTarget {
    /// Returns a new submission to the queue.
    pub fn next_submission(self) -> Submitted {
        Submitted {
            submission: self.device.recorder.ids.submission.next(),
            queue: self.queue.id,
        }
    }

    /// Notes a submission that is not recorded, and the semaphores and the fence that it signals: waits for them are for nothing that
    /// is known.
    pub fn forget(self, signals: impl Iterator<Item = (vk::Semaphore, u64)>, fence: vk::Fence) {
        for (semaphore, value) in signals {
            self.device
                .semaphores
                .will_reach_otherwise(semaphore, value);
        }
        self.queue.submitted(ids::Submission::NONE);
        self.device.fences.forget(fence);
    }

    /// Adds instances to a batch without any. `may_bracket` says whether command buffers may be added to the batch.
    ///
    /// # Safety
    /// The program is submitting the command buffers.
    pub unsafe fn batch(
        self,
        mut batch: Batch,
        command_buffers: impl Iterator<Item = vk::CommandBuffer> + Clone,
        may_bracket: bool,
    ) -> Batch {
        let mut brackets: Vec<(usize, vk::CommandBuffer, vk::CommandBuffer)> = Vec::new();
        for (index, handle) in command_buffers.clone().enumerate() {
            // SAFETY: a command buffer that is being submitted is not being recorded.
            let Some(state) = (unsafe { command_buffers::state(handle) }) else {
                continue;
            };
            let instance = self.device.recorder.ids.instance.next();
            batch.instances.push(Instance {
                instance,
                recording: state.recording,
            });
            let times = if state.continues_another() {
                self.skip_times(state);
                TimeSource::None(Outcome::SuspendedRendering)
            } else if state.simultaneous && state.is_recorded() {
                match may_bracket.then(|| self.bracket()).flatten() {
                    Some(bracket) => {
                        let Bracket { before, after, .. } = bracket;
                        brackets.push((index, before, after));
                        let inside = state.timing.clone();
                        if let Some(inside) = &inside {
                            inside.start_overlapping();
                        }
                        TimeSource::Around(bracket, inside)
                    }
                    None => TimeSource::None(self.untimed()),
                }
            } else if let Some(timing) = &state.timing {
                self.make_ready(timing);
                TimeSource::Inside(Arc::clone(timing))
            } else {
                TimeSource::None(if state.is_recorded() {
                    self.untimed()
                } else {
                    Outcome::NotInstrumented
                })
            };
            batch.pending.push(PendingInstance { instance, times });
        }
        if !brackets.is_empty() {
            let mut next = brackets.into_iter().peekable();
            for (index, handle) in command_buffers.enumerate() {
                match next.next_if(|(at, ..)| *at == index) {
                    Some((_, before, after)) => {
                        batch.command_buffers.extend([before, handle, after])
                    }
                    None => batch.command_buffers.push(handle),
                }
            }
        }
        batch
    }

    /// Returns an unused bracket for the queue's family; `None` where none can be made.
    fn bracket(self) -> Option<Bracket> {
        let family = self.device.families.get(self.queue.family)?;
        let brackets = self.device.brackets;
        brackets.take(self.queue.family, family.delivery)
    }

    /// Prepares command buffers that were recorded while the recorder was on and are submitted while it is off: their
    /// queries must be reset before they are written again, and then hold the times of no instance.
    ///
    /// # Safety
    /// As for [`Self::batch`].
    #[cold]
    pub unsafe fn submit_unrecorded(
        self,
        command_buffers: impl Iterator<Item = vk::CommandBuffer>,
    ) {
        for handle in command_buffers {
            // SAFETY: a command buffer that is being submitted is not being recorded.
            let Some(state) = (unsafe { command_buffers::state(handle) }) else {
                continue;
            };
            self.skip_times(state);
        }
    }

    /// Notes that the queries of the next execution will hold the times of no instance.
    fn skip_times(self, state: &CommandBuffer) {
        if let Some(timing) = &state.timing {
            if !state.simultaneous {
                self.make_ready(timing);
            }
            timing.start_unrecorded(state.simultaneous);
        }
    }

    /// Returns the reason why an instance has no times: its queue has no timestamps, or there were no queries.
    fn untimed(self) -> Outcome {
        match self.device.families.get(self.queue.family) {
            Some(family) if family.timestamp_bits == 0 => Outcome::NoTimestamps,
            _ => Outcome::NoQueries,
        }
    }

    /// Prepares the queries of a command recording for its next execution; collects the results of an earlier one
    /// first.
    fn make_ready(self, timing: &Arc<Timing>) {
        // The command buffer has one reference; another one is an earlier instance that has not been collected.
        if Arc::strong_count(timing) > 1 {
            self.device.harvester.settle(timing);
        }
        for child in &timing.children {
            if Arc::strong_count(child) > 2 {
                self.device.harvester.settle(child);
            }
        }
        // SAFETY: the earlier instance has been collected, and the program may submit a recording that is not for
        // simultaneous use only when it is not pending.
        unsafe { timing.prepare() };
    }

    /// Returns the semaphores that a batch signals, with their values, and notes the values that they will reach. The call comes after
    /// this, as another thread may wait for them already.
    pub fn signals(
        self,
        semaphores: impl Iterator<Item = (vk::Semaphore, u64)>,
        submitted: Submitted,
    ) -> Semaphores {
        let known = &self.device.semaphores;
        semaphores
            .inspect(|(handle, value)| known.will_reach(*handle, *value, submitted))
            .filter_map(|(handle, value)| known.with_value(handle, value))
            .collect()
    }

    /// Returns the semaphores that a batch waits for, with their values; unknown semaphores are left out, and those
    /// that had their value from the start.
    pub fn waits(self, semaphores: impl Iterator<Item = (vk::Semaphore, u64)>) -> Semaphores {
        semaphores
            .filter_map(|(handle, value)| self.device.semaphores.waited(handle, value))
            .collect()
    }

    /// Writes the host call and, if it succeeded, the events of a submission, and hands its instances to the
    /// harvester, which collects their times. A refused submission gives its brackets back. The fence stands for the last batch, or
    /// without batches for what was submitted before.
    pub fn finish(
        self,
        batches: Batches,
        timer: HostCallTimer,
        (function, fence): (SubmitFunction, vk::Fence),
        result: vk::Result,
    ) {
        let (device, queue) = (self.device, self.queue.id);
        let (Some(start_ns), recorder) = (timer.start_ns(), device.recorder) else {
            return;
        };
        let span = Span::between(start_ns, monotonic_ns());
        timer.finish_submission(function, result, queue);
        if result != vk::Result::SUCCESS {
            // A refused submission does not run, so its brackets are idle again.
            for pending in batches.into_iter().flat_map(|b| b.pending) {
                if let TimeSource::Around(bracket, inside) = pending.times {
                    if let Some(inside) = inside {
                        inside.end_overlapping(&mut Vec::new(), &mut |_, _, _| {});
                    }
                    device.brackets.give_back(bracket);
                }
            }
            device.note_result(result);
            return;
        }
        if let Some(last) = batches.last() {
            self.queue.submitted(last.submitted.submission);
        }
        if fence != vk::Fence::null() {
            match self.queue.last() {
                Some(last) => device.fences.submitted(fence, last),
                None => device.fences.forget(fence),
            }
        }
        for batch in batches {
            recorder.write(&VulkanEvent::Submit {
                submission: batch.submitted.submission,
                function,
                queue,
                span,
                instances: Cow::Borrowed(&batch.instances),
                waits: Cow::Borrowed(&batch.waits),
                signals: Cow::Borrowed(&batch.signals),
            });
            if !batch.pending.is_empty() {
                device.harvester.add(queue, batch.pending.into_iter());
            }
        }
        stacks::submitted(recorder.spool(), span);
    }
}
