//! The events that hooks (gapscope's libraries inside the recorded program) write for the session (the process of
//! `gapscope record`), each of which is one record of the spool: what the program made, called and submitted, and
//! when its work ran.
//!
//! Host times are nanoseconds of the monotonic clock. Device times are raw ticks, which the session maps with
//! [`CommonEvent::ClockSample`]s, unless the device's clock is [`ClockSource::Host`].
//!
//! Events that every API has are [`CommonEvent`]s; the hooks for Vulkan and CUDA also have events of their own.

mod activity;
mod command;
mod cuda;
mod encoding;
mod every_hook;
mod label;
mod packed;
mod vulkan;

pub use activity::Activity;
pub use command::{Command, Op};
pub use cuda::{
    ActivityBatch, CudaEvent, DeviceProperties, FunctionSamples, LaunchShape, PoolEdge, PoolState,
    heap,
};
pub use encoding::EventGroup;
pub use every_hook::{BindingAccess, ClockSource, CommonEvent, Object, SourceFormat};
pub use gapscope_model::{
    Api, GraphChange, HostCallKind, LossKind, MemoryPlace, OpaqueWorkKind, SampleSource,
    StreamKind, TransferKind,
};
pub use gapscope_model::{BETWEEN_POLLS_NS, OverheadKind, Span, WaitKind};
pub use label::{LabelEdge, LabelScope, Layer, Payload};
pub use packed::{Packer, Torn, unpack};
pub use vulkan::{
    Binding, Instance, Outcome, PerformanceCounter, PerformanceUnit, SemaphoreValue,
    SubmitFunction, VulkanEvent,
};

/// The query index of a command that is not timed.
pub const NO_QUERY: u32 = u32::MAX;
/// The value of a timestamp that the device has not delivered.
pub const NO_TICKS: u64 = u64::MAX;

/// An event, as decoded from a record of the spool; the variants are the groups of events by who writes them.
#[derive(Debug, Clone, PartialEq)]
pub enum Event<'a> {
    /// An event of any API.
    Common(CommonEvent<'a>),
    /// An event of the Vulkan layer.
    Vulkan(VulkanEvent<'a>),
    /// An event of the CUDA library.
    Cuda(CudaEvent<'a>),
}

impl<'a> From<CommonEvent<'a>> for Event<'a> {
    fn from(event: CommonEvent<'a>) -> Self {
        Event::Common(event)
    }
}

impl<'a> From<VulkanEvent<'a>> for Event<'a> {
    fn from(event: VulkanEvent<'a>) -> Self {
        Event::Vulkan(event)
    }
}

impl<'a> From<CudaEvent<'a>> for Event<'a> {
    fn from(event: CudaEvent<'a>) -> Self {
        Event::Cuda(event)
    }
}
