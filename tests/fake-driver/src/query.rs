//! Simulates timestamp and performance query pools.

use std::sync::Mutex;
use std::sync::atomic::{AtomicU8, AtomicU32, AtomicU64, Ordering::*};
use std::time::{Duration, Instant};

use ash::vk;

use crate::config::{Counters, config};
use crate::device::{Device, destroy_functions, lock};
use crate::object::{self, Body};
use crate::{misuse, performance, sync};

pub struct QueryPool {
    queries: Box<[Query]>,
    /// The counters of performance queries; timestamp pools have none.
    pub counters: Vec<u32>,
}

impl Body for QueryPool {
    type Handle = vk::QueryPool;
}

#[derive(Default)]
pub struct Query {
    state: AtomicU8,
    value: AtomicU64,
    /// The raw results of a performance query.
    results: Mutex<Vec<u64>>,
    /// The number of submitted commands that reset, write or copy the query.
    pending: AtomicU32,
}

/// A new query is undefined until it is reset.
const UNDEFINED: u8 = 0;
const RESET: u8 = 1;
const AVAILABLE: u8 = 2;

impl Query {
    pub fn write(&self, call: &str, value: u64) {
        self.value.store(value, Relaxed);
        if self.state.swap(AVAILABLE, AcqRel) != RESET {
            misuse::report(call, "a query is written that was not reset");
        }
    }

    pub fn count(&self, results: Vec<u64>) {
        *lock(&self.results) = results;
        self.write("vkCmdEndQuery", 0);
    }

    pub fn reset(&self) {
        self.value.store(0, Relaxed);
        self.state.store(RESET, Release);
    }

    pub fn begin_use(&self) {
        self.pending.fetch_add(1, AcqRel);
    }

    pub fn end_use(&self) {
        self.pending.fetch_sub(1, AcqRel);
    }

    fn is_available(&self) -> bool {
        self.state.load(Acquire) == AVAILABLE
    }
}

impl QueryPool {
    /// Returns the queries of a range, if they exist.
    pub fn range(&self, call: &str, first: u32, count: u32) -> Option<&[Query]> {
        let range = self
            .queries
            .get(first as usize..)
            .and_then(|queries| queries.get(..count as usize));
        if range.is_none() {
            misuse::report(
                call,
                format_args!("queries {first}+{count} of {}", self.queries.len()),
            );
        }
        range
    }
}

pub unsafe extern "system" fn create_pool(
    device: vk::Device,
    info: *const vk::QueryPoolCreateInfo<'_>,
    _: *const vk::AllocationCallbacks<'_>,
    out: *mut vk::QueryPool,
) -> vk::Result {
    const CALL: &str = "vkCreateQueryPool";
    let Some(device) = object::get::<Device>(CALL, device) else {
        return vk::Result::ERROR_UNKNOWN;
    };
    let info = &*info;
    if info.query_count == 0 {
        misuse::report(CALL, "a pool of no queries");
    }
    let counters = match info.query_type {
        vk::QueryType::TIMESTAMP => Vec::new(),
        vk::QueryType::PERFORMANCE_QUERY_KHR => performance::counters_of(CALL, device, info),
        _ => return vk::Result::ERROR_FEATURE_NOT_PRESENT,
    };
    let queries = (0..info.query_count).map(|_| Query::default()).collect();
    *out = device.create(QueryPool { queries, counters });
    vk::Result::SUCCESS
}

destroy_functions! {
    QueryPool, destroy_pool("vkDestroyQueryPool");
}

pub unsafe extern "system" fn reset_pool(
    device: vk::Device,
    pool: vk::QueryPool,
    first: u32,
    count: u32,
) {
    const CALL: &str = "vkResetQueryPool";
    let (Some(device), Some(pool)) = (
        object::get::<Device>(CALL, device),
        object::get::<QueryPool>(CALL, pool),
    ) else {
        return;
    };
    device.requires(CALL, "hostQueryReset", device.enabled.host_query_reset);
    let Some(queries) = pool.range(CALL, first, count) else {
        return;
    };
    if queries.iter().any(|query| query.pending.load(Acquire) > 0) && !device.is_lost() {
        misuse::report(
            CALL,
            format_args!("a submitted command buffer uses queries of {first}+{count}"),
        );
    }
    queries.iter().for_each(Query::reset);
}

pub unsafe extern "system" fn get_results(
    device: vk::Device,
    pool: vk::QueryPool,
    first: u32,
    count: u32,
    bytes: usize,
    out: *mut std::ffi::c_void,
    stride: u64,
    flags: vk::QueryResultFlags,
) -> vk::Result {
    const CALL: &str = "vkGetQueryPoolResults";
    let (Some(device), Some(pool)) = (
        object::get::<Device>(CALL, device),
        object::get::<QueryPool>(CALL, pool),
    ) else {
        return vk::Result::ERROR_UNKNOWN;
    };
    if device.is_lost() {
        return vk::Result::ERROR_DEVICE_LOST;
    }
    let Some(queries) = pool.range(CALL, first, count) else {
        return vk::Result::ERROR_UNKNOWN;
    };
    if !pool.counters.is_empty() {
        return get_counters(
            queries,
            pool.counters.len(),
            bytes,
            out as usize,
            stride,
            flags,
        );
    }
    check_results(CALL, queries, stride, flags);
    let last = result_bytes(flags);
    if (u64::from(count.max(1)) - 1) * stride + last > bytes as u64 {
        misuse::report(
            CALL,
            format_args!("{bytes} bytes do not hold {count} results"),
        );
        return vk::Result::ERROR_UNKNOWN;
    }
    if flags.contains(vk::QueryResultFlags::WAIT) {
        // A queue announces the end of a submission, not of each query.
        let all_available = || queries.iter().all(Query::is_available);
        loop {
            match sync::wait(
                device,
                Some(Instant::now() + Duration::from_millis(1)),
                all_available,
            ) {
                vk::Result::SUCCESS => break,
                vk::Result::TIMEOUT => {}
                error => return error,
            }
        }
    }
    if write_results(queries, out as usize, stride, flags) {
        vk::Result::SUCCESS
    } else {
        vk::Result::NOT_READY
    }
}

/// Returns the results of performance queries: eight bytes for each counter.
unsafe fn get_counters(
    queries: &[Query],
    counters: usize,
    bytes: usize,
    out: usize,
    stride: u64,
    flags: vk::QueryResultFlags,
) -> vk::Result {
    const CALL: &str = "vkGetQueryPoolResults";
    if !(flags & !vk::QueryResultFlags::WAIT).is_empty() {
        misuse::report(CALL, format_args!("{flags:?} of a performance query"));
    }
    if stride < 8 * counters as u64 || queries.len() * 8 * counters > bytes {
        misuse::report(
            CALL,
            format_args!("{bytes} bytes in steps of {stride} do not hold {counters} counters"),
        );
        return vk::Result::ERROR_UNKNOWN;
    }
    for (index, query) in queries.iter().enumerate() {
        if query.state.load(Acquire) == UNDEFINED {
            misuse::report(CALL, "a query was never reset");
        }
        if !query.is_available() || config().counters == Some(Counters::Never) {
            return vk::Result::NOT_READY;
        }
        for (at, value) in lock(&query.results).iter().enumerate() {
            ((out + index * stride as usize + at * 8) as *mut u64).write_unaligned(*value);
        }
    }
    vk::Result::SUCCESS
}

pub fn result_bytes(flags: vk::QueryResultFlags) -> u64 {
    let word = if flags.contains(vk::QueryResultFlags::TYPE_64) {
        8
    } else {
        4
    };
    if flags.contains(vk::QueryResultFlags::WITH_AVAILABILITY) {
        2 * word
    } else {
        word
    }
}

pub fn check_results(call: &str, queries: &[Query], stride: u64, flags: vk::QueryResultFlags) {
    if queries
        .iter()
        .any(|query| query.state.load(Acquire) == UNDEFINED)
    {
        misuse::report(call, "a query was never reset");
    }
    if flags.contains(vk::QueryResultFlags::PARTIAL) {
        misuse::report(call, "timestamps have no partial results");
    }
    let word = if flags.contains(vk::QueryResultFlags::TYPE_64) {
        8
    } else {
        4
    };
    if !stride.is_multiple_of(word) || (queries.len() > 1 && stride < result_bytes(flags)) {
        misuse::report(call, format_args!("the stride is {stride}"));
    }
}

/// Writes what is available at `address`, and returns whether that was all.
pub unsafe fn write_results(
    queries: &[Query],
    address: usize,
    stride: u64,
    flags: vk::QueryResultFlags,
) -> bool {
    let mut all = true;
    for (index, query) in queries.iter().enumerate() {
        let available = query.is_available();
        let value = query.value.load(Relaxed);
        all &= available;
        let slot = address + index * stride as usize;
        let written = [available.then_some(value), availability(flags, available)];
        for (word, value) in written.into_iter().enumerate() {
            let Some(value) = value else { continue };
            if flags.contains(vk::QueryResultFlags::TYPE_64) {
                ((slot + word * 8) as *mut u64).write_unaligned(value);
            } else {
                ((slot + word * 4) as *mut u32).write_unaligned(value as u32);
            }
        }
    }
    all
}

fn availability(flags: vk::QueryResultFlags, available: bool) -> Option<u64> {
    flags
        .contains(vk::QueryResultFlags::WITH_AVAILABILITY)
        .then_some(available.into())
}
