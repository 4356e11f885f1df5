//! The functions of `mlx_native::kernel_profile`, for the profile of the process; [`crate::kernel_profile`]
//! re-exports them.

use crate::kernel_profile::environment::{profile_command_buffers, profile_dispatches};
use crate::kernel_profile::{self, global};

pub use crate::kernel_profile::ProfileEntry;

/// A dispatch in mlx-native's form, so that literals of its six fields compile unchanged.
/// [`kernel_profile::DispatchEntry`], which [`dump_dispatches`] returns, also has the kernel, the command buffer, the
/// geometry and unknown times. Two zeros, and an end before its start, are taken as unknown.
///
/// ```
/// use gapscope_sdk::mlx::kernel_profile::{self, DispatchEntry};
///
/// kernel_profile::reset();
/// kernel_profile::record_dispatch(DispatchEntry {
///     cb_label: "layer.attn[0]".into(),
///     op_kind: "RmsNorm",
///     dispatch_index: 0,
///     gpu_ns: 100,
///     start_gpu_ns: 1_000,
///     end_gpu_ns: 1_100,
/// });
/// kernel_profile::record_dispatch(DispatchEntry { op_kind: "Sdpa", ..Default::default() });
/// let dispatches = &kernel_profile::dump_dispatches()[0].1;
/// assert_eq!(dispatches[0].gpu_ns, Some(100));
/// ```
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct DispatchEntry {
    /// The label of the command buffer.
    pub cb_label: String,
    /// The kind of the operation.
    pub op_kind: &'static str,
    /// The position among the dispatches of the command buffer, from 0.
    pub dispatch_index: u32,
    /// The duration in nanoseconds.
    pub gpu_ns: u64,
    /// The time at which the device started the dispatch.
    pub start_gpu_ns: u64,
    /// The time at which the dispatch ended.
    pub end_gpu_ns: u64,
}

impl From<DispatchEntry> for kernel_profile::DispatchEntry {
    fn from(entry: DispatchEntry) -> kernel_profile::DispatchEntry {
        kernel_profile::DispatchEntry {
            cb_label: entry.cb_label.into(),
            op_kind: entry.op_kind.into(),
            dispatch_index: entry.dispatch_index,
            gpu_ns: Some(entry.gpu_ns),
            start_gpu_ns: Some(entry.start_gpu_ns),
            end_gpu_ns: Some(entry.end_gpu_ns),
            ..kernel_profile::DispatchEntry::default()
        }
    }
}

/// Returns true if command buffers are to be profiled: `GAPSCOPE_PROFILE_CB` or `MLX_PROFILE_CB` is set to something
/// other than `0` and the empty text, or [`is_dispatch_enabled`]. The environment is read once.
///
/// ```
/// # use gapscope_sdk::kernel_profile;
/// if kernel_profile::is_enabled() {
///     kernel_profile::record("step", 1_000);
/// }
/// ```
pub fn is_enabled() -> bool {
    profile_command_buffers() || is_dispatch_enabled()
}

/// Returns true if single dispatches are to be profiled: `GAPSCOPE_PROFILE_DISPATCH` or `MLX_PROFILE_DISPATCH` is set
/// as for [`is_enabled`], which it includes.
///
/// ```
/// # use gapscope_sdk::kernel_profile;
/// // Without the variables:
/// assert!(!kernel_profile::is_dispatch_enabled());
/// ```
pub fn is_dispatch_enabled() -> bool {
    profile_dispatches()
}

/// Adds the GPU time of one command buffer (or of any piece of work) under a label.
///
/// ```
/// # use gapscope_sdk::kernel_profile;
/// kernel_profile::record("output_head", 42_000);
/// ```
pub fn record(label: &str, gpu_ns: u64) {
    global().record(label, gpu_ns);
}

/// Adds one dispatch: mlx-native's [`DispatchEntry`], or [`kernel_profile::DispatchEntry`].
///
/// ```
/// use gapscope_sdk::kernel_profile::{self, DispatchEntry};
///
/// kernel_profile::record_dispatch(DispatchEntry {
///     cb_label: "layer 3".into(),
///     kernel: "softmax".into(),
///     groups: Some([64, 1, 1]),
///     gpu_ns: Some(12_000),
///     ..DispatchEntry::default()
/// });
/// ```
pub fn record_dispatch(entry: impl Into<kernel_profile::DispatchEntry>) {
    global().record_dispatch(entry.into());
}

/// Adds a sample of both clocks: the host's time and the device's ticks at the same moment. Take at least one before
/// and one after the work; their times need not be on the same clock.
///
/// ```
/// # use gapscope_sdk::kernel_profile;
/// kernel_profile::reset();
/// kernel_profile::record_clock_pair(1_000_000, 24);
/// assert_eq!(kernel_profile::convert_gpu_ticks_to_ns(36), None, "one sample has no slope");
/// kernel_profile::record_clock_pair(2_000_000, 48);
/// assert_eq!(kernel_profile::convert_gpu_ticks_to_ns(36), Some(1_500_000));
/// ```
pub fn record_clock_pair(cpu_ns: u64, gpu_ticks: u64) {
    global().record_clock_pair(cpu_ns, gpu_ticks);
}

/// Returns the host's time of a device tick; `None` until two samples are there (or one and
/// [`Profile::set_nanoseconds_per_tick`](crate::kernel_profile::Profile::set_nanoseconds_per_tick)).
/// [`Profile::convert`](crate::kernel_profile::Profile::convert) also returns the error.
///
/// ```
/// # use gapscope_sdk::kernel_profile;
/// kernel_profile::reset();
/// assert_eq!(kernel_profile::convert_gpu_ticks_to_ns(36), None, "ticks are never given out as nanoseconds");
/// ```
pub fn convert_gpu_ticks_to_ns(ticks: u64) -> Option<u64> {
    global().convert(ticks).ok().map(|time| time.ns)
}

/// Forgets everything that was recorded, at one moment for all threads. The environment's switches stay.
///
/// ```
/// # use gapscope_sdk::kernel_profile;
/// kernel_profile::reset(); // after the warm-up
/// ```
pub fn reset() {
    global().reset();
}

/// Returns the labels with their times; the greatest sum is first, and equal sums are ordered by name. Nothing is
/// forgotten.
///
/// ```
/// # use gapscope_sdk::kernel_profile;
/// for (label, times) in kernel_profile::dump() {
///     println!("{label}: {} x, {} ns, half of them within {} ns", times.count, times.total_ns, times.p50_ns);
/// }
/// ```
pub fn dump() -> Vec<(String, ProfileEntry)> {
    global().dump()
}

/// Returns the dispatches by the label of their command buffer. Labels are in the order in which they first came, and
/// dispatches in the order in which they were recorded, or nearly so if several threads recorded them.
/// [`kernel_profile::DispatchEntry::command_buffer`] distinguishes instances of one label.
///
/// ```
/// # use gapscope_sdk::kernel_profile;
/// for (label, dispatches) in kernel_profile::dump_dispatches() {
///     for dispatch in dispatches {
///         println!("{label} {}: {} {:?}", dispatch.dispatch_index, dispatch.kernel, dispatch.gpu_ns);
///     }
/// }
/// ```
pub fn dump_dispatches() -> Vec<(String, Vec<kernel_profile::DispatchEntry>)> {
    global().dump_dispatches()
}
