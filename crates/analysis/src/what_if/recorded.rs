//! Turns a part of a timeline into moments in the order in which they were recorded, each with what it had to wait for and by how
//! much it came later: the [`Recorded`] run that `replay.rs` runs again.
//!
//! | a moment comes not before | by how much later |
//! |---|---|
//! | a call: the end of the call before it on its thread | the host's own time between them |
//! | the return of a wait: the end of the work that it waited for | the time to wake up |
//! | the first work of a submission: the moment of its submission | the launch latency |
//! | work: the end of the work before it on its queue, also where the work starts shortly before that end; where both ran at once for longer, that work's start | the gap of the queue, which may be negative |
//! | the first work of a submission: the ends of the submissions that it depends on | the handover |
//! | the end of a kernel that is a rank's part in a collective: the last arrival of a rank | the collective's own time |
//!
//! Of several things that a piece of work waited for, the one that was ready last held it and takes the recorded delay. The
//! others take the least delay that is usual ([`LEAST_PERCENTILE`]), since they were ready for an unknown time.

mod arms;
mod awaited;
mod gathered;
mod hand_overs;
mod polls;

use super::rank_part::RankPart;
use crate::gaps::GapFinder;
use arms::Sources;
use gapscope_timeline::host::{CallClass, HostThread};
use gapscope_timeline::intervals::Interval;
use gapscope_trace::lookup::NONE;
use gapscope_trace::tables::{HostCallKind, TransferKind};
use gathered::Gathered;
use rustc_hash::{FxHashMap, FxHashSet};

/// The percentile of delays that counts as the least usual one.
const LEAST_PERCENTILE: usize = 10;
/// A wait may return so long before the end of its work, by the clocks of host and device.
const EARLY_RETURN_NS: i64 = 100_000;
/// A wait that is held by work takes at most so long itself.
const OWN_TIME_OF_WAIT_NS: i64 = 2_000;

/// A part of a run as moments in their recorded order.
#[derive(Debug, Default)]
pub(super) struct Recorded {
    pub(super) window: Interval,
    /// The end of what is replayed: the last end of work and of calls of threads that submit.
    pub(super) end_ns: i64,
    pub(super) moments: Vec<Moment>,
    pub(super) threads: Vec<HostThread>,
    /// For each thread, true where it submits work.
    pub(super) submits: Vec<bool>,
    pub(super) queue_count: usize,
    /// The number of submissions; each has a slot from 0 on.
    pub(super) slot_count: usize,
    /// The lists of slots that waits and work refer to.
    pub(super) slots: Vec<u32>,
    pub(super) usual: UsualDelays,
    pub(super) facts: Facts,
}

/// Numbers that say how far the replay can be believed.
#[derive(Debug, Clone, Copy, Default)]
pub(super) struct Facts {
    /// The waits, dependencies and orders of queues that the trace has.
    pub(super) recorded: u64,
    /// The waits whose work is told by times alone, and hand-overs between threads.
    pub(super) guessed: u64,
    /// The time of waits of which not even times tell the work.
    pub(super) unknown_wait_ns: i64,
    /// The time in which the host may have waited for the device without a call.
    pub(super) polled_ns: i64,
    /// The time of long calls that take images from the display, or give them back.
    pub(super) display_ns: i64,
    /// The time in which queues were idle for no reason in the trace.
    pub(super) unexplained_ns: i64,
    pub(super) hand_overs: u64,
    /// Those hand-overs of which only times tell, and no samples of the thread that waited.
    pub(super) guessed_hand_overs: u64,
    /// The time in which kernels ran beside each other on one device.
    pub(super) overlapped_ns: i64,
    pub(super) kernel_ns: i64,
    /// The time in communication between devices whose end the replay does not know.
    pub(super) communication_ns: i64,
    pub(super) untimed_submissions: u64,
    /// The time of long calls that hand over work, or allocate and free memory: they may have waited for the device.
    pub(super) blocked_ns: i64,
    /// True where only the first part of the run is replayed.
    pub(super) is_cut: bool,
}

/// The usual delays of a run, with which a replay of pooled delays tests the graph.
#[derive(Debug, Clone, Default)]
pub(super) struct UsualDelays {
    /// By arm, for work that the arm held.
    pub(super) arms: [i64; Arm::COUNT],
    /// By the kind of call.
    pub(super) wake: FxHashMap<HostCallKind, i64>,
}

/// Something at which the run goes on.
#[derive(Debug, Clone, Copy)]
pub(super) struct Moment {
    pub(super) at_ns: i64,
    pub(super) kind: Kind,
}

#[derive(Debug, Clone, Copy)]
pub(super) enum Kind {
    /// The return of a call that waited for work.
    Return(Return),
    /// The start of a call, or of a part of one.
    Call(Call),
    /// A submission in a call.
    Submission(Submission),
    /// A piece of work.
    Work(WorkMoment),
    /// The end of a rank's part in a collective, placed where the last rank arrived.
    Leave(Leave),
}

impl Kind {
    /// Returns the order of moments at one time: a call goes on from a return, a submission is in a call, and work follows its
    /// submission; a rank leaves a collective after it arrived.
    fn rank(&self) -> u8 {
        match self {
            Kind::Return(_) => 0,
            Kind::Call(_) => 1,
            Kind::Submission(_) => 2,
            Kind::Work(_) => 3,
            Kind::Leave(_) => 4,
        }
    }
}

#[derive(Debug, Clone, Copy)]
pub(super) struct Call {
    pub(super) thread: u32,
    /// The time from the call before it, in which the thread ran code of its own.
    pub(super) own_ns: i64,
    /// How long the call takes; of a call that waited, without the wait.
    pub(super) length_ns: i64,
    /// The index of the function's name, or [`NONE`](gapscope_trace::lookup::NONE).
    pub(super) function: u32,
    pub(super) call: HostCallKind,
    pub(super) class: CallClass,
    /// The thread whose last call had to end first, where a hand-over was found; else [`NONE`](gapscope_trace::lookup::NONE).
    pub(super) handed_by: u32,
    /// The time from the end of that call.
    pub(super) handed_ns: i64,
    /// True where samples show that the thread waited for another one.
    pub(super) handed_is_seen: bool,
}

#[derive(Debug, Clone, Copy)]
pub(super) struct Return {
    pub(super) thread: u32,
    /// The index of the queue that the call names, or [`NONE`](gapscope_trace::lookup::NONE).
    pub(super) queue: u32,
    /// The slot of the submission that the call waited for, where the trace names it, or [`NONE`](gapscope_trace::lookup::NONE).
    pub(super) names: u32,
    pub(super) call: HostCallKind,
    /// The least time from the end of the work to the return.
    pub(super) wake_ns: i64,
    /// True where the work ended after the call began, or so shortly before that its end may have held the call.
    pub(super) held: bool,
    /// True where times alone tell what was waited for.
    pub(super) guessed: bool,
    /// The recorded length of the whole wait.
    pub(super) length_ns: i64,
    /// The slots that were waited for, in [`Recorded::slots`].
    pub(super) slots: Slots,
}

impl Return {
    /// Returns true for waits that work held and that only wait: a copy is needed, and a full queue no choice.
    pub(super) fn can_be_left_out(&self) -> bool {
        let only_waits = !matches!(
            self.call,
            HostCallKind::CopyAndWait | HostCallKind::QueueFull
        );
        self.held && only_waits
    }
}

#[derive(Debug, Clone, Copy)]
pub(super) struct Submission {
    pub(super) slot: u32,
    /// The index of the thread, or [`NONE`](gapscope_trace::lookup::NONE) where the trace does not name it.
    pub(super) thread: u32,
    /// How long after the start of the thread's call, or after its end where the submission is in none.
    pub(super) offset_ns: i64,
    pub(super) is_in_call: bool,
}

#[derive(Debug, Clone, Copy)]
pub(super) struct WorkMoment {
    pub(super) queue: u32,
    /// The slot of its submission, or [`NONE`](gapscope_trace::lookup::NONE) for one before the replayed part.
    pub(super) slot: u32,
    pub(super) length_ns: i64,
    pub(super) content: Work,
    /// The row of its label, or [`NONE`](gapscope_trace::lookup::NONE).
    pub(super) label: u32,
    pub(super) is_first: bool,
    /// True where the work before it on the queue had not nearly ended.
    pub(super) overlaps: bool,
    /// The delays by [`Arm`]; `None` for what it did not wait for.
    pub(super) delays: [Option<i64>; Arm::COUNT],
    /// The arm that held it.
    pub(super) held_by: Option<Arm>,
    /// The slots on which its submission depends.
    pub(super) depends_on: Slots,
    /// The collective that it is a rank's part of, which ends at a moment of its own; or [`NONE`](gapscope_trace::lookup::NONE).
    pub(super) collective: u32,
}

#[derive(Debug, Clone, Copy)]
pub(super) struct Leave {
    pub(super) collective: u32,
    /// The place of the moment at which the rank arrived.
    pub(super) arrived: u32,
}

/// What a piece of work is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Work {
    /// A kernel by the row in the table of kernels, or [`NONE`](gapscope_trace::lookup::NONE).
    Kernel(u32),
    Transfer(TransferKind),
    /// Work that is timed as a whole.
    Opaque,
}

/// Something that holds a piece of work.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Arm {
    Queue,
    Submission,
    Dependency,
}

impl Arm {
    pub(super) const COUNT: usize = 3;
    pub(super) const ALL: [Arm; Arm::COUNT] = [Arm::Queue, Arm::Submission, Arm::Dependency];
}

/// A part of [`Recorded::slots`].
#[derive(Debug, Clone, Copy, Default)]
pub(super) struct Slots {
    first: u32,
    count: u32,
}

impl Slots {
    pub(super) fn is_empty(self) -> bool {
        self.count == 0
    }
}

impl Recorded {
    /// Lays out what lies in a window, of a long one so much from its start that it has about `most_moments`. `parts` are the kernels that
    /// end when all ranks let them.
    pub(super) fn new(
        finder: &GapFinder,
        window: Interval,
        most_moments: usize,
        parts: &[RankPart],
    ) -> Recorded {
        let timeline = finder.timeline();
        let Gathered {
            mut recorded,
            slot_rows,
            slot_of_row,
        } = Gathered::new(timeline, window, most_moments, parts);
        hand_overs::find(&mut recorded, finder);
        recorded.facts.polled_ns = polls::polled_ns(&recorded);
        recorded.facts.display_ns = polls::display_ns(&recorded);
        let order = finder.explainer.order();
        let sources = Sources::new(timeline, order, &slot_rows, &slot_of_row);
        arms::add(&mut recorded, &sources);
        recorded.end_ns = recorded.last_end_ns();
        recorded
    }

    /// Returns the length of what is replayed.
    pub(super) fn length_ns(&self) -> i64 {
        self.end_ns.saturating_sub(self.window.start_ns)
    }

    pub(super) fn slots(&self, slots: Slots) -> &[u32] {
        &self.slots[slots.first as usize..][..slots.count as usize]
    }

    /// Adds a list of slots.
    fn push_slots(&mut self, slots: &[u32]) -> Slots {
        let first = self.slots.len() as u32;
        self.slots.extend_from_slice(slots);
        Slots {
            first,
            count: slots.len() as u32,
        }
    }

    /// Returns the last end of work and of calls of threads that submit.
    fn last_end_ns(&self) -> i64 {
        let ending = (self.moments.iter()).filter(|moment| self.ends_run(&moment.kind));
        let ends = ending.map(|moment| match &moment.kind {
            Kind::Work(work) => moment.at_ns.saturating_add(work.length_ns),
            Kind::Call(call) => moment.at_ns.saturating_add(call.length_ns),
            Kind::Return(_) | Kind::Submission(_) | Kind::Leave(_) => moment.at_ns,
        });
        ends.max().unwrap_or(self.window.start_ns)
    }

    /// Returns true for moments that may be the last of the run: work, and calls of threads that submit.
    pub(super) fn ends_run(&self, kind: &Kind) -> bool {
        match kind {
            Kind::Work(_) | Kind::Leave(_) => true,
            Kind::Call(Call { thread, .. }) | Kind::Return(Return { thread, .. }) => {
                self.submits[*thread as usize]
            }
            Kind::Submission(_) => false,
        }
    }
}

impl Recorded {
    /// Returns the pieces of work, in order.
    pub(super) fn works(&self) -> impl Iterator<Item = &WorkMoment> {
        self.moments.iter().filter_map(|moment| match &moment.kind {
            Kind::Work(work) => Some(work),
            _ => None,
        })
    }

    /// Returns the calls, in order.
    pub(super) fn calls(&self) -> impl Iterator<Item = &Call> {
        self.moments.iter().filter_map(|moment| match &moment.kind {
            Kind::Call(call) => Some(call),
            _ => None,
        })
    }

    /// Returns the slots of the submissions that only transfer, in one of the ways that `is_one` says, in order.
    pub(super) fn transfers(&self, is_one: impl Fn(TransferKind) -> bool) -> Vec<u32> {
        let mut only: Vec<Option<bool>> = vec![None; self.slot_count];
        let mut order = Vec::new();
        for work in self.works() {
            let Some(only) = only.get_mut(work.slot as usize) else {
                continue;
            };
            let is_one = matches!(work.content, Work::Transfer(kind) if is_one(kind));
            if only.is_none() && is_one {
                order.push(work.slot);
            }
            *only = Some(only.unwrap_or(true) && is_one);
        }
        order.retain(|slot| only[*slot as usize] == Some(true));
        order
    }

    /// Returns the places of the moments of submissions: their calls, the waits in these, and their work. `slots` are the
    /// submissions, of which `is_meant` chooses by their number, from 1 on.
    pub(super) fn with_calls(
        &self,
        slots: &[u32],
        is_meant: impl Fn(u64) -> bool,
    ) -> FxHashSet<u32> {
        let numbered = slots.iter().zip(1..);
        let meant: FxHashSet<u32> = numbered
            .filter(|(_, number)| is_meant(*number))
            .map(|(slot, _)| *slot)
            .collect();
        let mut places = FxHashSet::default();
        // The place of each thread's last call, and whether that call is meant.
        let mut calls = vec![(NONE, false); self.threads.len()];
        for (moment, at) in self.moments.iter().zip(0u32..) {
            match &moment.kind {
                Kind::Call(call) => calls[call.thread as usize] = (at, false),
                Kind::Submission(submission) if submission.is_in_call => {
                    if let Some((call, is_meant)) = calls.get_mut(submission.thread as usize)
                        && meant.contains(&submission.slot)
                    {
                        *is_meant = true;
                        places.insert(*call);
                    }
                }
                Kind::Return(wait) if calls[wait.thread as usize].1 => {
                    places.insert(at);
                }
                Kind::Work(work) if meant.contains(&work.slot) => {
                    places.insert(at);
                }
                _ => {}
            }
        }
        places
    }

    /// Returns the number of waits that work held and that a program can leave out.
    pub(super) fn held_waits(&self) -> u64 {
        let held =
            |moment: &&Moment| matches!(&moment.kind, Kind::Return(wait) if wait.can_be_left_out());
        self.moments.iter().filter(held).count() as u64
    }

    /// Returns for each thread whether it submits work, or makes waits of which one `counts`.
    fn submits_or_waits(&self, counts: impl Fn(&Return) -> bool) -> Vec<bool> {
        let mut works = self.submits.clone();
        for moment in &self.moments {
            if let Kind::Return(wait) = &moment.kind {
                works[wait.thread as usize] |= counts(wait);
            }
        }
        works
    }

    /// Returns the number of threads that submit, or wait for work, in the process with the most of them.
    pub(super) fn threads_at_work(&self) -> usize {
        let works = self.submits_or_waits(|wait| wait.held);
        let mut by_process: FxHashMap<_, usize> = FxHashMap::default();
        for (thread, _) in self.threads.iter().zip(works).filter(|(_, works)| *works) {
            *by_process.entry(thread.process).or_default() += 1;
        }
        by_process.into_values().max().unwrap_or(0)
    }
}
