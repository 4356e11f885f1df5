//! Collects GPU times by label (a name that the program gives to part of its work) and by kernel inside the program.
//!
//! The program (or an integration such as `gapscope_sdk::wgpu`) records what it measured. The profile adds it up, keeps
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
mod contents;
mod drift;
mod entry;
mod environment;
mod global;
mod handle;
mod info;
mod limits;
mod profile;
mod rows;
mod sequence;
mod shard;
mod snapshot;
#[cfg(feature = "trace")]
mod trace;

pub use crate::host_clock::host_now_ns;
pub use aggregate::ProfileEntry;
pub use drift::{Drift, Verdict};
pub use entry::{
    CommandBufferEntry, CommandBufferId, DeviceInfo, DispatchEntry, KernelEntry, PassEntry,
    Sampling,
};
pub use environment::{
    COMMAND_BUFFER_VARIABLES, DISPATCH_VARIABLES, is_dispatch_enabled, is_enabled,
};
pub use gapscope_model::clock::{ClockPair, HostTime, NoTime, PairedClock as Clock};
pub use gapscope_model::{Loss, LossKind};
pub use global::{
    convert_gpu_ticks_to_ns, dump, dump_dispatches, global, record, record_clock_pair,
    record_dispatch, reset,
};
pub use handle::ProfileHandle;
pub use limits::Limits;
pub use profile::Profile;
#[cfg_attr(not(feature = "wgpu"), allow(unused_imports))]
pub(crate) use profile::Source;
#[cfg_attr(not(feature = "wgpu"), allow(unused_imports))]
pub(crate) use rows::ScopeEntry;
pub use snapshot::Snapshot;
#[cfg(feature = "trace")]
pub use trace::{TraceError, WriteError};

#[cfg(test)]
mod tests;
