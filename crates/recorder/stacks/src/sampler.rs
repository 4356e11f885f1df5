//! The thread: whom it looks at, and when.

use crate::Options;
use crate::heard::{Heard, Shared};
use crate::pace::Pace;
use crate::priority;
use crate::process::{Common, Outcome, Process, is_refused};
use crate::procfs::{Proc, now_ns, worked_ns};
use crate::workers::Workers;
use std::collections::{BTreeMap, HashSet};
use std::sync::atomic::Ordering::Relaxed;
use std::time::Duration;

/// Processes are asked for whether they are still themselves, and losses said.
const LOOK_AROUND_NS: i64 = 1_000_000_000;
/// Until there is an order.
const LONG: Duration = Duration::from_secs(3600);

struct Sampler<'a> {
    proc: Proc,
    shared: &'a Shared,
    common: Common,
    processes: BTreeMap<u32, Process>,
    followed: HashSet<u32>,
    /// Processes that may not be looked into.
    refused: HashSet<u32>,
    workers: Workers,
    pace: Pace,
    looked_around_ns: i64,
}

/// Takes samples until it is told to end.
pub fn run(options: &Options, shared: &Shared) {
    priority::lower();
    let mut sampler = Sampler {
        proc: Proc(options.root.join("proc")),
        shared,
        common: Common::default(),
        processes: BTreeMap::new(),
        followed: HashSet::new(),
        refused: HashSet::new(),
        workers: Workers::default(),
        pace: Pace::new(options.rate_hz),
        looked_around_ns: now_ns(),
    };
    sampler.run();
    sampler.rest();
    sampler.common.say_dropped();
    sampler.say();
}

impl Sampler<'_> {
    fn run(&mut self) {
        let mut next_ns = now_ns();
        while !self.shared.ended.load(Relaxed) {
            self.take_orders();
            if self.shared.paused.load(Relaxed) || self.processes.is_empty() {
                self.rest();
                self.say();
                // Whoever has an order wakes this thread.
                std::thread::park_timeout(LONG);
                next_ns = now_ns();
                continue;
            }
            let now = now_ns();
            if now < next_ns {
                std::thread::park_timeout(Duration::from_nanos((next_ns - now) as u64));
                continue;
            }
            self.round(now);
            // What is late is not made up for: it would come at once, and often where something else is slow.
            next_ns = now.max(next_ns) + self.pace.next().as_nanos() as i64;
            next_ns = next_ns.max(now_ns());
        }
    }

    fn round(&mut self, now: i64) {
        self.pace.tick(now, worked_ns());
        if now - self.looked_around_ns >= LOOK_AROUND_NS {
            self.looked_around_ns = now;
            let common = &mut self.common;
            self.processes.retain(|_, process| process.is_alive(common));
            self.common.say_dropped();
        }
        let period_ns = self.pace.period_ns();
        let mut waiting = Vec::new();
        let common = &mut self.common;
        let mut refused = Vec::new();
        self.processes
            .retain(|pid, process| match process.sample(period_ns, common) {
                Outcome::Taken { is_blocked } => {
                    if is_blocked {
                        waiting.push(*pid);
                    }
                    true
                }
                Outcome::Ended => false,
                Outcome::Refused => {
                    refused.push(*pid);
                    false
                }
            });
        for pid in refused {
            self.refuse(pid);
        }
        let slower = self.pace.slower();
        self.workers.sample(
            &self.proc,
            &waiting,
            &self.followed,
            slower,
            &mut self.common,
        );
        self.say();
    }

    fn take_orders(&mut self) {
        let orders = std::mem::take(&mut *self.shared.orders());
        for (pid, thread) in orders {
            self.followed.insert(pid);
            if self.refused.contains(&pid) {
                continue;
            }
            let process = match self.processes.remove(&pid) {
                Some(process) => Some(process),
                None => Process::find(&self.proc, pid, false),
            };
            // A process or thread that has ended has no more to show.
            let Some(mut process) = process else { continue };
            match process.follow(thread) {
                Err(error) if is_refused(&error) => {
                    self.refuse(pid);
                    continue;
                }
                Ok(()) | Err(_) => {}
            }
            if process.threads() > 0 {
                self.processes.insert(pid, process);
            }
        }
    }

    /// Says once why a process is not looked into.
    fn refuse(&mut self, pid: u32) {
        // What has ended is refused too.
        if self.proc.start_ticks(pid).is_none() {
            return;
        }
        if self.refused.insert(pid) {
            let reason = self.proc.why_refused(pid);
            self.common.heard.push(Heard::no_stacks(
                Some(pid),
                format!("its memory cannot be read: {reason}"),
            ));
        }
    }

    /// No samples for a while: what waits for the next one does not.
    fn rest(&mut self) {
        let common = &mut self.common;
        self.processes
            .values_mut()
            .for_each(|process| process.rest(common));
        self.pace.rest();
    }

    fn say(&mut self) {
        if !self.common.heard.is_empty() {
            self.shared.say_all(&mut self.common.heard);
        }
    }
}
