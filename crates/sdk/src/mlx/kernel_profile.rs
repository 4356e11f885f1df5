//! The functions of `mlx_native::kernel_profile` for the profile of the process, and its form of dispatches, whose
//! times are plain numbers.

use crate::kernel_profile;

pub use crate::kernel_profile::{
    ProfileEntry, convert_gpu_ticks_to_ns, dump, dump_dispatches, is_dispatch_enabled, is_enabled,
    record, record_clock_pair, record_dispatch, reset,
};

/// A dispatch in mlx-native's form, so that literals of its six fields compile unchanged.
/// [`kernel_profile::DispatchEntry`], which [`dump_dispatches`] returns, also has the kernel, the command buffer, the
/// geometry and unknown times. A time of 0 is one that was not given, as in `..Default::default()`: a duration without
/// start and end stays a duration.
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
        let has_place = entry.end_gpu_ns > 0;
        kernel_profile::DispatchEntry {
            cb_label: entry.cb_label.into(),
            op_kind: entry.op_kind.into(),
            dispatch_index: entry.dispatch_index,
            gpu_ns: (entry.gpu_ns > 0).then_some(entry.gpu_ns),
            start_gpu_ns: (has_place || entry.start_gpu_ns > 0).then_some(entry.start_gpu_ns),
            end_gpu_ns: has_place.then_some(entry.end_gpu_ns),
            ..kernel_profile::DispatchEntry::default()
        }
    }
}
