//! Computes how much of the limit of each unit of the GPU is used, from the values that its counters have in one sample
//! or on average.

use super::ceilings::Ceiling;
use crate::kernel_limit::LimitingUnit;
use gapscope_timeline::thresholds::{NVLINK_TOLD_BYTES_PER_S, PCIE_TOLD_BYTES_PER_S};
use gapscope_trace::tables::HardwareCounter;

/// The values of a GPU's counters in one sample, or their means.
#[derive(Debug, Clone, Copy, Default)]
pub(super) struct Reading {
    /// The values in the order of [`HardwareCounter::ALL`].
    pub(super) values: [Option<f64>; HardwareCounter::ALL.len()],
}

impl Reading {
    /// Sets the value of a counter.
    pub(super) fn set(&mut self, counter: HardwareCounter, value: f64) {
        let places = HardwareCounter::ALL.iter().zip(&mut self.values);
        for (_, place) in places.filter(|(known, _)| **known == counter) {
            *place = Some(value);
        }
    }

    /// Returns the value of a counter, or `None` where it was not sampled.
    pub(super) fn value(&self, counter: HardwareCounter) -> Option<f64> {
        let mut both = HardwareCounter::ALL.iter().zip(self.values);
        both.find(|(known, _)| **known == counter)
            .and_then(|(_, value)| value)
    }

    /// Returns the share of the time in which multiprocessors were active.
    pub(super) fn active(&self) -> Option<f64> {
        Some(self.value(HardwareCounter::SmActive)? / 100.0)
    }

    /// Returns the share of a unit's limit, or `None` where a counter or the limit is not known.
    pub(super) fn share(&self, unit: LimitingUnit, ceiling: Option<&Ceiling>) -> Option<f64> {
        match (unit, counters(unit)) {
            (LimitingUnit::Dram, &[read, written]) => {
                let (read, written) = (self.value(read)?, self.value(written)?);
                let bytes_per_s = read + written;
                let read_share = match bytes_per_s > 0.0 {
                    true => read / bytes_per_s,
                    false => 0.5,
                };
                Some(bytes_per_s / ceiling?.bytes_per_s(read_share)?)
            }
            (LimitingUnit::Pcie, &[read, written]) => {
                let ceiling = ceiling?;
                self.busier([
                    (read, ceiling.pcie_read_bytes_per_s),
                    (written, ceiling.pcie_write_bytes_per_s),
                ])
            }
            (LimitingUnit::Nvlink, &[received, sent]) => {
                let ceiling = ceiling?;
                self.busier([
                    (received, ceiling.nvlink_received_bytes_per_s),
                    (sent, ceiling.nvlink_sent_bytes_per_s),
                ])
            }
            (_, &[counter]) => Some(self.value(counter)? / 100.0),
            _ => None,
        }
    }

    /// Returns the share of the direction of a link that is nearer to its ceiling; `None` where no ceiling is known.
    fn busier(&self, ways: [(HardwareCounter, Option<u64>); 2]) -> Option<f64> {
        let shares = ways
            .into_iter()
            .filter_map(|(counter, ceiling)| Some(self.value(counter)? / ceiling? as f64));
        shares.max_by(f64::total_cmp)
    }

    /// Returns the rate of a link in its busier direction where the kernel may wait for the link, and what the link can
    /// do is not known.
    pub(super) fn unbounded_link(&self, ceiling: Option<&Ceiling>) -> Option<LinkRate> {
        let links = [
            (LimitingUnit::Nvlink, NVLINK_TOLD_BYTES_PER_S),
            (LimitingUnit::Pcie, PCIE_TOLD_BYTES_PER_S),
        ];
        let rates = links.into_iter().filter_map(|(unit, least)| {
            let each = counters(unit).iter().filter_map(|counter| {
                let bytes_per_s = self.value(*counter)?;
                Some(LinkRate {
                    unit,
                    counter: *counter,
                    bytes_per_s,
                })
            });
            let rate = each.max_by(|a, b| a.bytes_per_s.total_cmp(&b.bytes_per_s))?;
            let is_bounded = self.share(unit, ceiling).is_some();
            (rate.bytes_per_s >= least && !is_bounded).then_some(rate)
        });
        rates.max_by(|a, b| a.bytes_per_s.total_cmp(&b.bytes_per_s))
    }
}

/// The rate of a link in one direction.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(super) struct LinkRate {
    pub(super) unit: LimitingUnit,
    /// The counter of the direction.
    pub(super) counter: HardwareCounter,
    pub(super) bytes_per_s: f64,
}

/// Returns the counters that the share of a unit's limit is computed from.
pub(super) const fn counters(unit: LimitingUnit) -> &'static [HardwareCounter] {
    use HardwareCounter::*;
    match unit {
        LimitingUnit::Dram => &[DramRead, DramWritten],
        LimitingUnit::L2 => &[L2Throughput],
        LimitingUnit::Tensor => &[TensorActive],
        LimitingUnit::Fma => &[FmaActive],
        LimitingUnit::Alu => &[AluActive],
        LimitingUnit::Issue => &[InstructionsExecuted],
        LimitingUnit::Pcie => &[PcieRead, PcieWritten],
        LimitingUnit::Nvlink => &[NvlinkReceived, NvlinkSent],
    }
}
