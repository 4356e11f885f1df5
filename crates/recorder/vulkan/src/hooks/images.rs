//! Images as programs create and destroy them.

use crate::devices;
use ash::vk;
use gapscope_spool::hook::guard;

pub unsafe extern "system" fn create_image(
    handle: vk::Device,
    info: *const vk::ImageCreateInfo<'_>,
    allocator: *const vk::AllocationCallbacks<'_>,
    out: *mut vk::Image,
) -> vk::Result {
    // SAFETY: the program's own call.
    unsafe {
        let Some((device, call)) = devices::with(handle, |f| f.create_image) else {
            return vk::Result::ERROR_INITIALIZATION_FAILED;
        };
        let result = call(handle, info, allocator, out);
        if result == vk::Result::SUCCESS {
            guard(|| device.images.add(*out, (*info).format));
        }
        result
    }
}

pub unsafe extern "system" fn destroy_image(
    handle: vk::Device,
    image: vk::Image,
    allocator: *const vk::AllocationCallbacks<'_>,
) {
    // SAFETY: the program's own call.
    unsafe {
        let Some((device, call)) = devices::with(handle, |f| f.destroy_image) else {
            return;
        };
        guard(|| device.images.remove(image));
        call(handle, image, allocator);
    }
}
