//! Sums up the transfers (copies, fills and updates) of a trace by kind: the bytes moved, and how fast.
//!
//! Bytes are those that a transfer writes; a copy also reads as many. The rate is of commands on the device. It does
//! not include memory that the host writes through a mapping, because no profiler of API calls can see that.

use gapscope_timeline::collectives::{ProcessDevice, devices_of_queues};
use gapscope_timeline::durations::Durations;
use gapscope_timeline::intervals::{Interval, intersection, length_ns, union};
use gapscope_timeline::{Timeline, WorkKind};
use gapscope_trace::manifest::SamplingMode;
use gapscope_trace::tables::{Table, TransferKind};
use schemars::JsonSchema;
use serde::Serialize;
use std::cell::OnceCell;
use std::cmp::Reverse;
use std::collections::BTreeMap;

/// Transfers of one kind, over the whole recording.
#[derive(Debug, Clone, Default, PartialEq, Serialize, JsonSchema)]
pub struct TransferRow {
    /// Their kind.
    #[schemars(with = "String")]
    pub kind: TransferKind,
    /// Transfers.
    pub count: u64,
    /// Bytes written by transfers of known size; null where none of their sizes is known.
    pub bytes: Option<u64>,
    /// Transfers of unknown size: not in `bytes`.
    pub unknown_bytes_count: u64,
    /// Transfers whose times are unknown.
    pub untimed_count: u64,
    /// Their durations.
    #[serde(flatten)]
    pub durations: Durations,
    /// Time in which at least one of them ran.
    pub busy_ns: Option<i64>,
    /// Bytes written each second in which a transfer of the same GPU ran, by transfers whose size and times are both
    /// known: where several GPUs copy, the mean of what each reached. A copy also reads as many.
    pub bytes_per_second: Option<f64>,
    /// Those of them that the driver made to move pages of managed memory; absent where there are none.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub page_moves: Option<PageMoves>,
}

/// Moves of managed memory's pages, which the driver makes where the host or a kernel touches them.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, JsonSchema)]
pub struct PageMoves {
    /// Moves.
    pub count: u64,
    /// Bytes moved, of moves of known size.
    pub bytes: u64,
    /// Time in which at least one of them ran.
    pub busy_ns: i64,
    /// The part of `busy_ns` in which a kernel ran, which may have waited for the pages.
    pub beside_kernels_ns: i64,
}

/// Returns the transfers of the whole recording by kind, those with the most bytes first.
pub fn transfers(timeline: &Timeline) -> Vec<TransferRow> {
    transfers_in(timeline, None)
}

/// Returns the transfers that start in `window` by kind, or all without a window.
pub fn transfers_in(timeline: &Timeline, window: Option<Interval>) -> Vec<TransferRow> {
    let rows = &timeline.trace.tables.transfers;
    let timed = timeline.trace.manifest.sampling_mode != SamplingMode::CommandBuffer;
    let mut kinds: BTreeMap<TransferKind, Vec<usize>> = BTreeMap::new();
    let counts = |row: &usize| Interval::counts(window, rows.start_ns.at(*row));
    for row in (0..rows.len()).filter(counts) {
        kinds.entry(rows.kind[row]).or_default().push(row);
    }
    let interval = |row: usize| {
        Interval::from_row(rows.start_ns.at(row), rows.duration_ns.at(row)).filter(|_| timed)
    };
    let kernels = OnceCell::new();
    let gpus = gpus_of_queues(timeline);
    let gpu_of = |row: usize| {
        let queue = timeline.queue_of_transfer(row) as usize;
        gpus.get(queue).copied().flatten()
    };
    let mut result: Vec<TransferRow> = kinds
        .into_iter()
        .map(|(kind, mine)| {
            let intervals: Vec<Interval> = mine.iter().filter_map(|row| interval(*row)).collect();
            let mut durations: Vec<i64> = intervals.iter().map(|i| i.length_ns()).collect();
            let mut set = intervals.clone();
            union(&mut set);
            let sized = |row: &&usize| rows.bytes.at(**row).is_some() && interval(**row).is_some();
            let mut bytes = 0u64;
            let mut sized_by_gpu: BTreeMap<Option<usize>, Vec<Interval>> = BTreeMap::new();
            for row in mine.iter().filter(sized) {
                bytes = bytes.saturating_add(rows.bytes.at(*row).unwrap_or_default());
                let of_gpu = sized_by_gpu.entry(gpu_of(*row)).or_default();
                of_gpu.extend(interval(*row));
            }
            let sized_ns: i64 = sized_by_gpu
                .values_mut()
                .map(|of_gpu| {
                    union(of_gpu);
                    length_ns(of_gpu)
                })
                .sum();
            TransferRow {
                kind,
                count: mine.len() as u64,
                bytes: (mine.iter())
                    .filter_map(|row| rows.bytes.at(*row))
                    .reduce(u64::saturating_add),
                unknown_bytes_count: mine
                    .iter()
                    .filter(|row| rows.bytes.at(**row).is_none())
                    .count() as u64,
                untimed_count: (mine.len() - intervals.len()) as u64,
                durations: Durations::from_slice(&mut durations),
                busy_ns: (!intervals.is_empty()).then(|| length_ns(&set)),
                page_moves: page_moves(&mine, timeline, &interval, &kernels),
                bytes_per_second: (sized_ns > 0).then(|| bytes as f64 * 1e9 / sized_ns as f64),
            }
        })
        .collect();
    result.sort_by_key(|row| (Reverse(row.bytes), Reverse(row.count)));
    result
}

/// Returns the index of the GPU of each of the timeline's queues; `None` where the queue's device is not known.
fn gpus_of_queues(timeline: &Timeline) -> Vec<Option<usize>> {
    let manifest = &timeline.trace.manifest;
    let of_device = |(process, device): ProcessDevice| {
        let is_it = |row: &usize| {
            let found = manifest.devices.get(*row);
            found.is_some_and(|found| found.id == device && found.process == process)
        };
        let mut gpus = timeline.gpus.iter();
        gpus.position(|gpu| gpu.devices.iter().any(is_it))
    };
    let devices = devices_of_queues(timeline).into_iter();
    devices.map(of_device).collect()
}

/// Sums up the moves of pages among the transfers in `rows`; `None` where there are none. `kernels` keeps the times in
/// which kernels ran once they are needed.
fn page_moves(
    rows: &[usize],
    timeline: &Timeline,
    interval: &impl Fn(usize) -> Option<Interval>,
    kernels: &OnceCell<Vec<Interval>>,
) -> Option<PageMoves> {
    let mut moves = PageMoves::default();
    let mut set = Vec::new();
    for row in rows.iter().filter(|row| timeline.is_page_move(**row)) {
        moves.count += 1;
        let bytes = timeline.trace.tables.transfers.bytes.at(*row);
        moves.bytes = moves.bytes.saturating_add(bytes.unwrap_or(0));
        set.extend(interval(*row));
    }
    if moves.count == 0 {
        return None;
    }
    union(&mut set);
    let kernels = kernels.get_or_init(|| {
        let works = timeline.gpus.iter().flat_map(|gpu| gpu.works.iter());
        let kernels = works.filter(|work| work.kind() == WorkKind::Dispatch);
        let mut kernels = kernels.map(|work| work.interval).collect();
        union(&mut kernels);
        kernels
    });
    moves.busy_ns = length_ns(&set);
    moves.beside_kernels_ns = length_ns(&intersection(&set, kernels));
    Some(moves)
}
