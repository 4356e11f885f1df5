//! Chooses the hardware counters that performance queries (`VK_KHR_performance_query`) count on a queue family, and
//! turns raw results into values.

use crate::api::arguments::text_in;
use crate::api::loader::GetInstanceProcAddr;
use ash::vk;
use ash::vk::{PerformanceCounterStorageKHR as Storage, PerformanceCounterUnitKHR as Unit};
use gapscope_spool::event::{PerformanceCounter, PerformanceUnit};
use std::ffi::CStr;

/// The name of the extension.
pub const EXTENSION: &CStr = ash::khr::performance_query::NAME;

/// The most counters in one query; further counters of a driver are left out. Some drivers have thousands.
const MAX_COUNTERS_PER_QUERY: usize = 32;

/// The counters that the queries of a queue family count in one pass.
pub struct FamilyCounters {
    /// The driver's numbers of the counters.
    pub indices: Vec<u32>,
    /// The name, category and unit of each counter.
    pub facts: Vec<PerformanceCounter>,
    /// The type of number in which each result comes.
    storages: Vec<Storage>,
}

impl FamilyCounters {
    /// Returns the value of each counter from the raw results of a query.
    pub fn values(&self, results: &[u64]) -> Vec<f64> {
        let results = results.iter().zip(&self.storages);
        results
            .map(|(raw, storage)| value(*raw, *storage))
            .collect()
    }
}

/// Returns the value of a raw result, which is a union: its first bytes are a number of the type `storage`.
fn value(raw: u64, storage: Storage) -> f64 {
    match storage {
        Storage::INT32 => f64::from(raw as u32 as i32),
        Storage::INT64 => raw as i64 as f64,
        Storage::UINT32 => f64::from(raw as u32),
        Storage::FLOAT32 => f64::from(f32::from_bits(raw as u32)),
        Storage::FLOAT64 => f64::from_bits(raw),
        _ => raw as f64,
    }
}

/// Converts Vulkan's unit; unknown ones are generic.
fn unit(unit: Unit) -> PerformanceUnit {
    match unit {
        Unit::PERCENTAGE => PerformanceUnit::Percentage,
        Unit::NANOSECONDS => PerformanceUnit::Nanoseconds,
        Unit::BYTES => PerformanceUnit::Bytes,
        Unit::BYTES_PER_SECOND => PerformanceUnit::BytesPerSecond,
        Unit::KELVIN => PerformanceUnit::Kelvin,
        Unit::WATTS => PerformanceUnit::Watts,
        Unit::VOLTS => PerformanceUnit::Volts,
        Unit::AMPS => PerformanceUnit::Amps,
        Unit::HERTZ => PerformanceUnit::Hertz,
        Unit::CYCLES => PerformanceUnit::Cycles,
        _ => PerformanceUnit::Generic,
    }
}

/// Returns the first counters of a queue family that a single pass counts together, between any two commands, or
/// `None` if there are none.
///
/// # Safety
/// The handles are live, `device` has the extension, and `get` belongs to the next layer.
pub unsafe fn counters(
    instance: vk::Instance,
    device: vk::PhysicalDevice,
    get: GetInstanceProcAddr,
    family: u32,
) -> Option<FamilyCounters> {
    // SAFETY: functions of these names have these types; the two-call idiom.
    unsafe {
        let enumerate = get(
            instance,
            c"vkEnumeratePhysicalDeviceQueueFamilyPerformanceQueryCountersKHR".as_ptr(),
        )?;
        let enumerate = std::mem::transmute::<
            unsafe extern "system" fn(),
            vk::PFN_vkEnumeratePhysicalDeviceQueueFamilyPerformanceQueryCountersKHR,
        >(enumerate);
        let passes = get(
            instance,
            c"vkGetPhysicalDeviceQueueFamilyPerformanceQueryPassesKHR".as_ptr(),
        )?;
        let passes = std::mem::transmute::<
            unsafe extern "system" fn(),
            vk::PFN_vkGetPhysicalDeviceQueueFamilyPerformanceQueryPassesKHR,
        >(passes);
        let mut count = 0;
        let none = std::ptr::null_mut();
        if enumerate(device, family, &mut count, none, std::ptr::null_mut()) != vk::Result::SUCCESS
        {
            return None;
        }
        let mut counters = vec![vk::PerformanceCounterKHR::default(); count as usize];
        let mut described = vec![vk::PerformanceCounterDescriptionKHR::default(); count as usize];
        let _ = enumerate(
            device,
            family,
            &mut count,
            counters.as_mut_ptr(),
            described.as_mut_ptr(),
        );
        counters.truncate(count as usize);
        let in_one_pass = |indices: &[u32]| {
            let info = vk::QueryPoolPerformanceCreateInfoKHR::default()
                .queue_family_index(family)
                .counter_indices(indices);
            let mut count = 0;
            passes(device, &info, &mut count);
            count == 1
        };
        let mut chosen = FamilyCounters {
            indices: Vec::new(),
            facts: Vec::new(),
            storages: Vec::new(),
        };
        for (index, (counter, described)) in (0u32..).zip(counters.iter().zip(&described)) {
            // Counters of other scopes need queries as the first and last command, or around render passes.
            if counter.scope != vk::PerformanceCounterScopeKHR::COMMAND {
                continue;
            }
            chosen.indices.push(index);
            if !in_one_pass(&chosen.indices) {
                chosen.indices.pop();
                continue;
            }
            chosen.storages.push(counter.storage);
            chosen.facts.push(PerformanceCounter {
                name: text_in(&described.name).into_owned(),
                category: text_in(&described.category).into_owned(),
                unit: unit(counter.unit),
            });
            if chosen.indices.len() == MAX_COUNTERS_PER_QUERY {
                break;
            }
        }
        (!chosen.indices.is_empty()).then_some(chosen)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_value_is_as_its_storage_says() {
        assert_eq!(value(-3i32 as u32 as u64, Storage::INT32), -3.0);
        assert_eq!(value(-3i64 as u64, Storage::INT64), -3.0);
        assert_eq!(
            value(u64::from(u32::MAX) | 7 << 40, Storage::UINT32),
            f64::from(u32::MAX)
        );
        assert_eq!(value(5, Storage::UINT64), 5.0);
        assert_eq!(value(2.5f32.to_bits().into(), Storage::FLOAT32), 2.5);
        assert_eq!(value(2.5f64.to_bits(), Storage::FLOAT64), 2.5);
    }
}
