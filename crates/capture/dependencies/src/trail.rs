//! Defines [`Trail`], the bytes that each invocation of a dispatch reaches. `trails` makes them for fusion, which
//! proves with them that kernels may be merged.

use crate::kernel::machine::Run;
use crate::kernel::reason::Reason;

/// The bytes that single invocations reach through a descriptor.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct BindingTrail {
    /// Number of the set.
    pub set: u32,
    /// Number of the binding.
    pub binding: u32,
    /// Index of the descriptor in the array of the binding.
    pub element: u32,
    /// Runs (consecutive invocations that reach bytes in equal steps) of reads.
    pub reads: Vec<Run>,
    /// Runs of writes.
    pub writes: Vec<Run>,
    /// Whether atomic operations reach the buffer.
    pub atomic: bool,
    /// Why more than the runs may be reached; `None` if they are exact.
    pub unknown: Option<Reason>,
}

/// The bytes that single invocations of a dispatch reach.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Trail {
    /// Number of invocations of a workgroup by axis.
    pub local_size: [u32; 3],
    /// Number of invocations in all workgroups.
    pub invocations: u64,
    /// The bytes behind each descriptor that has a buffer, in order.
    pub bindings: Vec<BindingTrail>,
    /// Why memory outside of the bindings may be reached; `None` if it is not.
    pub beyond: Option<Reason>,
}
