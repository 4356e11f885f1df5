//! The manifest of a trace: `trace.json`.

use crate::ids::{DeviceId, ProcessId, QueueId, ThreadId};
use schemars::JsonSchema;
use serde::{Deserialize, Deserializer, Serialize};
use std::collections::BTreeMap;

pub use gapscope_model::{Api, Loss};

/// The schema of a [`Loss`], whose type hooks share: something that was not recorded.
#[derive(JsonSchema)]
#[schemars(rename = "Loss")]
pub struct LossSchema {
    /// What was not recorded: `dispatch times`, `records`.
    pub what: String,
    /// How many of it.
    pub count: u64,
    /// Why.
    pub reason: String,
}

/// The version of the trace format that this crate writes.
pub const FORMAT_VERSION: u32 = 3;

/// What is known of a recording as a whole. Unknown fields of later minor additions are ignored.
#[derive(Debug, Clone, Default, PartialEq, Serialize, JsonSchema, Deserialize)]
#[serde(default)]
pub struct Manifest {
    /// Version of the format; a reader refuses a greater one.
    pub format_version: u32,
    /// Version of the gapscope that wrote it.
    pub gapscope_version: String,
    /// False while the recording runs, and after a session that was killed: `gapscope recover` completes it.
    pub complete: bool,
    /// The command that was recorded.
    pub command: Vec<String>,
    /// How the command ended; absent when it is not known.
    pub exit: Option<Exit>,
    /// How the GPU was sampled.
    pub sampling_mode: SamplingMode,
    /// Start of the recording on the host's monotonic clock.
    pub start_ns: i64,
    /// Its end.
    pub end_ns: i64,
    /// `start_ns` on the wall clock, nanoseconds since 1970; absent when it is not known, as of many imports.
    #[serde(deserialize_with = "known")]
    pub start_unix_ns: Option<i64>,
    /// The machine.
    pub host: Host,
    /// Processes that were recorded.
    pub processes: Vec<Process>,
    /// Threads that made host calls.
    pub threads: Vec<Thread>,
    /// Devices that they used.
    pub devices: Vec<Device>,
    /// Queues that they used.
    pub queues: Vec<Queue>,
    /// The rank of the processes, where this is the trace of one rank of a distributed program.
    pub rank: Option<Rank>,
    /// Ranks with traces of their own, in folders `rank=N` of this one; this one holds what has no rank.
    pub ranks: Vec<u32>,
    /// What was not recorded.
    #[schemars(with = "Vec<LossSchema>")]
    pub losses: Vec<Loss>,
    /// Sentences that every report prints.
    pub notes: Vec<String>,
    /// How often a second the stacks of threads that submit were sampled at first; absent where they were not.
    pub stack_rate_hz: Option<u32>,
    /// Conditions of the machine that could not be measured: they are unknown.
    pub unmeasured: Vec<Unmeasured>,
    /// True where its file was changed or damaged after it was written: any of this may be wrong.
    #[serde(skip)]
    pub altered: bool,
}

/// What could not be measured beside the program.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, JsonSchema, Deserialize)]
#[serde(default)]
pub struct Unmeasured {
    /// What: `memory pressure`.
    pub what: String,
    /// Why: a sentence without its full stop.
    pub reason: String,
}

impl Manifest {
    /// Moves the start of the recording.
    pub fn start_at(&mut self, start_ns: i64) {
        let later_ns = start_ns.saturating_sub(self.start_ns);
        self.start_unix_ns = self.start_unix_ns.map(|ns| ns.saturating_add(later_ns));
        self.start_ns = start_ns;
    }
}

/// Before the field could be absent, 0 said that it is not known.
fn known<'de, T, D>(from: D) -> Result<Option<T>, D::Error>
where
    T: Deserialize<'de> + Default + PartialEq,
    D: Deserializer<'de>,
{
    let value = Option::<T>::deserialize(from)?;
    Ok(value.filter(|value| *value != T::default()))
}

/// A rank of a distributed program.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, JsonSchema, Deserialize)]
#[serde(default)]
pub struct Rank {
    /// Its number, from 0.
    pub rank: u32,
    /// Its number among those of its machine; absent when it is not known.
    pub local_rank: Option<u32>,
    /// How many there are, on all machines.
    pub world_size: u32,
}

/// How the recorded command ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, JsonSchema, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Exit {
    /// With this code.
    Code(i32),
    /// By this signal.
    Signal(i32),
}

/// How the GPU was sampled.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Hash, Serialize, JsonSchema, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum SamplingMode {
    /// Times of command buffers only.
    CommandBuffer,
    /// Times of passes (Metal's encoders) as opaque work; none of single dispatches.
    Pass,
    /// Times of each dispatch, no barriers added.
    #[default]
    Dispatch,
    /// Times of each dispatch with a barrier after it: exact for each kernel, an upper bound in sum.
    DispatchSerialised,
}

impl SamplingMode {
    /// Its text on the command line and in the trace.
    pub const fn as_str(self) -> &'static str {
        match self {
            SamplingMode::CommandBuffer => "command-buffer",
            SamplingMode::Pass => "pass",
            SamplingMode::Dispatch => "dispatch",
            SamplingMode::DispatchSerialised => "dispatch-serialised",
        }
    }
}

/// The recording machine.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, JsonSchema, Deserialize)]
#[serde(default)]
pub struct Host {
    /// Operating system and version.
    pub system: String,
    /// Processor.
    pub processor: String,
    /// Logical cores; absent when they are not known.
    #[serde(deserialize_with = "known")]
    pub cores: Option<u32>,
    /// The boot that the times are of, as the kernel names it: machines and boots have different ones. Absent when it is not known, as of imports.
    pub boot_id: Option<String>,
    /// The time namespace that the times are of, by its inode; absent when it is not known. Traces of one boot and one time namespace have
    /// one clock.
    pub time_namespace: Option<u64>,
}

/// A recorded process.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, JsonSchema, Deserialize)]
#[serde(default)]
pub struct Process {
    /// Id in the trace.
    pub id: ProcessId,
    /// The system's id.
    pub pid: u32,
    /// The parent's; absent when it is not known, as of imports, or is in another namespace of process ids.
    #[serde(deserialize_with = "known")]
    pub parent_pid: Option<u32>,
    /// Path of the executable.
    pub executable: String,
    /// Arguments.
    pub arguments: Vec<String>,
    /// Hook that recorded it; [`Process::SAMPLED`] for one of which there are only samples.
    pub hook: String,
    /// When its recording began.
    pub start_ns: i64,
    /// When it ended in an orderly way; absent after SIGKILL or `_exit`.
    pub end_ns: Option<i64>,
}

impl Process {
    /// The hook of a process that works for a recorded one, such as a loader of data: only its stacks were sampled.
    pub const SAMPLED: &str = "sampled";

    /// True of a process that only has samples.
    pub fn is_only_sampled(&self) -> bool {
        self.hook == Process::SAMPLED
    }

    /// The tool that recorded it, where that is not gapscope: of an import.
    pub fn other_tool(&self) -> Option<&str> {
        let own = [
            "",
            "none",
            "vulkan",
            "cuda",
            "sdk",
            "replay",
            Process::SAMPLED,
        ];
        (!own.contains(&self.hook.as_str())).then_some(&self.hook)
    }
}

/// A thread of a recorded process.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, JsonSchema, Deserialize)]
#[serde(default)]
pub struct Thread {
    /// Id of the process.
    pub process: ProcessId,
    /// The system's id.
    pub thread: ThreadId,
    /// Its name.
    pub name: String,
}

/// A device as one process used it.
#[derive(Debug, Clone, Default, PartialEq, Serialize, JsonSchema, Deserialize)]
#[serde(default)]
pub struct Device {
    /// Id in the trace.
    pub id: DeviceId,
    /// Id of the process.
    pub process: ProcessId,
    /// The interface through which it was used.
    #[schemars(with = "String")]
    pub api: Api,
    /// Name.
    pub name: String,
    /// Driver and version.
    pub driver: String,
    /// Distinguishes physical devices, as hexadecimal.
    pub uuid: String,
    /// Sizes of the memory heaps in bytes.
    pub heaps: Vec<u64>,
    /// What it can do, where that is known (CUDA).
    pub limits: Option<DeviceLimits>,
    /// True when the driver said that the device was lost.
    pub lost: bool,
    /// How device times were mapped to host times.
    pub clock: Clock,
}

/// What a device was measured to do at best. What was not measured is absent.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, JsonSchema, Deserialize)]
#[serde(default)]
pub struct MeasuredLimits {
    /// When, in seconds since 1970.
    pub measured_unix_s: Option<u64>,
    /// Version of the driver that was measured with.
    pub driver: String,
    /// Read plus written by a copy from device memory to device memory, bytes a second.
    pub copy_bytes_per_s: Option<u64>,
    /// Read from device memory by a kernel that writes next to nothing, bytes a second.
    pub read_bytes_per_s: Option<u64>,
    /// Written to device memory by a kernel that reads nothing, bytes a second.
    pub write_bytes_per_s: Option<u64>,
    /// Floating-point operations a second of multiply-adds of 32 bits: two for each.
    pub fma_f32_flops: Option<u64>,
    /// Floating-point operations a second of dense matrix units, by the type of their inputs, such as `bf16`.
    pub matrix_flops: BTreeMap<String, u64>,
    /// From one end to the next of empty kernels launched back to back, median, nanoseconds.
    pub launch_interval_ns: Option<u64>,
    /// From the launch of an empty kernel on an idle device until the host, which waits for it, knows that it has ended: median by the
    /// host's clock, nanoseconds.
    pub launch_latency_ns: Option<u64>,
}

/// What a device can do. What is not known is absent.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, JsonSchema, Deserialize)]
#[serde(default)]
pub struct DeviceLimits {
    /// CUDA's compute capability, such as `9.0`.
    pub compute_capability: Option<String>,
    /// Streaming multiprocessors. AMD: compute units; Arm: shader cores.
    pub multiprocessors: Option<u32>,
    /// Greatest clock of the cores, kHz.
    pub core_clock_khz: Option<u32>,
    /// Bandwidth of its memory by its data sheet, bytes a second.
    pub memory_bytes_per_s: Option<u64>,
    /// Size of its L2 cache, bytes.
    pub l2_bytes: Option<u64>,
    /// Threads that a multiprocessor can hold.
    pub threads_per_multiprocessor: Option<u32>,
    /// Registers of a multiprocessor.
    pub registers_per_multiprocessor: Option<u32>,
    /// Shared memory of a multiprocessor, bytes.
    pub shared_bytes_per_multiprocessor: Option<u64>,
    /// Workgroups that a multiprocessor can hold.
    pub groups_per_multiprocessor: Option<u32>,
    /// It is a part of a device (MIG).
    pub partition: bool,
    /// What it was measured to do, where that was done before the recording (`gapscope bench device`).
    pub measured: Option<MeasuredLimits>,
}

/// The map from a device's clock to the host's.
#[derive(Debug, Clone, Default, PartialEq, Serialize, JsonSchema, Deserialize)]
#[serde(default)]
pub struct Clock {
    /// Where the samples come from.
    pub method: ClockMethod,
    /// The greatest error of a mapped time; absent when it is not known.
    pub error_ns: Option<i64>,
    /// Samples used.
    pub samples: u32,
    /// Rate of the device's clock against the host's, less one, in parts per million, from first to last sample.
    pub drift_ppm: Option<f64>,
    /// Nanoseconds for each tick, as the driver says.
    pub nanoseconds_per_tick: f64,
}

/// Where clock samples come from.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, JsonSchema, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum ClockMethod {
    /// The driver reads both clocks at once.
    Calibrated,
    /// Bounds from submissions: work runs after its submission and before it is seen finished.
    Brackets,
    /// None: device times could not be mapped and are unknown.
    #[default]
    None,
}

/// A queue.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, JsonSchema, Deserialize)]
#[serde(default)]
pub struct Queue {
    /// Id in the trace.
    pub id: QueueId,
    /// Id of the device.
    pub device: DeviceId,
    /// Queue family.
    pub family: u32,
    /// Index in the family.
    pub index: u32,
    /// What it can do: `graphics`, `compute`, `transfer`.
    pub capabilities: Vec<String>,
    /// Valid bits of a timestamp; 0: none.
    pub timestamp_bits: u32,
    /// Name that the program gave it.
    pub name: Option<String>,
    /// What kind of CUDA stream it is: `default`, `blocking`, `non-blocking`.
    pub kind: Option<String>,
    /// Priority of a CUDA stream: lower is more urgent.
    pub priority: Option<i32>,
}
