//! Decides which ranks have clocks whose times can be compared, and within which error.
//!
//! Ranks have one clock where their traces name the same boot of a machine and the same time namespace. Some traces name no boot: imported
//! ones, and old ones. They count as traces of one machine where they describe it alike and their wall clocks agree within
//! [`SAME_CLOCK_NS`].

use super::RankDigest;
use gapscope_timeline::thresholds::SAME_CLOCK_NS;
use std::cmp::Reverse;

/// The clocks of ranks, by the index of the rank.
pub(super) struct Clocks<'a>(&'a [&'a RankDigest]);

impl<'a> Clocks<'a> {
    pub(super) fn new(ranks: &'a [&'a RankDigest]) -> Clocks<'a> {
        Clocks(ranks)
    }

    /// Returns true if the hosts of two ranks have one clock.
    fn have_one_clock(&self, a: usize, b: usize) -> bool {
        let (a, b) = (self.0[a], self.0[b]);
        if let (Some(first), Some(second)) = (&a.host.boot_id, &b.host.boot_id) {
            return first == second && a.host.time_namespace == b.host.time_namespace;
        }
        let apart = match (a.offset_ns, b.offset_ns) {
            (Some(a), Some(b)) => a.abs_diff(b) >= SAME_CLOCK_NS as u64,
            // Traces without the wall clock are compared only by what they say of their host.
            _ => false,
        };
        a.host == b.host && !apart
    }

    /// Returns the error within which times of two ranks' hosts can be compared, or `None` where they cannot be, or where the traces do not say
    /// on which machine they were made: wall clocks that agree may be those of two machines.
    pub(super) fn host_error_ns(&self, a: usize, b: usize) -> Option<i64> {
        let host = &self.0[a].host;
        let is_named =
            host.boot_id.is_some() || !host.system.is_empty() || !host.processor.is_empty();
        (is_named && self.have_one_clock(a, b)).then_some(0)
    }

    /// Returns the error within which times of two ranks' devices can be compared, or `None` where they cannot be.
    pub(super) fn device_error_ns(&self, a: usize, b: usize) -> Option<i64> {
        let known =
            |rank: &RankDigest| rank.row.unread.is_empty().then_some(rank.clock_error_ns)?;
        let (first, second) = (known(self.0[a])?, known(self.0[b])?);
        match a == b {
            // An error that moves all times of a device alike does not move them against each other.
            true => Some(0),
            false => self
                .have_one_clock(a, b)
                .then(|| first.saturating_add(second)),
        }
    }

    /// Returns the greatest error within which any two devices can be compared, or `None` where one is not known.
    pub(super) fn worst_error_ns(&self) -> Option<i64> {
        let errors: Option<Vec<i64>> = self.0.iter().map(|d| d.clock_error_ns).collect();
        let mut errors = errors?;
        errors.sort_unstable_by_key(|ns| Reverse(*ns));
        let worst = errors.iter().take(2);
        Some(worst.fold(0i64, |sum, ns| sum.saturating_add(*ns)))
    }

    /// Returns why times of the ranks' devices cannot all be compared, or `None` where they can.
    pub(super) fn not_comparable(&self) -> Option<String> {
        let ranks = self.0;
        if ranks.len() < 2 {
            return Some("there is only one rank".to_owned());
        }
        if let Some(unread) = ranks.iter().find(|rank| !rank.row.unread.is_empty()) {
            return Some(format!("not all of rank {} could be read", unread.row.rank));
        }
        if let Some(other) = (1..ranks.len()).find(|other| !self.have_one_clock(0, *other)) {
            return Some(format!(
                "ranks {} and {} were recorded on different machines, whose clocks are not one",
                ranks[0].row.rank, ranks[other].row.rank
            ));
        }
        let unknown: Vec<String> = (ranks.iter())
            .filter(|d| d.clock_error_ns.is_none())
            .map(|d| d.row.rank.to_string())
            .collect();
        match unknown.as_slice() {
            [] => None,
            [rank] => Some(format!(
                "the error of the device times of rank {rank} is not known"
            )),
            ranks => Some(format!(
                "the errors of the device times of ranks {} are not known",
                ranks.join(", ")
            )),
        }
    }
}
