//! Follows the critical path of each device (the chain of work of which each piece started as the one before it ended), and
//! of all devices together, through transfers and communication that run beside computing.
//!
//! Busy time counts a moment as computing wherever anything computes. Where kernels wait for a copy engine that is never
//! idle, or for a stream of collectives, the path runs through these however much computes beside them: faster kernels win
//! nothing. Two figures tell such a device apart. `waited_ns` is the time in which nothing computed, and the next work that
//! computed started as a transfer (or communication) ended; the path's time in such work leaves to all else what
//! faster kernels could win at most.
//!
//! A piece of work is started by the last end of these:
//!
//! | end of | where from |
//! |---|---|
//! | the work before it on its queue | the order of a queue |
//! | work that its submission waits for | recorded dependencies ([`WaitOrder`]) |
//! | work of another queue, at most [`HANDOVER_NS`] earlier, while the submission stood ready; of another device only transfers and communication | the times alone |
//! | work for which the host waited right before the submission | the trace where it names that work, else the times alone |
//! | communication since the work before it on its queue, where none of these shows what it waited for | the times alone ([`ALONE_SHARE`]) |
//!
//! Where only times show it, chance is bounded by [`CHANCE_SHARE`], and the findings say that they are inferred.
//!
//! A path goes on on another device where work there started the piece: a copy between devices is recorded on one of them,
//! and kernels of both may wait for it. It also goes on there where a collective or a receive waited for that device to come
//! ([`peers`]): such a kernel is on the path only from the last arrival on. The joint path of several devices ends with the
//! last work that computes on any.
//!
//! What this cannot know: what a piece of work waits for in its middle.
//!
//! The search costs a walk over the work, and is made only where transfers or communication were exposed on a device for
//! [`SLACK_SHARE`] of the time, or where a device idled for as long and may have waited for another. Input is a timeline
//! with the busy time of its devices; output are the [`CriticalPath`]s, from which the verdict decides.

mod chains;
mod parts;
mod peers;
mod walk;

pub use chains::{Chain, Chains};
pub use parts::{JointPath, PathOfDevice, PathParts};

use crate::gaps::waits::WaitOrder;
use gapscope_timeline::busy::{self, BusyShare, DeviceBusy};
use gapscope_timeline::intervals::Interval;
use gapscope_timeline::quantity::ratio;
use gapscope_timeline::thresholds::SLACK_SHARE;
#[cfg(doc)]
use gapscope_timeline::thresholds::{ALONE_SHARE, CHANCE_SHARE, HANDOVER_NS};
use gapscope_timeline::vocabulary::Vocabulary;
use gapscope_timeline::{Content, Timeline, Work};
use gapscope_trace::ids::QueueId;
use gapscope_trace::tables::Table;
use schemars::JsonSchema;
use serde::Serialize;
pub(crate) use walk::Wait;
use walk::{Graph, Path, Waited, WaitedFor};

/// The critical path of a device, or of all devices together, as far as it runs through one kind of work that computing
/// waited for.
#[derive(Debug, Clone, PartialEq, Serialize, JsonSchema)]
pub struct CriticalPath {
    /// Index of the device in the findings. The joint path of several devices has the device of the queue.
    pub device: u32,
    /// The kind of work: `communication` or `transfer`. A joint path may also have `compute`, which is that of one device;
    /// what other devices waited for may then be work of any kind.
    pub what: &'static str,
    /// Id of the queue that ran most of it.
    pub queue_id: QueueId,
    /// Name of that queue.
    pub queue: String,
    /// Name of the device of that queue; absent where the trace has one device.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub queue_device: Option<String>,
    /// True where a part of such work is on another device than what waited for it.
    pub is_remote: bool,
    /// The path's time in such work.
    pub path_ns: i64,
    /// Length of the gaps between work that computes which ended as such work did. Time in which nothing ran may be part
    /// of the gaps. A joint path has the greatest of its devices.
    pub waited_ns: i64,
    /// Part of `waited_ns` for which no recorded order but only times show that computing waited.
    pub inferred_ns: i64,
    /// How often computing waited so.
    pub wait_count: u64,
    /// Length of the judged window of the device, or of all devices.
    pub window_ns: i64,
}

/// The critical paths of the devices of a program.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct CriticalPaths {
    /// The paths of each device through transfers and communication.
    pub by_device: Vec<CriticalPath>,
    /// The one path of all devices, by the kind of its work; empty where one device worked.
    pub joint: Vec<CriticalPath>,
    /// The time of that path on each device that worked, by the index of the device. Idle time is on the unknown side here.
    pub joint_parts: Vec<(u32, PathParts)>,
    /// How long kernels of each device that communicate waited for another device while nothing computed, by the index of the
    /// device.
    pub waited_for_peers_ns: Vec<(u32, i64)>,
    /// True where kernels of several devices were joined as one collective or message.
    pub has_joined_kernels: bool,
    /// True where the trace says that work of a device waited for work of another.
    pub has_waits_between_devices: bool,
}

/// The kinds of work that a path may run through besides computing.
pub(crate) const KINDS: [Content; 2] = [Content::Communication, Content::Transfer];
/// The names of [`KINDS`] in JSON, then that of computing.
pub(crate) const NAMES: [&str; KINDS.len() + 1] = ["communication", "transfer", "compute"];
/// The place of computing in [`NAMES`].
pub(crate) const COMPUTE: usize = KINDS.len();

/// The moments of the critical path that decides a verdict: that of the only device, or the joint one of several. Kinds are places in
/// [`NAMES`].
pub(crate) trait PathVisitor {
    /// Takes a time in work on the path.
    fn on_path(&mut self, kind: usize, work: &Work, ran: Interval);

    /// Takes a time in which computing on a device waited for other work, with the work that waited.
    fn waited(&mut self, device: u32, wait: &Wait);

    /// Takes a time in which a kernel that communicates waited for another device.
    fn waited_for_peer(&mut self, kernel: &Work, waited: Interval);
}

/// A visitor that needs nothing.
struct NoVisitor;

impl PathVisitor for NoVisitor {
    fn on_path(&mut self, _: usize, _: &Work, _: Interval) {}
    fn waited(&mut self, _: u32, _: &Wait) {}
    fn waited_for_peer(&mut self, _: &Work, _: Interval) {}
}

/// Returns the paths of each device on which transfers or communication were exposed for long enough, or which may have waited
/// for another device; and the joint path.
pub(crate) fn critical_paths(
    timeline: &Timeline,
    order: &WaitOrder,
    devices: &[DeviceBusy],
    window: Interval,
) -> CriticalPaths {
    visited_paths(timeline, order, devices, window, &mut NoVisitor)
}

/// Returns the same, and shows the moments of the deciding path to a visitor.
pub(crate) fn visited_paths(
    timeline: &Timeline,
    order: &WaitOrder,
    devices: &[DeviceBusy],
    window: Interval,
    visitor: &mut impl PathVisitor,
) -> CriticalPaths {
    let worked = devices.iter().filter_map(|device| {
        let share = device.analysed.filter(|share| !share.window.is_empty())?;
        Some((device.index, share))
    });
    let worked: Vec<(u32, BusyShare)> = worked.collect();
    let several = worked.len() > 1;
    let counts = |ns: i64, share: &BusyShare| ratio(ns, share.window_ns) >= SLACK_SHARE;
    let is_exposed = |share: &BusyShare| {
        let parts = share.parts;
        let exposed_ns = parts.communication_ns.max(parts.transfer_ns);
        parts.compute_ns > 0 && counts(exposed_ns, share)
    };
    let moves = worked.iter().any(|(_, share)| {
        let parts = share.parts;
        let beside_ns = parts.communication_ns.max(parts.transfer_ns);
        counts(beside_ns.saturating_add(parts.overlapped_ns), share)
    });
    let has_waits_between_devices = several && waits_between_devices(timeline);
    let crosses = several && moves || has_waits_between_devices;
    let is_followed =
        |share: &BusyShare| is_exposed(share) || crosses && counts(share.idle_ns, share);
    if !worked.iter().any(|(_, share)| is_followed(share)) {
        return CriticalPaths {
            has_waits_between_devices,
            ..CriticalPaths::default()
        };
    }
    let graph = Graph::new(timeline, order, several);
    let rows = Rows {
        timeline,
        vocabulary: Vocabulary::new(&timeline.trace.manifest),
        names: several.then(|| busy::names(devices)),
    };
    let mut paths = CriticalPaths {
        has_joined_kernels: graph.has_operations(),
        has_waits_between_devices,
        ..CriticalPaths::default()
    };
    let mut all: Vec<Waited> = Vec::new();
    for (device, share) in &worked {
        let walk = graph.within(share.window);
        let mut waited = Waited::default();
        waited.last = walk.each_wait(*device, |wait| {
            waited.kinds[wait.kind].add(wait);
            visitor.waited(*device, wait);
        });
        if let (Some(last), true) = (waited.last, is_followed(share)) {
            let path = walk.each_step(last, |work, kind, ran| {
                if !several {
                    visitor.on_path(kind, work, ran);
                }
            });
            let kinds = 0..KINDS.len();
            let own = |kind| rows.row(kind, &path, waited.kinds[kind], share.window);
            paths
                .by_device
                .extend(kinds.filter_map(own).map(|row| CriticalPath {
                    device: *device,
                    ..row
                }));
        }
        if several {
            let mut waited_ns = 0i64;
            walk.each_peer_wait(*device, |kernel, interval| {
                waited_ns = waited_ns.saturating_add(interval.length_ns());
                visitor.waited_for_peer(kernel, interval);
            });
            paths.waited_for_peers_ns.push((*device, waited_ns));
        }
        all.push(waited);
    }
    let last = all.iter().filter_map(|waited| waited.last);
    let last = last.max_by_key(|last| graph.work(*last).interval.end_ns);
    if let (Some(last), true) = (last, several) {
        let windows = worked.iter().map(|(_, share)| share.window);
        let window = windows.reduce(Interval::hull).unwrap_or(window);
        let walk = graph.within(window);
        let path = walk.each_step(last, |work, kind, ran| visitor.on_path(kind, work, ran));
        paths.joint = (0..NAMES.len())
            .filter_map(|kind| {
                let waited = all.iter().map(|waited| match kind {
                    COMPUTE => waited.all(),
                    kind => waited.kinds[kind],
                });
                let most = waited.max_by_key(|waited| waited.total_ns)?;
                rows.row(kind, &path, most, window)
            })
            .collect();
        let on_device = |device: u32| (device, path.on_device(timeline, device));
        paths.joint_parts = worked
            .iter()
            .map(|(device, _)| on_device(*device))
            .collect();
    }
    paths
}

/// Makes rows of paths.
struct Rows<'a> {
    timeline: &'a Timeline<'a>,
    vocabulary: Vocabulary,
    /// The names of the devices, where several worked.
    names: Option<Vec<String>>,
}

impl Rows<'_> {
    /// Returns the row of a kind of work on a path; `None` where none of it was waited for.
    fn row(
        &self,
        kind: usize,
        path: &Path,
        waited: WaitedFor,
        window: Interval,
    ) -> Option<CriticalPath> {
        let queues = &self.timeline.queues;
        let by_queue = path.spent.iter().map(|queue| queue[kind]);
        let most = by_queue.clone().enumerate().max_by_key(|(_, ns)| *ns);
        let (queue, _) = most.filter(|(_, ns)| *ns > 0 && waited.total_ns > 0)?;
        let queue_id = queues[queue].id;
        let device = queues[queue].gpu;
        // Only the computing of one device can be what the others wait for.
        let counts = |at: &usize| kind != COMPUTE || queues[*at].gpu == device;
        let spent = by_queue.enumerate().filter(|(at, _)| counts(at));
        Some(CriticalPath {
            device,
            what: NAMES[kind],
            queue_id,
            queue: self.vocabulary.queue(queue_id),
            queue_device: (self.names.as_ref()).map(|names| names[device as usize].clone()),
            is_remote: waited.is_remote,
            path_ns: spent.map(|(_, ns)| ns).sum(),
            waited_ns: waited.total_ns,
            inferred_ns: waited.inferred_ns,
            wait_count: waited.count,
            window_ns: window.length_ns(),
        })
    }
}

/// Returns true where a submission waits for work of another device.
fn waits_between_devices(timeline: &Timeline) -> bool {
    let table = &timeline.trace.tables.dependencies;
    let gpu = |id| {
        let times = timeline
            .submissions
            .get(timeline.submission_ids.row(id) as usize)?;
        Some(timeline.queues[times.queue as usize].gpu)
    };
    (0..table.len()).any(|row| {
        let awaited = table.waits_for.at(row).and_then(gpu);
        awaited.is_some() && gpu(table.submission[row]) != awaited
    })
}
