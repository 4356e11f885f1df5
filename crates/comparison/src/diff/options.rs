//! The options of a comparison.

use super::gate::Gate;

/// A difference is reported when noise makes one as great in at most this share of diffs.
pub const LEVEL: f64 = 0.01;

/// How much the time of a run is assumed to differ from run to run where each side has only one, as the standard deviation of its
/// logarithm: on a GPU, and on a software device, which shares its processor with the program.
pub const ASSUMED_SPREAD: [f64; 2] = [0.01, 0.05];

/// The options of a comparison.
#[derive(Debug, Clone, PartialEq)]
pub struct Options {
    /// See [`LEVEL`].
    pub level: f64,
    /// See [`ASSUMED_SPREAD`]. It is chosen by the devices where it is not given.
    pub assumed_spread: Option<f64>,
    /// The gates to check.
    pub gates: Vec<Gate>,
    /// A gate whose figure is not known holds.
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
