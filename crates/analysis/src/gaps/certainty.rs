//! Computes how much of a gap's causes is certain, although device and host times agree only within the clock's error.
//!
//! The start and end of a gap are known by device times, and its causes mostly by host times. The gap's true place on
//! the host's clock may be earlier or later by the error, for the whole gap alike: times so near to each other share
//! their error. A gap that is moved loses time of the causes at one edge and wins time at the other; the device's
//! causes, which begin after the host's last time, win or lose what the host's causes do. Only time within the error of
//! these three edges (the gap's start, its end, and the host's last time) can change. The result is, for each cause, the
//! most time that it loses at any move, and for each side of the verdict the most that it loses and the most that it wins.
//!
//! Work does not start before its submission call does, so a gap is not moved farther than that into the past.
//!
//! Input is a gap with its parts from `explain.rs` and the clock's error; output is a [`Shift`], which `totals.rs`
//! adds up.

use super::explain::{Explainer, call_and_start, push};
use super::{Cause, GapPart, Side};
use gapscope_timeline::host::HostThread;
use gapscope_timeline::intervals::Interval;

const CAUSES: usize = Cause::ALL.len();
const SIDES: usize = Side::ALL.len();

/// The amounts by which the causes of one gap could be different.
#[derive(Debug, Clone, Default)]
pub(super) struct Shift {
    /// The most time that each cause could lose.
    pub(super) lost_ns: [i64; CAUSES],
    /// The most time that each side could lose.
    pub(super) side_lost_ns: [i64; SIDES],
    /// The most time that each side could win.
    pub(super) side_won_ns: [i64; SIDES],
    /// The most time that could have another cause.
    pub(super) moved_ns: i64,
}

/// A cause and the length in nanoseconds of a stretch of time that has it.
type Stretch = (Cause, i64);

impl Explainer<'_> {
    /// Returns the amounts by which the causes could be different in a gap that ends with the submission of `row` and
    /// has these parts.
    pub(super) fn shift(&self, row: u32, gap: Interval, parts: &[GapPart], error_ns: i64) -> Shift {
        let mut shift = Shift::default();
        let table = &self.timeline.trace.tables.submissions;
        let at = row as usize;
        let call = Interval::new(table.start_ns[at], table.end_ns(at).max(table.start_ns[at]));
        let by_host =
            |part: &&GapPart| matches!(part.cause, Cause::HostSignal | Cause::HostFunction);
        let last = parts.iter().rev().find(by_host);
        let host_end_ns = last.map_or(call.end_ns, |part| part.interval().end_ns.max(call.end_ns));
        if error_ns <= 0 || gap.start_ns.saturating_sub(error_ns) >= host_end_ns {
            return shift;
        }
        let (_, start) = call_and_start(table.kind[at]);
        let first = Interval::new(gap.start_ns.saturating_sub(error_ns), gap.start_ns);
        let last = Interval::new(gap.end_ns, gap.end_ns.saturating_add(error_ns));
        let until_host_end =
            |interval: Interval| Interval::new(interval.start_ns, interval.end_ns.min(host_end_ns));
        let beside = |interval, edge| {
            self.causes_beside(row, call, gap, until_host_end(interval), edge, error_ns)
        };
        let before = beside(first, parts.first());
        let after = beside(last, parts.last());
        let of_host: Vec<GapPart> = clipped(parts, Interval::new(i64::MIN, host_end_ns)).collect();
        let of_device = clipped(parts, Interval::new(host_end_ns, i64::MAX));
        let of_device: Vec<GapPart> = of_device.collect();

        let later = of_host.iter().chain(&after).map(stretch);
        let device = of_device.first().map_or(start, |part| part.cause);
        let won = after.iter().map(stretch).chain([(device, i64::MAX)]);
        shift.sweep(later, won, error_ns);

        let earlier_ns = error_ns.min(gap.end_ns.saturating_sub(call.start_ns).max(0));
        let unmoved_ns = gap.start_ns.saturating_sub(host_end_ns).max(0);
        let lost = of_device
            .iter()
            .chain(of_host.iter().rev())
            .chain(before.iter().rev());
        shift.sweep(
            lost.map(stretch),
            before.iter().rev().map(stretch),
            earlier_ns - unmoved_ns,
        );
        shift
    }

    /// Returns what the host did in an interval beside a gap, as parts with causes: before, in and after `call`, the
    /// submission call of `row`. `edge` is the gap's part next to the interval; time outside of calls that touches
    /// the gap continues its cause.
    fn causes_beside(
        &self,
        row: u32,
        call: Interval,
        gap: Interval,
        interval: Interval,
        edge: Option<&GapPart>,
        error_ns: i64,
    ) -> Vec<GapPart> {
        let table = &self.timeline.trace.tables.submissions;
        let at = row as usize;
        let thread = HostThread::from_row(table.process[at], table.thread.at(at));
        let mut parts = Vec::new();
        let late = Interval::new(interval.start_ns, interval.end_ns.min(call.start_ns));
        let next = edge.map_or(Cause::Unknown, |part| part.cause);
        let edge = match edge.map(|part| part.cause) {
            Some(
                cause @ (Cause::AfterHostWait
                | Cause::HostCompile
                | Cause::HostAllocate
                | Cause::ProcessStart),
            ) => cause,
            _ => Cause::HostLate,
        };
        // The thread is in no call in this time.
        let outside = |parts: &mut Vec<GapPart>, from_ns, to_ns| {
            let touches = to_ns == gap.start_ns || from_ns == gap.end_ns;
            let cause = if touches { edge } else { Cause::HostLate };
            push(parts, Interval::new(from_ns, to_ns), cause);
        };
        let mut from_ns = late.start_ns;
        let segments = thread.filter(|_| !late.is_empty());
        if let Some(thread) = segments {
            for segment in self.host_threads.segments(thread, late) {
                let inside = segment.interval.intersection(late);
                outside(&mut parts, from_ns, inside.start_ns);
                let cause = (self.call_causes).cause(thread, &segment, gap.start_ns, error_ns);
                push(&mut parts, inside, cause);
                from_ns = inside.end_ns;
            }
        }
        outside(&mut parts, from_ns, late.end_ns);
        let (in_call, _) = call_and_start(table.kind[at]);
        let inside = call.intersection(interval);
        match thread {
            Some(thread) if !inside.is_empty() => {
                self.explain_call(inside, thread, in_call, &mut parts);
            }
            _ => push(&mut parts, inside, in_call),
        }
        // After the call the host may decide too, by a signal or by a function that a queue runs.
        let behind = Interval::new(interval.start_ns.max(call.end_ns), interval.end_ns);
        push(&mut parts, behind, next);
        parts
    }
}

impl Shift {
    /// Moves the gap by up to `most_ns`, over stretches that it loses and stretches that it wins, and notes the
    /// extremes on the way.
    fn sweep(
        &mut self,
        mut lost: impl Iterator<Item = Stretch>,
        mut won: impl Iterator<Item = Stretch>,
        most_ns: i64,
    ) {
        let mut net = [0_i64; CAUSES];
        let mut sides = [0_i64; SIDES];
        let mut moved_ns = 0;
        let mut left_ns = most_ns;
        let (mut losing, mut winning) = (lost.next(), won.next());
        while left_ns > 0
            && let (Some((loser, lost_ns)), Some((winner, won_ns))) = (&mut losing, &mut winning)
        {
            let step_ns = left_ns.min(*lost_ns).min(*won_ns);
            let (from, to) = (*loser as usize, *winner as usize);
            if from != to {
                let missing = |net: &[i64; CAUSES]| (-net[from]).max(0) + (-net[to]).max(0);
                moved_ns -= missing(&net);
                net[from] -= step_ns;
                net[to] += step_ns;
                moved_ns += missing(&net);
                self.lost_ns[from] = self.lost_ns[from].max(-net[from]);
                let (from, to) = (loser.side() as usize, winner.side() as usize);
                sides[from] -= step_ns;
                sides[to] += step_ns;
                self.side_lost_ns[from] = self.side_lost_ns[from].max(-sides[from]);
                self.side_won_ns[to] = self.side_won_ns[to].max(sides[to]);
                self.moved_ns = self.moved_ns.max(moved_ns);
            }
            left_ns -= step_ns;
            *lost_ns -= step_ns;
            *won_ns -= step_ns;
            if *lost_ns == 0 {
                losing = lost.next();
            }
            if *won_ns == 0 {
                winning = won.next();
            }
        }
    }
}

fn stretch(part: &GapPart) -> Stretch {
    (part.cause, part.duration_ns)
}

/// Returns the parts that lie in `window`, each cut to it.
fn clipped(parts: &[GapPart], window: Interval) -> impl Iterator<Item = GapPart> {
    parts.iter().filter_map(move |part| {
        let inside = part.interval().intersection(window);
        (!inside.is_empty()).then_some(GapPart {
            cause: part.cause,
            start_ns: inside.start_ns,
            duration_ns: inside.length_ns(),
        })
    })
}
