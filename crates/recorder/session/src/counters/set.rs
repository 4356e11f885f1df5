//! Which counters are sampled, and by which metrics.

use gapscope_model::HardwareCounter;
use std::str::FromStr;
use std::time::Duration;

/// What to sample, and how often.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct CounterOptions {
    /// What.
    pub set: CounterSet,
    /// The time between two samples; the set's own where absent.
    pub interval: Option<Duration>,
}

/// Counters that are sampled together. The order is that in which they are given room.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub enum CounterSet {
    /// Activity of the multiprocessors, memory traffic, tensor cores.
    #[default]
    Few,
    /// All that can be counted at once.
    Wide,
    /// These.
    Named(Vec<HardwareCounter>),
}

/// What is asked for most.
const FEW: [HardwareCounter; 4] = [
    HardwareCounter::SmActive,
    HardwareCounter::DramRead,
    HardwareCounter::DramWritten,
    HardwareCounter::TensorActive,
];
/// Shortest intervals without losses, as measured on an H200 (docs/counters.md).
const OF_FEW: Duration = Duration::from_micros(100);
const OF_WIDE: Duration = Duration::from_millis(1);

impl FromStr for CounterSet {
    type Err = String;

    fn from_str(text: &str) -> Result<CounterSet, String> {
        match text {
            "default" => return Ok(CounterSet::Few),
            "wide" => return Ok(CounterSet::Wide),
            _ => {}
        }
        let mut named = Vec::new();
        let mut parts = text.split(',').peekable();
        while let Some(name) = parts.next() {
            let mut counter = HardwareCounter::from_text_or_unknown(name.trim());
            // One has a comma in its name.
            if counter == HardwareCounter::Unknown
                && let Some(rest) = parts.peek()
            {
                counter = HardwareCounter::from_text_or_unknown(format!("{name},{rest}").trim());
                if counter != HardwareCounter::Unknown {
                    parts.next();
                }
            }
            if counter == HardwareCounter::Unknown {
                let all = HardwareCounter::ALL.iter().map(|c| format!("`{c}`"));
                return Err(format!(
                    "there is no counter `{}`: write `default`, `wide`, or names with commas between: {}",
                    name.trim(),
                    all.collect::<Vec<_>>().join(", ")
                ));
            }
            if !named.contains(&counter) {
                named.push(counter);
            }
        }
        Ok(CounterSet::Named(named))
    }
}

impl CounterSet {
    /// Its counters.
    pub fn counters(&self) -> &[HardwareCounter] {
        match self {
            CounterSet::Few => &FEW,
            CounterSet::Wide => HardwareCounter::ALL,
            CounterSet::Named(named) => named,
        }
    }

    /// Whether it is not one of names: other vendors' counters, which have other names, are counted too.
    pub fn takes_what_there_is(&self) -> bool {
        !matches!(self, CounterSet::Named(_))
    }

    /// How often its counters can be sampled without losses.
    pub fn interval(&self) -> Duration {
        match self.counters().len() {
            ..=4 => OF_FEW,
            _ => OF_WIDE,
        }
    }
}

impl CounterOptions {
    /// The time between two samples.
    pub fn interval(&self) -> Duration {
        self.interval.unwrap_or_else(|| self.set.interval())
    }
}

/// The metrics of CUPTI that mean a counter, the best first: chips know different ones. Those of `TriageCompute` are counted in one
/// pass together.
pub fn metrics(counter: HardwareCounter) -> &'static [&'static str] {
    use HardwareCounter::*;
    match counter {
        SmActive => &[
            "TPC.TriageCompute.sm__cycles_active.avg.pct_of_peak_sustained_elapsed",
            "sm__cycles_active.avg.pct_of_peak_sustained_elapsed",
        ],
        WarpsActive => &[
            "TPC.TriageCompute.tpc__warps_active_realtime.avg.pct_of_peak_sustained_elapsed",
            "sm__warps_active.avg.pct_of_peak_sustained_elapsed",
        ],
        TensorActive => &[
            "TPC.TriageCompute.sm__pipe_tensor_cycles_active_realtime.avg.pct_of_peak_sustained_elapsed",
            "sm__inst_executed_pipe_tensor.avg.pct_of_peak_sustained_elapsed",
        ],
        FmaActive => &[
            "TPC.TriageCompute.sm__inst_executed_pipe_fma_realtime.avg.pct_of_peak_sustained_elapsed",
            "TPC.TriageCompute.sm__pipe_fma_cycles_active_realtime.avg.pct_of_peak_sustained_elapsed",
            "sm__pipe_fma_cycles_active.avg.pct_of_peak_sustained_elapsed",
        ],
        AluActive => &[
            "TPC.TriageCompute.sm__inst_executed_pipe_alu_realtime.avg.pct_of_peak_sustained_elapsed",
            "sm__pipe_alu_cycles_active.avg.pct_of_peak_sustained_elapsed",
        ],
        InstructionsExecuted => &[
            "TPC.TriageCompute.sm__inst_executed_realtime.avg.pct_of_peak_sustained_elapsed",
            "sm__inst_executed.avg.pct_of_peak_sustained_elapsed",
        ],
        DramRead => &["dram__bytes_read.sum"],
        DramWritten => &["dram__bytes_write.sum"],
        L2HitRate => &[
            "LTS.TriageCompute.lts__average_t_sector_hit_rate_realtime.pct",
            "lts__t_sector_hit_rate.pct",
        ],
        L2Throughput => &["LTS.TriageCompute.lts__throughput.avg.pct_of_peak_sustained_elapsed"],
        PcieRead => &["pcie__read_bytes.sum"],
        PcieWritten => &["pcie__write_bytes.sum"],
        // Without what the links add to the data.
        NvlinkReceived => &["nvlrx__bytes_data_user.sum", "nvlrx__bytes.sum"],
        NvlinkSent => &["nvltx__bytes_data_user.sum", "nvltx__bytes.sum"],
        SmClock => &["sm__cycles_elapsed.avg.per_second"],
        Unknown => &[],
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_set_is_written_by_its_name_or_by_those_of_its_counters() {
        assert_eq!("default".parse(), Ok(CounterSet::Few));
        assert_eq!("wide".parse(), Ok(CounterSet::Wide));
        let two = vec![HardwareCounter::DramRead, HardwareCounter::SmActive];
        assert_eq!(
            "DRAM read, SMs active,DRAM read".parse(),
            Ok(CounterSet::Named(two))
        );
        let all: Vec<&str> = HardwareCounter::ALL.iter().map(|c| c.as_str()).collect();
        let listed = all.join(",").parse::<CounterSet>().unwrap();
        assert_eq!(listed.counters(), HardwareCounter::ALL);
        let refused = CounterSet::from_str("DRAM read,moon").unwrap_err();
        assert!(refused.contains("`moon`"), "{refused}");
        assert!(refused.contains("L2 hit rate"), "{refused}");
    }

    #[test]
    fn every_counter_has_a_metric_and_no_metric_is_of_two() {
        let mut all: Vec<_> = (HardwareCounter::ALL.iter())
            .flat_map(|counter| {
                assert!(!metrics(*counter).is_empty(), "{counter}");
                metrics(*counter)
            })
            .collect();
        let listed = all.len();
        all.sort_unstable();
        all.dedup();
        assert_eq!(all.len(), listed);
    }
}
