//! Hooks of the creation and destruction of images, whose texel sizes are kept for the sizes of copies.

use crate::device::Device;
use ash::vk;
use gapscope_spool::hook::guard;
use gapscope_vulkan_layer::device_hooks;

device_hooks! {
    Device;

    fn create_image(
        handle: vk::Device,
        info: *const vk::ImageCreateInfo<'_>,
        allocator: *const vk::AllocationCallbacks<'_>,
        out: *mut vk::Image,
    ) -> vk::Result = |device, call| {
        let result = call(handle, info, allocator, out);
        if result == vk::Result::SUCCESS {
            guard(|| device.images.add(*out, (*info).format));
        }
        result
    }

    fn destroy_image(
        handle: vk::Device,
        image: vk::Image,
        allocator: *const vk::AllocationCallbacks<'_>,
    ) = |device, call| {
        guard(|| device.images.remove(image));
        call(handle, image, allocator);
    }
}
