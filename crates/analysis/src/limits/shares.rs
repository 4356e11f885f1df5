//! Computes from counter samples that belong to a kernel how much of the limit of each unit of the GPU a kernel uses.
use super::attribution::{Attribution, SampleSums};
use super::ceilings::Ceiling;
use crate::kernel_limit::{LimitingUnit, ShareOfLimit};
use gapscope_trace::tables::HardwareCounter;

/// The units whose counter is itself the share of the limit, each with that counter.
const DIRECT: [(LimitingUnit, HardwareCounter); 5] = [
    (LimitingUnit::L2, HardwareCounter::L2Throughput),
    (LimitingUnit::Tensor, HardwareCounter::TensorActive),
    (LimitingUnit::Fma, HardwareCounter::FmaActive),
    (LimitingUnit::Alu, HardwareCounter::AluActive),
    (LimitingUnit::Issue, HardwareCounter::InstructionsExecuted),
];

/// Returns all known shares of a kernel, the greatest first.
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

/// Returns the share of device memory: the mean over the GPUs, weighted by the time of their samples. `None` where
/// reads, writes or a ceiling (the best throughput of a device's memory) are not known.
fn dram(attribution: &Attribution, ceilings: &[Ceiling], kernel: usize) -> Option<ShareOfLimit> {
    let counters = [HardwareCounter::DramRead, HardwareCounter::DramWritten];
    let [read, written] = counters.map(|counter| attribution.samples(kernel, counter));
    let (read, written) = (read?, written?);
    let [reads, writes] = counters.map(|counter| attribution.by_gpu(kernel, counter));
    let (mut area, mut ns) = (0.0, 0.0);
    for ((gpu, read), (other, written)) in reads.zip(writes) {
        let covered = |samples: &SampleSums| samples.count > 0;
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
