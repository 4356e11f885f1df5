//! Calls a function with each gap of a device, in order of time, and numbers the gaps of a trace. Callers get for
//! each gap its interval, the work around it and its parts with causes.

use super::explain::Explainer;
use super::{Cause, GapPart};
use gapscope_timeline::intervals::Interval;
use gapscope_timeline::{Timeline, Work};

/// Returns the idle time of all devices by cause: [`IdleTime::causes`](super::IdleTime::causes) over the whole work, without
/// the queues, which takes a fraction of the time.
pub fn idle_by_cause(timeline: &Timeline) -> Vec<(Cause, i64)> {
    let explainer = Explainer::new(timeline);
    let mut spent = [0_i64; Cause::ALL.len()];
    for device in 0..timeline.gpus.len() {
        visit_gaps(&explainer, device, |_, _, parts| {
            for part in parts {
                let ns = &mut spent[part.cause as usize];
                *ns = ns.saturating_add(part.duration_ns);
            }
        });
    }
    let causes = Cause::ALL.into_iter().zip(spent);
    causes.filter(|(_, ns)| *ns > 0).collect()
}

/// Visits the gaps of a device as [`GapFinder::each_between`](super::GapFinder::each_between) does.
pub fn visit_gaps(
    explainer: &Explainer,
    device: usize,
    visit: impl FnMut(Interval, [&Work; 2], &[GapPart]),
) {
    visit_gaps_within(explainer, device, Interval::new(i64::MIN, i64::MAX), visit);
}

/// Visits the gaps of a device that lie in a window at least in part, as
/// [`GapFinder::each_between`](super::GapFinder::each_between) does.
pub fn visit_gaps_within(
    explainer: &Explainer,
    device: usize,
    window: Interval,
    mut visit: impl FnMut(Interval, [&Work; 2], &[GapPart]),
) {
    let works = &explainer.timeline.gpus[device].works;
    let mut parts = explainer.explained(device).parts();
    for gap in works.gaps() {
        if gap.interval.start_ns >= window.end_ns {
            break;
        }
        let parts = parts.next(gap.interval);
        if gap.interval.end_ns > window.start_ns {
            let (before, after) = (works.at(gap.before as usize), works.at(gap.after as usize));
            visit(gap.interval, [&before, &after], parts);
        }
    }
}

/// Returns the number of the gap that each of the `moments` lies in, or `None` where the device ran something then. A
/// moment is a pair of a device (an index of [`Timeline::gpus`]) and a time. Gaps are counted from 0 in the order of time,
/// device after device.
pub fn gap_numbers(timeline: &Timeline, moments: &[(usize, i64)]) -> Vec<Option<u64>> {
    let mut numbers = vec![None; moments.len()];
    let mut count = 0;
    for (device, gpu) in timeline.gpus.iter().enumerate() {
        let mut mine: Vec<usize> = (0..moments.len())
            .filter(|at| moments[*at].0 == device)
            .collect();
        mine.sort_unstable_by_key(|at| moments[*at].1);
        let mut mine = mine.into_iter().peekable();
        for gap in gpu.works.gaps() {
            while let Some(at) = mine.next_if(|at| moments[*at].1 < gap.interval.end_ns) {
                numbers[at] = gap.interval.contains(moments[at].1).then_some(count);
            }
            count += 1;
        }
    }
    numbers
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::gaps::{GapFinder, idle_time};
    use gapscope_trace::Trace;

    #[test]
    fn they_sum_to_the_idle_time_of_each_cause() {
        let trace = Trace::from_text(
            "device id=1\nqueue id=1 device=1
            submission id=1 process=1 queue=1 thread=1 start_ns=0 duration_ns=10
            submission id=2 process=1 queue=1 thread=1 start_ns=300 duration_ns=20
            command_buffer id=1 process=1 queue=1 submission=1 dispatches=2
            command_buffer id=2 process=1 queue=1 submission=2 dispatches=1
            dispatch command_buffer=1 queue=1 kernel=1 start_ns=100 duration_ns=100
            dispatch command_buffer=1 queue=1 kernel=1 start_ns=120 duration_ns=10
            dispatch command_buffer=1 queue=1 kernel=1 start_ns=210 duration_ns=10
            dispatch command_buffer=2 queue=1 kernel=1 start_ns=400 duration_ns=10",
        )
        .unwrap();
        let timeline = Timeline::new(&trace);
        let (mut gaps, mut parts_ns) = (Vec::new(), 0);
        GapFinder::new(&timeline).each(0, |gap, parts| {
            gaps.push((gap.start_ns, gap.end_ns));
            parts_ns += parts.iter().map(|part| part.duration_ns).sum::<i64>();
        });
        assert_eq!(gaps, [(200, 210), (220, 400)]);
        let idle = idle_time(&timeline, timeline.work_window().unwrap(), 0, 10);
        let finder = GapFinder::new(&timeline);
        for gap in &idle.longest {
            assert_eq!(finder.at(0, gap.start_ns).as_ref(), Some(gap));
        }
        assert_eq!(finder.at(0, 205), None);
        let moments = [(0, 399), (0, 200), (0, 150), (0, 220), (0, 500), (1, 200)];
        assert_eq!(
            gap_numbers(&timeline, &moments),
            [Some(1), Some(0), None, Some(1), None, None]
        );
        assert_eq!((idle.gap_count, idle.total_ns), (2, parts_ns));
        let mut by_cause = idle_by_cause(&timeline);
        by_cause.sort_by_key(|(_, ns)| std::cmp::Reverse(*ns));
        let causes = idle
            .causes
            .iter()
            .map(|cause| (cause.cause, cause.total_ns));
        assert_eq!(by_cause, causes.collect::<Vec<_>>());
    }
}
