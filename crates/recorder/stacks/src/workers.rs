//! Processes that work for a followed one, such as loaders of data: its descendants that run Python and are not followed themselves.
//! They are looked at only while a followed thread waits.

use crate::heard::Heard;
use crate::process::{Common, Outcome, Process};
use crate::procfs::{Proc, now_ns, start_ns};
use std::collections::{HashMap, HashSet};

/// The time between two samples of a worker.
pub const PERIOD_NS: i64 = 20_000_000;
/// Descendants are looked for at most so often, and at most for a hundredth of the time.
const LOOK_EVERY_NS: i64 = 250_000_000;
const PAUSE_PER_WORK: i64 = 100;
/// More are not looked at.
const MOST_WORKERS: usize = 64;

/// The workers of all followed processes.
#[derive(Default)]
pub struct Workers {
    known: HashMap<u32, Worker>,
    next_look_ns: i64,
    next_ns: i64,
    said_too_many: bool,
}

struct Worker {
    process: Process,
    parent: u32,
    is_said: bool,
}

impl Workers {
    /// A sample of each that works for one of `waiting`, where it is time. `followed`: the processes that are followed.
    pub fn sample(
        &mut self,
        proc: &Proc,
        waiting: &[u32],
        followed: &HashSet<u32>,
        slower: f64,
        common: &mut Common,
    ) {
        let now = now_ns();
        if waiting.is_empty() || now < self.next_ns {
            return;
        }
        let period_ns = (PERIOD_NS as f64 * slower) as i64;
        let jitter = 0.5 + fastrand::f64();
        self.next_ns = now + (period_ns as f64 * jitter) as i64;
        if now >= self.next_look_ns {
            self.look(proc, waiting, followed, common);
            let after = now_ns();
            self.next_look_ns = after + LOOK_EVERY_NS.max((after - now) * PAUSE_PER_WORK);
        }
        self.known.retain(|pid, worker| {
            if followed.contains(pid) {
                return false;
            }
            if !waiting.contains(&worker.parent) || !worker.process.has_python(common) {
                return true;
            }
            if !worker.is_said {
                worker.is_said = true;
                common.heard.push(Heard::Worker {
                    pid: *pid,
                    parent_pid: worker.parent,
                    executable: worker.process.executable().unwrap_or_default().to_owned(),
                    arguments: proc.arguments(*pid),
                    start_ns: start_ns(worker.process.start_ticks()),
                });
            }
            matches!(
                worker.process.sample(period_ns, common),
                Outcome::Taken { .. }
            )
        });
    }

    fn look(&mut self, proc: &Proc, waiting: &[u32], followed: &HashSet<u32>, common: &mut Common) {
        self.known
            .retain(|_, worker| worker.process.is_alive(common));
        for parent in waiting {
            for pid in proc.descendants(*parent, 4 * MOST_WORKERS) {
                if followed.contains(&pid) || self.known.contains_key(&pid) {
                    continue;
                }
                if self.known.len() >= MOST_WORKERS {
                    if !std::mem::replace(&mut self.said_too_many, true) {
                        let reason =
                            "more than 64 worker processes at once: the others were not looked at";
                        common.heard.push(Heard::no_stacks(Some(*parent), reason));
                    }
                    return;
                }
                let Some(mut process) = Process::find(proc, pid, true) else {
                    continue;
                };
                // The main thread has the same number as the process, for itself too.
                let folder = proc.process(pid);
                let name = crate::procfs::inner_number(&folder).unwrap_or(pid);
                if process.follow(name).is_ok() {
                    let worker = Worker {
                        process,
                        parent: *parent,
                        is_said: false,
                    };
                    self.known.insert(pid, worker);
                }
            }
        }
    }
}
