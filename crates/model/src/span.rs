//! Intervals of time, and the kinds of waits and overheads that take it.

use serde::{Deserialize, Serialize};

/// The greatest time between two polls of a thread that count as one wait.
pub const BETWEEN_POLLS_NS: i64 = 100_000;

/// An interval of nanoseconds on the host's monotonic clock.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub struct Span {
    /// Start of the interval.
    pub start_ns: i64,
    /// Length of the interval: never negative, unless read from a damaged file; never 0 for work on the device.
    pub duration_ns: i64,
}

impl Span {
    /// Times beyond this value, in either direction, are impossible: differences of two times must fit, too.
    pub const MAX_NS: i64 = i64::MAX / 4;

    /// Returns the span from one time to a later one.
    pub fn between(start_ns: i64, end_ns: i64) -> Span {
        Span {
            start_ns,
            duration_ns: end_ns.saturating_sub(start_ns),
        }
    }

    /// Returns the span between two times of a file that another tool wrote; `None` where they are impossible: the
    /// end lies before the start, or a time is beyond [`Self::MAX_NS`].
    pub fn checked(start_ns: i64, end_ns: i64) -> Option<Span> {
        let is_sane = |ns: i64| (-Self::MAX_NS..=Self::MAX_NS).contains(&ns);
        (is_sane(start_ns) && is_sane(end_ns) && start_ns <= end_ns)
            .then(|| Span::between(start_ns, end_ns))
    }

    /// Returns the end of the interval.
    pub fn end_ns(&self) -> i64 {
        self.start_ns.saturating_add(self.duration_ns)
    }
}

/// Defines an enum whose variants have the numbers from 0; the last is `Unknown`, which other numbers read as.
macro_rules! numbered {
    ($(#[$meta:meta])* $name:ident { $($(#[$doc:meta])* $variant:ident,)+ }) => {
        $(#[$meta])*
        #[derive(Debug, Clone, Copy, PartialEq, Eq)]
        #[repr(u8)]
        pub enum $name { $($(#[$doc])* $variant,)+ }

        impl $name {
            /// All of them, in the order of their numbers from 0.
            pub const ALL: &[$name] = &[$($name::$variant,)+];

            /// Returns the variant with this number.
            pub fn from_number(number: u8) -> $name {
                *Self::ALL.get(usize::from(number)).unwrap_or(&Self::Unknown)
            }
        }
    };
}

numbered! {
    /// The two sides of a wait.
    WaitKind {
        /// The host for an event.
        HostForEvent,
        /// A queue for an event of another queue, while the host continues.
        QueueForEvent,
        /// The host for a queue.
        HostForQueue,
        /// The host for all queues of a context.
        HostForContext,
        /// An unknown kind.
        Unknown,
    }
}

numbered! {
    /// The cause of time that is not the program's own work.
    OverheadKind {
        /// The driver compiled code.
        Compiler,
        /// Tracing: buffers were delivered.
        BufferFlush,
        /// Tracing: a launch was instrumented.
        Instrumentation,
        /// Tracing: memory or queues of its own were made.
        Resource,
        /// The runtime loaded modules.
        ModuleLoading,
        /// The driver loaded a function at its first use.
        FunctionLoading,
        /// The driver's command buffer was full: the host waited for the device.
        CommandBufferFull,
        /// Tracing: a buffer was asked for.
        BufferRequest,
        /// Tracing: unified memory was prepared for it.
        UnifiedMemory,
        /// Another kind.
        Unknown,
    }
}

impl OverheadKind {
    /// Returns true if tracing caused the time, so that a program that is not recorded does not have it.
    pub fn is_tracing(self) -> bool {
        use OverheadKind::*;
        matches!(
            self,
            BufferFlush | Instrumentation | Resource | BufferRequest | UnifiedMemory
        )
    }

    /// Returns the kind by the name that CUPTI, Nsight Systems or Kineto gives it, such as
    /// `CUPTI_ACTIVITY_OVERHEAD_COMMAND_BUFFER_FULL` or `Command Buffer Full`: the first in the list whose words are
    /// in the name.
    pub fn from_tool_name(name: &str) -> OverheadKind {
        let plain = name.to_ascii_uppercase().replace(' ', "_");
        let kinds = [
            ("COMPILER", OverheadKind::Compiler),
            ("MODULE_LOADING", OverheadKind::ModuleLoading),
            ("FUNCTION_LOADING", OverheadKind::FunctionLoading),
            ("COMMAND_BUFFER_FULL", OverheadKind::CommandBufferFull),
            ("BUFFER_FLUSH", OverheadKind::BufferFlush),
            ("BUFFER_REQUEST", OverheadKind::BufferRequest),
            ("INSTRUMENTATION", OverheadKind::Instrumentation),
            ("RESOURCE", OverheadKind::Resource),
            ("UVM", OverheadKind::UnifiedMemory),
            ("CUPTI", OverheadKind::Instrumentation),
        ];
        let found = kinds.into_iter().find(|(word, _)| plain.contains(word));
        found.map_or(OverheadKind::Unknown, |(_, kind)| kind)
    }
}
