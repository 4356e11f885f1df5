//! Finds what limits a kernel as far as the shape of its launches (numbers and sizes of workgroups) tells, without
//! counters.
//!
//! Three shapes cost time, whatever the kernel computes:
//! - *too small*: fewer workgroups than the GPU has multiprocessors. Multiprocessors without a workgroup idle: at most
//!   `1 - workgroups / multiprocessors` of the time could be saved if the same work were spread over all of them.
//! - *tail*: a few waves, of which the last is not full. With workgroups that take equally long, the last wave leaves
//!   `(⌈w⌉ - w) / ⌈w⌉` of the time unused, where `w` is the workgroups over those that the GPU holds at once.
//! - *short*: the kernel takes hardly longer than the shortest kernel of the recording, which no shape makes shorter.
//!
//! Both shares are upper bounds. They are relative to the time beyond the shortest kernel's, and only of dispatches beside which
//! nothing else ran, since other work could use the idle multiprocessors.
//!
//! What this cannot know: the GPU's size where the driver does not tell it (Metal, and Vulkan without an extension of its vendor); the
//! workgroups of indirect dispatches; whether a kernel that fills the GPU uses it well, which takes counters
//! ([`limits`](crate::limits)). Kernels that communicate use few workgroups on purpose, and have no limit here.

use crate::kernel_limit::KernelLimit;
use crate::occupancy::Occupancy;
use gapscope_timeline::intervals::Interval;
use gapscope_timeline::quantity::ratio;
use gapscope_timeline::thresholds::{KNOWN_SHARE, LATENCY_TIMES, SHAPE_SHARE};
use gapscope_timeline::{Content, Gpu, Timeline, Work, WorkKind};
use schemars::JsonSchema;
use serde::Serialize;

/// The shape of a kernel's launches, on GPUs whose size is known. Means are by time.
#[derive(Debug, Clone, Copy, Default, PartialEq, Serialize, JsonSchema)]
pub struct Launches {
    /// Time of the dispatches whose workgroups are known, to which the other figures relate.
    pub known_ns: i64,
    /// Multiprocessors of the GPU, or of the last of several unlike GPUs.
    pub multiprocessors: u32,
    /// Mean of the greatest possible number of multiprocessors with at least one workgroup.
    pub mean_multiprocessors: f64,
    /// The theoretical occupancy: warps of this kernel that a multiprocessor can hold, over all that it can hold. Absent where it
    /// is unknown.
    pub occupancy: Option<f64>,
    /// The resource that allows no more: `groups`, `threads`, `registers`, `shared-memory`.
    pub occupancy_limited_by: Option<&'static str>,
    /// Mean of the workgroups over those that the GPU holds at once. Absent without `occupancy`.
    pub waves: Option<f64>,
    /// The greatest time that it would save if it had workgroups for all multiprocessors.
    pub too_small_ns: i64,
    /// The greatest time that it would save if its last waves were full.
    pub tail_ns: i64,
}

impl Launches {
    /// Returns the limit of a kernel whose dispatches take `total_ns`, each `mean_ns`, and the greatest time that a
    /// better shape could save, which is unknown for a short kernel. The first rule that holds decides: no limit
    /// where less than `KNOWN_SHARE` of the time has known workgroups; short; then the shape that costs more, if it
    /// costs `SHAPE_SHARE` of the time. `shortest_ns` is the duration of the shortest kernel.
    pub(crate) fn limit(
        &self,
        total_ns: i64,
        mean_ns: f64,
        shortest_ns: i64,
    ) -> Option<(KernelLimit, Option<i64>)> {
        if ratio(self.known_ns, total_ns) < KNOWN_SHARE {
            return None;
        }
        if mean_ns < LATENCY_TIMES * shortest_ns as f64 {
            return Some((KernelLimit::Short, None));
        }
        let (limit, saved_ns) = match self.too_small_ns >= self.tail_ns {
            true => (KernelLimit::TooSmall, self.too_small_ns),
            false => (KernelLimit::Tail, self.tail_ns),
        };
        (ratio(saved_ns, self.known_ns) >= SHAPE_SHARE).then_some((limit, Some(saved_ns)))
    }
}

/// Returns for each of `count` groups of kernels the shapes of the launches that start in `window`, or `None` where
/// no size is known. `group` returns the group of a row of the table of kernels.
pub(crate) fn shapes(
    timeline: &Timeline,
    window: Option<Interval>,
    shortest_ns: i64,
    group: impl Fn(usize) -> usize,
    count: usize,
) -> Vec<Option<Launches>> {
    let mut sums = vec![LaunchSums::default(); count];
    for gpu in &timeline.gpus {
        let Some(size) = GpuSize::new(timeline, gpu) else {
            continue;
        };
        let mut until_ns = i64::MIN;
        for (at, work) in gpu.works.iter().enumerate() {
            let next = gpu.works.get(at + 1);
            let alone = until_ns <= work.interval.start_ns
                && next.is_none_or(|next| next.interval.start_ns >= work.interval.end_ns);
            until_ns = until_ns.max(work.interval.end_ns);
            if !Interval::counts(window, Some(work.interval.start_ns)) {
                continue;
            }
            if let Some(dispatch) = size.dispatch(timeline, &work) {
                sums[group(dispatch.kernel)].add(&dispatch, &size, alone, shortest_ns);
            }
        }
    }
    sums.into_iter().map(LaunchSums::launches).collect()
}

/// The size of a GPU, and how many workgroups of each kernel fit on one multiprocessor.
struct GpuSize {
    multiprocessors: u32,
    /// The occupancy of each kernel, by its row in the table.
    occupancies: Vec<Option<Occupancy>>,
}

/// A dispatch that computes, with known workgroups.
struct Dispatch {
    interval: Interval,
    groups: u32,
    /// The kernel's row in the table of kernels.
    kernel: usize,
}

impl GpuSize {
    /// Returns `None` where the number of multiprocessors is not known.
    fn new(timeline: &Timeline, gpu: &Gpu) -> Option<GpuSize> {
        let rows = &timeline.trace.manifest.devices;
        let limits = gpu.limits(rows)?;
        let multiprocessors = limits.multiprocessors.filter(|size| *size > 0)?;
        let table = &timeline.trace.tables.kernels;
        let occupancy = |row| Occupancy::from_row(table, row, limits);
        Some(GpuSize {
            multiprocessors,
            occupancies: (0..table.name.len()).map(occupancy).collect(),
        })
    }

    /// Returns a piece of work as a dispatch, or `None` for work that communicates or moves data, or whose workgroups
    /// or kernel are not known.
    fn dispatch(&self, timeline: &Timeline, work: &Work) -> Option<Dispatch> {
        if work.kind() != WorkKind::Dispatch
            || matches!(
                timeline.content(work),
                Content::Communication | Content::Transfer
            )
        {
            return None;
        }
        let groups = timeline.dispatches.groups(work.row());
        Some(Dispatch {
            interval: work.interval,
            groups: groups.filter(|groups| *groups > 0)?,
            kernel: timeline.kernel_row(work.row())?,
        })
    }
}

/// Sums over the launches of a group of kernels.
#[derive(Debug, Clone, Copy, Default)]
struct LaunchSums {
    known_ns: i64,
    multiprocessors: u32,
    /// The sum of multiprocessors with a workgroup, times nanoseconds.
    filled: f64,
    /// The time of the launches whose occupancy is known.
    held_ns: i64,
    /// The sum of the occupancy of these launches, times nanoseconds.
    held: f64,
    /// The sum of the waves of these launches, times nanoseconds.
    waves: f64,
    limited_by: Option<&'static str>,
    /// True where launches differ in what limits their occupancy.
    unlike: bool,
    /// The time that launches with a workgroup for each multiprocessor could save.
    too_small_ns: f64,
    /// The time that full last waves could save.
    tail_ns: f64,
}

impl LaunchSums {
    /// Adds a launch. Only the time beyond `shortest_ns` of a launch that ran `alone` could be saved.
    fn add(&mut self, dispatch: &Dispatch, size: &GpuSize, alone: bool, shortest_ns: i64) {
        let ns = dispatch.interval.length_ns();
        let time = ns as f64;
        let beyond = if alone {
            (ns - shortest_ns).max(0) as f64
        } else {
            0.0
        };
        let (groups, multiprocessors) =
            (f64::from(dispatch.groups), f64::from(size.multiprocessors));
        let filled = (groups / multiprocessors).min(1.0);
        self.known_ns = self.known_ns.saturating_add(ns);
        self.multiprocessors = size.multiprocessors;
        self.filled += filled * multiprocessors * time;
        self.too_small_ns += (1.0 - filled) * beyond;
        let Some(occupancy) = size.occupancies[dispatch.kernel] else {
            return;
        };
        let waves = groups / (multiprocessors * f64::from(occupancy.groups));
        self.held_ns = self.held_ns.saturating_add(ns);
        self.held += occupancy.share * time;
        self.waves += waves * time;
        self.unlike |= self.limited_by.is_some_and(|by| by != occupancy.limited_by);
        self.limited_by = Some(occupancy.limited_by);
        if waves > 1.0 {
            self.tail_ns += (waves.ceil() - waves) / waves.ceil() * beyond;
        }
    }

    /// Turns the sums into means, or `None` where no launch was added.
    fn launches(self) -> Option<Launches> {
        let held = |sum: f64| (self.held_ns > 0).then(|| sum / self.held_ns as f64);
        (self.known_ns > 0).then(|| Launches {
            known_ns: self.known_ns,
            multiprocessors: self.multiprocessors,
            mean_multiprocessors: self.filled / self.known_ns as f64,
            occupancy: held(self.held),
            occupancy_limited_by: self.limited_by.filter(|_| !self.unlike),
            waves: held(self.waves),
            too_small_ns: self.too_small_ns as i64,
            tail_ns: self.tail_ns as i64,
        })
    }
}
