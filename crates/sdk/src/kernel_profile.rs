//! Collects GPU times by label and by kernel inside the program.
//!
//! The program (or an integration such as [`crate::wgpu`]) records what it measured. The profile adds it up, keeps
//! single command buffers and dispatches up to a limit, and reports the times, their precision and what is missing:
//!
//! ```
//! use gapscope_sdk::kernel_profile::{self, DispatchEntry};
//!
//! kernel_profile::reset();
//! kernel_profile::record("layer.attention", 250_000); // GPU nanoseconds of a command buffer
//! kernel_profile::record_dispatch(DispatchEntry {
//!     cb_label: "layer.attention".into(),
//!     kernel: "softmax".into(),
//!     groups: Some([64, 1, 1]),
//!     start_gpu_ns: Some(1_000),
//!     end_gpu_ns: Some(81_000),
//!     ..DispatchEntry::default()
//! });
//! for (label, entry) in kernel_profile::dump() {
//!     println!("{label}: {} x, {} ns in all", entry.count, entry.total_ns);
//! }
//! println!("{}", kernel_profile::global().snapshot()); // as a table
//! ```
//!
//! **Cost.** `record` takes one of 64 locks, chosen by thread, looks the label up and adds to a histogram. This takes
//! some tens of nanoseconds, without a system call and, once a label is known, without an allocation.
//!
//! **Memory** is bounded by [`Limits`]: entries beyond them are still added up, and the losses count the rows that
//! are not kept.
//!
//! **Time.** Times are nanoseconds; those of single command buffers and dispatches are on the host's monotonic clock
//! ([`host_now_ns`]). An unknown time is `None` and counted as a loss with its reason, never 0. [`Clock`] maps raw
//! device ticks by two or more samples and states its error.
//!
//! **Drift** ([`Drift`]) compares the dispatches with their command buffers, in a stated direction.

mod aggregate;
mod drift;
mod entry;
pub(crate) mod environment;
mod handle;
mod info;
mod profile;
mod rows;
mod sequence;
mod shard;
mod snapshot;
#[cfg(feature = "trace")]
mod trace;

pub use crate::mlx::kernel_profile::{
    convert_gpu_ticks_to_ns, dump, dump_dispatches, is_dispatch_enabled, is_enabled, record,
    record_clock_pair, record_dispatch, reset,
};
pub use aggregate::ProfileEntry;
pub use drift::{Drift, Verdict};
pub use entry::{
    CommandBufferEntry, CommandBufferId, DeviceInfo, DispatchEntry, KernelEntry, PassEntry,
    Sampling,
};
pub use environment::{COMMAND_BUFFER_VARIABLES, DISPATCH_VARIABLES};
pub use gapscope_model::clock::{ClockPair, HostTime, NoTime, PairedClock as Clock};
pub use gapscope_model::{Loss, LossKind};
pub use handle::ProfileHandle;
pub use profile::{Limits, Profile};
pub use snapshot::Snapshot;
#[cfg(feature = "trace")]
pub use trace::TraceError;

/// Returns the profile of the process, which the functions of this module use.
///
/// ```
/// use gapscope_sdk::kernel_profile;
///
/// kernel_profile::record("in the process's own profile", 1);
/// assert!(kernel_profile::global().dump().iter().any(|(label, _)| label.starts_with("in the")));
/// ```
pub fn global() -> &'static Profile {
    static GLOBAL: std::sync::OnceLock<Profile> = std::sync::OnceLock::new();
    GLOBAL.get_or_init(Profile::new)
}

/// Returns the current time in nanoseconds of the host's monotonic clock, the time base of all rows.
///
/// ```
/// # use gapscope_sdk::kernel_profile::host_now_ns;
/// assert!(host_now_ns() <= host_now_ns());
/// ```
pub fn host_now_ns() -> u64 {
    // Metal's times are those of Mach's absolute clock, which stops while the machine sleeps.
    #[cfg(target_vendor = "apple")]
    return crate::metal::mach_now_ns();
    #[cfg(not(target_vendor = "apple"))]
    monotonic_now_ns()
}

#[cfg(not(target_vendor = "apple"))]
fn monotonic_now_ns() -> u64 {
    let now = rustix::time::clock_gettime(rustix::time::ClockId::Monotonic);
    nanoseconds(now.tv_sec, now.tv_nsec)
}

/// Converts seconds and nanoseconds of the system to nanoseconds. Times before the clock's zero become 0.
pub(crate) fn nanoseconds<T>(seconds: T, rest: T) -> u64
where
    u64: TryFrom<T>,
{
    let [seconds, rest] = [seconds, rest].map(|part| u64::try_from(part).unwrap_or(0));
    seconds.saturating_mul(1_000_000_000).saturating_add(rest)
}

#[cfg(test)]
mod tests;
