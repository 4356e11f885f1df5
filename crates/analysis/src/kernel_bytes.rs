//! Estimates the bytes that each kernel must move between the device's memory and its multiprocessors at least, without
//! hardware counters, and relates them to the bandwidth that the device was measured to have.
//!
//! Where the code says which elements of its arrays each invocation touches ([`touched_bytes`](crate::touched_bytes)), they are a
//! lower bound for the bytes that are touched, each counted once. Elsewhere they are the bytes of the bound ranges, at most as many
//! as the invocations can touch: that many only if the kernel touches all of them.
//!
//! What this cannot know: bytes that are moved more than once because a cache lost them; bytes that a cache serves, so that
//! they are not moved at all; memory that is reached through addresses and images.

use crate::kernel_limit::{BytesEvidence, NoPeakShare};
use crate::kernels::Kernel;
use crate::limits::{CeilingSource, ceilings};
use crate::touched_bytes::Launch;
use gapscope_timeline::bound_bytes::BindingSets;
use gapscope_timeline::intervals::Interval;
use gapscope_timeline::quantity::ratio;
use gapscope_timeline::thresholds::CREDIBLE_PEAK_SHARE;
use gapscope_timeline::{Timeline, WorkKind};
use gapscope_trace::accesses::{AccessedBinding, KernelAccesses};
use gapscope_trace::ids::BindingSetId;
use gapscope_trace::tables::Access;
use std::collections::HashMap;
use std::sync::Arc;

/// The bytes that a dispatch must move at least.
#[derive(Debug, Clone, Copy)]
struct DispatchBytes {
    read: u64,
    written: u64,
    evidence: BytesEvidence,
}

/// The sums over the dispatches of a kernel on one GPU.
#[derive(Debug, Clone, Copy, Default)]
struct Sums {
    read: u64,
    written: u64,
    ran_ns: i64,
    is_assumed: bool,
}

/// Adds bytes to `kernels`, which are of the dispatches that start in `window`.
pub fn add(
    timeline: &Timeline,
    bindings: &BindingSets,
    window: Option<Interval>,
    kernels: &mut [Kernel],
) {
    if bindings.is_empty() {
        return;
    }
    let names = timeline.kernel_names.all();
    let gpus = timeline.gpus.len();
    // The sums of each kernel on each GPU, the GPUs of one kernel side by side.
    let mut sums = vec![Sums::default(); names.len() * gpus];
    let mut estimates = Estimates::new(timeline, bindings);
    for (gpu, sampled) in timeline.gpus.iter().enumerate() {
        for work in &sampled.works {
            let is_dispatch = work.kind() == WorkKind::Dispatch;
            if !is_dispatch || !Interval::counts(window, Some(work.interval.start_ns)) {
                continue;
            }
            let Some(row) = timeline.kernel_row(work.row()) else {
                continue;
            };
            let number = timeline.kernel_names.index_of_row(row);
            let (Some(number), Some(bytes)) = (number, estimates.dispatch(row, work.row())) else {
                continue;
            };
            let sum = &mut sums[number * gpus + gpu];
            sum.read = sum.read.saturating_add(bytes.read);
            sum.written = sum.written.saturating_add(bytes.written);
            sum.ran_ns = sum.ran_ns.saturating_add(work.interval.length_ns());
            sum.is_assumed |= bytes.evidence == BytesEvidence::BoundRanges;
        }
    }
    let ceilings = ceilings(timeline, 0..gpus);
    let numbers: HashMap<&str, usize> = (names.iter().zip(0..))
        .map(|(named, number)| (named.name.as_str(), number))
        .collect();
    for kernel in kernels {
        let Some(number) = numbers.get(kernel.name.as_str()) else {
            continue;
        };
        let sums = &sums[number * gpus..(number + 1) * gpus];
        let ran_ns = (sums.iter()).fold(0, |ns: i64, sum| ns.saturating_add(sum.ran_ns));
        if ran_ns == 0 {
            continue;
        }
        // Dispatches that ran at once share the time.
        let overlap = kernel.durations.total_ns.zip(kernel.busy_ns);
        let overlap = overlap.map_or(1.0, |(total_ns, busy_ns)| ratio(busy_ns, total_ns).min(1.0));
        let seconds = ran_ns as f64 * overlap / 1e9;
        let bytes = sums.iter().fold(0, |bytes: u64, sum| {
            bytes.saturating_add(sum.read).saturating_add(sum.written)
        });
        let used = sums.iter().zip(&ceilings).filter(|(sum, _)| sum.ran_ns > 0);
        let at_peak = used.map(|(sum, ceiling)| {
            let bytes = sum.read as f64 + sum.written as f64;
            let read_share = match bytes > 0.0 {
                true => sum.read as f64 / bytes,
                false => 0.5,
            };
            let is_measured = ceiling.source == CeilingSource::Measured;
            let bytes_per_s = is_measured.then(|| ceiling.bytes_per_s(read_share))??;
            Some(bytes / bytes_per_s)
        });
        let share = at_peak
            .sum::<Option<f64>>()
            .map(|at_peak| at_peak / seconds);
        let is_assumed = sums.iter().any(|sum| sum.is_assumed);
        kernel.bytes_at_least = Some(bytes);
        kernel.bytes_per_s = (seconds > 0.0).then(|| (bytes as f64 / seconds).round() as u64);
        kernel.bytes_evidence = Some(match is_assumed {
            true => BytesEvidence::BoundRanges,
            false => BytesEvidence::Code,
        });
        kernel.share_of_peak = share.filter(|share| *share <= CREDIBLE_PEAK_SHARE);
        kernel.no_peak_share = match (share, kernel.share_of_peak) {
            (None, _) => Some(NoPeakShare::NotMeasured),
            (Some(_), None) => Some(NoPeakShare::AbovePeak),
            _ => None,
        };
    }
}

/// The facts that the bytes of a dispatch depend on, beside its kernel.
type Facts = (Option<BindingSetId>, [u32; 3]);

/// The bytes of dispatches, each different one estimated once.
struct Estimates<'a> {
    timeline: &'a Timeline<'a>,
    bindings: &'a BindingSets,
    /// The kernels with code that says which bytes they touch, by row.
    kernels: Vec<Option<KernelEstimates>>,
}

/// The estimates of a kernel.
struct KernelEstimates {
    code: KernelAccesses,
    /// Those of the last dispatch: most dispatches are like the one before.
    last: Option<(Facts, Option<DispatchBytes>)>,
    all: HashMap<Facts, Option<DispatchBytes>>,
}

impl<'a> Estimates<'a> {
    fn new(timeline: &'a Timeline, bindings: &'a BindingSets) -> Estimates<'a> {
        let texts = timeline.trace.tables.kernels.accesses.iter();
        let kernel = |text: &Option<Arc<str>>| {
            Some(KernelEstimates {
                code: text.as_ref()?.parse().ok()?,
                last: None,
                all: HashMap::new(),
            })
        };
        Estimates {
            timeline,
            bindings,
            kernels: texts.map(kernel).collect(),
        }
    }

    /// Returns the bytes of a dispatch of the kernel in `kernel_row`; `None` where no bindings are known.
    fn dispatch(&mut self, kernel_row: usize, row: usize) -> Option<DispatchBytes> {
        let set = self.timeline.dispatches.binding_set(row);
        let kernel = self.kernels.get_mut(kernel_row).and_then(Option::as_mut);
        let (Some(kernel), Some(grid)) = (kernel, self.timeline.dispatches.grid(row)) else {
            return bound(self.bindings, set);
        };
        let facts = (set, grid);
        if let Some((_, bytes)) = kernel.last.filter(|(last, _)| *last == facts) {
            return bytes;
        }
        let (bindings, code) = (self.bindings, &kernel.code);
        let bytes = kernel.all.entry(facts);
        let bytes = *bytes.or_insert_with(|| code_bytes(bindings, code, set, grid));
        kernel.last = Some((facts, bytes));
        bytes
    }
}

/// Returns the bytes of a dispatch of a kernel with this code.
fn code_bytes(
    bindings: &BindingSets,
    code: &KernelAccesses,
    set: Option<BindingSetId>,
    grid: [u32; 3],
) -> Option<DispatchBytes> {
    let launch = Launch {
        code,
        grid,
        ranges: bindings.ranges(set),
    };
    let bound = bound(bindings, set)?;
    let [read, written] = [false, true].map(|writes| direction(&launch, writes, &bound));
    Some(DispatchBytes {
        read: read.0,
        written: written.0,
        evidence: match read.1 && written.1 {
            true => BytesEvidence::Code,
            false => BytesEvidence::BoundRanges,
        },
    })
}

/// Returns the bytes of the bound ranges.
fn bound(bindings: &BindingSets, set: Option<BindingSetId>) -> Option<DispatchBytes> {
    let bytes = bindings.bytes(set)?;
    Some(DispatchBytes {
        read: bytes.read_bytes,
        written: bytes.written_bytes,
        evidence: BytesEvidence::BoundRanges,
    })
}

/// Returns the bytes of a dispatch in one direction, and whether all of them are certain. `bound` are those of all its ranges.
fn direction(launch: &Launch, writes: bool, bound: &DispatchBytes) -> (u64, bool) {
    let distinct = if writes { bound.written } else { bound.read };
    let other = if writes { Access::Read } else { Access::Write };
    let (mut sum, mut greatest, mut ranges, mut is_certain) = (0_u64, 0, 0_u64, true);
    for range in launch.ranges.iter().filter(|range| range.access != other) {
        let at = AccessedBinding {
            set: range.set,
            binding: range.binding,
            writes,
        };
        let certain = launch.certain(at);
        let bytes = certain.unwrap_or_else(|| {
            let most = launch.most(at).unwrap_or(range.bytes);
            most.min(range.bytes)
        });
        is_certain &= certain.is_some();
        sum = sum.saturating_add(bytes);
        greatest = greatest.max(bytes);
        ranges = ranges.saturating_add(range.bytes);
    }
    // Where ranges overlap, the same bytes may be touched through several.
    match ranges > distinct && is_certain {
        true => (greatest, true),
        false => (sum.min(distinct), is_certain),
    }
}
