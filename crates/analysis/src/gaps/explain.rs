//! Why one gap is there.
//!
//! | time in the gap | cause |
//! |---|---|
//! | the command buffer of the next work had already started | `within-command-buffer` |
//! | the next work depends on submitted, unfinished work of another queue | `other-queue` |
//! | the submission call had not started; the thread was in a call that waits for the GPU | `after-host-wait` |
//! | …in a call that creates pipelines or shader modules, loads code or builds graphs | `host-compile` |
//! | …in a call that allocates, frees or maps memory | `host-allocate` |
//! | …in another submission call | `submit-call` |
//! | …held up by the recording itself | `recording` |
//! | …in any other call of the API | `host-call` |
//! | …in no call, and another thread of the process was, which returned before the submission | as of the thread's own call (`away.rs`) |
//! | …in no call | `host-late`; `after-host-wait` in a short round trip ([`ROUND_TRIP_NS`](crate::thresholds::ROUND_TRIP_NS)) |
//! | the submission call was in progress | `submit-call`; inside it, code that is loaded at its first use is `host-compile`, and the recording's own time `recording` |
//! | the same, and until the device starts, where a CUDA graph is launched | `graph-launch` |
//! | it had returned, and the host had not given the signal that the work waits for | `host-signal` |
//! | …and another queue's work, which the next work depends on, had finished | `queue-handover` |
//! | …and none of these | `launch-latency`; `unknown` where it waits for a signal of unknown source |
//! | the submission is not in the trace | `unknown` |

use super::{Cause, GapPart};
use crate::host::{Host, HostThread};
use crate::intervals::Interval;
use crate::timeline::{Timeline, Work};
use gapscope_trace::lookup::NONE;
use gapscope_trace::tables::{SubmissionKind, Table};

/// Submissions without work that are looked through for what they wait for in turn.
const DEPTH: u32 = 8;

/// Explains gaps of one timeline.
pub(crate) struct Explainer<'a> {
    pub(crate) timeline: &'a Timeline<'a>,
    pub(crate) host: Host,
    /// Sorted.
    dependencies: Vec<DependencyRow>,
    /// The clock's error by GPU; absent where it is not known.
    pub(crate) error_ns: Vec<Option<i64>>,
}

/// A row of the table of dependencies, by the row of its submission.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
struct DependencyRow {
    submission: u32,
    row: u32,
}

/// The explanation of one gap.
#[derive(Debug, Default)]
pub(crate) struct Explanation {
    /// In order of time; they cover the gap.
    pub(crate) parts: Vec<GapPart>,
    /// The part before the submission call, and the process and thread that made the call, where they are known.
    pub(crate) host: Option<(Interval, Option<HostThread>)>,
    /// A waiting call was in progress when the gap began, on that thread or on one that held it up.
    pub(crate) waited: bool,
    /// What of the gap calls of other threads of the process explain.
    pub(crate) by_other_threads: Vec<GapPart>,
    /// Index of the queue that the next work depended on.
    pub(crate) waited_for: Option<u32>,
    /// Row of the submission that ended the gap, where that explains it.
    pub(crate) submission: Option<u32>,
}

/// When work on a queue finished.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
struct Finished {
    end_ns: i64,
    /// Index of the queue.
    queue: u32,
}

/// What a submission waits for.
#[derive(Default)]
struct Waits {
    /// Submitted but unfinished work on other queues.
    others: Vec<Interval>,
    /// The last of them to finish.
    last: Option<Finished>,
    host_signal_ns: Option<i64>,
    unknown: bool,
}

impl<'a> Explainer<'a> {
    pub(crate) fn new(timeline: &'a Timeline<'a>) -> Explainer<'a> {
        let table = &timeline.trace.tables.dependencies;
        let mut dependencies: Vec<DependencyRow> = (0..table.len())
            .map(|row| DependencyRow {
                submission: timeline.submission_ids.row(table.submission[row]),
                row: row as u32,
            })
            .filter(|dependency| dependency.submission != NONE)
            .collect();
        dependencies.sort();
        let error_ns = (0..timeline.gpus.len())
            .map(|gpu| {
                timeline
                    .clock_error_ns(gpu)
                    .map(|error| error.clamp(0, 1 << 40))
            })
            .collect();
        Explainer {
            timeline,
            host: Host::of(timeline.trace),
            dependencies,
            error_ns,
        }
    }

    /// Explains the gap between `before` and `after`.
    pub(crate) fn explain(
        &self,
        before: &Work,
        after: &Work,
        gap: Interval,
        explanation: &mut Explanation,
    ) {
        let Explanation { parts, .. } = explanation;
        parts.clear();
        let timeline = self.timeline;
        let command_buffer = timeline.command_buffers.get(after.command_buffer as usize);
        let begun = command_buffer.is_some_and(|times| times.first_start_ns < gap.start_ns);
        if command_buffer.is_some() && (begun || before.command_buffer == after.command_buffer) {
            *explanation = Explanation {
                parts: std::mem::take(parts),
                ..Explanation::default()
            };
            push(&mut explanation.parts, gap, Cause::WithinCommandBuffer);
            return;
        }
        let row = timeline.submission_of(after);
        let mut fresh = Explanation {
            parts: std::mem::take(parts),
            ..Explanation::default()
        };
        match timeline.submissions.get(row as usize) {
            Some(_) => self.explain_submitted(before, after, gap, row, &mut fresh),
            None => push(&mut fresh.parts, gap, Cause::Unknown),
        }
        *explanation = fresh;
    }

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
        // Without a known error host and device are taken as they stand, and the walk says that the split is uncertain.
        let error_ns = self.error_ns[timeline.queues[queue as usize].gpu as usize].unwrap_or(0);
        let call_ns = [table.start_ns[at], table.end_ns(at)];
        let start_ns = call_ns[0].clamp(gap.start_ns, gap.end_ns);
        let end_ns = call_ns[1].clamp(start_ns, gap.end_ns);
        let late = Interval::new(gap.start_ns, start_ns);
        let waits = self.waits(row, queue, gap.end_ns.saturating_add(error_ns));

        let mut parts = Vec::with_capacity(4);
        let thread = HostThread::of(table.process[at], table.thread[at]);
        if !late.is_empty() {
            explanation.host = Some((late, thread));
            match thread {
                Some(thread) => {
                    self.explain_host(late, thread, error_ns, explanation, &mut parts);
                }
                // That the host was late is known; what it did is not.
                None => push(&mut parts, late, Cause::HostLate),
            }
        }
        let (call, start) = call_and_start(table.kind[at]);
        let inside = Interval::new(start_ns, end_ns);
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
        let before_queue = timeline.queue_of(before);
        let handed_over = waits.last.is_some_and(|last| {
            last.end_ns > gap.start_ns
                || (last.end_ns == gap.start_ns && before_queue == last.queue)
        });
        let rest = match () {
            () if handed_over => Cause::QueueHandover,
            () if waits.unknown => Cause::Unknown,
            () => start,
        };
        push(&mut parts, Interval::new(from_ns, gap.end_ns), rest);

        explanation.waited_for = waits.last.filter(|_| handed_over).map(|last| last.queue);
        explanation.submission = Some(row);
        overlay(&parts, &waits.others, &mut explanation.parts);
    }

    /// What a submission to `queue`, whose work started at `start_ns` or before, waits for.
    fn waits(&self, row: u32, queue: u32, start_ns: i64) -> Waits {
        let mut waits = Waits::default();
        if !self.dependencies.is_empty() {
            self.add_waits(row, queue, start_ns, DEPTH, &mut waits);
            crate::intervals::union(&mut waits.others);
        }
        waits
    }

    fn add_waits(&self, row: u32, queue: u32, start_ns: i64, depth: u32, waits: &mut Waits) {
        let timeline = self.timeline;
        let table = &timeline.trace.tables.dependencies;
        let from = self.dependencies.partition_point(|d| d.submission < row);
        let mine = self.dependencies[from..].iter();
        for dependency in mine.take_while(|d| d.submission == row) {
            let at = dependency.row as usize;
            if let Some(signal_ns) = table.host_signal_ns[at] {
                waits.host_signal_ns = waits.host_signal_ns.max(Some(signal_ns));
                continue;
            }
            let other = table.waits_for[at].map_or(NONE, |id| timeline.submission_ids.row(id));
            let Some(times) = timeline.submissions.get(other as usize) else {
                waits.unknown = true;
                continue;
            };
            match times.interval() {
                // A dependency that finished after the start is not what the start waited for: a later stage does.
                Some(work) if times.queue != queue && work.end_ns <= start_ns => {
                    let start_ns = timeline.trace.tables.submissions.start_ns[other as usize];
                    waits.others.push(Interval::new(start_ns, work.end_ns));
                    waits.last = waits.last.max(Some(Finished {
                        end_ns: work.end_ns,
                        queue: times.queue,
                    }));
                }
                Some(_) => {}
                None if timeline.trace.tables.submissions.command_buffers[other as usize] > 0 => {
                    waits.unknown = true;
                }
                None if depth > 0 => self.add_waits(other, queue, start_ns, depth - 1, waits),
                None => {}
            }
        }
    }
}

/// Why a device idles while a submission of a kind is in progress, and until it starts the work after that.
pub(super) fn call_and_start(kind: SubmissionKind) -> (Cause, Cause) {
    match kind {
        SubmissionKind::Graph => (Cause::GraphLaunch, Cause::GraphLaunch),
        _ => (Cause::SubmitCall, Cause::LaunchLatency),
    }
}

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

/// Puts [`Cause::OtherQueue`] over `parts` where a set of intervals covers them.
fn overlay(parts: &[GapPart], others: &[Interval], result: &mut Vec<GapPart>) {
    for part in parts {
        let mut rest = part.interval();
        for other in others {
            let covered = other.intersection(rest);
            if !covered.is_empty() {
                push(
                    result,
                    Interval::new(rest.start_ns, covered.start_ns),
                    part.cause,
                );
                push(result, covered, Cause::OtherQueue);
                rest.start_ns = covered.end_ns;
            }
        }
        push(result, rest, part.cause);
    }
}
