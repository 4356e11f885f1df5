//! Splits the time of one gap into parts, each with its one cause of idle time.
//!
//! | time in the gap | cause |
//! |---|---|
//! | the host ran a function for the queue of the next work, or one that it waits for | `host-function` |
//! | the command buffer of the next work had already started | `within-command-buffer`; `unknown` where a host node may have run ([`NODE_ORDER_NS`]) |
//! | the next work depends on submitted, unfinished work of another queue | `other-queue` |
//! | the submission call had not started, nor had its process used a GPU before | `process-start` |
//! | the submission call had not started; the thread was in a call that waits for the GPU, or that waited for it (`call_causes.rs`) | `after-host-wait` |
//! | …in a call that waits for the display | `display` |
//! | …in a call that creates pipelines or shader modules, loads code or builds graphs; or in no call before such loads, where these come again and again (`building.rs`) | `host-compile` |
//! | …in a call that allocates, frees or maps memory | `host-allocate` |
//! | …in another submission call | `submit-call` |
//! | …held up by the recording itself | `recording` |
//! | …in any other call of the API | `host-call` |
//! | …in no call, and another thread of the process was, which returned before the submission | as of the thread's own call (`host_cause.rs`) |
//! | …in no call | `host-late`; `after-host-wait` in a short round trip ([`ROUND_TRIP_NS`](gapscope_timeline::thresholds::ROUND_TRIP_NS)) |
//! | the submission call was in progress, blocked behind a free or allocation of another thread that waited for the GPU | `after-host-wait` |
//! | the submission call was in progress | `submit-call`; inside it, code that is loaded at its first use is `host-compile`, and the recording's own time `recording` |
//! | it had returned, and the host had not given the signal that the work waits for | `host-signal` |
//! | …and it waits for something of unknown time: a host function, a value or an external semaphore, a move of managed memory | `host-function`, `external-wait`, `page-move`; `unknown` for several of these, for a signal of unknown source, for work that was not timed |
//! | …and another queue's work, which it depends on, had finished since its call | `queue-handover` |
//! | …and work of another process or context ended since its call (`contexts.rs`) | `context-switch` |
//! | …and none of these | `launch-latency`; `graph-launch` where a CUDA graph is launched |
//! | work without known times may have run (`waits/unmeasured.rs`) | `unknown` |
//! | …in no call, after a wait that returned shortly before the work before seems to end, where the stated clock error does not tell whether the wait was for that work (`host_cause.rs`) | `unknown` |
//! | the device seems to start, order or hand over work for longer than devices need (`start_up.rs`), or the host knew of the end of the work before too early (`awaited_work.rs`) | `unknown` |
//! | the submission is not in the trace | `unknown` |
//!
//! A gap before a move of managed memory's pages, which nothing submits, is explained by the next submitted work (`page_moves.rs`).
//!
//! [`WaitOrder`] finds what the next work waits for. A host function of unknown times gets all of the rest: it took at most
//! that.
//!
//! Input are the two pieces of work around a gap; output is an [`Explanation`]. [`Explainer::new`] prepares a
//! timeline once, and [`Explainer::explain`] is called for each gap.

use super::building::Builders;
use super::call_causes::CallCauses;
use super::explained::ExplainedGaps;
use super::page_moves::PageMoves;
use super::process_start::FirstUse;
use super::unrelated_waits::UnrelatedWaits;
use super::waits::{WaitOrder, Waits};
use super::{Cause, GapPart, Side, UnknownReason};
use crate::awaited_work::{AwaitedWork, LateEnd};
use crate::host_ranges::{self, RangesByThread};
use crate::stacks::thread_samples::ThreadSamples;
use gapscope_timeline::host::{HostThread, HostThreads, Segment};
use gapscope_timeline::intervals::Interval;
use gapscope_timeline::thresholds::{EARLY_RETURN_NS, NODE_ORDER_NS, ROUND_TRIP_NS};
use gapscope_timeline::{Gap, Timeline, Work, nearby};
use gapscope_trace::ids::ProcessId;
use gapscope_trace::parallel;
use gapscope_trace::tables::SubmissionKind;
use std::sync::OnceLock;

/// Explains the gaps of one timeline.
pub(crate) struct Explainer<'a> {
    pub(crate) timeline: &'a Timeline<'a>,
    pub(crate) host_threads: &'a HostThreads,
    order: WaitOrder<'a>,
    pub(super) call_causes: CallCauses<'a>,
    pub(super) builders: Builders,
    /// The parts of the gaps of each GPU; empty until they are asked for.
    pub(super) explained: Vec<OnceLock<ExplainedGaps>>,
    /// The ranges of host threads; empty until they are asked for.
    ranges: OnceLock<RangesByThread<'a>>,
    /// The samples of host threads; empty until they are asked for.
    samples: OnceLock<ThreadSamples<'a>>,
    /// The threads whose waits do not hold up another; empty until they are asked for.
    unrelated_waits: OnceLock<UnrelatedWaits>,
    first_use: FirstUse,
    awaited: AwaitedWork,
    page_moves: PageMoves,
    /// True where a gap between two pieces of work of one command buffer, if it is shorter than
    /// [`Explainer::start_up_ns`], can have no cause but `within-command-buffer`.
    pub(crate) has_one_cause_inside: bool,
    /// The clock's error of each GPU, by its index; `None` where it is not known.
    pub(crate) error_ns: Vec<Option<i64>>,
}

/// The thing that runs nothing in a gap.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Idle {
    /// A GPU: none of its queues ran anything.
    Gpu,
    /// A queue.
    Queue,
}

/// The explanation of one gap, in parts.
#[derive(Debug, Default)]
pub(crate) struct Explanation {
    /// The parts in order of time, which together cover the gap.
    pub(crate) parts: Vec<GapPart>,
    /// The part before the submission call, and the id of the process and thread that made the call, where they are
    /// known.
    pub(crate) host: Option<(Interval, Option<HostThread>)>,
    /// True where a waiting call was in progress when the gap began, on the submitting thread or on one that held it
    /// up.
    pub(crate) waited: bool,
    /// True where a wait returned before the work before seems to end, and the clock's error does not tell whether it was for that work.
    pub(super) may_have_waited: bool,
    /// The call that waited for the work before, where one is known.
    pub(super) waiting: Option<Waiting>,
    /// The time before a load of code in which a thread built the code.
    pub(crate) building: Option<(HostThread, Interval)>,
    /// The parts whose cause is a call of another thread of the process.
    pub(crate) by_other_threads: Vec<GapPart>,
    /// The index of the queue that the next work depended on.
    pub(crate) waited_for: Option<u32>,
    /// The row of the submission that ended the gap, where the submission explains the gap.
    pub(crate) submission: Option<u32>,
    /// The times that host functions of unknown times may have taken.
    pub(crate) untimed_functions: Vec<Interval>,
    /// The parts whose cause is [`Cause::Unknown`], with the reason. They do not overlap.
    pub(crate) unknown: Vec<(Interval, UnknownReason)>,
}

/// A call that waited for the work before a gap, and held up the submission of the next work.
#[derive(Debug, Clone, Copy)]
pub(super) struct Waiting {
    pub(super) call: Segment,
    pub(super) held_up: HeldUp,
}

/// How a call that waits holds up the submitting thread.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub(super) enum HeldUp {
    /// It is a call of that thread.
    Itself,
    /// It is a call of another thread, and the submitting thread is outside of calls until it returns.
    OtherThread,
    /// It is a call of another thread, and the submission call is blocked behind it.
    InCall,
}

impl HeldUp {
    pub(super) const ALL: [HeldUp; 3] = [HeldUp::Itself, HeldUp::OtherThread, HeldUp::InCall];
}

impl<'a> Explainer<'a> {
    pub(crate) fn new(timeline: &'a Timeline<'a>) -> Explainer<'a> {
        let error_ns: Vec<Option<i64>> = (0..timeline.gpus.len())
            .map(|gpu| {
                timeline
                    .clock_error_ns(gpu)
                    .map(|error| error.clamp(0, 1 << 40))
            })
            .collect();
        let ((order, awaited, page_moves), (call_causes, builders, first_use)) = parallel::both(
            || {
                let order = WaitOrder::new(timeline);
                let awaited = AwaitedWork::new(timeline, order.recorded_waits());
                (order, awaited, PageMoves::new(timeline))
            },
            || {
                timeline.host_threads();
                let call_causes = CallCauses::new(timeline);
                (
                    call_causes,
                    Builders::new(timeline),
                    FirstUse::new(timeline),
                )
            },
        );
        Explainer {
            timeline,
            host_threads: timeline.host_threads(),
            has_one_cause_inside: order.has_no_functions() && order.unmeasured().is_empty(),
            order,
            awaited,
            page_moves,
            call_causes,
            builders,
            explained: timeline.gpus.iter().map(|_| OnceLock::new()).collect(),
            ranges: OnceLock::new(),
            samples: OnceLock::new(),
            unrelated_waits: OnceLock::new(),
            first_use,
            error_ns,
        }
    }

    /// Returns the parts of all gaps of a GPU.
    pub(super) fn explained(&self, gpu: usize) -> &ExplainedGaps {
        self.explained[gpu].get_or_init(|| {
            let gaps = self.timeline.gpus[gpu].works.gaps();
            self.explain_each(gpu, gaps, |(): &mut (), _, _| (), |()| ())
        })
    }

    /// Explains gaps of a GPU on all cores. `sum` adds each gap with its explanation to sums, of which there are several, and `add`
    /// gets these in the order of the gaps.
    pub(super) fn explain_each<S: Default + Send>(
        &self,
        gpu: usize,
        gaps: impl Iterator<Item = Gap>,
        sum: impl Fn(&mut S, &Gap, &Explanation) + Sync,
        add: impl FnMut(S),
    ) -> ExplainedGaps {
        let works = &self.timeline.gpus[gpu].works;
        let explain = |gaps: &[Gap], explained: &mut ExplainedGaps| {
            let mut explanation = Explanation::default();
            let mut sums = S::default();
            for gap in gaps {
                let [before, after] = [gap.before, gap.after].map(|at| works.at(at as usize));
                self.explain(Idle::Gpu, &before, &after, gap.interval, &mut explanation);
                explained.push(gap.interval, &explanation.parts);
                sum(&mut sums, gap, &explanation);
            }
            sums
        };
        ExplainedGaps::new(gaps, explain, add)
    }

    /// Returns the order of submissions by which gaps are explained.
    pub(crate) fn order(&self) -> &WaitOrder<'a> {
        &self.order
    }

    /// Returns what told the host that work had ended.
    pub(crate) fn awaited(&self) -> &AwaitedWork {
        &self.awaited
    }

    /// Explains the gap of a GPU or a queue between `before` and `after`, in place of what `explanation` held.
    pub(crate) fn explain(
        &self,
        idle: Idle,
        before: &Work,
        after: &Work,
        gap: Interval,
        explanation: &mut Explanation,
    ) {
        explanation.clear();
        self.explain_recorded(idle, before, after, gap, explanation);
        explanation.leave_out(self.host_threads.not_recorded(), gap);
    }

    /// Explains a gap as if the recording had not paused in it.
    fn explain_recorded(
        &self,
        idle: Idle,
        before: &Work,
        after: &Work,
        gap: Interval,
        explanation: &mut Explanation,
    ) {
        let timeline = self.timeline;
        let launched = match idle {
            Idle::Gpu => self.page_moves.launched_after(after),
            Idle::Queue => None,
        };
        let after = launched.unwrap_or(after);
        let command_buffer = timeline.command_buffers.get(after.command_buffer as usize);
        let row = timeline.submission_of(after);
        let begun = command_buffer.is_some_and(|times| {
            times.ran.first_start_ns < gap.start_ns || before.command_buffer == after.command_buffer
        });
        if begun {
            self.explain_inside(after, gap, row, explanation);
        } else if timeline.submissions.get(row as usize).is_some() {
            self.explain_submitted(before, after, gap, row, explanation);
        } else {
            explanation.push_unknown(gap, UnknownReason::NoSubmission);
        }
        let queue = timeline.queue_of(after);
        let unmeasured = match idle {
            Idle::Gpu => self
                .order
                .unmeasured()
                .on_gpu(timeline.queues[queue as usize].gpu),
            Idle::Queue => self.order.unmeasured().on_queue(queue),
        };
        let overlaps = nearby::partition_point(unmeasured, |time| time.end_ns <= gap.start_ns);
        let unmeasured = &unmeasured[overlaps..];
        let Some(first) = unmeasured.first().filter(|time| time.start_ns < gap.end_ns) else {
            return;
        };
        if first.intersection(gap) == gap {
            explanation.doubt_all(UnknownReason::UntimedWork);
            return;
        }
        explanation.doubt(|part| {
            // A kernel that is being profiled has no times, and the recording holds the program up for it.
            let in_doubt = part.cause != Cause::Recording;
            let ran = pieces(part.interval(), unmeasured);
            ran.map(move |(piece, ran)| {
                (
                    piece,
                    (ran && in_doubt).then_some(UnknownReason::UntimedWork),
                )
            })
        });
        // Whatever else is not known of such a time: nobody knows whether the device idled.
        let unknown = std::mem::take(&mut explanation.unknown).into_iter();
        let unknown = unknown.flat_map(|(interval, reason)| {
            pieces(interval, unmeasured).map(move |(piece, ran)| match ran {
                true => (piece, UnknownReason::UntimedWork),
                false => (piece, reason),
            })
        });
        explanation.unknown = unknown.collect();
    }

    /// Returns the ranges of host threads.
    pub(crate) fn ranges(&self) -> &RangesByThread<'a> {
        self.ranges
            .get_or_init(|| host_ranges::by_thread(self.timeline, |_| true))
    }

    /// Returns true where waits of `other` do not hold up `thread`.
    pub(super) fn is_unrelated(&self, thread: HostThread, other: HostThread) -> bool {
        let unrelated = (self.unrelated_waits).get_or_init(|| UnrelatedWaits::new(self.timeline));
        unrelated.has(thread, other)
    }

    /// Returns the samples of the host's threads.
    pub(crate) fn samples(&self) -> &ThreadSamples<'a> {
        let trace = self.timeline.trace;
        (self.samples).get_or_init(|| ThreadSamples::new(&trace.tables.samples, &trace.manifest))
    }

    /// Returns for how long of an interval ranges or samples say which code a thread was in.
    pub(super) fn told_by_code_ns(&self, thread: HostThread, interval: Interval) -> i64 {
        let tables = &self.timeline.trace.tables;
        let ranges = self.ranges().get(&thread);
        let in_ranges_ns = ranges.map_or(0, |ranges| ranges.covered_ns(interval));
        let samples = self.samples();
        let periods = &tables.samples.period_ns;
        let sampled = samples.sampled(thread, interval).iter();
        let sampled_ns = sampled
            .map(|row| periods.at(*row as usize).unwrap_or(0).max(0))
            .fold(0, i64::saturating_add);
        in_ranges_ns.max(sampled_ns.min(interval.length_ns()))
    }

    /// Returns true where the times of all work are known, so that a device idles whenever none of its queues runs
    /// anything.
    pub(crate) fn knows_all_work(&self) -> bool {
        self.order.unmeasured().is_empty()
    }

    /// Returns how long the device may take to start or order work of a queue that is free to run.
    pub(crate) fn start_up_ns(&self, queue: u32) -> i64 {
        self.order.start_up_ns(queue)
    }

    /// Returns true where the host was told of the end of work of a queue too early, by more than the clock's error and what devices
    /// take to write a time.
    fn contradicts(&self, late: &LateEnd) -> bool {
        let error_ns = self.error_ns[self.timeline.queues[late.queue as usize].gpu as usize];
        let tolerated_ns = error_ns.unwrap_or(0).saturating_add(EARLY_RETURN_NS);
        late.end_ns.saturating_sub(late.told_ns) > tolerated_ns
    }

    /// Appends the part of `late` before a process first used a GPU to `parts`, and returns the rest.
    fn after_first_use(
        &self,
        late: Interval,
        process: ProcessId,
        parts: &mut Vec<GapPart>,
    ) -> Interval {
        let Some(first_ns) = self.first_use.of_process(process) else {
            return late;
        };
        let from_ns = first_ns.clamp(late.start_ns, late.end_ns);
        push(
            parts,
            Interval::new(late.start_ns, from_ns),
            Cause::ProcessStart,
        );
        Interval::new(from_ns, late.end_ns)
    }

    /// Explains a gap inside a command buffer.
    fn explain_inside(&self, after: &Work, gap: Interval, row: u32, explanation: &mut Explanation) {
        let untimed_nodes = self.order.has_untimed_nodes(row);
        let queue = self.timeline.queue_of(after);
        let functions = self.order.functions(queue, gap);
        let start_up_ns = self.start_up_ns(queue);
        // Most gaps need none of the work below.
        if functions.is_empty() && !untimed_nodes && gap.length_ns() < start_up_ns {
            push(&mut explanation.parts, gap, Cause::WithinCommandBuffer);
            return;
        }
        for (piece, in_function) in pieces(gap, functions) {
            let ns = piece.length_ns();
            match in_function {
                true => push(&mut explanation.parts, piece, Cause::HostFunction),
                false if untimed_nodes && ns > NODE_ORDER_NS => {
                    explanation.push_unknown(piece, UnknownReason::UnrecordedWait);
                }
                false if ns >= start_up_ns => {
                    explanation.push_unknown(piece, UnknownReason::LongStart);
                }
                false => push(&mut explanation.parts, piece, Cause::WithinCommandBuffer),
            }
        }
        let known = self.timeline.submissions.get(row as usize).is_some();
        explanation.submission = (known && !functions.is_empty()).then_some(row);
    }

    /// Explains a gap that the submission in `row` ends: the time before the call, inside the call, and from then to
    /// the start of the work.
    fn explain_submitted(
        &self,
        before: &Work,
        after: &Work,
        gap: Interval,
        row: u32,
        explanation: &mut Explanation,
    ) {
        let timeline = self.timeline;
        let table = &timeline.trace.tables.submissions;
        let at = row as usize;
        let queue = timeline.queue_of(after);
        // Without a known error the times of host and device are taken as they stand, and the totals say that the split is
        // uncertain.
        let stated_error_ns = self.error_ns[timeline.queues[queue as usize].gpu as usize];
        let error_ns = stated_error_ns.unwrap_or(0);
        let call_ns = [table.start_ns[at], table.end_ns(at)];
        let start_ns = call_ns[0].clamp(gap.start_ns, gap.end_ns);
        let end_ns = call_ns[1].clamp(start_ns, gap.end_ns);
        let late = Interval::new(gap.start_ns, start_ns);
        let begun = timeline.submissions[at].first_start_ns < gap.end_ns;
        let until_ns = gap.end_ns.saturating_add(error_ns);
        let waits = self.order.waits(row, until_ns, begun);

        let mut parts = std::mem::take(&mut explanation.parts);
        let thread = HostThread::from_row(table.process[at], table.thread.at(at));
        let late = self.after_first_use(late, table.process[at], &mut parts);
        if !late.is_empty() {
            explanation.host = Some((late, thread));
            match thread {
                Some(thread) => {
                    self.explain_host(
                        late,
                        thread,
                        stated_error_ns,
                        timeline.submission_of(before),
                        explanation,
                        &mut parts,
                    );
                }
                // The host was late, and the trace does not say what it did.
                None => push(&mut parts, late, Cause::HostLate),
            }
        }
        let before_queue = timeline.queue_of(before);
        let late_end = self.awaited.late_end(before_queue, gap.start_ns);
        if let Some(early) = late_end.filter(|early| early.is_round_trip(thread, call_ns[0])) {
            explanation.waited = true;
            early.correct(&mut parts);
        }
        let (call, start) = call_and_start(table.kind[at]);
        let whole_call = Interval::new(call_ns[0], call_ns[1].max(call_ns[0]));
        let behind = thread
            .and_then(|thread| self.blocked_behind(whole_call, thread, gap.start_ns, error_ns));
        let mut free_ns = start_ns;
        if let Some(other) = behind {
            free_ns = other.interval.end_ns.clamp(start_ns, end_ns);
            push(
                &mut parts,
                Interval::new(start_ns, free_ns),
                Cause::AfterHostWait,
            );
            explanation.waited = true;
            explanation.waiting.get_or_insert(Waiting {
                call: other,
                held_up: HeldUp::InCall,
            });
        }
        let inside = Interval::new(free_ns, end_ns);
        match thread {
            Some(thread) => self.explain_call(inside, thread, call, &mut parts),
            None => push(&mut parts, inside, call),
        }
        let mut from_ns = end_ns;
        if let Some(signal_ns) = waits.host_signal_ns {
            let until_ns = signal_ns.clamp(from_ns, gap.end_ns);
            push(
                &mut parts,
                Interval::new(from_ns, until_ns),
                Cause::HostSignal,
            );
            from_ns = until_ns;
        }
        // Work that had finished before the call did not hold up the next work.
        let handed_over = waits.last.filter(|last| {
            last.end_ns > call_ns[0]
                && (last.end_ns > gap.start_ns
                    || (last.end_ns == gap.start_ns && before_queue == last.queue))
        });
        let rest = Interval::new(from_ns, gap.end_ns);
        let cause = match waits.untimed(rest.length_ns()) {
            Some(cause) => cause,
            None if handed_over.is_some() => Cause::QueueHandover,
            None if (self.order.other_context_ended(row, gap.end_ns))
                .is_some_and(|end_ns| end_ns >= gap.start_ns) =>
            {
                Cause::ContextSwitch
            }
            None => start,
        };
        push(&mut parts, rest, cause);
        explanation.waited_for = handed_over.map(|last| last.queue);
        // Several things of unknown times are an unrecorded wait too.
        let unknown = waits.unknown(rest.length_ns());
        let unknown = unknown.unwrap_or(UnknownReason::UnrecordedWait);

        let Waits {
            others,
            mut functions,
            ..
        } = waits;
        functions.extend_from_slice(self.order.functions(queue, gap));
        explanation.submission = Some(row);
        // Most gaps need none of the work below.
        if others.is_empty() && functions.is_empty() && cause != Cause::HostFunction {
            explanation.parts = parts;
        } else {
            gapscope_timeline::intervals::union(&mut functions);
            for part in overlay(&parts, &others, Cause::OtherQueue) {
                for (piece, in_function) in pieces(part.interval(), &functions) {
                    let cause = match in_function {
                        true => Cause::HostFunction,
                        false => part.cause,
                    };
                    if !in_function && cause == Cause::HostFunction {
                        explanation.untimed_functions.push(piece);
                    }
                    push(&mut explanation.parts, piece, cause);
                }
            }
        }
        let unknown_parts = explanation.parts.iter();
        let unknown_parts = unknown_parts.filter(|part| part.cause == Cause::Unknown);
        (explanation.unknown).extend(unknown_parts.map(|part| (part.interval(), unknown)));
        let most_ns = self.order.most_start_up_ns(row);
        let late_end = late_end.filter(|late| self.contradicts(late));
        let may_have_waited = explanation.may_have_waited;
        explanation.doubt(|part| {
            let starts = part.cause.side() == Side::Launch || part.cause == Cause::QueueHandover;
            let reason = match late_end {
                _ if may_have_waited && part.cause == Cause::HostLate => {
                    Some(UnknownReason::EarlyWait)
                }
                _ if !starts => None,
                Some(_) => Some(UnknownReason::Contradiction),
                None if part.cause == Cause::ContextSwitch => None,
                None if part.duration_ns < most_ns => None,
                None if self.order.may_move_pages(queue, part.interval()) => {
                    Some(UnknownReason::PageMove)
                }
                None => Some(UnknownReason::LongStart),
            };
            [(part.interval(), reason)]
        });
    }
}

impl Explanation {
    /// Removes everything and keeps the allocations, as there may be ten million gaps.
    fn clear(&mut self) {
        let cleared = std::mem::take(self);
        let Explanation {
            mut parts,
            mut by_other_threads,
            mut untimed_functions,
            mut unknown,
            ..
        } = cleared;
        parts.clear();
        by_other_threads.clear();
        untimed_functions.clear();
        unknown.clear();
        *self = Explanation {
            parts,
            by_other_threads,
            untimed_functions,
            unknown,
            ..Explanation::default()
        };
    }

    /// Makes the cause of all parts unknown for one reason. Only the time of the recording itself is known.
    fn doubt_all(&mut self, reason: UnknownReason) {
        for (_, of_unknown) in &mut self.unknown {
            *of_unknown = reason;
        }
        for part in &mut self.parts {
            if !matches!(part.cause, Cause::Unknown | Cause::Recording) {
                part.cause = Cause::Unknown;
                self.unknown.push((part.interval(), reason));
            }
        }
        self.parts.dedup_by(|part, last| {
            let is_same = part.cause == last.cause;
            if is_same {
                last.duration_ns += part.duration_ns;
            }
            is_same
        });
    }

    /// Appends a part of unknown cause.
    fn push_unknown(&mut self, interval: Interval, reason: UnknownReason) {
        if !interval.is_empty() {
            push(&mut self.parts, interval, Cause::Unknown);
            self.unknown.push((interval, reason));
        }
    }

    /// Makes the cause unknown of those pieces of the parts for which `judge` gives a reason.
    fn doubt<I: IntoIterator<Item = (Interval, Option<UnknownReason>)>>(
        &mut self,
        judge: impl Fn(&GapPart) -> I,
    ) {
        let doubts = |part: &GapPart| {
            part.cause != Cause::Unknown
                && judge(part)
                    .into_iter()
                    .any(|(of, reason)| reason.is_some() && !of.is_empty())
        };
        if !self.parts.iter().any(doubts) {
            return;
        }
        for part in std::mem::take(&mut self.parts) {
            if part.cause == Cause::Unknown {
                push(&mut self.parts, part.interval(), part.cause);
                continue;
            }
            for (piece, reason) in judge(&part) {
                match reason {
                    Some(reason) => self.push_unknown(piece, reason),
                    None => push(&mut self.parts, piece, part.cause),
                }
            }
        }
    }
}

impl LateEnd {
    /// Returns true where `thread` was the one that waited and began the call at `call_ns` shortly after.
    fn is_round_trip(&self, thread: Option<HostThread>, call_ns: i64) -> bool {
        let after_ns = call_ns.saturating_sub(self.told_ns);
        thread.is_some() && self.thread == thread && (0..=ROUND_TRIP_NS).contains(&after_ns)
    }

    /// Makes the time outside of calls a part of the wait, which the wait's own times do not show.
    fn correct(&self, parts: &mut Vec<GapPart>) {
        for part in std::mem::take(parts) {
            let cause = match part.cause {
                Cause::HostLate => Cause::AfterHostWait,
                cause => cause,
            };
            push(parts, part.interval(), cause);
        }
    }
}

/// Returns the causes for which a device idles while a submission of a kind is in progress, and from then until the
/// device starts the work.
pub(super) fn call_and_start(kind: SubmissionKind) -> (Cause, Cause) {
    match kind {
        SubmissionKind::Graph => (Cause::SubmitCall, Cause::GraphLaunch),
        _ => (Cause::SubmitCall, Cause::LaunchLatency),
    }
}

/// Appends an interval with a cause, joined with the last part if that has the same cause.
pub(super) fn push(parts: &mut Vec<GapPart>, interval: Interval, cause: Cause) {
    if interval.is_empty() {
        return;
    }
    match parts.last_mut() {
        Some(last) if last.cause == cause => last.duration_ns += interval.length_ns(),
        _ => parts.push(GapPart {
            cause,
            start_ns: interval.start_ns,
            duration_ns: interval.length_ns(),
        }),
    }
}

/// Replaces the causes of `parts` by `cause` where a set of intervals covers them.
pub(super) fn overlay(parts: &[GapPart], covers: &[Interval], cause: Cause) -> Vec<GapPart> {
    let mut result = Vec::with_capacity(parts.len());
    for part in parts {
        for (piece, covered) in pieces(part.interval(), covers) {
            push(&mut result, piece, if covered { cause } else { part.cause });
        }
    }
    result
}

/// Splits an interval into the pieces that are in a set and those that are not, in order; some may be empty.
pub(super) fn pieces(whole: Interval, set: &[Interval]) -> impl Iterator<Item = (Interval, bool)> {
    let from = set.partition_point(|of| of.end_ns <= whole.start_ns);
    let inside = set[from..].iter().map(move |of| of.intersection(whole));
    let inside = inside.take_while(move |of| of.start_ns < whole.end_ns && !of.is_empty());
    let end = Interval::new(whole.end_ns, whole.end_ns);
    let mut from_ns = whole.start_ns;
    inside.chain([end]).flat_map(move |of| {
        let before = Interval::new(from_ns, of.start_ns);
        from_ns = of.end_ns;
        [(before, false), (of, true)]
    })
}
