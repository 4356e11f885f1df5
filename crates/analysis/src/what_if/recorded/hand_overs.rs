//! Finds where one host thread hands over to another and waits for it: between two calls the first is silent, and all that the other
//! does in a burst lies inside. The moments of the threads go in; calls that a hand-over held get the thread that held them.
//!
//! Traces do not say which thread woke which, so that these are guesses, unless samples show that the silent thread waited for another
//! one while the other was at work. They are made only where nearly all bursts of the other thread lie so, and only between threads that
//! submit work or wait for it: another one, such as that of a recorder which reads its buffers now and then, wakes nobody.

use super::{Kind, Recorded};
use crate::gaps::GapFinder;
use crate::stacks::thread_samples::ThreadSamples;
use crate::waited_for::WaitedFor;
use gapscope_timeline::intervals::Interval;
use gapscope_trace::lookup::NONE;
use gapscope_trace::tables::ThreadState;

/// A silence is at least this long.
const MIN_SILENCE_NS: i64 = 50_000;
/// Fewer hand-overs may be chance.
const MIN_COUNT: usize = 5;
/// The share of the other thread's calls, and of the silences in which it did anything, that must fit.
const MIN_SHARE: f64 = 0.8;
/// Fewer samples of a thread say too little.
const MIN_SAMPLES: usize = 10;
/// Of the samples while the other thread is at work, so large a share finds a thread that waits blocked in a wait for another one. Before
/// and after that it may run code of its own.
const MIN_BLOCKED_SHARE: f64 = 0.9;
/// Programs with more threads have other patterns.
const MAX_THREADS: usize = 32;

/// A call of a thread.
#[derive(Debug, Clone, Copy)]
struct CallOf {
    start_ns: i64,
    end_ns: i64,
    /// Its place among the moments.
    moment: usize,
}

/// A call that a hand-over held.
struct Handed {
    /// Its place among the moments.
    moment: usize,
    /// True where the other thread of the pair held it.
    by_other: bool,
    /// The time from the end of that thread's last call.
    after_ns: i64,
    /// The time in which that thread was at work, from its first call to the end of its last one.
    meanwhile: Interval,
}

/// Finds the hand-overs between threads of one process.
pub(super) fn find(recorded: &mut Recorded, finder: &GapFinder) {
    let count = recorded.threads.len();
    if !(2..=MAX_THREADS).contains(&count) {
        return;
    }
    let calls = calls_by_thread(recorded);
    let works = recorded.submits_or_waits(|_| true);
    for first in 0..count {
        for other in 0..count {
            let process = recorded.threads[first].process;
            if first == other || recorded.threads[other].process != process {
                continue;
            }
            if !works[first] || !works[other] {
                continue;
            }
            let found = between(&calls[first], &calls[other]);
            if found.is_empty() {
                continue;
            }
            let is_seen = [false, true].map(|by_other| {
                let handed = found.iter().filter(|handed| handed.by_other == by_other);
                waits_for_a_thread(recorded, finder.explainer.samples(), handed)
            });
            for handed in found {
                let by = [first, other][usize::from(handed.by_other)];
                if let Kind::Call(call) = &mut recorded.moments[handed.moment].kind {
                    call.handed_by = by as u32;
                    call.handed_ns = handed.after_ns;
                    call.handed_is_seen = is_seen[usize::from(handed.by_other)];
                }
            }
        }
    }
    let calls = recorded.calls();
    let handed = calls.filter(|call| call.handed_by != NONE);
    let seen: Vec<bool> = handed.map(|call| call.handed_is_seen).collect();
    let facts = &mut recorded.facts;
    facts.hand_overs = seen.len() as u64;
    facts.guessed_hand_overs = seen.iter().filter(|is_seen| !**is_seen).count() as u64;
    facts.guessed += facts.guessed_hand_overs;
    facts.recorded += facts.hand_overs - facts.guessed_hand_overs;
}

/// Returns true where samples show that the thread of these calls waited for another one, while that one was at work.
fn waits_for_a_thread<'h>(
    recorded: &Recorded,
    samples: &ThreadSamples,
    handed: impl Iterator<Item = &'h Handed>,
) -> bool {
    let table = samples.table;
    let (mut all, mut blocked) = (0, 0);
    for handed in handed {
        let moment = &recorded.moments[handed.moment];
        let Kind::Call(call) = &moment.kind else {
            continue;
        };
        let rows = samples.sampled(recorded.threads[call.thread as usize], handed.meanwhile);
        let waits = |row: &&u32| {
            let row = **row as usize;
            let system_call = table.system_call[row].as_deref();
            table.state[row] == ThreadState::Blocked
                && WaitedFor::new(system_call, &[]) == WaitedFor::Thread
        };
        all += rows.len();
        blocked += rows.iter().filter(waits).count();
    }
    all >= MIN_SAMPLES && blocked as f64 >= MIN_BLOCKED_SHARE * all as f64
}

fn calls_by_thread(recorded: &Recorded) -> Vec<Vec<CallOf>> {
    let mut calls: Vec<Vec<CallOf>> = vec![Vec::new(); recorded.threads.len()];
    for (moment, at) in recorded.moments.iter().zip(0..) {
        match &moment.kind {
            Kind::Call(call) => calls[call.thread as usize].push(CallOf {
                start_ns: moment.at_ns,
                end_ns: moment.at_ns + call.length_ns,
                moment: at,
            }),
            Kind::Return(wait) => {
                if let Some(last) = calls[wait.thread as usize].last_mut() {
                    last.end_ns = last.end_ns.max(moment.at_ns);
                }
            }
            Kind::Submission(_) | Kind::Work(_) | Kind::Leave(_) => {}
        }
    }
    calls
}

/// Returns the calls of two threads that a hand-over held.
fn between(first: &[CallOf], other: &[CallOf]) -> Vec<Handed> {
    let (mut found, mut bursts, mut within) = (Vec::new(), 0, 0);
    for pair in first.windows(2) {
        let (before, after) = (pair[0], pair[1]);
        if after.start_ns - before.end_ns < MIN_SILENCE_NS {
            continue;
        }
        let from = other.partition_point(|call| call.start_ns < before.end_ns);
        let until = other.partition_point(|call| call.start_ns < after.start_ns);
        if from == until {
            continue;
        }
        bursts += 1;
        let is_inside = other[until - 1].end_ns <= after.start_ns;
        let is_apart = from == 0 || other[from - 1].end_ns <= before.end_ns;
        if is_inside && is_apart {
            let since_ns = from.checked_sub(1).map_or(i64::MIN, |at| other[at].end_ns);
            let begun = first.partition_point(|call| call.start_ns < since_ns);
            found.push(Handed {
                moment: other[from].moment,
                by_other: false,
                after_ns: other[from].start_ns - before.end_ns,
                meanwhile: Interval::new(first[begun].start_ns.min(before.start_ns), before.end_ns),
            });
            found.push(Handed {
                moment: after.moment,
                by_other: true,
                after_ns: after.start_ns - other[until - 1].end_ns,
                meanwhile: Interval::new(other[from].start_ns, other[until - 1].end_ns),
            });
            within += until - from;
        }
    }
    let enough = |part: usize, of: usize| part as f64 >= MIN_SHARE * of as f64;
    let count = found.len() / 2;
    match count >= MIN_COUNT && enough(within, other.len()) && enough(count, bursts) {
        true => found,
        false => Vec::new(),
    }
}
