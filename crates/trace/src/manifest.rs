//! The manifest of a trace: `trace.json`. The manifest says what holds for the whole recording, such as its devices;
//! the tables hold the rest. A *hook* is the library inside the program that recorded it.

use crate::ids::{DeviceId, ProcessId, QueueId, ThreadId};
use gapscope_model::secrets;
use schemars::JsonSchema;
use serde::{Deserialize, Deserializer, Serialize};
use std::collections::BTreeMap;

pub use gapscope_model::{Api, Loss};

pub(crate) const FILE_NAME: &str = "trace.json";

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

/// The facts about a recording as a whole. Fields that this version does not know are ignored.
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
    /// How the command ended; absent when unknown.
    pub exit: Option<Exit>,
    /// How the GPU was sampled.
    pub sampling_mode: SamplingMode,
    /// Start of the recording, on the host's monotonic clock.
    pub start_ns: i64,
    /// End of the recording.
    pub end_ns: i64,
    /// `start_ns` on the wall clock, nanoseconds since 1970; absent when unknown, as in many imports.
    #[serde(deserialize_with = "absent_if_default")]
    pub start_unix_ns: Option<i64>,
    /// The machine.
    pub host: Host,
    /// Processes that were recorded.
    pub processes: Vec<Process>,
    /// Threads that made host calls.
    pub threads: Vec<Thread>,
    /// Devices that the processes used.
    pub devices: Vec<Device>,
    /// Queues that the processes used.
    pub queues: Vec<Queue>,
    /// Rank of the processes, where this is the trace of one rank of a distributed program.
    pub rank: Option<Rank>,
    /// Ranks with their own traces, in folders `rank=N` of this one. This trace holds the processes without a rank.
    pub ranks: Vec<u32>,
    /// What was not recorded.
    #[schemars(with = "Vec<LossSchema>")]
    pub losses: Vec<Loss>,
    /// Sentences that every report prints.
    pub notes: Vec<String>,
    /// Files of another profiler whose ranges of host code are in this trace.
    pub joined_files: Vec<JoinedFile>,
    /// The initial sampling rate of the stacks of submitting threads, per second; absent where stacks were not
    /// sampled.
    pub stack_rate_hz: Option<u32>,
    /// Conditions of the machine that could not be measured and are unknown.
    pub unmeasured: Vec<Unmeasured>,
    /// True where the manifest's file was changed or damaged after it was written: any field may be wrong.
    #[serde(skip)]
    pub altered: bool,
    /// True where the manifest's file has what looks like a secret in a command line. It is hidden in the fields here.
    #[serde(skip)]
    pub had_secrets: bool,
}

impl Manifest {
    /// Hides what looks like a secret in the command lines.
    pub(crate) fn hide_secrets(&mut self) {
        let lines = self
            .processes
            .iter_mut()
            .map(|process| &mut process.arguments);
        for line in lines.chain([&mut self.command]) {
            let hidden = secrets::hide(line);
            self.had_secrets |= hidden != *line;
            *line = hidden;
        }
    }
}

/// A file of another profiler of the same run, whose ranges of host code (operators, functions, annotations) were put
/// on the clock of the file with the launches of GPU work, and how well the launches fit into them.
#[derive(Debug, Clone, Default, PartialEq, Serialize, JsonSchema, Deserialize)]
#[serde(default)]
pub struct JoinedFile {
    /// Name of the file.
    pub file: String,
    /// Launches in the time of the file, on the threads of its operators.
    pub launches: u64,
    /// Those launches that lie inside an operator or a built-in function of their thread.
    pub launches_inside: u64,
    /// What was added to the file's times, beyond what the wall clocks of both files say, nanoseconds.
    pub offset_ns: i64,
    /// By how much the offset may be wrong: so far, as many launches lie inside, nanoseconds.
    pub offset_error_ns: i64,
    /// What was added to the file's times beside the offset, for each second after the middle of its time (subtracted before
    /// it), because the clocks drift apart, nanoseconds; 0 where one offset holds for the whole file.
    pub drift_ns_per_s: i64,
    /// Share of launches inside an operator at the next best offset; absent where no other offset has launches.
    pub next_best_share: Option<f64>,
    /// True where processes and threads have other numbers in the file, as in a container, and were matched by their
    /// launches.
    pub matched_threads: bool,
    /// Launches that the file has itself; 0 where it has none, as under Nsight Systems.
    pub own_launches: u64,
    /// Those of its launches that are calls of the same function on the same thread here, in the same order.
    pub own_launches_matched: u64,
}

impl std::fmt::Display for JoinedFile {
    /// Says how sure the match is.
    fn fmt(&self, f: &mut std::fmt::Formatter) -> std::fmt::Result {
        let microseconds = |ns: i64| ns as f64 / 1000.0;
        write!(
            f,
            "{}: {} of {} launches lie inside an operator of their thread (clocks {:.1} µs apart",
            self.file,
            self.launches_inside,
            self.launches,
            microseconds(self.offset_ns),
        )?;
        if self.drift_ns_per_s != 0 {
            let drift = microseconds(self.drift_ns_per_s);
            write!(f, " in the middle, and {drift:+.1} µs more each second")?;
        }
        write!(f, ", ± {:.1} µs", microseconds(self.offset_error_ns))?;
        if let Some(share) = self.next_best_share {
            write!(f, "; next best offset: {:.1} %", share * 100.0)?;
        }
        write!(f, ").")?;
        if self.own_launches > 0 {
            write!(
                f,
                " {} of its own {} launches are calls of the same function there.",
                self.own_launches_matched, self.own_launches
            )?;
        }
        if self.matched_threads {
            write!(
                f,
                " Its processes and threads have other numbers and were matched by their launches."
            )?;
        }
        Ok(())
    }
}

/// A quantity that could not be measured beside the program.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, JsonSchema, Deserialize)]
#[serde(default)]
pub struct Unmeasured {
    /// The quantity, such as `memory pressure`.
    pub what: String,
    /// Why, as a sentence without its full stop.
    pub reason: String,
}

impl Manifest {
    /// Moves the start of the recording, on both clocks; its end and all rows stay.
    pub fn start_at(&mut self, start_ns: i64) {
        let later_ns = start_ns.saturating_sub(self.start_ns);
        self.start_unix_ns = self.start_unix_ns.map(|ns| ns.saturating_add(later_ns));
        self.start_ns = start_ns;
    }
}

/// Reads a field that older traces could not leave out: there the default stands for an unknown value.
fn absent_if_default<'de, T, D>(from: D) -> Result<Option<T>, D::Error>
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
    /// Number of the rank, from 0.
    pub rank: u32,
    /// Number of the rank among those of its machine; absent when unknown.
    pub local_rank: Option<u32>,
    /// Number of ranks on all machines.
    pub world_size: u32,
}

/// How the recorded command ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, JsonSchema, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Exit {
    /// The command exited with this code.
    Code(i32),
    /// This signal killed the command.
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
    /// Returns the name of the mode on the command line and in the trace.
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
    /// Logical cores; absent when unknown.
    #[serde(deserialize_with = "absent_if_default")]
    pub cores: Option<u32>,
    /// The boot in which the times were taken, as the kernel names it; unique to a machine and boot. Absent when
    /// unknown, as in imports.
    pub boot_id: Option<String>,
    /// The inode of the time namespace of the times; absent when unknown. Traces of one boot and one time namespace
    /// share a clock.
    pub time_namespace: Option<u64>,
}

/// A recorded process.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, JsonSchema, Deserialize)]
#[serde(default)]
pub struct Process {
    /// Id of the process in the trace.
    pub id: ProcessId,
    /// The system's process id.
    pub pid: u32,
    /// The parent's process id; absent when unknown, as in imports, or when it is in another process namespace.
    #[serde(deserialize_with = "absent_if_default")]
    pub parent_pid: Option<u32>,
    /// Path of the executable.
    pub executable: String,
    /// Arguments.
    pub arguments: Vec<String>,
    /// The hook that recorded the process; [`Process::SAMPLED`] for a process that was only sampled.
    pub hook: String,
    /// Start of its recording.
    pub start_ns: i64,
    /// End of the process where it ended in an orderly way; absent after SIGKILL or `_exit`.
    pub end_ns: Option<i64>,
}

impl Process {
    /// The hook of a process that works for a recorded one, such as a data loader: only its stacks were sampled.
    pub const SAMPLED: &str = "sampled";

    /// Returns true for a process that has samples and nothing else.
    pub fn is_only_sampled(&self) -> bool {
        self.hook == Process::SAMPLED
    }

    /// Returns the tool that recorded the process, where the trace was imported.
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
    /// The system's thread id.
    pub thread: ThreadId,
    /// Name of the thread.
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
    /// The interface through which the device was used.
    #[schemars(with = "String")]
    pub api: Api,
    /// Name.
    pub name: String,
    /// The number that a file of another tool has for the device, which counts inside of the process; null where nothing says it.
    pub number: Option<u32>,
    /// Driver and version.
    pub driver: String,
    /// Identifies the physical device, as hexadecimal.
    pub uuid: String,
    /// Sizes of the memory heaps in bytes.
    pub heaps: Vec<u64>,
    /// Properties of the device, where they are known (CUDA).
    pub limits: Option<DeviceProperties>,
    /// True when the driver reported the device as lost.
    pub lost: bool,
    /// How device times were mapped to host times.
    pub clock: Clock,
}

/// The measured peaks of a device. A peak that was not measured is absent.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, JsonSchema, Deserialize)]
#[serde(default)]
pub struct MeasuredPeaks {
    /// Time of the measurement, in seconds since 1970.
    pub measured_unix_s: Option<u64>,
    /// Version of the driver at the time of the measurement.
    pub driver: String,
    /// Bytes read plus bytes written by a copy inside device memory, per second.
    pub copy_bytes_per_s: Option<u64>,
    /// Bytes read from device memory by a kernel that writes next to nothing, per second.
    pub read_bytes_per_s: Option<u64>,
    /// Bytes written to device memory by a kernel that reads nothing, per second.
    pub write_bytes_per_s: Option<u64>,
    /// Bytes that a copy reads from pinned memory of the host, per second.
    pub host_read_bytes_per_s: Option<u64>,
    /// Bytes that a copy writes to pinned memory of the host, per second.
    pub host_write_bytes_per_s: Option<u64>,
    /// Bytes that copies from all devices that NVLink joins with this one bring to it at once, per second.
    pub nvlink_received_bytes_per_s: Option<u64>,
    /// Bytes that copies to all devices that NVLink joins with this one take from it at once, per second.
    pub nvlink_sent_bytes_per_s: Option<u64>,
    /// Bytes of both directions, at the same time, per second.
    pub nvlink_both_bytes_per_s: Option<u64>,
    /// Floating-point operations per second of 32-bit multiply-adds, which count twice.
    pub fma_f32_flops: Option<u64>,
    /// Floating-point operations per second of dense matrix units, by input type, such as `bf16`.
    pub matrix_flops: BTreeMap<String, u64>,
    /// Median time between the ends of empty kernels that were launched back to back, nanoseconds.
    pub launch_interval_ns: Option<u64>,
    /// Median time from the launch of an empty kernel on an idle device until the waiting host knows that it has
    /// ended, by the host's clock, nanoseconds.
    pub launch_latency_ns: Option<u64>,
}

/// Properties of a device. A property that is not known is absent.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, JsonSchema, Deserialize)]
#[serde(default)]
pub struct DeviceProperties {
    /// CUDA's compute capability, such as `9.0`.
    pub compute_capability: Option<String>,
    /// Streaming multiprocessors. AMD: compute units; Arm: shader cores.
    pub multiprocessors: Option<u32>,
    /// Highest clock of the cores, kHz.
    pub core_clock_khz: Option<u32>,
    /// Memory bandwidth according to the data sheet, bytes per second.
    pub memory_bytes_per_s: Option<u64>,
    /// Size of its L2 cache, bytes.
    pub l2_bytes: Option<u64>,
    /// Threads that fit on a multiprocessor.
    pub threads_per_multiprocessor: Option<u32>,
    /// Registers of a multiprocessor.
    pub registers_per_multiprocessor: Option<u32>,
    /// Shared memory of a multiprocessor, bytes.
    pub shared_bytes_per_multiprocessor: Option<u64>,
    /// Workgroups that fit on a multiprocessor.
    pub groups_per_multiprocessor: Option<u32>,
    /// True for a partition of a device (MIG).
    pub partition: bool,
    /// Measured peaks, where `gapscope bench device` ran before the recording.
    pub measured: Option<MeasuredPeaks>,
}

/// The map from a device's clock to the host's.
#[derive(Debug, Clone, Default, PartialEq, Serialize, JsonSchema, Deserialize)]
#[serde(default)]
pub struct Clock {
    /// Source of the clock samples.
    pub method: ClockMethod,
    /// Greatest error of a mapped time; absent when unknown.
    pub error_ns: Option<i64>,
    /// Number of samples used.
    pub samples: u32,
    /// Rate of the device's clock against the host's, less one, in parts per million, from the first sample to the
    /// last.
    pub drift_ppm: Option<f64>,
    /// Nanoseconds per tick, according to the driver.
    pub nanoseconds_per_tick: f64,
}

/// The source of clock samples.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, JsonSchema, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum ClockMethod {
    /// The driver reads both clocks at once.
    Calibrated,
    /// Bounds from submissions: work runs after its submission and before it is seen to have finished.
    Brackets,
    /// There are no samples: device times could not be mapped and are unknown.
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
    /// Capabilities: `graphics`, `compute`, `transfer`.
    pub capabilities: Vec<String>,
    /// Valid bits of a timestamp; 0 when there are no timestamps.
    pub timestamp_bits: u32,
    /// Name that the program gave the queue.
    pub name: Option<String>,
    /// Kind of a CUDA stream: `default`, `blocking`, `non-blocking`.
    pub kind: Option<String>,
    /// Priority of a CUDA stream: lower is more urgent.
    pub priority: Option<i32>,
}
