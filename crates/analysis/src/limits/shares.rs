//! What a kernel has of the limits of the GPU's units.

use super::attribution::{Attribution, Samples};
use super::ceilings::Ceiling;
use gapscope_trace::tables::HardwareCounter;
use schemars::JsonSchema;
use serde::Serialize;

/// What a kernel has of the limit of a unit.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, JsonSchema)]
pub struct ShareOfLimit {
    /// The unit.
    pub unit: LimitingUnit,
    /// What it has of the limit, over what was measured to be possible: 1 is all of it.
    pub share: f64,
    /// How far the share may be off.
    pub error: f64,
}

/// A unit of a GPU that can be what limits a kernel.
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
}

impl LimitingUnit {
    /// Its text in JSON and SQL.
    pub const fn as_str(self) -> &'static str {
        match self {
            LimitingUnit::Dram => "dram",
            LimitingUnit::L2 => "l2",
            LimitingUnit::Tensor => "tensor",
            LimitingUnit::Fma => "fma",
            LimitingUnit::Alu => "alu",
            LimitingUnit::Issue => "issue",
        }
    }

    /// What it is called.
    pub const fn name(self) -> &'static str {
        match self {
            LimitingUnit::Dram => "DRAM",
            LimitingUnit::L2 => "L2",
            LimitingUnit::Tensor => "tensor",
            LimitingUnit::Fma => "FMA",
            LimitingUnit::Alu => "ALU",
            LimitingUnit::Issue => "issue",
        }
    }

    /// True for memory, false for arithmetic.
    pub const fn is_memory(self) -> bool {
        matches!(self, LimitingUnit::Dram | LimitingUnit::L2)
    }
}

/// Units of which a counter is the share of the limit itself.
const DIRECT: [(LimitingUnit, HardwareCounter); 5] = [
    (LimitingUnit::L2, HardwareCounter::L2Throughput),
    (LimitingUnit::Tensor, HardwareCounter::TensorActive),
    (LimitingUnit::Fma, HardwareCounter::FmaActive),
    (LimitingUnit::Alu, HardwareCounter::AluActive),
    (LimitingUnit::Issue, HardwareCounter::InstructionsExecuted),
];

/// All that are known of a kernel, the greatest first.
pub(super) fn shares(
    attribution: &Attribution,
    ceilings: &[Ceiling],
    kernel: usize,
) -> Vec<ShareOfLimit> {
    let ran_ns = attribution.kernels[kernel].ran_ns;
    let direct = DIRECT.into_iter().filter_map(|(unit, counter)| {
        let samples = attribution.samples(kernel, counter)?;
        Some(ShareOfLimit {
            unit,
            share: samples.mean() / 100.0,
            error: samples.error(ran_ns) / 100.0,
        })
    });
    let mut shares: Vec<ShareOfLimit> = direct.collect();
    shares.extend(dram(attribution, ceilings, kernel));
    shares.sort_by(|a, b| b.share.total_cmp(&a.share));
    shares
}

/// Of device memory: the mean over the GPUs, by the time of their samples.
fn dram(attribution: &Attribution, ceilings: &[Ceiling], kernel: usize) -> Option<ShareOfLimit> {
    let counters = [HardwareCounter::DramRead, HardwareCounter::DramWritten];
    let [read, written] = counters.map(|counter| attribution.samples(kernel, counter));
    let (read, written) = (read?, written?);
    let [reads, writes] = counters.map(|counter| attribution.of_gpus(kernel, counter));
    let (mut area, mut ns) = (0.0, 0.0);
    for ((gpu, read), (other, written)) in reads.zip(writes) {
        let covered = |samples: &Samples| samples.count > 0;
        if gpu != other || !covered(&read) || !covered(&written) {
            continue;
        }
        let ceiling = (ceilings.iter()).find(|ceiling| ceiling.device as usize == gpu)?;
        let bytes_per_s = read.mean() + written.mean();
        let read_share = match bytes_per_s > 0.0 {
            true => read.mean() / bytes_per_s,
            false => 0.5,
        };
        area += bytes_per_s / ceiling.bytes_per_s(read_share)? * read.ns;
        ns += read.ns;
    }
    let ran_ns = attribution.kernels[kernel].ran_ns;
    let share = (ns > 0.0).then(|| area / ns)?;
    let rate = read.mean() + written.mean();
    let error = read.error(ran_ns) + written.error(ran_ns);
    Some(ShareOfLimit {
        unit: LimitingUnit::Dram,
        share,
        error: match rate > 0.0 {
            true => share * error / rate,
            false => 0.0,
        },
    })
}
