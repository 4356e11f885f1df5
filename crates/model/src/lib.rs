//! The vocabulary that hooks, session, SDK and trace share: kinds of work, the ledger of losses, conversions of
//! clocks.
//!
//! Hooks, gapscope's libraries in recorded programs, report events through the spool (their log of events); the
//! session makes a trace of them, which analyses read. Kinds of transfers, calls,
//! submissions and losses are the same on both sides, so they are defined once, here; `gapscope-spool` and
//! `gapscope-trace` re-export them.
#![forbid(unsafe_code)]
#![warn(missing_docs)]

pub mod clock;
mod conditions;
pub mod cuda;
mod graphs;
mod hardware;
pub mod instructions;
pub mod kernel_names;
pub mod kernel_profile;
mod kind;
mod kinds;
mod loss;
pub mod memory_maps;
pub mod python;
pub mod secrets;
mod span;

pub use conditions::{Condition, THERMAL_STATE};
pub use graphs::{GraphChange, GraphId, GraphNodeId};
pub use hardware::HardwareCounter;
pub use kinds::{
    Access, AllocatorMemoryKind, Api, CounterUnit, FrameKind, HOST_CODE_DOMAINS, HostCallKind,
    MODULE_DOMAIN, MarkerScope, MemoryEvent, MemoryPlace, NOT_RECORDED_CALL, NameSource,
    OPERATOR_DOMAIN, OPERATOR_RANGE_DOMAIN, OpaqueWorkKind, SampleSource, StreamKind,
    SubmissionKind, ThreadState, Timing, TransferKind, UNKNOWN_RESULT,
};
pub use loss::{Ledger, Loss, LossKind};
pub use span::{BETWEEN_POLLS_NS, OverheadKind, Span, WaitKind};
