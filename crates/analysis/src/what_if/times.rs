//! Intervals of predicted times.

use schemars::JsonSchema;
use serde::Serialize;

/// An interval of times.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, JsonSchema)]
pub struct Times {
    /// The least.
    pub low: i64,
    /// With everything as the trace has it.
    pub mid: i64,
    /// The greatest.
    pub high: i64,
}

/// What no trace has changes a run, too: kernels take another time beside others and after pauses, waits return earlier or later, and
/// code of the host is slower when it has not run for a while. docs/accuracy.md has the pairs of runs on a GPU by which this is measured.
/// The first is a share of what the change saves, the second one of the changed time.
const MARGIN_OF_GAIN: f64 = 0.05;
const MARGIN_OF_TIME: f64 = 0.04;

impl Times {
    /// Widens the interval by what replays cannot know, for a change to a step that took `recorded_ns`. Without a gain nothing is added,
    /// and by itself the margin never turns a gain into a loss.
    pub(super) fn with_margin(self, recorded_ns: i64) -> Times {
        let margin = |ns: i64| {
            let gain = recorded_ns.abs_diff(ns) as f64;
            let margin = MARGIN_OF_GAIN * gain + (MARGIN_OF_TIME * ns as f64).min(gain);
            margin.min(gain).round() as i64
        };
        Times {
            low: self.low.saturating_sub(margin(self.low)).max(0),
            mid: self.mid,
            high: self.high.saturating_add(margin(self.high)),
        }
    }
}
