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
use crate::timeline::{Content, Timeline, Work, WorkKind, Works};
use crate::vocabulary::KernelNames;
use gapscope_trace::lookup::NONE;
use gapscope_trace::manifest::DeviceLimits;
use gapscope_trace::tables::{Kernels, Table};
use schemars::JsonSchema;
use serde::Serialize;
use std::cmp::Reverse;
use std::collections::{BTreeMap, BinaryHeap};

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
    /// What the kernel is called, as in `kernels`.
    pub name: String,
    /// Its dispatches that ran while the GPU was underfilled.
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
    let names = Names(&timeline.kernel_names);
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
                    let kernels = names.worst(&sweep, most, &timeline.trace.tables.kernels, limits);
                    fill.with(&sweep, kernels)
                }
                None => fill,
            }
        })
        .collect()
}

impl DeviceFill {
    fn with(self, sweep: &Sweep, kernels: Vec<KernelFill>) -> DeviceFill {
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
    /// By end, with the device's underfilled time at their start.
    running: BinaryHeap<Reverse<(i64, Piece, i64)>>,
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
#[derive(Debug, Clone, Default)]
struct Running {
    count: u32,
    /// The device's underfilled time when the first of those that run now began.
    since_ns: i64,
    underfilled_ns: i64,
    /// How many of them that ran meanwhile had so many workgroups: fewer than the device has multiprocessors.
    groups: BTreeMap<u32, u64>,
}

impl Sweep {
    fn of(timeline: &Timeline, works: &Works, window: Interval, size: u32, names: &Names) -> Sweep {
        let mut sweep = Sweep {
            size: u64::from(size),
            kernels: vec![Running::default(); names.0.all().len()],
            ..Sweep::default()
        };
        for work in works {
            let inside = work.interval.intersection(window);
            if !inside.is_empty() {
                sweep.add(inside, names.piece(timeline, &work));
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
        let since_ns = self.underfilled_ns;
        self.running
            .push(Reverse((interval.end_ns, piece, since_ns)));
    }

    /// Ends what ends by then.
    #[inline]
    fn until(&mut self, until_ns: i64) {
        while let Some(Reverse((end_ns, piece, since_ns))) = self.running.peek().copied() {
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
                        if self.underfilled_ns > since_ns && groups != NONE {
                            *kernel.groups.entry(groups).or_default() += 1;
                        }
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

/// The kernels by what they are called.
struct Names<'a>(&'a KernelNames);

impl Names<'_> {
    fn piece(&self, timeline: &Timeline, work: &Work) -> Piece {
        let row = work.row();
        match (timeline.content(work), work.kind()) {
            (Content::Communication | Content::Transfer, _) => Piece::Other,
            (_, WorkKind::Dispatch) => Piece::Compute {
                groups: timeline.dispatches.groups.at(row),
                name: (timeline.kernel_row(row))
                    .and_then(|row| self.0.of_row(row))
                    .map_or(NONE, |name| name as u32),
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
        sweep: &Sweep,
        most: usize,
        table: &Kernels,
        limits: &DeviceLimits,
    ) -> Vec<KernelFill> {
        let names = self.0.all();
        let mut listed: Vec<(usize, &Running)> = (sweep.kernels.iter().enumerate())
            .filter(|(_, kernel)| kernel.underfilled_ns > 0)
            .collect();
        listed.sort_by_key(|(at, kernel)| (Reverse(kernel.underfilled_ns), &names[*at].name));
        listed.truncate(most);
        let size = i64::try_from(sweep.size).unwrap_or(i64::MAX);
        (listed.into_iter())
            .map(|(at, kernel)| {
                let rows = (0..table.len()).filter(|row| self.0.of_row(*row) == Some(at));
                let held = Occupancy::of_rows(table, rows, limits);
                let groups_p50 = median(&kernel.groups);
                KernelFill {
                    name: names[at].name.clone(),
                    count: kernel.groups.values().sum(),
                    groups_p50,
                    fill: ratio(i64::from(groups_p50), size).min(1.0),
                    underfilled_ns: kernel.underfilled_ns,
                    groups_per_multiprocessor: held.map(|held| held.groups),
                    limited_by: held.map(|held| held.limited_by),
                }
            })
            .collect()
    }
}

/// The median of values that are counted, by nearest rank; 0 of none.
fn median(counted: &BTreeMap<u32, u64>) -> u32 {
    let middle = counted.values().sum::<u64>().div_ceil(2);
    let mut passed = 0;
    let mut values = counted.iter();
    let at = values.find(|(_, count)| {
        passed += *count;
        passed >= middle
    });
    at.map_or(0, |(value, _)| *value)
}
