//! Images: how many bytes a texel has, so that copies have a size.

use crate::device::{self, Device};
use ash::vk;
use ash::vk::Handle;
use gapscope_spool::hook::guard;

impl Device {
    /// Bytes that copying these extents (with their layers) from or to an image moves; `None` where its format has no
    /// fixed texel size, or the image is not ours to know, such as a swapchain's.
    pub fn copied_bytes(
        &self,
        image: vk::Image,
        extents: impl Iterator<Item = (vk::Extent3D, u32)>,
    ) -> Option<u64> {
        let texel = self.images.get(image.as_raw())?;
        Some(
            extents
                .map(|(e, layers)| {
                    [e.width, e.height, e.depth, layers]
                        .into_iter()
                        .fold(texel, |product, n| product.saturating_mul(u64::from(n)))
                })
                .sum(),
        )
    }
}

/// Bytes of a texel of an uncompressed colour format (Vulkan, "Compatible Formats"); the numbers are VkFormat's.
fn texel_bytes(format: vk::Format) -> Option<u64> {
    Some(match format.as_raw() {
        1 | 9..=15 => 1,
        2..=8 | 16..=22 | 70..=76 => 2,
        23..=36 => 3,
        37..=69 | 77..=83 | 98..=100 | 122..=123 => 4,
        84..=90 => 6,
        91..=97 | 101..=103 | 110..=112 => 8,
        104..=106 => 12,
        107..=109 | 113..=115 => 16,
        116..=118 => 24,
        119..=121 => 32,
        _ => return None,
    })
}

pub unsafe extern "system" fn create_image(
    handle: vk::Device,
    info: *const vk::ImageCreateInfo<'_>,
    allocator: *const vk::AllocationCallbacks<'_>,
    out: *mut vk::Image,
) -> vk::Result {
    // SAFETY: the program's own call.
    unsafe {
        let Some((device, call)) = device::with(handle, |f| f.create_image) else {
            return vk::Result::ERROR_INITIALIZATION_FAILED;
        };
        let result = call(handle, info, allocator, out);
        if result == vk::Result::SUCCESS {
            guard(|| {
                if let Some(bytes) = texel_bytes((*info).format) {
                    device.images.insert((*out).as_raw(), bytes);
                }
            });
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
        let Some((device, call)) = device::with(handle, |f| f.destroy_image) else {
            return;
        };
        guard(|| device.images.remove(image.as_raw()));
        call(handle, image, allocator);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn texels_have_the_size_of_their_format() {
        let known = [
            (vk::Format::R8_UNORM, 1),
            (vk::Format::R8G8B8A8_SRGB, 4),
            (vk::Format::A2B10G10R10_SINT_PACK32, 4),
            (vk::Format::R16_SFLOAT, 2),
            (vk::Format::R16G16B16A16_SFLOAT, 8),
            (vk::Format::R32_SFLOAT, 4),
            (vk::Format::R32G32B32_SFLOAT, 12),
            (vk::Format::R32G32B32A32_SFLOAT, 16),
            (vk::Format::R64G64B64A64_SFLOAT, 32),
            (vk::Format::E5B9G9R9_UFLOAT_PACK32, 4),
        ];
        for (format, bytes) in known {
            assert_eq!(texel_bytes(format), Some(bytes), "{format:?}");
        }
        assert_eq!(texel_bytes(vk::Format::BC1_RGB_UNORM_BLOCK), None);
        assert_eq!(texel_bytes(vk::Format::D24_UNORM_S8_UINT), None);
    }
}
