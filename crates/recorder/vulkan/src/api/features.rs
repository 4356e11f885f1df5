//! Enabling host query reset in a program's chain of feature structures, which is not ours to write to.

use ash::vk;
use std::ffi::c_void;

/// A copy of a pNext chain up to the structure that decides on host query reset, with the feature set in it.
pub struct ChainWithHostQueryReset {
    /// Each structure in words, so that it is aligned like the original.
    copies: Vec<Vec<u64>>,
    /// The rest of the chain, as it was.
    rest: *const c_void,
}

/// What a chain says about host query reset.
pub enum HostQueryReset {
    /// It is enabled already.
    Enabled,
    /// No structure has it: one can be put before the chain.
    Absent,
    /// A structure has it off; this copy has it on.
    Copied(ChainWithHostQueryReset),
    /// A structure has it off behind another whose size we do not know.
    OutOfReach,
}

/// The head that all structures of a chain share.
type Head = vk::BaseInStructure<'static>;

/// Sizes of the structures that programs put into VkDeviceCreateInfo, by type.
fn size_of_structure(kind: vk::StructureType) -> Option<usize> {
    macro_rules! sizes {
        ($($name:ident => $type:ident,)+) => {
            match kind {
                $(vk::StructureType::$name => Some(size_of::<vk::$type<'static>>()),)+
                // VkLayerDeviceCreateInfo: sType, pNext, function and one pointer.
                kind if kind.as_raw() == 48 => Some(32),
                _ => None,
            }
        };
    }
    sizes! {
        PHYSICAL_DEVICE_FEATURES_2 => PhysicalDeviceFeatures2,
        PHYSICAL_DEVICE_VULKAN_1_1_FEATURES => PhysicalDeviceVulkan11Features,
        PHYSICAL_DEVICE_VULKAN_1_2_FEATURES => PhysicalDeviceVulkan12Features,
        PHYSICAL_DEVICE_VULKAN_1_3_FEATURES => PhysicalDeviceVulkan13Features,
        PHYSICAL_DEVICE_HOST_QUERY_RESET_FEATURES => PhysicalDeviceHostQueryResetFeatures,
        PHYSICAL_DEVICE_16BIT_STORAGE_FEATURES => PhysicalDevice16BitStorageFeatures,
        PHYSICAL_DEVICE_8BIT_STORAGE_FEATURES => PhysicalDevice8BitStorageFeatures,
        PHYSICAL_DEVICE_SHADER_FLOAT16_INT8_FEATURES => PhysicalDeviceShaderFloat16Int8Features,
        PHYSICAL_DEVICE_TIMELINE_SEMAPHORE_FEATURES => PhysicalDeviceTimelineSemaphoreFeatures,
        PHYSICAL_DEVICE_BUFFER_DEVICE_ADDRESS_FEATURES => PhysicalDeviceBufferDeviceAddressFeatures,
        PHYSICAL_DEVICE_DESCRIPTOR_INDEXING_FEATURES => PhysicalDeviceDescriptorIndexingFeatures,
        PHYSICAL_DEVICE_SCALAR_BLOCK_LAYOUT_FEATURES => PhysicalDeviceScalarBlockLayoutFeatures,
        PHYSICAL_DEVICE_SYNCHRONIZATION_2_FEATURES => PhysicalDeviceSynchronization2Features,
        PHYSICAL_DEVICE_DYNAMIC_RENDERING_FEATURES => PhysicalDeviceDynamicRenderingFeatures,
        PHYSICAL_DEVICE_MAINTENANCE_4_FEATURES => PhysicalDeviceMaintenance4Features,
        PHYSICAL_DEVICE_SUBGROUP_SIZE_CONTROL_FEATURES => PhysicalDeviceSubgroupSizeControlFeatures,
        PHYSICAL_DEVICE_VULKAN_MEMORY_MODEL_FEATURES => PhysicalDeviceVulkanMemoryModelFeatures,
        PHYSICAL_DEVICE_SHADER_INTEGER_DOT_PRODUCT_FEATURES => PhysicalDeviceShaderIntegerDotProductFeatures,
        PHYSICAL_DEVICE_COOPERATIVE_MATRIX_FEATURES_KHR => PhysicalDeviceCooperativeMatrixFeaturesKHR,
        PHYSICAL_DEVICE_PIPELINE_EXECUTABLE_PROPERTIES_FEATURES_KHR
            => PhysicalDevicePipelineExecutablePropertiesFeaturesKHR,
        PHYSICAL_DEVICE_ROBUSTNESS_2_FEATURES_EXT => PhysicalDeviceRobustness2FeaturesEXT,
        PHYSICAL_DEVICE_IMAGE_ROBUSTNESS_FEATURES => PhysicalDeviceImageRobustnessFeatures,
        PHYSICAL_DEVICE_SAMPLER_YCBCR_CONVERSION_FEATURES => PhysicalDeviceSamplerYcbcrConversionFeatures,
        PHYSICAL_DEVICE_MULTIVIEW_FEATURES => PhysicalDeviceMultiviewFeatures,
    }
}

/// Where a structure keeps the feature.
///
/// # Safety
/// `structure` is a structure of its type.
unsafe fn feature(structure: *mut Head) -> Option<*mut vk::Bool32> {
    // SAFETY: as the caller promises.
    unsafe {
        match (*structure).s_type {
            vk::StructureType::PHYSICAL_DEVICE_VULKAN_1_2_FEATURES => {
                let features = structure.cast::<vk::PhysicalDeviceVulkan12Features<'_>>();
                Some(&raw mut (*features).host_query_reset)
            }
            vk::StructureType::PHYSICAL_DEVICE_HOST_QUERY_RESET_FEATURES => {
                let features = structure.cast::<vk::PhysicalDeviceHostQueryResetFeatures<'_>>();
                Some(&raw mut (*features).host_query_reset)
            }
            _ => None,
        }
    }
}

/// Looks for the feature in a chain.
///
/// # Safety
/// `chain` is a valid pNext chain of a VkDeviceCreateInfo, with the loader's structures in it.
pub unsafe fn host_query_reset(chain: *const c_void) -> HostQueryReset {
    let mut copies = Some(Vec::new());
    let mut node = chain.cast::<Head>().cast_mut();
    while !node.is_null() {
        // SAFETY: every structure starts with the head, and the sizes belong to the types.
        unsafe {
            if let (Some(copies), Some(size)) = (&mut copies, size_of_structure((*node).s_type)) {
                let mut copy = vec![0u64; size.div_ceil(8)];
                std::ptr::copy_nonoverlapping(node.cast::<u8>(), copy.as_mut_ptr().cast(), size);
                copies.push(copy);
            } else {
                copies = None;
            }
            if let Some(enabled) = feature(node) {
                if *enabled == vk::TRUE {
                    return HostQueryReset::Enabled;
                }
                let rest = (*node).p_next.cast();
                return match copies {
                    Some(copies) => {
                        HostQueryReset::Copied(ChainWithHostQueryReset { copies, rest })
                    }
                    None => HostQueryReset::OutOfReach,
                };
            }
            node = (*node).p_next.cast_mut();
        }
    }
    HostQueryReset::Absent
}

impl ChainWithHostQueryReset {
    /// The head of the changed chain, which lives as long as `self`.
    pub fn link(&mut self) -> *const c_void {
        let mut next = self.rest;
        for copy in self.copies.iter_mut().rev() {
            let node = copy.as_mut_ptr().cast::<Head>();
            // SAFETY: the copy is a whole structure.
            unsafe {
                (*node).p_next = next.cast();
                if let Some(enabled) = feature(node) {
                    *enabled = vk::TRUE;
                }
            }
            next = node.cast_const().cast();
        }
        next
    }
}
