//! Instances, and what they know of physical devices.

use crate::device::{Device, Family, PhysicalProperties, text_of};
use crate::features::{self, ChainWithHostQueryReset, HostQueryReset};
use crate::loader::{self, GetInstanceProcAddr};
use crate::queries::Delivery;
use ash::vk;
use ash::vk::Handle;
use gapscope_spool::event::{ClockSource, CommonEvent};
use gapscope_spool::hook::guard;
use std::borrow::Cow;
use std::ffi::{CStr, c_char, c_void};
use std::sync::{PoisonError, RwLock};

/// An instance, leaked like [`Device`].
pub struct Instance {
    pub handle: vk::Instance,
    pub get: GetInstanceProcAddr,
    api_version: u32,
    destroy: Option<vk::PFN_vkDestroyInstance>,
    queue_families: Option<vk::PFN_vkGetPhysicalDeviceQueueFamilyProperties>,
    properties: Option<vk::PFN_vkGetPhysicalDeviceProperties>,
    properties2: Option<vk::PFN_vkGetPhysicalDeviceProperties2>,
    features2: Option<vk::PFN_vkGetPhysicalDeviceFeatures2>,
    memory: Option<vk::PFN_vkGetPhysicalDeviceMemoryProperties>,
    extensions: Option<vk::PFN_vkEnumerateDeviceExtensionProperties>,
}

static INSTANCES: RwLock<Vec<(usize, &'static Instance)>> = RwLock::new(Vec::new());

pub unsafe extern "system" fn create_instance(
    info: *const vk::InstanceCreateInfo<'_>,
    allocator: *const vk::AllocationCallbacks<'_>,
    out: *mut vk::Instance,
) -> vk::Result {
    // SAFETY: the loader passes a valid create info with its link in the chain.
    unsafe {
        let Some(get) = loader::next_instance((*info).p_next) else {
            return vk::Result::ERROR_INITIALIZATION_FAILED;
        };
        let Some(create) = get(vk::Instance::null(), c"vkCreateInstance".as_ptr()) else {
            return vk::Result::ERROR_INITIALIZATION_FAILED;
        };
        let create =
            std::mem::transmute::<unsafe extern "system" fn(), vk::PFN_vkCreateInstance>(create);
        let result = create(info, allocator, out);
        if result == vk::Result::SUCCESS {
            let application = (*info).p_application_info;
            let api_version = if application.is_null() {
                0
            } else {
                (*application).api_version
            };
            guard(|| Instance::add(*out, get, api_version.max(vk::API_VERSION_1_0)));
        }
        result
    }
}

pub unsafe extern "system" fn destroy_instance(
    handle: vk::Instance,
    allocator: *const vk::AllocationCallbacks<'_>,
) {
    if handle == vk::Instance::null() {
        return;
    }
    // SAFETY: the program destroys a live instance. The function was resolved when it was made: asked for now, some
    // chains answer with their top.
    unsafe {
        let Some(instance) = Instance::of(handle.as_raw()) else {
            return;
        };
        guard(|| {
            crate::device::instance_ends(instance);
            let mut instances = INSTANCES.write().unwrap_or_else(PoisonError::into_inner);
            instances.retain(|(_, i)| !std::ptr::eq(*i, instance));
        });
        if let Some(destroy) = instance.destroy {
            destroy(handle, allocator);
        }
    }
}

impl Instance {
    unsafe fn add(handle: vk::Instance, get: GetInstanceProcAddr, api_version: u32) {
        macro_rules! function {
            ($type:ident, $($name:literal),+) => {
                // SAFETY: a function of that name has that type.
                [$($name),+].into_iter().find_map(|name: &CStr| unsafe {
                    get(handle, name.as_ptr())
                        .map(|f| std::mem::transmute::<unsafe extern "system" fn(), vk::$type>(f))
                })
            };
        }
        let instance = Instance {
            handle,
            get,
            api_version,
            destroy: function!(PFN_vkDestroyInstance, c"vkDestroyInstance"),
            queue_families: function!(
                PFN_vkGetPhysicalDeviceQueueFamilyProperties,
                c"vkGetPhysicalDeviceQueueFamilyProperties"
            ),
            properties: function!(
                PFN_vkGetPhysicalDeviceProperties,
                c"vkGetPhysicalDeviceProperties"
            ),
            properties2: function!(
                PFN_vkGetPhysicalDeviceProperties2,
                c"vkGetPhysicalDeviceProperties2",
                c"vkGetPhysicalDeviceProperties2KHR"
            ),
            features2: function!(
                PFN_vkGetPhysicalDeviceFeatures2,
                c"vkGetPhysicalDeviceFeatures2",
                c"vkGetPhysicalDeviceFeatures2KHR"
            ),
            memory: function!(
                PFN_vkGetPhysicalDeviceMemoryProperties,
                c"vkGetPhysicalDeviceMemoryProperties"
            ),
            extensions: function!(
                PFN_vkEnumerateDeviceExtensionProperties,
                c"vkEnumerateDeviceExtensionProperties"
            ),
        };
        // SAFETY: the instance has just been made.
        let key = unsafe { loader::dispatch_key(handle.as_raw()) };
        INSTANCES
            .write()
            .unwrap_or_else(PoisonError::into_inner)
            .push((key, Box::leak(Box::new(instance))));
    }

    /// The instance to which a VkInstance or VkPhysicalDevice belongs.
    ///
    /// # Safety
    /// `handle` is live.
    pub unsafe fn of(handle: u64) -> Option<&'static Instance> {
        // SAFETY: as the caller promises.
        let key = unsafe { loader::dispatch_key(handle) };
        let instances = INSTANCES.read().unwrap_or_else(PoisonError::into_inner);
        instances
            .iter()
            .find(|(k, _)| *k == key)
            .map(|(_, instance)| *instance)
    }

    /// The next layer's vkCreateDevice.
    pub unsafe fn create_device(&self, get: GetInstanceProcAddr) -> Option<vk::PFN_vkCreateDevice> {
        // SAFETY: the name has that type.
        unsafe {
            get(self.handle, c"vkCreateDevice".as_ptr()).map(|f| {
                std::mem::transmute::<unsafe extern "system" fn(), vk::PFN_vkCreateDevice>(f)
            })
        }
    }

    /// Whether the device has an extension.
    pub fn has_extension(&self, physical: vk::PhysicalDevice, wanted: &CStr) -> bool {
        let Some(enumerate) = self.extensions else {
            return false;
        };
        let mut count = 0;
        // SAFETY: the two-call idiom; the second call writes at most `count` entries.
        unsafe {
            if enumerate(physical, std::ptr::null(), &mut count, std::ptr::null_mut())
                != vk::Result::SUCCESS
            {
                return false;
            }
            let mut found = vec![vk::ExtensionProperties::default(); count as usize];
            let _ = enumerate(physical, std::ptr::null(), &mut count, found.as_mut_ptr());
            found.truncate(count as usize);
            found
                .iter()
                .any(|e| e.extension_name_as_c_str() == Ok(wanted))
        }
    }

    /// What we add to a device: the extension that reads both clocks, and host query reset for transfer-only queues.
    pub unsafe fn plan_device(
        &self,
        physical: vk::PhysicalDevice,
        info: &vk::DeviceCreateInfo<'_>,
    ) -> DevicePlan {
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
            None => NAMES
                .into_iter()
                .find(|name| self.has_extension(physical, name)),
        };
        extensions.extend(addition.map(CStr::as_ptr));

        // SAFETY: the chain is valid.
        let asked = unsafe { features::host_query_reset(info.p_next) };
        let wanted = self.needs_host_query_reset(physical);
        let (host_query_reset, reset) = match asked {
            HostQueryReset::Enabled => (true, AddReset::No),
            HostQueryReset::Absent if wanted => (
                true,
                AddReset::Before(
                    vk::PhysicalDeviceHostQueryResetFeatures::default().host_query_reset(true),
                ),
            ),
            HostQueryReset::Copied(chain) if wanted => (true, AddReset::Inside(chain)),
            _ => (false, AddReset::No),
        };
        DevicePlan {
            extensions,
            calibrated: present.is_some() || addition.is_some(),
            adds_extension: addition.is_some(),
            host_query_reset,
            reset,
        }
    }

    /// True when a family can time work but not reset queries in it, and the device is able to do so from the host.
    fn needs_host_query_reset(&self, physical: vk::PhysicalDevice) -> bool {
        // Core since 1.2.
        if self.api_version < vk::API_VERSION_1_2
            || self.api_version_of(physical) < vk::API_VERSION_1_2
        {
            return false;
        }
        let Some(features2) = self.features2 else {
            return false;
        };
        let mut reset = vk::PhysicalDeviceHostQueryResetFeatures::default();
        let mut features = vk::PhysicalDeviceFeatures2::default().push_next(&mut reset);
        // SAFETY: a valid chain of structures of Vulkan 1.2.
        unsafe { features2(physical, &mut features) };
        reset.host_query_reset == vk::TRUE
            && self
                .families(physical, true)
                .iter()
                .any(|family| family.delivery == Delivery::Asked)
    }

    /// True where asking for results makes the driver wait for the device: llvmpipe does so in any case
    /// (lvp_query.c). The environment may decide otherwise.
    fn must_copy(&self, physical: vk::PhysicalDevice) -> bool {
        match std::env::var(gapscope_spool::env::RESULTS).as_deref() {
            Ok("copy") => true,
            Ok("ask") => false,
            _ => self.driver(physical).driver_id == vk::DriverId::MESA_LLVMPIPE,
        }
    }

    /// What Vulkan 1.2 says of the driver; empty before.
    fn driver(&self, physical: vk::PhysicalDevice) -> vk::PhysicalDeviceDriverProperties<'static> {
        let mut driver = vk::PhysicalDeviceDriverProperties::default();
        if let Some(get) = self
            .properties2
            .filter(|_| self.api_version_of(physical) >= vk::API_VERSION_1_2)
        {
            let mut all = vk::PhysicalDeviceProperties2::default().push_next(&mut driver);
            // SAFETY: a valid chain of structures of Vulkan 1.2.
            unsafe { get(physical, &mut all) };
        }
        driver.p_next = std::ptr::null_mut();
        driver
    }

    fn api_version_of(&self, physical: vk::PhysicalDevice) -> u32 {
        self.raw_properties(physical).api_version
    }

    fn raw_properties(&self, physical: vk::PhysicalDevice) -> vk::PhysicalDeviceProperties {
        let mut properties = vk::PhysicalDeviceProperties::default();
        if let Some(get) = self.properties {
            // SAFETY: fills the structure.
            unsafe { get(physical, &mut properties) };
        }
        properties
    }

    pub fn families(&self, physical: vk::PhysicalDevice, host_query_reset: bool) -> Vec<Family> {
        let Some(get) = self.queue_families else {
            return Vec::new();
        };
        let mut count = 0;
        let mut families;
        // SAFETY: the two-call idiom.
        unsafe {
            get(physical, &mut count, std::ptr::null_mut());
            families = vec![vk::QueueFamilyProperties::default(); count as usize];
            get(physical, &mut count, families.as_mut_ptr());
        }
        let copy = self.must_copy(physical);
        families
            .iter()
            .map(|family| {
                use vk::QueueFlags as Flags;
                let copies = family
                    .queue_flags
                    .intersects(Flags::GRAPHICS | Flags::COMPUTE);
                let times = copies || family.queue_flags.contains(Flags::TRANSFER);
                let delivery = match (family.timestamp_valid_bits > 0 && times, copies) {
                    (false, _) => Delivery::None,
                    (true, true) if copy || !host_query_reset => Delivery::Copied,
                    (true, _) if host_query_reset => Delivery::Asked,
                    (true, _) => Delivery::None,
                };
                Family {
                    flags: family.queue_flags,
                    queues: family.queue_count,
                    timestamp_bits: family.timestamp_valid_bits,
                    delivery,
                }
            })
            .collect()
    }

    pub fn properties(&self, physical: vk::PhysicalDevice) -> PhysicalProperties {
        let mut memory = vk::PhysicalDeviceMemoryProperties::default();
        if let Some(get) = self.memory {
            // SAFETY: fills the structure.
            unsafe { get(physical, &mut memory) };
        }
        PhysicalProperties {
            result_memory: crate::device::result_memory(&memory),
            memory,
            nanoseconds_per_tick: self.raw_properties(physical).limits.timestamp_period,
        }
    }

    pub fn write_device(&self, device: &Device, physical: vk::PhysicalDevice) {
        let properties = self.raw_properties(physical);
        let mut uuid = properties.pipeline_cache_uuid;
        let mut driver = format!("{:#x}", properties.driver_version);
        if let Some(get) = self
            .properties2
            .filter(|_| self.api_version_of(physical) >= vk::API_VERSION_1_2)
        {
            let mut ids = vk::PhysicalDeviceIDProperties::default();
            let mut names = vk::PhysicalDeviceDriverProperties::default();
            let mut all = vk::PhysicalDeviceProperties2::default()
                .push_next(&mut ids)
                .push_next(&mut names);
            // SAFETY: a valid chain of structures of Vulkan 1.2.
            unsafe { get(physical, &mut all) };
            uuid = ids.device_uuid;
            driver = format!(
                "{} {}",
                text_of(&names.driver_name),
                text_of(&names.driver_info)
            )
            .trim()
            .to_owned();
        }
        let heaps = &device.physical.memory.memory_heaps
            [..device.physical.memory.memory_heap_count as usize];
        device.recorder.write(&CommonEvent::Device {
            device: device.id,
            api: Cow::Borrowed("vulkan"),
            name: text_of(&properties.device_name),
            driver: Cow::Owned(driver),
            uuid,
            nanoseconds_per_tick: f64::from(device.physical.nanoseconds_per_tick),
            clock: if device.clock.is_calibrated() {
                ClockSource::Calibrated
            } else {
                ClockSource::Brackets
            },
            heaps: heaps.iter().map(|heap| heap.size).collect(),
        });
    }
}

/// How the program's VkDeviceCreateInfo is changed.
pub struct DevicePlan {
    extensions: Vec<*const c_char>,
    /// The clocks can be read together.
    pub calibrated: bool,
    /// Queries can be reset from the host.
    pub host_query_reset: bool,
    adds_extension: bool,
    reset: AddReset,
}

/// How host query reset is added to the program's features.
enum AddReset {
    No,
    /// As a structure of its own before the chain.
    Before(vk::PhysicalDeviceHostQueryResetFeatures<'static>),
    /// In a copy of the program's structure.
    Inside(ChainWithHostQueryReset),
}

impl DevicePlan {
    pub fn adds(&self) -> bool {
        self.adds_extension || !matches!(self.reset, AddReset::No)
    }

    /// The driver refused our additions: what it gave without them.
    pub fn drop_additions(&mut self) {
        self.calibrated &= !self.adds_extension;
        self.host_query_reset &= matches!(self.reset, AddReset::No);
    }

    /// The create info to pass on. It borrows from `self`.
    pub fn create_info<'a>(
        &'a mut self,
        info: &vk::DeviceCreateInfo<'a>,
    ) -> vk::DeviceCreateInfo<'a> {
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
        changed
    }
}

/// The structure of one kind in a pNext chain.
///
/// # Safety
/// `chain` is a valid pNext chain, and `T` the structure of that type.
pub unsafe fn find<'a, T>(chain: *const c_void, wanted: vk::StructureType) -> Option<&'a T> {
    let mut node = chain.cast::<vk::BaseInStructure<'_>>();
    while !node.is_null() {
        // SAFETY: as the caller promises.
        unsafe {
            if (*node).s_type == wanted {
                return Some(&*node.cast::<T>());
            }
            node = (*node).p_next;
        }
    }
    None
}

/// A program's array, which may be null when it is empty.
///
/// # Safety
/// `first` points to `count` values that outlive the result, or `count` is 0.
pub unsafe fn slice<'a, T>(first: *const T, count: u32) -> &'a [T] {
    if count == 0 || first.is_null() {
        return &[];
    }
    // SAFETY: as the caller promises.
    unsafe { std::slice::from_raw_parts(first, count as usize) }
}
