//! Devices as programs create and destroy them, and their queues.

use crate::api::device_plan::DevicePlan;
use crate::api::instance::Instance;
use crate::api::loader;
use crate::api::physical_device::PhysicalDevice;
use crate::device::Device;
use crate::devices;
use crate::recorder::recorder;
use ash::vk;
use ash::vk::Handle;
use gapscope_spool::hook::guard;

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
        let Some(create) = instance.create_device(next.get_instance_proc_addr) else {
            return vk::Result::ERROR_INITIALIZATION_FAILED;
        };
        let described = PhysicalDevice::new(instance, physical);
        let planned = recorder()
            .and_then(|recorder| Some((recorder, guard(|| DevicePlan::new(described, &*info))?)));
        let Some((recorder, mut plan)) = planned else {
            let result = create(physical, info, allocator, out);
            if result == vk::Result::SUCCESS {
                devices::add_unrecorded(*out, next.get_device_proc_addr);
            }
            return result;
        };
        let mut result = create(physical, &plan.create_info(&*info), allocator, out);
        if result != vk::Result::SUCCESS && plan.adds() {
            // Our additions must not keep the program from its device.
            plan.drop_additions();
            next.restore();
            result = create(physical, info, allocator, out);
        }
        if result == vk::Result::SUCCESS {
            guard(|| {
                let device = Device::new(
                    recorder,
                    instance,
                    described,
                    &plan,
                    &next,
                    set_loader_data,
                    *out,
                );
                devices::add(device, next.get_device_proc_addr);
            });
        }
        result
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
        let Some(device) = devices::of(handle) else {
            return;
        };
        guard(|| {
            device.end();
            devices::remove(device);
        });
        if let Some(destroy) = device.functions.destroy_device {
            destroy(handle, allocator);
        }
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
        if let Some((device, call)) = devices::with(handle, |f| f.get_device_queue) {
            call(handle, family, index, out);
            guard(|| device.add_queue(*out, family, index));
        }
    }
}

pub unsafe extern "system" fn get_device_queue2(
    handle: vk::Device,
    info: *const vk::DeviceQueueInfo2<'_>,
    out: *mut vk::Queue,
) {
    // SAFETY: the program's own call on a live device.
    unsafe {
        if let Some((device, call)) = devices::with(handle, |f| f.get_device_queue2) {
            call(handle, info, out);
            guard(|| device.add_queue(*out, (*info).queue_family_index, (*info).queue_index));
        }
    }
}
