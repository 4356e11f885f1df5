//! Joins the calls of one process to the device work that they launched: takes both in any order and gives
//! submissions, command buffers of graphs, and rows of work. A correlation is the number that a call and its work
//! share; a slot is what waits under it.
//!
//! Each half waits under its correlation for the other, in bounded memory. A launch whose work has come stays known for more of its
//! work, such as the other nodes of a graph.

use crate::builder::{ProfiledLaunch, TimelineBuilder};
use crate::event_waits::{EventOccurrence, StreamPlace};
use crate::graph_nodes::GraphNodes;
use crate::host_waits::HostWait;
use crate::input::{ApiCall, CallQueue, Correlation, DeviceWork, DeviceWorkKind, FunctionId};
use crate::output::{Joined, Output};
use crate::rows::{self, CoveringSpan, TransferFacts, WorkPlace};
use crate::slots::{GraphLaunch, LabelledCall, Launch, LaunchedWork, SlotContent};
use gapscope_model::cuda::FunctionClass;
use gapscope_model::{LossKind, MemoryPlace, SubmissionKind, UNKNOWN_RESULT};
use gapscope_trace::ids::{CommandBufferId, LabelId, QueueId, SubmissionId};
use gapscope_trace::tables::{CommandBuffer, HostCall, OpaqueWorkKind, Submission};
use rustc_hash::FxHashSet;

impl TimelineBuilder {
    /// Takes a call that returned. A poll is folded with others. A call that may launch work waits for that work, one
    /// that names a queue later waits for the queue, unless that has come; any other is written at once.
    pub fn call(&mut self, mut call: ApiCall, out: &mut Output<'_>) {
        let class = self.class(&call);
        if class.is_poll() {
            return self.polls(crate::Polls::new(call), out);
        }
        self.end_polls(call.thread, out);
        match class {
            FunctionClass::BeginCapture => self.stream_captures.started(call.span.start_ns),
            FunctionClass::EndCapture => self.stream_captures.ended(call.span.end_ns()),
            _ => {}
        }
        let may_launch = self.may_launch(class, call.correlation);
        if let (Some(_), Some(correlation)) = (call.graph, call.correlation) {
            let slot = self.launches.slots.get(&correlation);
            if let Some(SlotContent::PendingPlace(place)) = slot.map(|slot| &slot.content) {
                call.queue = CallQueue::Known(place.queue);
            }
            self.graph_bodies.called(&call, &self.bounds);
        }
        // A queue is named by calls that wait, and by those that put on it what leaves no record of the device. An execution context of
        // the runtime is neither a queue nor a context of the tracing library.
        let may_name_queue = class.is_wait() && class != FunctionClass::WaitExecutionContext;
        let known_queue = match call.queue {
            CallQueue::Known(queue) => Some(queue),
            _ => None,
        };
        let is_named = |correlation: &Correlation| {
            let slot = self.launches.slots.get(correlation);
            matches!(
                slot.map(|slot| &slot.content),
                Some(SlotContent::PendingPlace(_))
            )
        };
        let has_place = may_name_queue && call.correlation.as_ref().is_some_and(is_named);
        let has_all = !may_launch
            && !has_place
            && (known_queue.is_some() || call.queue == CallQueue::Unknown);
        let correlation = call.correlation.filter(|_| may_launch || may_name_queue);
        let Some(correlation) = correlation.filter(|_| !has_all) else {
            return match known_queue {
                Some(queue) if class.is_put_on_stream() || may_name_queue => {
                    self.call_on_queue(&call, queue, call.correlation, out);
                }
                queue => self.host_call(&call, queue, out),
            };
        };
        match (self.launches.take(correlation), known_queue) {
            (Some(SlotContent::PendingWork(work)), _) if may_launch => {
                let label = self.label_of(&call, out);
                self.launch(LabelledCall { call, label }, correlation, work, out);
            }
            (other, Some(queue)) if class.is_put_on_stream() => {
                if let Some(other) = other {
                    self.put(correlation, other, out);
                }
                self.call_on_queue(&call, queue, Some(correlation), out);
            }
            (Some(SlotContent::PendingPlace(place)), _)
                if class.is_wait() || class.is_put_on_stream() =>
            {
                self.call_on_queue(&call, place.queue, Some(place.correlation), out);
            }
            // The runtime's call and the driver's inside it: the outer one is the program's.
            (Some(SlotContent::PendingCall(outer)), _)
                if self.class(&outer.call).submission_kind().is_some()
                    && outer.call.thread == call.thread
                    && outer.call.span.start_ns <= call.span.start_ns
                    && call.span.end_ns() <= outer.call.span.end_ns() =>
            {
                self.put(correlation, SlotContent::PendingCall(outer), out);
                self.host_call(&call, known_queue, out);
            }
            (Some(other), _) if !self.takes_place(class, &other) => {
                self.put(correlation, other, out);
                self.host_call(&call, known_queue, out);
            }
            (other, _) => {
                if let Some(stale) = other {
                    // Work of the one before may still come, and would be taken for this one's.
                    if let SlotContent::PendingCall(pending) = &stale {
                        let before = self.class(&pending.call).submission_kind();
                        self.launches.collisions += u64::from(before.is_some());
                    }
                    self.give_up(stale, out);
                }
                let label = match may_launch {
                    true => self.label_of(&call, out),
                    false => None,
                };
                let pending = SlotContent::PendingCall(LabelledCall { call, label });
                self.put(correlation, pending, out);
            }
        }
    }

    /// Takes a piece of work that a device did for the call with a correlation; `None` where no call is known, as for
    /// bodies of conditional nodes of graphs.
    #[inline]
    pub fn work(
        &mut self,
        correlation: Option<Correlation>,
        work: DeviceWork,
        out: &mut Output<'_>,
    ) {
        match (correlation, work.graph) {
            (Some(correlation), graph) => {
                if let Some(graph) = graph {
                    (self.graph_bodies).started(graph, correlation, &work, &self.bounds);
                }
                self.graph_bodies.ran(correlation, &work);
                self.work_of_call(correlation, work, out);
            }
            (None, Some(graph)) => {
                if !self.graph_bodies.wait(graph, work, &self.bounds) {
                    self.bodies(None, out);
                }
            }
            (None, None) => {
                self.launches.count_unjoined(&work);
                self.without_any_call(work, out);
            }
        }
    }

    /// Writes the bodies of graphs whose launches are certain at `now_ns`, or all where that is `None`. A body is on the queue of its
    /// launch, and says nothing about the clocks: no number of its own joins it to a call.
    pub(crate) fn bodies(&mut self, now_ns: Option<i64>, out: &mut Output<'_>) {
        for (graph, body, launch) in self.graph_bodies.take(now_ns) {
            let Some(launch) = launch else {
                self.without_any_call(body, out);
                continue;
            };
            let work = DeviceWork {
                queue: launch.queue.unwrap_or(body.queue),
                ..body
            };
            let slot = self.launches.slots.get_mut(&launch.correlation);
            match slot.map(|slot| &mut slot.content) {
                Some(SlotContent::Launched(launch)) => {
                    write_work(launch, None, work, &mut self.graph_nodes, out)
                }
                // The record of the call may still come.
                Some(SlotContent::PendingWork(_)) if now_ns.is_some() => {
                    self.graph_bodies.wait(graph, body, &self.bounds);
                }
                Some(SlotContent::PendingWork(known)) => known.more.push(work),
                Some(SlotContent::PendingCall(call)) => {
                    let call = *call;
                    self.launch_body(call, launch.correlation, work, out);
                }
                _ => self.without_any_call(work, out),
            }
        }
    }

    /// Writes the launch of a graph of which a body is the first work.
    fn launch_body(
        &mut self,
        call: LabelledCall,
        correlation: Correlation,
        mut body: DeviceWork,
        out: &mut Output<'_>,
    ) {
        let mut launch = self.open_launch(call, correlation, &mut body, out);
        write_work(&mut launch, None, body, &mut self.graph_nodes, out);
        self.put(correlation, SlotContent::Launched(launch), out);
    }

    /// Takes a piece of work of the call with a correlation.
    fn work_of_call(&mut self, correlation: Correlation, work: DeviceWork, out: &mut Output<'_>) {
        let alone = LaunchedWork {
            first: work,
            more: Vec::new(),
        };
        let slot = self.launches.slots.get_mut(&correlation);
        match slot.map(|slot| &mut slot.content) {
            // A profiled kernel runs several times, and the first of its records counts.
            Some(SlotContent::Launched(launch)) if launch.is_profiled => {}
            Some(SlotContent::Launched(launch)) => {
                write_work(launch, Some(correlation), work, &mut self.graph_nodes, out);
            }
            Some(SlotContent::PendingWork(known)) if known.more.len() < self.bounds.pieces => {
                known.more.push(work);
            }
            Some(SlotContent::PendingWork(_)) => {
                if let Some(full) = self.launches.take(correlation) {
                    self.give_up(full, out);
                }
                self.put(correlation, SlotContent::PendingWork(alone), out);
            }
            Some(SlotContent::PendingCall(call)) => {
                let call = *call;
                self.launch(call, correlation, alone, out);
            }
            Some(SlotContent::PendingPlace(_)) | None => {
                self.put(correlation, SlotContent::PendingWork(alone), out);
            }
        }
    }

    /// Takes the queue that the call with a correlation waits for, or puts something on.
    pub fn queue_of_call(
        &mut self,
        correlation: Correlation,
        queue: QueueId,
        out: &mut Output<'_>,
    ) {
        self.place_of_call(correlation, StreamPlace { queue, correlation }, out);
    }

    /// Takes the occurrence of an event that the call with a correlation waits for. The event was recorded before.
    pub fn event_of_call(
        &mut self,
        correlation: Correlation,
        occurrence: EventOccurrence,
        out: &mut Output<'_>,
    ) {
        if let Some(record) = self.event_waits.record_of(occurrence) {
            self.place_of_call(correlation, record, out);
        }
    }

    /// Takes the place up to which the call with a correlation waits, or where it puts something.
    fn place_of_call(
        &mut self,
        correlation: Correlation,
        place: StreamPlace,
        out: &mut Output<'_>,
    ) {
        let queue = place.queue;
        let slot = self.launches.slots.get_mut(&correlation);
        match slot.map(|slot| &mut slot.content) {
            Some(SlotContent::PendingCall(pending)) => {
                pending.call.queue = CallQueue::Known(queue);
                let call = pending.call;
                let class = self.class(&call);
                if class.is_wait() || class.is_put_on_stream() {
                    self.launches.slots.remove(&correlation);
                    self.call_on_queue(&call, queue, Some(place.correlation), out);
                } else if let Some(graph) = call.graph {
                    self.graph_bodies.queue(graph, correlation, queue);
                }
            }
            Some(_) => {}
            None => {
                self.put(correlation, SlotContent::PendingPlace(place), out);
            }
        }
    }

    /// Puts content into its slot, and gives up the oldest of what waits.
    fn put(&mut self, correlation: Correlation, content: SlotContent, out: &mut Output<'_>) {
        self.launches.put(correlation, content);
        while let Some(content) = self.launches.trimmed(&self.bounds) {
            self.give_up(content, out);
        }
    }

    /// Tells whether a call may have launched work.
    fn may_launch(&self, class: FunctionClass, correlation: Option<Correlation>) -> bool {
        class.submission_kind().is_some()
            || correlation.is_some_and(|correlation| self.other_launches.contains(&correlation))
    }

    /// Tells whether a call of a class is more likely the launch of a correlation's work than what has come under that correlation. A
    /// call that only waits is not, nor one of a function that is not known.
    fn takes_place(&self, class: FunctionClass, other: &SlotContent) -> bool {
        let is_launch = |class: FunctionClass| class.submission_kind().is_some();
        is_launch(class)
            || match other {
                SlotContent::PendingCall(pending) => !is_launch(self.class(&pending.call)),
                SlotContent::PendingPlace(_) => true,
                SlotContent::PendingWork(_) | SlotContent::Launched(_) => false,
            }
    }

    /// Returns the label that a call's thread was in when the call started; a loss where that is forgotten.
    fn label_of(&self, call: &ApiCall, out: &mut Output<'_>) -> Option<LabelId> {
        let label = self.labels.at(call.thread, call.span.start_ns);
        label.unwrap_or_else(|_| {
            let reason = "the record of the call came too late";
            out.ledger.add(LossKind::LabelsOfWork, 1, reason);
            None
        })
    }

    /// Takes a call that waits for a queue, or puts on it what leaves no record of the device. `up_to` is the call that put on the queue
    /// what is awaited last: the call itself, or that of an event.
    fn call_on_queue(
        &mut self,
        call: &ApiCall,
        queue: QueueId,
        up_to: Option<Correlation>,
        out: &mut Output<'_>,
    ) {
        let class = self.class(call);
        if class.is_wait() {
            return self.wait_of_host(call, queue, up_to, out);
        }
        let kind = class.submission_kind().unwrap_or_default();
        self.submission(call, queue, kind, 0, out);
        if let Some(lost) = class.unrecorded_work() {
            let reason = "their calls are recorded, and not what the device did for them";
            out.ledger.add(lost, 1, reason);
        }
    }

    /// Writes a launch, of which a call and its first work have come, and keeps it for more of its work.
    fn launch(
        &mut self,
        call: LabelledCall,
        correlation: Correlation,
        LaunchedWork { mut first, more }: LaunchedWork,
        out: &mut Output<'_>,
    ) {
        let mut launch = self.open_launch(call, correlation, &mut first, out);
        write_work(
            &mut launch,
            Some(correlation),
            first,
            &mut self.graph_nodes,
            out,
        );
        if let (true, Some(submission)) = (launch.is_profiled, launch.submission) {
            self.profiled_launches.push(ProfiledLaunch {
                correlation,
                submission,
                work: first,
            });
        } else {
            for work in more {
                write_work(
                    &mut launch,
                    Some(correlation),
                    work,
                    &mut self.graph_nodes,
                    out,
                );
            }
        }
        self.put(correlation, SlotContent::Launched(launch), out);
    }

    /// Writes the submission of a launch, whose first work is this, and returns the launch without any work.
    fn open_launch(
        &mut self,
        LabelledCall { call, label }: LabelledCall,
        correlation: Correlation,
        first: &mut DeviceWork,
        out: &mut Output<'_>,
    ) -> Launch {
        let class = self.class(&call);
        first.of_graph |= class == FunctionClass::LaunchGraph;
        let kind = class.submission_kind().unwrap_or(match first.kind {
            _ if first.of_graph => SubmissionKind::Graph,
            DeviceWorkKind::Kernel { .. } => SubmissionKind::Kernel,
            DeviceWorkKind::Transfer { .. } | DeviceWorkKind::PageMove { .. } => {
                SubmissionKind::Transfer
            }
            DeviceWorkKind::Graph => SubmissionKind::Graph,
        });
        let queue = first.queue;
        let submission = self.submission(&call, queue, kind, first.of_graph.into(), out);
        let copies_and_waits = class == FunctionClass::CopyAndWait;
        let is_awaited = copies_and_waits && first.is_awaited();
        if copies_and_waits {
            let wait = HostWait {
                call,
                queue,
                submission: Some(submission).filter(|_| is_awaited),
            };
            self.host_wait(&wait, out);
        }
        self.launches.functions_with_work.insert(call.function);
        let latest = &mut self.launches.latest_start_ns;
        *latest = (*latest).max(Some(call.span.start_ns));
        Launch {
            submission: Some(submission),
            call: Some(call),
            is_awaited,
            label,
            is_profiled: self.profiled.remove(&correlation),
            ..Launch::default()
        }
    }

    /// Writes the submission of a call that put something on a queue.
    fn submission(
        &mut self,
        call: &ApiCall,
        queue: QueueId,
        kind: SubmissionKind,
        command_buffers: u32,
        out: &mut Output<'_>,
    ) -> SubmissionId {
        let id = out.ids.next_submission(call.span.start_ns);
        let row = Submission {
            id,
            process: out.process,
            queue,
            kind,
            thread: call.thread,
            start_ns: call.span.start_ns,
            duration_ns: call.span.duration_ns,
            command_buffers,
            function: self.function_name(call),
        };
        rows::submission(out.tables, row);
        if let Some(correlation) = call.correlation {
            let place = StreamPlace { queue, correlation };
            (self.event_waits).submitted(place, id, out.now_ns, &self.bounds);
            self.host_waits.submitted(place, id);
        }
        id
    }

    /// Writes the row of a call.
    pub(crate) fn host_call(&self, call: &ApiCall, queue: Option<QueueId>, out: &mut Output<'_>) {
        let row = self.host_call_row(call, out);
        rows::host_call(out.tables, HostCall { queue, ..row });
    }

    /// Writes work that no number joins to a call. A single node of a graph is not a launch of the graph.
    fn without_any_call(&mut self, work: DeviceWork, out: &mut Output<'_>) {
        let first = DeviceWork {
            of_graph: work.of_graph && work.kind == DeviceWorkKind::Graph,
            ..work
        };
        let more = Vec::new();
        self.without_call(LaunchedWork { first, more }, out);
    }

    /// Writes work whose call is not known.
    fn without_call(&mut self, LaunchedWork { first, more }: LaunchedWork, out: &mut Output<'_>) {
        let count = 1 + more.len() as u64;
        // No call launches moves of pages.
        if !matches!(first.kind, DeviceWorkKind::PageMove { .. }) {
            let reason = out.reasons.without_call;
            out.ledger.add(LossKind::HostCallsOfWork, count, reason);
        }
        let mut launch = Launch::default();
        for work in std::iter::once(first).chain(more) {
            write_work(&mut launch, None, work, &mut self.graph_nodes, out);
        }
        close_graph(launch, out);
    }

    /// Writes what a slot holds, as the other half does not come.
    fn give_up(&mut self, content: SlotContent, out: &mut Output<'_>) {
        match content {
            SlotContent::PendingCall(pending) => {
                let queue = match pending.call.queue {
                    CallQueue::Known(queue) => Some(queue),
                    CallQueue::ComesLater | CallQueue::Unknown => None,
                };
                if let Some(correlation) = pending.call.correlation {
                    self.profiled.remove(&correlation);
                }
                self.host_call(&pending.call, queue, out);
            }
            SlotContent::PendingWork(work) => self.without_call(work, out),
            SlotContent::PendingPlace(_) => {}
            SlotContent::Launched(launch) => close_graph(launch, out),
        }
    }

    /// Writes all that waits: nothing more comes. `missing` is the reason why work of a launch never came, where it is lost.
    pub(crate) fn finish_launches(&mut self, missing: Option<&'static str>, out: &mut Output<'_>) {
        self.bodies(None, out);
        let captures = self.stream_captures.periods();
        let without_rows = self.launches.functions_without_rows();
        for content in self.launches.take_all() {
            if let (SlotContent::PendingCall(pending), Some(reason)) = (&content, missing)
                && let Some(lost) = self.never_came(&pending.call, &captures, &without_rows)
                && !self.launches.take_unjoined(&lost)
            {
                out.ledger.add(lost, 1, reason);
            }
            self.give_up(content, out);
        }
    }

    /// Returns what a call launched of which nothing came; `None` where it launched nothing, or that is not known. No transfers
    /// come of the functions in `without_rows`.
    fn never_came(
        &self,
        call: &ApiCall,
        captures: &crate::stream_captures::Periods,
        without_rows: &FxHashSet<FunctionId>,
    ) -> Option<LossKind> {
        let class = self.class(call);
        let kind = class
            .submission_kind()
            .filter(|_| !class.is_put_on_stream())?;
        let start_ns = call.span.start_ns;
        if ![0, UNKNOWN_RESULT].contains(&call.result) || captures.contain(start_ns) {
            return None;
        }
        // A kernel always leaves a record, and one may still have been running long after others had ended. Copies of nothing and empty
        // graphs leave none: of these, only what was called after all work that came is lost. The profilers of other tools often
        // leave out the work of graphs, which are hardly ever empty.
        let always_leaves_work = kind == SubmissionKind::Kernel
            || kind == SubmissionKind::Graph && self.launches.counts_all_graphs;
        let is_late = Some(start_ns) > self.launches.latest_start_ns;
        let is_lost = always_leaves_work || is_late && !without_rows.contains(&call.function);
        is_lost.then_some(match kind {
            SubmissionKind::Kernel => LossKind::Dispatches,
            SubmissionKind::Graph => LossKind::CommandBuffers,
            _ => LossKind::Transfers,
        })
    }
}

/// Writes the row of a piece of work. `correlation` is the number that joins it to its call.
#[inline]
fn write_work(
    launch: &mut Launch,
    correlation: Option<Correlation>,
    mut work: DeviceWork,
    nodes: &mut GraphNodes,
    out: &mut Output<'_>,
) {
    work.of_graph |= launch.graph.is_some();
    if let Some(span) = work.span {
        out.observer.ran(span);
        if let (Some(call), Some(correlation)) = (&launch.call, correlation) {
            out.observer.joined(Joined {
                call,
                correlation,
                is_awaited: launch.is_awaited,
                queue: work.queue,
                span,
            });
        }
    }
    let command_buffer = work.of_graph.then(|| add_to_graph(launch, &work, out));
    let of_launch = || match work.graph_node {
        Some(node) => {
            let called_ns = launch.call.map(|call| call.span.start_ns);
            let tables = (&mut *out.labels, &mut *out.ledger, &mut *out.tables);
            nodes.ran(node, (launch.label, called_ns), out.process, tables)
        }
        None => launch.label,
    };
    let label = work.label.or_else(of_launch);
    let place = WorkPlace {
        command_buffer,
        submission: launch.submission.filter(|_| command_buffer.is_none()),
        position: launch.pieces,
        label,
        graph_node: work.graph_node.map(|node| node.0),
        ..WorkPlace::new(work.queue, work.span)
    };
    launch.pieces += 1;
    let lost = match work.kind {
        DeviceWorkKind::Kernel { kernel, groups } => {
            out.ids.dispatches += 1;
            rows::dispatch(out.tables, place, kernel, groups, None);
            LossKind::DispatchTimes
        }
        DeviceWorkKind::Transfer {
            kind,
            bytes,
            host_memory,
        } => {
            let facts = TransferFacts {
                kind,
                bytes,
                host_memory,
                ..TransferFacts::default()
            };
            rows::transfer(out.tables, place, facts);
            LossKind::TransferTimes
        }
        DeviceWorkKind::PageMove { kind, bytes } => {
            let facts = TransferFacts {
                kind,
                bytes,
                host_memory: Some(MemoryPlace::Managed),
                ..TransferFacts::default()
            };
            rows::transfer(out.tables, place, facts);
            LossKind::TransferTimes
        }
        DeviceWorkKind::Graph => {
            rows::opaque_work(out.tables, place, OpaqueWorkKind::Graph);
            LossKind::OpaqueWorkTimes
        }
    };
    if work.span.is_none() {
        let reason = match launch.is_profiled {
            true => {
                "profiled: the tracing library delivers no times of what is run again and again"
            }
            false => out.reasons.untimed,
        };
        out.ledger.add(lost, 1, reason);
    }
}

/// Adds a piece of work to the command buffer of its graph, which is made for the first piece; returns its id.
fn add_to_graph(launch: &mut Launch, work: &DeviceWork, out: &mut Output<'_>) -> CommandBufferId {
    let graph = launch.graph.get_or_insert_with(|| {
        Box::new(GraphLaunch {
            id: out.ids.next_command_buffer(),
            queue: work.queue,
            covered: CoveringSpan::default(),
            dispatches: 0,
            transfers: 0,
        })
    });
    if let Some(span) = work.span {
        graph.covered.add(span);
    }
    match work.kind {
        DeviceWorkKind::Kernel { .. } => graph.dispatches += 1,
        DeviceWorkKind::Transfer { .. } | DeviceWorkKind::PageMove { .. } => graph.transfers += 1,
        DeviceWorkKind::Graph => {}
    }
    graph.id
}

/// Writes the command buffer of a graph of which nothing more comes.
fn close_graph(launch: Launch, out: &mut Output<'_>) {
    let Some(graph) = launch.graph else { return };
    let row = rows::graph_launch(
        graph.id,
        (out.process, graph.queue),
        launch.submission,
        graph.covered.span(),
        (graph.dispatches, graph.transfers),
    );
    rows::command_buffer(
        out.tables,
        CommandBuffer {
            label: launch.label,
            host_functions: launch.call.and_then(|call| call.host_functions),
            ..row
        },
    );
}
