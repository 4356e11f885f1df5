//! Adds up the calls in which other threads of a process were while the submitting thread was outside of calls. Time
//! is collected stretch by stretch for all gaps of a device, and compared with the calls once at the end.

use super::host_totals::HostTotals;
use super::{Cause, GapPart};
use gapscope_timeline::host::{CallClass, HostThread, HostThreads};
use gapscope_timeline::intervals::{Interval, union};
use gapscope_timeline::nearby;
use gapscope_trace::ids::ProcessId;
use std::collections::HashMap;

/// The time that submitting threads of one device spent outside of calls, by process, in order of time.
#[derive(Debug, Default)]
pub(super) struct OutsideTime(HashMap<ProcessId, Vec<Stretch>>);

/// The time for which one device idled because the host submitted late, by process, in order of time.
#[derive(Debug, Default)]
pub(super) struct LateTime(HashMap<ProcessId, Vec<Stretch>>);

impl LateTime {
    /// Adds the parts of a gap whose cause is a late host, as far as they are `inside`.
    pub(super) fn add(
        &mut self,
        host: &HostThreads,
        parts: &[GapPart],
        inside: Interval,
        process: ProcessId,
    ) {
        if !host.has_several_threads(process) {
            return;
        }
        for part in parts.iter().filter(|part| part.cause == Cause::HostLate) {
            let late = part.interval().intersection(inside);
            push(self.0.entry(process).or_default(), late);
        }
    }

    /// Adds time after all of this.
    pub(super) fn append(&mut self, later: LateTime) {
        append(&mut self.0, later.0);
    }

    /// Returns how much of this time at least one other thread compiled or loaded code, or built graphs. The
    /// submitting thread was outside of calls in all of it.
    pub(super) fn while_compiling_ns(&self, host: &HostThreads) -> i64 {
        let of_processes = self.0.iter().map(|(process, stretches)| {
            let segments = host.segments_of_process(*process);
            let mut compiling: Vec<Interval> = segments
                .filter(|segment| segment.class() == CallClass::Compile)
                .map(|segment| segment.interval)
                .collect();
            union(&mut compiling);
            let lengths = compiling.iter().map(|call| length_ns(stretches, *call));
            lengths.fold(0_i64, i64::saturating_add)
        });
        of_processes.fold(0, i64::saturating_add)
    }
}

/// A stretch of time, of which those of a process follow each other without overlap.
#[derive(Debug, Clone, Copy)]
struct Stretch {
    interval: Interval,
    /// The sum of the lengths of the stretches before this one.
    before_ns: i64,
}

impl OutsideTime {
    /// Adds the part of `late` that a thread spent outside of calls.
    pub(super) fn add(&mut self, host: &HostThreads, late: Interval, thread: HostThread) {
        if !host.has_several_threads(thread.process) {
            return;
        }
        let stretches = self.0.entry(thread.process).or_default();
        let mut from_ns = late.start_ns;
        for segment in host.segments(thread, late) {
            push(stretches, Interval::new(from_ns, segment.interval.start_ns));
            from_ns = segment.interval.end_ns;
        }
        push(stretches, Interval::new(from_ns, late.end_ns));
    }

    /// Adds time after all of this.
    pub(super) fn append(&mut self, later: OutsideTime) {
        append(&mut self.0, later.0);
    }

    /// Adds the calls of other threads that compile, allocate or wait while the submitting thread was outside of
    /// calls.
    pub(super) fn add_calls(&self, host: &HostThreads, totals: &mut HostTotals) {
        for (process, stretches) in &self.0 {
            for segment in host.segments_of_process(*process) {
                let class = segment.class();
                if matches!(
                    class,
                    CallClass::Compile | CallClass::Allocate | CallClass::Wait
                ) {
                    let ns = length_ns(stretches, segment.interval);
                    if ns > 0 {
                        totals.add_segment(&segment, ns);
                    }
                }
            }
        }
    }
}

/// Appends a stretch unless it is empty. Stretches come in order of time.
fn push(stretches: &mut Vec<Stretch>, interval: Interval) {
    if interval.is_empty() {
        return;
    }
    stretches.push(Stretch {
        before_ns: before_ns(stretches),
        interval,
    });
}

/// Appends the stretches of later time.
fn append(
    stretches: &mut HashMap<ProcessId, Vec<Stretch>>,
    later: HashMap<ProcessId, Vec<Stretch>>,
) {
    for (process, mut later) in later {
        let stretches = stretches.entry(process).or_default();
        let before_ns = before_ns(stretches);
        for stretch in &mut later {
            stretch.before_ns = stretch.before_ns.saturating_add(before_ns);
        }
        stretches.append(&mut later);
    }
}

/// Returns the sum of the lengths of stretches.
fn before_ns(stretches: &[Stretch]) -> i64 {
    stretches.last().map_or(0, |last| {
        last.before_ns.saturating_add(last.interval.length_ns())
    })
}

/// Returns how much of an interval the stretches cover.
fn length_ns(stretches: &[Stretch], interval: Interval) -> i64 {
    let until = |at_ns: i64| {
        let next = nearby::partition_point(stretches, |s| s.interval.start_ns < at_ns);
        next.checked_sub(1).map_or(0, |last| {
            let Stretch {
                interval,
                before_ns,
            } = stretches[last];
            before_ns.saturating_add(
                Interval::new(interval.start_ns, at_ns.min(interval.end_ns)).length_ns(),
            )
        })
    };
    until(interval.end_ns) - until(interval.start_ns)
}
