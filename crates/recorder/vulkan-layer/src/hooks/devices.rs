//! Hooks the creation and destruction of devices, and the calls by which programs get queues, and tells the layer
//! through [`Layer`].

use ash::vk;
use ash::vk::Handle;

use super::Allocator;
use crate::device_hooks;
use crate::instance::Instance;
use crate::layer::{self, DevicePlan, Layer, NewDevice, Queue};
use crate::loader;

/// vkCreateDevice: makes the device as the layer plans it, or as the program asks where the driver refuses that, and
/// keeps it.
pub(crate) unsafe extern "system" fn create_device<L: Layer>(
    physical: vk::PhysicalDevice,
    info: *const vk::DeviceCreateInfo<'_>,
    allocator: Allocator<'_>,
    out: *mut vk::Device,
) -> vk::Result {
    // SAFETY: the loader passes a valid chain, and handles of an instance that was made through the layer.
    unsafe {
        let chain = (*info).p_next;
        let set_loader_data = loader::set_device_loader_data(chain);
        let Some(next) = loader::next_device(chain) else {
            return vk::Result::ERROR_INITIALIZATION_FAILED;
        };
        let Some(instance) = Instance::find(physical.as_raw()) else {
            return vk::Result::ERROR_INITIALIZATION_FAILED;
        };
        let Some(create) = instance.create_device(next.get_instance_proc_addr) else {
            return vk::Result::ERROR_INITIALIZATION_FAILED;
        };
        let mut plan = L::guard(|| L::plan(instance, physical, &*info)).flatten();
        let mut result = match &mut plan {
            Some(plan) => create(physical, &plan.create_info(&*info), allocator, out),
            None => create(physical, info, allocator, out),
        };
        if result != vk::Result::SUCCESS && plan.as_mut().is_some_and(L::Plan::drop_additions) {
            // The layer's additions must not keep the program from its device.
            next.restore();
            result = create(physical, info, allocator, out);
        }
        if result == vk::Result::SUCCESS {
            let made = NewDevice {
                instance,
                physical,
                info: &*info,
                handle: *out,
                next: &next,
                set_loader_data,
            };
            let device = plan.and_then(|plan| L::guard(|| L::new(&plan, made)).flatten());
            L::devices().add(*out, device, next.get_device_proc_addr);
        }
        result
    }
}

/// vkDestroyDevice: ends the layer's device, then passes the call on.
pub(crate) unsafe extern "system" fn destroy_device<L: Layer>(
    handle: vk::Device,
    allocator: Allocator<'_>,
) {
    if handle == vk::Device::null() {
        return;
    }
    // SAFETY: the program destroys a live device that is idle.
    unsafe {
        let Some((device, call)) = layer::find::<L, _>(handle, |f| f.destroy_device) else {
            return;
        };
        L::guard(|| device.end());
        L::devices().remove(device);
        call(handle, allocator);
    }
}

device_hooks! {
    [L: Layer]

    fn get_device_queue(handle: vk::Device, family: u32, index: u32, out: *mut vk::Queue) = around |device, call| {
        call(handle, family, index, out);
        let queue = Queue {
            handle: *out,
            family,
            index,
            is_protected: false,
        };
        add_queue(device, queue);
    };

    fn get_device_queue2(handle: vk::Device, info: *const vk::DeviceQueueInfo2<'_>, out: *mut vk::Queue) = around |device, call| {
        call(handle, info, out);
        let flags = (*info).flags;
        let queue = Queue {
            handle: *out,
            family: (*info).queue_family_index,
            index: (*info).queue_index,
            is_protected: flags.contains(vk::DeviceQueueCreateFlags::PROTECTED),
        };
        add_queue(device, queue);
    };
}

/// Tells the layer of a queue. Without a queue of that number, the driver answers null, which is left out.
fn add_queue<L: Layer>(device: &L, queue: Queue) {
    if queue.handle != vk::Queue::null() {
        L::guard(|| device.add_queue(queue));
    }
}
