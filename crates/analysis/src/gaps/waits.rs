//! Finds, from the tables of submissions and dependencies, the work, signals and host functions that a submission
//! waits for on the device.
//!
//! | it waits for | where from |
//! |---|---|
//! | what its dependencies name | the table `dependencies` |
//! | what was put on its queue before it and is not work: host functions, waits, and what these wait for in turn | `submissions` in the order of their calls |
//! | what is from before the recording | the first submission of a queue in a recording that began after its process |
//! | earlier work of other streams, by the order of CUDA's default stream | `waits/streams.rs` |
//!
//! Where a submission without work is awaited, so is everything before it on its queue: the scope of a signal includes
//! all earlier submissions there.
//!
//! For a program that waits for nothing this takes one look at its submissions; otherwise it keeps nine bytes for each.
//!
//! [`WaitOrder::new`] indexes a timeline once, and [`WaitOrder::waits`] is called for each gap. Work "stands" as
//! timed, as untimed, or is no work, such as a host function ([`Standing`]).

mod functions;
mod host_waits;
mod lost_launches;
mod streams;
mod unmeasured;

use super::start_up::{api_of, start_up_ns};
use super::{Cause, UnknownReason};
use crate::contexts::Turns;
use crate::recorded_waits::RecordedWaits;
use functions::HostFunctions;
use gapscope_timeline::intervals::Interval;
use gapscope_timeline::thresholds::{
    CONTEXT_SWITCH_NS, FIRST_START_NS, GRAPH_NODE_START_NS, NODE_ORDER_NS, SUBMISSIONS_FOLLOWED,
};
use gapscope_timeline::{Standing, Timeline};
use gapscope_trace::ids::ProcessId;
use gapscope_trace::lookup::NONE;
use gapscope_trace::tables::{SubmissionKind, Table};
pub(crate) use lost_launches::lost_works;
use std::collections::HashMap;
use streams::StreamWait;
pub(crate) use unmeasured::Unmeasured;

/// The submissions in the order in which devices run them, and what each waits for.
pub(crate) struct WaitOrder<'a> {
    timeline: &'a Timeline<'a>,
    /// The rows of the table of dependencies, sorted.
    dependencies: Vec<DependencyRow>,
    /// The waits that follow from the order of the default stream, sorted.
    stream_waits: Vec<StreamWait>,
    /// For each row, the row of the submission before it on its queue, or [`NONE`]. Empty where each submission is
    /// timed work.
    previous: Vec<u32>,
    /// For each row, true where the submission may wait for something. Empty where no submission may.
    may_wait: Vec<bool>,
    functions: HostFunctions,
    recorded_waits: RecordedWaits<'a>,
    unmeasured: Unmeasured,
    /// The numbers of nodes of the graphs that are large enough to start late, by the row of their submission.
    graph_nodes: HashMap<u32, i64>,
    turns: Turns,
    /// The times in which moves of managed memory may have run, by the index of the GPU.
    page_moves: Vec<Vec<Interval>>,
    /// How long the device of each queue may take to start work, by the queue's index.
    start_up_ns: Vec<i64>,
    /// The rows of the first submissions of queues whose earlier work may be from before the recording, sorted.
    first: Vec<u32>,
}

/// A row of the table of dependencies, by the row of its submission.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
struct DependencyRow {
    submission: u32,
    /// The row in the table of dependencies.
    row: u32,
}

/// The time at which work on a queue finished.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct Finished {
    pub(crate) end_ns: i64,
    /// The index of the queue.
    pub(crate) queue: u32,
}

/// The things that a submission waits for.
#[derive(Debug, Default)]
pub(crate) struct Waits {
    /// The times of work on other queues, from its submission to its end. The intervals do not overlap.
    pub(crate) others: Vec<Interval>,
    /// The end of the work among `others` that finished last.
    pub(crate) last: Option<Finished>,
    /// The times at which the host ran functions that the submission waits for. They do not overlap.
    pub(crate) functions: Vec<Interval>,
    /// The time of the last signal from the host that the submission waits for.
    pub(crate) host_signal_ns: Option<i64>,
    /// True where the submission waits for host functions of unknown times.
    function: bool,
    /// True where the submission waits for values in memory, or external semaphores.
    external: bool,
    /// True where the submission waits for moves of managed memory.
    page_move: bool,
    /// The reason for which the trace does not say what the submission waits for, where it does not.
    unknown: Option<UnknownReason>,
    /// True where the submission waits for the host nodes of a graph, of unknown times.
    node: bool,
}

impl Waits {
    /// Returns the cause by which things of unknown times held the submission up, or `None` where it waits for no
    /// such thing. `rest_ns` is how long they may have held it up.
    pub(crate) fn untimed(&self, rest_ns: i64) -> Option<Cause> {
        let unknown = self.unknown(rest_ns);
        match (unknown, self.function, self.external, self.page_move) {
            (None, false, false, false) => None,
            (None, true, false, false) => Some(Cause::HostFunction),
            (None, false, true, false) => Some(Cause::ExternalWait),
            (None, false, false, true) => Some(Cause::PageMove),
            _ => Some(Cause::Unknown),
        }
    }

    /// Returns the reason for which the trace does not say what held the submission up for `rest_ns`.
    pub(crate) fn unknown(&self, rest_ns: i64) -> Option<UnknownReason> {
        let node = self.node && rest_ns > NODE_ORDER_NS;
        (self.unknown).or(node.then_some(UnknownReason::UnrecordedWait))
    }
}

impl<'a> WaitOrder<'a> {
    pub(crate) fn new(timeline: &'a Timeline<'a>) -> WaitOrder<'a> {
        let table = &timeline.trace.tables.dependencies;
        let mut dependencies: Vec<DependencyRow> = (0..table.len())
            .map(|row| DependencyRow {
                submission: timeline.submission_ids.row(table.submission[row]),
                row: row as u32,
            })
            .filter(|dependency| dependency.submission != NONE)
            .collect();
        dependencies.sort_unstable();
        let nodes = functions::host_nodes(timeline);
        let mut rows = 0..timeline.submissions.len() as u32;
        let recorded_waits = RecordedWaits::new(timeline);
        let unmeasured = Unmeasured::new(timeline, &recorded_waits);
        let is_timed = |row| {
            matches!(timeline.standing(row), Standing::Timed(_)) && !unmeasured.has_a_part_of(row)
        };
        let queues = match nodes.is_empty() && rows.all(is_timed) {
            true => &[],
            false => timeline.submissions_by_queue(),
        };
        let mut previous = Vec::new();
        if !queues.is_empty() {
            previous.resize(timeline.submissions.len(), NONE);
        }
        for pair in queues.iter().flat_map(|rows| rows.windows(2)) {
            previous[pair[1] as usize] = pair[0];
        }
        let mut order = WaitOrder {
            timeline,
            dependencies,
            stream_waits: streams::stream_waits(timeline),
            previous,
            may_wait: Vec::new(),
            functions: HostFunctions::new(timeline, queues, &nodes),
            page_moves: unmeasured::page_moves(timeline, &recorded_waits),
            recorded_waits,
            unmeasured,
            graph_nodes: large_graphs(timeline),
            turns: Turns::new(timeline),
            start_up_ns: (timeline.queues.iter())
                .map(|queue| start_up_ns(api_of(timeline, queue)))
                .collect(),
            first: first_of_queues(timeline),
        };
        order.mark();
        order
    }

    /// Marks the submissions that may wait for something.
    fn mark(&mut self) {
        if self.dependencies.is_empty()
            && self.stream_waits.is_empty()
            && self.previous.is_empty()
            && self.first.is_empty()
        {
            return;
        }
        let mut may_wait = vec![false; self.timeline.submissions.len()];
        for dependency in &self.dependencies {
            may_wait[dependency.submission as usize] = true;
        }
        for wait in &self.stream_waits {
            may_wait[wait.submission as usize] = true;
        }
        for row in &self.first {
            may_wait[*row as usize] = true;
        }
        for (row, previous) in self.previous.iter().enumerate() {
            let after_work = *previous == NONE
                || (matches!(self.timeline.standing(*previous), Standing::Timed(_))
                    && !self.unmeasured.has_a_part_of(*previous)
                    && !self.functions.has_untimed_nodes(*previous));
            may_wait[row] |= !after_work || self.functions.has_untimed_nodes(row as u32);
        }
        self.may_wait = may_wait;
    }

    /// Returns what a submission waits for whose work started at `start_ns` or before. `begun` is true where other
    /// work of the submission started earlier, so that only its dependencies may hold up the remaining work, at a
    /// later stage.
    pub(crate) fn waits(&self, row: u32, start_ns: i64, begun: bool) -> Waits {
        let mut waits = Waits::default();
        if !self.may_wait(row) {
            return waits;
        }
        let mut search = WaitSearch {
            order: self,
            queue: self.timeline.submissions[row as usize].queue,
            start_ns,
            followed: vec![row],
            waits: &mut waits,
        };
        search.dependencies(row);
        if !begun {
            search.waits.node |= self.has_untimed_nodes(row);
            search.earlier(row);
            let first_start_ns = self.timeline.submissions[row as usize].first_start_ns;
            let waited_ns = first_start_ns.saturating_sub(self.call_end_ns(row));
            if self.first.binary_search(&row).is_ok() && waited_ns >= FIRST_START_NS {
                search.waits.unknown = Some(UnknownReason::BeforeRecording);
            }
        }
        let mut at = 1;
        while let Some(row) = search.followed.get(at).copied() {
            if at as u64 >= SUBMISSIONS_FOLLOWED {
                search.waits.unknown = Some(UnknownReason::UnrecordedWait);
                break;
            }
            search.dependencies(row);
            search.earlier(row);
            at += 1;
        }
        gapscope_timeline::intervals::union(&mut waits.others);
        gapscope_timeline::intervals::union(&mut waits.functions);
        waits
    }

    /// Returns the time until which something besides the work of its own queue held up a submission with timed work,
    /// then the cause of the last such delay. Returns `None` where nothing did.
    pub(crate) fn held_until(&self, row: u32) -> Option<(i64, Cause)> {
        let times = &self.timeline.submissions[row as usize];
        let call_ns = self.timeline.trace.tables.submissions.start_ns[row as usize];
        let start_ns = times.first_start_ns;
        let own = self.functions(times.queue, Interval::new(call_ns, start_ns));
        if own.is_empty() && !self.may_wait(row) {
            return None;
        }
        let gpu = self.timeline.queues[times.queue as usize].gpu;
        let error_ns = self.timeline.clock_error_ns(gpu as usize).unwrap_or(0);
        let waits = self.waits(row, start_ns.saturating_add(error_ns.max(0)), false);
        let function = waits.functions.last().max(own.last());
        let function = function.map(|last| (last.end_ns, Cause::HostFunction));
        let signal = waits.host_signal_ns.map(|ns| (ns, Cause::HostSignal));
        let other = waits.last.map(|last| (last.end_ns, Cause::OtherQueue));
        let untimed = waits.untimed(i64::MAX).map(|cause| (start_ns, cause));
        let all = [function, signal, other, untimed].into_iter().flatten();
        all.max_by_key(|(until_ns, _)| *until_ns)
    }

    /// Returns how long a device may take to start, order or hand over work of a submission that is free to run.
    pub(crate) fn most_start_up_ns(&self, row: u32) -> i64 {
        let nodes = self.graph_nodes.get(&row).copied().unwrap_or(0);
        let start_up_ns = self.start_up_ns(self.timeline.submissions[row as usize].queue);
        start_up_ns.saturating_add(nodes.saturating_mul(GRAPH_NODE_START_NS))
    }

    /// Returns how long a device may take to start or order work of a queue that is free to run.
    pub(crate) fn start_up_ns(&self, queue: u32) -> i64 {
        self.start_up_ns[queue as usize]
    }

    /// Returns when work of another context ended that a submission, whose work started at `start_ns`, had to let end first.
    pub(crate) fn other_context_ended(&self, row: u32, start_ns: i64) -> Option<i64> {
        let call_end_ns = self.call_end_ns(row);
        // What starts as soon as work does on an idle device has waited for nothing.
        if self.turns.is_empty() || start_ns.saturating_sub(call_end_ns) < FIRST_START_NS {
            return None;
        }
        let queue = self.timeline.submissions[row as usize].queue;
        let end_ns = self.turns.other_ended(self.timeline, queue, start_ns)?;
        // Nor does a GPU change contexts in the time that it takes to start a kernel.
        let took_ns = start_ns.saturating_sub(end_ns);
        let is_change = (FIRST_START_NS..CONTEXT_SWITCH_NS).contains(&took_ns);
        (end_ns > call_end_ns && is_change).then_some(end_ns)
    }

    /// Returns the end of the call that made a submission.
    pub(crate) fn call_end_ns(&self, row: u32) -> i64 {
        self.timeline.trace.tables.submissions.end_ns(row as usize)
    }

    /// Returns the times in which work without known times may have run.
    pub(crate) fn unmeasured(&self) -> &Unmeasured {
        &self.unmeasured
    }

    /// Returns the calls of the host that waited for known work.
    pub(crate) fn recorded_waits(&self) -> &RecordedWaits<'a> {
        &self.recorded_waits
    }

    /// Returns true where managed memory may have been moved in `interval`, at any queue of the GPU of a queue.
    pub(crate) fn may_move_pages(&self, queue: u32, interval: Interval) -> bool {
        let moves = &self.page_moves[self.timeline.queues[queue as usize].gpu as usize];
        let from = moves.partition_point(|time| time.end_ns <= interval.start_ns);
        moves
            .get(from)
            .is_some_and(|time| time.start_ns < interval.end_ns)
    }

    /// Returns true where a submission may wait for something.
    fn may_wait(&self, row: u32) -> bool {
        self.may_wait.get(row as usize) == Some(&true)
    }

    /// Returns the times in `window` at which the host ran functions for a queue. They do not overlap.
    pub(crate) fn functions(&self, queue: u32, window: Interval) -> &[Interval] {
        self.functions.during(queue, window)
    }

    /// Returns true where the host ran no functions for queues.
    pub(crate) fn has_no_functions(&self) -> bool {
        self.functions.is_empty()
    }

    /// Returns true where a submission is a graph with host nodes of unknown times.
    pub(crate) fn has_untimed_nodes(&self, row: u32) -> bool {
        self.functions.has_untimed_nodes(row)
    }
}

/// A search for what a submission waits for.
struct WaitSearch<'s, 'a> {
    order: &'s WaitOrder<'a>,
    /// The index of the submission's queue.
    queue: u32,
    /// The time at which the submission's work started, at the latest.
    start_ns: i64,
    /// The rows of the submission and of those without work that it waits for. The submission also waits for what
    /// they wait for.
    followed: Vec<u32>,
    waits: &'s mut Waits,
}

impl WaitSearch<'_, '_> {
    /// Adds what a submission waits for by the table of dependencies.
    fn dependencies(&mut self, row: u32) {
        let timeline = self.order.timeline;
        let table = &timeline.trace.tables.dependencies;
        let all = &self.order.dependencies;
        let from = all.partition_point(|d| d.submission < row);
        for dependency in all[from..].iter().take_while(|d| d.submission == row) {
            let at = dependency.row as usize;
            if let Some(signal_ns) = table.host_signal_ns.at(at) {
                self.waits.host_signal_ns = self.waits.host_signal_ns.max(Some(signal_ns));
                continue;
            }
            let other = table
                .waits_for
                .at(at)
                .map_or(NONE, |id| timeline.submission_ids.row(id));
            match other {
                NONE => self.waits.unknown = Some(UnknownReason::UnrecordedWait),
                other => self.await_end(other),
            }
        }
    }

    /// Adds what comes before a submission on its queue, or on others by the order of the default stream.
    fn earlier(&mut self, row: u32) {
        let all = &self.order.stream_waits;
        let from = all.partition_point(|wait| wait.submission < row);
        for wait in all[from..].iter().take_while(|wait| wait.submission == row) {
            self.await_end(wait.waits_for);
        }
        match self.order.previous.get(row as usize) {
            None | Some(&NONE) => {}
            Some(previous) => self.await_end(*previous),
        }
    }

    /// Adds the end of a submission as something that is awaited. One without work is followed too: the search goes
    /// on with what it waits for.
    fn await_end(&mut self, row: u32) {
        let timeline = self.order.timeline;
        let times = &timeline.submissions[row as usize];
        let kind = match timeline.standing(row) {
            Standing::Timed(work) => {
                self.waits.node |= self.order.has_untimed_nodes(row);
                if self.order.unmeasured.has_a_part_of(row) {
                    self.waits.unknown = Some(UnknownReason::UntimedWork);
                }
                // A later stage waits for a dependency that finished after the start.
                if times.queue != self.queue && work.end_ns <= self.start_ns {
                    let start_ns = timeline.trace.tables.submissions.start_ns[row as usize];
                    self.waits.others.push(Interval::new(start_ns, work.end_ns));
                    self.waits.last = self.waits.last.max(Some(Finished {
                        end_ns: work.end_ns,
                        queue: times.queue,
                    }));
                }
                return;
            }
            Standing::Untimed => {
                self.waits.unknown = Some(UnknownReason::UntimedWork);
                return;
            }
            Standing::NoWork(kind) => kind,
        };
        if self.followed.contains(&row) {
            return;
        }
        self.followed.push(row);
        match kind {
            SubmissionKind::HostFunction => match self.order.functions.time_of(row) {
                Some(time) => self.waits.functions.push(time),
                None => self.waits.function = true,
            },
            SubmissionKind::WaitValue | SubmissionKind::WaitExternal => self.waits.external = true,
            SubmissionKind::Prefetch => self.waits.page_move = true,
            SubmissionKind::Decompression => {
                self.waits.unknown = Some(UnknownReason::UnrecordedWait);
            }
            _ => {}
        }
    }
}

/// Returns the rows of the first submissions of the queues of those processes whose recording began after the process
/// did: what ran on such a queue before is not in the trace. The rows are sorted.
fn first_of_queues(timeline: &Timeline) -> Vec<u32> {
    let manifest = &timeline.trace.manifest;
    let midway: Vec<ProcessId> = (manifest.processes.iter())
        .filter(|process| {
            process.other_tool().is_some()
                || (process.start_ns != 0 && process.start_ns < manifest.start_ns)
        })
        .map(|process| process.id)
        .collect();
    if midway.is_empty() {
        return Vec::new();
    }
    let processes = &timeline.trace.tables.submissions.process;
    let mut first: HashMap<u32, u32> = HashMap::new();
    for (times, row) in timeline.submissions.iter().zip(0u32..) {
        let earliest = first.entry(times.queue).or_insert(row);
        if timeline.call_order(row) < timeline.call_order(*earliest) {
            *earliest = row;
        }
    }
    let mut first: Vec<u32> = first.into_values().collect();
    first.retain(|row| midway.contains(&processes[*row as usize]));
    first.sort_unstable();
    first
}

/// Counts the nodes of the graphs that submissions launch, by row, where there are enough of them to matter for the
/// time that the graph takes to start.
fn large_graphs(timeline: &Timeline) -> HashMap<u32, i64> {
    let rows = &timeline.trace.tables.command_buffers;
    let kinds = &timeline.trace.tables.submissions.kind;
    let nodes = rows.dispatches.iter().zip(&rows.transfers);
    let nodes = nodes.map(|(dispatches, transfers)| i64::from(*dispatches) + i64::from(*transfers));
    (timeline.command_buffers.iter().zip(nodes))
        .filter(|(_, nodes)| nodes * GRAPH_NODE_START_NS >= FIRST_START_NS)
        .map(|(times, nodes)| (times.submission, nodes))
        .filter(|(row, _)| kinds.get(*row as usize) == Some(&SubmissionKind::Graph))
        .collect()
}
