//! The functions of `mlx_native::kernel_profile`: the profile of the process. [`crate::kernel_profile`] has them too.

use crate::kernel_profile::environment::{profile_command_buffers, profile_dispatches};
use crate::kernel_profile::{DispatchEntry, ProfileEntry, global};

/// Whether command buffers shall be profiled: `GAPSCOPE_PROFILE_CB` or `MLX_PROFILE_CB` is set to something other
/// than `0` and the empty text, or [`is_dispatch_enabled`]. The environment is read once.
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

/// Whether single dispatches shall be profiled: `GAPSCOPE_PROFILE_DISPATCH` or `MLX_PROFILE_DISPATCH`, as for
/// [`is_enabled`], which it includes.
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

/// Adds one dispatch.
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
pub fn record_dispatch(entry: DispatchEntry) {
    global().record_dispatch(entry);
}

/// Adds a sample of both clocks: the host's time and the device's ticks at the same moment. Take one before and one
/// after the work at least; their times need not be the same clock's.
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

/// The host's time of a device tick; `None` while it is not known, which is until two samples are there (or one and
/// [`Profile::set_nanoseconds_per_tick`](crate::kernel_profile::Profile::set_nanoseconds_per_tick)). [`Profile::convert`](crate::kernel_profile::Profile::convert) says how exact it is.
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

/// The labels with their times, the longest in sum first, equal ones by name. Nothing is forgotten.
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

/// The dispatches by the label of their command buffer: labels in the order in which they came first, dispatches in
/// the order in which they were recorded, nearly so where several threads did. [`DispatchEntry::command_buffer`] tells instances of one label apart.
///
/// ```
/// # use gapscope_sdk::kernel_profile;
/// for (label, dispatches) in kernel_profile::dump_dispatches() {
///     for dispatch in dispatches {
///         println!("{label} {}: {} {:?}", dispatch.dispatch_index, dispatch.kernel, dispatch.gpu_ns);
///     }
/// }
/// ```
pub fn dump_dispatches() -> Vec<(String, Vec<DispatchEntry>)> {
    global().dump_dispatches()
}
