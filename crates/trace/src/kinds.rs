//! The enumerations of the model that columns hold as texts. They are defined in `gapscope_model`, because hooks (the
//! recorders inside the program) use them too.

pub use gapscope_model::instructions::NoLine;
pub use gapscope_model::kernel_profile::{MetricSection, MetricUnit};
pub use gapscope_model::{
    Access, AllocatorMemoryKind, Condition, CounterUnit, FrameKind, HOST_CODE_DOMAINS,
    HardwareCounter, HostCallKind, MODULE_DOMAIN, MarkerScope, MemoryEvent, MemoryPlace,
    NOT_RECORDED_CALL, NameSource, OPERATOR_DOMAIN, OPERATOR_RANGE_DOMAIN, OpaqueWorkKind,
    SampleSource, StreamKind, SubmissionKind, THERMAL_STATE, ThreadState, Timing, TransferKind,
    UNKNOWN_RESULT,
};
