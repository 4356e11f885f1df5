//! The kinds that columns hold as texts.

pub use gapscope_model::{
    Access, Condition, CounterUnit, HOST_CODE_DOMAINS, HostCallKind, MarkerScope, MemoryEvent,
    MemoryPlace, NameSource, OpaqueWorkKind, StreamKind, SubmissionKind, THERMAL_STATE, Timing,
    TransferKind, UNKNOWN_RESULT,
};
