//! Measures the fill of a GPU: the share of its multiprocessors that the running kernels could use at once.
//!
//! The *fill* of a moment is the share of the multiprocessors that have at least one workgroup: at most the workgroups of
//! all kernels that run then, over the multiprocessors. Below
//! [`UNDERFILLED_SHARE`](gapscope_timeline::thresholds::UNDERFILLED_SHARE) the GPU is *underfilled*: it is busy although most of
//! it idles.
//!
//! Kernels that communicate use few workgroups on purpose, and copies use none: the GPU is never underfilled while one of them
//! runs. That the kernels beside them could use as little is added up apart.
//!
//! What this cannot know: the GPU's size where the driver does not tell it (Metal, and Vulkan without an extension of its
//! vendor); the workgroups of indirect dispatches, and of work that is timed as a whole: their time is unknown. The fill is
//! an upper bound: the last workgroups of a large kernel may run alone, and a workgroup may use little of its multiprocessor.
//!
//! A sweep goes through the work of a GPU in order of start, and counts at each moment the running workgroups.

use crate::occupancy::Occupancy;
use gapscope_timeline::busy::DeviceBusy;
use gapscope_timeline::intervals::Interval;
use gapscope_timeline::quantity::ratio;
use gapscope_timeline::thresholds::UNDERFILLED_SHARE;
use gapscope_timeline::vocabulary::KernelNames;
use gapscope_timeline::{Content, Timeline, Work, WorkKind, Works};
use gapscope_trace::lookup::NONE;
use gapscope_trace::manifest::DeviceProperties;
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
    /// Time in which the kernels that compute could use as little, while others communicated. Absent as above.
    pub beside_communication_ns: Option<i64>,
    /// The same while transfers ran, and nothing communicated. Absent as above.
    pub beside_transfer_ns: Option<i64>,
    /// Mean over `known_ns` of the greatest possible number of multiprocessors with at least one workgroup.
    pub mean_multiprocessors: Option<f64>,
    /// The same over `underfilled_ns`.
    pub underfilled_mean_multiprocessors: Option<f64>,
    /// Kernels that ran while it was underfilled, those that ran longest first.
    pub kernels: Vec<KernelFill>,
}

/// A kernel while the GPU was underfilled.
#[derive(Debug, Clone, Default, PartialEq, Serialize, JsonSchema)]
pub struct KernelFill {
    /// The kernel's name, as in `kernels`.
    pub name: String,
    /// Its dispatches that ran while the GPU was underfilled.
    pub count: u64,
    /// Median of their workgroups.
    pub groups_p50: u32,
    /// The share of the multiprocessors that this many workgroups can use, at most 1.
    pub fill: f64,
    /// Time in which at least one of these dispatches ran and the GPU was underfilled. It counts for each of several kernels
    /// that ran at the same time.
    pub underfilled_ns: i64,
    /// The most workgroups that a multiprocessor can hold at once. Absent where it is unknown, or differs between kernels of
    /// this name.
    pub groups_per_multiprocessor: Option<u32>,
    /// The resource that allows no more: `groups`, `threads`, `registers`, `shared-memory`.
    pub limited_by: Option<&'static str>,
}

/// Returns the fill of every GPU with timed work in `window`; `devices` are their busy times. For each GPU it lists
/// the `max` kernels that ran longest while the GPU was underfilled.
pub fn fill(
    timeline: &Timeline,
    window: Interval,
    devices: &[DeviceBusy],
    max: usize,
) -> Vec<DeviceFill> {
    let names = FillNames(&timeline.kernel_names);
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
                    let sweep = FillSweep::new(timeline, &gpu.works, window, size, &names);
                    let kernels = names.worst(&sweep, max, &timeline.trace.tables.kernels, limits);
                    fill.with(&sweep, kernels)
                }
                None => fill,
            }
        })
        .collect()
}

impl DeviceFill {
    fn with(self, sweep: &FillSweep, kernels: Vec<KernelFill>) -> DeviceFill {
        let mean = |sum: i128, ns: i64| (ns > 0).then(|| sum as f64 / ns as f64);
        DeviceFill {
            known_ns: Some(sweep.known_ns),
            underfilled_ns: Some(sweep.underfilled_ns),
            beside_communication_ns: Some(sweep.beside_communication_ns),
            beside_transfer_ns: Some(sweep.beside_transfer_ns),
            mean_multiprocessors: mean(sweep.filled, sweep.known_ns),
            underfilled_mean_multiprocessors: mean(sweep.underfilled, sweep.underfilled_ns),
            kernels,
            ..self
        }
    }
}

/// The effect of a piece of work on the fill.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
enum FillPiece {
    /// The work computes, with so many workgroups or [`NONE`]. `name` is the index of its kernel in [`FillNames`], or
    /// [`NONE`].
    Compute { groups: u32, name: u32 },
    /// The work communicates.
    Communicate,
    /// The work moves data.
    Move,
}

/// A sweep over the starts and ends of work, with the work that runs in between.
#[derive(Debug, Default)]
struct FillSweep {
    /// The number of multiprocessors of the GPU.
    size: u64,
    /// The moment up to which time has been counted.
    now_ns: i64,
    /// The running work by end, with the device's underfilled time at its start.
    running: BinaryHeap<Reverse<(i64, FillPiece, i64)>>,
    /// The known workgroups of the running work.
    groups: u64,
    /// The running pieces of work that compute.
    computing: u32,
    /// Those of them whose workgroups are not known.
    unknown: u32,
    /// The running pieces that communicate.
    communicating: u32,
    /// The running pieces that move data.
    moving: u32,
    known_ns: i64,
    underfilled_ns: i64,
    beside_communication_ns: i64,
    beside_transfer_ns: i64,
    /// The sum over time of multiprocessors with a workgroup, in multiprocessors times nanoseconds.
    filled: i128,
    /// The same sum over underfilled time only.
    underfilled: i128,
    /// The underfilled time of each kernel, by its index in [`FillNames`].
    kernels: Vec<UnderfilledKernel>,
}

/// The underfilled time of the kernels of one name.
#[derive(Debug, Clone, Default)]
struct UnderfilledKernel {
    /// The number of dispatches that run at the moment.
    count: u32,
    /// The device's underfilled time when the first of the running dispatches started.
    since_ns: i64,
    underfilled_ns: i64,
    /// The number of dispatches that ran while the device was underfilled, by their number of workgroups, which is
    /// below the device's number of multiprocessors.
    groups: BTreeMap<u32, u64>,
}

impl FillSweep {
    fn new(
        timeline: &Timeline,
        works: &Works,
        window: Interval,
        size: u32,
        names: &FillNames,
    ) -> FillSweep {
        let mut sweep = FillSweep {
            size: u64::from(size),
            kernels: vec![UnderfilledKernel::default(); names.0.all().len()],
            ..FillSweep::default()
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

    /// Adds work. Pieces come in order of start.
    #[inline]
    fn add(&mut self, interval: Interval, piece: FillPiece) {
        self.until(interval.start_ns);
        self.now_ns = interval.start_ns;
        match piece {
            FillPiece::Compute { groups, name } => {
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
            FillPiece::Communicate => self.communicating += 1,
            FillPiece::Move => self.moving += 1,
        }
        let since_ns = self.underfilled_ns;
        self.running
            .push(Reverse((interval.end_ns, piece, since_ns)));
    }

    /// Ends the work that ends at `until_ns` or before.
    #[inline]
    fn until(&mut self, until_ns: i64) {
        while let Some(Reverse((end_ns, piece, since_ns))) = self.running.peek().copied() {
            self.pass(end_ns.min(until_ns));
            if end_ns > until_ns {
                return;
            }
            self.running.pop();
            match piece {
                FillPiece::Compute { groups, name } => {
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
                FillPiece::Communicate => self.communicating -= 1,
                FillPiece::Move => self.moving -= 1,
            }
        }
    }

    /// Counts the time up to a moment as filled or underfilled.
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
        if used as f64 >= UNDERFILLED_SHARE * self.size as f64 {
            return;
        }
        match (self.communicating, self.moving) {
            (0, 0) => {
                self.underfilled_ns += ns;
                self.underfilled += filled;
            }
            (0, _) => self.beside_transfer_ns += ns,
            _ => self.beside_communication_ns += ns,
        }
    }
}

/// Returns a number of workgroups, 0 for an unknown one.
fn known(groups: u32) -> u64 {
    match groups {
        NONE => 0,
        groups => u64::from(groups),
    }
}

/// The names of the kernels of a trace, numbered.
struct FillNames<'a>(&'a KernelNames);

impl FillNames<'_> {
    /// Returns the effect of a piece of work on the fill.
    fn piece(&self, timeline: &Timeline, work: &Work) -> FillPiece {
        let row = work.row();
        match (timeline.content(work), work.kind()) {
            (Content::Communication, _) => FillPiece::Communicate,
            (Content::Transfer, _) => FillPiece::Move,
            (_, WorkKind::Dispatch) => FillPiece::Compute {
                groups: timeline.dispatches.groups(row).unwrap_or(NONE),
                name: (timeline.kernel_row(row))
                    .and_then(|row| self.0.index_of_row(row))
                    .map_or(NONE, |name| name as u32),
            },
            _ => FillPiece::Compute {
                groups: NONE,
                name: NONE,
            },
        }
    }

    /// Returns the kernels that ran longest while the device was underfilled.
    fn worst(
        &self,
        sweep: &FillSweep,
        max: usize,
        table: &Kernels,
        limits: &DeviceProperties,
    ) -> Vec<KernelFill> {
        let names = self.0.all();
        let mut listed: Vec<(usize, &UnderfilledKernel)> = (sweep.kernels.iter().enumerate())
            .filter(|(_, kernel)| kernel.underfilled_ns > 0)
            .collect();
        listed.sort_by_key(|(at, kernel)| (Reverse(kernel.underfilled_ns), &names[*at].name));
        listed.truncate(max);
        let size = i64::try_from(sweep.size).unwrap_or(i64::MAX);
        (listed.into_iter())
            .map(|(at, kernel)| {
                let rows = (0..table.len()).filter(|row| self.0.index_of_row(*row) == Some(at));
                let held = Occupancy::from_rows(table, rows, limits);
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

/// Returns the median of values with their counts, by nearest rank, or 0 without values.
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
