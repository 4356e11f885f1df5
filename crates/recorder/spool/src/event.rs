//! What hooks write for the session.
//!
//! Host times are nanoseconds of the monotonic clock; device times are raw ticks, which the session maps with
//! [`CommonEvent::ClockSample`]s, unless the device's clock is [`ClockSource::Host`].
//!
//! What every API has is a [`CommonEvent`]; the hooks for Vulkan and CUDA have events of their own besides.

mod activity;
mod command;
mod cuda;
mod encoding;
mod every_hook;
mod label;
mod packed;
mod vulkan;

pub use activity::{Activity, WaitKind};
pub use command::{Command, Op};
pub use cuda::{CudaEvent, DeviceLimits, LaunchShape, PoolEdge, heap};
pub use encoding::EventGroup;
pub use every_hook::{BindingAccess, ClockSource, CommonEvent, Object, SourceFormat};
pub use gapscope_model::{
    Api, HostCallKind, LossKind, MemoryPlace, OpaqueWorkKind, SampleSource, StreamKind,
    TransferKind,
};
pub use gapscope_model::{BETWEEN_POLLS_NS, OverheadKind, Span};
pub use label::{LabelEdge, LabelScope, Layer, Payload};
pub use packed::{Packer, Torn, unpack};
pub use vulkan::{
    Binding, Instance, Outcome, PerformanceCounter, PerformanceUnit, SemaphoreValue, VulkanEvent,
};

/// No query: the command is not timed.
pub const NO_QUERY: u32 = u32::MAX;
/// A tick that the device has not delivered.
pub const NO_TICKS: u64 = u64::MAX;

/// A record of the spool.
#[derive(Debug, Clone, PartialEq)]
pub enum Event<'a> {
    /// Of any API.
    Common(CommonEvent<'a>),
    /// Of the Vulkan layer.
    Vulkan(VulkanEvent<'a>),
    /// Of the CUDA library.
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
