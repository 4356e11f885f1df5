//! Simulates `VK_KHR_performance_query`, with counters whose values are known.

use std::ffi::CStr;
use std::sync::atomic::Ordering::*;

use ash::vk::{
    self, PerformanceCounterScopeKHR as Scope, PerformanceCounterStorageKHR as Storage,
    PerformanceCounterUnitKHR as Unit,
};

use crate::chain;
use crate::config::{Counters, config};
use crate::device::Device;
use crate::misuse;
use crate::object;

struct Counter {
    name: &'static CStr,
    unit: Unit,
    storage: Storage,
    scope: Scope,
    /// Computes the raw result.
    value: fn(&Tally) -> u64,
}

const COUNTERS: [Counter; 6] = [
    Counter {
        name: c"dispatches",
        unit: Unit::GENERIC,
        storage: Storage::UINT64,
        scope: Scope::COMMAND,
        value: |tally| tally.dispatches,
    },
    Counter {
        name: c"shader busy",
        unit: Unit::NANOSECONDS,
        storage: Storage::UINT64,
        scope: Scope::COMMAND,
        value: |tally| tally.busy_ns,
    },
    // A query that starts with the first command that acts cannot use this scope.
    Counter {
        name: c"whole buffer",
        unit: Unit::GENERIC,
        storage: Storage::UINT64,
        scope: Scope::COMMAND_BUFFER,
        value: |_| 7,
    },
    Counter {
        name: c"bytes moved",
        unit: Unit::BYTES,
        storage: Storage::UINT32,
        scope: Scope::COMMAND,
        value: |tally| tally.bytes as u32 as u64,
    },
    // This counter needs a pass of its own.
    Counter {
        name: c"alone",
        unit: Unit::GENERIC,
        storage: Storage::INT64,
        scope: Scope::COMMAND,
        value: |_| 1,
    },
    Counter {
        name: c"occupancy",
        unit: Unit::PERCENTAGE,
        storage: Storage::FLOAT32,
        scope: Scope::COMMAND,
        value: |_| 37.5f32.to_bits().into(),
    },
];
const ALONE: u32 = 4;

/// The counts so far.
#[derive(Default)]
pub struct Tally {
    pub dispatches: u64,
    pub busy_ns: u64,
    pub bytes: u64,
}

impl Tally {
    pub fn results(&self, counters: &[u32]) -> Vec<u64> {
        let counters = counters.iter();
        counters
            .map(|at| (COUNTERS[*at as usize].value)(self))
            .collect()
    }
}

pub unsafe extern "system" fn enumerate_counters(
    _: vk::PhysicalDevice,
    _: u32,
    count: *mut u32,
    counters: *mut vk::PerformanceCounterKHR<'_>,
    descriptions: *mut vk::PerformanceCounterDescriptionKHR<'_>,
) -> vk::Result {
    let numbered: Vec<_> = COUNTERS.iter().enumerate().collect();
    chain::enumerate_into(&numbered, count, counters, |&(at, counter), out| {
        let out = &mut *out;
        (out.unit, out.scope, out.storage) = (counter.unit, counter.scope, counter.storage);
        out.uuid = [at as u8; 16];
        if !descriptions.is_null() {
            let out = &mut *descriptions.add(at);
            (out.name, out.category) = (chain::fixed(counter.name), chain::fixed(c"fake"));
            out.description = chain::fixed(c"as planted");
        }
    })
}

pub unsafe extern "system" fn get_passes(
    _: vk::PhysicalDevice,
    info: *const vk::QueryPoolPerformanceCreateInfoKHR<'_>,
    passes: *mut u32,
) {
    let info = &*info;
    let indices = chain::slice(info.p_counter_indices, info.counter_index_count);
    *passes = 1 + u32::from(indices.contains(&ALONE) && indices.len() > 1);
}

/// Returns the counters of a pool that is made.
pub unsafe fn counters_of(
    call: &str,
    device: &Device,
    info: &vk::QueryPoolCreateInfo<'_>,
) -> Vec<u32> {
    device.requires(
        call,
        "performanceCounterQueryPools",
        device.enabled.performance_queries,
    );
    let Some(info) = chain::find::<vk::QueryPoolPerformanceCreateInfoKHR<'_>>(info.p_next) else {
        misuse::report(call, "a pool of performance queries without counters");
        return vec![0];
    };
    let mut passes = 0;
    get_passes(vk::PhysicalDevice::null(), info, &mut passes);
    if passes != 1 {
        misuse::report(
            call,
            format_args!("counters of {passes} passes, whose submissions do not say which"),
        );
    }
    chain::slice(info.p_counter_indices, info.counter_index_count).to_vec()
}

pub unsafe extern "system" fn acquire_lock(
    device: vk::Device,
    _: *const vk::AcquireProfilingLockInfoKHR<'_>,
) -> vk::Result {
    const CALL: &str = "vkAcquireProfilingLockKHR";
    let Some(device) = object::get::<Device>(CALL, device) else {
        return vk::Result::ERROR_UNKNOWN;
    };
    if config().counters == Some(Counters::Locked) {
        return vk::Result::TIMEOUT;
    }
    if device.profiling.swap(true, AcqRel) {
        misuse::report(CALL, "the lock is held already");
    }
    vk::Result::SUCCESS
}

pub unsafe extern "system" fn release_lock(device: vk::Device) {
    const CALL: &str = "vkReleaseProfilingLockKHR";
    if let Some(device) = object::get::<Device>(CALL, device)
        && !device.profiling.swap(false, AcqRel)
    {
        misuse::report(CALL, "the lock is not held");
    }
}
