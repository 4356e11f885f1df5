//! Which code ran while devices were idle: samples of the submitting threads, in the gaps and by cause.
//!
//! A gap has time in which its work had not been submitted, or was being submitted: that time is the submitting thread's, and the
//! samples of the thread in it say what it did. A sample stands for the time between samples as they were then taken
//! (`period_ns`). Where samples cover a cause as well as chance allows, its time is split among stacks by them; what they do
//! not cover, as where none were taken or stacks could not be read, stays without code and is not spread over others.
//!
//! What this cannot know: code that runs for less than the time between samples, other than as a share; with `n` samples a share is
//! within about 1/√n. Hooks take exact stacks at the end of long waits and at submissions; they have no share of time.

mod drawn;
mod found;
mod stacks;
mod threads;

use crate::gaps::{Cause, Gap, GapPart, each_gap_between};
use crate::host::HostThread;
use crate::intervals::Interval;
use crate::timeline::{Timeline, Work};
pub use drawn::{IdleCause, IdleSample, Line, Part};
pub use found::{CauseCode, Code, CodeTime, ExactLine, LockHolder, WorkerCode, Workers};
use gapscope_trace::ids::{ProcessId, StackId};
use gapscope_trace::tables::{SampleSource, Table, ThreadState};
pub use stacks::{CodeFrame, Stacks, own, text, text_with_caller};
use stacks::{ToldBy, is_idle_event_loop, waits_for_others};
use std::collections::{HashMap, HashSet};
use threads::Threads;

/// Below so many samples there are lines, and no shares.
pub const LEAST_SAMPLES: u64 = 10;
/// A wait for workers is one where the waiting thread's own sample is at most so far from theirs.
const MEANWHILE_NS: i64 = 20_000_000;

/// The samples of one timeline.
pub struct Samples<'a> {
    timeline: &'a Timeline<'a>,
    stacks: Stacks<'a>,
    threads: Threads<'a>,
}

impl<'a> Samples<'a> {
    /// `None`: the trace has none.
    pub fn of(timeline: &'a Timeline<'a>) -> Option<Samples<'a>> {
        let tables = &timeline.trace.tables;
        (tables.samples.len() > 0).then(|| Samples {
            timeline,
            stacks: Stacks::of(tables),
            threads: Threads::of(&tables.samples, &timeline.trace.manifest),
        })
    }

    /// The code of a gap, as [`crate::gaps::IdleTime::longest`] has it; the greatest first.
    pub fn in_gap(&self, gap: &Gap) -> Vec<CodeTime> {
        let submitted = gap.submission.and_then(|id| {
            let table = &self.timeline.trace.tables.submissions;
            table.id.iter().position(|row| *row == id)
        });
        let thread = (gap.process_id).and_then(|process| HostThread::of(process, gap.thread));
        let (Some(row), Some(thread)) = (submitted, thread) else {
            return Vec::new();
        };
        let until_ns = self.timeline.trace.tables.submissions.end_ns(row);
        let mut groups = HashMap::new();
        for part in &gap.parts {
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

    /// The code of all gaps in `window` that are at least `threshold_ns` long.
    pub fn code(&self, window: Interval, threshold_ns: i64, longest: &[Gap]) -> Code {
        let mut sum = Sum::default();
        for device in 0..self.timeline.gpus.len() {
            each_gap_between(self.timeline, device, |gap, [_, after], parts| {
                let inside = gap.intersection(window);
                if inside.length_ns() >= threshold_ns.max(1) {
                    self.add_gap(after, inside, parts, &mut sum);
                }
            });
        }
        let mut code = sum.into_code(self);
        code.longest = longest.iter().map(|gap| self.in_gap(gap)).collect();
        code
    }

    fn add_gap(&self, after: &Work, inside: Interval, parts: &[GapPart], sum: &mut Sum) {
        let table = &self.timeline.trace.tables.submissions;
        let row = self.timeline.submission_of(after) as usize;
        let Some(process) = table.process.get(row) else {
            return;
        };
        let Some(thread) = HostThread::of(*process, table.thread.at(row)) else {
            return;
        };
        let until_ns = table.end_ns(row);
        for part in parts {
            let interval = until(part.interval(), until_ns).intersection(inside);
            if interval.is_empty() {
                continue;
            }
            let of_cause = &mut sum.causes[part.cause as usize];
            of_cause.total_ns = of_cause.total_ns.saturating_add(interval.length_ns());
            for &row in self.threads.sampled(thread, interval) {
                of_cause.samples += 1;
                of_cause.represented_ns =
                    of_cause.represented_ns.saturating_add(self.period_ns(row));
                self.add(part.cause, row, &mut sum.groups);
                self.add_lock(thread, row, &mut sum.locks);
            }
            for &row in self.threads.exact(thread, interval) {
                let sample = row as usize;
                let Some(stack) = self.threads.table.stack.at(sample) else {
                    continue;
                };
                let source = self.threads.table.source[sample];
                let key = (part.cause, source, self.stacks.told_by(Some(stack)));
                sum.exact.entry(key).or_insert((0, stack)).0 += 1;
            }
            self.add_workers(thread, interval, &mut sum.workers);
        }
    }

    fn period_ns(&self, row: u32) -> i64 {
        self.threads
            .table
            .period_ns
            .at(row as usize)
            .unwrap_or(0)
            .max(0)
    }

    /// Counts a sample for the stacks that are told as its own is.
    fn add(&self, cause: Cause, row: u32, groups: &mut HashMap<Key, Group>) {
        let table = self.threads.table;
        let stack = table.stack.at(row as usize);
        let key = Key {
            cause,
            told_by: self.stacks.told_by(stack),
        };
        let group = groups.entry(key).or_default();
        group.samples += 1;
        group.represented_ns = group.represented_ns.saturating_add(self.period_ns(row));
        group.blocked += u64::from(table.state[row as usize] == ThreadState::Blocked);
        *group.stacks.entry(stack).or_default() += 1;
    }

    fn add_lock(&self, thread: HostThread, row: u32, locks: &mut HashMap<HostThread, Lock>) {
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

    fn add_workers(&self, thread: HostThread, interval: Interval, found: &mut FoundWorkers) {
        let table = self.threads.table;
        for &row in self.threads.workers(interval) {
            // Two devices may idle at the same time.
            if self.waits_at(thread, row) && found.rows.insert(row) {
                found.processes.insert(table.process[row as usize]);
                if let Some(stack) = table.stack.at(row as usize) {
                    let key = self.stacks.told_by(Some(stack));
                    found.groups.entry(key).or_insert((0, stack)).0 += 1;
                }
            }
        }
    }

    /// Whether a thread waited for others when a worker was sampled.
    fn waits_at(&self, thread: HostThread, worker: u32) -> bool {
        let table = self.threads.table;
        let at_ns = table.time_ns[worker as usize];
        let waiting = self.threads.nearest(thread, at_ns, MEANWHILE_NS);
        waiting
            .and_then(|row| table.stack.at(row as usize))
            .is_some_and(|stack| {
                let rows = self.stacks.frame_rows(stack);
                waits_for_others(&rows.map(|row| self.stacks.frame(row)).collect::<Vec<_>>())
            })
    }

    fn time(&self, cause: Cause, group: Group) -> CodeTime {
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

fn until(part: Interval, end_ns: i64) -> Interval {
    Interval::new(part.start_ns, part.end_ns.min(end_ns))
}

#[derive(Debug, PartialEq, Eq, Hash)]
struct Key {
    cause: Cause,
    told_by: ToldBy,
}

#[derive(Debug, Default)]
struct Group {
    samples: u64,
    blocked: u64,
    /// What these samples stand for.
    represented_ns: i64,
    stacks: HashMap<Option<StackId>, u64>,
}

#[derive(Debug, Default, Clone, Copy)]
struct CauseSum {
    total_ns: i64,
    samples: u64,
    represented_ns: i64,
}

#[derive(Debug, Default)]
struct Lock {
    samples: u64,
    stacks: HashMap<StackId, u64>,
}

#[derive(Debug, Default)]
struct FoundWorkers {
    rows: HashSet<u32>,
    processes: HashSet<ProcessId>,
    groups: HashMap<ToldBy, (u64, StackId)>,
}

#[derive(Debug, Default)]
struct Sum {
    causes: [CauseSum; Cause::ALL.len()],
    groups: HashMap<Key, Group>,
    exact: HashMap<(Cause, SampleSource, ToldBy), (u64, StackId)>,
    locks: HashMap<HostThread, Lock>,
    workers: FoundWorkers,
}

impl Sum {
    fn into_code(self, samples: &Samples) -> Code {
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
                exact.sort_by(|a, b| {
                    let order = b.count.cmp(&a.count);
                    order.then_with(|| text(&a.frames).cmp(&text(&b.frames)))
                });
                CauseCode {
                    cause,
                    total_ns: sum.total_ns,
                    without_samples_ns: sum.total_ns - covered_ns,
                    samples: sum.samples,
                    code,
                    exact,
                }
            })
            .collect();
        causes.sort_by_key(|cause| std::cmp::Reverse(cause.total_ns));
        Code {
            samples: causes.iter().map(|cause| cause.samples).sum(),
            causes,
            longest: Vec::new(),
            workers: self.workers.describe(samples),
            gil: holders(self.locks, samples),
        }
    }
}

/// Splits the time of a cause among stacks. Gives the part that samples stand for.
///
/// A sample stands for its period, so that those of a thread that is sampled throughout sum to the time, give or take 1/√n of it. Where
/// they do within three times that, the time is all theirs; where they fall short of it, samples are missing, and so is
/// their part of the time.
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

/// The part of a cause's time that its samples stand for.
fn covered_ns(sum: &CauseSum) -> i64 {
    let (total_ns, represented_ns) = (sum.total_ns as f64, sum.represented_ns as f64);
    if represented_ns <= 0.0 {
        return 0;
    }
    let chance = 3.0 / (sum.samples as f64).sqrt();
    let covers_all = represented_ns >= total_ns * (1.0 - chance).max(0.0);
    match covers_all && sum.samples >= LEAST_SAMPLES {
        true => sum.total_ns,
        false => sum.represented_ns.min(sum.total_ns),
    }
}

impl FoundWorkers {
    fn describe(self, samples: &Samples) -> Option<Workers> {
        let mut code: Vec<WorkerCode> = (self.groups.into_values())
            .map(|(count, stack)| WorkerCode {
                samples: count,
                frames: samples.stacks.frames(stack),
            })
            .collect();
        code.sort_by(|a, b| {
            let order = b.samples.cmp(&a.samples);
            order.then_with(|| text(&a.frames).cmp(&text(&b.frames)))
        });
        (!self.rows.is_empty()).then_some(Workers {
            processes: self.processes.len() as u64,
            samples: self.rows.len() as u64,
            code,
        })
    }
}

fn holders(locks: HashMap<HostThread, Lock>, samples: &Samples) -> Vec<LockHolder> {
    let threads = &samples.timeline.trace.manifest.threads;
    let mut holders: Vec<LockHolder> = (locks.into_iter())
        .map(|(holder, lock)| LockHolder {
            process_id: holder.process,
            thread: holder.thread,
            thread_name: (threads.iter())
                .find(|t| t.process == holder.process && t.thread == holder.thread)
                .map(|thread| thread.name.clone())
                .filter(|name| !name.is_empty()),
            samples: lock.samples,
            frames: most(&lock.stacks)
                .map(|id| samples.stacks.frames(id))
                .unwrap_or_default(),
        })
        .collect();
    holders.sort_by_key(|holder| (std::cmp::Reverse(holder.samples), holder.thread));
    holders
}

/// What is counted most; of equals the least.
fn most<T: Copy + Ord>(counts: &HashMap<T, u64>) -> Option<T> {
    let most = counts
        .iter()
        .max_by_key(|(id, count)| (**count, std::cmp::Reverse(**id)));
    most.map(|(id, _)| *id)
}

fn sort(code: &mut [CodeTime]) {
    code.sort_by(|a, b| {
        let order = b.total_ns.cmp(&a.total_ns).then(b.samples.cmp(&a.samples));
        order.then_with(|| text(&a.frames).cmp(&text(&b.frames)))
    });
}

#[cfg(test)]
mod tests;
