//! Gathers the moments of a part of a timeline, in the order of time: a timeline goes in with a window, and the calls, submissions and
//! pieces of work there come out, as yet without what they waited for.

use super::{
    Arm, Call, Kind, Leave, Moment, RankPart, Recorded, Return, Slots, Submission, Work, WorkMoment,
};
use gapscope_timeline::host::{CallClass, HostThread, Segment};
use gapscope_timeline::intervals::Interval;
use gapscope_timeline::{Content, Timeline, WorkKind};
use gapscope_trace::lookup::NONE;
use gapscope_trace::tables::{HostCallKind, Table};
use rustc_hash::FxHashMap;
use std::collections::BinaryHeap;

/// A call that hands over work, or allocates memory, and takes longer may have waited for the device.
const LONG_CALL_NS: i64 = 50_000;

/// The moments of a window, with the rows of their submissions.
pub(super) struct Gathered {
    pub(super) recorded: Recorded,
    /// The row of each slot's submission.
    pub(super) slot_rows: Vec<u32>,
    /// The slot of each submission's row.
    pub(super) slot_of_row: FxHashMap<u32, u32>,
}

impl Gathered {
    pub(super) fn new(
        timeline: &Timeline,
        window: Interval,
        most_moments: usize,
        parts: &[RankPart],
    ) -> Gathered {
        let mut builder = Builder::new(timeline, window);
        let parts = parts.iter();
        let parts = parts.map(|part| {
            let queue = timeline.queue_ids.row(part.queue);
            ((queue, part.interval), *part)
        });
        builder.parts = parts.collect();
        builder.cut(most_moments);
        builder.add_submissions();
        builder.add_calls();
        builder.add_work();
        builder.sort();
        Gathered {
            recorded: builder.recorded,
            slot_rows: builder.slot_rows,
            slot_of_row: builder.slot_of_row,
        }
    }
}

/// Gathers the moments of a window.
struct Builder<'a> {
    timeline: &'a Timeline<'a>,
    recorded: Recorded,
    /// The row of each slot's submission.
    slot_rows: Vec<u32>,
    /// The slot of each submission's row.
    slot_of_row: FxHashMap<u32, u32>,
    thread_indices: FxHashMap<HostThread, u32>,
    /// The kernels that are parts in collectives, by the index of the queue and their time.
    parts: FxHashMap<(u32, Interval), RankPart>,
}

impl<'a> Builder<'a> {
    fn new(timeline: &'a Timeline<'a>, window: Interval) -> Builder<'a> {
        let recorded = Recorded {
            window,
            queue_count: timeline.queues.len(),
            ..Recorded::default()
        };
        Builder {
            timeline,
            recorded,
            slot_rows: Vec::new(),
            slot_of_row: FxHashMap::default(),
            thread_indices: FxHashMap::default(),
            parts: FxHashMap::default(),
        }
    }

    /// Shortens the window until it has about so many moments at most.
    fn cut(&mut self, most_moments: usize) {
        let window = self.recorded.window;
        let submissions = &self.timeline.trace.tables.submissions;
        // A submission comes with its work, a call and often a wait.
        let most = most_moments / 4;
        // The first starts, and the one after them, which ends the window.
        let mut first = BinaryHeap::new();
        for at_ns in submissions.start_ns.iter().copied() {
            let is_late = first.len() > most && first.peek().is_some_and(|last| at_ns >= *last);
            if window.contains(at_ns) && !is_late {
                first.push(at_ns);
                if first.len() > most + 1 {
                    first.pop();
                }
            }
        }
        if let Some(end_ns) = first.pop().filter(|_| first.len() == most) {
            self.recorded.window.end_ns = end_ns;
            self.recorded.facts.is_cut = true;
        }
    }

    fn thread(&mut self, thread: HostThread) -> u32 {
        let threads = &mut self.recorded.threads;
        let submits = &mut self.recorded.submits;
        *self.thread_indices.entry(thread).or_insert_with(|| {
            threads.push(thread);
            submits.push(false);
            threads.len() as u32 - 1
        })
    }

    fn push(&mut self, at_ns: i64, kind: Kind) {
        self.recorded.moments.push(Moment { at_ns, kind });
    }

    fn add_submissions(&mut self) {
        let table = &self.timeline.trace.tables.submissions;
        for row in 0..table.len() {
            let at_ns = table.start_ns[row];
            if !self.recorded.window.contains(at_ns) {
                continue;
            }
            let slot = self.slot_rows.len() as u32;
            self.slot_rows.push(row as u32);
            self.slot_of_row.insert(row as u32, slot);
            let thread = HostThread::from_row(table.process[row], table.thread.at(row));
            let thread = thread.map_or(NONE, |thread| self.thread(thread));
            if let Some(submits) = self.recorded.submits.get_mut(thread as usize) {
                *submits = true;
            }
            let submission = Submission {
                slot,
                thread,
                offset_ns: 0,
                is_in_call: false,
            };
            self.push(at_ns, Kind::Submission(submission));
        }
        self.recorded.slot_count = self.slot_rows.len();
    }

    /// Adds the calls of all threads of the processes that submit.
    fn add_calls(&mut self) {
        let window = self.recorded.window;
        let timeline = self.timeline;
        let processes: Vec<_> = {
            let threads = self.recorded.threads.iter();
            threads.map(|thread| thread.process).collect()
        };
        let targets = self.targets_of_waits();
        let mut before: Option<(HostThread, i64)> = None;
        let mut wait_since: Option<i64> = None;
        // A call that ends as the window begins sets when its thread went on.
        let around = Interval::new(window.start_ns.saturating_sub(1), window.end_ns);
        for (thread, segment) in timeline.host_threads().segments_within(around) {
            let Interval { start_ns, end_ns } = segment.interval;
            if !processes.contains(&thread.process) {
                continue;
            }
            let start_ns = start_ns.max(window.start_ns);
            let since_ns = match before {
                Some((same, end_ns)) if same == thread => end_ns,
                _ => {
                    wait_since = None;
                    window.start_ns
                }
            };
            before = Some((thread, end_ns));
            let waits = is_wait(&segment);
            let called = (thread, segment.since_ns);
            let thread = self.thread(thread);
            let continues = segment.continues_wait && wait_since.is_some();
            if !continues {
                wait_since = waits.then_some(start_ns);
                let call = Call {
                    thread,
                    own_ns: start_ns - since_ns,
                    length_ns: end_ns - start_ns,
                    function: segment.function,
                    call: segment.call,
                    class: segment.class(),
                    handed_by: NONE,
                    handed_ns: 0,
                    handed_is_seen: false,
                };
                let may_block = matches!(call.class, CallClass::Submit | CallClass::Allocate);
                if may_block && !waits && call.length_ns > LONG_CALL_NS {
                    let blocked_ns = &mut self.recorded.facts.blocked_ns;
                    *blocked_ns = blocked_ns.saturating_add(call.length_ns);
                }
                self.push(start_ns, Kind::Call(call));
            }
            if waits && segment.is_last {
                let own = (called.0, segment.interval.start_ns);
                let target = targets.get(&own).or_else(|| targets.get(&called));
                let (queue, names) = target.copied().unwrap_or((NONE, NONE));
                let wait = Return {
                    thread,
                    queue,
                    names,
                    call: segment.call,
                    wake_ns: 0,
                    held: false,
                    guessed: false,
                    length_ns: end_ns - wait_since.unwrap_or(start_ns),
                    slots: Slots::default(),
                };
                self.push(end_ns, Kind::Return(wait));
            }
        }
    }

    fn add_work(&mut self) {
        let timeline = self.timeline;
        let window = self.recorded.window;
        let tables = &timeline.trace.tables;
        let mut last_row = NONE;
        let mut slot = NONE;
        for gpu in &timeline.gpus {
            let mut busy_until_ns = i64::MIN;
            for work in &gpu.works {
                if work.interval.start_ns < window.start_ns {
                    continue;
                }
                let row = timeline.submission_of(&work);
                if row != last_row {
                    slot = self.slot_of_row.get(&row).copied().unwrap_or(NONE);
                    last_row = row;
                }
                // What was submitted in the window belongs to the run, however late the device comes to it.
                if slot == NONE && work.interval.start_ns >= window.end_ns {
                    continue;
                }
                let content = match work.kind() {
                    WorkKind::Dispatch => Work::Kernel(timeline.dispatches.kernels.at(work.row())),
                    WorkKind::Transfer => Work::Transfer(tables.transfers.kind[work.row()]),
                    _ => Work::Opaque,
                };
                let length_ns = work.interval.length_ns();
                let facts = &mut self.recorded.facts;
                if let Work::Kernel(_) = content {
                    facts.kernel_ns = facts.kernel_ns.saturating_add(length_ns);
                    let beside_ns = busy_until_ns.min(work.interval.end_ns);
                    facts.overlapped_ns = facts
                        .overlapped_ns
                        .saturating_add(beside_ns.saturating_sub(work.interval.start_ns).max(0));
                    busy_until_ns = busy_until_ns.max(work.interval.end_ns);
                }
                let queue = timeline.queue_of(&work);
                let part = self.parts.get(&(queue, work.interval)).copied();
                if part.is_none() && timeline.content(&work) == Content::Communication {
                    facts.communication_ns = facts.communication_ns.saturating_add(length_ns);
                }
                let moment = WorkMoment {
                    queue,
                    slot,
                    length_ns,
                    content,
                    label: timeline.label_row_of(&work),
                    is_first: false,
                    overlaps: false,
                    delays: [None; Arm::COUNT],
                    held_by: None,
                    depends_on: Slots::default(),
                    collective: part.map_or(NONE, |part| part.collective),
                };
                self.push(work.interval.start_ns, Kind::Work(moment));
                if let Some(RankPart {
                    collective,
                    last_ns,
                    interval,
                    ..
                }) = part
                {
                    // By clocks that differ, the last rank may arrive after this one left.
                    let at_ns = last_ns.min(interval.end_ns).max(interval.start_ns);
                    let leave = Leave {
                        collective,
                        arrived: NONE,
                    };
                    self.push(at_ns, Kind::Leave(leave));
                }
            }
        }
    }

    /// Returns the index of the queue and the slot that each wait names, by thread and start of the call.
    fn targets_of_waits(&self) -> FxHashMap<(HostThread, i64), (u32, u32)> {
        let timeline = self.timeline;
        let table = &timeline.trace.tables.host_calls;
        let window = self.recorded.window;
        let is_inside = |row: &usize| {
            let end_ns = table.start_ns[*row].saturating_add(table.duration_ns[*row]);
            table.start_ns[*row] < window.end_ns && end_ns >= window.start_ns
        };
        let rows = (0..table.len()).filter(|row| table.call[*row].is_wait());
        let rows = rows.filter(is_inside);
        rows.filter_map(|row| {
            let thread = HostThread::from_row(table.process[row], table.thread.at(row))?;
            let queue = table.queue.at(row);
            let queue = queue.map_or(NONE, |id| timeline.queue_ids.row(id));
            let named = table.waits_for.at(row);
            let named = named.map_or(NONE, |id| timeline.submission_ids.row(id));
            let slot = self.slot_of_row.get(&named).copied().unwrap_or(NONE);
            Some(((thread, table.start_ns[row]), (queue, slot)))
        })
        .collect()
    }

    /// Brings the moments into their order. Those of one thread or queue at one time keep theirs.
    fn sort(&mut self) {
        self.recorded
            .moments
            .sort_by_key(|moment| (moment.at_ns, moment.kind.rank()));
        let mut arrived: FxHashMap<u32, u32> = FxHashMap::default();
        for (moment, at) in self.recorded.moments.iter_mut().zip(0..) {
            match &mut moment.kind {
                Kind::Work(work) if work.collective != NONE => {
                    arrived.insert(work.collective, at);
                }
                Kind::Leave(leave) => {
                    leave.arrived = arrived.get(&leave.collective).copied().unwrap_or(NONE);
                }
                _ => {}
            }
        }
    }
}

/// Returns true for calls that return only when work has ended.
fn is_wait(segment: &Segment) -> bool {
    segment.waits || segment.call == HostCallKind::QueueFull
}
