//! Busy time: when a GPU ran something.
//!
//! Busy time is the length of the union of work ([`crate::timeline`] says what work is): what runs at the same time
//! counts once. Two windows are reported: the whole recording, and the analysed window, which begins with the GPU's
//! first work (or after warm-up) and ends with its last.
//!
//! What this cannot know: whether a running device is used well (one small dispatch makes it as busy as a large one),
//! work of programs that are not recorded, and idle time inside work that is timed as a whole.

use crate::intervals::{Busy, Interval, union, union_length_ns};
use crate::quantity::ratio;
use crate::timeline::{Gpu, Timeline};
use crate::vocabulary::{UNKNOWN_DEVICE, Vocabulary};
use gapscope_trace::ids::{DeviceId, ProcessId, QueueId};
use gapscope_trace::manifest::{Api, ClockMethod};
use serde::Serialize;

/// A physical GPU: all devices of the trace, of whatever process, with one uuid.
#[derive(Debug, Clone, Default, PartialEq, Serialize)]
pub struct DeviceBusy {
    /// Index of the GPU in the findings.
    pub index: u32,
    /// Name.
    pub name: String,
    /// `vulkan`, `cuda`, `metal`.
    pub api: Api,
    /// Driver and version.
    pub driver: String,
    /// The uuid as hexadecimal; empty when it is not known.
    pub uuid: String,
    /// Ids of its devices in the trace.
    pub device_ids: Vec<DeviceId>,
    /// Ids of the processes that used it.
    pub process_ids: Vec<ProcessId>,
    /// True when the driver said that the device was lost.
    pub lost: bool,
    /// How device times were mapped to host times.
    pub clock_method: ClockMethod,
    /// The greatest error of a mapped time; absent when it is not known.
    pub clock_error_ns: Option<i64>,
    /// From the start of its first work to the end of its last. Absent when nothing on it was timed.
    pub work_window: Option<Interval>,
    /// Time in which it ran something, over the whole recording: the union of its work.
    pub busy_ns: Option<i64>,
    /// Part of `busy_ns` in which it ran transfers and nothing else. Absent where sampling cannot tell.
    pub transfer_only_ns: Option<i64>,
    /// From the start of the recording to its first work.
    pub before_first_ns: Option<i64>,
    /// From the end of its last work to the end of the recording.
    pub after_last_ns: Option<i64>,
    /// The same over the analysed window (without warm-up): `busy_ns + idle_ns == window_ns`.
    pub analysed: Option<BusyShare>,
    /// Command buffers that count as busy from start to end, because not all that is inside has times: their inner
    /// gaps are not seen, so `busy_ns` is an upper bound by those.
    pub command_buffers_counted_whole: u64,
    /// Command buffers without any known time: not in `busy_ns`.
    pub command_buffers_untimed: u64,
    /// Its queues.
    pub queues: Vec<QueueBusy>,
}

/// A queue's part of its GPU.
#[derive(Debug, Clone, Default, PartialEq, Serialize)]
pub struct QueueBusy {
    /// Id of the queue in the trace.
    pub queue_id: QueueId,
    /// What it is called ([`Vocabulary::queue`]).
    pub name: String,
    /// What it can do.
    pub capabilities: Vec<String>,
    /// From the start of its first work to the end of its last.
    pub work_window: Option<Interval>,
    /// Time in which it ran something, over the whole recording.
    pub busy_ns: Option<i64>,
    /// The same over the part of the analysed window between its own first and last work.
    pub analysed: Option<BusyShare>,
}

/// Busy and idle time in a window.
#[derive(Debug, Clone, Copy, Default, PartialEq, Serialize)]
pub struct BusyShare {
    /// The window.
    pub window: Interval,
    /// Its length.
    pub window_ns: i64,
    /// The part in which something ran.
    pub busy_ns: i64,
    /// The rest.
    pub idle_ns: i64,
    /// `busy_ns / window_ns`.
    pub busy_share: f64,
    /// Part of `busy_ns` in which only transfers ran. Absent where sampling cannot tell, and for queues.
    pub transfer_only_ns: Option<i64>,
}

impl BusyShare {
    fn new(window: Interval, busy_ns: i64, transfer_only_ns: Option<i64>) -> BusyShare {
        let window_ns = window.length_ns();
        BusyShare {
            window,
            window_ns,
            busy_ns,
            idle_ns: window_ns - busy_ns,
            busy_share: ratio(busy_ns, window_ns),
            transfer_only_ns,
        }
    }
}

/// Busy time of every GPU, and of its queues, over the recording and in `analysed`.
pub fn busy(timeline: &Timeline, analysed: Option<Interval>) -> Vec<DeviceBusy> {
    (0..timeline.gpus.len())
        .map(|index| device_busy(timeline, index, analysed))
        .collect()
}

/// Time in which at least one GPU ran something. `None` when nothing was timed.
pub fn any_busy_ns(timeline: &Timeline) -> Option<i64> {
    timeline.work_window()?;
    let mut working = timeline.gpus.iter().filter(|gpu| !gpu.works.is_empty());
    match (working.next(), working.next()) {
        (Some(only), None) => Some(union_length_ns(only.works.iter().map(|w| w.interval))),
        _ => {
            let mut all = Vec::new();
            for gpu in &timeline.gpus {
                let mut set: Vec<Interval> = gpu.works.iter().map(|w| w.interval).collect();
                union(&mut set);
                all.append(&mut set);
            }
            union(&mut all);
            Some(crate::intervals::length_ns(&all))
        }
    }
}

/// Busy time of one GPU and its queues, added up in one walk over its work.
#[derive(Debug, Default)]
struct Totals {
    all: Busy,
    computing: Busy,
    analysed: Busy,
    analysed_computing: Busy,
    /// Some work may both compute and move data.
    mixed: bool,
    analysed_mixed: bool,
    /// By index of the queue.
    queues: Vec<QueueTotals>,
}

/// Busy time of one queue.
#[derive(Debug, Clone, Default)]
struct QueueTotals {
    work_window: Option<Interval>,
    all: Busy,
    analysed: Busy,
}

impl Totals {
    fn of(timeline: &Timeline, gpu: &Gpu, analysed: Option<Interval>) -> Totals {
        let mut totals = Totals {
            queues: vec![QueueTotals::default(); timeline.queues.len()],
            ..Totals::default()
        };
        for work in &gpu.works {
            let interval = work.interval;
            let inside =
                analysed.map_or(Interval::default(), |window| interval.intersection(window));
            totals.all.add(interval);
            totals.analysed.add(inside);
            match timeline.is_transfer(work) {
                Some(true) => {}
                Some(false) => {
                    totals.computing.add(interval);
                    totals.analysed_computing.add(inside);
                }
                None => {
                    totals.mixed = true;
                    totals.analysed_mixed |= !inside.is_empty();
                }
            }
            let queue = &mut totals.queues[timeline.queue_of(work) as usize];
            let window = queue.work_window;
            queue.work_window = Some(window.map_or(interval, |window| window.hull(interval)));
            queue.all.add(interval);
            queue.analysed.add(inside);
        }
        totals
    }
}

fn device_busy(timeline: &Timeline, index: usize, analysed: Option<Interval>) -> DeviceBusy {
    let manifest = &timeline.trace.manifest;
    let gpu = &timeline.gpus[index];
    let devices: Vec<_> = (gpu.devices.iter())
        .map(|row| &manifest.devices[*row])
        .collect();
    let first = devices.first();
    let mut process_ids: Vec<ProcessId> = devices.iter().map(|device| device.process).collect();
    process_ids.sort();
    process_ids.dedup();
    let of_gpu = |queue: u32| timeline.queues[queue as usize].gpu as usize == index;
    let times = || {
        timeline
            .command_buffers
            .iter()
            .filter(|times| of_gpu(times.queue))
    };
    let totals = Totals::of(timeline, gpu, analysed);
    let work_window = gpu.work_window();
    let transfer_only = |mixed: bool, all: Busy, computing: Busy| {
        (!mixed).then(|| all.length_ns - computing.length_ns)
    };
    let share = |(window, analysed): (Interval, Interval)| {
        let transfer_only_ns = transfer_only(
            totals.analysed_mixed,
            totals.analysed,
            totals.analysed_computing,
        );
        BusyShare::new(
            window.intersection(analysed),
            totals.analysed.length_ns,
            transfer_only_ns,
        )
    };
    DeviceBusy {
        index: index as u32,
        name: first.map_or(UNKNOWN_DEVICE.to_owned(), |device| device.name.clone()),
        api: first.map_or(Api::Unknown, |device| device.api),
        driver: first.map_or(String::new(), |device| device.driver.clone()),
        uuid: first.map_or(String::new(), |device| device.uuid.clone()),
        device_ids: devices.iter().map(|device| device.id).collect(),
        process_ids,
        lost: devices.iter().any(|device| device.lost),
        clock_method: first.map_or(ClockMethod::None, |device| device.clock.method),
        clock_error_ns: timeline.clock_error_ns(index),
        work_window,
        busy_ns: work_window.map(|_| totals.all.length_ns),
        transfer_only_ns: work_window
            .and_then(|_| transfer_only(totals.mixed, totals.all, totals.computing)),
        before_first_ns: work_window
            .filter(|_| manifest.start_ns != 0)
            .map(|window| window.start_ns.saturating_sub(manifest.start_ns)),
        after_last_ns: work_window
            .filter(|_| manifest.end_ns != 0)
            .map(|window| manifest.end_ns.saturating_sub(window.end_ns)),
        analysed: work_window.zip(analysed).map(share),
        command_buffers_counted_whole: times().filter(|times| times.whole).count() as u64,
        command_buffers_untimed: times()
            .filter(|times| times.first_start_ns > times.last_end_ns && times.own.is_none())
            .count() as u64,
        queues: queues_busy(timeline, index, &totals, analysed),
    }
}

fn queues_busy(
    timeline: &Timeline,
    index: usize,
    totals: &Totals,
    analysed: Option<Interval>,
) -> Vec<QueueBusy> {
    let manifest = &timeline.trace.manifest;
    let vocabulary = Vocabulary::of(manifest);
    (timeline.queues.iter().zip(&totals.queues))
        .filter(|(queue, _)| queue.gpu as usize == index)
        .map(|(queue, totals)| {
            let window = totals.work_window;
            let row = queue.row.map(|row| &manifest.queues[row as usize]);
            QueueBusy {
                queue_id: queue.id,
                name: vocabulary.queue(queue.id),
                capabilities: row.map_or(Vec::new(), |row| row.capabilities.clone()),
                work_window: window,
                busy_ns: window.map(|_| totals.all.length_ns),
                analysed: window.zip(analysed).map(|(window, analysed)| {
                    BusyShare::new(
                        window.intersection(analysed),
                        totals.analysed.length_ns,
                        None,
                    )
                }),
            }
        })
        .collect()
}
