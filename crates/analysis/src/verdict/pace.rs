//! Decides, from the critical paths of devices, whether transfers or communication beside computing hold computing up, or the
//! computing of one device all others, and writes the sentences on that. [`crate::critical_path`] says how the paths are followed.

use super::times::{JointTimes, Times};
use crate::critical_path::CriticalPath;
use gapscope_timeline::quantity::{Percent, ratio};
use gapscope_timeline::thresholds::{
    COMMUNICATION_SHARE, DEVICE_SHARE, SLACK_SHARE, TRANSFER_SHARE,
};

/// Work beside computing that holds computing up, such as transfers.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Pace<'a> {
    /// The share of the time for which the critical path runs through such work.
    pub(crate) path_share: f64,
    /// The share of the time that faster work of the kind could win.
    pub(crate) win_share: f64,
    /// True where mostly times alone show that computing waited.
    pub(crate) is_inferred: bool,
    /// True where computing on a device waited for such work on another.
    pub(crate) is_remote: bool,
    /// The path of the device with most of that time.
    pub(crate) longest: &'a CriticalPath,
}

impl<'a> Times<'a> {
    /// Returns the work of a kind beside computing that holds computing up, where the path runs through such work for
    /// `least_share` of the time. Faster work of the kind must win at least twice what faster kernels could.
    fn pace(&self, what: &str, exposed_ns: i64, least_share: f64) -> Option<Pace<'a>> {
        if let Some(joint) = &self.joint {
            return joint.pace(what, least_share);
        }
        let mine = || self.paths.iter().copied().filter(|path| path.what == what);
        let sum = |of: fn(&CriticalPath) -> i64| mine().map(of).fold(0, i64::saturating_add);
        let gaps_ns = sum(|path| path.waited_ns);
        // A device may idle, too, while it waits for work of another.
        let is_remote = mine().any(|path| path.is_remote);
        let waits = [exposed_ns, self.sync_ns, self.launch_ns, self.unknown_ns];
        let waits = &waits[..if is_remote { waits.len() } else { 1 }];
        let most_ns = waits.iter().copied().fold(0, i64::saturating_add);
        let path_share = self.share(sum(|path| path.path_ns));
        let win_share = self.share(gaps_ns.min(most_ns));
        let holds_up = path_share >= least_share
            && win_share >= SLACK_SHARE
            && win_share >= 2.0 * (1.0 - path_share);
        Some(Pace {
            path_share,
            win_share,
            is_inferred: sum(|path| path.inferred_ns) > gaps_ns / 2,
            is_remote,
            longest: mine().max_by_key(|path| path.path_ns)?,
        })
        .filter(|_| holds_up)
    }

    /// Returns the joint path through the computing of one device, where that fills all of the time but the slack and the
    /// other devices, which are not late for reasons of their own, wait for it.
    pub(crate) fn saturated_device(&self) -> Option<&'a CriticalPath> {
        let joint = self.joint.as_ref()?;
        let path = joint.path("compute").filter(|path| path.is_remote)?;
        let busy = &self.busy;
        let explained = [
            busy.compute_ns,
            busy.communication_ns,
            busy.transfer_ns,
            self.sync_ns,
        ];
        let waited_ns = self.sync_ns.saturating_add(self.peers_ns);
        let explained_ns = explained.into_iter().fold(0, i64::saturating_add);
        let least_ns = path.path_ns.min(joint.most_compute_ns);
        let saturates =
            joint.share(least_ns) >= 1.0 - SLACK_SHARE && self.share(waited_ns) >= SLACK_SHARE;
        (saturates && self.share(explained_ns) >= DEVICE_SHARE).then_some(path)
    }

    /// Returns the communication that holds computing up.
    pub(crate) fn pacing_communication(&self) -> Option<Pace<'a>> {
        let exposed_ns = self.communication_ns();
        self.pace("communication", exposed_ns, COMMUNICATION_SHARE)
    }

    /// Returns the transfers that hold computing up.
    pub(crate) fn pacing_transfers(&self) -> Option<Pace<'a>> {
        let exposed_ns = self.busy.transfer_ns;
        self.pace("transfer", exposed_ns, TRANSFER_SHARE)
    }

    /// Returns true where computing waits for communication on another device than its own.
    pub(crate) fn awaits_communication(&self) -> bool {
        self.pacing_communication()
            .is_some_and(|pace| pace.is_remote)
    }

    /// Returns true where computing waits for transfers on another device than its own.
    pub(crate) fn awaits_transfers(&self) -> bool {
        self.pacing_transfers().is_some_and(|pace| pace.is_remote)
    }

    /// Returns the time in which the devices communicated, and ran at most kernels that could use little of them beside.
    pub(crate) fn nearly_exposed_communication_ns(&self) -> i64 {
        let beside = self
            .fill
            .iter()
            .filter_map(|fill| fill.beside_communication_ns);
        beside.fold(self.communication_ns(), i64::saturating_add)
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
        let shown = match pace.is_inferred {
            true => "As far as start and end times show, computing",
            false => "Computing",
        };
        let device = pace.longest.queue_device.as_ref();
        let device = device.map_or(String::new(), |name| format!(" of {name}"));
        format!(
            "{shown} waits for {work} on {}{device}, which the critical path runs through for {} of the time: faster kernels would \
             win at most {}, faster {work} up to {}.",
            pace.longest.queue,
            Percent(pace.path_share),
            Percent((1.0 - pace.path_share).max(0.0)),
            Percent(pace.win_share),
        )
    }

    /// Returns the sentence on computing of one device that the other devices wait for.
    pub(super) fn saturated(&self, path: &CriticalPath) -> String {
        let device = path.queue_device.as_deref().unwrap_or("one device");
        format!(
            "Computing on {device} holds up the other devices: the critical path runs through it for {} of the time.",
            Percent(ratio(path.path_ns, path.window_ns))
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

impl<'a> JointTimes<'a> {
    fn share(&self, ns: i64) -> f64 {
        ratio(ns, self.window_ns)
    }

    fn path(&self, what: &str) -> Option<&'a CriticalPath> {
        self.paths.iter().find(|path| path.what == what)
    }

    /// Returns the work of a kind that holds computing up on all devices. However fast it were, the device that computes the
    /// longest would still compute for as long.
    fn pace(&self, what: &str, least_share: f64) -> Option<Pace<'a>> {
        let path = self.path(what)?;
        let rest_ns = self.window_ns.saturating_sub(self.most_compute_ns);
        let win_ns = path.path_ns.min(path.waited_ns).min(rest_ns);
        let (path_share, win_share) = (self.share(path.path_ns), self.share(win_ns));
        let holds_up = path_share >= least_share
            && win_share >= SLACK_SHARE
            && (win_share >= 2.0 * (1.0 - path_share) || win_share >= least_share);
        holds_up.then_some(Pace {
            path_share,
            win_share,
            is_inferred: path.inferred_ns > path.waited_ns / 2,
            is_remote: path.is_remote,
            longest: path,
        })
    }
}
