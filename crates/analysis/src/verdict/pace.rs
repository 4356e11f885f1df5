//! Decides, from the critical paths of devices, whether transfers or communication beside computing hold computing up, and
//! writes the sentences on that. [`crate::critical_path`] says how the paths are followed.

use super::times::Times;
use crate::critical_path::CriticalPath;
use gapscope_timeline::quantity::Percent;
use gapscope_timeline::thresholds::{COMMUNICATION_SHARE, SLACK_SHARE, TRANSFER_SHARE};

/// Work beside computing that holds computing up, such as transfers.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Pace<'a> {
    /// The critical path's time in such work.
    pub(crate) path_ns: i64,
    /// The time in which computing waited for such work, and such work ran alone.
    pub(crate) waited_ns: i64,
    /// True where mostly times alone show that computing waited.
    pub(crate) is_inferred: bool,
    /// The path of the device with most of that time.
    pub(crate) longest: &'a CriticalPath,
}

impl<'a> Times<'a> {
    /// Returns the work of a kind beside computing that holds computing up, where the path runs through such work for
    /// `least_share` of the time. Faster work of the kind must win at least twice what faster kernels could.
    fn pace(&self, what: &str, exposed_ns: i64, least_share: f64) -> Option<Pace<'a>> {
        let mine = || self.paths.iter().filter(|path| path.what == what);
        let sum =
            |of: fn(&CriticalPath) -> i64| mine().map(|path| of(path)).fold(0, i64::saturating_add);
        let path_ns = sum(|path| path.path_ns);
        let gaps_ns = sum(|path| path.waited_ns);
        let waited_ns = gaps_ns.min(exposed_ns);
        let rest_ns = self.window_ns.saturating_sub(path_ns).max(0);
        let holds_up = self.share(path_ns) >= least_share
            && self.share(waited_ns) >= SLACK_SHARE
            && waited_ns >= rest_ns.saturating_mul(2);
        Some(Pace {
            path_ns,
            waited_ns,
            is_inferred: sum(|path| path.inferred_ns) > gaps_ns / 2,
            longest: mine().max_by_key(|path| path.path_ns)?,
        })
        .filter(|_| holds_up)
    }

    /// Returns the communication that holds computing up.
    pub(crate) fn pacing_communication(&self) -> Option<Pace<'a>> {
        let exposed_ns = self.busy.communication_ns;
        self.pace("communication", exposed_ns, COMMUNICATION_SHARE)
    }

    /// Returns the transfers that hold computing up.
    pub(crate) fn pacing_transfers(&self) -> Option<Pace<'a>> {
        let exposed_ns = self.busy.transfer_ns;
        self.pace("transfer", exposed_ns, TRANSFER_SHARE)
    }

    /// Returns the time in which the devices communicated, and ran at most kernels that could use little of them beside.
    pub(crate) fn nearly_exposed_communication_ns(&self) -> i64 {
        let beside = self
            .fill
            .iter()
            .filter_map(|fill| fill.beside_communication_ns);
        beside.fold(self.busy.communication_ns, i64::saturating_add)
    }

    /// Returns the time in which the devices moved data, and ran at most kernels that could use little of them beside.
    pub(crate) fn nearly_exposed_transfer_ns(&self) -> i64 {
        let beside = self.fill.iter().filter_map(|fill| fill.beside_transfer_ns);
        beside.fold(self.busy.transfer_ns, i64::saturating_add)
    }

    /// Returns true where time makes up all but the slack of the judged time.
    pub(crate) fn fills(&self, ns: i64) -> bool {
        self.share(ns) >= 1.0 - SLACK_SHARE
    }

    /// Returns the sentence on work beside computing that holds computing up.
    pub(super) fn paced(&self, work: &str, pace: &Pace) -> String {
        let percent = |ns: i64| Percent(self.share(ns));
        let shown = match pace.is_inferred {
            true => "As far as start and end times show, computing",
            false => "Computing",
        };
        format!(
            "{shown} waits for {work} on {}, which the critical path runs through for {} of the time: faster kernels would win at \
             most {}, faster {work} up to {}.",
            pace.longest.queue,
            percent(pace.path_ns),
            percent(self.window_ns.saturating_sub(pace.path_ns)),
            percent(pace.waited_ns),
        )
    }

    /// Returns the sentence on work that fills the time beside kernels that fill little of the devices.
    pub(super) fn beside(&self, device: &str, did: &str, ns: i64) -> String {
        let it = if self.several() { "them" } else { "it" };
        format!(
            "{device} {did} for {} of the time, and the kernels beside could fill less than a quarter of {it}.",
            Percent(self.share(ns))
        )
    }
}
