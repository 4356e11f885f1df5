//! Simulates images, just enough for a render pass: they take memory and hold nothing.

use std::sync::OnceLock;

use ash::vk;

use crate::buffer::memory_dedication;
use crate::device::{self, destroy_functions, plain_objects};
use crate::memory::{self, DeviceMemory};
use crate::object::{self, Body};
use crate::{chain, misuse};

/// An upper bound over the uncompressed formats.
const TEXEL_BYTES: u64 = 16;

pub struct Image {
    bytes: u64,
    bound: OnceLock<vk::DeviceMemory>,
}

impl Body for Image {
    type Handle = vk::Image;
}

plain_objects! {
    ImageView, create_image_view("vkCreateImageView"), destroy_image_view("vkDestroyImageView"),
        vk::ImageViewCreateInfo<'_>;
    Sampler, create_sampler("vkCreateSampler"), destroy_sampler("vkDestroySampler"), vk::SamplerCreateInfo<'_>;
}

destroy_functions! {
    Image, destroy_image("vkDestroyImage");
}

fn bytes(info: &vk::ImageCreateInfo<'_>) -> u64 {
    let vk::Extent3D {
        width,
        height,
        depth,
    } = info.extent;
    // Twice the first mip level is more than all of them.
    let texels =
        u64::from(width) * u64::from(height) * u64::from(depth) * u64::from(info.array_layers) * 2;
    texels * TEXEL_BYTES
}

pub unsafe extern "system" fn create_image(
    device: vk::Device,
    info: *const vk::ImageCreateInfo<'_>,
    _: *const vk::AllocationCallbacks<'_>,
    out: *mut vk::Image,
) -> vk::Result {
    device::create("vkCreateImage", device, out, |_| Image {
        bytes: bytes(&*info),
        bound: OnceLock::new(),
    })
}

pub unsafe extern "system" fn get_requirements(
    _: vk::Device,
    image: vk::Image,
    out: *mut vk::MemoryRequirements,
) {
    if let Some(image) = object::get::<Image>("vkGetImageMemoryRequirements", image) {
        *out = memory::requirements(image.bytes);
    }
}

pub unsafe extern "system" fn get_requirements2(
    device: vk::Device,
    info: *const vk::ImageMemoryRequirementsInfo2<'_>,
    out: *mut vk::MemoryRequirements2<'_>,
) {
    get_requirements(device, (*info).image, &mut (*out).memory_requirements);
    memory_dedication((*out).p_next);
}

pub unsafe extern "system" fn get_device_requirements(
    _: vk::Device,
    info: *const vk::DeviceImageMemoryRequirements<'_>,
    out: *mut vk::MemoryRequirements2<'_>,
) {
    (*out).memory_requirements = memory::requirements(bytes(&*(*info).p_create_info));
    memory_dedication((*out).p_next);
}

pub unsafe extern "system" fn bind_memory(
    _: vk::Device,
    image: vk::Image,
    memory: vk::DeviceMemory,
    offset: u64,
) -> vk::Result {
    const CALL: &str = "vkBindImageMemory";
    let (Some(image), Some(allocation)) = (
        object::get::<Image>(CALL, image),
        object::get::<DeviceMemory>(CALL, memory),
    ) else {
        return vk::Result::ERROR_UNKNOWN;
    };
    if offset.saturating_add(image.bytes) > allocation.bytes() {
        let (bytes, all) = (image.bytes, allocation.bytes());
        misuse::report(CALL, format_args!("{bytes} bytes at {offset} of {all}"));
    }
    if image.bound.set(memory).is_err() {
        misuse::report(CALL, "the image already has memory");
    }
    vk::Result::SUCCESS
}

pub unsafe extern "system" fn bind_memory2(
    device: vk::Device,
    count: u32,
    infos: *const vk::BindImageMemoryInfo<'_>,
) -> vk::Result {
    let bind = |info: &vk::BindImageMemoryInfo<'_>| {
        bind_memory(device, info.image, info.memory, info.memory_offset)
    };
    memory::bind_all(chain::slice(infos, count), bind)
}

pub unsafe extern "system" fn get_subresource_layout(
    _: vk::Device,
    _: vk::Image,
    _: *const vk::ImageSubresource,
    out: *mut vk::SubresourceLayout,
) {
    *out = vk::SubresourceLayout::default();
}
