//! Fill: how much of a GPU its kernels could use at once.
//!
//! The *fill* of a moment is the share of the multiprocessors that have at least one workgroup: at most the workgroups of
//! all kernels that run then, over the multiprocessors. Below
//! [`UNDERFILLED_SHARE`](crate::thresholds::UNDERFILLED_SHARE) the GPU is *underfilled*: it is busy, and most of it idles.
//!
//! Kernels that communicate use few workgroups on purpose, and copies none: moments in which one of them runs are never
//! underfilled.
//!
//! What this cannot know: the GPU's size where the API does not tell it (Vulkan, Metal); the workgroups of indirect
//! dispatches, and of work that is timed as a whole: their time is unknown. The fill is an upper bound: the last
//! workgroups of a large kernel may run alone, and a workgroup may use little of its multiprocessor.

use crate::intervals::Interval;
use crate::quantity::ratio;
use crate::thresholds::UNDERFILLED_SHARE;
use crate::timeline::{Content, Timeline, Work, WorkKind};
use gapscope_trace::lookup::NONE;
use gapscope_trace::manifest::DeviceLimits;
use gapscope_trace::tables::Kernels;
use serde::Serialize;
use std::cmp::Reverse;
use std::collections::{BinaryHeap, HashMap};

/// Fill of a GPU over the analysed window.
#[derive(Debug, Clone, Default, PartialEq, Serialize)]
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
#[derive(Debug, Clone, Default, PartialEq, Serialize)]
pub struct KernelFill {
    /// The kernel's name.
    pub name: String,
    /// Dispatches with known times and workgroups.
    pub count: u64,
    /// Median of their workgroups.
    pub groups_p50: u32,
    /// The share of the multiprocessors that so many can use, at most 1.
    pub fill: f64,
    /// Time in which one of them ran and the GPU was underfilled. Kernels that ran at the same time each count it.
    pub underfilled_ns: i64,
    /// Workgroups that a multiprocessor can hold at once, at most. Absent where it is unknown, or differs between
    /// kernels of this name.
    pub groups_per_multiprocessor: Option<u32>,
    /// What allows no more of them: `groups`, `threads`, `registers`, `shared-memory`.
    pub limited_by: Option<&'static str>,
}

/// Fill of every GPU with timed work in `window`. Of each, the `most` kernels that were underfilled for longest are listed.
pub fn fill(timeline: &Timeline, window: Interval, most: usize) -> Vec<DeviceFill> {
    (timeline.gpus.iter().zip(0u32..))
        .filter(|(gpu, _)| !gpu.works.is_empty())
        .map(|(gpu, device)| {
            let devices = &timeline.trace.manifest.devices;
            let limits = (gpu.devices.iter()).find_map(|row| devices[*row].limits.as_ref());
            let size = limits.and_then(|limits| limits.multiprocessors);
            let mut sweep = Sweep {
                size: size.map_or(0, u64::from),
                spent: vec![0; timeline.trace.tables.kernels.id.len()],
                ..Sweep::default()
            };
            for work in &gpu.works {
                let inside = work.interval.intersection(window);
                if !inside.is_empty() {
                    sweep.add(inside, Piece::of(timeline, work));
                }
            }
            sweep.until(i64::MAX);
            let mut fill = DeviceFill {
                device,
                multiprocessors: size,
                computing_ns: sweep.computing_ns,
                ..DeviceFill::default()
            };
            if let Some((limits, size)) = limits.zip(size) {
                let mean = |sum: i128, ns: i64| (ns > 0).then(|| sum as f64 / ns as f64);
                fill.known_ns = Some(sweep.known_ns);
                fill.underfilled_ns = Some(sweep.underfilled_ns);
                fill.mean_multiprocessors = mean(sweep.filled, sweep.known_ns);
                fill.underfilled_mean_multiprocessors =
                    mean(sweep.underfilled, sweep.underfilled_ns);
                fill.kernels = worst(timeline, &gpu.works, window, &sweep.spent, most);
                for kernel in &mut fill.kernels {
                    kernel.fill = ratio(i64::from(kernel.groups_p50), i64::from(size)).min(1.0);
                    let table = &timeline.trace.tables.kernels;
                    let held = held(table, &kernel.name, limits);
                    kernel.groups_per_multiprocessor = held.map(|(groups, _)| groups);
                    kernel.limited_by = held.map(|(_, by)| by);
                }
            }
            fill
        })
        .collect()
}

/// A piece of work, as far as fill goes.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
enum Piece {
    /// It computes, with so many workgroups; or [`NONE`].
    Compute { groups: u32, kernel: u32 },
    /// It communicates or moves data.
    Other,
}

impl Piece {
    fn of(timeline: &Timeline, work: &Work) -> Piece {
        let row = work.row();
        match (timeline.content(work), work.kind()) {
            (Content::Communication | Content::Transfer, _) => Piece::Other,
            (_, WorkKind::Dispatch) => Piece::Compute {
                groups: timeline.dispatches.groups.get(row).map_or(NONE, |n| *n),
                kernel: timeline.dispatches.kernels[row],
            },
            _ => Piece::Compute {
                groups: NONE,
                kernel: NONE,
            },
        }
    }
}

/// What runs, from one start or end of work to the next.
#[derive(Debug, Default)]
struct Sweep {
    /// Multiprocessors; 0 where they are unknown.
    size: u64,
    now_ns: i64,
    /// By end: each with the underfilled time before its start.
    running: BinaryHeap<Reverse<(i64, Piece, i64)>>,
    groups: u64,
    computing: u32,
    unknown: u32,
    others: u32,
    computing_ns: i64,
    known_ns: i64,
    underfilled_ns: i64,
    /// Multiprocessors with a workgroup, times nanoseconds.
    filled: i128,
    underfilled: i128,
    /// Underfilled time by row of the kernel.
    spent: Vec<i64>,
}

impl Sweep {
    /// In order of start.
    #[inline]
    fn add(&mut self, interval: Interval, piece: Piece) {
        self.until(interval.start_ns);
        self.now_ns = interval.start_ns;
        match piece {
            Piece::Compute { groups, .. } => {
                self.computing += 1;
                self.unknown += u32::from(groups == NONE);
                self.groups += known(groups);
            }
            Piece::Other => self.others += 1,
        }
        let before = self.underfilled_ns;
        self.running.push(Reverse((interval.end_ns, piece, before)));
    }

    /// Ends what ends by then.
    #[inline]
    fn until(&mut self, until_ns: i64) {
        while let Some(Reverse((end_ns, piece, before))) = self.running.peek().copied() {
            self.pass(end_ns.min(until_ns));
            if end_ns > until_ns {
                return;
            }
            self.running.pop();
            match piece {
                Piece::Compute { groups, kernel } => {
                    self.computing -= 1;
                    self.unknown -= u32::from(groups == NONE);
                    self.groups -= known(groups);
                    if let Some(spent) = self.spent.get_mut(kernel as usize) {
                        *spent += self.underfilled_ns - before;
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
        if ns <= 0 || self.computing == 0 {
            return;
        }
        self.computing_ns += ns;
        if self.unknown > 0 || self.size == 0 {
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

/// The kernels that were underfilled for longest, by name.
fn worst(
    timeline: &Timeline,
    works: &[Work],
    window: Interval,
    spent: &[i64],
    most: usize,
) -> Vec<KernelFill> {
    let names = &timeline.trace.tables.kernels.name;
    let mut by_name: HashMap<&str, i64> = HashMap::new();
    for (name, ns) in names.iter().zip(spent).filter(|(_, ns)| **ns > 0) {
        let sum = by_name.entry(name).or_default();
        *sum = sum.saturating_add(*ns);
    }
    let mut rows: Vec<(&str, i64)> = by_name.into_iter().collect();
    rows.sort_by_key(|(name, ns)| (Reverse(*ns), *name));
    rows.truncate(most);

    let listed: HashMap<&str, usize> = (rows.iter().enumerate())
        .map(|(at, (name, _))| (*name, at))
        .collect();
    let listed: Vec<Option<usize>> = (names.iter())
        .map(|name| listed.get(name.as_str()).copied())
        .collect();
    let mut groups: Vec<Vec<u32>> = vec![Vec::new(); rows.len()];
    for work in works {
        if work.kind() == WorkKind::Dispatch
            && let Some(row) = timeline.kernel_row(work.row())
            && let Some(at) = listed[row]
            && !work.interval.intersection(window).is_empty()
        {
            let known = timeline.dispatches.groups[work.row()];
            groups[at].extend(Some(known).filter(|groups| *groups != NONE));
        }
    }
    (rows.into_iter().zip(groups))
        .map(|((name, underfilled_ns), mut groups)| {
            let middle = groups.len().saturating_sub(1) / 2;
            KernelFill {
                name: name.to_owned(),
                count: groups.len() as u64,
                groups_p50: match groups.is_empty() {
                    true => 0,
                    false => *groups.select_nth_unstable(middle).1,
                },
                underfilled_ns,
                ..KernelFill::default()
            }
        })
        .collect()
}

/// Workgroups of the kernels of this name that a multiprocessor can hold, at most, and what allows no more; `None` where
/// that is unknown, or differs.
fn held(table: &Kernels, name: &str, limits: &DeviceLimits) -> Option<(u32, &'static str)> {
    let rows = (0..table.name.len()).filter(|row| table.name[*row] == name);
    let mut all = rows.map(|row| held_of_row(table, row, limits));
    let first = all.next()??;
    all.all(|other| other == Some(first)).then_some(first)
}

fn held_of_row(table: &Kernels, row: usize, limits: &DeviceLimits) -> Option<(u32, &'static str)> {
    // Threads run, and registers are given out, in warps of 32.
    const WARP: u64 = 32;
    const REGISTERS: u64 = 256;
    let threads: u64 = [&table.local_x, &table.local_y, &table.local_z]
        .into_iter()
        .map(|axis| axis[row].map(u64::from))
        .product::<Option<u64>>()?;
    let warps = threads.div_ceil(WARP);
    let registers = u64::from(table.registers[row]?) * WARP;
    let registers = registers.next_multiple_of(REGISTERS) * warps;
    let shared = [&table.static_shared_bytes, &table.dynamic_shared_bytes];
    let shared = shared.map(|bytes| bytes[row].map(u64::from));
    let shared = shared.into_iter().sum::<Option<u64>>()?;
    let fits = [
        ("groups", limits.groups_per_multiprocessor.map(u64::from), 1),
        (
            "threads",
            limits.threads_per_multiprocessor.map(u64::from),
            warps * WARP,
        ),
        (
            "registers",
            limits.registers_per_multiprocessor.map(u64::from),
            registers,
        ),
        (
            "shared-memory",
            limits.shared_bytes_per_multiprocessor,
            shared,
        ),
    ];
    let mut least: Option<(u32, &'static str)> = None;
    for (by, of, each) in fits {
        // Nothing of it is needed where `each` is 0.
        let groups = of?.checked_div(each).map(|groups| groups as u32);
        if let Some(groups) = groups.filter(|groups| least.is_none_or(|(least, _)| *groups < least))
        {
            least = Some((groups, by));
        }
    }
    least
}
