//! Plans what the layer adds to a device that the program creates. The program's VkDeviceCreateInfo goes in; a
//! changed copy comes out, with the extension that reads both clocks, host query reset (queries are reset by a host
//! call), and performance queries (which count for hardware counters) where the user asked for counters.

use crate::api::arguments::slice;
use crate::api::features::{self, ChainWithHostQueryReset, HostQueryReset};
use crate::api::performance;
use crate::api::physical_device::{HOST_QUERY_RESET, HostQueryResetBy, PhysicalDevice};
use ash::vk;
use gapscope_vulkan_layer::layer::DevicePlan;
use std::ffi::{CStr, c_char};

/// The changes to the program's VkDeviceCreateInfo.
pub struct RecordingPlan {
    /// The names of the extensions to enable: the program's, and those that are added.
    extensions: Vec<*const c_char>,
    /// Whether the device and host clocks can be read together.
    pub calibrated: bool,
    /// Whether queries can be reset from the host.
    pub host_query_reset: bool,
    /// The reason why queries cannot be reset from the host, where that would be better.
    pub no_host_query_reset: Option<&'static str>,
    /// Whether the extension that reads both clocks is added, and whether any extension is.
    adds_calibration: bool,
    adds_extension: bool,
    /// How host query reset is added.
    reset: AddReset,
    counters: CounterPlan,
}

/// Whether performance queries are added, and if not, why.
enum CounterPlan {
    NotAsked,
    /// Performance queries are not available, for this reason.
    Refused(&'static str),
    Added(vk::PhysicalDevicePerformanceQueryFeaturesKHR<'static>),
}

/// The way in which host query reset is added to the program's features.
enum AddReset {
    No,
    /// Host query reset is a structure of its own before the chain.
    Before(vk::PhysicalDeviceHostQueryResetFeatures<'static>),
    /// Host query reset is set in a copy of the program's structure.
    Inside(ChainWithHostQueryReset),
}

impl RecordingPlan {
    /// Plans the additions to a device that the program creates with `info`.
    ///
    /// # Safety
    /// `info` is the program's, during its call.
    pub unsafe fn new(physical: PhysicalDevice, info: &vk::DeviceCreateInfo<'_>) -> RecordingPlan {
        const NAMES: [&CStr; 2] = [
            c"VK_KHR_calibrated_timestamps",
            c"VK_EXT_calibrated_timestamps",
        ];
        // SAFETY: the program's arrays are valid.
        let mut extensions: Vec<*const c_char> = unsafe {
            slice(
                info.pp_enabled_extension_names,
                info.enabled_extension_count,
            )
            .to_vec()
        };
        // SAFETY: each name is NUL-terminated and outlives the call.
        let names: Vec<&CStr> = unsafe { extensions.iter().map(|e| CStr::from_ptr(*e)).collect() };
        let present = NAMES.into_iter().find(|name| names.contains(name));
        let addition = match present {
            Some(_) => None,
            None => NAMES.into_iter().find(|name| physical.has_extension(name)),
        };
        extensions.extend(addition.map(CStr::as_ptr));

        // SAFETY: the chain is valid.
        let in_chain = unsafe { features::host_query_reset(info.p_next) };
        let mut plan = RecordingPlan {
            calibrated: present.is_some() || addition.is_some(),
            host_query_reset: false,
            no_host_query_reset: None,
            adds_calibration: addition.is_some(),
            adds_extension: addition.is_some(),
            reset: AddReset::No,
            counters: CounterPlan::NotAsked,
            extensions,
        };
        match in_chain {
            HostQueryReset::Enabled => plan.host_query_reset = true,
            in_chain if physical.wants_host_query_reset() => {
                let has_extension = names.contains(&HOST_QUERY_RESET);
                let added = physical
                    .host_query_reset()
                    .and_then(|by| plan.add_reset(in_chain, by, has_extension));
                plan.no_host_query_reset = added.err();
            }
            _ => {}
        }
        if physical.is_to_count() {
            // SAFETY: the chain is valid.
            let used = names.contains(&performance::EXTENSION)
                || unsafe { features::asks_for_performance_queries(info.p_next) };
            plan.add_counters(physical, used);
        }
        plan
    }

    /// Adds performance queries, unless the program uses them itself (`used`).
    fn add_counters(&mut self, physical: PhysicalDevice, used: bool) {
        let possible = match used {
            true => Err("the program uses VK_KHR_performance_query itself"),
            false => physical.performance_queries(),
        };
        self.counters = match possible {
            Err(reason) => CounterPlan::Refused(reason),
            Ok(()) if !self.host_query_reset => {
                CounterPlan::Refused("they need host query reset, which this device has not")
            }
            Ok(()) => {
                self.extensions.push(performance::EXTENSION.as_ptr());
                self.adds_extension = true;
                CounterPlan::Added(
                    vk::PhysicalDevicePerformanceQueryFeaturesKHR::default()
                        .performance_counter_query_pools(true),
                )
            }
        };
    }

    /// Returns whether performance queries were added, or `None` if the user did not ask for them.
    ///
    /// # Errors
    /// Returns the reason why they could not be added.
    pub fn counters(&self) -> Option<Result<(), &'static str>> {
        match &self.counters {
            CounterPlan::NotAsked => None,
            CounterPlan::Refused(reason) => Some(Err(reason)),
            CounterPlan::Added(_) => Some(Ok(())),
        }
    }

    /// Adds host query reset, in the way that the program's chain allows.
    fn add_reset(
        &mut self,
        in_chain: HostQueryReset,
        by: HostQueryResetBy,
        has_extension: bool,
    ) -> Result<(), &'static str> {
        self.reset = match in_chain {
            HostQueryReset::Copied(chain) => AddReset::Inside(chain),
            HostQueryReset::OutOfReach => {
                return Err("the program's features hold a structure that gapscope does not know");
            }
            HostQueryReset::Enabled | HostQueryReset::Absent => AddReset::Before(
                vk::PhysicalDeviceHostQueryResetFeatures::default().host_query_reset(true),
            ),
        };
        self.host_query_reset = true;
        if by == HostQueryResetBy::Extension && !has_extension {
            self.extensions.push(HOST_QUERY_RESET.as_ptr());
            self.adds_extension = true;
        }
        Ok(())
    }
}

impl DevicePlan for RecordingPlan {
    fn create_info<'a>(&'a mut self, info: &vk::DeviceCreateInfo<'a>) -> vk::DeviceCreateInfo<'a> {
        let mut changed = *info;
        if self.adds_extension {
            changed.enabled_extension_count = self.extensions.len() as u32;
            changed.pp_enabled_extension_names = self.extensions.as_ptr();
        }
        match &mut self.reset {
            AddReset::No => {}
            AddReset::Before(feature) => {
                feature.p_next = info.p_next.cast_mut();
                changed.p_next = (&raw const *feature).cast();
            }
            AddReset::Inside(chain) => changed.p_next = chain.link(),
        }
        if let CounterPlan::Added(feature) = &mut self.counters {
            feature.p_next = changed.p_next.cast_mut();
            changed.p_next = (&raw const *feature).cast();
        }
        changed
    }

    fn drop_additions(&mut self) -> bool {
        let adds_reset = !matches!(self.reset, AddReset::No);
        self.calibrated &= !self.adds_calibration;
        if adds_reset {
            self.host_query_reset = false;
            self.no_host_query_reset = Some("the driver refused it");
        }
        if matches!(self.counters, CounterPlan::Added(_)) {
            self.counters = CounterPlan::Refused("the driver refused the device with them");
        }
        self.adds_extension || adds_reset
    }
}
