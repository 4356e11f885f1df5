//! Chooses the metrics to sample on a GPU: as many as the GPU can count in one pass (a run of its counting units with
//! one configuration, since sampling cannot repeat the work), and of each counter the best metric that fits. A
//! counter is a quantity that gapscope names; a metric is CUPTI's (NVIDIA's profiling library's) way to count it.

use crate::counters::pipe::Column;
use crate::counters::selection::metrics;
use gapscope_cupti::{Cupti, Failure, Host, Metrics, ProfilerKind};
use gapscope_model::HardwareCounter;
use std::ffi::CStr;

/// The metrics to sample.
#[derive(Debug)]
pub struct Plan {
    /// The counters that are sampled, in the order in which they were asked for.
    pub counters: Vec<HardwareCounter>,
    /// The metric of each counter.
    pub names: Vec<&'static str>,
    pub metrics: Metrics,
    /// CUPTI's configuration of the GPU's counting units for these metrics.
    pub config: Vec<u8>,
    /// The part of CUPTI that evaluates the metrics: computes their values from what was counted.
    pub host: Host,
    /// The counters that the GPU lacks.
    pub absent: Vec<HardwareCounter>,
    /// The counters that do not fit into one pass with the others.
    pub crowded: Vec<HardwareCounter>,
}

impl Plan {
    /// Plans a pass for the chip: takes the counters in the order of `asked`, and of each the first metric with which
    /// all still fit into one pass. `availability` is CUPTI's image of the counters that the device has.
    ///
    /// # Errors
    /// CUPTI cannot plan for the chip at all.
    pub fn new(
        cupti: &Cupti,
        chip: &CStr,
        availability: Option<&[u8]>,
        asked: &[HardwareCounter],
    ) -> Result<Plan, Failure> {
        let plan = |names: &[&'static str]| -> Result<(Host, Metrics, Vec<u8>, usize), Failure> {
            let mut host = Host::new(cupti, ProfilerKind::Sampling, chip, availability)?;
            let metrics = Metrics::new(names.iter().copied());
            host.add(&metrics)?;
            let config = host.config_image()?;
            let passes = host.passes(&config)?;
            Ok((host, metrics, config, passes))
        };
        // A fault of the chip or the library must not be taken for that of a metric.
        drop(Host::new(
            cupti,
            ProfilerKind::Sampling,
            chip,
            availability,
        )?);
        let (mut counters, mut names) = (Vec::new(), Vec::new());
        let (mut absent, mut crowded) = (Vec::new(), Vec::new());
        for counter in asked {
            let (mut known, mut found) = (false, None);
            for metric in metrics(*counter) {
                names.push(*metric);
                match plan(&names) {
                    Ok((.., 1)) => found = Some(*metric),
                    Ok(_) => known = true,
                    Err(_) => {}
                }
                names.pop();
                if found.is_some() {
                    break;
                }
            }
            match found {
                Some(metric) => {
                    names.push(metric);
                    counters.push(*counter);
                }
                None if known => crowded.push(*counter),
                None => absent.push(*counter),
            }
        }
        let (host, metrics, config, _) = plan(&names)?;
        Ok(Plan {
            counters,
            names,
            metrics,
            config,
            host,
            absent,
            crowded,
        })
    }

    /// Returns the columns in the trace, one for each counter.
    pub fn columns(&self, interval_ns: u64) -> Vec<Column> {
        let every = interval(interval_ns);
        let all = self.counters.iter().zip(&self.names);
        all.map(|(counter, metric)| Column {
            counter: *counter,
            source: format!("CUPTI PM sampling, {metric}, every {every}"),
        })
        .collect()
    }
}

/// Writes a time in the largest unit of which it is a whole number.
fn interval(ns: u64) -> String {
    match ns {
        _ if ns.is_multiple_of(1_000_000) => format!("{} ms", ns / 1_000_000),
        _ if ns.is_multiple_of(1_000) => format!("{} us", ns / 1_000),
        _ => format!("{ns} ns"),
    }
}

/// Tests that need a real libcupti with its host library.
#[cfg(test)]
mod tests {
    use super::*;
    use crate::counters::selection::CounterSet;

    #[test]
    fn the_sets_fit_one_pass_of_the_chips_that_have_their_metrics() {
        let Some(path) = crate::test_tools::cupti() else {
            return;
        };
        let cupti = Cupti::open(&path).unwrap();
        let plan =
            |chip: &CStr, set: CounterSet| Plan::new(&cupti, chip, None, set.counters()).unwrap();
        let few = CounterSet::Default.counters();
        for chip in [c"GH100", c"GA102", c"AD102", c"GB100", c"GB102"] {
            let plan = plan(chip, CounterSet::Default);
            assert_eq!(plan.counters, few, "{chip:?}");
        }
        let wide = plan(c"GH100", CounterSet::Wide);
        assert_eq!(wide.counters, HardwareCounter::ALL);
        for of_users in ["nvlrx__bytes_data_user.sum", "nvltx__bytes_data_user.sum"] {
            assert!(wide.names.contains(&of_users), "{:?}", wide.names);
        }
        assert!((wide.names.iter()).all(|name| !name.starts_with("sm__inst")));
        for chip in [c"GA100", c"GA102", c"AD102", c"GB100", c"GB202"] {
            let plan = plan(chip, CounterSet::Wide);
            assert!(plan.counters.len() >= 5, "{chip:?}: {:?}", plan.names);
            let left = plan.absent.len() + plan.crowded.len();
            assert_eq!(plan.counters.len() + left, HardwareCounter::ALL.len());
        }
        let refused = Plan::new(&cupti, c"GX900", None, few);
        assert!(refused.is_err());
    }

    #[test]
    fn the_time_between_samples_is_in_words() {
        let words = [100_000, 1_000_000, 20_000_000, 1_500].map(interval);
        assert_eq!(words, ["100 us", "1 ms", "20 ms", "1500 ns"]);
    }
}
