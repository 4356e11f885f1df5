//! Instances as programs create and destroy them.

use crate::api::instance::Instance;
use crate::api::loader;
use crate::devices;
use ash::vk;
use ash::vk::Handle;
use gapscope_spool::hook::guard;

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
            guard(|| Instance::add(*out, get, &*info));
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
    // SAFETY: the program destroys a live instance.
    unsafe {
        let Some(instance) = Instance::of(handle.as_raw()) else {
            return;
        };
        guard(|| {
            devices::stop_instance(instance);
            instance.remove();
        });
        if let Some(destroy) = instance.destroy {
            destroy(handle, allocator);
        }
    }
}
