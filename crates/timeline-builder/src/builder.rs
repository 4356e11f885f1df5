//! The state of one process while its rows are built: calls, work, labels, polls and waits go in, in any order, and
//! rows go to an [`Output`]. [`TimelineBuilder::settle`] is called now and then, [`TimelineBuilder::finish`] at the
//! end.

use crate::bounds::Bounds;
use crate::event_waits::{EventOccurrence, EventWaits, StreamPlace};
use crate::graph_bodies::GraphBodies;
use crate::graph_nodes::GraphNodes;
use crate::host_waits::HostWaits;
use crate::input::{ApiCall, Correlation, DeviceWork, Function, FunctionId};
use crate::labels::ThreadLabels;
use crate::output::Output;
use crate::overheads::Overhead;
use crate::polls::Polls;
use crate::rows;
use crate::slots::Launches;
use crate::stream_captures::StreamCaptures;
use gapscope_model::cuda::FunctionClass;
use gapscope_model::{GraphChange, HostCallKind, Span};
use gapscope_trace::ids::{QueueId, SubmissionId, ThreadId};
use gapscope_trace::tables::HostCall;
use rustc_hash::{FxHashMap, FxHashSet};
use serde::{Deserialize, Serialize};
use std::sync::Arc;

/// A launch that was profiled: its submission and the first record of its kernel.
#[derive(Debug, Clone, Copy)]
pub struct ProfiledLaunch {
    /// The correlation that [`TimelineBuilder::mark_profiled`] was given.
    pub correlation: Correlation,
    /// The launch's submission.
    pub submission: SubmissionId,
    /// The kernel's record.
    pub work: DeviceWork,
}

/// Builds the rows of one process.
#[derive(Debug, Default, Serialize, Deserialize)]
pub struct TimelineBuilder {
    /// The labels of the process's threads.
    pub labels: ThreadLabels,
    /// How much is remembered for what has not come yet.
    pub(crate) bounds: Bounds,
    /// What each function does, and its name.
    functions: FxHashMap<FunctionId, Function>,
    /// Calls and work that wait for their other half, by correlation (the number that joins the two).
    pub(crate) launches: Launches,
    /// The launches of graphs that bodies of conditional nodes may belong to.
    pub(crate) graph_bodies: GraphBodies,
    /// Where the nodes of graphs were made.
    pub(crate) graph_nodes: GraphNodes,
    /// Polls of threads that may go on.
    polls: FxHashMap<Option<ThreadId>, Polls>,
    /// Events, and the waits of streams for them.
    pub(crate) event_waits: EventWaits,
    /// Waits of the host for queues and events.
    pub(crate) host_waits: HostWaits,
    /// The numbers of calls do not ascend in their order, so that they do not say what a call waited for.
    pub(crate) is_unordered: bool,
    /// When streams were being captured into graphs.
    pub(crate) stream_captures: StreamCaptures,
    /// Correlations of launches that were profiled, and whose work has not come.
    pub(crate) profiled: FxHashSet<Correlation>,
    /// Correlations of calls that launched work, although their functions are not known to launch any.
    pub(crate) other_launches: FxHashSet<Correlation>,
    /// The profiled launches that have been written and not been taken.
    #[serde(skip)]
    pub(crate) profiled_launches: Vec<ProfiledLaunch>,
}

impl TimelineBuilder {
    /// Returns a builder without rows.
    pub fn new(bounds: Bounds) -> TimelineBuilder {
        TimelineBuilder {
            bounds,
            ..TimelineBuilder::default()
        }
    }

    /// Says what a function is.
    pub fn add_function(&mut self, id: FunctionId, function: Function) {
        self.functions.insert(id, function);
    }

    /// Returns what a call's function does.
    pub fn class(&self, call: &ApiCall) -> FunctionClass {
        let function = self.functions.get(&call.function);
        function.map_or(FunctionClass::Unknown, |function| function.class)
    }

    /// Returns the name of a call's function; `None` if it is not known.
    pub(crate) fn function_name(&self, call: &ApiCall) -> Option<Arc<str>> {
        let function = self.functions.get(&call.function);
        function.map(|function| function.name.clone())
    }

    /// Takes polls of a thread: they go on with those before, or start a new row.
    pub fn polls(&mut self, new: Polls, out: &mut Output<'_>) {
        let thread = new.call.thread;
        if let Some(polls) = self.polls.get_mut(&thread)
            && polls.join(&new)
        {
            return;
        }
        self.end_polls(thread, out);
        self.polls.insert(thread, new);
    }

    /// Writes the polls of a thread that does something else now.
    pub(crate) fn end_polls(&mut self, thread: Option<ThreadId>, out: &mut Output<'_>) {
        if self.polls.is_empty() {
            return;
        }
        if let Some(polls) = self.polls.remove(&thread) {
            let call = polls.call;
            let function = self.function_name(&call);
            let kind = HostCallKind::PollEvent;
            let row = rows::one_host_call(out.process, thread, kind, call.span, function);
            rows::host_call(
                out.tables,
                HostCall {
                    count: polls.count,
                    busy_ns: polls.busy_ns,
                    result: call.result,
                    ..row
                },
            );
        }
    }

    /// Writes time that the driver or the tracing took.
    pub fn overhead(&mut self, overhead: &Overhead, out: &mut Output<'_>) {
        let (kind, function) = overhead.host_call();
        let function = Some(Arc::from(function));
        let Overhead { thread, span, .. } = *overhead;
        let row = rows::one_host_call(out.process, thread, kind, span, function);
        rows::host_call(out.tables, row);
    }

    /// Writes that a function of the host ran for a queue.
    pub fn host_function(
        &mut self,
        queue: QueueId,
        thread: Option<ThreadId>,
        span: Span,
        out: &mut Output<'_>,
    ) {
        let kind = HostCallKind::HostFunction;
        let row = rows::one_host_call(out.process, thread, kind, span, None);
        let queue = Some(queue);
        rows::host_call(out.tables, HostCall { queue, ..row });
    }

    /// Takes a change of a graph by a thread.
    pub fn graph_changed(&mut self, thread: Option<ThreadId>, change: GraphChange) {
        self.graph_nodes.changed(thread, change, &self.labels);
    }

    /// Notes that the launch with a correlation, whose call has not come, was profiled: its kernel ran several times,
    /// and each run may leave a record.
    pub fn mark_profiled(&mut self, correlation: Correlation) {
        self.profiled.insert(correlation);
    }

    /// Takes the profiled launches that were written since the last call.
    pub fn take_profiled(&mut self) -> Vec<ProfiledLaunch> {
        std::mem::take(&mut self.profiled_launches)
    }

    /// Takes an event that a call put on a stream.
    pub fn event_recorded(&mut self, occurrence: EventOccurrence, place: StreamPlace) {
        self.event_waits.recorded(occurrence, place, &self.bounds);
    }

    /// Returns where an occurrence of an event was put.
    pub fn place_of_event(&self, occurrence: EventOccurrence) -> Option<StreamPlace> {
        self.event_waits.record_of(occurrence)
    }

    /// Takes a wait for an event that a call put on a stream.
    pub fn stream_waits(&mut self, place: StreamPlace, event: EventOccurrence, now_ns: i64) {
        self.event_waits.waits(place, event, now_ns, &self.bounds);
    }

    /// Writes the waits of streams that nothing changes any more, and the bodies of graphs whose launches are certain. Call this now
    /// and then.
    pub fn settle(&mut self, out: &mut Output<'_>) {
        self.bodies(Some(out.now_ns), out);
        (self.event_waits).settle(out.now_ns, false, &self.bounds, out.tables);
        self.settle_host_waits(false, out);
    }

    /// Returns how many correlations are known.
    pub fn known_correlations(&self) -> usize {
        self.launches.slots.len()
    }

    /// Writes all that waits for something: nothing more comes. `missing` says why the work of a launch may never
    /// have come, where it is lost then.
    pub fn finish(&mut self, missing: Option<&'static str>, out: &mut Output<'_>) -> Finished {
        let mut threads: Vec<_> = self.polls.keys().copied().collect();
        threads.sort_unstable();
        for thread in threads {
            self.end_polls(thread, out);
        }
        self.finish_launches(missing, out);
        self.settle_host_waits(true, out);
        Finished {
            unknown_waits: (self.event_waits).settle(out.now_ns, true, &self.bounds, out.tables),
            collisions: self.launches.collisions,
            unended_labels: self.labels.finish(&mut out.label_rows()),
        }
    }
}

/// What a builder could not tell.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Finished {
    /// Waits of streams for something that is not known.
    pub unknown_waits: u64,
    /// Launching calls that came while another one had their correlation.
    pub collisions: u64,
    /// Labels that never ended.
    pub unended_labels: u64,
}
