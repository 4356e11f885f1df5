//! Creates and destroys devices with their queues, and waits for them.

use std::sync::Mutex;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering::*};

use ash::vk::{self, Handle};

use crate::config::config;
use crate::device::{Device, lock};
use crate::instance::API_VERSION;
use crate::object::{self, Object};
use crate::queue::Queue;
use crate::{chain, features, misuse, physical_device, queue, sync};

pub unsafe extern "system" fn create_device(
    physical_device: vk::PhysicalDevice,
    info: *const vk::DeviceCreateInfo<'_>,
    _: *const vk::AllocationCallbacks<'_>,
    out: *mut vk::Device,
) -> vk::Result {
    const CALL: &str = "vkCreateDevice";
    let Some(physical_device) =
        object::get::<physical_device::PhysicalDevice>(CALL, physical_device)
    else {
        return vk::Result::ERROR_UNKNOWN;
    };
    let info = &*info;
    let known = physical_device::extensions();
    let mut extensions = Vec::new();
    for name in chain::names(
        info.pp_enabled_extension_names,
        info.enabled_extension_count,
    ) {
        match known.iter().find(|&&known| known == name) {
            Some(&known) => extensions.push(known),
            None => return vk::Result::ERROR_EXTENSION_NOT_PRESENT,
        }
    }
    let enabled = features::Enabled::requested(info.p_next);
    if !enabled.supported() {
        return vk::Result::ERROR_FEATURE_NOT_PRESENT;
    }
    let handle = object::create(Device {
        api_version: physical_device.api_version.min(API_VERSION),
        instance_extensions: physical_device.instance_extensions.clone(),
        extensions,
        enabled,
        queues: Mutex::default(),
        threads: Mutex::default(),
        live: Mutex::default(),
        executed: AtomicU64::new(0),
        lost: AtomicBool::new(false),
        profiling: AtomicBool::new(false),
        closing: AtomicBool::new(false),
    });
    let Some(device) = object::get::<Device>(CALL, handle) else {
        return vk::Result::ERROR_UNKNOWN;
    };
    for request in chain::slice(info.p_queue_create_infos, info.queue_create_info_count) {
        let Some(family) = config().families.get(request.queue_family_index as usize) else {
            misuse::report(
                CALL,
                format_args!("there is no queue family {}", request.queue_family_index),
            );
            return vk::Result::ERROR_INITIALIZATION_FAILED;
        };
        if request.queue_count > family.queues {
            misuse::report(
                CALL,
                format_args!("family {} has no more queues", request.queue_family_index),
            );
            return vk::Result::ERROR_INITIALIZATION_FAILED;
        }
        for index in 0..request.queue_count {
            let queue = object::create(Queue::new(
                device,
                request.queue_family_index,
                index,
                family,
            ));
            lock(&device.queues).push(queue);
            if let Some(queue) = object::get::<Queue>(CALL, queue) {
                lock(&device.threads).push(std::thread::spawn(move || queue::run(queue)));
            }
        }
    }
    *out = handle;
    vk::Result::SUCCESS
}

pub unsafe extern "system" fn destroy_device(
    device: vk::Device,
    _: *const vk::AllocationCallbacks<'_>,
) {
    const CALL: &str = "vkDestroyDevice";
    let Some(device) = object::destroy::<Device>(CALL, device) else {
        return;
    };
    for queue in queues(CALL, device) {
        if queue.is_busy() && !device.is_lost() {
            misuse::report(
                CALL,
                format_args!("queue {}.{} still has work", queue.family, queue.index),
            );
        }
    }
    sync::update(|| device.closing.store(true, Release));
    for queue in queues(CALL, device) {
        queue.wake();
    }
    for thread in lock(&device.threads).drain(..) {
        // A thread that panicked has nothing more to report.
        let _ = thread.join();
    }
    for (raw, kind) in lock(&device.live).iter() {
        misuse::report(CALL, format_args!("{kind:?} {raw:#x} is leaked"));
    }
    for queue in std::mem::take(&mut *lock(&device.queues)) {
        object::destroy::<Queue>(CALL, queue);
    }
}

fn queues(call: &str, device: &Device) -> Vec<&'static Object<Queue>> {
    lock(&device.queues)
        .iter()
        .filter_map(|&queue| object::get::<Queue>(call, queue))
        .collect()
}

pub unsafe extern "system" fn get_device_queue(
    device: vk::Device,
    family: u32,
    index: u32,
    out: *mut vk::Queue,
) {
    const CALL: &str = "vkGetDeviceQueue";
    *out = vk::Queue::null();
    let Some(device) = object::get::<Device>(CALL, device) else {
        return;
    };
    match queues(CALL, device)
        .iter()
        .find(|queue| (queue.family, queue.index) == (family, index))
    {
        Some(queue) => *out = vk::Queue::from_raw(std::ptr::from_ref(*queue) as u64),
        None => misuse::report(
            CALL,
            format_args!("the device was created without queue {family}.{index}"),
        ),
    }
}

pub unsafe extern "system" fn get_device_queue2(
    device: vk::Device,
    info: *const vk::DeviceQueueInfo2<'_>,
    out: *mut vk::Queue,
) {
    get_device_queue(device, (*info).queue_family_index, (*info).queue_index, out);
}

pub unsafe extern "system" fn device_wait_idle(device: vk::Device) -> vk::Result {
    const CALL: &str = "vkDeviceWaitIdle";
    let Some(device) = object::get::<Device>(CALL, device) else {
        return vk::Result::ERROR_UNKNOWN;
    };
    let queues = queues(CALL, device);
    sync::wait(device, None, || queues.iter().all(|queue| !queue.is_busy()))
}

pub unsafe extern "system" fn get_peer_memory_features(
    _: vk::Device,
    _: u32,
    _: u32,
    _: u32,
    out: *mut vk::PeerMemoryFeatureFlags,
) {
    *out = vk::PeerMemoryFeatureFlags::empty();
}
