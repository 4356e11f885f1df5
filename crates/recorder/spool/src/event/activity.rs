//! What a tracing library of the driver reports afterwards, many at once ([`super::CudaEvent::Activities`]).

use super::{OverheadKind, Span};
use crate::ids;

/// One thing that happened. The thread that wrote it has nothing to do with it, and neither order nor delay are
/// promised: an entry may be older than one of a batch before it.
///
/// What belongs together has the same `correlation`: the host call, and the work on the device that it caused (all
/// nodes of a graph have that of the call that launched the graph). Correlations are unique in a process until they
/// wrap.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Activity {
    /// A kernel ran.
    Kernel {
        /// What and where: [`super::CudaEvent::Launch`].
        launch: ids::Launch,
        /// When; `None`: the library did not deliver its times.
        span: Option<Span>,
        /// The call that launched it.
        correlation: ids::Correlation,
        /// It is a node of a graph.
        of_graph: bool,
    },
    /// A copy or a fill ran on the device.
    Transfer {
        /// What and where: [`super::CudaEvent::Route`].
        route: ids::Route,
        /// Bytes written.
        bytes: u64,
        /// As for a kernel.
        span: Option<Span>,
        /// The call that caused it.
        correlation: ids::Correlation,
        /// It is a node of a graph.
        of_graph: bool,
    },
    /// A whole graph ran: its nodes are not distinguished.
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
        /// The queue that was waited for, or that waits ([`WaitKind::QueueForEvent`]), or any of the context that was
        /// waited for ([`WaitKind::HostForContext`]).
        queue: ids::Queue,
        /// The event that was waited for.
        event: ids::CudaEvent,
        /// The occurrence of the event ([`Activity::EventRecord`]) that was waited for; 0: not known.
        occurrence: u64,
        /// When the host waited. For a queue: when the wait was put on it.
        span: Option<Span>,
        /// The call.
        correlation: ids::Correlation,
    },
    /// An event was put on a queue (cudaEventRecord): it occurs when the work before it is done.
    EventRecord {
        /// Which event.
        event: ids::CudaEvent,
        /// Tells its occurrences apart; 0: not known.
        occurrence: u64,
        /// The queue.
        queue: ids::Queue,
        /// The call.
        correlation: ids::Correlation,
    },
    /// Time that the driver or the tracing itself took.
    Overhead {
        /// For what.
        kind: OverheadKind,
        /// The thread that paid.
        thread: ids::Thread,
        /// When.
        span: Option<Span>,
    },
    /// A call put on a queue what leaves no record of the device, such as a wait for a value in memory.
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
        /// When.
        span: Option<Span>,
        /// The call that put it on the queue, or launched its graph.
        correlation: ids::Correlation,
    },
}

/// Numbers an enum for [`super::Packer`]; numbers that are not listed are its last variant.
macro_rules! numbered {
    ($(#[$meta:meta])* $name:ident { $($(#[$doc:meta])* $variant:ident,)+ }) => {
        $(#[$meta])*
        #[derive(Debug, Clone, Copy, PartialEq, Eq)]
        #[repr(u8)]
        pub enum $name { $($(#[$doc])* $variant,)+ }

        impl $name {
            /// All of them, in the order of their numbers from 0.
            pub const ALL: &[$name] = &[$($name::$variant,)+];

            /// The one of this number.
            pub fn from_number(number: u8) -> $name {
                *Self::ALL.get(usize::from(number)).unwrap_or(&Self::Unknown)
            }
        }
    };
}

numbered! {
    /// Who waited for what.
    WaitKind {
        /// The host for an event.
        HostForEvent,
        /// A queue for an event of another: the host goes on.
        QueueForEvent,
        /// The host for a queue.
        HostForQueue,
        /// The host for all queues of a context.
        HostForContext,
        /// Another kind.
        Unknown,
    }
}
