//! The options of a comparison of runs.

use super::gate::Gate;

/// The share of diffs in which noise alone may make a difference as great as one that is reported.
pub const LEVEL: f64 = 0.01;

/// The options of a comparison of runs.
#[derive(Debug, Clone, PartialEq)]
pub struct Options {
    /// The share of diffs that may report noise, as [`LEVEL`].
    pub level: f64,
    /// The assumed spread of times from run to run, where each side has only one run, as the standard deviation of the time's
    /// logarithm; `None` to choose the spread by the devices and by what was recorded of them.
    pub assumed_spread: Option<f64>,
    /// The gates to check: limits on changes, such as `gpu_time > 3%`.
    pub gates: Vec<Gate>,
    /// True where a gate whose figure is not known holds.
    pub allow_unknown: bool,
}

impl Default for Options {
    fn default() -> Options {
        Options {
            level: LEVEL,
            assumed_spread: None,
            gates: Vec::new(),
            allow_unknown: false,
        }
    }
}
