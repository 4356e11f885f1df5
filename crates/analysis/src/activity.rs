//! Splits the busy and idle time of a trace's devices and queues over equal slices of the recording, from which
//! reports and the page draw a timeline.

use crate::gaps::explain::Explainer;
use crate::gaps::visit::visit_gaps;
use crate::gaps::{Cause, GapFinder};
use gapscope_timeline::intervals::Interval;
use gapscope_timeline::{Gpu, Timeline};
use gapscope_trace::ids::QueueId;
use schemars::JsonSchema;
use serde::Serialize;

/// Activity of all devices.
#[derive(Debug, Clone, Default, PartialEq, Serialize, JsonSchema)]
pub struct Activity {
    /// The sliced time: from the first work of any device to the end of the last.
    pub window: Interval,
    /// A row for each device with timed work, followed by a row for each of its queues when it has several.
    pub rows: Vec<ActivityRow>,
}

/// Activity of a device or of a queue.
#[derive(Debug, Clone, Default, PartialEq, Serialize, JsonSchema)]
pub struct ActivityRow {
    /// Index of the device in the findings.
    pub device: u32,
    /// Id of the queue; absent in the row of the device.
    pub queue_id: Option<QueueId>,
    /// Slices in order of time: they cut the window into equal parts, to the nanosecond.
    pub slices: Vec<Slice>,
}

/// A slice of time.
#[derive(Debug, Clone, Copy, Default, PartialEq, Serialize, JsonSchema)]
pub struct Slice {
    /// Its length.
    pub length_ns: i64,
    /// Part of it in which something ran.
    pub busy_ns: i64,
    /// The cause of most of its idle time between two pieces of work; absent without such, and for queues.
    pub idle_cause: Option<Cause>,
}

/// Returns busy time and idle time by cause of each device, and busy time of its queues, in `slices` equal slices of
/// time.
pub fn activity(timeline: &Timeline, slices: usize) -> Activity {
    explained_activity(&GapFinder::new(timeline), slices)
}

/// Returns the same from a finder of gaps that exists already.
pub fn explained_activity(finder: &GapFinder, slices: usize) -> Activity {
    let explainer = &finder.explainer;
    let timeline = explainer.timeline;
    let Some(window) = timeline.work_window().filter(|w| !w.is_empty()) else {
        return Activity::default();
    };
    let grid = SliceGrid::new(window, slices.max(1));
    let mut rows = Vec::new();
    for (device, gpu) in timeline.gpus.iter().enumerate() {
        if gpu.works.is_empty() {
            continue;
        }
        let device = device as u32;
        rows.push(ActivityRow {
            device,
            queue_id: None,
            slices: device_slices(&grid, explainer, device),
        });
        let queues = queue_slices(&grid, timeline, device, gpu);
        if queues.len() > 1 {
            rows.extend(queues.into_iter().map(|(queue, slices)| ActivityRow {
                device,
                queue_id: Some(timeline.queues[queue].id),
                slices,
            }));
        }
    }
    Activity { window, rows }
}

/// Returns the slices of a device, each with its busy time and the cause of most of its idle time.
fn device_slices(grid: &SliceGrid, explainer: &Explainer, device: u32) -> Vec<Slice> {
    let mut row = BusyRow::new(grid);
    for work in &explainer.timeline.gpus[device as usize].works {
        row.add(grid, work.interval);
    }
    let mut idle = vec![[0_i64; CAUSES]; row.slices.len()];
    let mut place = 0;
    visit_gaps(explainer, device as usize, |_, _, parts| {
        for part in parts {
            let cause = part.cause as usize;
            grid.add(&mut place, part.interval(), |slice, ns| {
                idle[slice][cause] += ns;
            });
        }
    });
    for (slice, idle) in row.slices.iter_mut().zip(idle) {
        let most = Cause::ALL
            .into_iter()
            .max_by_key(|cause| idle[*cause as usize]);
        slice.idle_cause = most.filter(|cause| idle[*cause as usize] > 0);
    }
    row.slices
}

/// Returns the busy slices of those queues of a device that have work, with the queues' indices. The list is empty
/// where the device has only one queue.
fn queue_slices(
    grid: &SliceGrid,
    timeline: &Timeline,
    device: u32,
    gpu: &Gpu,
) -> Vec<(usize, Vec<Slice>)> {
    let on_device = timeline.queues.iter().filter(|queue| queue.gpu == device);
    if on_device.count() < 2 {
        return Vec::new();
    }
    let mut rows: Vec<Option<BusyRow>> = Vec::new();
    rows.resize_with(timeline.queues.len(), || None);
    for work in &gpu.works {
        let row = &mut rows[timeline.queue_of(&work) as usize];
        row.get_or_insert_with(|| BusyRow::new(grid))
            .add(grid, work.interval);
    }
    let used = rows.into_iter().enumerate();
    used.filter_map(|(queue, row)| Some((queue, row?.slices)))
        .collect()
}

const CAUSES: usize = Cause::ALL.len();

/// The busy time of a device or queue in slices, to which work is added in order of start.
struct BusyRow {
    slices: Vec<Slice>,
    /// The index of the slice in which the last piece of work began.
    place: usize,
    /// The latest end of the work that was added so far.
    until_ns: i64,
}

impl BusyRow {
    fn new(grid: &SliceGrid) -> BusyRow {
        BusyRow {
            slices: grid.empty(),
            place: 0,
            until_ns: i64::MIN,
        }
    }

    /// Adds the part of a piece of work that lies after the end of all earlier pieces, so that overlapping work
    /// counts once.
    #[inline]
    fn add(&mut self, grid: &SliceGrid, work: Interval) {
        if work.end_ns > self.until_ns {
            let fresh = Interval::new(work.start_ns.max(self.until_ns), work.end_ns);
            let slices = &mut self.slices;
            grid.add(&mut self.place, fresh, |slice, ns| {
                slices[slice].busy_ns += ns;
            });
            self.until_ns = work.end_ns;
        }
    }
}

/// A window that is cut into equal slices.
struct SliceGrid {
    window: Interval,
    /// The start of each slice, and the end of the last.
    bounds_ns: Vec<i64>,
}

impl SliceGrid {
    fn new(window: Interval, slices: usize) -> SliceGrid {
        let bound = |slice: usize| {
            let offset = i128::from(window.length_ns()) * slice as i128 / slices as i128;
            window.start_ns + offset as i64
        };
        SliceGrid {
            window,
            bounds_ns: (0..=slices).map(bound).collect(),
        }
    }

    /// Returns the slices with their lengths, and without busy time and cause.
    fn empty(&self) -> Vec<Slice> {
        let slices = self.bounds_ns.windows(2).map(|bounds| Slice {
            length_ns: bounds[1] - bounds[0],
            ..Slice::default()
        });
        slices.collect()
    }

    /// Calls `add` with the index of each slice that `interval` overlaps, and the nanoseconds of the overlap.
    /// Intervals must come in order of start. `place` holds the slice in which the last interval began, and starts as
    /// 0.
    #[inline]
    fn add(&self, place: &mut usize, interval: Interval, mut add: impl FnMut(usize, i64)) {
        let inside = interval.intersection(self.window);
        if inside.is_empty() {
            return;
        }
        let mut from_ns = inside.start_ns;
        while self.bounds_ns[*place + 1] <= from_ns {
            *place += 1;
        }
        let mut slice = *place;
        while from_ns < inside.end_ns {
            let until_ns = self.bounds_ns[slice + 1].min(inside.end_ns);
            add(slice, until_ns - from_ns);
            from_ns = until_ns;
            slice += 1;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn slices_cut_the_window_to_the_nanosecond() {
        for length in [1, 2, 7, 10, 1_000_003, i64::MAX / 2] {
            let grid = SliceGrid::new(Interval::new(5, 5 + length), 7);
            let slices = grid.empty();
            assert_eq!(slices.iter().map(|s| s.length_ns).sum::<i64>(), length);
            let mut all = vec![0; 7];
            let everything = Interval::new(0, i64::MAX);
            grid.add(&mut 0, everything, |slice, ns| all[slice] += ns);
            let lengths: Vec<i64> = slices.iter().map(|s| s.length_ns).collect();
            assert_eq!(all, lengths);
        }
    }

    #[test]
    fn a_moment_lies_in_the_slice_that_holds_it() {
        let grid = SliceGrid::new(Interval::new(0, 10), 3);
        let mut place = 0;
        for at in 0..10 {
            let mut found = Vec::new();
            let moment = Interval::new(at, at + 1);
            grid.add(&mut place, moment, |slice, ns| found.push((slice, ns)));
            assert_eq!(found, [(place, 1)]);
            assert!(grid.bounds_ns[place] <= at && at < grid.bounds_ns[place + 1]);
        }
    }

    #[test]
    fn overlapping_work_counts_once_and_idle_time_has_its_cause() {
        let trace = gapscope_trace::Trace::from_text(
            "device id=1
             queue id=1 device=1
             queue id=2 device=1
             submission id=1 process=1 queue=1 thread=1 start_ns=0 duration_ns=10
             submission id=2 process=1 queue=2 thread=1 start_ns=800us duration_ns=10us
             command_buffer id=1 process=1 queue=1 submission=1 dispatches=2
             command_buffer id=2 process=1 queue=2 submission=2 dispatches=1
             dispatch command_buffer=1 queue=1 kernel=1 start_ns=100us duration_ns=100us
             dispatch command_buffer=1 queue=1 kernel=1 start_ns=150us duration_ns=150us
             dispatch command_buffer=2 queue=2 kernel=1 start_ns=900us duration_ns=200us",
        )
        .unwrap();
        let activity = activity(&Timeline::new(&trace), 10);
        let row = |queue_id| {
            let mut rows = activity.rows.iter();
            rows.find(|row| row.queue_id == queue_id).unwrap()
        };
        let busy_us = |queue: Option<u32>| -> Vec<i64> {
            let slices = row(queue.map(QueueId)).slices.iter();
            slices.map(|slice| slice.busy_ns / 1000).collect()
        };
        assert_eq!(busy_us(None), [100, 100, 0, 0, 0, 0, 0, 0, 100, 100]);
        assert_eq!(busy_us(Some(1)), [100, 100, 0, 0, 0, 0, 0, 0, 0, 0]);
        assert_eq!(busy_us(Some(2)), [0, 0, 0, 0, 0, 0, 0, 0, 100, 100]);
        let causes: Vec<_> = row(None).slices.iter().map(|s| s.idle_cause).collect();
        assert_eq!(causes[1], None);
        assert_eq!(causes[4], Some(Cause::HostLate));
        assert_eq!(causes[7], Some(Cause::LaunchLatency));
    }

    #[test]
    fn without_timed_work_there_is_nothing_to_draw() {
        let trace = gapscope_trace::Trace::default();
        assert_eq!(activity(&Timeline::new(&trace), 10), Activity::default());
    }
}
