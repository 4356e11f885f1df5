//! The sampling thread: takes orders (threads to follow) from its owner, decides which processes to sample and when,
//! and sends messages (samples, stacks, losses) back. [`run`] does rounds, one for each sample of all threads, until
//! the owner ends it.

use crate::messages::{Shared, Update};
use crate::pace::{Delay, OwnTimes, Pace};
use crate::priority;
use crate::process::{Process, SampleOutcome, SamplerState, is_refused};
use crate::procfs::{Proc, TurnsFile, now_ns, worked_ns};
use crate::throttling::Throttling;
use crate::workers::Workers;
use std::collections::{BTreeMap, HashSet};
use std::path::PathBuf;
use std::sync::atomic::Ordering::Relaxed;
use std::time::Duration;

/// How often processes are checked for being still the same, and losses are sent.
const CHECK_EVERY_NS: i64 = 1_000_000_000;
/// A wait for a turn that is this long may be one for a quota: shorter ones cost no sample.
const LONG_WAIT_NS: i64 = 1_000_000;
/// The sleep without an order.
const IDLE_SLEEP: Duration = Duration::from_secs(3600);

/// How samples are taken.
#[derive(Debug, Clone)]
pub struct Options {
    /// Samples a second of each followed thread. Fewer are taken where they would cost more than a twentieth of a core.
    pub rate_hz: u32,
    /// The folder that holds `proc`: `/`, except in tests.
    pub root: PathBuf,
}

impl Default for Options {
    fn default() -> Options {
        Options {
            rate_hz: 500,
            root: PathBuf::from("/"),
        }
    }
}

/// The state of the sampling thread.
struct Sampler<'a> {
    proc: Proc,
    shared: &'a Shared,
    state: SamplerState,
    /// The processes that are sampled, by their numbers.
    processes: BTreeMap<u32, Process>,
    /// The processes of all orders so far.
    followed: HashSet<u32>,
    /// Processes whose memory may not be read.
    refused: HashSet<u32>,
    workers: Workers,
    pace: Pace,
    /// The turns of the sampling thread itself.
    own_turns: TurnsFile,
    throttling: Throttling,
    /// The time for which this thread had waited for its turns at the last round.
    waited_ns: i64,
    /// The time of the last check of the processes.
    checked_ns: i64,
}

/// Takes samples until the owner ends the thread.
pub fn run(options: &Options, shared: &Shared) {
    priority::wake_soon();
    let mut sampler = Sampler {
        proc: Proc(options.root.join("proc")),
        shared,
        state: SamplerState::default(),
        processes: BTreeMap::new(),
        followed: HashSet::new(),
        refused: HashSet::new(),
        workers: Workers::default(),
        pace: Pace::new(options.rate_hz),
        own_turns: TurnsFile::open(&options.root.join("proc/thread-self")),
        throttling: Throttling::find(&options.root),
        waited_ns: 0,
        checked_ns: now_ns(),
    };
    sampler.run();
    sampler.rest();
    sampler.state.report_dropped();
    sampler.send();
}

impl Sampler<'_> {
    /// Does rounds until the owner ends the thread.
    fn run(&mut self) {
        let mut next_ns = now_ns();
        while !self.shared.ended.load(Relaxed) {
            self.take_orders();
            if self.shared.paused.load(Relaxed) || self.processes.is_empty() {
                self.rest();
                self.send();
                // A new order wakes this thread.
                std::thread::park_timeout(IDLE_SLEEP);
                next_ns = now_ns();
                continue;
            }
            let now = now_ns();
            if now < next_ns {
                std::thread::park_timeout(Duration::from_nanos((next_ns - now) as u64));
                continue;
            }
            self.round(now);
            // Late samples are not made up for: they would come at once, and mostly where something else is slow. What a thread did
            // meanwhile is known where it did not run; otherwise the missing samples are counted as lost.
            next_ns = now.max(next_ns) + self.pace.next().as_nanos() as i64;
            next_ns = next_ns.max(now_ns());
        }
    }

    /// Samples all threads once, then workers (descendants that run Python) of waiting processes; sends the messages.
    fn round(&mut self, now: i64) {
        let turns = self.own_turns.read().unwrap_or_default();
        self.state.delay = self.pace.tick(OwnTimes {
            now_ns: now,
            worked_ns: worked_ns(),
            waited_ns: turns.waited_ns,
        });
        let waited_ns = turns.waited_ns - std::mem::replace(&mut self.waited_ns, turns.waited_ns);
        // Such waits are rare on a machine with free processors, so that the files are hardly ever read.
        if self.state.delay == Delay::BusyProcessors
            && waited_ns >= LONG_WAIT_NS
            && 2 * self.throttling.since_last() > waited_ns
        {
            self.state.delay = Delay::Quota;
        }
        if now - self.checked_ns >= CHECK_EVERY_NS {
            self.checked_ns = now;
            self.throttling.since_last();
            let state = &mut self.state;
            self.processes.retain(|_, process| process.is_alive(state));
            self.state.report_dropped();
        }
        let period_ns = self.pace.period_ns();
        let mut waiting = Vec::new();
        let state = &mut self.state;
        let mut refused = Vec::new();
        self.processes
            .retain(|pid, process| match process.sample(period_ns, state) {
                SampleOutcome::Taken { is_blocked } => {
                    if is_blocked {
                        waiting.push(*pid);
                    }
                    true
                }
                SampleOutcome::Ended => false,
                SampleOutcome::Refused => {
                    refused.push(*pid);
                    false
                }
            });
        for pid in refused {
            self.report_refusal(pid);
        }
        let slowdown = self.pace.slowdown();
        self.workers.sample(
            &self.proc,
            &waiting,
            &self.followed,
            slowdown,
            &mut self.state,
        );
        self.send();
    }

    /// Follows the threads that the owner has asked for since the last call.
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
            // A process or thread that has ended has no more stacks.
            let Some(mut process) = process else { continue };
            match process.follow(thread) {
                Err(error) if is_refused(&error) => {
                    self.report_refusal(pid);
                    continue;
                }
                Ok(()) | Err(_) => {}
            }
            if process.threads() > 0 {
                self.processes.insert(pid, process);
            }
        }
    }

    /// Sends the reason once why a process is not sampled.
    fn report_refusal(&mut self, pid: u32) {
        // Reading a process that has ended is refused as well.
        if self.proc.start_ticks(pid).is_none() {
            return;
        }
        if self.refused.insert(pid) {
            let reason = self.proc.why_refused(pid);
            self.state.updates.push(Update::no_stacks(
                Some(pid),
                format!("its memory cannot be read: {reason}"),
            ));
        }
    }

    /// Suspends sampling, and sends the samples that wait for the next one.
    fn rest(&mut self) {
        let state = &mut self.state;
        self.processes
            .values_mut()
            .for_each(|process| process.rest(state));
        self.pace.rest();
    }

    /// Hands the messages to the owner.
    fn send(&mut self) {
        if !self.state.updates.is_empty() {
            self.shared.send_all(&mut self.state.updates);
        }
    }
}
