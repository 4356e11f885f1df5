//! Assumes how much the figures of a run vary from run to run, for where each side has one run. Of a run it takes the kind of its
//! devices, whether their clocks were recorded, and how long tasks waited for a processor, and it returns a standard deviation of the
//! logarithm of a figure.
//!
//! Where tasks waited for a share `w` of the time, the work itself may have waited for nothing of it or for all, and has then taken
//! up to `1 / (1 − w)` times as long. All between is taken as equally likely, on the scale of logarithms. A part of the run, such as the
//! time of a kernel, may have got more than its share of the waiting: `√w` stands for its share, between that of the run and all. On a
//! software GPU that holds for all times; elsewhere for the part of a time in which the GPU waited for the host.
//!
//! A GPU whose clocks were not recorded may have run at others: that holds for the part of a time in which the GPU worked.

use super::metric::Metric;
use super::options::Options;
use super::run::{RunDigest, is_software};
use gapscope_timeline::quantity::share;
use gapscope_timeline::thresholds::{
    ASSUMED_SPREAD, PRESSURE_PART_SPREAD, PRESSURE_SPREAD, SOFTWARE_SPREAD, UNCLOCKED_SPREAD,
};

/// The share of the time in which tasks waited for a processor from which on it is told.
const MIN_WAITED: f64 = 0.1;

/// The assumption on how much runs vary.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(super) struct AssumedSpread {
    /// The spread that the user gave, which then holds under every load.
    given: Option<f64>,
}

/// A reason why a figure varies from run to run: its standard deviation, and a text for people.
pub(super) type SpreadReason = (f64, String);

impl AssumedSpread {
    /// Returns the assumption by the options.
    pub const fn new(options: &Options) -> AssumedSpread {
        AssumedSpread {
            given: options.assumed_spread,
        }
    }

    /// Returns a spread that does not depend on the run.
    #[cfg(test)]
    pub const fn certain(spread: f64) -> AssumedSpread {
        AssumedSpread {
            given: Some(spread),
        }
    }

    /// Returns true where the user gave the spread.
    pub const fn is_given(self) -> bool {
        self.given.is_some()
    }

    /// Returns the spread of a run's figure.
    pub fn of_metric(self, run: &RunDigest, metric: Metric) -> f64 {
        let unclocked = self.unclocked(run) * busy_share(run, metric);
        self.base(run)
            .hypot(self.waits(run, Some(metric)))
            .hypot(unclocked)
    }

    /// Returns the spread of the time of a kernel of a run. `common` is by how much the other kernels changed, as a logarithm; a GPU of
    /// another clock changes them, too.
    pub fn of_kernel(self, run: &RunDigest, common: Option<f64>) -> f64 {
        let clock = self.unclocked(run);
        let unclocked = common.map_or(clock, |common| common.abs().min(clock));
        self.base(run).hypot(self.waits(run, None)).hypot(unclocked)
    }

    /// Returns the reasons why the time from start to end of single runs varies, for the run of each with the greatest spread.
    pub fn reasons(self, runs: &[&RunDigest]) -> Vec<SpreadReason> {
        let greatest = |spread: &dyn Fn(&RunDigest) -> f64| {
            let spreads = runs.iter().map(|run| spread(run));
            spreads.fold(0.0, f64::max)
        };
        let base = greatest(&|run| self.base(run));
        if self.is_given() {
            return vec![(base, format!("the spread that was given ({})", share(base)))];
        }
        let is_software = runs.iter().any(|run| is_on_processors(run));
        let on = if is_software {
            " on a software GPU"
        } else {
            ""
        };
        let other = format!(
            "what else differs from run to run{on} (assumed: {} a run)",
            share(base)
        );
        let mut reasons = vec![(base, other)];
        let clocks = greatest(&|run| self.unclocked(run) * busy_share(run, Metric::WallTime));
        if clocks > 0.0 {
            let text = format!(
                "clocks of the GPU, which were not recorded (assumed: {} a run)",
                share(clocks)
            );
            reasons.push((clocks, text));
        }
        let waits = greatest(&|run| self.waits(run, Some(Metric::WallTime)));
        let waited = runs.iter().filter_map(|run| run.surroundings.waited);
        match waited.reduce(f64::max) {
            Some(waited) if waited >= MIN_WAITED => reasons.push((
                waits,
                format!(
                    "how long tasks waited for a processor or for memory ({} of the time: {} a run)",
                    share(waited),
                    share(waits)
                ),
            )),
            None if is_software => reasons.push((
                base,
                "how long tasks waited for a processor, which was not measured".to_owned(),
            )),
            _ => {}
        }
        reasons
    }

    /// Returns the spread of a run that waited for nothing, on GPUs of known clocks.
    fn base(self, run: &RunDigest) -> f64 {
        self.given.unwrap_or(match is_on_processors(run) {
            true => SOFTWARE_SPREAD,
            false => ASSUMED_SPREAD,
        })
    }

    /// Returns the spread that unknown clocks add to times in which a GPU works.
    fn unclocked(self, run: &RunDigest) -> f64 {
        let is_known = run.surroundings.clocks.is_some() || is_on_processors(run);
        match self.is_given() || is_known {
            true => 0.0,
            false => UNCLOCKED_SPREAD,
        }
    }

    /// Returns the spread that waits for processors add to a figure, or to the time of a kernel without one.
    fn waits(self, run: &RunDigest, metric: Option<Metric>) -> f64 {
        let is_whole = matches!(metric, Some(Metric::WallTime | Metric::GpuTime));
        let waits = waits_spread(run, is_whole).filter(|_| !self.is_given());
        let host_share = match is_on_processors(run) {
            true => 1.0,
            false => host_share(run, metric),
        };
        waits.map_or(0.0, |waits| waits * host_share)
    }
}

/// Returns the share of a figure in which a GPU works.
fn busy_share(run: &RunDigest, metric: Metric) -> f64 {
    match metric {
        Metric::GpuTime => 1.0,
        Metric::WallTime => 1.0 - host_share(run, Some(metric)),
        _ => 0.0,
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

    /// Returns the spread in thousandths of a figure, or of a kernel without one.
    fn thousandths(run: &RunDigest, metric: Option<Metric>, options: &Options) -> f64 {
        let assumed = AssumedSpread::new(options);
        let spread = match metric {
            Some(metric) => assumed.of_metric(run, metric),
            None => assumed.of_kernel(run, Some(0.0)),
        };
        (spread * 1e3).round()
    }

    #[test]
    fn waits_for_processors_widen_what_they_touch() {
        let (wall, gpu) = (Some(Metric::WallTime), Some(Metric::GpuTime));
        let idle = Some(Metric::IdleTime);
        let software = |waited| run("llvmpipe (LLVM 15.0.6, 256 bits)", 0.1, Some(waited));
        let hardware = |waited| {
            let mut run = run("NVIDIA H100", 0.1, Some(waited));
            run.surroundings.clocks = Some([1.98e9; 2]);
            run
        };
        for (run, metric, expected) in [
            (software(0.0), wall, 50.0),
            (software(0.3), wall, 114.0),
            (software(0.3), None, 234.0),
            (software(0.99), gpu, 502.0),
            (software(1.0), gpu, 502.0),
            (run("llvmpipe", 0.1, None), wall, 50.0),
            (hardware(0.99), gpu, 10.0),
            (hardware(0.99), None, 10.0),
            (hardware(0.99), idle, 750.0),
            (hardware(0.99), wall, 51.0),
            (hardware(0.0), idle, 10.0),
        ] {
            assert_eq!(
                thousandths(&run, metric, &Options::default()),
                expected,
                "{metric:?} {:?}",
                run.surroundings
            );
        }
        let given = Options {
            assumed_spread: Some(0.02),
            ..Options::default()
        };
        assert_eq!(thousandths(&software(0.99), wall, &given), 20.0);
    }

    #[test]
    fn unknown_clocks_widen_the_times_in_which_a_gpu_works() {
        let unclocked = run("NVIDIA H100", 0.9, None);
        for (metric, expected) in [
            (Metric::GpuTime, 27.0),
            (Metric::WallTime, 10.0),
            (Metric::IdleTime, 10.0),
        ] {
            assert_eq!(
                thousandths(&unclocked, Some(metric), &Options::default()),
                expected,
                "{metric:?}"
            );
        }
        let of_kernel =
            |common| AssumedSpread::new(&Options::default()).of_kernel(&unclocked, common);
        assert_eq!(of_kernel(None), 0.01_f64.hypot(0.025));
        assert_eq!(of_kernel(Some(-0.2)), 0.01_f64.hypot(0.025));
        assert_eq!(of_kernel(Some(0.0)), 0.01);
    }
}
