//! The kinds that columns hold as texts.

pub use gapscope_model::{
    Access, Condition, CounterUnit, FrameKind, HOST_CODE_DOMAINS, HostCallKind, MarkerScope,
    MemoryEvent, MemoryPlace, NameSource, OpaqueWorkKind, SampleSource, StreamKind, SubmissionKind,
    THERMAL_STATE, ThreadState, Timing, TransferKind, UNKNOWN_RESULT,
};
