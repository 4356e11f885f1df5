//! Finds the code that the host ran while devices were idle, from samples of the stacks of the threads that submit
//! work, or, where a trace has no samples, from the ranges that these threads were in (`ranges.rs`). [`HostCode`] is
//! either.
//!
//! While the next work of an idle device had not been submitted, or was being submitted, the samples of the
//! submitting thread tell what that thread did. A sample stands for the time between samples at the rate of that moment
//! (`period_ns`). Where samples cover a cause as well as chance allows, its time is split among stacks by them.
//! Time that they do not cover, because none were taken or stacks could not be read, stays without code and is not
//! spread over others.
//!
//! Stacks count together as a group where they have the same frame of the program's own code, with the same callers,
//! and call the same function from it. Two things are counted beside the submitting thread's code: the code that worker
//! processes (of which the trace has only samples) ran while that thread waited for others, and the threads that held
//! the lock of the Python interpreter while it waited for the lock. Both are numbers of samples, not times. Where the submitting
//! thread was blocked, `sleep.rs` says what it waited for and which other threads of its process ran.
//!
//! What this cannot know: code that runs for less than the time between samples, other than as a share; with `n` samples a share
//! is within about 1/√n. Hooks take exact stacks at the end of long waits and at submissions, which have no share of time.
//!
//! Order of calls: [`CodeSamples::new`] indexes the samples of a timeline; [`CodeSamples::code`] then sums up all
//! gaps, and [`CodeSamples::idle`] lists the samples one by one. A gap is a time in which a device is idle between
//! two pieces of work; its parts have a cause each.

mod code_line;
mod idle_code;
mod individual_samples;
mod loading;
mod no_samples;
mod range_pieces;
mod ranges;
mod sleep;

pub use crate::stacks::{CodeFrame, Stacks, line_of, own, text};
pub use crate::waited_for::WaitedFor;
pub use code_line::CodeLine;
pub use idle_code::{
    CauseCode, Code, CodeSource, CodeTime, ExactLine, LockHolder, RanMeanwhile, Sleep, WorkerCode,
    Workers,
};
pub use individual_samples::{IdleCause, IdleSample, SampleRole, StackLine};
pub use loading::{is_loading, loads_data};
pub use no_samples::{lost_stacks, lost_stacks_selection};
pub use range_pieces::{IdleRanges, RangeChain, RangePiece};

use crate::gaps::{Cause, Gap, GapFinder};
use crate::stacks::thread_samples::ThreadSamples;
use crate::stacks::{StackGroup, is_idle_event_loop, waits_for_others};
use gapscope_timeline::host::HostThread;
use gapscope_timeline::intervals::Interval;
use gapscope_timeline::{Timeline, Work};
use gapscope_trace::LossKind;
use gapscope_trace::ids::{ProcessId, StackId};
use gapscope_trace::tables::{SampleSource, Table, ThreadState};
use ranges::CodeRanges;
use sleep::SleepSums;
use std::cmp::Reverse;
use std::collections::{HashMap, HashSet};

/// A cause with fewer samples than this gets no shares for its lines of code.
pub const MIN_SAMPLES_FOR_SHARES: u64 = 10;
/// The greatest distance of a thread's own sample from a worker's sample for which the thread counts as waiting at that time.
const MAX_DISTANCE_NS: i64 = 20_000_000;

/// The gaps whose code is summed up.
#[derive(Clone, Copy)]
pub struct SummedGaps<'a, 't> {
    /// The finder of the gaps.
    pub finder: &'a GapFinder<'t>,
    /// Gaps that lie at least `threshold_ns` in this window are summed up.
    pub window: Interval,
    /// The least time of a gap in the window, in nanoseconds.
    pub threshold_ns: i64,
    /// The gaps whose code is returned for each of them too.
    pub longest: &'a [Gap],
}

/// What tells the code that host threads ran: samples of their stacks, or else the ranges that they were in.
pub enum HostCode<'a> {
    /// The trace has samples.
    Samples(CodeSamples<'a>),
    /// The trace has ranges of the threads that submit work, and no samples.
    Ranges(CodeRanges<'a>),
}

impl<'a> HostCode<'a> {
    /// Returns what the trace of a timeline has; `None` where it has neither samples nor ranges.
    pub fn new(finder: &'a GapFinder) -> Option<HostCode<'a>> {
        let samples = CodeSamples::new(finder.timeline()).map(HostCode::Samples);
        samples.or_else(|| CodeRanges::new(finder).map(HostCode::Ranges))
    }

    /// Returns the code that ran in a gap, the greatest time first.
    pub(crate) fn in_gap(&self, gap: &Gap) -> Vec<CodeTime> {
        match self {
            HostCode::Samples(samples) => samples.in_gap(gap),
            HostCode::Ranges(ranges) => ranges.in_gap(gap),
        }
    }

    /// Sums up the code of gaps.
    pub fn code(&self, gaps: &SummedGaps) -> Code {
        match self {
            HostCode::Samples(samples) => samples.code(gaps),
            HostCode::Ranges(ranges) => ranges.code(gaps),
        }
    }
}

/// The stack samples of one timeline, with the indices that assign samples to idle time.
pub struct CodeSamples<'a> {
    timeline: &'a Timeline<'a>,
    stacks: Stacks<'a>,
    threads: ThreadSamples<'a>,
}

impl<'a> CodeSamples<'a> {
    /// Indexes the samples of a timeline, or returns `None` where the trace has none.
    pub fn new(timeline: &'a Timeline<'a>) -> Option<CodeSamples<'a>> {
        let tables = &timeline.trace.tables;
        (tables.samples.len() > 0).then(|| CodeSamples {
            timeline,
            stacks: Stacks::new(tables),
            threads: ThreadSamples::new(&tables.samples, &timeline.trace.manifest),
        })
    }

    /// Returns the code that ran in a gap as [`crate::gaps::IdleTime::longest`] has it: a time for each cause and
    /// group of stacks, the greatest first. The list is empty where the submission or its thread is not known.
    fn in_gap(&self, gap: &Gap) -> Vec<CodeTime> {
        let Some((thread, until_ns)) = submitter_of_gap(self.timeline, gap) else {
            return Vec::new();
        };
        let mut groups = HashMap::new();
        let parts = gap.parts.iter();
        for part in parts.filter(|part| part.cause != Cause::Recording) {
            let interval = until(part.interval(), until_ns);
            for &row in self.threads.sampled(thread, interval) {
                self.add(part.cause, row, &mut groups);
            }
        }
        let mut code: Vec<CodeTime> = (groups.into_iter())
            .map(|(key, group)| self.time(key.cause, group))
            .collect();
        sort(&mut code);
        code
    }

    /// Sums up the code of gaps.
    pub fn code(&self, gaps: &SummedGaps) -> Code {
        let mut sum = CodeSums::default();
        each_idle_part(gaps.finder, gaps.window, gaps.threshold_ns, |part| {
            self.add_part(part, &mut sum);
        });
        let mut code = sum.into_code(self);
        code.taken_samples = self.threads.taken();
        let losses = self.timeline.trace.manifest.losses.iter();
        let missing = losses.filter(|loss| loss.kind == LossKind::StackSamples);
        code.missing_samples = missing.map(|loss| loss.count).fold(0, u64::saturating_add);
        code.longest = gaps.longest.iter().map(|gap| self.in_gap(gap)).collect();
        code
    }

    /// Adds the samples in a part of idle time to `sum`.
    fn add_part(&self, part: &IdlePart, sum: &mut CodeSums) {
        let &IdlePart {
            thread,
            interval,
            cause,
            ..
        } = part;
        let of_cause = &mut sum.causes[cause as usize];
        of_cause.total_ns = of_cause.total_ns.saturating_add(interval.length_ns());
        for &row in self.threads.sampled(thread, interval) {
            of_cause.add_sample(self.period_ns(row));
            self.add(cause, row, &mut sum.groups);
            self.add_lock(thread, row, &mut sum.locks);
        }
        for &row in self.threads.exact(thread, interval) {
            let sample = row as usize;
            let Some(stack) = self.threads.table.stack.at(sample) else {
                continue;
            };
            let source = self.threads.table.source[sample];
            let key = (cause, source, self.stacks.group(Some(stack)));
            sum.exact.entry(key).or_insert((0, stack)).0 += 1;
        }
        self.add_workers(thread, interval, &mut sum.workers);
        sum.sleeps.add(self, cause, thread, interval);
    }

    /// Returns the time for which a sample stands, 0 where it is not known.
    fn period_ns(&self, row: u32) -> i64 {
        let periods = &self.threads.table.period_ns;
        periods.at(row as usize).unwrap_or(0).max(0)
    }

    /// Returns true where a sample, a row of the table `samples`, found its thread blocked: by the state that the system gave, or, where that
    /// is not known, by a name of its innermost function that says so.
    fn is_blocked(&self, row: u32) -> bool {
        let table = self.threads.table;
        match table.state[row as usize] {
            ThreadState::Blocked => true,
            ThreadState::Running => false,
            _ => (table.stack.at(row as usize))
                .is_some_and(|stack| WaitedFor::by_name(&self.stacks.frames(stack)).is_some()),
        }
    }

    /// Counts a sample, a row of the table `samples`, for its cause and the group of its stack.
    fn add(&self, cause: Cause, row: u32, groups: &mut HashMap<GroupKey, CodeGroup>) {
        let table = self.threads.table;
        let stack = table.stack.at(row as usize);
        let key = GroupKey {
            cause,
            stack_group: self.stacks.group(stack),
        };
        let group = groups.entry(key).or_default();
        group.samples += 1;
        group.represented_ns = group.represented_ns.saturating_add(self.period_ns(row));
        group.blocked += u64::from(self.is_blocked(row));
        *group.stacks.entry(stack).or_default() += 1;
    }

    /// Where a sample of `thread` names the thread that held the interpreter's lock, counts it for that holder, with
    /// the stack that the holder had within two periods of the sample.
    fn add_lock(&self, thread: HostThread, row: u32, locks: &mut HashMap<HostThread, LockSamples>) {
        let table = self.threads.table;
        let Some(holder) = table.gil_holder.at(row as usize) else {
            return;
        };
        let holder = HostThread {
            thread: holder,
            ..thread
        };
        let lock = locks.entry(holder).or_default();
        lock.samples += 1;
        let at_ns = table.time_ns[row as usize];
        let nearest = self
            .threads
            .nearest(holder, at_ns, self.period_ns(row).saturating_mul(2));
        if let Some(stack) = nearest.and_then(|row| table.stack.at(row as usize)) {
            *lock.stacks.entry(stack).or_default() += 1;
        }
    }

    /// Counts each sample of workers in `interval` once, if `thread` waited for others at that time.
    fn add_workers(&self, thread: HostThread, interval: Interval, found: &mut WorkerSums) {
        let table = self.threads.table;
        for &row in self.threads.workers(interval) {
            // Two devices may idle at the same time.
            if self.waits_at(thread, row) && found.rows.insert(row) {
                found.processes.insert(table.process[row as usize]);
                if let Some(stack) = table.stack.at(row as usize) {
                    let key = self.stacks.group(Some(stack));
                    found.groups.entry(key).or_insert((0, stack)).0 += 1;
                }
            }
        }
    }

    /// Returns true where a thread waited for others when a worker was sampled.
    fn waits_at(&self, thread: HostThread, worker: u32) -> bool {
        let table = self.threads.table;
        let at_ns = table.time_ns[worker as usize];
        let waiting = self.threads.nearest(thread, at_ns, MAX_DISTANCE_NS);
        waiting
            .and_then(|row| table.stack.at(row as usize))
            .is_some_and(|stack| {
                let rows = self.stacks.frame_rows(stack);
                waits_for_others(&rows.map(|row| self.stacks.frame(row)).collect::<Vec<_>>())
            })
    }

    /// Describes a group by the stack that most of its samples have.
    fn time(&self, cause: Cause, group: CodeGroup) -> CodeTime {
        let most = most(&group.stacks).and_then(|stack| stack.map(|id| self.stacks.frames(id)));
        let frames = most.unwrap_or_default();
        CodeTime {
            cause,
            total_ns: group.represented_ns,
            samples: group.samples,
            blocked: group.blocked,
            is_idle_event_loop: is_idle_event_loop(&frames),
            frames,
        }
    }
}

/// Returns the thread that submitted work, and the end of the submission call; `None` where the submission or its thread
/// is not known.
fn submitter(timeline: &Timeline, work: &Work) -> Option<(HostThread, i64)> {
    let table = &timeline.trace.tables.submissions;
    let row = timeline.submission_of(work) as usize;
    let process = *table.process.get(row)?;
    let thread = HostThread::from_row(process, table.thread.at(row))?;
    Some((thread, table.end_ns(row)))
}

/// Returns the thread that submitted the work after a gap, and the end of the submission call; `None` where the
/// submission or its thread is not known.
fn submitter_of_gap(timeline: &Timeline, gap: &Gap) -> Option<(HostThread, i64)> {
    let table = &timeline.trace.tables.submissions;
    let id = gap.submission?;
    let row = table.id.iter().position(|row| *row == id)?;
    let thread = HostThread::from_row(gap.process_id?, gap.thread)?;
    Some((thread, table.end_ns(row)))
}

/// A part of the idle time of a device, for which the code of the submitting thread is looked at.
struct IdlePart<'a> {
    /// The index of the device.
    device: usize,
    /// The thread that submitted the work after the gap.
    thread: HostThread,
    /// The part, up to the end of the submission.
    interval: Interval,
    cause: Cause,
    /// The work that ended the gap.
    after: &'a Work,
}

/// Visits the parts of the gaps that lie at least `threshold_ns` in `window`, device after device. Gaps are left out where
/// the thread that submitted the work after them is not known.
fn each_idle_part(
    finder: &GapFinder,
    window: Interval,
    threshold_ns: i64,
    mut visit: impl FnMut(&IdlePart),
) {
    let timeline = finder.timeline();
    for device in 0..timeline.gpus.len() {
        finder.each_between(device, |gap, [_, after], parts| {
            let inside = gap.intersection(window);
            if inside.length_ns() < threshold_ns.max(1) {
                return;
            }
            let Some((thread, until_ns)) = submitter(timeline, after) else {
                return;
            };
            // While the thread waits for gapscope, its code is not the program's.
            for part in parts.iter().filter(|part| part.cause != Cause::Recording) {
                let interval = until(part.interval(), until_ns).intersection(inside);
                if !interval.is_empty() {
                    visit(&IdlePart {
                        device,
                        thread,
                        interval,
                        cause: part.cause,
                        after,
                    });
                }
            }
        });
    }
}

/// The window and the threshold of all gaps.
const ALL_GAPS: (Interval, i64) = (
    Interval {
        start_ns: i64::MIN,
        end_ns: i64::MAX,
    },
    0,
);

/// Returns the part of `part` before `end_ns`, the end of the submission: later samples do not explain the wait.
fn until(part: Interval, end_ns: i64) -> Interval {
    Interval::new(part.start_ns, part.end_ns.min(end_ns))
}

/// What samples of code count together: those of one cause whose stacks belong to one group ([`StackGroup`]).
#[derive(Debug, PartialEq, Eq, Hash)]
struct GroupKey {
    cause: Cause,
    stack_group: StackGroup,
}

/// The samples of one cause whose stacks belong to one group.
#[derive(Debug, Default)]
struct CodeGroup {
    samples: u64,
    /// How many of them found the thread blocked in a system call.
    blocked: u64,
    /// The time that the samples stand for.
    represented_ns: i64,
    /// How many samples each stack has; `None` is a stack that could not be read.
    stacks: HashMap<Option<StackId>, u64>,
}

/// The sums over all samples of one cause.
#[derive(Debug, Default, Clone, Copy)]
struct CauseSum {
    /// The idle time of the cause that belongs to a submitting thread, with samples or without.
    total_ns: i64,
    samples: u64,
    represented_ns: i64,
}

impl CauseSum {
    /// Adds a sample of the submitting thread, which stands for `period_ns`.
    fn add_sample(&mut self, period_ns: i64) {
        self.samples += 1;
        self.represented_ns = self.represented_ns.saturating_add(period_ns);
    }
}

/// The samples in which a thread held the interpreter's lock while a submitting thread waited for the lock.
#[derive(Debug, Default)]
struct LockSamples {
    samples: u64,
    stacks: HashMap<StackId, u64>,
}

/// The samples of worker processes that were taken while a submitting thread waited for others.
#[derive(Debug, Default)]
struct WorkerSums {
    /// The rows of the samples, so that each counts once.
    rows: HashSet<u32>,
    processes: HashSet<ProcessId>,
    /// The number of samples of each group, and one of their stacks.
    groups: HashMap<StackGroup, (u64, StackId)>,
}

/// Sums over the samples in gaps. It is turned into the findings by `into_code`.
#[derive(Debug, Default)]
struct CodeSums {
    causes: [CauseSum; Cause::ALL.len()],
    groups: HashMap<GroupKey, CodeGroup>,
    /// The hooks' samples: how many there are, and one stack of them.
    exact: HashMap<(Cause, SampleSource, StackGroup), (u64, StackId)>,
    /// By the thread that held the interpreter's lock.
    locks: HashMap<HostThread, LockSamples>,
    workers: WorkerSums,
    sleeps: SleepSums,
}

impl CodeSums {
    fn into_code(self, samples: &CodeSamples) -> Code {
        let mut by_cause: HashMap<Cause, Vec<CodeTime>> = HashMap::new();
        for (key, group) in self.groups {
            let time = samples.time(key.cause, group);
            by_cause.entry(key.cause).or_default().push(time);
        }
        let mut exact: HashMap<Cause, Vec<ExactLine>> = HashMap::new();
        for ((cause, source, _), (count, stack)) in self.exact {
            exact.entry(cause).or_default().push(ExactLine {
                source,
                count,
                frames: samples.stacks.frames(stack),
            });
        }
        let mut causes: Vec<CauseCode> = (Cause::ALL.into_iter().zip(self.causes))
            .filter(|(_, sum)| sum.total_ns > 0)
            .map(|(cause, sum)| {
                let mut code = by_cause.remove(&cause).unwrap_or_default();
                let covered_ns = scale(&mut code, &sum);
                sort(&mut code);
                let mut exact = exact.remove(&cause).unwrap_or_default();
                exact.sort_by_cached_key(|line| (Reverse(line.count), text(&line.frames)));
                CauseCode {
                    cause,
                    source: CodeSource::Samples,
                    total_ns: sum.total_ns,
                    without_samples_ns: sum.total_ns - covered_ns,
                    samples: sum.samples,
                    code,
                    exact,
                    sleeps: self.sleeps.of_cause(cause),
                }
            })
            .collect();
        causes.sort_by_key(|cause| Reverse(cause.total_ns));
        Code {
            samples: causes.iter().map(|cause| cause.samples).sum(),
            causes,
            longest: Vec::new(),
            taken_samples: 0,
            missing_samples: 0,
            workers: self.workers.describe(samples),
            gil: holders(self.locks, samples),
            ran_meanwhile: self.sleeps.ran(samples),
        }
    }
}

/// Splits the time of a cause among stacks, and returns the part that samples stand for.
///
/// A sample stands for its period, so that the samples of a thread that is sampled throughout sum to the time within about 1/√n
/// of it. Where they do within three times that, all of the time is theirs. Where they fall short of it, samples are missing, and
/// their part of the time stays without code.
fn scale(code: &mut [CodeTime], sum: &CauseSum) -> i64 {
    let covered_ns = covered_ns(sum);
    if covered_ns == 0 {
        return 0;
    }
    let represented_ns = sum.represented_ns as f64;
    let mut left_ns = covered_ns;
    let last = code.len().saturating_sub(1);
    for (at, time) in code.iter_mut().enumerate() {
        let share = time.total_ns as f64 / represented_ns;
        time.total_ns = match at == last {
            true => left_ns,
            false => ((covered_ns as f64 * share).round() as i64).clamp(0, left_ns),
        };
        left_ns -= time.total_ns;
    }
    covered_ns
}

/// Returns the part of a cause's time that its samples stand for.
fn covered_ns(sum: &CauseSum) -> i64 {
    let (total_ns, represented_ns) = (sum.total_ns as f64, sum.represented_ns as f64);
    if represented_ns <= 0.0 {
        return 0;
    }
    let chance = 3.0 / (sum.samples as f64).sqrt();
    let covers_all = represented_ns >= total_ns * (1.0 - chance).max(0.0);
    match covers_all && sum.samples >= MIN_SAMPLES_FOR_SHARES {
        true => sum.total_ns,
        false => sum.represented_ns.min(sum.total_ns),
    }
}

impl WorkerSums {
    fn describe(self, samples: &CodeSamples) -> Option<Workers> {
        let mut code: Vec<WorkerCode> = (self.groups.into_values())
            .map(|(count, stack)| WorkerCode {
                samples: count,
                frames: samples.stacks.frames(stack),
            })
            .collect();
        code.sort_by_cached_key(|code| (Reverse(code.samples), text(&code.frames)));
        (!self.rows.is_empty()).then_some(Workers {
            processes: self.processes.len() as u64,
            samples: self.rows.len() as u64,
            code,
        })
    }
}

/// Describes the threads that held the interpreter's lock, those with the most samples first.
fn holders(locks: HashMap<HostThread, LockSamples>, samples: &CodeSamples) -> Vec<LockHolder> {
    let manifest = &samples.timeline.trace.manifest;
    let mut holders: Vec<LockHolder> = (locks.into_iter())
        .map(|(holder, lock)| LockHolder {
            process_id: holder.process,
            thread: holder.thread,
            thread_name: holder.name(manifest),
            samples: lock.samples,
            frames: most(&lock.stacks)
                .map(|id| samples.stacks.frames(id))
                .unwrap_or_default(),
        })
        .collect();
    holders.sort_by_key(|holder| (Reverse(holder.samples), holder.thread));
    holders
}

/// Returns the key with the greatest count. Of several such keys the result is the least.
fn most<T: Copy + Ord>(counts: &HashMap<T, u64>) -> Option<T> {
    let counts = counts.iter().map(|(id, count)| (*count, Reverse(*id)));
    counts.max().map(|(_, Reverse(id))| id)
}

/// Sorts by time, then by samples, the greatest first, then by text.
fn sort(code: &mut [CodeTime]) {
    code.sort_by_cached_key(|code| {
        let order = (Reverse(code.total_ns), Reverse(code.samples));
        (order, text(&code.frames))
    });
}

#[cfg(test)]
mod tests;
