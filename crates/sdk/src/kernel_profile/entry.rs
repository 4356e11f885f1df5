//! What is recorded, and what comes out.

use super::ProfileEntry;
use serde::Serialize;
use std::borrow::Cow;

/// Tells command buffers apart, also those with equal labels. Made by [`super::Profile::command_buffer`].
///
/// ```
/// let profile = gapscope_sdk::kernel_profile::Profile::new();
/// assert_ne!(profile.command_buffer(), profile.command_buffer());
/// ```
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize)]
#[serde(transparent)]
pub struct CommandBufferId(pub(super) u64);

/// One dispatch. Times are nanoseconds of the host's monotonic clock.
///
/// Fields that are not known stay as [`Default`] has them. A time is known when both ends are, or when `gpu_ns` alone
/// says how long it took; an end before its start and two zeros (which some drivers deliver for "nothing") are taken
/// as unknown and counted.
///
/// ```
/// use gapscope_sdk::kernel_profile::{DispatchEntry, Profile};
///
/// let profile = Profile::new();
/// profile.record_dispatch(DispatchEntry {
///     kernel: "softmax".into(),
///     unknown_because: "the GPU failed to sample its clock".into(),
///     ..DispatchEntry::default()
/// });
/// let snapshot = profile.snapshot();
/// assert!(snapshot.kernels.is_empty(), "an unknown time is not a time of 0");
/// assert_eq!(snapshot.losses[0].reason, "the GPU failed to sample its clock");
/// ```
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize)]
pub struct DispatchEntry {
    /// Label of its command buffer.
    pub cb_label: Cow<'static, str>,
    /// Its command buffer.
    pub command_buffer: Option<CommandBufferId>,
    /// What kind of operation it is, as the program names them: `Sdpa`, `RmsNorm`, ….
    pub op_kind: Cow<'static, str>,
    /// Name of the kernel that it ran.
    pub kernel: Cow<'static, str>,
    /// Its place among the dispatches of its command buffer, from 0.
    pub dispatch_index: u32,
    /// Workgroups (threadgroups) in x, y, z.
    pub groups: Option<[u32; 3]>,
    /// Threads of a workgroup.
    pub group_size: Option<[u32; 3]>,
    /// How long it took; from start and end where they are given.
    pub gpu_ns: Option<u64>,
    /// When the device started it.
    pub start_gpu_ns: Option<u64>,
    /// When it ended.
    pub end_gpu_ns: Option<u64>,
    /// Why its times are not known, where they are not: the losses say it. Not kept with the row.
    #[serde(skip)]
    pub unknown_because: Cow<'static, str>,
}

/// One pass (an encoder): dispatches of one command buffer that belong together. Times are as those of a
/// [`DispatchEntry`].
///
/// ```
/// use gapscope_sdk::kernel_profile::{PassEntry, Profile};
///
/// let profile = Profile::new();
/// profile.record_pass(PassEntry {
///     cb_label: "forward".into(),
///     label: "layer 3".into(),
///     dispatches: 4,
///     start_gpu_ns: Some(1_000),
///     end_gpu_ns: Some(9_000),
///     ..PassEntry::default()
/// });
/// assert_eq!(profile.snapshot().passes[0].1.total_ns, 8_000);
/// ```
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize)]
pub struct PassEntry {
    /// Label of its command buffer.
    pub cb_label: Cow<'static, str>,
    /// Its command buffer.
    pub command_buffer: Option<CommandBufferId>,
    /// Its own label.
    pub label: Cow<'static, str>,
    /// [`DispatchEntry::dispatch_index`] of its first dispatch.
    pub first_dispatch: u32,
    /// Dispatches in it.
    pub dispatches: u32,
    /// How long it took; from start and end where they are given.
    pub gpu_ns: Option<u64>,
    /// When the device started it.
    pub start_gpu_ns: Option<u64>,
    /// When it ended.
    pub end_gpu_ns: Option<u64>,
    /// Why its times are not known, where they are not.
    #[serde(skip)]
    pub unknown_because: Cow<'static, str>,
}

/// One command buffer. Times are nanoseconds of the host's monotonic clock. See
/// [`super::Profile::record_command_buffer`].
///
/// ```
/// # use gapscope_sdk::kernel_profile::CommandBufferEntry;
/// let known = CommandBufferEntry { label: "step".into(), dispatches: 12, ..CommandBufferEntry::default() };
/// assert_eq!(known.start_ns, None, "what is not given is not known");
/// ```
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize)]
pub struct CommandBufferEntry {
    /// Which it is.
    pub id: Option<CommandBufferId>,
    /// Its label.
    pub label: Cow<'static, str>,
    /// The queue that ran it, by a name.
    pub queue: Cow<'static, str>,
    /// When the call that submitted it started.
    pub submitted_ns: Option<u64>,
    /// When the device started it.
    pub start_ns: Option<u64>,
    /// When it ended.
    pub end_ns: Option<u64>,
    /// When the program was told that it had ended.
    pub seen_ns: Option<u64>,
    /// Dispatches in it, timed or not.
    pub dispatches: u32,
    /// Why its times are not known, where they are not.
    #[serde(skip)]
    pub unknown_because: Cow<'static, str>,
}

/// The times of a kernel.
///
/// ```
/// use gapscope_sdk::kernel_profile::{DispatchEntry, KernelEntry, Profile};
///
/// let profile = Profile::new();
/// profile.record_dispatch(DispatchEntry { kernel: "gemm".into(), gpu_ns: Some(7), ..DispatchEntry::default() });
/// let KernelEntry { name, times, .. } = &profile.snapshot().kernels[0];
/// assert_eq!((name.as_str(), times.count), ("gemm", 1));
/// ```
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct KernelEntry {
    /// Its name; what kind of operation it is where it has none.
    pub name: String,
    /// Its times.
    #[serde(flatten)]
    pub times: ProfileEntry,
}

/// How the GPU was sampled; every result says it.
///
/// ```
/// # use gapscope_sdk::kernel_profile::Sampling;
/// assert_eq!(Sampling::default().as_str(), "command-buffer");
/// ```
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Hash, Serialize)]
#[serde(rename_all = "kebab-case")]
#[non_exhaustive]
pub enum Sampling {
    /// Times of command buffers only.
    #[default]
    CommandBuffer,
    /// Times of passes (encoders), none of single dispatches.
    Pass,
    /// Times of each dispatch, as it runs.
    Dispatch,
    /// Times of each dispatch with a barrier after it: exact for each, an upper bound in sum.
    DispatchSerialised,
    /// No times: the device has none to give.
    None,
}

impl Sampling {
    /// Its text, as on the command line of gapscope.
    ///
    /// ```
    /// # use gapscope_sdk::kernel_profile::Sampling;
    /// assert_eq!(Sampling::DispatchSerialised.as_str(), "dispatch-serialised");
    /// ```
    pub const fn as_str(self) -> &'static str {
        match self {
            Sampling::CommandBuffer => "command-buffer",
            Sampling::Pass => "pass",
            Sampling::Dispatch => "dispatch",
            Sampling::DispatchSerialised => "dispatch-serialised",
            Sampling::None => "none",
        }
    }
}

/// The device that was profiled, for snapshots and traces.
///
/// ```
/// use gapscope_sdk::kernel_profile::{DeviceInfo, Profile};
///
/// let profile = Profile::new();
/// profile.set_device(DeviceInfo { api: "cuda".into(), name: "H200".into(), ..DeviceInfo::default() });
/// assert!(profile.snapshot().to_string().contains("H200"));
/// ```
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize)]
pub struct DeviceInfo {
    /// `vulkan`, `cuda`, `metal`.
    pub api: String,
    /// Its name.
    pub name: String,
    /// Driver and version.
    pub driver: String,
}

/// The reason that was given with an entry, else what its times show.
pub(super) fn because(given: &mut Cow<'static, str>, shown: &'static str) -> Cow<'static, str> {
    match std::mem::take(given) {
        empty if empty.is_empty() => Cow::Borrowed(shown),
        given => given,
    }
}

/// How long something took; why that is not known otherwise.
pub(super) fn duration(
    start_ns: Option<u64>,
    end_ns: Option<u64>,
    said_ns: Option<u64>,
) -> Result<u64, &'static str> {
    match (start_ns, end_ns) {
        (Some(0), Some(0)) => Err("the device delivered zeros"),
        (Some(start), Some(end)) if end < start => Err("it ends before it starts"),
        (Some(start), Some(end)) => Ok(end - start),
        _ => said_ns.ok_or("the device delivered none"),
    }
}
