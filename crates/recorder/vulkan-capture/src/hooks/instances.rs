//! Instances as programs create and destroy them.

use ash::vk::{self, Handle};
use gapscope_spool::hook::guard;
use gapscope_vulkan_layer::loader;

use crate::api::instance::Instance;

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
        guard(|| instance.remove());
        (instance.next.fp_v1_0().destroy_instance)(handle, allocator);
    }
}
