//! Computes how much of the limit of each unit of the GPU a kernel uses on average over its samples.
use super::attribution::Attribution;
use super::ceilings::Ceiling;
use super::reading::counters;
use crate::kernel_limit::{LimitingUnit, ShareOfLimit};
use gapscope_trace::tables::HardwareCounter;

/// Returns all known shares of a kernel, the greatest first: means over the GPUs, weighted by the time of their samples.
pub(super) fn shares(
    attribution: &Attribution,
    ceilings: &[Ceiling],
    kernel: usize,
) -> Vec<ShareOfLimit> {
    let ran_ns = attribution.kernels[kernel].ran_ns;
    let share = |unit: &LimitingUnit| {
        let unit = *unit;
        let known = |counter: &&HardwareCounter| attribution.samples(kernel, **counter).is_some();
        let counted: Vec<HardwareCounter> = counters(unit).iter().filter(known).copied().collect();
        let (mut area, mut ns) = (0.0, 0.0);
        for (gpu, ceiling) in attribution.sampled.iter().zip(ceilings) {
            let reading = attribution.mean_reading(kernel, gpu.gpu, &counted);
            if let Some((reading, sampled_ns)) = reading {
                area += reading.share(unit, Some(ceiling))? * sampled_ns;
                ns += sampled_ns;
            }
        }
        let share = (ns > 0.0).then(|| area / ns)?;
        let sums = || {
            counted
                .iter()
                .filter_map(|counter| attribution.samples(kernel, *counter))
        };
        let rate: f64 = sums().map(|samples| samples.mean()).sum();
        let error: f64 = sums().map(|samples| samples.error(ran_ns)).sum();
        Some(ShareOfLimit {
            unit,
            share,
            error: match rate > 0.0 {
                true => share * error / rate,
                false => 0.0,
            },
        })
    };
    let mut shares: Vec<ShareOfLimit> = LimitingUnit::ALL.iter().filter_map(share).collect();
    shares.sort_by(|a, b| b.share.total_cmp(&a.share));
    shares
}
