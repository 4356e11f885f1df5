//! Activity: busy and idle time of devices and queues in equal slices of time, for drawing.

use crate::gaps::Cause;
use crate::gaps::explain::{Explainer, Explanation};
use crate::intervals::Interval;
use crate::timeline::{Gpu, Timeline, Work};
use gapscope_trace::ids::QueueId;
use schemars::JsonSchema;
use serde::Serialize;

/// Activity of all devices.
#[derive(Debug, Clone, Default, PartialEq, Serialize, JsonSchema)]
pub struct Activity {
    /// What is sliced: from the first work of any device to the end of the last.
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

/// Cuts the work of a trace into `slices` slices of time.
pub fn activity(timeline: &Timeline, slices: usize) -> Activity {
    let Some(window) = timeline.work_window().filter(|w| !w.is_empty()) else {
        return Activity::default();
    };
    let grid = Grid {
        window,
        slices: slices.max(1),
    };
    let explainer = Explainer::new(timeline);
    let mut rows = Vec::new();
    for (device, gpu) in timeline.gpus.iter().enumerate() {
        if gpu.works.is_empty() {
            continue;
        }
        let device = device as u32;
        rows.push(ActivityRow {
            device,
            queue_id: None,
            slices: of_device(&grid, &explainer, gpu),
        });
        let mut used = vec![false; timeline.queues.len()];
        for work in &gpu.works {
            used[timeline.queue_of(work) as usize] = true;
        }
        let queues = || (0u32..).zip(&used).filter(|(_, used)| **used);
        if queues().count() < 2 {
            continue;
        }
        rows.extend(queues().map(|(queue, _)| ActivityRow {
            device,
            queue_id: Some(timeline.queues[queue as usize].id),
            slices: of_queue(&grid, timeline, gpu, queue),
        }));
    }
    Activity { window, rows }
}

fn of_device(grid: &Grid, explainer: &Explainer, gpu: &Gpu) -> Vec<Slice> {
    let mut slices = grid.empty();
    let mut idle = vec![[0_i64; CAUSES]; slices.len()];
    let mut explanation = Explanation::default();
    let mut last: Option<&Work> = None;
    for work in &gpu.works {
        let until_ns = last.map_or(i64::MIN, |last| last.interval.end_ns);
        if let Some(last) = last.filter(|_| work.interval.start_ns > until_ns) {
            let gap = Interval::new(until_ns, work.interval.start_ns);
            explainer.explain(last, work, gap, &mut explanation);
            for part in &explanation.parts {
                let cause = part.cause as usize;
                grid.add(part.interval(), |slice, ns| idle[slice][cause] += ns);
            }
        }
        grid.add_after(until_ns, work.interval, &mut slices);
        if work.interval.end_ns > until_ns {
            last = Some(work);
        }
    }
    for (slice, idle) in slices.iter_mut().zip(idle) {
        let most = Cause::ALL
            .into_iter()
            .max_by_key(|cause| idle[*cause as usize]);
        slice.idle_cause = most.filter(|cause| idle[*cause as usize] > 0);
    }
    slices
}

fn of_queue(grid: &Grid, timeline: &Timeline, gpu: &Gpu, queue: u32) -> Vec<Slice> {
    let mut slices = grid.empty();
    let mut until_ns = i64::MIN;
    for work in gpu
        .works
        .iter()
        .filter(|work| timeline.queue_of(work) == queue)
    {
        grid.add_after(until_ns, work.interval, &mut slices);
        until_ns = until_ns.max(work.interval.end_ns);
    }
    slices
}

const CAUSES: usize = Cause::ALL.len();

/// Equal slices of a window.
struct Grid {
    window: Interval,
    slices: usize,
}

impl Grid {
    fn empty(&self) -> Vec<Slice> {
        let slices = (0..self.slices).map(|slice| Slice {
            length_ns: self.start_ns(slice + 1) - self.start_ns(slice),
            ..Slice::default()
        });
        slices.collect()
    }

    fn start_ns(&self, slice: usize) -> i64 {
        let offset = i128::from(self.window.length_ns()) * slice as i128 / self.slices as i128;
        self.window.start_ns + offset as i64
    }

    /// The slice in which a moment lies.
    fn slice(&self, at_ns: i64) -> usize {
        let offset = i128::from(at_ns - self.window.start_ns) * self.slices as i128;
        let guess = (offset / i128::from(self.window.length_ns())) as usize;
        // The quotient of rounded bounds may be one too small.
        let next = guess + 1;
        let slice = if next < self.slices && self.start_ns(next) <= at_ns {
            next
        } else {
            guess
        };
        slice.min(self.slices - 1)
    }

    /// Calls `add` with each slice that `interval` meets and the nanoseconds in it.
    fn add(&self, interval: Interval, mut add: impl FnMut(usize, i64)) {
        let inside = interval.intersection(self.window);
        if inside.is_empty() {
            return;
        }
        let mut from_ns = inside.start_ns;
        let mut slice = self.slice(from_ns);
        while from_ns < inside.end_ns {
            let until_ns = self.start_ns(slice + 1).min(inside.end_ns);
            add(slice, until_ns - from_ns);
            from_ns = until_ns;
            slice += 1;
        }
    }

    /// Adds the part of a piece of work that comes after `until_ns`, to which all was added already.
    fn add_after(&self, until_ns: i64, work: Interval, slices: &mut [Slice]) {
        if work.end_ns > until_ns {
            let fresh = Interval::new(work.start_ns.max(until_ns), work.end_ns);
            self.add(fresh, |slice, ns| slices[slice].busy_ns += ns);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn slices_cut_the_window_to_the_nanosecond() {
        for length in [1, 2, 7, 10, 1_000_003, i64::MAX / 2] {
            let grid = Grid {
                window: Interval::new(5, 5 + length),
                slices: 7,
            };
            let slices = grid.empty();
            assert_eq!(slices.iter().map(|s| s.length_ns).sum::<i64>(), length);
            let mut all = vec![0; 7];
            grid.add(Interval::new(0, i64::MAX), |slice, ns| all[slice] += ns);
            let lengths: Vec<i64> = slices.iter().map(|s| s.length_ns).collect();
            assert_eq!(all, lengths);
        }
    }

    #[test]
    fn a_moment_lies_in_the_slice_that_holds_it() {
        let grid = Grid {
            window: Interval::new(0, 10),
            slices: 3,
        };
        for at in 0..10 {
            let slice = grid.slice(at);
            assert!(
                grid.start_ns(slice) <= at && at < grid.start_ns(slice + 1),
                "{at}"
            );
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
        let activity = activity(&Timeline::of(&trace), 10);
        let row = |queue_id| {
            activity
                .rows
                .iter()
                .find(|row| row.queue_id == queue_id)
                .unwrap()
        };
        let busy_us = |queue_id| {
            row(queue_id)
                .slices
                .iter()
                .map(|s| s.busy_ns / 1000)
                .collect::<Vec<_>>()
        };
        assert_eq!(busy_us(None), [100, 100, 0, 0, 0, 0, 0, 0, 100, 100]);
        assert_eq!(
            busy_us(Some(QueueId(1))),
            [100, 100, 0, 0, 0, 0, 0, 0, 0, 0]
        );
        assert_eq!(
            busy_us(Some(QueueId(2))),
            [0, 0, 0, 0, 0, 0, 0, 0, 100, 100]
        );
        let causes: Vec<_> = row(None).slices.iter().map(|s| s.idle_cause).collect();
        assert_eq!(causes[1], None);
        assert_eq!(causes[4], Some(Cause::HostLate));
        assert_eq!(causes[7], Some(Cause::LaunchLatency));
    }

    #[test]
    fn without_timed_work_there_is_nothing_to_draw() {
        let trace = gapscope_trace::Trace::default();
        assert_eq!(activity(&Timeline::of(&trace), 10), Activity::default());
    }
}
