//! What a tracing library of the driver reports afterwards, many at once ([`super::Event::Activities`]).

use super::{OverheadKind, WaitKind};
use serde::{Deserialize, Serialize};

/// One thing that happened. The thread that wrote it has nothing to do with it, and neither order nor delay are
/// promised: an entry may be older than one of a batch before it.
///
/// What belongs together has the same `correlation`: the host call, and the work on the device that it caused (all
/// nodes of a graph have that of the call that launched the graph). Correlations are unique in a process until they
/// wrap at 2^32; 0: none.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Activity {
    /// A kernel ran.
    Kernel {
        /// What and where: [`super::Event::Launch`].
        launch: u32,
        /// When; `None`: the library did not deliver its times.
        span: Option<Span>,
        /// The call that launched it.
        correlation: u32,
        /// The node of a graph that it is.
        node: Option<GraphNode>,
    },
    /// A copy or a fill ran on the device.
    Transfer {
        /// What and where: [`super::Event::Route`].
        route: u32,
        /// Bytes written.
        bytes: u64,
        /// As for a kernel.
        span: Option<Span>,
        /// The call that caused it.
        correlation: u32,
        /// The node of a graph that it is.
        node: Option<GraphNode>,
    },
    /// A whole graph ran: its nodes are not told apart.
    GraphRun {
        /// The library's id of the executable graph.
        graph: u32,
        /// The queue that it was launched on.
        queue: u32,
        /// From the begin of its first node to the end of its last.
        span: Option<Span>,
        /// The call that launched it.
        correlation: u32,
    },
    /// The host, or a queue, waited.
    Wait {
        /// Who waited for what.
        kind: WaitKind,
        /// The queue that was waited for, or that waits ([`WaitKind::QueueForEvent`]), or any of the context that was
        /// waited for ([`WaitKind::HostForContext`]); 0: none, or not known.
        queue: u32,
        /// The event that was waited for; 0: none, or the library does not say.
        event: u32,
        /// The occurrence of the event ([`Activity::EventRecord`]) that was waited for; 0: not known.
        occurrence: u64,
        /// When the host waited. For a queue: when the wait was put on it.
        span: Option<Span>,
        /// The call.
        correlation: u32,
    },
    /// An event was put on a queue (cudaEventRecord): it occurs when the work before it is done.
    EventRecord {
        /// Which event.
        event: u32,
        /// Tells its occurrences apart; 0: not known.
        occurrence: u64,
        /// The queue.
        queue: u32,
        /// The call.
        correlation: u32,
    },
    /// Time that the driver or the tracing itself took.
    Overhead {
        /// For what.
        kind: OverheadKind,
        /// The system's id of the thread that paid; 0: none.
        thread: u32,
        /// When.
        span: Option<Span>,
        /// The call in which it happened; 0: none.
        correlation: u32,
    },
}

/// Polls ([`super::Event::Polled`]) of a thread that follow each other so closely are one wait.
pub const BETWEEN_POLLS_NS: i64 = 100_000;

/// Known times on the host's monotonic clock.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub struct Span {
    /// Begin.
    pub start_ns: i64,
    /// Never negative, unless it was read from damage; of work on the device never 0.
    pub duration_ns: i64,
}

impl Span {
    /// The end.
    pub fn end_ns(&self) -> i64 {
        self.start_ns.saturating_add(self.duration_ns)
    }
}

/// A node of an executable graph, with the library's ids.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct GraphNode {
    /// The executable graph.
    pub graph: u32,
    /// The node, unique in the process.
    pub node: u64,
}
