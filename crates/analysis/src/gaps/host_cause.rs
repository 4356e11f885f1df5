//! Assigns causes to the idle time before and inside the call that submits the next work, from the calls of the
//! submitting thread and of other threads of its process.
//!
//! Where that thread is outside of calls, another thread of its process may have held it up. This is assumed if a
//! call of the other thread returned in that time: a call that compiles, loads or allocates, or a wait for the GPU
//! that was in progress as the gap began, as a `cudaFree` may be (`call_causes.rs`); a short round trip ([`ROUND_TRIP_NS`])
//! after a wait counts too. Waits of a thread that has nothing to do with the submissions are left out (`unrelated_waits.rs`), and so are
//! those that the trace knows to be for another device's work, unless the thread went on in a short round trip. It is not
//! assumed for the time before the thread's last call, since a thread that makes calls is not held up. A call that
//! returns only after the submission, as that of a thread that always waits for the GPU, explains nothing.
//!
//! A wait of the thread itself that returned shortly before the work ended counts as in progress, too: clocks err, and devices write
//! the time of an end some µs late ([`EARLY_RETURN_NS`]). Where the trace states no clock error, a wait that returned up to
//! [`UNSTATED_ERROR_NS`] before leaves open whether the thread waited for that work. So does a wait that returned too early for the
//! stated error, where no work ended during the wait: clocks err by more than is stated, or the thread had lost its processor.
//!
//! A submission call that began while another thread's free or allocation waited for the GPU, and returned soon after that one,
//! waited for the same lock of the driver.
//!
//! The time outside of calls before a load of code is spent on building that code, in a program that loads code again and
//! again (`building.rs`). Where another thread builds and loads it, the submitting thread has waited for that thread if it goes on
//! within a short round trip.
//!
//! What this cannot know: whether the thread waited for that call at all, and for which device another thread waited.

use super::explain::{Explainer, Explanation, HeldUp, Waiting, push};
use super::{Cause, GapPart};
use gapscope_timeline::host::{CallClass, HostThread, Segment, WaitOutcome};
use gapscope_timeline::intervals::{Interval, union};
use gapscope_timeline::thresholds::{
    EARLY_RETURN_NS, ROUND_TRIP_NS, SYNC_RETURN_NS, UNSTATED_ERROR_NS,
};
#[cfg(doc)]
use gapscope_trace::lookup::NONE;
use std::iter::Peekable;

/// How many pieces of work before a moment are looked at for one that ends then.
const MAX_OVERLAPPING: usize = 64;

impl Explainer<'_> {
    /// Splits `late`, the time before a submission call, by what `thread` did, and appends the pieces to `parts`.
    /// `explanation` gets whether a wait was in progress, and the parts that other threads explain. `stated_error_ns` is the
    /// clock's error, and `submission` the row of the submission of the work before, or [`NONE`].
    pub(super) fn explain_host(
        &self,
        late: Interval,
        thread: HostThread,
        stated_error_ns: Option<i64>,
        submission: u32,
        explanation: &mut Explanation,
        parts: &mut Vec<GapPart>,
    ) {
        let error_ns = stated_error_ns.unwrap_or(0);
        let segments = self.host_threads.segments(thread, late);
        let near_ns = late.start_ns.saturating_add(error_ns);
        let gap_ns = late.start_ns;
        let waits = |call: &Segment| {
            (call.waits && call.outcome != WaitOutcome::NotDone && call.since_ns <= near_ns)
                || self.call_causes.waited(thread, call, gap_ns, error_ns)
        };
        let before = Before {
            end_ns: gap_ns,
            submission,
        };
        let tolerated_ns = error_ns.saturating_add(EARLY_RETURN_NS);
        let waiting = (segments.clone().find(waits))
            .or_else(|| self.returned_early(thread, before, tolerated_ns));
        explanation.waiting = waiting.map(|call| Waiting {
            call,
            held_up: HeldUp::Itself,
        });
        let waited = waiting.is_some();
        // A round trip begins when the wait returns.
        let early_ns = waiting.map_or(0, |call| gap_ns.saturating_sub(call.interval.end_ns).max(0));
        // Time that is neither in calls nor between the polls of one wait.
        let mut outside_ns = late.length_ns();
        let mut from_ns = late.start_ns;
        for segment in segments.clone() {
            let inside = segment.interval.intersection(late);
            if !segment.continues_wait {
                from_ns = inside.start_ns;
            }
            outside_ns -= Interval::new(from_ns, inside.end_ns).length_ns();
            from_ns = inside.end_ns;
        }
        let is_round_trip = |early_ns: i64| outside_ns.saturating_add(early_ns) <= ROUND_TRIP_NS;
        if !waited {
            let perhaps = (self.returned_early(thread, before, UNSTATED_ERROR_NS)).filter(|call| {
                stated_error_ns.is_none() || !self.has_seen_an_end(call, tolerated_ns)
            });
            explanation.may_have_waited = perhaps
                .is_some_and(|call| is_round_trip(gap_ns.saturating_sub(call.interval.end_ns)));
        }
        let mut outside = Outside {
            returned: (self.host_threads)
                .returned_on_others(thread, late)
                .peekable(),
            waited: |other, call: &Segment| self.call_causes.waited(other, call, gap_ns, error_ns),
            unrelated: |other| self.is_unrelated(thread, other),
            elsewhere: |other, call: &Segment| self.waited_elsewhere(other, call, submission),
            near_ns,
            left_ns: outside_ns,
            round_trip: waited && is_round_trip(early_ns),
            others_round_trip: false,
            building: (self.builders).building(self.host_threads, thread, late, segments.clone()),
            building_on: |other, call: &Segment| {
                let building = &self.builders;
                building.building_on(self.host_threads, other, call, late)
            },
            parts,
            explanation,
        };
        outside.explanation.waited |= waited;
        outside.explanation.building = outside.building.map(|building| (thread, building));
        let mut from_ns = late.start_ns;
        for segment in segments {
            let inside = segment.interval.intersection(late);
            outside.explain(
                Interval::new(from_ns, inside.start_ns),
                segment.continues_wait,
            );
            let cause = (self.call_causes).cause(thread, &segment, gap_ns, error_ns);
            push(outside.parts, inside, cause);
            from_ns = inside.end_ns;
        }
        let rest = Interval::new(from_ns, late.end_ns);
        if !rest.is_empty() {
            let polled = self.host_threads.is_between_polls(thread, late.end_ns);
            outside.explain(rest, polled);
        }
    }

    /// Returns the last call of `thread` that waited for the work before a gap, where it returned up to `tolerated_ns` before that work
    /// seems to end. A wait for later work than had been submitted as it began cannot be.
    fn returned_early(
        &self,
        thread: HostThread,
        before: Before,
        tolerated_ns: i64,
    ) -> Option<Segment> {
        let from_ns = before.end_ns.saturating_sub(tolerated_ns.saturating_add(1));
        let segments = (self.host_threads).segments(thread, Interval::new(from_ns, before.end_ns));
        let recorded = self.order().recorded_waits();
        let submissions = &self.timeline.trace.tables.submissions;
        let submitted_ns = submissions.start_ns.get(before.submission as usize);
        let mut early = segments.rev().filter(|call| {
            let is_of_work = submitted_ns.is_none_or(|ns| *ns <= call.since_ns);
            call.interval.end_ns <= before.end_ns && call.is_last && is_of_work
        });
        early.find(|call| {
            call.waits
                && call.outcome != WaitOutcome::NotDone
                && recorded.is_for(thread, call, before.submission) != Some(false)
        })
    }

    /// Returns true where the trace says that a call waited for work of another device than the one that ran the work of `submission`.
    fn waited_elsewhere(&self, thread: HostThread, call: &Segment, submission: u32) -> bool {
        let gpu_of = |row: u32| {
            let times = self.timeline.submissions.get(row as usize)?;
            Some(self.timeline.queues[times.queue as usize].gpu)
        };
        let awaited = self.order().recorded_waits().awaited(thread, call);
        let gpus = awaited.and_then(gpu_of).zip(gpu_of(submission));
        gpus.is_some_and(|(awaited, own)| awaited != own)
    }

    /// Returns true where a call that waits may have waited for work that seems to end during the call, or within `tolerated_ns` of it, or
    /// where it took no longer than a call that waits for nothing.
    fn has_seen_an_end(&self, call: &Segment, tolerated_ns: i64) -> bool {
        let until_ns = call.interval.end_ns.saturating_add(tolerated_ns);
        let from_ns = call.since_ns.saturating_sub(tolerated_ns);
        until_ns.saturating_sub(call.since_ns) <= tolerated_ns.saturating_mul(2)
            || self.timeline.gpus.iter().any(|gpu| {
                let begun = gpu
                    .works
                    .partition_point(|work| work.interval.start_ns <= until_ns);
                let mut last = gpu
                    .works
                    .range(begun.saturating_sub(MAX_OVERLAPPING)..begun);
                last.any(|work| (from_ns..=until_ns).contains(&work.interval.end_ns))
            })
    }

    /// Returns the call of another thread behind which a submission `call` of `thread` was blocked: it waited for the work that
    /// ended at `gap_ns`, had begun before the submission call, and returned shortly before that one did.
    pub(super) fn blocked_behind(
        &self,
        call: Interval,
        thread: HostThread,
        gap_ns: i64,
        error_ns: i64,
    ) -> Option<Segment> {
        let from_ns = call
            .start_ns
            .max(call.end_ns.saturating_sub(SYNC_RETURN_NS));
        let mut returned = (self.host_threads)
            .returned_on_others(thread, Interval::new(from_ns, call.end_ns))
            .filter(|(other, other_call)| {
                other_call.since_ns < call.start_ns
                    && self
                        .call_causes
                        .waited(*other, other_call, gap_ns, error_ns)
            });
        returned.next().map(|(_, other_call)| other_call)
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
            let cause = Cause::in_segment(&segment);
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

/// The work before a gap.
#[derive(Debug, Clone, Copy)]
struct Before {
    end_ns: i64,
    /// The row of its submission, or [`NONE`].
    submission: u32,
}

/// The explanation of the time that a thread spends outside of calls, made stretch by stretch in order of time.
struct Outside<'a, I, W, U, E, B>
where
    I: Iterator<Item = (HostThread, Segment)>,
    W: Fn(HostThread, &Segment) -> bool,
    U: Fn(HostThread) -> bool,
    E: Fn(HostThread, &Segment) -> bool,
    B: Fn(HostThread, &Segment) -> Option<Interval>,
{
    /// The calls of other threads that are not considered yet, in the order of their returns.
    returned: Peekable<I>,
    /// Returns true where a call of another thread that is no wait by its kind waited for the work before the gap.
    waited: W,
    /// Returns true where waits of another thread do not hold this one up.
    unrelated: U,
    /// Returns true where a call of another thread waited for work of another device than that of the gap.
    elsewhere: E,
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
    /// Returns the time in which another thread built the code that a call of it loads.
    building_on: B,
    parts: &'a mut Vec<GapPart>,
    explanation: &'a mut Explanation,
}

impl<'a, I, W, U, E, B> Outside<'a, I, W, U, E, B>
where
    I: Iterator<Item = (HostThread, Segment)>,
    W: Fn(HostThread, &Segment) -> bool,
    U: Fn(HostThread) -> bool,
    E: Fn(HostThread, &Segment) -> bool,
    B: Fn(HostThread, &Segment) -> Option<Interval>,
{
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
        while let Some((other, call)) =
            (self.returned).next_if(|(_, call)| call.interval.end_ns <= stretch.end_ns)
        {
            let whole = Interval::new(call.since_ns, call.interval.end_ns);
            let inside = whole.intersection(stretch);
            let is_hidden_wait = (self.waited)(other, &call);
            match call.class() {
                // The thread was in a call of its own.
                _ if whole.end_ns <= stretch.start_ns => {}
                CallClass::Compile if !is_hidden_wait => {
                    compiled.push(inside);
                    // Who goes on at once after the load may have waited for the code.
                    let after_ns = stretch.end_ns - whole.end_ns;
                    let is_next = self.left_ns + after_ns <= ROUND_TRIP_NS;
                    if let Some(building) = (self.building_on)(other, &call).filter(|_| is_next) {
                        compiled.push(building.intersection(stretch));
                        self.explanation.building.get_or_insert((other, building));
                    }
                }
                CallClass::Allocate if !is_hidden_wait => allocated.push(inside),
                CallClass::Other if !is_hidden_wait => {}
                _ if !is_hidden_wait && whole.start_ns > self.near_ns => {}
                _ if !is_hidden_wait && (self.unrelated)(other) => {}
                _ if !is_hidden_wait
                    && (self.elsewhere)(other, &call)
                    && self.left_ns + (stretch.end_ns - whole.end_ns) > ROUND_TRIP_NS => {}
                _ => {
                    self.explanation.waited = true;
                    self.explanation.waiting.get_or_insert(Waiting {
                        call,
                        held_up: HeldUp::OtherThread,
                    });
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
        let building = self.building.map(|building| building.intersection(stretch));
        paint(stretch, &layers, &mut |interval, cause| {
            if let Some(cause) = cause {
                push(self.parts, interval, cause);
                push(&mut self.explanation.by_other_threads, interval, cause);
                return;
            }
            let built = building.map(|building| building.intersection(interval));
            let Some(built) = built.filter(|built| !built.is_empty()) else {
                return push(self.parts, interval, Cause::HostLate);
            };
            let before = Interval::new(interval.start_ns, built.start_ns);
            push(self.parts, before, Cause::HostLate);
            push(self.parts, built, Cause::HostCompile);
            let after = Interval::new(built.end_ns, interval.end_ns);
            push(self.parts, after, Cause::HostLate);
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
