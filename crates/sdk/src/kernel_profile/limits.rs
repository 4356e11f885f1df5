//! The limits of what a profile keeps.

/// The limits of a profile. Entries beyond them are still added up if possible, and counted in the losses.
///
/// ```
/// use gapscope_sdk::kernel_profile::{Limits, Profile};
///
/// let sums_only = Profile::with_limits(Limits { dispatches: 0, command_buffers: 0, ..Limits::default() });
/// sums_only.record("step", 5);
/// assert_eq!(sums_only.dump()[0].1.count, 1);
/// ```
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Limits {
    /// The maximum number of names with times: labels, kernels and passes, each once for each thread that records it.
    /// A name takes about 10 KiB.
    pub names: usize,
    /// The maximum number of single dispatches and passes, of about 200 bytes each.
    pub dispatches: u64,
    /// The maximum number of single command buffers, of about 200 bytes each.
    pub command_buffers: u64,
    #[doc(hidden)]
    pub more_fields_may_come: (),
}

impl Default for Limits {
    /// Returns 16 384 names (160 MiB at most, and some KiB in most programs), 262 144 dispatches and passes and as
    /// many command buffers (100 MiB at most).
    fn default() -> Limits {
        Limits {
            names: 1 << 14,
            dispatches: 1 << 18,
            command_buffers: 1 << 18,
            more_fields_may_come: (),
        }
    }
}
