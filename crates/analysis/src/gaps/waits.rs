//! What a submission waits for on the device.
//!
//! | it waits for | where from |
//! |---|---|
//! | what its dependencies name | the table `dependencies` |
//! | what was put on its queue before it and is not work: host functions, waits, and what these wait for in turn | `submissions` in the order of their calls |
//! | earlier work of other streams, by the order of CUDA's default stream | [`streams`] |
//!
//! Where a submission without work is awaited, so is all that is before it on its queue: the scope of a signal reaches
//! back over all that was submitted there earlier.
//!
//! A program that waits for nothing pays for one look at its submissions; otherwise what is kept takes nine bytes for each.

mod functions;
mod streams;

use super::Cause;
use crate::intervals::Interval;
use crate::thresholds::{NODE_ORDER_NS, SUBMISSIONS_FOLLOWED};
use crate::timeline::Timeline;
use functions::Functions;
use gapscope_trace::lookup::NONE;
use gapscope_trace::tables::{SubmissionKind, Table};

/// Submissions in the order in which devices run them, and what they wait for.
pub(crate) struct Order<'a> {
    timeline: &'a Timeline<'a>,
    /// Sorted.
    dependencies: Vec<DependencyRow>,
    /// Submissions that wait, and for which, by the order of the default stream. Sorted.
    held: Vec<Held>,
    /// By row: the submission before it on its queue, or [`NONE`]. Empty where each is timed work.
    previous: Vec<u32>,
    /// By row: whether it may wait for something. Empty where none does.
    may_wait: Vec<bool>,
    functions: Functions,
}

/// A row of the table of dependencies, by the row of its submission.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
struct DependencyRow {
    submission: u32,
    row: u32,
}

/// Rows of two submissions: one waits for the other.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
struct Held {
    submission: u32,
    by: u32,
}

/// When work on a queue finished.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct Finished {
    pub(crate) end_ns: i64,
    /// Index of the queue.
    pub(crate) queue: u32,
}

/// What a submission waits for.
#[derive(Debug, Default)]
pub(crate) struct Waits {
    /// Work on other queues, from its submission to its end. They do not overlap.
    pub(crate) others: Vec<Interval>,
    /// The last of them to finish.
    pub(crate) last: Option<Finished>,
    /// When the host ran functions that it waits for. They do not overlap.
    pub(crate) functions: Vec<Interval>,
    /// When the host gave the last signal that it waits for.
    pub(crate) host_signal_ns: Option<i64>,
    /// Host functions of unknown times.
    function: bool,
    /// Values in memory, or external semaphores.
    external: bool,
    /// What the trace does not say.
    unknown: bool,
    /// The host nodes of a graph, of unknown times.
    node: bool,
}

impl Waits {
    /// Why it had not started, of all that it waits for without known times; `rest_ns` is how long that may have held it.
    /// `None` where there is no such thing.
    pub(crate) fn untimed(&self, rest_ns: i64) -> Option<Cause> {
        let unknown = self.unknown || (self.node && rest_ns > NODE_ORDER_NS);
        match (unknown, self.function, self.external) {
            (false, false, false) => None,
            (false, true, false) => Some(Cause::HostFunction),
            (false, false, true) => Some(Cause::ExternalWait),
            _ => Some(Cause::Unknown),
        }
    }
}

/// What a submission is to those that come after it.
enum Standing {
    /// Work with known times.
    Timed(Interval),
    /// Work without.
    Untimed,
    /// No work: what is before it is awaited too.
    NoWork(SubmissionKind),
}

/// Whether submissions of this kind hand work to a queue, and not only hold it up.
pub(crate) fn is_work(kind: SubmissionKind) -> bool {
    use SubmissionKind::*;
    !matches!(
        kind,
        HostFunction | WaitValue | WaitExternal | Prefetch | Decompression
    )
}

impl Timeline<'_> {
    fn standing(&self, row: u32) -> Standing {
        let at = row as usize;
        let rows = &self.trace.tables.submissions;
        let times = &self.submissions[at];
        if let Some(interval) = times.interval() {
            return Standing::Timed(interval);
        }
        match rows.kind[at] {
            kind if !is_work(kind) => Standing::NoWork(kind),
            SubmissionKind::CommandBuffers if rows.command_buffers[at] <= times.without_work => {
                Standing::NoWork(SubmissionKind::CommandBuffers)
            }
            _ => Standing::Untimed,
        }
    }

    /// Submissions that hand over work, or semaphores: not what only holds a queue up.
    pub(crate) fn submission_count(&self) -> u64 {
        let kinds = self.trace.tables.submissions.kind.iter();
        kinds.filter(|kind| is_work(**kind)).count() as u64
    }

    /// The submissions of each queue that `keep` takes, by their rows, in the order of their calls.
    pub(crate) fn in_order(&self, keep: impl Fn(usize) -> bool) -> Vec<Vec<u32>> {
        let mut queues: Vec<Vec<u32>> = vec![Vec::new(); self.queues.len()];
        for (row, times) in self.submissions.iter().enumerate() {
            if keep(row) {
                queues[times.queue as usize].push(row as u32);
            }
        }
        for rows in &mut queues {
            rows.sort_unstable_by_key(|row| self.call_order(*row));
        }
        queues
    }

    /// By it submissions are in the order of their calls.
    fn call_order(&self, row: u32) -> impl Ord + use<> {
        let table = &self.trace.tables.submissions;
        (table.start_ns[row as usize], table.id[row as usize], row)
    }
}

impl<'a> Order<'a> {
    pub(crate) fn of(timeline: &'a Timeline<'a>) -> Order<'a> {
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
        let is_timed = |row| matches!(timeline.standing(row), Standing::Timed(_));
        let queues = match nodes.is_empty() && rows.all(is_timed) {
            true => Vec::new(),
            false => timeline.in_order(|_| true),
        };
        let mut previous = Vec::new();
        if !queues.is_empty() {
            previous.resize(timeline.submissions.len(), NONE);
        }
        for pair in queues.iter().flat_map(|rows| rows.windows(2)) {
            previous[pair[1] as usize] = pair[0];
        }
        let mut order = Order {
            timeline,
            dependencies,
            held: streams::held(timeline),
            previous,
            may_wait: Vec::new(),
            functions: Functions::of(timeline, &queues, &nodes),
        };
        order.mark();
        order
    }

    /// Finds out which submissions may wait.
    fn mark(&mut self) {
        if self.dependencies.is_empty() && self.held.is_empty() && self.previous.is_empty() {
            return;
        }
        let mut may_wait = vec![false; self.timeline.submissions.len()];
        for dependency in &self.dependencies {
            may_wait[dependency.submission as usize] = true;
        }
        for held in &self.held {
            may_wait[held.submission as usize] = true;
        }
        for (row, previous) in self.previous.iter().enumerate() {
            let after_work = *previous == NONE
                || (matches!(self.timeline.standing(*previous), Standing::Timed(_))
                    && !self.functions.has_untimed_nodes(*previous));
            may_wait[row] |= !after_work || self.functions.has_untimed_nodes(row as u32);
        }
        self.may_wait = may_wait;
    }

    /// What a submission waits for whose work started at `start_ns` or before. `begun`: other work of it has started
    /// earlier, so that only its dependencies may hold the rest, at a later stage.
    pub(crate) fn waits(&self, row: u32, start_ns: i64, begun: bool) -> Waits {
        let mut waits = Waits::default();
        if !self.may_wait(row) {
            return waits;
        }
        let mut search = Search {
            order: self,
            queue: self.timeline.submissions[row as usize].queue,
            start_ns,
            open: vec![row],
            waits: &mut waits,
        };
        search.dependencies(row);
        if !begun {
            search.waits.node |= self.has_untimed_nodes(row);
            search.earlier(row);
        }
        let mut at = 1;
        while let Some(row) = search.open.get(at).copied() {
            if at as u64 >= SUBMISSIONS_FOLLOWED {
                search.waits.unknown = true;
                break;
            }
            search.dependencies(row);
            search.earlier(row);
            at += 1;
        }
        crate::intervals::union(&mut waits.others);
        crate::intervals::union(&mut waits.functions);
        waits
    }

    /// Until when something besides the work of its own queue held a submission with timed work, and what did last.
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

    fn may_wait(&self, row: u32) -> bool {
        self.may_wait.get(row as usize) == Some(&true)
    }

    /// When the host ran functions for a queue, as far as that overlaps `window`. They do not overlap.
    pub(crate) fn functions(&self, queue: u32, window: Interval) -> &[Interval] {
        self.functions.during(queue, window)
    }

    /// Whether the host ran no functions for queues.
    pub(crate) fn has_no_functions(&self) -> bool {
        self.functions.is_empty()
    }

    /// Whether a submission is a graph with host nodes of which it is not known when they ran.
    pub(crate) fn has_untimed_nodes(&self, row: u32) -> bool {
        self.functions.has_untimed_nodes(row)
    }
}

/// A search for what a submission waits for.
struct Search<'s, 'a> {
    order: &'s Order<'a>,
    /// Index of its queue.
    queue: u32,
    start_ns: i64,
    /// It and the submissions without work that it waits for: what these wait for it waits for too.
    open: Vec<u32>,
    waits: &'s mut Waits,
}

impl Search<'_, '_> {
    /// What the table says that a submission waits for.
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
                NONE => self.waits.unknown = true,
                other => self.reach(other),
            }
        }
    }

    /// What is before a submission on its queue, or on others by the order of the default stream.
    fn earlier(&mut self, row: u32) {
        let all = &self.order.held;
        let from = all.partition_point(|held| held.submission < row);
        for held in all[from..].iter().take_while(|held| held.submission == row) {
            self.reach(held.by);
        }
        match self.order.previous.get(row as usize) {
            None | Some(&NONE) => {}
            Some(previous) => self.reach(*previous),
        }
    }

    /// The end of a submission is awaited.
    fn reach(&mut self, row: u32) {
        let timeline = self.order.timeline;
        let times = &timeline.submissions[row as usize];
        let kind = match timeline.standing(row) {
            Standing::Timed(work) => {
                self.waits.node |= self.order.has_untimed_nodes(row);
                // A dependency that finished after the start is not what the start waited for: a later stage does.
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
                self.waits.unknown = true;
                return;
            }
            Standing::NoWork(kind) => kind,
        };
        if self.open.contains(&row) {
            return;
        }
        self.open.push(row);
        match kind {
            SubmissionKind::HostFunction => match self.order.functions.time_of(row) {
                Some(time) => self.waits.functions.push(time),
                None => self.waits.function = true,
            },
            SubmissionKind::WaitValue | SubmissionKind::WaitExternal => self.waits.external = true,
            SubmissionKind::Prefetch | SubmissionKind::Decompression => self.waits.unknown = true,
            _ => {}
        }
    }
}
