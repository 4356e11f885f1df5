//! Fill: how much of a GPU its kernels could use at once.
//!
//! The *fill* of a moment is the share of the multiprocessors that have at least one workgroup: at most the workgroups of
//! all kernels that run then, over the multiprocessors. Below
//! [`UNDERFILLED_SHARE`](crate::thresholds::UNDERFILLED_SHARE) the GPU is *underfilled*: it is busy, and most of it idles.
//!
//! Kernels that communicate use few workgroups on purpose, and copies none: moments in which one of them runs are never
//! underfilled.
//!
//! What this cannot know: the GPU's size where the driver does not tell it (Metal, and Vulkan without an extension of its
//! vendor); the workgroups of indirect dispatches, and of work that is timed as a whole: their time is unknown. The fill is
//! an upper bound: the last workgroups of a large kernel may run alone, and a workgroup may use little of its multiprocessor.

use crate::busy::DeviceBusy;
use crate::intervals::Interval;
use crate::occupancy::Occupancy;
use crate::quantity::ratio;
use crate::thresholds::UNDERFILLED_SHARE;
use crate::timeline::{Content, Timeline, Work, WorkKind};
use gapscope_trace::lookup::NONE;
use gapscope_trace::manifest::DeviceLimits;
use gapscope_trace::tables::Kernels;
use schemars::JsonSchema;
use serde::Serialize;
use std::cmp::Reverse;
use std::collections::BinaryHeap;
use std::sync::Arc;

/// Fill of a GPU over the analysed window.
#[derive(Debug, Clone, Default, PartialEq, Serialize, JsonSchema)]
pub struct DeviceFill {
    /// Index of the device in the findings.
    pub device: u32,
    /// Its multiprocessors; absent where the trace does not say.
    pub multiprocessors: Option<u32>,
    /// Time in which work that computes ran: `known_ns` and what is unknown.
    pub computing_ns: i64,
    /// Part of it whose fill is known. Absent without `multiprocessors`.
    pub known_ns: Option<i64>,
    /// Part of `known_ns` in which the GPU was underfilled.
    pub underfilled_ns: Option<i64>,
    /// Multiprocessors with at least one workgroup, at most: mean over `known_ns`.
    pub mean_multiprocessors: Option<f64>,
    /// The same over `underfilled_ns`.
    pub underfilled_mean_multiprocessors: Option<f64>,
    /// Kernels that ran while it was underfilled, those that did so for longest first.
    pub kernels: Vec<KernelFill>,
}

/// A kernel while the GPU was underfilled.
#[derive(Debug, Clone, Default, PartialEq, Serialize, JsonSchema)]
pub struct KernelFill {
    /// The kernel's name.
    pub name: String,
    /// Dispatches with known times and workgroups.
    pub count: u64,
    /// Median of their workgroups.
    pub groups_p50: u32,
    /// The share of the multiprocessors that so many can use, at most 1.
    pub fill: f64,
    /// Time in which at least one of them ran and the GPU was underfilled. Kernels that ran at the same time each count
    /// it.
    pub underfilled_ns: i64,
    /// Workgroups that a multiprocessor can hold at once, at most. Absent where it is unknown, or differs between
    /// kernels of this name.
    pub groups_per_multiprocessor: Option<u32>,
    /// What allows no more of them: `groups`, `threads`, `registers`, `shared-memory`.
    pub limited_by: Option<&'static str>,
}

/// Fill of every GPU with timed work in `window`, whose busy time is `devices`. Of each, the `most` kernels that were
/// underfilled for longest are listed.
pub fn fill(
    timeline: &Timeline,
    window: Interval,
    devices: &[DeviceBusy],
    most: usize,
) -> Vec<DeviceFill> {
    let names = Names::of(timeline);
    (timeline.gpus.iter().zip(devices))
        .filter(|(gpu, _)| !gpu.works.is_empty())
        .map(|(gpu, device)| {
            let rows = &timeline.trace.manifest.devices;
            let limits = gpu.limits(rows);
            let size = limits.and_then(|limits| limits.multiprocessors.filter(|size| *size > 0));
            let fill = DeviceFill {
                device: device.index,
                multiprocessors: size,
                computing_ns: device.analysed.map_or(0, |share| share.parts.compute_ns),
                ..DeviceFill::default()
            };
            match limits.zip(size) {
                Some((limits, size)) => {
                    let sweep = Sweep::of(timeline, &gpu.works, window, size, &names);
                    let kernels = names.worst(timeline, &gpu.works, window, &sweep, most);
                    fill.with(&sweep, kernels, &timeline.trace.tables.kernels, limits)
                }
                None => fill,
            }
        })
        .collect()
}

impl DeviceFill {
    fn with(
        self,
        sweep: &Sweep,
        mut kernels: Vec<KernelFill>,
        table: &Kernels,
        limits: &DeviceLimits,
    ) -> DeviceFill {
        for kernel in &mut kernels {
            let size = i64::try_from(sweep.size).unwrap_or(i64::MAX);
            kernel.fill = ratio(i64::from(kernel.groups_p50), size).min(1.0);
            let held = Occupancy::of(table, &kernel.name, limits);
            kernel.groups_per_multiprocessor = held.map(|held| held.groups);
            kernel.limited_by = held.map(|held| held.limited_by);
        }
        let mean = |sum: i128, ns: i64| (ns > 0).then(|| sum as f64 / ns as f64);
        DeviceFill {
            known_ns: Some(sweep.known_ns),
            underfilled_ns: Some(sweep.underfilled_ns),
            mean_multiprocessors: mean(sweep.filled, sweep.known_ns),
            underfilled_mean_multiprocessors: mean(sweep.underfilled, sweep.underfilled_ns),
            kernels,
            ..self
        }
    }
}

/// A piece of work, as far as fill goes.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
enum Piece {
    /// It computes, with so many workgroups, or [`NONE`]; `name` is an index in [`Names`], or [`NONE`].
    Compute { groups: u32, name: u32 },
    /// It communicates or moves data.
    Other,
}

/// What runs, from one start or end of work to the next.
#[derive(Debug, Default)]
struct Sweep {
    /// Multiprocessors.
    size: u64,
    now_ns: i64,
    /// By end.
    running: BinaryHeap<Reverse<(i64, Piece)>>,
    groups: u64,
    computing: u32,
    unknown: u32,
    others: u32,
    known_ns: i64,
    underfilled_ns: i64,
    /// Multiprocessors with a workgroup, times nanoseconds.
    filled: i128,
    underfilled: i128,
    /// By index in [`Names`].
    kernels: Vec<Running>,
}

/// The kernels of a name while the device was underfilled.
#[derive(Debug, Clone, Copy, Default)]
struct Running {
    count: u32,
    /// The device's underfilled time when the first of those that run now began.
    since_ns: i64,
    underfilled_ns: i64,
}

impl Sweep {
    fn of(
        timeline: &Timeline,
        works: &[Work],
        window: Interval,
        size: u32,
        names: &Names,
    ) -> Sweep {
        let mut sweep = Sweep {
            size: u64::from(size),
            kernels: vec![Running::default(); names.names.len()],
            ..Sweep::default()
        };
        for work in works {
            let inside = work.interval.intersection(window);
            if !inside.is_empty() {
                sweep.add(inside, names.piece(timeline, work));
            }
        }
        sweep.until(i64::MAX);
        sweep
    }

    /// In order of start.
    #[inline]
    fn add(&mut self, interval: Interval, piece: Piece) {
        self.until(interval.start_ns);
        self.now_ns = interval.start_ns;
        match piece {
            Piece::Compute { groups, name } => {
                self.computing += 1;
                self.unknown += u32::from(groups == NONE);
                self.groups += known(groups);
                if let Some(kernel) = self.kernels.get_mut(name as usize) {
                    if kernel.count == 0 {
                        kernel.since_ns = self.underfilled_ns;
                    }
                    kernel.count += 1;
                }
            }
            Piece::Other => self.others += 1,
        }
        self.running.push(Reverse((interval.end_ns, piece)));
    }

    /// Ends what ends by then.
    #[inline]
    fn until(&mut self, until_ns: i64) {
        while let Some(Reverse((end_ns, piece))) = self.running.peek().copied() {
            self.pass(end_ns.min(until_ns));
            if end_ns > until_ns {
                return;
            }
            self.running.pop();
            match piece {
                Piece::Compute { groups, name } => {
                    self.computing -= 1;
                    self.unknown -= u32::from(groups == NONE);
                    self.groups -= known(groups);
                    if let Some(kernel) = self.kernels.get_mut(name as usize) {
                        kernel.count -= 1;
                        if kernel.count == 0 {
                            kernel.underfilled_ns += self.underfilled_ns - kernel.since_ns;
                        }
                    }
                }
                Piece::Other => self.others -= 1,
            }
        }
    }

    #[inline]
    fn pass(&mut self, to_ns: i64) {
        let ns = to_ns - self.now_ns;
        self.now_ns = to_ns;
        if ns <= 0 || self.computing == 0 || self.unknown > 0 {
            return;
        }
        self.known_ns += ns;
        let used = self.groups.min(self.size);
        let filled = i128::from(used) * i128::from(ns);
        self.filled += filled;
        if self.others == 0 && (used as f64) < UNDERFILLED_SHARE * self.size as f64 {
            self.underfilled_ns += ns;
            self.underfilled += filled;
        }
    }
}

fn known(groups: u32) -> u64 {
    match groups {
        NONE => 0,
        groups => u64::from(groups),
    }
}

/// Names of kernels.
struct Names<'a> {
    names: Vec<&'a str>,
    /// Index of its name, by row of the table of kernels.
    of_row: Vec<u32>,
}

impl<'a> Names<'a> {
    fn of(timeline: &'a Timeline) -> Names<'a> {
        let rows = &timeline.trace.tables.kernels.name;
        let mut names: Vec<&str> = rows.iter().map(|name| &**name).collect();
        names.sort_unstable();
        names.dedup();
        let index = |name: &Arc<str>| names.binary_search(&&**name).unwrap_or_default() as u32;
        Names {
            of_row: rows.iter().map(index).collect(),
            names,
        }
    }

    fn piece(&self, timeline: &Timeline, work: &Work) -> Piece {
        let row = work.row();
        match (timeline.content(work), work.kind()) {
            (Content::Communication | Content::Transfer, _) => Piece::Other,
            (_, WorkKind::Dispatch) => Piece::Compute {
                groups: timeline.dispatches.groups[row],
                name: (timeline.kernel_row(row)).map_or(NONE, |row| self.of_row[row]),
            },
            _ => Piece::Compute {
                groups: NONE,
                name: NONE,
            },
        }
    }

    /// The kernels that were underfilled for longest.
    fn worst(
        &self,
        timeline: &Timeline,
        works: &[Work],
        window: Interval,
        sweep: &Sweep,
        most: usize,
    ) -> Vec<KernelFill> {
        let time = |name: usize| sweep.kernels[name].underfilled_ns;
        let mut listed: Vec<usize> = (0..self.names.len())
            .filter(|name| time(*name) > 0)
            .collect();
        listed.sort_by_key(|name| (Reverse(time(*name)), *name));
        listed.truncate(most);
        let mut place = vec![None; self.names.len()];
        for (at, name) in listed.iter().enumerate() {
            place[*name] = Some(at);
        }
        let mut groups: Vec<Vec<u32>> = vec![Vec::new(); listed.len()];
        for work in works
            .iter()
            .filter(|work| !work.interval.intersection(window).is_empty())
        {
            if let Piece::Compute {
                groups: count,
                name,
            } = self.piece(timeline, work)
                && let Some(Some(at)) = place.get(name as usize)
            {
                groups[*at].extend(Some(count).filter(|count| *count != NONE));
            }
        }
        (listed.into_iter().zip(groups))
            .map(|(name, mut groups)| {
                let middle = groups.len().saturating_sub(1) / 2;
                KernelFill {
                    name: self.names[name].to_owned(),
                    count: groups.len() as u64,
                    groups_p50: match groups.is_empty() {
                        true => 0,
                        false => *groups.select_nth_unstable(middle).1,
                    },
                    underfilled_ns: time(name),
                    ..KernelFill::default()
                }
            })
            .collect()
    }
}
