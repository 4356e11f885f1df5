//! Assigns causes to the idle time before and inside the call that submits the next work, from the calls of the
//! submitting thread and of other threads of its process.
//!
//! Where that thread is outside of calls, another thread of its process may have held it up. This is assumed if a
//! call of the other thread returned in that time: a call that compiles, loads or allocates, or a wait for the GPU
//! that was in progress as the gap began; a short round trip ([`ROUND_TRIP_NS`]) after a wait counts too. It is not
//! assumed for the time before the thread's last call, since a thread that makes calls is not held up. A call that
//! returns only after the submission, as that of a thread that always waits for the GPU, explains nothing.
//!
//! The time outside of calls before a load of code is spent on building that code, in a program that loads code again and
//! again (`building.rs`).
//!
//! What this cannot know: whether the thread waited for that call at all, and for which device another thread waited.

use super::explain::{Explainer, Explanation, push};
use super::{Cause, GapPart};
use gapscope_timeline::host::{CallClass, HostThread, Returned, WaitOutcome};
use gapscope_timeline::intervals::{Interval, union};
use gapscope_timeline::thresholds::ROUND_TRIP_NS;
use std::iter::Peekable;

impl Explainer<'_> {
    /// Splits `late`, the time before a submission call, by what `thread` did, and appends the pieces to `parts`.
    /// `explanation` gets whether a wait was in progress, and the parts that other threads explain. `error_ns` is the
    /// clock's error.
    pub(super) fn explain_host(
        &self,
        late: Interval,
        thread: HostThread,
        error_ns: i64,
        explanation: &mut Explanation,
        parts: &mut Vec<GapPart>,
    ) {
        let segments = self.host_threads.segments(thread, late);
        let near_ns = late.start_ns.saturating_add(error_ns);
        let gap_ns = late.start_ns;
        let mut waiting = segments.iter();
        explanation.hidden_wait = waiting
            .find(|segment| self.call_causes.waited(thread, segment, gap_ns, error_ns))
            .copied();
        let waited = explanation.hidden_wait.is_some()
            || segments
                .iter()
                .any(|s| s.waits && s.outcome != WaitOutcome::NotDone && s.since_ns <= near_ns);
        // Time that is neither in calls nor between the polls of one wait.
        let mut outside_ns = late.length_ns();
        let mut from_ns = late.start_ns;
        for segment in segments {
            let inside = segment.interval.intersection(late);
            if !segment.continues_wait {
                from_ns = inside.start_ns;
            }
            outside_ns -= Interval::new(from_ns, inside.end_ns).length_ns();
            from_ns = inside.end_ns;
        }
        let mut outside = Outside {
            returned: (self.host_threads)
                .returned_on_others(thread, late)
                .peekable(),
            near_ns,
            left_ns: outside_ns,
            round_trip: waited && outside_ns <= ROUND_TRIP_NS,
            others_round_trip: false,
            building: self.builders.building(thread, late, segments),
            parts,
            explanation,
        };
        outside.explanation.waited |= waited;
        outside.explanation.building = outside.building;
        let mut from_ns = late.start_ns;
        for segment in segments {
            let inside = segment.interval.intersection(late);
            outside.explain(
                Interval::new(from_ns, inside.start_ns),
                segment.continues_wait,
            );
            let cause = (self.call_causes).cause(thread, segment, gap_ns, error_ns);
            push(outside.parts, inside, cause);
            from_ns = inside.end_ns;
        }
        let rest = Interval::new(from_ns, late.end_ns);
        if !rest.is_empty() {
            let polled = self.host_threads.is_between_polls(thread, late.end_ns);
            outside.explain(rest, polled);
        }
    }

    /// Splits `inside`, the time inside a submission call, into parts, which are appended to `parts`. The cause is
    /// `call`, except where the same thread compiled code, or was held up by the recording, inside the call.
    pub(super) fn explain_call(
        &self,
        inside: Interval,
        thread: HostThread,
        call: Cause,
        parts: &mut Vec<GapPart>,
    ) {
        let mut from_ns = inside.start_ns;
        for segment in self.host_threads.segments(thread, inside) {
            let cause = Cause::in_segment(segment);
            if !matches!(cause, Cause::HostCompile | Cause::Recording) {
                continue;
            }
            let part = segment.interval.intersection(inside);
            push(parts, Interval::new(from_ns, part.start_ns), call);
            push(parts, part, cause);
            from_ns = part.end_ns;
        }
        push(parts, Interval::new(from_ns, inside.end_ns), call);
    }
}

/// The explanation of the time that a thread spends outside of calls, made stretch by stretch in order of time.
struct Outside<'a, I: Iterator<Item = &'a Returned>> {
    /// The calls of other threads that are not considered yet, in the order of their returns.
    returned: Peekable<I>,
    /// The latest start of calls that count as in progress when the gap began.
    near_ns: i64,
    /// The time outside of calls that is not explained yet.
    left_ns: i64,
    /// True where all of the time is the round trip of a wait of the thread itself.
    round_trip: bool,
    /// True where the remaining time is the round trip of another thread's wait.
    others_round_trip: bool,
    /// The time before a load of code in which the code was built.
    building: Option<Interval>,
    parts: &'a mut Vec<GapPart>,
    explanation: &'a mut Explanation,
}

impl<'a, I: Iterator<Item = &'a Returned>> Outside<'a, I> {
    /// Appends the parts of a stretch. `polled` is true where the stretch lies between two polls of one wait. Of
    /// several calls of other threads compiling goes first, then allocating, then waiting.
    fn explain(&mut self, stretch: Interval, polled: bool) {
        if stretch.is_empty() {
            return;
        }
        if polled {
            push(self.parts, stretch, Cause::AfterHostWait);
            return;
        }
        self.left_ns -= stretch.length_ns();
        if self.round_trip {
            push(self.parts, stretch, Cause::AfterHostWait);
            return;
        }
        let (mut compiled, mut allocated, mut waited) = (Vec::new(), Vec::new(), Vec::new());
        while let Some(call) =
            (self.returned).next_if(|call| call.interval.end_ns <= stretch.end_ns)
        {
            let inside = call.interval.intersection(stretch);
            match call.class {
                // The thread was in a call of its own.
                _ if call.interval.end_ns <= stretch.start_ns => {}
                CallClass::Compile => compiled.push(inside),
                CallClass::Allocate => allocated.push(inside),
                _ if call.interval.start_ns > self.near_ns => {}
                _ => {
                    self.explanation.waited = true;
                    waited.push(inside);
                    let after_ns = stretch.end_ns - inside.end_ns;
                    self.others_round_trip = self.left_ns + after_ns <= ROUND_TRIP_NS;
                    if self.others_round_trip {
                        waited.push(Interval::new(inside.end_ns, stretch.end_ns));
                    }
                }
            }
        }
        if self.others_round_trip && waited.is_empty() {
            waited.push(stretch);
        }
        for set in [&mut compiled, &mut allocated, &mut waited] {
            union(set);
        }
        let layers = [
            (Cause::HostCompile, compiled.as_slice()),
            (Cause::HostAllocate, &allocated),
            (Cause::AfterHostWait, &waited),
        ];
        let is_building =
            (self.building).is_some_and(|building| !building.intersection(stretch).is_empty());
        let otherwise = match is_building {
            true => Cause::HostCompile,
            false => Cause::HostLate,
        };
        paint(stretch, &layers, &mut |interval, cause| {
            push(self.parts, interval, cause.unwrap_or(otherwise));
            if let Some(cause) = cause {
                push(&mut self.explanation.by_other_threads, interval, cause);
            }
        });
    }
}

/// Calls a function with `interval` piece by piece, each with the cause of the first of the `layers` that covers the
/// piece, or `None`. A layer is a cause with a set of intervals.
fn paint(
    interval: Interval,
    layers: &[(Cause, &[Interval])],
    visit: &mut impl FnMut(Interval, Option<Cause>),
) {
    if interval.is_empty() {
        return;
    }
    let Some(((cause, set), below)) = layers.split_first() else {
        return visit(interval, None);
    };
    let mut from_ns = interval.start_ns;
    let first = set.partition_point(|i| i.end_ns <= interval.start_ns);
    for covered in &set[first..] {
        let covered = covered.intersection(interval);
        if covered.is_empty() {
            break;
        }
        paint(Interval::new(from_ns, covered.start_ns), below, visit);
        visit(covered, Some(*cause));
        from_ns = covered.end_ns;
    }
    paint(Interval::new(from_ns, interval.end_ns), below, visit);
}
