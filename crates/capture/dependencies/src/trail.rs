//! What single invocations of a dispatch reach.

use std::sync::Arc;

use gapscope_capture::Capture;
use gapscope_capture::model::Dispatch;

use crate::footprint::{Limits, Reason};
use crate::window::Window;

/// Invocations that follow each other, in the order of workgroups and of invocations in them, and reach places in equal steps.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Run {
    /// The number of the first invocation.
    pub first: u64,
    /// How many.
    pub count: u64,
    /// What the first one reaches: bytes from where the buffer is bound.
    pub offset: u64,
    /// Bytes from one to the next, modulo 2⁶⁴.
    pub step: u64,
    /// Bytes that each reaches at once.
    pub bytes: u32,
}

impl Run {
    /// Each invocation, and the offset that it reaches.
    pub fn each(self) -> impl Iterator<Item = (u64, u64)> {
        (0..self.count).map(move |at| {
            let offset = self.offset.wrapping_add(self.step.wrapping_mul(at));
            (self.first + at, offset)
        })
    }
}

/// What single invocations reach through a descriptor.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct BindingTrail {
    /// Number of the set.
    pub set: u32,
    /// Number of the binding.
    pub binding: u32,
    /// Which of the binding's descriptors.
    pub element: u32,
    /// What is read.
    pub reads: Vec<Run>,
    /// What is written.
    pub writes: Vec<Run>,
    /// Atomic operations reach it.
    pub atomic: bool,
    /// Why this is not all that may be reached; none: it is exact.
    pub unknown: Option<Reason>,
}

/// What single invocations of a dispatch reach.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Trail {
    /// Invocations of a workgroup.
    pub local_size: [u32; 3],
    /// Of all workgroups.
    pub invocations: u64,
    /// Through each descriptor that has a buffer, in their order.
    pub bindings: Vec<BindingTrail>,
    /// It may reach other memory: why.
    pub beyond: Option<Reason>,
}

/// Takes the place of a dispatch among [`Capture::executed`], and what its invocations reach, or why that is not known.
pub type Found<'f> = dyn FnMut(usize, &Dispatch, Result<Arc<Trail>, Reason>) + 'f;

/// Follows each invocation of those dispatches of a capture that `wanted` names by their place among [`Capture::executed`]. A kernel with
/// the same constants, buffers and workgroups is followed once.
pub fn trails(
    capture: &Capture,
    limits: Limits,
    wanted: &dyn Fn(usize) -> bool,
    found: &mut Found<'_>,
) {
    Window::follow(capture, limits, wanted, found);
}
