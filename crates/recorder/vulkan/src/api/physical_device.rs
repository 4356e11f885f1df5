//! Asks the next layer (the next library on the way to the driver) about a physical device: its identity,
//! properties, queue families, clocks and counters.

use crate::api::arguments::text_in;
use crate::api::families::{Delivery, Families, Family};
use crate::api::instance::Instance;
use crate::api::loader::GetInstanceProcAddr;
use crate::api::performance::{self, FamilyCounters};
use ash::vk;
use gapscope_spool::event::DeviceProperties;
use std::ffi::{CStr, c_void};
use std::ops::Deref;

/// A physical device, with the questions that only the recorder has.
#[derive(Clone, Copy)]
pub struct PhysicalDevice(gapscope_vulkan_layer::physical_device::PhysicalDevice);

impl Deref for PhysicalDevice {
    type Target = gapscope_vulkan_layer::physical_device::PhysicalDevice;

    fn deref(&self) -> &Self::Target {
        &self.0
    }
}

/// The extension by which devices before Vulkan 1.2 have host query reset.
pub const HOST_QUERY_RESET: &CStr = ash::ext::host_query_reset::NAME;

/// The source of host query reset: a version of Vulkan, or an extension.
#[derive(Clone, Copy, PartialEq, Eq)]
pub enum HostQueryResetBy {
    /// Vulkan 1.2 has the feature.
    Core,
    /// The extension [`HOST_QUERY_RESET`] has the feature.
    Extension,
}

/// The identity of a physical device.
pub struct Identity {
    pub name: String,
    /// Driver name and version.
    pub driver: String,
    pub uuid: [u8; 16],
    pub nanoseconds_per_tick: f32,
}

impl PhysicalDevice {
    /// # Safety
    /// `handle` is live and belongs to `instance`.
    pub unsafe fn new(instance: &'static Instance, handle: vk::PhysicalDevice) -> PhysicalDevice {
        // SAFETY: as the caller promises.
        PhysicalDevice(unsafe {
            gapscope_vulkan_layer::physical_device::PhysicalDevice::new(instance, handle)
        })
    }

    fn api_version(self) -> u32 {
        self.properties().api_version
    }

    /// Returns vkGetPhysicalDeviceProperties2 of a device that knows the structures of Vulkan 1.2.
    fn properties2_of_1_2(self) -> Option<vk::PFN_vkGetPhysicalDeviceProperties2> {
        self.properties2()
            .filter(|_| self.api_version() >= vk::API_VERSION_1_2)
    }

    /// Returns the driver's name and version by Vulkan 1.2; empty texts for older devices.
    fn driver(self) -> vk::PhysicalDeviceDriverProperties<'static> {
        let mut driver = vk::PhysicalDeviceDriverProperties::default();
        if let Some(get) = self.properties2_of_1_2() {
            let mut all = vk::PhysicalDeviceProperties2::default().push_next(&mut driver);
            // SAFETY: a valid chain of structures of Vulkan 1.2.
            unsafe { get(self.handle, &mut all) };
        }
        driver.p_next = std::ptr::null_mut();
        driver
    }

    /// Returns the identity. Before Vulkan 1.2 the driver's name is a number, and the UUID that of pipeline caches.
    pub fn identity(self) -> Identity {
        let properties = self.properties();
        let mut identity = Identity {
            name: text_in(&properties.device_name).into_owned(),
            driver: format!("{:#x}", properties.driver_version),
            uuid: properties.pipeline_cache_uuid,
            nanoseconds_per_tick: properties.limits.timestamp_period,
        };
        if let Some(get) = self.properties2_of_1_2() {
            let mut ids = vk::PhysicalDeviceIDProperties::default();
            let mut all = vk::PhysicalDeviceProperties2::default().push_next(&mut ids);
            // SAFETY: a valid chain of structures of Vulkan 1.2.
            unsafe { get(self.handle, &mut all) };
            let driver = self.driver();
            let (name, info) = (text_in(&driver.driver_name), text_in(&driver.driver_info));
            identity.uuid = ids.device_uuid;
            identity.driver = format!("{name} {info}").trim().to_owned();
        }
        identity
    }

    /// Returns the number of multiprocessors and the threads of each; `None` where the driver has none of its
    /// vendor's extensions that tell them. The extension need not be enabled.
    pub fn limits(self) -> Option<DeviceProperties> {
        let get = self.properties2_of_1_2()?;
        let ask = |structures: *mut c_void| {
            let mut all = vk::PhysicalDeviceProperties2 {
                p_next: structures,
                ..Default::default()
            };
            // SAFETY: a valid chain of structures of extensions that the device has.
            unsafe { get(self.handle, &mut all) };
        };
        let (multiprocessors, threads) = if self.has_extension(ash::nv::shader_sm_builtins::NAME) {
            let mut size = vk::PhysicalDeviceShaderSMBuiltinsPropertiesNV::default();
            ask((&raw mut size).cast());
            (size.shader_sm_count, 32 * size.shader_warps_per_sm)
        } else if self.has_extension(ash::amd::shader_core_properties2::NAME)
            && self.has_extension(ash::amd::shader_core_properties::NAME)
        {
            let mut active = vk::PhysicalDeviceShaderCoreProperties2AMD::default();
            let mut each = vk::PhysicalDeviceShaderCorePropertiesAMD::default();
            active.p_next = (&raw mut each).cast();
            ask((&raw mut active).cast());
            let waves = each.simd_per_compute_unit * each.wavefronts_per_simd;
            (
                active.active_compute_unit_count,
                waves * each.wavefront_size,
            )
        } else if self.has_extension(ash::arm::shader_core_builtins::NAME) {
            let mut size = vk::PhysicalDeviceShaderCoreBuiltinsPropertiesARM::default();
            ask((&raw mut size).cast());
            // The extension does not say how many threads a warp has.
            (size.shader_core_count, 0)
        } else {
            return None;
        };
        Some(DeviceProperties {
            multiprocessors,
            threads_per_multiprocessor: threads,
            ..DeviceProperties::default()
        })
    }

    /// Returns whether performance queries are to count on the device. NVIDIA's GPUs are sampled from outside of the
    /// program.
    pub fn is_to_count(self) -> bool {
        const NVIDIA: u32 = 0x10de;
        std::env::var_os(gapscope_spool::env::COUNTERS).is_some()
            && self.properties().vendor_id != NVIDIA
    }

    /// Checks that performance queries are available.
    ///
    /// # Errors
    /// Returns the reason why they are not.
    pub fn performance_queries(self) -> Result<(), &'static str> {
        const ABSENT: &str = "the driver does not offer VK_KHR_performance_query";
        let features2 = self.features2().ok_or(ABSENT)?;
        if !self.has_extension(performance::EXTENSION) {
            return Err(ABSENT);
        }
        let mut queries = vk::PhysicalDevicePerformanceQueryFeaturesKHR::default();
        let mut features = vk::PhysicalDeviceFeatures2::default().push_next(&mut queries);
        // SAFETY: the instance may use the function, and the device knows the structure.
        unsafe { features2(self.handle, &mut features) };
        match queries.performance_counter_query_pools == vk::TRUE {
            true => Ok(()),
            false => Err("the driver offers VK_KHR_performance_query, and nothing to count"),
        }
    }

    /// Returns the counters that a queue family can count in one pass. `get` belongs to the next layer of the
    /// device.
    pub fn counters(self, get: GetInstanceProcAddr, family: u32) -> Option<FamilyCounters> {
        // SAFETY: the device has the extension.
        unsafe { performance::counters(self.instance.handle, self.handle, get, family) }
    }

    /// Returns whether asking for results makes the driver wait for the device: llvmpipe does so in any case
    /// (lvp_query.c). The environment may decide otherwise.
    fn must_copy_results(self) -> bool {
        match std::env::var(gapscope_spool::env::RESULTS).as_deref() {
            Ok("copy") => true,
            Ok("ask") => false,
            _ => self.driver().driver_id == vk::DriverId::MESA_LLVMPIPE,
        }
    }

    /// Returns the queue families, with the delivery that is possible with or without host query reset.
    pub fn families(self, host_query_reset: bool) -> Families {
        let must_copy = self.must_copy_results();
        let family = |family: &vk::QueueFamilyProperties| {
            use vk::QueueFlags as Flags;
            let can_copy = family
                .queue_flags
                .intersects(Flags::GRAPHICS | Flags::COMPUTE);
            let timed = can_copy
                || family.queue_flags.intersects(
                    Flags::TRANSFER
                        | Flags::VIDEO_DECODE_KHR
                        | Flags::VIDEO_ENCODE_KHR
                        | Flags::OPTICAL_FLOW_NV,
                );
            let delivery = match (family.timestamp_valid_bits > 0 && timed, can_copy) {
                (false, _) => Delivery::None,
                (true, true) if must_copy || !host_query_reset => Delivery::Copied,
                (true, _) if host_query_reset => Delivery::Asked,
                (true, _) => Delivery::None,
            };
            Family {
                flags: family.queue_flags,
                queues: family.queue_count,
                timestamp_bits: family.timestamp_valid_bits,
                delivery,
            }
        };
        Families(self.queue_families().iter().map(family).collect())
    }

    /// Returns whether host query reset is the best way to deliver the results of some family.
    pub fn wants_host_query_reset(self) -> bool {
        self.families(true).have(Delivery::Asked)
    }

    /// Returns the source of host query reset.
    ///
    /// # Errors
    /// Returns the reason why it is not available.
    pub fn host_query_reset(self) -> Result<HostQueryResetBy, &'static str> {
        const ABSENT: &str = "the driver does not offer it";
        let features2 = self.features2().ok_or(
            "the program asks for Vulkan 1.0 without VK_KHR_get_physical_device_properties2",
        )?;
        let by = if self.instance.api_version.min(self.api_version()) >= vk::API_VERSION_1_2 {
            HostQueryResetBy::Core
        } else if self.has_extension(HOST_QUERY_RESET) {
            HostQueryResetBy::Extension
        } else {
            return Err(ABSENT);
        };
        let mut reset = vk::PhysicalDeviceHostQueryResetFeatures::default();
        let mut features = vk::PhysicalDeviceFeatures2::default().push_next(&mut reset);
        // SAFETY: the instance may use the function, and the device knows the structure.
        unsafe { features2(self.handle, &mut features) };
        let is_there = reset.host_query_reset == vk::TRUE;
        is_there.then_some(by).ok_or(ABSENT)
    }

    /// Returns the best host clock among those that the driver reads together with the device's. `get` belongs to the
    /// next layer of the device.
    pub fn host_clock(self, get: GetInstanceProcAddr) -> Option<vk::TimeDomainEXT> {
        // The function is named after the extension that the device has: a layer below that wraps handles lets
        // functions through that it does not know, and the driver would then get the wrapped handle.
        let extensions = [
            (
                c"VK_EXT_calibrated_timestamps",
                c"vkGetPhysicalDeviceCalibrateableTimeDomainsEXT",
            ),
            (
                c"VK_KHR_calibrated_timestamps",
                c"vkGetPhysicalDeviceCalibrateableTimeDomainsKHR",
            ),
        ];
        let (_, name) = extensions
            .into_iter()
            .find(|(extension, _)| self.has_extension(extension))?;
        // SAFETY: a function of that name has that type; the two-call idiom.
        let offered = unsafe {
            let function = get(self.instance.handle, name.as_ptr())?;
            let domains = std::mem::transmute::<
                unsafe extern "system" fn(),
                vk::PFN_vkGetPhysicalDeviceCalibrateableTimeDomainsKHR,
            >(function);
            let mut count = 0;
            if domains(self.handle, &mut count, std::ptr::null_mut()) != vk::Result::SUCCESS {
                return None;
            }
            let mut offered = vec![vk::TimeDomainEXT::default(); count as usize];
            let _ = domains(self.handle, &mut count, offered.as_mut_ptr());
            offered.truncate(count as usize);
            offered
        };
        let has = |domain: &vk::TimeDomainEXT| offered.contains(domain);
        if !has(&vk::TimeDomainEXT::DEVICE) {
            return None;
        }
        [
            vk::TimeDomainEXT::CLOCK_MONOTONIC,
            vk::TimeDomainEXT::CLOCK_MONOTONIC_RAW,
        ]
        .into_iter()
        .find(has)
    }
}
