//! The types of a kernel's limit, which tells what holds the kernel back, of the hardware counters that show it, and of the
//! evidence for the bytes that a kernel moves.
//! The limit is what keeps a kernel from being faster; `launches.rs` finds it by the shape of launches, and
//! `limits.rs` by counters.

use gapscope_trace::tables::{CounterUnit, HardwareCounter};
use schemars::JsonSchema;
use serde::Serialize;

/// The limit of a kernel.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum KernelLimit {
    /// It takes hardly longer than the shortest kernel.
    Short,
    /// Bandwidth of the device's memory or of its L2 cache.
    Memory,
    /// A pipe of the multiprocessors, or the rate at which they execute instructions.
    Compute,
    /// The link to the host's memory or to other devices: PCIe or NVLink.
    Link,
    /// It has fewer workgroups than the GPU has multiprocessors.
    TooSmall,
    /// The last of its few waves leaves much of the GPU unused.
    Tail,
    /// Multiprocessors have nothing to run for much of its time, for another reason.
    Idle,
    /// Near no limit of a unit though the multiprocessors are occupied: its warps wait for memory or for each other.
    Latency,
}

impl KernelLimit {
    /// Returns the limit's name in JSON and SQL.
    pub const fn as_str(self) -> &'static str {
        match self {
            KernelLimit::TooSmall => "too-small",
            other => other.name(),
        }
    }

    /// Returns the limit's name for people.
    pub const fn name(self) -> &'static str {
        match self {
            KernelLimit::Short => "short",
            KernelLimit::Memory => "memory",
            KernelLimit::Compute => "compute",
            KernelLimit::Link => "link",
            KernelLimit::TooSmall => "too small",
            KernelLimit::Tail => "tail",
            KernelLimit::Idle => "idle",
            KernelLimit::Latency => "latency",
        }
    }
}

/// Hardware counters while a kernel ran, from samples in which it ran and nothing else did.
#[derive(Debug, Clone, Default, PartialEq, Serialize, JsonSchema)]
pub struct KernelCounters {
    /// Time in which at least one of its dispatches ran, summed over the GPUs.
    pub ran_ns: i64,
    /// Part of it in which nothing else ran on its GPU.
    pub alone_ns: i64,
    /// Part of `alone_ns` that whole samples cover, of the counter with the most.
    pub covered_ns: i64,
    /// `covered_ns` of `ran_ns`: 0 to 1.
    pub covered_share: f64,
    /// Samples of the counter with the most.
    pub sample_count: u64,
    /// The counters; empty where too little of the kernel's time is covered.
    pub means: Vec<KernelCounter>,
    /// Its shares of the limits of units, the greatest first.
    pub shares: Vec<ShareOfLimit>,
    /// Read from device memory in all its time, an estimate: mean rate times `ran_ns`.
    pub dram_read_bytes: Option<Estimate>,
    /// Written to device memory, likewise.
    pub dram_written_bytes: Option<Estimate>,
    /// Why there are no figures, or no limit.
    pub unknown_because: Option<String>,
}

impl KernelCounters {
    /// Returns the mean of a counter, or `None` where it is not known.
    pub fn mean_of(&self, counter: HardwareCounter) -> Option<&KernelCounter> {
        let mut means = self.means.iter();
        means.find(|mean| mean.name == counter.as_str())
    }
}

/// A counter while a kernel ran.
#[derive(Debug, Clone, Default, PartialEq, Serialize, JsonSchema)]
pub struct KernelCounter {
    /// The name of the counter.
    pub name: &'static str,
    /// The unit of its values.
    #[schemars(with = "String")]
    pub unit: CounterUnit,
    /// Mean over the time of the samples.
    pub mean: f64,
    /// Standard error of the mean, as if the samples were independent.
    pub standard_error: f64,
    /// `standard_error`, and how much the mean of all the kernel's time may differ if the rest of it lies between `min` and
    /// `max`.
    pub error: f64,
    /// The least sample.
    pub min: f64,
    /// The greatest.
    pub max: f64,
    /// Samples.
    pub sample_count: u64,
    /// The share of the kernel's time that the samples cover.
    pub covered_share: f64,
}

/// A part of a kernel's time in which its units worked alike, by the samples of that time. It may be a part of each
/// dispatch, or whole dispatches.
#[derive(Debug, Clone, Default, PartialEq, Serialize, JsonSchema)]
pub struct KernelPhase {
    /// The limit in this phase; absent where the samples do not tell.
    pub limit: Option<KernelLimit>,
    /// The unit that is nearest to its limit.
    pub limited_by: Option<LimitingUnit>,
    /// The part of the kernel's sampled time: 0 to 1.
    pub time_share: f64,
    /// The share of the nearest limit, mean over the samples.
    pub reached: Option<f64>,
    /// The time that reaching the limit could save at most in this recording.
    pub winnable_ns: Option<i64>,
    /// Why there is no limit.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub unknown_because: Option<String>,
}

/// A figure and how far it may be off.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, JsonSchema)]
pub struct Estimate {
    /// The figure.
    pub value: u64,
    /// How far it may be off, as the `error` of a counter.
    pub error: u64,
}

/// A kernel's share of the limit of a unit.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, JsonSchema)]
pub struct ShareOfLimit {
    /// The unit.
    pub unit: LimitingUnit,
    /// The share of what was measured to be possible: 1 is all of it.
    pub share: f64,
    /// How far the share may be off.
    pub error: f64,
}

/// A unit of a GPU that can limit a kernel.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum LimitingUnit {
    /// The device's memory: bytes read and written, of its bandwidth.
    Dram,
    /// The L2 cache.
    L2,
    /// The pipe of the tensor cores.
    Tensor,
    /// The pipe of floating-point multiply-adds.
    Fma,
    /// The pipe of integer and logic instructions.
    Alu,
    /// The rate at which instructions are executed.
    Issue,
    /// PCIe, by the direction that is nearer to what the link can do.
    Pcie,
    /// NVLink, likewise.
    Nvlink,
}

impl LimitingUnit {
    /// All units.
    pub const ALL: [LimitingUnit; 8] = [
        LimitingUnit::Dram,
        LimitingUnit::L2,
        LimitingUnit::Tensor,
        LimitingUnit::Fma,
        LimitingUnit::Alu,
        LimitingUnit::Issue,
        LimitingUnit::Pcie,
        LimitingUnit::Nvlink,
    ];

    /// Returns the unit's name in JSON and SQL.
    pub const fn as_str(self) -> &'static str {
        self.names().0
    }

    /// Returns the unit's name for people.
    pub const fn name(self) -> &'static str {
        self.names().1
    }

    /// Returns the names in JSON and for people.
    const fn names(self) -> (&'static str, &'static str) {
        match self {
            LimitingUnit::Dram => ("dram", "DRAM"),
            LimitingUnit::L2 => ("l2", "L2"),
            LimitingUnit::Tensor => ("tensor", "tensor"),
            LimitingUnit::Fma => ("fma", "FMA"),
            LimitingUnit::Alu => ("alu", "ALU"),
            LimitingUnit::Issue => ("issue", "issue"),
            LimitingUnit::Pcie => ("pcie", "PCIe"),
            LimitingUnit::Nvlink => ("nvlink", "NVLink"),
        }
    }

    /// Returns the limit of a kernel that this unit holds back.
    pub const fn limit(self) -> KernelLimit {
        match self {
            LimitingUnit::Dram | LimitingUnit::L2 => KernelLimit::Memory,
            LimitingUnit::Tensor | LimitingUnit::Fma | LimitingUnit::Alu | LimitingUnit::Issue => {
                KernelLimit::Compute
            }
            LimitingUnit::Pcie | LimitingUnit::Nvlink => KernelLimit::Link,
        }
    }
}

/// The evidence for the bytes that a kernel must move at least.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum BytesEvidence {
    /// The code touches these bytes in every case.
    Code,
    /// They are bound, and at most as many as the invocations can touch: it is assumed that the kernel touches all of them.
    BoundRanges,
}

/// Why the share of the peak of a kernel whose bytes are known is not.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum NoPeakShare {
    /// The device's bandwidth was not measured before the recording: `gapscope bench device` does.
    NotMeasured,
    /// The bytes would need more than the measured bandwidth: caches served a part of them, or not all that is bound was
    /// touched.
    AbovePeak,
}
