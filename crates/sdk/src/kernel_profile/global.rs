//! The profile of the process, and the functions that record to it and read it.

use super::{DispatchEntry, Profile, ProfileEntry};

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

/// Adds the GPU time of one command buffer (or of any piece of work) under a label.
///
/// ```
/// # use gapscope_sdk::kernel_profile;
/// kernel_profile::record("output_head", 42_000);
/// ```
pub fn record(label: &str, gpu_ns: u64) {
    global().record(label, gpu_ns);
}

/// Adds one dispatch: a [`DispatchEntry`], or mlx-native's ([`crate::mlx::kernel_profile::DispatchEntry`]).
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
pub fn record_dispatch(entry: impl Into<DispatchEntry>) {
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
/// [`DispatchEntry::command_buffer`] distinguishes instances of one label.
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
