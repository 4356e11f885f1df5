//! What both sides of a trace mean by the same word.
//!
//! Hooks say through the spool what happened, the trace says it to analyses. The kinds of transfers, calls, submissions
//! and losses are the same on both sides, so they are defined here, once; `gapscope-spool` and `gapscope-trace`
//! re-export them. The loss ledger is kept by whoever records: the session, and the SDK by itself.
#![forbid(unsafe_code)]
#![warn(missing_docs)]

pub mod clock;
mod conditions;
pub mod cuda;
mod hardware;
pub mod instructions;
pub mod kernel_names;
pub mod kernel_profile;
mod kind;
mod kinds;
mod loss;
pub mod memory_maps;
pub mod python;
mod span;

pub use conditions::{Condition, THERMAL_STATE};
pub use hardware::HardwareCounter;
pub use kinds::{
    Access, Api, CounterUnit, FrameKind, HOST_CODE_DOMAINS, HostCallKind, MODULE_DOMAIN,
    MarkerScope, MemoryEvent, MemoryPlace, NameSource, OPERATOR_DOMAIN, OpaqueWorkKind,
    SampleSource, StreamKind, SubmissionKind, ThreadState, Timing, TransferKind, UNKNOWN_RESULT,
};
pub use loss::{Ledger, Loss, LossKind};
pub use span::{BETWEEN_POLLS_NS, OverheadKind, Span};
