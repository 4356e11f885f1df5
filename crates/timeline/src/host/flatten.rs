//! Turns the calls of one thread into segments that do not overlap. The input is one [`Segment`] for each whole call.

use super::segment::Segment;
use crate::intervals::Interval;
use std::cmp::Reverse;

/// Turns calls in any order into segments in order of time that do not overlap: where one call is inside another, the
/// inner one counts. Empty calls that overlap no other are left out. Calls that do not overlap are not copied, since
/// there may be ten million.
pub(super) fn flatten(mut calls: Vec<Segment>) -> Vec<Segment> {
    let order = |s: &Segment| {
        let Interval { start_ns, end_ns } = s.interval;
        (start_ns, Reverse(end_ns), s.call, s.count, s.function)
    };
    if !calls.is_sorted_by_key(order) {
        calls.sort_unstable_by_key(order);
    }
    let mut nested: Vec<Segment> = Vec::new();
    let (mut kept, mut from) = (0, 0);
    while from < calls.len() {
        let mut end_ns = calls[from].interval.end_ns;
        let mut to = from + 1;
        while let Some(next) = calls.get(to).filter(|s| s.interval.start_ns < end_ns) {
            end_ns = end_ns.max(next.interval.end_ns);
            to += 1;
        }
        if to > from + 1 {
            flatten_nested(&calls[from..to], &mut nested);
        } else if !calls[from].interval.is_empty() {
            calls[kept] = calls[from];
            kept += 1;
        }
        from = to;
    }
    calls.truncate(kept);
    if !nested.is_empty() {
        calls.append(&mut nested);
        calls.sort_unstable_by_key(|s| s.interval.start_ns);
    }
    calls
}

/// Appends the segments of calls that overlap each other and come in order of their start: each stretch of time goes
/// to the call that started last and goes on.
fn flatten_nested(calls: &[Segment], segments: &mut Vec<Segment>) {
    let mut open: Vec<&Segment> = Vec::new();
    let mut now_ns = i64::MIN;
    // Appends the part of a call between two times; the part that reaches the call's end is the last.
    let mut emit = |call: &Segment, from_ns: i64, to_ns: i64| {
        let interval = call.interval.intersection(Interval::new(from_ns, to_ns));
        if !interval.is_empty() {
            let is_last = interval.end_ns == call.interval.end_ns;
            segments.push(Segment {
                interval,
                is_last,
                ..*call
            });
        }
    };
    for call in calls {
        while let Some(top) = open.last() {
            if top.interval.end_ns > call.interval.start_ns {
                break;
            }
            emit(top, now_ns, top.interval.end_ns);
            now_ns = now_ns.max(top.interval.end_ns);
            open.pop();
        }
        if let Some(top) = open.last() {
            emit(top, now_ns, call.interval.start_ns);
        }
        now_ns = now_ns.max(call.interval.start_ns);
        open.push(call);
    }
    while let Some(top) = open.pop() {
        emit(top, now_ns, top.interval.end_ns);
        now_ns = now_ns.max(top.interval.end_ns);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::host::segment::WaitOutcome;
    use gapscope_trace::lookup::NONE;
    use gapscope_trace::tables::HostCallKind;

    fn call(start: i64, end: i64, call: HostCallKind) -> Segment {
        Segment::new(call, NONE, 1, WaitOutcome::Done, Interval::new(start, end))
    }

    #[test]
    fn the_inner_of_two_calls_counts() {
        use HostCallKind::*;
        let calls = vec![
            call(50, 60, MapMemory),
            call(0, 100, PollFence),
            call(90, 120, Submit),
            call(10, 20, AllocateMemory),
        ];
        let got: Vec<_> = flatten(calls)
            .iter()
            .map(|s| (s.interval.start_ns, s.interval.end_ns, s.call))
            .collect();
        assert_eq!(
            got,
            [
                (0, 10, PollFence),
                (10, 20, AllocateMemory),
                (20, 50, PollFence),
                (50, 60, MapMemory),
                (60, 90, PollFence),
                (90, 120, Submit),
            ]
        );
    }
}
