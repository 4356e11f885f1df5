//! Follows which bytes single invocations of a dispatch reach.

use std::sync::Arc;

use gapscope_capture::Capture;
use gapscope_capture::model::Dispatch;

use crate::footprint::{Limits, Reason};
use crate::window::Window;

/// Consecutive invocations, in the order of workgroups and of invocations in them, whose offsets grow in equal steps.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Run {
    /// Number of the first invocation.
    pub first: u64,
    /// Number of invocations.
    pub count: u64,
    /// Offset of the first invocation, from the first bound byte.
    pub offset: u64,
    /// Bytes from one offset to the next, modulo 2⁶⁴.
    pub step: u64,
    /// Bytes that each invocation reaches at once.
    pub bytes: u32,
}

impl Run {
    /// Returns each invocation with its offset.
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
    /// Index among the descriptors of the binding.
    pub element: u32,
    /// Runs that are read.
    pub reads: Vec<Run>,
    /// Runs that are written.
    pub writes: Vec<Run>,
    /// Atomic operations reach the buffer.
    pub atomic: bool,
    /// Why more may be reached than this; none: the runs are exact.
    pub unknown: Option<Reason>,
}

/// What single invocations of a dispatch reach.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Trail {
    /// Invocations of a workgroup.
    pub local_size: [u32; 3],
    /// Number of invocations in all workgroups.
    pub invocations: u64,
    /// What is reached through each descriptor that has a buffer, in order.
    pub bindings: Vec<BindingTrail>,
    /// Why other memory may be reached; none: it is not.
    pub beyond: Option<Reason>,
}

/// Takes the index of a dispatch among [`Capture::executed`], and what its invocations reach or why that is not
/// known.
pub type TrailSink<'f> = dyn FnMut(usize, &Dispatch, Result<Arc<Trail>, Reason>) + 'f;

/// Follows each invocation of the dispatches of a capture that `wanted` selects by their index among
/// [`Capture::executed`]. A kernel with the same constants, buffers and workgroups is followed once.
pub fn trails(
    capture: &Capture,
    limits: Limits,
    wanted: &dyn Fn(usize) -> bool,
    found: &mut TrailSink<'_>,
) {
    Window::follow(capture, limits, wanted, found);
}
