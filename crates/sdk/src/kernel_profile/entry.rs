//! The types of what programs record (dispatches, passes, command buffers) and of results. A time that is not known
//! is `None`.

use super::ProfileEntry;
use serde::Serialize;
use std::borrow::Cow;

/// The id of a command buffer, which distinguishes command buffers with equal labels.
/// [`super::Profile::command_buffer`] creates it.
///
/// ```
/// let profile = gapscope_sdk::kernel_profile::Profile::new();
/// assert_ne!(profile.command_buffer(), profile.command_buffer());
/// ```
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize)]
#[serde(transparent)]
pub struct CommandBufferId(pub(super) u64);

/// A dispatch. Times are nanoseconds of the host's monotonic clock.
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
    /// The label of the command buffer.
    pub cb_label: Cow<'static, str>,
    /// The command buffer.
    pub command_buffer: Option<CommandBufferId>,
    /// The kind of the operation in the program's words: `Sdpa`, `RmsNorm`, ….
    pub op_kind: Cow<'static, str>,
    /// The name of the kernel.
    pub kernel: Cow<'static, str>,
    /// The position among the dispatches of the command buffer, from 0.
    pub dispatch_index: u32,
    /// The numbers of workgroups (threadgroups) in x, y and z.
    pub groups: Option<[u32; 3]>,
    /// The threads of a workgroup in x, y and z.
    pub group_size: Option<[u32; 3]>,
    /// The duration; start and end give it, too. A duration that contradicts them makes all three unknown.
    pub gpu_ns: Option<u64>,
    /// The time at which the device started the dispatch.
    pub start_gpu_ns: Option<u64>,
    /// The time at which the dispatch ended.
    pub end_gpu_ns: Option<u64>,
    /// The reason for unknown times, which the losses show. It is not kept with the row.
    #[serde(skip)]
    pub unknown_because: Cow<'static, str>,
    #[doc(hidden)]
    #[serde(skip)]
    pub more_fields_may_come: (),
}

/// A pass (an encoder): dispatches of one command buffer that belong together. Times are as those of a
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
    /// The label of the command buffer.
    pub cb_label: Cow<'static, str>,
    /// The command buffer.
    pub command_buffer: Option<CommandBufferId>,
    /// The label of the pass.
    pub label: Cow<'static, str>,
    /// The [`DispatchEntry::dispatch_index`] of the first dispatch.
    pub first_dispatch: u32,
    /// The number of dispatches.
    pub dispatches: u32,
    /// The duration; start and end give it, too. A duration that contradicts them makes all three unknown.
    pub gpu_ns: Option<u64>,
    /// The time at which the device started the pass.
    pub start_gpu_ns: Option<u64>,
    /// The time at which the pass ended.
    pub end_gpu_ns: Option<u64>,
    /// The reason for unknown times.
    #[serde(skip)]
    pub unknown_because: Cow<'static, str>,
    #[doc(hidden)]
    #[serde(skip)]
    pub more_fields_may_come: (),
}

/// A command buffer. Times are nanoseconds of the host's monotonic clock. See
/// [`super::Profile::record_command_buffer`].
///
/// ```
/// # use gapscope_sdk::kernel_profile::CommandBufferEntry;
/// let known = CommandBufferEntry { label: "step".into(), dispatches: 12, ..CommandBufferEntry::default() };
/// assert_eq!(known.start_ns, None, "what is not given is not known");
/// ```
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize)]
pub struct CommandBufferEntry {
    /// The id of the command buffer.
    pub id: Option<CommandBufferId>,
    /// The label.
    pub label: Cow<'static, str>,
    /// The name of the queue that ran the command buffer.
    pub queue: Cow<'static, str>,
    /// The start of the call that submitted the command buffer.
    pub submitted_ns: Option<u64>,
    /// The time at which the device started the command buffer.
    pub start_ns: Option<u64>,
    /// The time at which the command buffer ended.
    pub end_ns: Option<u64>,
    /// The time at which the program learned of the end.
    pub seen_ns: Option<u64>,
    /// The number of dispatches, timed or not.
    pub dispatches: u32,
    /// The reason for unknown times.
    #[serde(skip)]
    pub unknown_because: Cow<'static, str>,
    #[doc(hidden)]
    #[serde(skip)]
    pub more_fields_may_come: (),
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
#[non_exhaustive]
pub struct KernelEntry {
    /// The name of the kernel, or else the kind of its operation.
    pub name: String,
    /// The times of the kernel.
    #[serde(flatten)]
    pub times: ProfileEntry,
}

/// The sampling mode of the GPU, which every result shows.
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
    /// Times of passes (encoders) and not of single dispatches.
    Pass,
    /// Times of each dispatch, as it runs.
    Dispatch,
    /// Times of each dispatch with a barrier after it. Each time is exact, and their sum is an upper bound.
    DispatchSerialised,
    /// No times, because the device has none.
    None,
}

impl Sampling {
    /// Returns the name, as on the command line of gapscope.
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
    /// The name of the device.
    pub name: String,
    /// The driver and its version.
    pub driver: String,
    #[doc(hidden)]
    #[serde(skip)]
    pub more_fields_may_come: (),
}

/// Returns the reason that was given with an entry, or else the reason that its times show.
pub(super) fn because(given: &mut Cow<'static, str>, shown: &'static str) -> Cow<'static, str> {
    match std::mem::take(given) {
        empty if empty.is_empty() => Cow::Borrowed(shown),
        given => given,
    }
}

/// The distance up to which a given duration and the distance of start and end are the same: two ticks of the slowest
/// clock, Apple's of 24 MHz, with what rounding adds.
const SAME_WITHIN_NS: u64 = 100;

/// The times of an entry that agree with each other.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct AgreedTimes {
    /// The start, if the place in time is known.
    pub start_ns: Option<u64>,
    pub duration_ns: u64,
}

impl AgreedTimes {
    /// Combines the times that were given, or returns the reason why they are unknown. Two zeros stand for missing
    /// times, and do not deny a duration.
    pub fn new(
        start_ns: Option<u64>,
        end_ns: Option<u64>,
        given_ns: Option<u64>,
    ) -> Result<AgreedTimes, &'static str> {
        let agreed = |start_ns, duration_ns| {
            Ok(AgreedTimes {
                start_ns,
                duration_ns,
            })
        };
        match (start_ns, end_ns, given_ns) {
            (Some(0), Some(0), Some(given)) if given > 0 => agreed(None, given),
            (Some(0), Some(0), _) => Err("the device delivered zeros"),
            (Some(start), Some(end), _) if end < start => Err("it ends before it starts"),
            (Some(start), Some(end), Some(given))
                if given.abs_diff(end - start) > SAME_WITHIN_NS =>
            {
                Err("its duration contradicts its start and end")
            }
            (Some(start), Some(end), _) => agreed(Some(start), end - start),
            (Some(start), None, Some(given)) => agreed(Some(start), given),
            (None, Some(end), Some(given)) => agreed(end.checked_sub(given), given),
            (None, None, Some(given)) => agreed(None, given),
            (_, _, None) => Err("the device delivered none"),
        }
    }

    /// Returns the end, if the place in time is known.
    pub fn end_ns(self) -> Option<u64> {
        self.start_ns
            .map(|start| start.saturating_add(self.duration_ns))
    }
}
