//! Keeps the number of bytes of a texel (a pixel of an image) for each image, from which copies get their bytes.

use crate::handles::Handles;
use ash::vk;
use ash::vk::Handle;

/// The images of a device whose texels have a fixed size, with that size in bytes.
#[derive(Default)]
pub struct Images(Handles<u64>);

impl Images {
    /// Keeps the texel size of an image, if its format has one.
    pub fn add(&self, image: vk::Image, format: vk::Format) {
        if let Some(bytes) = texel_bytes(format) {
            self.0.insert(image.as_raw(), bytes);
        }
    }

    pub fn remove(&self, image: vk::Image) {
        self.0.remove(image.as_raw());
    }

    /// Returns the number of bytes that a copy of these extents (with their layers) from or to an image moves;
    /// `None` where its format has no fixed texel size, or the image is not known, such as a swapchain's.
    pub fn copied_bytes(
        &self,
        image: vk::Image,
        extents: impl Iterator<Item = (vk::Extent3D, u32)>,
    ) -> Option<u64> {
        let texel = self.0.get(image.as_raw())?;
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

/// Returns the bytes of a texel of an uncompressed colour format (Vulkan, "Compatible Formats"), `None` for other
/// formats; the numbers are VkFormat's.
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
            assert_eq!(texel_bytes(format), Some(bytes), "{}", format.as_raw());
        }
        assert_eq!(texel_bytes(vk::Format::BC1_RGB_UNORM_BLOCK), None);
        assert_eq!(texel_bytes(vk::Format::D24_UNORM_S8_UINT), None);
    }
}
