//! Activities: entries about device work, waits and overheads that a driver's tracing library (CUPTI) reports after
//! they happened. The CUDA library writes them in batches ([`super::CudaEvent::Activities`]), and the session unpacks
//! them. A graph is work that the program described once, as nodes, and launches as a whole.

use super::{OverheadKind, Span, WaitKind};
use crate::ids;

/// One activity. The thread that wrote the batch says nothing about it. Activities come in any order and late: one
/// may be older than those of an earlier batch.
///
/// A host call and the work on the device that it caused have the same `correlation` (all nodes of a graph have that
/// of the call that launched the graph). Correlations are unique in a process until they wrap.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Activity {
    /// A kernel ran.
    Kernel {
        /// Kernel, queue and parameters: [`super::CudaEvent::Launch`].
        launch: ids::Launch,
        /// Interval; `None` when the library did not deliver its times.
        span: Option<Span>,
        /// The call that launched it.
        correlation: ids::Correlation,
        /// The node of an executable graph that it is. A body of a conditional node has no correlation.
        node: ids::GraphNode,
    },
    /// A copy or a fill ran on the device.
    Transfer {
        /// Queue, kind and memory: [`super::CudaEvent::Route`].
        route: ids::Route,
        /// Bytes written.
        bytes: u64,
        /// Interval; `None` when the library did not deliver its times.
        span: Option<Span>,
        /// The call that caused it.
        correlation: ids::Correlation,
        /// The node of an executable graph that it is. A body of a conditional node has no correlation.
        node: ids::GraphNode,
    },
    /// A whole graph ran; its nodes are not told apart.
    GraphRun {
        /// The queue that it was launched on.
        queue: ids::Queue,
        /// From the start of its first node to the end of its last.
        span: Option<Span>,
        /// The call that launched it.
        correlation: ids::Correlation,
    },
    /// The host, or a queue, waited.
    Wait {
        /// Who waited for what.
        kind: WaitKind,
        /// The queue that was waited for, or that waits ([`WaitKind::QueueForEvent`]), or any queue of the context
        /// that was waited for ([`WaitKind::HostForContext`]).
        queue: ids::Queue,
        /// The event that was waited for.
        event: ids::CudaEvent,
        /// The occurrence of the event ([`Activity::EventRecord`]) that was waited for; 0 when unknown.
        occurrence: u64,
        /// The interval of the host's wait, or the moment when a queue's wait was enqueued.
        span: Option<Span>,
        /// The call.
        correlation: ids::Correlation,
    },
    /// An event was put on a queue (cudaEventRecord): it occurs when the work before it is done.
    EventRecord {
        /// The event.
        event: ids::CudaEvent,
        /// Tells occurrences of the event apart; 0 when unknown.
        occurrence: u64,
        /// The queue.
        queue: ids::Queue,
        /// The call.
        correlation: ids::Correlation,
    },
    /// The time that the driver or the tracing itself took.
    Overhead {
        /// The cause.
        kind: OverheadKind,
        /// The thread that paid for it.
        thread: ids::Thread,
        /// The interval.
        span: Option<Span>,
    },
    /// A call enqueued an item of which the device keeps no record, such as a wait for a value in memory.
    Submission {
        /// The queue.
        queue: ids::Queue,
        /// The call.
        correlation: ids::Correlation,
    },
    /// The host ran a function for a queue, which waited for its end.
    HostFunction {
        /// The queue.
        queue: ids::Queue,
        /// The thread that ran it.
        thread: ids::Thread,
        /// The interval.
        span: Option<Span>,
        /// The call that enqueued the function, or launched its graph.
        correlation: ids::Correlation,
    },
}
