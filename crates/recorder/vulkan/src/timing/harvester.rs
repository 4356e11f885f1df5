//! The thread that collects the results of a device's pending instances.

use crate::handles::lock;
use crate::recorder::Recorder;
use crate::timing::brackets::Brackets;
use crate::timing::clock::Clock;
use crate::timing::pending::{Pending, PendingInstances, TimeSource};
use crate::timing::queries::Queries;
use crate::timing::recording::Timing;
use gapscope_spool::event::{NO_TICKS, Outcome, VulkanEvent};
use gapscope_spool::{hook, ids, monotonic_ns};
use std::sync::atomic::{AtomicBool, AtomicI64, Ordering::Relaxed};
use std::sync::{Arc, Mutex};
use std::thread::JoinHandle;
use std::time::Duration;

/// How often results are looked for while work is pending.
const INTERVAL: Duration = Duration::from_millis(4);
/// Rounds without pending work after which the thread sleeps until it is woken.
const IDLE_ROUNDS: u32 = 25;
/// Instances that the program's own thread collects at most after a wait, and their queries; the rest is left to our
/// thread.
const SMALL_HARVEST: usize = 8;
const SMALL_QUERIES: u32 = 256;
/// The program's own thread looks at most this often: to ask a driver costs a microsecond, and a look every 250 µs made
/// llama.cpp 7 % slower on an H200.
const LOOK_NS: i64 = INTERVAL.as_nanos() as i64;

/// Collects the results of a device, and samples its clock meanwhile.
pub struct Harvester {
    recorder: &'static Recorder,
    clock: &'static Clock,
    queries: &'static Queries,
    brackets: &'static Brackets,
    pending: PendingInstances,
    /// Held from when an instance is taken until its results have been read and written.
    writing: Mutex<Vec<u64>>,
    thread: Mutex<Option<JoinHandle<()>>>,
    /// The device is lost: its results never come.
    lost: AtomicBool,
    stop: AtomicBool,
    idle: AtomicBool,
    /// When the program's thread last looked.
    looked_ns: AtomicI64,
}

impl Harvester {
    pub fn new(
        recorder: &'static Recorder,
        clock: &'static Clock,
        queries: &'static Queries,
        brackets: &'static Brackets,
    ) -> Harvester {
        Harvester {
            recorder,
            clock,
            queries,
            brackets,
            pending: PendingInstances::default(),
            writing: Mutex::default(),
            thread: Mutex::default(),
            lost: AtomicBool::new(false),
            stop: AtomicBool::new(false),
            idle: AtomicBool::new(false),
            looked_ns: AtomicI64::new(0),
        }
    }

    /// Adds the instances of a submission that has reached its queue.
    pub fn add(&'static self, queue: ids::Queue, instances: impl Iterator<Item = Pending>) {
        self.pending.add(queue, instances);
        if self.idle.swap(false, Relaxed)
            && let Some(thread) = &*lock(&self.thread)
        {
            thread.thread().unpark();
        }
        self.start();
    }

    fn start(&'static self) {
        let Ok(mut thread) = self.thread.try_lock() else {
            return;
        };
        if thread.is_some() || self.stop.load(Relaxed) {
            return;
        }
        *thread = hook::spawn(move || self.watch()).ok();
    }

    fn watch(&self) {
        self.clock.sample();
        let mut idle_rounds = 0;
        while !self.stop.load(Relaxed) {
            let collected = self.harvest();
            self.queries.reset_used();
            if collected > 0 || !self.pending.is_empty() {
                idle_rounds = 0;
            } else {
                idle_rounds += 1;
            }
            if idle_rounds > IDLE_ROUNDS {
                self.clock.sample();
                self.idle.store(true, Relaxed);
                // A wake-up that comes before this line is not lost: it leaves a token.
                if self.pending.is_empty() {
                    std::thread::park();
                    self.clock.sample();
                }
                idle_rounds = 0;
            } else {
                std::thread::sleep(INTERVAL);
            }
        }
    }

    /// Collects instances that have finished, on the program's thread: only a few, rarely, and only while nobody else
    /// does. A process that is killed loses what has finished since.
    pub fn harvest_small(&self) {
        let now_ns = monotonic_ns();
        if now_ns < self.looked_ns.load(Relaxed) + LOOK_NS {
            return;
        }
        self.looked_ns.store(now_ns, Relaxed);
        for _ in 0..SMALL_HARVEST {
            let Ok(mut scratch) = self.writing.try_lock() else {
                break;
            };
            if !self.harvest_one(&mut scratch, SMALL_QUERIES) {
                break;
            }
        }
    }

    /// Collects all instances that have finished; how many. The lock is taken anew for each, so that a program that
    /// waits for it waits for one.
    fn harvest(&self) -> usize {
        let mut collected = 0;
        while self.harvest_one(&mut lock(&self.writing), u32::MAX) {
            collected += 1;
        }
        if collected > 0 {
            self.clock.sample_if_due();
        }
        collected
    }

    fn harvest_one(&self, scratch: &mut Vec<u64>, most_queries: u32) -> bool {
        if self.is_lost() {
            return false;
        }
        match self.pending.take_finished(most_queries) {
            Some(pending) => {
                self.write(pending, scratch);
                true
            }
            None => false,
        }
    }

    /// Writes what an instance's queries hold, and forgets it.
    fn write(&self, pending: Pending, scratch: &mut Vec<u64>) {
        let seen_ns = monotonic_ns();
        let Pending { instance, times } = pending;
        let mut timestamps = |recording, first_query, ticks: &[u64]| {
            self.recorder.write(&VulkanEvent::Timestamps {
                instance,
                recording,
                first_query,
                ticks: bytemuck::cast_slice(ticks),
            });
        };
        let outcome = match times {
            TimeSource::Inside(timing) => {
                timing.collect(scratch, &mut timestamps);
                Outcome::Timed
            }
            TimeSource::Around(bracket, inside) => {
                let mut pair = [NO_TICKS; 2];
                bracket.timing.collect(scratch, &mut |_, _, ticks| {
                    for (to, from) in pair.iter_mut().zip(ticks) {
                        *to = *from;
                    }
                });
                self.brackets.give_back(bracket);
                if !inside.is_some_and(|inside| inside.end_overlapping(scratch, &mut timestamps)) {
                    let [begin_ticks, end_ticks] = pair;
                    self.recorder.write(&VulkanEvent::Bracket {
                        instance,
                        begin_ticks,
                        end_ticks,
                    });
                }
                Outcome::Timed
            }
            TimeSource::None(outcome) => outcome,
        };
        self.recorder.write(&VulkanEvent::InstanceEnd {
            instance,
            outcome,
            seen_ns,
        });
    }

    /// Collects all instances that have finished, and both clocks; true when none is pending any more.
    pub fn flush(&self) -> bool {
        if self.harvest() > 0 {
            self.clock.sample();
        }
        // Whoever took an instance has written it when the lock is free.
        drop(lock(&self.writing));
        self.pending.is_empty()
    }

    /// A recording is about to be submitted again, so its earlier instance has finished: collects that one before its
    /// results are overwritten.
    pub fn settle(&self, timing: &Arc<Timing>) {
        // Another thread may hold it already; then its reading ends before ours starts.
        let Some(mut pending) = self.pending.take_timed_by(timing) else {
            drop(lock(&self.writing));
            return;
        };
        if !pending.times.has_arrived() {
            pending.times = TimeSource::None(Outcome::NotSeen);
        }
        let mut scratch = lock(&self.writing);
        self.write(pending, &mut scratch);
    }

    pub fn is_lost(&self) -> bool {
        self.lost.load(Relaxed)
    }

    /// The device is lost: gives up what is pending. True the first time.
    pub fn lose(&self) -> bool {
        let first = !self.lost.swap(true, Relaxed);
        if first {
            self.abandon();
        }
        first
    }

    /// Gives up what is pending; how many instances.
    pub fn abandon(&self) -> usize {
        let outcome = if self.is_lost() {
            Outcome::DeviceLost
        } else {
            Outcome::NotSeen
        };
        let left = self.pending.take_all();
        let count = left.len();
        for pending in left {
            let seen_ns = monotonic_ns();
            self.recorder.write(&VulkanEvent::InstanceEnd {
                instance: pending.instance,
                outcome,
                seen_ns,
            });
            // Its queries may still be written: they are not used again.
            std::mem::forget(pending.times);
        }
        count
    }

    /// Ends the thread and collects what has finished.
    pub fn stop(&self) {
        self.stop.store(true, Relaxed);
        if let Some(thread) = lock(&self.thread).take() {
            thread.thread().unpark();
            let _ = thread.join();
        }
        self.harvest();
    }

    /// Ends the thread and collects what has finished, but does not wait long: the process is exiting, and the thread
    /// may be waiting for a driver that waits for us.
    pub fn stop_at_exit(&self) {
        self.stop.store(true, Relaxed);
        let ended = || match self.thread.try_lock() {
            Ok(thread) => thread.as_ref().is_none_or(|thread| {
                thread.thread().unpark();
                thread.is_finished()
            }),
            Err(_) => false,
        };
        for _ in 0..50 {
            if ended() {
                self.harvest();
                return;
            }
            std::thread::sleep(Duration::from_millis(1));
        }
    }
}
