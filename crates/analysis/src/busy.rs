//! Busy time: when a GPU ran something.
//!
//! Busy time is the length of the union of work ([`crate::timeline`] says what work is): what runs at the same time
//! counts once. Two windows are reported: the whole recording, and the analysed window, which begins with the GPU's
//! first work (or after warm-up) and ends with its last.
//!
//! What this cannot know: whether a running device is used well (one small dispatch makes it as busy as a large one),
//! work of programs that are not recorded, and idle time inside work that is timed as a whole.

use crate::intervals::{Interval, union, union_length_ns};
use crate::quantity::ratio;
use crate::timeline::{Gpu, Timeline, Work};
use gapscope_trace::manifest::ClockMethod;
use serde::Serialize;

/// A physical GPU: all devices of the trace, of whatever process, with one uuid.
#[derive(Debug, Clone, Default, PartialEq, Serialize)]
pub struct DeviceBusy {
    /// Index of the GPU in the findings.
    pub index: u32,
    /// Name.
    pub name: String,
    /// `vulkan`, `cuda`, `metal`.
    pub api: String,
    /// Driver and version.
    pub driver: String,
    /// The uuid as hexadecimal; empty when it is not known.
    pub uuid: String,
    /// Ids of its devices in the trace.
    pub device_ids: Vec<u32>,
    /// Ids of the processes that used it.
    pub process_ids: Vec<u32>,
    /// True when the driver said that the device was lost.
    pub lost: bool,
    /// How device times were mapped to host times.
    pub clock_method: ClockMethod,
    /// The greatest error of a mapped time; absent when it is not known.
    pub clock_error_ns: Option<i64>,
    /// From the begin of its first work to the end of its last. Absent when nothing on it was timed.
    pub work_window: Option<Interval>,
    /// Time in which it ran something, over the whole recording: the union of its work.
    pub busy_ns: Option<i64>,
    /// Part of `busy_ns` in which it ran transfers and nothing else. Absent where sampling cannot tell.
    pub transfer_only_ns: Option<i64>,
    /// From the begin of the recording to its first work.
    pub before_first_ns: Option<i64>,
    /// From the end of its last work to the end of the recording.
    pub after_last_ns: Option<i64>,
    /// The same over the analysed window (without warm-up): `busy_ns + idle_ns == window_ns`.
    pub analysed: Option<BusyShare>,
    /// Command buffers that count as busy from begin to end, because not all that is inside has times: their inner
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
    pub queue_id: u32,
    /// Name that the program gave it.
    pub name: Option<String>,
    /// What it can do.
    pub capabilities: Vec<String>,
    /// From the begin of its first work to the end of its last.
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
}

impl BusyShare {
    fn new(window: Interval, busy_ns: i64) -> BusyShare {
        let window_ns = window.length_ns();
        BusyShare {
            window,
            window_ns,
            busy_ns,
            idle_ns: window_ns - busy_ns,
            busy_share: ratio(busy_ns, window_ns),
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

/// Parts of a GPU's busy time in `window`.
#[derive(Debug, Clone, Copy, Default, PartialEq)]
pub(crate) struct BusyParts {
    pub(crate) busy_ns: i64,
    /// Only transfers ran; absent where sampling cannot tell.
    pub(crate) transfer_only_ns: Option<i64>,
}

pub(crate) fn busy_parts(timeline: &Timeline, gpu: &Gpu, window: Interval) -> BusyParts {
    let mut all = Busy::default();
    let mut other = Busy::default();
    let mut known = true;
    for work in &gpu.works {
        let inside = work.interval.intersection(window);
        all.add(inside);
        match timeline.is_transfer(work) {
            Some(true) => {}
            Some(false) => other.add(inside),
            None => known = known && inside.is_empty(),
        }
    }
    BusyParts {
        busy_ns: all.length_ns,
        transfer_only_ns: known.then(|| all.length_ns - other.length_ns),
    }
}

/// Length of a union, interval by interval in order of start.
#[derive(Debug, Clone, Copy)]
struct Busy {
    length_ns: i64,
    end_ns: i64,
}

impl Default for Busy {
    fn default() -> Self {
        Busy {
            length_ns: 0,
            end_ns: i64::MIN,
        }
    }
}

impl Busy {
    #[inline]
    fn add(&mut self, interval: Interval) {
        let fresh = Interval::new(interval.start_ns.max(self.end_ns), interval.end_ns);
        self.length_ns += fresh.length_ns();
        self.end_ns = self.end_ns.max(interval.end_ns);
    }
}

fn device_busy(timeline: &Timeline, index: usize, analysed: Option<Interval>) -> DeviceBusy {
    let manifest = &timeline.trace.manifest;
    let gpu = &timeline.gpus[index];
    let devices: Vec<_> = gpu
        .devices
        .iter()
        .map(|row| &manifest.devices[*row])
        .collect();
    let first = devices.first();
    let mut process_ids: Vec<u32> = devices.iter().map(|device| device.process).collect();
    process_ids.sort();
    process_ids.dedup();
    let work_window = gpu.work_window();
    let parts = work_window.map(|window| busy_parts(timeline, gpu, window));
    let of_gpu = |queue: u32| timeline.queues[queue as usize].gpu as usize == index;
    let mut device = DeviceBusy {
        index: index as u32,
        name: first.map_or("unknown device".to_owned(), |device| device.name.clone()),
        api: first.map_or(String::new(), |device| device.api.clone()),
        driver: first.map_or(String::new(), |device| device.driver.clone()),
        uuid: first.map_or(String::new(), |device| device.uuid.clone()),
        device_ids: devices.iter().map(|device| device.id).collect(),
        process_ids,
        lost: devices.iter().any(|device| device.lost),
        clock_method: first.map_or(ClockMethod::None, |device| device.clock.method),
        clock_error_ns: timeline.clock_error_ns(index),
        work_window,
        busy_ns: parts.map(|parts| parts.busy_ns),
        transfer_only_ns: parts.and_then(|parts| parts.transfer_only_ns),
        before_first_ns: work_window
            .filter(|_| manifest.start_ns != 0)
            .map(|window| window.start_ns.saturating_sub(manifest.start_ns)),
        after_last_ns: work_window
            .filter(|_| manifest.end_ns != 0)
            .map(|window| manifest.end_ns.saturating_sub(window.end_ns)),
        analysed: None,
        command_buffers_counted_whole: 0,
        command_buffers_untimed: 0,
        queues: Vec::new(),
    };
    if let (Some(window), Some(analysed)) = (work_window, analysed) {
        let window = window.intersection(analysed);
        let busy_ns = busy_parts(timeline, gpu, window).busy_ns;
        device.analysed = Some(BusyShare::new(window, busy_ns));
    }
    for times in timeline
        .command_buffers
        .iter()
        .filter(|times| of_gpu(times.queue))
    {
        device.command_buffers_counted_whole += u64::from(times.whole);
        device.command_buffers_untimed +=
            u64::from(times.first_start_ns > times.last_end_ns && times.own.is_none());
    }
    device.queues = queues_busy(timeline, index, gpu, analysed);
    device
}

fn queues_busy(
    timeline: &Timeline,
    index: usize,
    gpu: &Gpu,
    analysed: Option<Interval>,
) -> Vec<QueueBusy> {
    struct Times {
        window: Option<Interval>,
        whole: Busy,
        inside: Busy,
    }
    let mut times: Vec<Times> = (timeline.queues.iter())
        .map(|_| Times {
            window: None,
            whole: Busy::default(),
            inside: Busy::default(),
        })
        .collect();
    for work in &gpu.works {
        let Work { interval, .. } = *work;
        let queue = &mut times[timeline.queue_of(work) as usize];
        queue.window = Some(
            queue
                .window
                .map_or(interval, |window| window.hull(interval)),
        );
        queue.whole.add(interval);
        if let Some(analysed) = analysed {
            queue.inside.add(interval.intersection(analysed));
        }
    }
    let listed = &timeline.trace.manifest.queues;
    (timeline.queues.iter().zip(times))
        .filter(|(queue, _)| queue.gpu as usize == index)
        .map(|(queue, times)| {
            let row = queue.row.map(|row| &listed[row as usize]);
            QueueBusy {
                queue_id: queue.id,
                name: row.and_then(|row| row.name.clone()),
                capabilities: row.map_or(Vec::new(), |row| row.capabilities.clone()),
                work_window: times.window,
                busy_ns: times.window.map(|_| times.whole.length_ns),
                analysed: times.window.zip(analysed).map(|(window, analysed)| {
                    BusyShare::new(window.intersection(analysed), times.inside.length_ns)
                }),
            }
        })
        .collect()
}
