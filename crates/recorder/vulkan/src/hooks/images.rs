//! Hooks the creation and destruction of images. The size of an image's texel (pixel) is kept, by which the bytes of
//! copies are known.

use crate::device::Device;
use ash::vk;
use gapscope_vulkan_layer::device_hooks;

device_hooks! {
    [Device]

    fn create_image(
        handle: vk::Device,
        info: *const vk::ImageCreateInfo<'_>,
        allocator: *const vk::AllocationCallbacks<'_>,
        out: *mut vk::Image,
    ) -> vk::Result = after |device| device.images.add(*out, (*info).format);

    fn destroy_image(
        handle: vk::Device,
        image: vk::Image,
        allocator: *const vk::AllocationCallbacks<'_>,
    ) = before |device| device.images.remove(image);
}
