//! Takes away the times of a file that cannot be true: those of 0, which stand for unknown times, those before the clock began, those that
//! end before they start, those that contradict other work of their queue (`queues.rs`), and those of work that ends after the recording
//! did. What a file has more than once counts once (`repeated.rs`). Rows of a [`Profile`] go in. Work
//! stays without times, and everything else is dropped and counted as a loss.

pub(crate) mod queues;
mod repeated;

use crate::profile::{Correlation, DeviceWork, DeviceWorkKind, Profile, Span};
use crate::since_1970::checked;
use gapscope_model::{LossKind, SubmissionKind};
use gapscope_trace::ids::{ProcessId, QueueId};
use gapscope_trace::manifest::Api;
use queues::{Doubts, TimedWork};
use rustc_hash::{FxHashMap, FxHashSet};

/// A start of 0 is unknown where all other times of a file are further from 0 than this, and than the file is long:
/// clocks of files that count from their own beginning do not wait so long for the first event.
const FAR_FROM_ZERO_NS: i64 = 1_000_000_000;

/// By how much work may end after later work of its stream: what profilers round.
pub(crate) const ROUNDING_NS: i64 = 2_000;

/// By how much work may end after the recording: profilers stop the host's clock and the device's one after the other.
const AFTER_END_NS: i64 = 1_000_000;

/// The reason of losses of what has the time 0.
pub(crate) const AT_ZERO: &str = "the file has the time 0 for them";

/// The reason of losses of what has a time before 0.
const BEFORE_ZERO: &str = "the file has times before 0 for them";

/// The reason of losses of work without times.
pub(crate) const IMPOSSIBLE: &str =
    "the file has the time 0 for them, or times that are impossible";

/// The starts of a file, by which 0 is a time or stands for an unknown one.
#[derive(Debug, Default, Clone, Copy)]
pub(crate) struct Starts {
    /// The first and the last start other than 0, from the time at which the file's clock is 0.
    other_ns: Option<(i64, i64)>,
    has_zeros: bool,
    /// The number of starts before 0, and of those after it.
    before_zero: u64,
    after_zero: u64,
}

impl Starts {
    /// Adds a start, from the time at which the file's clock is 0.
    pub fn add(&mut self, start_ns: i64) {
        if start_ns == 0 {
            self.has_zeros = true;
            return;
        }
        match start_ns < 0 {
            true => self.before_zero += 1,
            false => self.after_zero += 1,
        }
        let (first_ns, last_ns) = self.other_ns.unwrap_or((start_ns, start_ns));
        self.other_ns = Some((first_ns.min(start_ns), last_ns.max(start_ns)));
    }

    /// Returns whether 0 stands for an unknown time: all other starts are far from it.
    pub fn zero_is_unknown(&self) -> bool {
        self.has_zeros
            && self.other_ns.is_some_and(|(first_ns, last_ns)| {
                first_ns >= FAR_FROM_ZERO_NS.max(last_ns.saturating_sub(first_ns))
            })
    }
}

impl Starts {
    /// Returns whether times before 0 are impossible: a clock counts from its beginning, unless most of the file is before 0, as where times
    /// count from a moment that somebody chose.
    pub fn negative_is_impossible(&self) -> bool {
        (1..self.after_zero).contains(&self.before_zero)
    }
}

impl Profile {
    /// Takes all times away that cannot be true.
    pub(super) fn doubt_times(&mut self) {
        let mut works = std::mem::take(&mut self.recorded.work);
        self.forget_zero_times(&mut works, |(_, _, work)| work, true);
        self.recorded.work = works;
        self.refuse_impossible();
        self.drop_repeated();
        self.doubt_queues();
        self.doubt_late_ends();
    }

    /// Takes the times of 0 away from work, and drops what else has them, where 0 stands for an unknown time: all other
    /// times of the file are far from 0. Does the same with times before 0 where most are after it and `clock_begins` says that the
    /// file's clock begins there. `work_of` returns the work of an element.
    pub(crate) fn forget_zero_times<W>(
        &mut self,
        works: &mut [W],
        work_of: impl Fn(&mut W) -> &mut DeviceWork,
        clock_begins: bool,
    ) {
        let zero_ns = self.times.zero_ns;
        let recorded = &mut self.recorded;
        let mut starts = Starts::default();
        let mut look = |start_ns: i64| starts.add(start_ns.saturating_sub(zero_ns));
        for work in works.iter_mut() {
            let Some(span) = &mut work_of(work).span else {
                continue;
            };
            look(span.start_ns);
        }
        (recorded.calls.iter()).for_each(|(_, call)| look(call.span.start_ns));
        (recorded.ranges.iter()).for_each(|range| look(range.start_ns));
        (recorded.overheads.iter()).for_each(|(_, overhead)| look(overhead.span.start_ns));
        self.memory.iter().for_each(|row| look(row.at_ns));
        if starts.zero_is_unknown() {
            self.forget_starts(works, &work_of, AT_ZERO, |start_ns| start_ns == zero_ns);
        } else if starts.has_zeros {
            // No work takes no time: tracing libraries write twice 0 where they do not know the times.
            let nothing = |span: Span| span.start_ns == zero_ns && span.duration_ns == 0;
            for work in works.iter_mut() {
                let work = work_of(work);
                work.span = work.span.filter(|span| !nothing(*span));
            }
        }
        if clock_begins && starts.negative_is_impossible() {
            self.forget_starts(works, &work_of, BEFORE_ZERO, |start_ns| start_ns < zero_ns);
        }
    }

    /// Takes times with such a start away from work, and drops what else has them.
    fn forget_starts<W>(
        &mut self,
        works: &mut [W],
        work_of: &impl Fn(&mut W) -> &mut DeviceWork,
        reason: &'static str,
        is_unknown: impl Fn(i64) -> bool,
    ) {
        for work in works {
            let work = work_of(work);
            work.span = work.span.filter(|span| !is_unknown(span.start_ns));
        }
        let mut lose = |kind: LossKind, before: usize, after: usize| {
            let count = before.saturating_sub(after) as u64;
            self.inventory.lose(kind, count, reason);
        };
        let recorded = &mut self.recorded;
        let before = recorded.calls.len();
        (recorded.calls).retain(|(_, call)| !is_unknown(call.span.start_ns));
        lose(LossKind::HostCalls, before, recorded.calls.len());
        let before = recorded.ranges.len();
        recorded.ranges.retain(|range| !is_unknown(range.start_ns));
        lose(LossKind::Labels, before, recorded.ranges.len());
        let before = recorded.overheads.len();
        (recorded.overheads).retain(|(_, overhead)| !is_unknown(overhead.span.start_ns));
        lose(LossKind::Overheads, before, recorded.overheads.len());
        let before = self.memory.len();
        self.memory.retain(|row| !is_unknown(row.at_ns));
        lose(LossKind::MemoryEvents, before, self.memory.len());
    }

    /// Takes impossible times away from work, and drops calls and labels that have such times.
    fn refuse_impossible(&mut self) {
        let recorded = &mut self.recorded;
        let is_sane = |span: &Span| checked(span.start_ns, span.end_ns()).is_some();
        for (_, _, work) in &mut recorded.work {
            work.span = work.span.filter(is_sane);
        }
        let reason = "their times are impossible";
        let before = recorded.calls.len();
        recorded.calls.retain(|(_, call)| is_sane(&call.span));
        let refused = before.saturating_sub(recorded.calls.len());
        self.inventory
            .lose(LossKind::HostCalls, refused as u64, reason);
        let before = recorded.ranges.len();
        recorded.ranges.retain(|range| {
            let end_ns = range.end_ns.unwrap_or(range.start_ns);
            checked(range.start_ns, end_ns).is_some()
        });
        let refused = before.saturating_sub(recorded.ranges.len());
        self.inventory
            .lose(LossKind::Labels, refused as u64, reason);
    }

    /// Takes the times away that contradict those of other work of the same queue.
    fn doubt_queues(&mut self) {
        let are_streams = self.times.streams_are_queues;
        let mut doubts = Doubts::default();
        for (api, works) in self.works_of_queues().into_values() {
            doubts.add_queue(works, are_streams && api == Api::Cuda);
        }
        doubts.note(&mut self.inventory);
    }

    /// Returns the kernels and transfers of each queue that have times and are of no graph, with the API of the queue.
    fn works_of_queues(&mut self) -> FxHashMap<QueueId, (Api, Vec<TimedWork<'_>>)> {
        let graph_launches = self.graph_launches();
        let recorded = &mut self.recorded;
        let mut queues: FxHashMap<QueueId, (Api, Vec<TimedWork>)> = FxHashMap::default();
        for (process, correlation, work) in &mut recorded.work {
            let is_on_stream = matches!(
                work.kind,
                DeviceWorkKind::Kernel { .. } | DeviceWorkKind::Transfer { .. }
            );
            let launch = correlation.map(|correlation| (*process, correlation));
            let is_of_graph =
                work.of_graph || launch.is_some_and(|launch| graph_launches.contains(&launch));
            if is_on_stream && !is_of_graph && work.span.is_some() {
                let queue = queues.entry(work.queue);
                let (_, works) =
                    queue.or_insert_with(|| (self.inventory.api_of(work.queue), Vec::new()));
                works.push(TimedWork {
                    is_kernel: matches!(work.kind, DeviceWorkKind::Kernel { .. }),
                    span: &mut work.span,
                });
            }
        }
        queues
    }

    /// Returns the process and the correlation of each call that launches a graph.
    fn graph_launches(&self) -> FxHashSet<(ProcessId, Correlation)> {
        let recorded = &self.recorded;
        let launches = recorded.calls.iter().filter(|(_, call)| {
            let function = recorded.functions.get(call.function.0 as usize);
            let kind = function.and_then(|function| function.class.submission_kind());
            kind == Some(SubmissionKind::Graph)
        });
        launches
            .filter_map(|(process, call)| Some((*process, call.correlation?)))
            .collect()
    }

    /// Takes the times away from work that ends after the recording did.
    fn doubt_late_ends(&mut self) {
        let Some(end_ns) = self.times.end_ns else {
            return;
        };
        let latest_ns = end_ns.saturating_add(AFTER_END_NS);
        let mut count = 0;
        for (_, _, work) in &mut self.recorded.work {
            if work.span.is_some_and(|span| span.end_ns() > latest_ns) {
                work.span = None;
                count += 1;
            }
        }
        queues::note_ends(&mut self.inventory, count, "after the recording did");
    }
}
