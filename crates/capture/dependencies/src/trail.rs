//! The bytes that single invocations of a dispatch reach.

use crate::kernel::machine::Run;
use crate::kernel::reason::Reason;

/// The bytes that single invocations reach through a descriptor.
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

/// The bytes that single invocations of a dispatch reach.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Trail {
    /// Invocations of a workgroup.
    pub local_size: [u32; 3],
    /// Number of invocations in all workgroups.
    pub invocations: u64,
    /// The bytes behind each descriptor that has a buffer, in order.
    pub bindings: Vec<BindingTrail>,
    /// Why other memory may be reached; none: it is not.
    pub beyond: Option<Reason>,
}
