//! Puts performance queries, which count for hardware counters, around the commands of command buffers, where the
//! user asked for counters. The results are written as events of each instance (execution of a command buffer).
//!
//! A query counts from the first command of a primary command buffer that acts to its end. A command buffer that may
//! run twice at once has none, and what was counted is dropped where a secondary command buffer or a suspended
//! rendering comes between, as queries must not be active there.

use crate::api::families::{Delivery, Families};
use crate::api::functions::DeviceFunctions;
use crate::api::loader::GetInstanceProcAddr;
use crate::api::performance::FamilyCounters;
use crate::api::physical_device::PhysicalDevice;
use crate::handles::lock;
use crate::recorder::Recorder;
use ash::vk;
use gapscope_spool::event::{LossKind, VulkanEvent};
use gapscope_spool::ids;
use std::borrow::Cow;
use std::sync::Mutex;
use std::sync::atomic::{AtomicBool, AtomicU32, Ordering::Relaxed};

/// The number of queries of a pool.
const POOL_QUERIES: u32 = 64;
/// The number of looks at finished work after which missing results are given up.
const MAX_LOOKS: u32 = 25;

/// The performance queries of a device.
pub struct CounterQueries {
    next: &'static ash::Device,
    release_profiling_lock: Option<vk::PFN_vkReleaseProfilingLockKHR>,
    recorder: &'static Recorder,
    /// The counters of each queue family, by its number.
    families: Vec<Option<FamilyCounters>>,
    state: Mutex<State>,
    /// Whether nobody waits for results any more, because the device ends or results have been missing too long.
    silent: AtomicBool,
}

/// The query pools of counters, and the queries that nobody uses.
#[derive(Default)]
struct State {
    pools: Vec<vk::QueryPool>,
    /// The unused queries, each with its family.
    free: Vec<(u32, vk::QueryPool, u32)>,
    /// Whether the driver has refused a query pool; then no more are asked for.
    refused: bool,
}

/// The query of one command recording: `begin`, then `cut` or `end` while it is recorded; `prepare` before each
/// execution, `has_arrived` and `write` after it. Dropped, it returns to the unused queries.
pub struct Counting {
    queries: &'static CounterQueries,
    family: u32,
    pool: vk::QueryPool,
    /// Its index in the pool.
    query: u32,
    /// Whether the query does not count all of the command buffer.
    partial: bool,
    /// Whether the query may have been written since it was reset.
    written: AtomicBool,
    /// The number of times that its missing results have been asked for in this execution.
    looks: AtomicU32,
    /// The results, once they have arrived.
    results: Mutex<Vec<u64>>,
}

impl CounterQueries {
    /// Takes the profiling lock of a device that has performance queries, and writes what is counted.
    ///
    /// # Errors
    /// Returns the reason why nothing can be counted.
    ///
    /// # Safety
    /// The device was made with the feature; `get` belongs to the next layer.
    pub unsafe fn start(
        next: &'static ash::Device,
        functions: &DeviceFunctions,
        recorder: &'static Recorder,
        physical: PhysicalDevice,
        families: &Families,
        get: GetInstanceProcAddr,
        device: ids::Device,
    ) -> Result<CounterQueries, &'static str> {
        let counters = |(number, family): (usize, &crate::api::families::Family)| {
            let number = u32::try_from(number).ok()?;
            let acts = vk::QueueFlags::GRAPHICS | vk::QueueFlags::COMPUTE;
            let timed = family.delivery != Delivery::None && family.flags.intersects(acts);
            timed.then(|| physical.counters(get, number)).flatten()
        };
        let families: Vec<Option<FamilyCounters>> =
            families.0.iter().enumerate().map(counters).collect();
        if families.iter().all(Option::is_none) {
            return Err("the driver has no counter that one pass counts between any two commands");
        }
        let acquire = functions.acquire_profiling_lock;
        let acquire = acquire.ok_or("the driver has no profiling lock")?;
        let info = vk::AcquireProfilingLockInfoKHR::default();
        // SAFETY: as the caller promises; it does not wait.
        match unsafe { acquire(next.handle(), &info) } {
            vk::Result::SUCCESS => {}
            vk::Result::TIMEOUT => return Err("another program has the profiling lock"),
            _ => return Err("the driver refuses the profiling lock"),
        }
        for (number, counters) in families.iter().enumerate() {
            if let Some(counters) = counters {
                recorder.write(&VulkanEvent::CounterSet {
                    device,
                    family: number as u32,
                    counters: Cow::Borrowed(&counters.facts),
                });
            }
        }
        Ok(CounterQueries {
            next,
            release_profiling_lock: functions.release_profiling_lock,
            recorder,
            families,
            state: Mutex::default(),
            silent: AtomicBool::new(false),
        })
    }

    /// Stops waiting: the device or the process ends, and no more results come.
    pub fn stop_waiting(&self) {
        self.silent.store(true, Relaxed);
    }

    /// The counters of a queue family; `None` where nothing is counted on it.
    fn counters_of(&self, family: u32) -> Option<&FamilyCounters> {
        self.families.get(family as usize)?.as_ref()
    }

    /// Returns a query that has been reset, or `None` if the family counts nothing or the driver gives no more.
    pub fn take(&'static self, family: u32) -> Option<Counting> {
        let counters = self.counters_of(family)?;
        let mut state = lock(&self.state);
        let at = state
            .free
            .iter()
            .position(|(free_family, ..)| *free_family == family);
        let (_, pool, query) = match at {
            Some(at) => state.free.swap_remove(at),
            None => {
                if state.refused {
                    return None;
                }
                let Some(pool) = self.make(counters, family) else {
                    state.refused = true;
                    let reason = "the device gave no more performance queries";
                    self.recorder.loss(LossKind::CounterSamples, 1, reason);
                    return None;
                };
                state.pools.push(pool);
                let others = (1..POOL_QUERIES).map(|query| (family, pool, query));
                state.free.extend(others);
                (family, pool, 0)
            }
        };
        drop(state);
        let counting = Counting {
            queries: self,
            family,
            pool,
            query,
            partial: false,
            written: AtomicBool::new(false),
            looks: AtomicU32::new(0),
            results: Mutex::default(),
        };
        // SAFETY: nobody else has it, and whoever had it has seen it finished.
        unsafe { counting.reset() };
        Some(counting)
    }

    /// Makes a query pool for the counters of a family; `None` where the driver refuses.
    fn make(&self, counters: &FamilyCounters, family: u32) -> Option<vk::QueryPool> {
        let mut performance = vk::QueryPoolPerformanceCreateInfoKHR::default()
            .queue_family_index(family)
            .counter_indices(&counters.indices);
        let info = vk::QueryPoolCreateInfo::default()
            .query_type(vk::QueryType::PERFORMANCE_QUERY_KHR)
            .query_count(POOL_QUERIES)
            .push_next(&mut performance);
        // SAFETY: the structures are valid during the call.
        unsafe { self.next.create_query_pool(&info, None) }.ok()
    }

    /// Destroys all query pools and releases the profiling lock.
    ///
    /// # Safety
    /// No query is pending.
    pub unsafe fn destroy(&self) {
        for pool in lock(&self.state).pools.drain(..) {
            // SAFETY: the pool is ours and, as the caller promises, idle.
            unsafe { self.next.destroy_query_pool(pool, None) };
        }
        if let Some(release) = self.release_profiling_lock {
            // SAFETY: the lock has been taken.
            unsafe { release(self.next.handle()) };
        }
    }
}

impl Counting {
    /// Resets the query from the host.
    ///
    /// # Safety
    /// The query is not pending.
    unsafe fn reset(&self) {
        // SAFETY: the device has host query reset wherever performance queries were added.
        unsafe { self.queries.next.reset_query_pool(self.pool, self.query, 1) };
    }

    /// Begins the query in a command buffer.
    ///
    /// # Safety
    /// The command buffer is being recorded outside of a render pass.
    pub unsafe fn begin(&self, cb: vk::CommandBuffer) {
        let (next, flags) = (self.queries.next, vk::QueryControlFlags::empty());
        // SAFETY: as the caller promises; the query has been reset.
        unsafe { next.cmd_begin_query(cb, self.pool, self.query, flags) };
    }

    /// Ends the query before its command buffer ends, so that its values are not used.
    ///
    /// # Safety
    /// As [`Self::begin`].
    pub unsafe fn cut(&mut self, cb: vk::CommandBuffer) {
        if !std::mem::replace(&mut self.partial, true) {
            // SAFETY: as the caller promises; the query is active.
            unsafe { self.queries.next.cmd_end_query(cb, self.pool, self.query) };
        }
    }

    /// Ends the query at the end of its command buffer, unless [`Self::cut`] has.
    ///
    /// # Safety
    /// As [`Self::begin`].
    pub unsafe fn end(&self, cb: vk::CommandBuffer) {
        if !self.partial {
            // SAFETY: as the caller promises; the query is active.
            unsafe { self.queries.next.cmd_end_query(cb, self.pool, self.query) };
        }
    }

    /// Prepares the query for an execution.
    ///
    /// # Safety
    /// The query is not pending.
    pub unsafe fn prepare(&self) {
        lock(&self.results).clear();
        self.looks.store(0, Relaxed);
        if self.written.swap(true, Relaxed) {
            // SAFETY: as the caller promises.
            unsafe { self.reset() };
        }
    }

    /// Returns whether nobody need wait for the results any longer, once the command buffer has finished: they have
    /// arrived, are not used, or have been missing for so many looks that waiting stops for the whole device.
    pub fn has_arrived(&self) -> bool {
        self.partial || self.queries.silent.load(Relaxed) || self.ask() || {
            let over = self.looks.fetch_add(1, Relaxed) >= MAX_LOOKS;
            if over {
                self.queries.silent.store(true, Relaxed);
            }
            over
        }
    }

    /// Asks the driver for the results unless they are here; returns whether they are.
    fn ask(&self) -> bool {
        let next = self.queries.next;
        let Some(counters) = self.queries.counters_of(self.family) else {
            return false;
        };
        let mut results = lock(&self.results);
        if !results.is_empty() {
            return true;
        }
        let mut raw = vec![0u64; counters.indices.len()];
        let bytes = std::mem::size_of_val(raw.as_slice());
        // SAFETY: there is room for eight bytes of each counter.
        let result = unsafe {
            (next.fp_v1_0().get_query_pool_results)(
                next.handle(),
                self.pool,
                self.query,
                1,
                bytes,
                raw.as_mut_ptr().cast(),
                bytes as u64,
                vk::QueryResultFlags::empty(),
            )
        };
        let has_arrived = result == vk::Result::SUCCESS;
        if has_arrived {
            *results = raw;
        }
        has_arrived
    }

    /// Writes the values that were counted while an instance ran, and forgets them; a loss where there are none.
    pub fn write(&self, instance: ids::Instance) {
        let recorder = self.queries.recorder;
        let Some(counters) = self.queries.counters_of(self.family) else {
            return;
        };
        let count = counters.indices.len() as u64;
        if self.partial {
            let reason =
                "a secondary command buffer or a suspended rendering was in their command buffer";
            return recorder.loss(LossKind::CounterSamples, count, reason);
        }
        if !self.ask() {
            let reason = "the driver gave no results of a performance query";
            return recorder.loss(LossKind::CounterSamples, count, reason);
        }
        let results = std::mem::take(&mut *lock(&self.results));
        recorder.write(&VulkanEvent::Counted {
            instance,
            family: self.family,
            values: Cow::Owned(counters.values(&results)),
        });
    }
}

impl Drop for Counting {
    fn drop(&mut self) {
        let free = (self.family, self.pool, self.query);
        lock(&self.queries.state).free.push(free);
    }
}
