//! Runs the thread that collects the results of pending instances (submitted executions whose times have not been
//! read) and writes them as events. Threads of the program that have waited for the GPU collect, too.
//!
//! [`Harvester::add`] takes each submission and starts or wakes the thread; [`Harvester::stop`], then
//! [`Harvester::abandon`], end the work of a device.

use crate::handles::lock;
use crate::recorder::Recorder;
use crate::timing::brackets::Brackets;
use crate::timing::clock::Clock;
use crate::timing::command_recording::Timing;
use crate::timing::overhead_budget::OverheadBudget;
use crate::timing::pending::{PendingInstance, PendingInstances, TimeSource};
use crate::timing::queries::Queries;
use gapscope_spool::event::{NO_TICKS, Outcome, VulkanEvent};
use gapscope_spool::{hook, ids, monotonic_ns};
use std::sync::atomic::{AtomicBool, Ordering::Relaxed};
use std::sync::{Arc, Mutex, MutexGuard, TryLockError};
use std::thread::JoinHandle;
use std::time::Duration;

/// The time between two looks for results while work is pending.
const COLLECTION_INTERVAL: Duration = Duration::from_millis(4);
/// Rounds without pending work after which the thread sleeps until it is woken.
const IDLE_ROUNDS: u32 = 25;
/// The approximate time that a query takes to be read and written. An instance that would take more than the budget is
/// left to the layer's thread.
const NS_PER_QUERY: i64 = 20;
/// The longest time that the program's thread waits for the layer's thread, which holds its lock while it writes
/// one instance.
const MAX_LOCK_WAIT_NS: i64 = 20_000;

/// Collects the results of a device, and samples its clock meanwhile.
pub struct Harvester {
    recorder: &'static Recorder,
    clock: &'static Clock,
    queries: &'static Queries,
    /// Pairs of timestamps around command buffers that may run twice at once; each is given back once it is read.
    brackets: &'static Brackets,
    pending: PendingInstances,
    /// Held from when an instance is taken until its results have been read and written. It guards memory for ticks
    /// that is reused for each chunk of queries (`scratch` below).
    writing: Mutex<Vec<u64>>,
    thread: Mutex<Option<JoinHandle<()>>>,
    /// Whether the device is lost, so that its results never come.
    lost: AtomicBool,
    /// Whether the thread is to end.
    stop: AtomicBool,
    /// Whether the thread sleeps until it is woken.
    idle: AtomicBool,
    /// The time that the program's threads may spend on collecting.
    budget: OverheadBudget,
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
            budget: OverheadBudget::default(),
        }
    }

    /// Adds the instances of a submission that has reached its queue.
    pub fn add(&'static self, queue: ids::Queue, instances: impl Iterator<Item = PendingInstance>) {
        self.pending.add(queue, instances);
        if self.idle.swap(false, Relaxed)
            && let Some(thread) = &*lock(&self.thread)
        {
            thread.thread().unpark();
        }
        self.start();
    }

    /// Starts the thread unless it runs or is to end. A device does so when it is made: the program may then set a
    /// filter of system calls that ends whoever starts a thread.
    pub fn start(&'static self) {
        let Ok(mut thread) = self.thread.try_lock() else {
            return;
        };
        if thread.is_some() || self.stop.load(Relaxed) {
            return;
        }
        *thread = hook::spawn(move || self.watch()).ok();
    }

    /// Runs on the layer's thread until it is to end: collects, resets queries for reuse, and sleeps between rounds.
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
                // A wake-up that comes before this line is not lost, as it leaves a token.
                if self.pending.is_empty() {
                    std::thread::park();
                    self.clock.sample();
                }
                idle_rounds = 0;
            } else {
                std::thread::sleep(COLLECTION_INTERVAL);
            }
        }
    }

    /// Collects instances that have finished, on a thread of the program that has just seen work end: it may end the
    /// process in the next moment, without exit handlers. The call takes no more time than the budget has.
    pub fn harvest_small(&self) {
        let start_ns = monotonic_ns();
        let budget_ns = self.budget.left(start_ns);
        let mut spent_ns = 0;
        while spent_ns < budget_ns {
            let left_ns = budget_ns - spent_ns;
            let Some(mut scratch) = self.lock_within(left_ns.min(MAX_LOCK_WAIT_NS)) else {
                break;
            };
            let most_queries = u32::try_from(left_ns / NS_PER_QUERY).unwrap_or(u32::MAX);
            if !self.harvest_one(&mut scratch, most_queries) {
                break;
            }
            drop(scratch);
            spent_ns = monotonic_ns() - start_ns;
        }
        self.budget.spend(start_ns, monotonic_ns() - start_ns);
    }

    /// Takes the lock of `writing` if its holder frees it within `most_ns`; spins meanwhile.
    fn lock_within(&self, most_ns: i64) -> Option<MutexGuard<'_, Vec<u64>>> {
        let mut until_ns = None;
        loop {
            match self.writing.try_lock() {
                Ok(scratch) => return Some(scratch),
                Err(TryLockError::Poisoned(scratch)) => return Some(scratch.into_inner()),
                Err(TryLockError::WouldBlock) => {}
            }
            let now_ns = monotonic_ns();
            if now_ns > *until_ns.get_or_insert(now_ns + most_ns) {
                return None;
            }
            std::hint::spin_loop();
        }
    }

    /// Collects all instances that have finished, and returns how many. The lock is taken anew for each, so that a
    /// program that waits for it waits for one instance.
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

    /// Collects one instance that has finished and has at most so many queries; returns false where there is none.
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

    /// Writes the times that an instance's queries hold, and forgets the instance.
    fn write(&self, pending: PendingInstance, scratch: &mut Vec<u64>) {
        let seen_ns = monotonic_ns();
        let PendingInstance { instance, times } = pending;
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
                if let Some(counting) = &timing.counting {
                    counting.write(instance);
                }
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

    /// Collects all instances that have finished, and samples both clocks where there were any; returns true when
    /// none is pending any more.
    pub fn flush(&self) -> bool {
        if self.harvest() > 0 {
            self.clock.sample();
        }
        // When the lock is free, each instance that was taken has been written.
        drop(lock(&self.writing));
        self.pending.is_empty()
    }

    /// Collects the earlier instance of a command recording that is about to be submitted again, before its results
    /// are overwritten. That instance has finished; if its results have not arrived all the same, its times are
    /// unknown.
    pub fn settle(&self, timing: &Arc<Timing>) {
        // Another thread may hold the instance already; its reading then ends before this thread's starts.
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

    /// Notes that the device is lost, and gives up the pending instances. Returns true the first time.
    pub fn lose(&self) -> bool {
        let first = !self.lost.swap(true, Relaxed);
        if first {
            self.abandon();
        }
        first
    }

    /// Gives up the pending instances: writes their ends without times, and returns their number.
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
            // The queries may still be written, so they are not used again.
            std::mem::forget(pending.times);
        }
        count
    }

    /// Ends the thread, and collects the instances that have finished.
    pub fn stop(&self) {
        self.stop.store(true, Relaxed);
        if let Some(thread) = lock(&self.thread).take() {
            thread.thread().unpark();
            let _ = thread.join();
        }
        self.harvest();
    }

    /// Ends the thread and collects what has finished, but waits 50 ms at most: the process is exiting, and the
    /// thread may be waiting for a driver that waits for this call.
    pub fn stop_at_exit(&self) {
        self.stop.store(true, Relaxed);
        let ended = || {
            let Ok(mut thread) = self.thread.try_lock() else {
                return false;
            };
            if let Some(running) = &*thread {
                running.thread().unpark();
            }
            // A thread that has finished is joined without a wait.
            if let Some(finished) = thread.take_if(|thread| thread.is_finished()) {
                let _ = finished.join();
            }
            thread.is_none()
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
