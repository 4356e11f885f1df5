//! Worker processes of followed ones (processes whose threads the sampler's owner asked for), such as data loaders:
//! descendants that run Python and are not followed themselves. They are sampled only while a followed thread waits:
//! [`Workers::sample`], in each round.

use crate::messages::Update;
use crate::process::{Process, SampleOutcome, SamplerState};
use crate::procfs::{Proc, now_ns, start_ns};
use std::collections::{HashMap, HashSet};

/// The time between two samples of a worker.
pub const PERIOD_NS: i64 = 20_000_000;
/// Descendants are searched at most this often, and for at most a hundredth of the time.
const LOOK_EVERY_NS: i64 = 250_000_000;
const PAUSE_PER_WORK: i64 = 100;
/// The number of workers beyond which no more are sampled.
const MAX_WORKERS: usize = 64;

/// The workers of all followed processes.
#[derive(Default)]
pub struct Workers {
    /// The workers, by their numbers.
    known: HashMap<u32, Worker>,
    /// The times of the next search for workers and of the next sample.
    next_look_ns: i64,
    next_ns: i64,
    reported_too_many: bool,
}

/// A worker, the followed process that it descends from, and whether it has been reported.
struct Worker {
    process: Process,
    parent: u32,
    is_reported: bool,
}

impl Workers {
    /// Samples each worker of the processes in `waiting` when its time has come. `followed` are the processes that
    /// are followed. The period is `slowdown` times [`PERIOD_NS`].
    pub fn sample(
        &mut self,
        proc: &Proc,
        waiting: &[u32],
        followed: &HashSet<u32>,
        slowdown: f64,
        state: &mut SamplerState,
    ) {
        let now = now_ns();
        if waiting.is_empty() || now < self.next_ns {
            return;
        }
        let period_ns = (PERIOD_NS as f64 * slowdown) as i64;
        let jitter = 0.5 + fastrand::f64();
        self.next_ns = now + (period_ns as f64 * jitter) as i64;
        if now >= self.next_look_ns {
            self.look(proc, waiting, followed, state);
            let after = now_ns();
            self.next_look_ns = after + LOOK_EVERY_NS.max((after - now) * PAUSE_PER_WORK);
        }
        self.known.retain(|pid, worker| {
            if followed.contains(pid) {
                return false;
            }
            if !waiting.contains(&worker.parent) || !worker.process.has_python(state) {
                return true;
            }
            if !worker.is_reported {
                worker.is_reported = true;
                state.updates.push(Update::Worker {
                    pid: *pid,
                    parent_pid: worker.parent,
                    executable: worker.process.executable().unwrap_or_default().to_owned(),
                    arguments: proc.arguments(*pid),
                    start_ns: start_ns(worker.process.start_ticks()),
                });
            }
            matches!(
                worker.process.sample(period_ns, state),
                SampleOutcome::Taken { .. }
            )
        });
    }

    /// Searches the descendants of the processes in `waiting` for new workers, and forgets those that have ended.
    fn look(
        &mut self,
        proc: &Proc,
        waiting: &[u32],
        followed: &HashSet<u32>,
        state: &mut SamplerState,
    ) {
        self.known
            .retain(|_, worker| worker.process.is_alive(state));
        for parent in waiting {
            for pid in proc.descendants(*parent, 4 * MAX_WORKERS) {
                if followed.contains(&pid) || self.known.contains_key(&pid) {
                    continue;
                }
                if self.known.len() >= MAX_WORKERS {
                    if !std::mem::replace(&mut self.reported_too_many, true) {
                        let reason =
                            "more than 64 worker processes at once: the others were not looked at";
                        state.updates.push(Update::no_stacks(Some(*parent), reason));
                    }
                    return;
                }
                let Some(mut process) = Process::find(proc, pid, true) else {
                    continue;
                };
                // The main thread has the number of its process, in the inner namespace too.
                let folder = proc.process(pid);
                let inner = crate::procfs::inner_number(&folder).unwrap_or(pid);
                if process.follow(inner).is_ok() {
                    let worker = Worker {
                        process,
                        parent: *parent,
                        is_reported: false,
                    };
                    self.known.insert(pid, worker);
                }
            }
        }
    }
}
