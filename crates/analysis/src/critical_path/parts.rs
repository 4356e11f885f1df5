//! The time of a critical path by what it runs through: work by its kind, and idle time by its side; and the same of each device or rank
//! of a joint path.

use crate::gaps::Side;
use gapscope_timeline::Content;

/// The time of a path, or of a part of a path, by what it runs through.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct PathParts {
    /// The time in work that computes.
    pub compute_ns: i64,
    /// The time in communication. Where the ranks are joined, the time before the last arrival is not in it.
    pub communication_ns: i64,
    /// The time in transfers.
    pub transfer_ns: i64,
    /// The time between pieces of work, by side, in the order of [`Side::ALL`].
    pub sides: [i64; Side::ALL.len()],
}

impl PathParts {
    pub(crate) fn add_work(&mut self, content: Content, ns: i64) {
        let sum = match content {
            Content::Communication => &mut self.communication_ns,
            Content::Transfer => &mut self.transfer_ns,
            // The device may have idled inside of such work.
            Content::Whole { idle: true, .. } => &mut self.sides[Side::Unknown as usize],
            _ => &mut self.compute_ns,
        };
        *sum = sum.saturating_add(ns);
    }

    pub(crate) fn add_idle(&mut self, side: Side, ns: i64) {
        let sum = &mut self.sides[side as usize];
        *sum = sum.saturating_add(ns);
    }

    fn zip(self, other: PathParts, with: impl Fn(i64, i64) -> i64) -> PathParts {
        PathParts {
            compute_ns: with(self.compute_ns, other.compute_ns),
            communication_ns: with(self.communication_ns, other.communication_ns),
            transfer_ns: with(self.transfer_ns, other.transfer_ns),
            sides: std::array::from_fn(|at| with(self.sides[at], other.sides[at])),
        }
    }

    /// Returns the sums of both.
    pub fn plus(self, other: PathParts) -> PathParts {
        self.zip(other, i64::saturating_add)
    }

    /// Returns what is left without the parts of another, which is in these.
    pub(crate) fn without(self, other: PathParts) -> PathParts {
        self.zip(other, |all, ns| all.saturating_sub(ns).max(0))
    }

    /// Returns the idle time of all sides.
    pub fn idle_ns(&self) -> i64 {
        self.sides.iter().fold(0, |sum, ns| sum.saturating_add(*ns))
    }

    /// Returns the time of all parts.
    pub fn total_ns(&self) -> i64 {
        let work = [self.compute_ns, self.communication_ns, self.transfer_ns];
        (work.into_iter()).fold(self.idle_ns(), i64::saturating_add)
    }
}

/// The critical path through several devices.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct JointPath {
    /// The words of sentences for the devices together, such as `ranks`.
    pub of: &'static str,
    /// The path's time on each device.
    pub devices: Vec<PathOfDevice>,
    /// The computing time of the device that computed the longest.
    pub most_compute_ns: i64,
    /// So much of the communication may be something else, because the clocks of the devices agree only within an error.
    pub error_ns: i64,
    /// True where the path could as well run through other devices, as these came last to communication within the clocks' error: then no
    /// device is named.
    pub runs_through_any: bool,
}

/// The part of a path on one device.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct PathOfDevice {
    /// The words of sentences for the device, such as `rank 2`.
    pub name: String,
    /// The time of the path there.
    pub parts: PathParts,
    /// The share of its computing in which its kernels could use little of it.
    pub underfilled_share: f64,
    /// The share of its idle time of unknown cause in which work without known times may have run.
    pub untimed_share: f64,
}
