//! Chooses the hardware counters to sample from the user's wish (`--counters`), the time between samples, and the
//! vendor's metrics that count them.

use gapscope_model::HardwareCounter;
use std::str::FromStr;
use std::time::Duration;

/// The user's choice of counters, and of the time between samples.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct CounterOptions {
    /// The counters to sample.
    pub set: CounterSet,
    /// The time between two samples; the set's own when absent.
    pub interval: Option<Duration>,
}

/// Counters that are sampled together. Earlier ones get room first.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub enum CounterSet {
    /// The activity of the multiprocessors, memory traffic, and tensor cores.
    #[default]
    Default,
    /// All counters that can be counted at once.
    Wide,
    /// The named counters.
    Named(Vec<HardwareCounter>),
}

/// The counters of [`CounterSet::Default`].
const DEFAULT_COUNTERS: [HardwareCounter; 4] = [
    HardwareCounter::SmActive,
    HardwareCounter::DramRead,
    HardwareCounter::DramWritten,
    HardwareCounter::TensorActive,
];
/// The shortest intervals without losses, as measured on an H200 (docs/counters.md).
const DEFAULT_INTERVAL: Duration = Duration::from_micros(100);
/// The interval for more than four counters.
const WIDE_INTERVAL: Duration = Duration::from_millis(1);

/// A name that no hardware counter has.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error(
    "there is no counter `{0}`: write `default`, `wide`, or names with commas between: {all}",
    all = all_counters()
)]
pub struct UnknownCounter(String);

fn all_counters() -> String {
    let names = HardwareCounter::ALL.iter().map(|c| format!("`{c}`"));
    names.collect::<Vec<_>>().join(", ")
}

impl FromStr for CounterSet {
    type Err = UnknownCounter;

    fn from_str(text: &str) -> Result<CounterSet, UnknownCounter> {
        match text {
            "default" => return Ok(CounterSet::Default),
            "wide" => return Ok(CounterSet::Wide),
            _ => {}
        }
        let mut named = Vec::new();
        let mut parts = text.split(',').peekable();
        while let Some(name) = parts.next() {
            let mut counter = HardwareCounter::from_text_or_unknown(name.trim());
            // One counter has a comma in its name.
            if counter == HardwareCounter::Unknown
                && let Some(rest) = parts.peek()
            {
                counter = HardwareCounter::from_text_or_unknown(format!("{name},{rest}").trim());
                if counter != HardwareCounter::Unknown {
                    parts.next();
                }
            }
            if counter == HardwareCounter::Unknown {
                return Err(UnknownCounter(name.trim().to_owned()));
            }
            if !named.contains(&counter) {
                named.push(counter);
            }
        }
        Ok(CounterSet::Named(named))
    }
}

impl CounterSet {
    /// Returns the counters of the set.
    pub fn counters(&self) -> &[HardwareCounter] {
        match self {
            CounterSet::Default => &DEFAULT_COUNTERS,
            CounterSet::Wide => HardwareCounter::ALL,
            CounterSet::Named(named) => named,
        }
    }

    /// Returns true for a set that is not one of names. Such a set includes other vendors' counters, which have other
    /// names.
    pub fn includes_other_vendors(&self) -> bool {
        !matches!(self, CounterSet::Named(_))
    }

    /// Returns the shortest interval at which the counters can be sampled without losses.
    pub fn interval(&self) -> Duration {
        match self.counters().len() {
            ..=4 => DEFAULT_INTERVAL,
            _ => WIDE_INTERVAL,
        }
    }
}

impl CounterOptions {
    /// Returns the time between two samples.
    pub fn interval(&self) -> Duration {
        self.interval.unwrap_or_else(|| self.set.interval())
    }
}

/// Returns CUPTI's metrics for a counter, the best first, because chips know different ones. Metrics of
/// `TriageCompute` are counted together in one pass.
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
        // These count the data without what the links add.
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
        assert_eq!("default".parse(), Ok(CounterSet::Default));
        assert_eq!("wide".parse(), Ok(CounterSet::Wide));
        let two = vec![HardwareCounter::DramRead, HardwareCounter::SmActive];
        assert_eq!(
            "DRAM read, SMs active,DRAM read".parse(),
            Ok(CounterSet::Named(two))
        );
        let all: Vec<&str> = HardwareCounter::ALL.iter().map(|c| c.as_str()).collect();
        let listed = all.join(",").parse::<CounterSet>().unwrap();
        assert_eq!(listed.counters(), HardwareCounter::ALL);
        let refused = CounterSet::from_str("DRAM read,moon")
            .unwrap_err()
            .to_string();
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
