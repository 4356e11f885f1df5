//! Pending instances, and the thread that collects their results.

use crate::brackets::Bracket;
use crate::device::Device;
use crate::handles::lock;
use crate::timing::Timing;
use gapscope_spool::event::{NO_TICKS, Outcome, VulkanEvent};
use gapscope_spool::hook;
use gapscope_spool::{ids, monotonic_ns};
use std::collections::VecDeque;
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

/// An instance whose results have not been collected.
pub struct Pending {
    pub instance: ids::Instance,
    pub times: Times,
}

/// Where the times of an instance come from.
pub enum Times {
    /// Timestamps inside it.
    Inner(Arc<Timing>),
    /// Around it; inside it as well, if no other instance of the recording is pending with it.
    Bracket(Bracket, Option<Arc<Timing>>),
    /// It has none.
    None(Outcome),
}

impl Times {
    fn timing(&self) -> Option<&Arc<Timing>> {
        match self {
            Times::Inner(timing) => Some(timing),
            Times::Bracket(bracket, _) => Some(&bracket.timing),
            Times::None(_) => None,
        }
    }

    fn queries(&self) -> u32 {
        self.timing().map_or(0, |timing| timing.queries())
    }

    fn arrived(&self) -> bool {
        self.timing().is_none_or(|timing| timing.arrived())
    }
}

/// The pending instances of a device, queue by queue, and the thread that watches them.
#[derive(Default)]
pub struct Harvester {
    /// Instances of each queue in the order of submission.
    queues: Mutex<Vec<(ids::Queue, VecDeque<Pending>)>>,
    /// Held from when an instance is taken until its results have been read and written.
    writing: Mutex<Vec<u64>>,
    thread: Mutex<Option<JoinHandle<()>>>,
    stop: AtomicBool,
    idle: AtomicBool,
    /// When the program's thread last looked.
    looked_ns: AtomicI64,
}

impl Harvester {
    /// Adds the instances of a submission that has reached its queue.
    pub fn add(
        &self,
        device: &'static Device,
        queue: ids::Queue,
        instances: impl Iterator<Item = Pending>,
    ) {
        {
            let mut queues = lock(&self.queues);
            match queues.iter_mut().find(|(id, _)| *id == queue) {
                Some((_, pending)) => pending.extend(instances),
                None => queues.push((queue, instances.collect())),
            }
        }
        if self.idle.swap(false, Relaxed)
            && let Some(thread) = &*lock(&self.thread)
        {
            thread.thread().unpark();
        }
        self.start(device);
    }

    fn start(&self, device: &'static Device) {
        let Ok(mut thread) = self.thread.try_lock() else {
            return;
        };
        if thread.is_some() || self.stop.load(Relaxed) {
            return;
        }
        *thread = hook::spawn(move || device.harvester.watch(device)).ok();
    }

    fn watch(&self, device: &'static Device) {
        device.clock.sample(device);
        let mut idle_rounds = 0;
        while !self.stop.load(Relaxed) {
            let collected = self.harvest(device);
            device.queries.reset_used(device);
            if collected > 0 || self.has_pending() {
                idle_rounds = 0;
            } else {
                idle_rounds += 1;
            }
            if idle_rounds > IDLE_ROUNDS {
                device.clock.sample(device);
                self.idle.store(true, Relaxed);
                // A wake-up that comes before this line is not lost: it leaves a token.
                if !self.has_pending() {
                    std::thread::park();
                    device.clock.sample(device);
                }
                idle_rounds = 0;
            } else {
                std::thread::sleep(INTERVAL);
            }
        }
    }

    fn has_pending(&self) -> bool {
        lock(&self.queues)
            .iter()
            .any(|(_, pending)| !pending.is_empty())
    }

    /// Collects instances that have finished, on the program's thread: only a few, seldom, and only while nobody else
    /// does. A process that is killed loses what has finished since.
    pub fn harvest_small(&self, device: &'static Device) {
        let now_ns = monotonic_ns();
        if now_ns < self.looked_ns.load(Relaxed) + LOOK_NS {
            return;
        }
        self.looked_ns.store(now_ns, Relaxed);
        for _ in 0..SMALL_HARVEST {
            let Ok(mut scratch) = self.writing.try_lock() else {
                break;
            };
            if !self.harvest_one(device, &mut scratch, SMALL_QUERIES) {
                break;
            }
        }
    }

    /// Collects all instances that have finished; how many. The lock is taken anew for each, so that a program that
    /// waits for it waits for one.
    fn harvest(&self, device: &'static Device) -> usize {
        let mut collected = 0;
        while self.harvest_one(device, &mut lock(&self.writing), u32::MAX) {
            collected += 1;
        }
        if collected > 0 {
            device.clock.sample_if_due(device);
        }
        collected
    }

    fn harvest_one(
        &self,
        device: &'static Device,
        scratch: &mut Vec<u64>,
        most_queries: u32,
    ) -> bool {
        if device.lost.load(Relaxed) {
            return false;
        }
        match self.take_finished(most_queries) {
            Some(pending) => {
                self.write(device, pending, scratch);
                true
            }
            None => false,
        }
    }

    /// Takes one instance that has finished and has no more than so many queries. Those of one queue finish in order,
    /// or nearly so.
    fn take_finished(&self, most_queries: u32) -> Option<Pending> {
        let mut queues = lock(&self.queues);
        queues.iter_mut().find_map(|(_, pending)| {
            pending.pop_front_if(|first| {
                first.times.queries() <= most_queries && first.times.arrived()
            })
        })
    }

    /// Writes what an instance's queries hold, and forgets it.
    fn write(&self, device: &'static Device, pending: Pending, scratch: &mut Vec<u64>) {
        let seen_ns = monotonic_ns();
        let Pending { instance, times } = pending;
        let mut timestamps = |recording, first_query, ticks: &[u64]| {
            device.recorder.write(&VulkanEvent::Timestamps {
                instance,
                recording,
                first_query,
                ticks: bytemuck::cast_slice(ticks),
            });
        };
        let outcome = match times {
            Times::Inner(timing) => {
                timing.collect(scratch, &mut timestamps);
                Outcome::Timed
            }
            Times::Bracket(bracket, inner) => {
                let mut pair = [NO_TICKS; 2];
                bracket.timing.collect(scratch, &mut |_, _, ticks| {
                    for (to, from) in pair.iter_mut().zip(ticks) {
                        *to = *from;
                    }
                });
                device.brackets.give_back(bracket);
                if !inner.is_some_and(|inner| inner.end_overlapping(scratch, &mut timestamps)) {
                    let [begin_ticks, end_ticks] = pair;
                    device.recorder.write(&VulkanEvent::Bracket {
                        instance,
                        begin_ticks,
                        end_ticks,
                    });
                }
                Outcome::Timed
            }
            Times::None(outcome) => outcome,
        };
        device.recorder.write(&VulkanEvent::InstanceEnd {
            instance,
            outcome,
            seen_ns,
        });
    }

    /// Collects all instances that have finished, and both clocks; true when none is pending any more.
    pub fn flush(&self, device: &'static Device) -> bool {
        if self.harvest(device) > 0 {
            device.clock.sample(device);
        }
        // Whoever took an instance has written it when the lock is free.
        drop(lock(&self.writing));
        !self.has_pending()
    }

    /// A recording is about to be submitted again, so its earlier instance has finished: collects that one before its
    /// results are overwritten.
    pub fn settle(&self, device: &'static Device, timing: &Arc<Timing>) {
        let found = {
            let mut queues = lock(&self.queues);
            queues.iter_mut().find_map(|(_, pending)| {
                let place = pending
                    .iter()
                    .position(|p| matches!(&p.times, Times::Inner(inner) if uses(inner, timing)))?;
                pending.remove(place)
            })
        };
        // Another thread may hold it already; then its reading ends before ours begins.
        let Some(mut pending) = found else {
            drop(lock(&self.writing));
            return;
        };
        if !pending.times.arrived() {
            pending.times = Times::None(Outcome::NotSeen);
        }
        let mut scratch = lock(&self.writing);
        self.write(device, pending, &mut scratch);
    }

    /// Gives up what is pending; how many instances.
    pub fn abandon(&self, device: &'static Device) -> usize {
        let outcome = if device.lost.load(Relaxed) {
            Outcome::DeviceLost
        } else {
            Outcome::NotSeen
        };
        let left: Vec<Pending> = lock(&self.queues)
            .iter_mut()
            .flat_map(|(_, p)| p.drain(..))
            .collect();
        let count = left.len();
        for pending in left {
            let seen_ns = monotonic_ns();
            device.recorder.write(&VulkanEvent::InstanceEnd {
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
    pub fn stop(&self, device: &'static Device) {
        self.stop.store(true, Relaxed);
        if let Some(thread) = lock(&self.thread).take() {
            thread.thread().unpark();
            let _ = thread.join();
        }
        self.harvest(device);
    }

    /// Ends the thread and collects what has finished, but waits not long: the process is exiting, and the thread may
    /// be waiting for a driver that waits for us.
    pub fn stop_at_exit(&self, device: &'static Device) {
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
                self.harvest(device);
                return;
            }
            std::thread::sleep(Duration::from_millis(1));
        }
    }
}

/// True when `timing` is `of`, or a secondary's in it.
fn uses(of: &Arc<Timing>, timing: &Arc<Timing>) -> bool {
    Arc::ptr_eq(of, timing) || of.children.iter().any(|child| uses(child, timing))
}
