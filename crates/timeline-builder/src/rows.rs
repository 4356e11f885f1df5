//! Writes rows of work: takes where work stands and what it is, and appends to the tables of a trace. Nothing else appends rows of
//! dispatches, transfers, opaque work, command buffers, submissions, dependencies, host calls or markers; `cargo xtask tidy` sees to it.

use gapscope_model::Span;
use gapscope_trace::ids::{
    BindingSetId, BufferId, CommandBufferId, KernelId, LabelId, ProcessId, QueueId, SubmissionId,
    ThreadId,
};
use gapscope_trace::tables::{
    CommandBuffer, Dependency, Dispatch, HostCall, HostCallKind, Marker, MarkerScope, MemoryPlace,
    OpaqueWorkKind, OpaqueWorkRow, Submission, Table, Tables, Timing, Transfer, TransferKind,
};
use serde::{Deserialize, Serialize};
use std::sync::Arc;

/// Where a piece of work stands, whatever it is.
#[derive(Debug, Clone, Copy)]
pub struct WorkPlace {
    /// The command buffer that it is in.
    pub command_buffer: Option<CommandBufferId>,
    /// The submission of work that is in no command buffer.
    pub submission: Option<SubmissionId>,
    /// Its position in either.
    pub position: u32,
    /// The queue that runs it.
    pub queue: QueueId,
    /// When it started; `None` where that is not known.
    pub start_ns: Option<i64>,
    /// How long it took; `None` where that is not known.
    pub duration_ns: Option<i64>,
    /// The innermost label around it.
    pub label: Option<LabelId>,
    /// The node of a graph that ran it.
    pub graph_node: Option<u64>,
}

impl WorkPlace {
    /// Returns the place of work that ran on a queue in `span`, and of which nothing else is known.
    #[inline]
    pub fn new(queue: QueueId, span: Option<Span>) -> WorkPlace {
        WorkPlace {
            command_buffer: None,
            submission: None,
            position: 0,
            queue,
            start_ns: span.map(|span| span.start_ns),
            duration_ns: span.map(|span| span.duration_ns),
            label: None,
            graph_node: None,
        }
    }
}

/// Writes a dispatch.
#[inline]
pub fn dispatch(
    tables: &mut Tables,
    place: WorkPlace,
    kernel: KernelId,
    [groups_x, groups_y, groups_z]: [Option<u32>; 3],
    bindings: Option<BindingSetId>,
) {
    tables.dispatches.push(Dispatch {
        command_buffer: place.command_buffer,
        position: place.position,
        queue: place.queue,
        kernel,
        start_ns: place.start_ns,
        duration_ns: place.duration_ns,
        groups_x,
        groups_y,
        groups_z,
        bindings,
        label: place.label,
        submission: place.submission,
        graph_node: place.graph_node,
    });
}

/// What a transfer does.
#[derive(Debug, Clone, Copy, Default)]
pub struct TransferFacts {
    /// Its kind.
    pub kind: TransferKind,
    /// Bytes written.
    pub bytes: Option<u64>,
    /// The buffer that is read.
    pub source: Option<BufferId>,
    /// The buffer that is written.
    pub destination: Option<BufferId>,
    /// The memory of the host's end.
    pub host_memory: Option<MemoryPlace>,
}

/// Writes a transfer.
#[inline]
pub fn transfer(tables: &mut Tables, place: WorkPlace, facts: TransferFacts) {
    tables.transfers.push(Transfer {
        command_buffer: place.command_buffer,
        position: place.position,
        queue: place.queue,
        kind: facts.kind,
        bytes: facts.bytes,
        start_ns: place.start_ns,
        duration_ns: place.duration_ns,
        source: facts.source,
        destination: facts.destination,
        label: place.label,
        submission: place.submission,
        host_memory: facts.host_memory,
        graph_node: place.graph_node,
    });
}

/// Writes opaque work, which is timed as a whole.
pub fn opaque_work(tables: &mut Tables, place: WorkPlace, kind: OpaqueWorkKind) {
    tables.opaque_work.push(OpaqueWorkRow {
        command_buffer: place.command_buffer,
        position: place.position,
        queue: place.queue,
        kind,
        start_ns: place.start_ns,
        duration_ns: place.duration_ns,
        label: place.label,
        submission: place.submission,
    });
}

/// Writes a command buffer.
pub fn command_buffer(tables: &mut Tables, row: CommandBuffer) {
    tables.command_buffers.push(row);
}

/// Returns the row of a graph launch: a command buffer whose times are those that its work covers. Where no
/// submission is known, it has the greatest id, which no submission has.
pub fn graph_launch(
    id: CommandBufferId,
    (process, queue): (ProcessId, QueueId),
    submission: Option<SubmissionId>,
    span: Option<Span>,
    (dispatches, transfers): (u32, u32),
) -> CommandBuffer {
    CommandBuffer {
        id,
        process,
        queue,
        submission: submission.unwrap_or(SubmissionId::UNKNOWN),
        start_ns: span.map(|span| span.start_ns),
        duration_ns: span.map(|span| span.duration_ns),
        seen_ns: None,
        timing: match span {
            Some(_) => Timing::Measured,
            None => Timing::Unknown,
        },
        dispatches,
        transfers,
        label: None,
        name: None,
        host_functions: None,
    }
}

/// Writes a submission.
#[inline]
pub fn submission(tables: &mut Tables, row: Submission) {
    tables.submissions.push(row);
}

/// Writes that a submission waits for another, or for a signal of the host; for what is not known where both are `None`.
pub fn dependency(
    tables: &mut Tables,
    submission: SubmissionId,
    waits_for: Option<SubmissionId>,
    host_signal_ns: Option<i64>,
) {
    tables.dependencies.push(Dependency {
        submission,
        waits_for,
        host_signal_ns,
    });
}

/// Returns the row of one call of a thread that lasted for `span`, succeeded and says nothing else.
pub fn one_host_call(
    process: ProcessId,
    thread: Option<ThreadId>,
    call: HostCallKind,
    span: Span,
    function: Option<Arc<str>>,
) -> HostCall {
    HostCall {
        process,
        thread,
        call,
        start_ns: span.start_ns,
        duration_ns: span.duration_ns,
        count: 1,
        busy_ns: span.duration_ns,
        queue: None,
        bytes: None,
        result: 0,
        function,
        waits_for: None,
    }
}

/// Writes a host call.
#[inline]
pub fn host_call(tables: &mut Tables, row: HostCall) {
    tables.host_calls.push(row);
}

/// Returns the row of a label in a scope of a process, without what only some labels have.
pub fn marker_row(
    process: ProcessId,
    scope: MarkerScope,
    label: LabelId,
    start_ns: Option<i64>,
    duration_ns: Option<i64>,
) -> Marker {
    Marker {
        process,
        scope,
        label,
        queue: None,
        thread: None,
        command_buffer: None,
        start_ns,
        duration_ns,
        domain: None,
        category: None,
        payload: None,
    }
}

/// Writes a label. Returns the index of its row.
pub fn marker(tables: &mut Tables, row: Marker) -> usize {
    let at = tables.markers.len();
    tables.markers.push(row);
    at
}

/// The span that several spans cover together, from the first start to the last end.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct CoveringSpan {
    /// The first start and the last end; `None` while nothing was taken in.
    edges_ns: Option<(i64, i64)>,
}

impl CoveringSpan {
    /// Takes in a span.
    #[inline]
    pub fn add(&mut self, span: Span) {
        self.add_edges(span.start_ns, span.end_ns());
    }

    /// Takes in all that another one covers.
    #[inline]
    pub fn join(&mut self, other: CoveringSpan) {
        if let Some((start_ns, end_ns)) = other.edges_ns {
            self.add_edges(start_ns, end_ns);
        }
    }

    /// Takes in the time from a start to an end.
    #[inline]
    fn add_edges(&mut self, start_ns: i64, end_ns: i64) {
        let (first, last) = self.edges_ns.unwrap_or((start_ns, end_ns));
        self.edges_ns = Some((first.min(start_ns), last.max(end_ns)));
    }

    /// Returns what is covered; `None` where nothing was taken in.
    pub fn span(&self) -> Option<Span> {
        let (start_ns, end_ns) = self.edges_ns?;
        Some(Span::between(start_ns, end_ns))
    }
}
