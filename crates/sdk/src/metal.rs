//! Captures Metal work with Apple's capture manager, and times command buffers, passes (encoders) and dispatches.
//!
//! On Apple's systems `Device`, `Queue`, `CommandBuffer` and `ComputePass` wrap a program's own Metal objects; they
//! hold only the code that calls Metal. All decisions are made here, behind the traits [`Commands`], [`Counters`] and
//! [`CaptureManager`], and are tested everywhere with fakes of these. **None of this has run on a Mac**: see
//! `docs/metal.md` for what was checked.
//!
//! - [`Batch`] times one command buffer, its passes and its dispatches, and gives them to a
//!   [`Profile`](crate::kernel_profile::Profile); it never waits unless it is told to.
//! - [`Ladder`] chooses what is timed on a device. Apple's own GPUs sample at stage boundaries only, so that a
//!   dispatch has a time of its own only in a pass of its own.
//! - [`MetalCapture`] is the [`Backend`](crate::capture::Backend) of captures.
//! - [`Sources`] keeps the code of kernels that are compiled at run time.

#[cfg(target_vendor = "apple")]
mod apple;
mod batch;
mod counters;
#[cfg(test)]
mod fake;
mod ladder;
mod sources;
#[cfg(test)]
mod tests;
mod time;

#[cfg(target_vendor = "apple")]
pub use crate::capture::metal::AppleCaptureManager;
pub use crate::capture::metal::{CaptureManager, ManagerError, MetalCapture, Object};
pub use crate::kernel_profile::ProfileHandle;
#[cfg(target_vendor = "apple")]
pub use apple::{CommandBuffer, ComputePass, Device, MetalError, Queue};
pub use batch::{Batch, Commands, Dispatch, Submitted};
pub use counters::{
    Clocks, CounterError, Counters, Resolved, SAMPLES_PER_BUFFER, SamplePair, SampleSlot, Sampled,
    Samples, Unsampled,
};
pub use ladder::{Ladder, Points, Wanted};
pub use sources::{DEBUG_FLAGS, Sources, is_debug};
pub use time::{CommandBufferError, Completion, GpuTime, UnknownTime};
