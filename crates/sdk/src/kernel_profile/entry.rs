//! What is recorded, and what comes out.

use super::ProfileEntry;
use serde::Serialize;
use std::borrow::Cow;

/// Tells command buffers apart, also those with equal labels. Made by [`super::Profile::command_buffer`].
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize)]
#[serde(transparent)]
pub struct CommandBufferId(pub(super) u64);

/// One dispatch. Times are nanoseconds of the host's monotonic clock.
///
/// Fields that are not known stay as [`Default`] has them. A time is known when both ends are, or when `gpu_ns` alone
/// says how long it took; an end before its start and two zeros (which some drivers deliver for "nothing") are taken
/// as unknown and counted.
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
    /// When the device began it.
    pub start_gpu_ns: Option<u64>,
    /// When it ended.
    pub end_gpu_ns: Option<u64>,
}

/// One command buffer. Times are nanoseconds of the host's monotonic clock.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize)]
pub struct CommandBufferEntry {
    /// Which it is.
    pub id: Option<CommandBufferId>,
    /// Its label.
    pub label: Cow<'static, str>,
    /// The queue that ran it, by a name.
    pub queue: Cow<'static, str>,
    /// When the call that submitted it began.
    pub submitted_ns: Option<u64>,
    /// When the device began it.
    pub start_ns: Option<u64>,
    /// When it ended.
    pub end_ns: Option<u64>,
    /// When the program was told that it had ended.
    pub seen_ns: Option<u64>,
    /// Dispatches in it, timed or not.
    pub dispatches: u32,
}

/// The times of a kernel.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct KernelEntry {
    /// Its name; what kind of operation it is where it has none.
    pub name: String,
    /// Its times.
    #[serde(flatten)]
    pub times: ProfileEntry,
}

/// How the GPU was sampled; every result says it.
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
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize)]
pub struct DeviceInfo {
    /// `vulkan`, `cuda`, `metal`.
    pub api: String,
    /// Its name.
    pub name: String,
    /// Driver and version.
    pub driver: String,
}
