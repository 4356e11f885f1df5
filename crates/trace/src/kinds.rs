//! The kinds that columns hold as texts.

pub use gapscope_model::{
    Access, CounterUnit, HostCallKind, MarkerScope, MemoryEvent, MemoryPlace, NameSource,
    OpaqueWorkKind, StreamKind, SubmissionKind, Timing, TransferKind,
};
