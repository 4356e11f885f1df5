//! Devices as programs create and destroy them, their queues, and waits for those.

use std::sync::PoisonError;

use ash::vk::{self, Handle};
use gapscope_spool::hook::guard;
use gapscope_vulkan_layer::loader;

use crate::api::device::{self, DebugUtils, Device, Queue, finder};
use crate::api::features;
use crate::api::instance::Instance;
use crate::hooks::refused::RefusedCommands;
use crate::window;

pub unsafe extern "system" fn create_device(
    physical: vk::PhysicalDevice,
    info: *const vk::DeviceCreateInfo<'_>,
    allocator: *const vk::AllocationCallbacks<'_>,
    out: *mut vk::Device,
) -> vk::Result {
    // SAFETY: the loader passes a valid chain, and handles of an instance that we have seen made.
    unsafe {
        let chain = (*info).p_next;
        let set_loader_data = loader::set_device_loader_data(chain);
        let Some(next) = loader::next_device(chain) else {
            return vk::Result::ERROR_INITIALIZATION_FAILED;
        };
        let Some(instance) = Instance::of(physical.as_raw()) else {
            return vk::Result::ERROR_INITIALIZATION_FAILED;
        };
        let create =
            (next.get_instance_proc_addr)(instance.next.handle(), c"vkCreateDevice".as_ptr());
        let Some(create) = create else {
            return vk::Result::ERROR_INITIALIZATION_FAILED;
        };
        let create =
            std::mem::transmute::<unsafe extern "system" fn(), vk::PFN_vkCreateDevice>(create);
        let result = create(physical, info, allocator, out);
        if result == vk::Result::SUCCESS {
            let get = next.get_device_proc_addr;
            let made = window::capture().and_then(|capture| {
                let device = guard(|| new(instance, physical, &*info, *out, get, set_loader_data))?;
                capture.device_made();
                Some(device)
            });
            device::add(*out, made, get);
        }
        result
    }
}

/// # Safety
/// `handle` has just been made from the others.
unsafe fn new(
    instance: &'static Instance,
    physical: vk::PhysicalDevice,
    info: &vk::DeviceCreateInfo<'_>,
    handle: vk::Device,
    get: loader::GetDeviceProcAddr,
    set_loader_data: Option<loader::SetDeviceLoaderData>,
) -> &'static Device {
    // SAFETY: as the caller promises.
    unsafe {
        let find = finder(handle, get);
        let refused = |names: &[&str]| {
            names
                .iter()
                .find_map(|name| get(handle, name.as_ptr().cast()))
        };
        let families = instance
            .next
            .get_physical_device_queue_family_properties(physical);
        let device = Device {
            handle,
            next: ash::Device::load_with(find, handle),
            push_descriptor: ash::khr::push_descriptor::DeviceFn::load(find),
            maintenance6: ash::khr::maintenance6::DeviceFn::load(find),
            debug_utils: DebugUtils::load(handle, get),
            refused: RefusedCommands::load(refused),
            set_loader_data,
            families,
            memory: instance
                .next
                .get_physical_device_memory_properties(physical),
            timestamp_period_ns: instance
                .next
                .get_physical_device_properties(physical)
                .limits
                .timestamp_period,
            described: features::describe(instance, physical, info),
            is_group: features::is_group(info),
            queues: Default::default(),
            objects: Default::default(),
            waits: Default::default(),
        };
        Box::leak(Box::new(device))
    }
}

pub unsafe extern "system" fn destroy_device(
    handle: vk::Device,
    allocator: *const vk::AllocationCallbacks<'_>,
) {
    if handle == vk::Device::null() {
        return;
    }
    // SAFETY: the program destroys a live device that is idle.
    unsafe {
        let Some(device) = device::of(handle) else {
            return;
        };
        guard(|| {
            if let Some(capture) = window::capture() {
                capture.device_ends(device);
            }
        });
        device::remove(handle);
        (device.next.fp_v1_0().destroy_device)(handle, allocator);
    }
}

pub unsafe extern "system" fn get_device_queue(
    handle: vk::Device,
    family: u32,
    index: u32,
    out: *mut vk::Queue,
) {
    // SAFETY: the program's own call on a live device.
    unsafe {
        let Some(device) = device::of(handle) else {
            return;
        };
        (device.next.fp_v1_0().get_device_queue)(handle, family, index, out);
        let queue = Queue {
            handle: *out,
            family,
            index,
            protected: false,
        };
        guard(|| device.add_queue(queue));
    }
}

pub unsafe extern "system" fn get_device_queue2(
    handle: vk::Device,
    info: *const vk::DeviceQueueInfo2<'_>,
    out: *mut vk::Queue,
) {
    // SAFETY: the program's own call on a live device.
    unsafe {
        let Some(device) = device::of(handle) else {
            return;
        };
        (device.next.fp_v1_1().get_device_queue2)(handle, info, out);
        if *out == vk::Queue::null() {
            return;
        }
        let queue = Queue {
            handle: *out,
            family: (*info).queue_family_index,
            index: (*info).queue_index,
            protected: (*info)
                .flags
                .contains(vk::DeviceQueueCreateFlags::PROTECTED),
        };
        guard(|| device.add_queue(queue));
    }
}

pub unsafe extern "system" fn queue_wait_idle(queue: vk::Queue) -> vk::Result {
    // SAFETY: the program's own call on a live queue.
    unsafe {
        let Some(device) = device::of(queue) else {
            return vk::Result::ERROR_DEVICE_LOST;
        };
        let _alone = device.waits.read().unwrap_or_else(PoisonError::into_inner);
        (device.next.fp_v1_0().queue_wait_idle)(queue)
    }
}

pub unsafe extern "system" fn device_wait_idle(handle: vk::Device) -> vk::Result {
    // SAFETY: the program's own call on a live device.
    unsafe {
        let Some(device) = device::of(handle) else {
            return vk::Result::ERROR_DEVICE_LOST;
        };
        let _alone = device.waits.read().unwrap_or_else(PoisonError::into_inner);
        (device.next.fp_v1_0().device_wait_idle)(handle)
    }
}
