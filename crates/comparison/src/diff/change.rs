//! The change of one figure, or of one kernel's time, between two sets of runs. `changes` computes it; reports and
//! JSON show it.

use super::estimate::{Estimate, Noise};
use super::matching::How;
use super::metric::Unit;
use gapscope_analysis::launch_sizes::SizeChange;
use schemars::JsonSchema;
use serde::Serialize;

/// A figure before and after.
#[derive(Debug, Clone, PartialEq, Serialize, JsonSchema)]
pub struct Change {
    /// The name of the figure for people, such as `kernel softmax`.
    pub what: String,
    /// The kind of figure.
    pub kind: ChangeKind,
    /// Its stable name: a metric as in gates, or the kernel's name after, or before where it is only there.
    pub name: String,
    /// Label path of the kernel, with numbers as `#`.
    pub label: Option<String>,
    /// The unit of `before` and `after`.
    pub unit: Unit,
    /// The figure for one evaluation where [`EqualWork`](super::EqualWork) says so, else for a run; the geometric mean of several
    /// runs.
    pub before: Option<f64>,
    /// The figure after.
    pub after: Option<f64>,
    /// `before`, where it is a time.
    pub before_ns: Option<f64>,
    /// `after`, where it is a time.
    pub after_ns: Option<f64>,
    /// `after / before`, above 1 where the figure grew. Absent where there is nothing before.
    pub ratio: Option<f64>,
    /// The true ratio is between this one, ...
    pub low: Option<f64>,
    /// ... and this one, in 95 of 100 cases.
    pub high: Option<f64>,
    /// The chance that noise alone makes a difference as great, or one as unlikely in any other figure of this diff. Absent where
    /// nothing varies or the figure was not tested.
    pub p_noise: Option<f64>,
    /// The chance for this figure alone.
    pub p_alone: Option<f64>,
    /// The figure changed by more than noise.
    pub significant: bool,
    /// The least ratio above 1 that these runs could tell from noise; a lesser change, up or down, cannot be told. Absent where
    /// the noise is not known, or there is none.
    pub least_ratio_told: Option<f64>,
    /// The noise, where it is known.
    #[serde(skip)]
    pub(super) noise: Option<Noise>,
    /// True where the figure is too small a part of the time to be tested.
    #[serde(skip)]
    pub(super) is_small: bool,
    /// True for each side, before and after, of which some of what the figure counts was lost: the figure is a lower bound there, and
    /// is not compared.
    #[serde(skip_serializing_if = "is_whole")]
    pub at_least: [bool; 2],
    /// The number of runs before and after.
    pub samples: [u64; 2],
    /// How the kernel was matched.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub matched: Option<How>,
    /// Names of the kernels before, where they are not `name`.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub before_names: Vec<String>,
    /// Names of the kernels after, where they are not `name`.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub after_names: Vec<String>,
    /// Dispatches of the kernel before and after.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub counts: Option<[f64; 2]>,
    /// Workgroups and threads of a dispatch of the kernel, where they are known on both sides.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub size: Option<Box<SizeChange>>,
    /// The change of the time of a typical dispatch of the kernel: the mean of the middle half.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub typical: Option<Box<Change>>,
}

/// Returns true where no side's figure is a lower bound.
pub(super) fn is_whole(at_least: &[bool; 2]) -> bool {
    *at_least == [false; 2]
}

/// The reason why it is not said whether a figure changed.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum NotJudged {
    /// The figure is too small a part of the time to be tested.
    Small,
    /// A side's figure is not known.
    Unknown,
    /// Some of what the figure counts was lost on a side.
    Lost,
    /// How much the figure varies is not known, as where one run a side has few dispatches.
    Noise,
}

/// The kind of figure that changed.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum ChangeKind {
    /// A time of the whole run.
    Time,
    /// Idle time of one cause.
    Idle,
    /// The time of a kernel.
    Kernel,
    /// The time of one typical dispatch of a kernel.
    Dispatch,
    /// A count or a size.
    Count,
}

impl Change {
    /// Makes the change of a figure from its estimate, before the correction for other comparisons; `samples` are the
    /// numbers of runs.
    pub(super) fn new(
        kind: ChangeKind,
        name: String,
        unit: Unit,
        estimate: Estimate,
        samples: [u64; 2],
    ) -> Change {
        let ns = |value: Option<f64>| value.filter(|_| unit == Unit::Ns);
        Change {
            what: name.clone(),
            kind,
            name,
            label: None,
            unit,
            before: estimate.before,
            after: estimate.after,
            before_ns: ns(estimate.before),
            after_ns: ns(estimate.after),
            ratio: estimate.ratio,
            low: estimate.low,
            high: estimate.high,
            p_noise: None,
            p_alone: estimate.p,
            // The difference of counts that do not vary is not noise.
            significant: estimate.exact && estimate.before != estimate.after,
            least_ratio_told: None,
            noise: estimate.noise,
            is_small: false,
            at_least: estimate.at_least,
            samples,
            matched: None,
            before_names: Vec::new(),
            after_names: Vec::new(),
            counts: None,
            size: None,
            typical: None,
        }
    }

    /// Returns the difference, which is negative where the figure shrank.
    pub fn by(&self) -> Option<f64> {
        Some(self.after? - self.before?)
    }

    /// Returns why it is not said whether the figure changed; `None` where that is said.
    pub fn not_judged(&self) -> Option<NotJudged> {
        match (self.before, self.after) {
            _ if self.significant || self.p_noise.is_some() => None,
            (Some(_), Some(_)) if self.is_small => Some(NotJudged::Small),
            (Some(_), Some(_)) if self.at_least == [false; 2] => Some(NotJudged::Noise),
            _ if self.at_least != [false; 2] => Some(NotJudged::Lost),
            _ => Some(NotJudged::Unknown),
        }
    }

    /// Returns true where the time of a typical dispatch of the kernel changed by more than noise.
    pub fn has_typical_change(&self) -> bool {
        let typical = self.typical.as_ref();
        typical.is_some_and(|typical| typical.significant)
    }

    /// Returns true where the figure grew by more than noise.
    pub fn grew(&self) -> bool {
        self.significant && self.by().is_some_and(|by| by > 0.0)
    }
}
