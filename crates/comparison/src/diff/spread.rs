//! Assumes how much the figures of a run vary from run to run, for where each side has one run. Of a run it takes the kind of its
//! devices, and how long tasks waited for a processor, and it returns a standard deviation of the logarithm of a figure.
//!
//! Where tasks waited for a share `w` of the time, the work itself may have waited for nothing of it or for all, and has then taken
//! up to `1 / (1 − w)` times as long. All between is taken as equally likely, on the scale of logarithms. A part of the run, such as the
//! time of a kernel, may have got more than its share of the waiting: `√w` stands for its share, between that of the run and all. On a
//! software GPU that holds for all times; elsewhere for the part of a time in which the GPU waited for the host.

use super::metric::Metric;
use super::options::{ASSUMED_SPREAD, Options};
use super::run::{RunDigest, is_software};
use gapscope_timeline::quantity::share;
use gapscope_timeline::thresholds::{PRESSURE_PART_SPREAD, PRESSURE_SPREAD};

/// The share of the time in which tasks waited for a processor from which on it is told.
const MIN_WAITED: f64 = 0.1;

/// The assumption on how much runs vary.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(super) struct AssumedSpread {
    /// The spread of a run that waited for nothing.
    base: f64,
    /// True where the user gave the spread, which then holds under every load.
    is_given: bool,
}

impl AssumedSpread {
    /// Returns the assumption for runs of both sides.
    pub fn new(before: &[RunDigest], after: &[RunDigest], options: &Options) -> AssumedSpread {
        let software = before.iter().chain(after).any(is_on_processors);
        AssumedSpread {
            base: options
                .assumed_spread
                .unwrap_or(ASSUMED_SPREAD[usize::from(software)]),
            is_given: options.assumed_spread.is_some(),
        }
    }

    /// Says what the spread of the time from start to end of single runs rests on, such as `5.0 % (standard deviation)`.
    pub fn basis(&self, before: &[RunDigest], after: &[RunDigest]) -> String {
        let runs = || before.iter().chain(after);
        let spread = runs().map(|run| self.at(run, Some(Metric::WallTime)));
        let spread = share(spread.fold(0.0, f64::max));
        let waited = runs().filter_map(|run| run.surroundings.waited);
        let waited = waited.reduce(f64::max).filter(|_| !self.is_given);
        let unmeasured =
            runs().any(|run| is_on_processors(run) && run.surroundings.waited.is_none());
        let because = match waited {
            Some(waited) if waited >= MIN_WAITED => format!(
                ", as tasks waited for a processor or for memory for {} of the time",
                share(waited)
            ),
            _ if unmeasured && !self.is_given => {
                "; how long tasks waited for a processor was not measured".to_owned()
            }
            _ => String::new(),
        };
        format!("{spread} (standard deviation{because})")
    }

    /// Returns a spread that does not depend on the run.
    #[cfg(test)]
    pub const fn certain(base: f64) -> AssumedSpread {
        AssumedSpread {
            base,
            is_given: true,
        }
    }

    /// Returns true where the user gave the spread.
    pub const fn is_given(self) -> bool {
        self.is_given
    }

    /// Returns the spread of a run's time of a kind; `None` stands for the time of a kernel.
    pub fn at(&self, run: &RunDigest, metric: Option<Metric>) -> f64 {
        let is_whole = matches!(metric, Some(Metric::WallTime | Metric::GpuTime));
        let waits = waits_spread(run, is_whole).filter(|_| !self.is_given);
        let host_share = match is_on_processors(run) {
            true => 1.0,
            false => host_share(run, metric),
        };
        self.base.hypot(waits.unwrap_or(0.0) * host_share)
    }
}

/// Returns true where a device of the run is the processor.
fn is_on_processors(run: &RunDigest) -> bool {
    let mut devices = run.machine.devices.iter();
    devices.any(|device| is_software(device))
}

/// Returns the spread that a run's waits for processors add to times of the host, of the whole run or of a part of it.
fn waits_spread(run: &RunDigest, is_whole: bool) -> Option<f64> {
    let waited = run.surroundings.waited?.clamp(0.0, 1.0);
    let (waited, most) = match is_whole {
        true => (waited, PRESSURE_SPREAD),
        false => (waited.sqrt(), PRESSURE_PART_SPREAD),
    };
    // The standard deviation of what lies with equal chance anywhere in a range is its length over √12.
    Some((-(1.0 - waited).ln() / 12f64.sqrt()).min(most))
}

/// Returns the share of a figure in which a GPU waits for the host.
fn host_share(run: &RunDigest, metric: Option<Metric>) -> f64 {
    let value = |metric: Metric| run.figures.get(&metric)?.value;
    match metric {
        Some(Metric::IdleTime | Metric::IdleOf(_)) => 1.0,
        Some(Metric::WallTime) => value(Metric::IdleTime)
            .zip(value(Metric::WallTime))
            .filter(|(_, wall)| *wall > 0.0)
            .map_or(1.0, |(idle, wall)| (idle / wall).clamp(0.0, 1.0)),
        _ => 0.0,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::diff::run::{Reading, RunEnvironment};
    use std::collections::BTreeMap;

    /// A run of a second on a device, with a share of idle time, in which tasks waited for a share of the time.
    fn run(device: &str, idle: f64, waited: Option<f64>) -> RunDigest {
        let reading = |value: f64| Reading {
            value: Some(value),
            blocks: Vec::new(),
        };
        RunDigest {
            machine: crate::diff::Machine {
                devices: vec![device.to_owned()],
                ..Default::default()
            },
            surroundings: RunEnvironment {
                waited,
                ..RunEnvironment::default()
            },
            figures: BTreeMap::from([
                (Metric::WallTime, reading(1e9)),
                (Metric::IdleTime, reading(idle * 1e9)),
            ]),
            ..RunDigest::default()
        }
    }

    #[test]
    fn waits_for_processors_widen_what_they_touch() {
        let spread = |run: &RunDigest, metric: Option<Metric>| {
            let runs = [run.clone()];
            let assumed = AssumedSpread::new(&runs, &runs, &Options::default());
            (assumed.at(run, metric) * 1e3).round() / 1e3
        };
        let (wall, gpu) = (Some(Metric::WallTime), Some(Metric::GpuTime));
        let idle = Some(Metric::IdleTime);
        let software = |waited| run("llvmpipe (LLVM 15.0.6, 256 bits)", 0.1, Some(waited));
        let hardware = |waited| run("NVIDIA H100", 0.1, Some(waited));
        for (run, metric, expected) in [
            (software(0.0), wall, 0.05),
            (software(0.3), wall, 0.114),
            (software(0.3), None, 0.234),
            (software(0.99), gpu, 0.502),
            (software(1.0), gpu, 0.502),
            (run("llvmpipe", 0.1, None), wall, 0.05),
            (hardware(0.99), gpu, 0.01),
            (hardware(0.99), None, 0.01),
            (hardware(0.99), idle, 0.75),
            (hardware(0.99), wall, 0.051),
            (hardware(0.0), idle, 0.01),
        ] {
            assert_eq!(
                spread(&run, metric),
                expected,
                "{metric:?} {:?}",
                run.surroundings
            );
        }
        let given = Options {
            assumed_spread: Some(0.02),
            ..Options::default()
        };
        let loaded = [software(0.99)];
        let assumed = AssumedSpread::new(&loaded, &loaded, &given);
        assert_eq!(assumed.at(&loaded[0], wall), 0.02);
    }
}
