//! Hooks the creation and destruction of instances (the program's connections to Vulkan), which are kept as
//! [`Instance`]s.

use ash::vk;
use ash::vk::Handle;

use super::Allocator;
use crate::instance::Instance;
use crate::layer::Layer;
use crate::loader;

/// vkCreateInstance: passes the call on to the next layer, which the loader names in the chain, and keeps the
/// instance.
pub(crate) unsafe extern "system" fn create_instance<L: Layer>(
    info: *const vk::InstanceCreateInfo<'_>,
    allocator: Allocator<'_>,
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
            L::guard(|| Instance::add(*out, get, &*info));
        }
        result
    }
}

/// vkDestroyInstance: forgets the instance, then passes the call on.
pub(crate) unsafe extern "system" fn destroy_instance<L: Layer>(
    handle: vk::Instance,
    allocator: Allocator<'_>,
) {
    if handle == vk::Instance::null() {
        return;
    }
    // SAFETY: the program destroys a live instance.
    unsafe {
        let Some(instance) = Instance::find(handle.as_raw()) else {
            return;
        };
        L::guard(|| L::end_instance(instance));
        instance.remove();
        (instance.next.fp_v1_0().destroy_instance)(handle, allocator);
    }
}
