//! What a program asked a device for, for the capture's header.

use std::ffi::CStr;

use ash::vk;
use gapscope_capture::model;
use gapscope_vulkan_layer::arguments::{find, slice, text_in};

use crate::api::instance::Instance;

/// The names of the extensions in a create-info.
///
/// # Safety
/// The create-info is valid.
unsafe fn extensions(info: &vk::DeviceCreateInfo<'_>) -> Vec<String> {
    // SAFETY: as the caller promises.
    unsafe {
        let names = slice(
            info.pp_enabled_extension_names,
            info.enabled_extension_count,
        );
        names
            .iter()
            .map(|name| CStr::from_ptr(*name).to_string_lossy().into_owned())
            .collect()
    }
}

/// The device stands for several GPUs.
///
/// # Safety
/// The create-info is valid.
pub unsafe fn is_group(info: &vk::DeviceCreateInfo<'_>) -> bool {
    let wanted = vk::StructureType::DEVICE_GROUP_DEVICE_CREATE_INFO;
    // SAFETY: as the caller promises.
    let group = unsafe { find::<vk::DeviceGroupDeviceCreateInfo<'_>>(info.p_next, wanted) };
    group.is_some_and(|group| group.physical_device_count > 1)
}

/// Describes a device.
///
/// # Safety
/// `physical` is of the instance, and `info` valid.
pub unsafe fn describe(
    instance: &Instance,
    physical: vk::PhysicalDevice,
    info: &vk::DeviceCreateInfo<'_>,
) -> model::Device {
    let mut driver = vk::PhysicalDeviceDriverProperties::default();
    let mut subgroup = vk::PhysicalDeviceSubgroupProperties::default();
    // SAFETY: as the caller promises.
    let properties = unsafe { instance.next.get_physical_device_properties(physical) };
    if instance.has_properties2 && properties.api_version >= vk::API_VERSION_1_1 {
        let mut all = vk::PhysicalDeviceProperties2::default().push_next(&mut subgroup);
        if properties.api_version >= vk::API_VERSION_1_2 {
            all = all.push_next(&mut driver);
        }
        // SAFETY: as the caller promises; the device knows these structures.
        unsafe {
            instance
                .next
                .get_physical_device_properties2(physical, &mut all)
        };
    }
    let driver_name = text_in(&driver.driver_name);
    let driver_info = text_in(&driver.driver_info);
    model::Device {
        name: text_in(&properties.device_name).into_owned(),
        vendor_id: properties.vendor_id,
        device_id: properties.device_id,
        driver: format!("{driver_name} {driver_info}").trim().to_owned(),
        driver_version: properties.driver_version,
        api_version: properties.api_version.min(instance.api_version),
        pipeline_cache_uuid: (properties.pipeline_cache_uuid.iter())
            .map(|byte| format!("{byte:02x}"))
            .collect(),
        subgroup_size: subgroup.subgroup_size,
        // SAFETY: as the caller promises.
        extensions: unsafe { extensions(info) },
        // SAFETY: as the caller promises.
        features: unsafe { enabled(info) },
    }
}

/// The names of the features that are enabled, each once.
///
/// # Safety
/// The create-info is valid.
unsafe fn enabled(info: &vk::DeviceCreateInfo<'_>) -> Vec<String> {
    let mut names = Vec::new();
    // SAFETY: as the caller promises. Each structure of features is a head and a word for each feature.
    unsafe {
        if !info.p_enabled_features.is_null() {
            add(&mut names, info.p_enabled_features.cast(), CORE);
        }
        let mut node = info.p_next.cast::<vk::BaseInStructure<'_>>();
        while !node.is_null() {
            let kind = (*node).s_type;
            let known = match kind {
                vk::StructureType::PHYSICAL_DEVICE_FEATURES_2 => Some(CORE),
                kind => (STRUCTURES.iter().find(|(known, _)| *known == kind)).map(|known| known.1),
            };
            if let Some(known) = known {
                add(&mut names, node.add(1).cast(), known);
            }
            node = (*node).p_next;
        }
    }
    names.sort_unstable();
    names.dedup();
    names.into_iter().map(str::to_owned).collect()
}

/// # Safety
/// At `first` are as many words as there are names.
unsafe fn add(enabled: &mut Vec<&'static str>, first: *const vk::Bool32, names: &[&'static str]) {
    // SAFETY: as the caller promises.
    let values = unsafe { slice(first, names.len() as u32) };
    let set = names
        .iter()
        .zip(values)
        .filter(|(_, value)| **value != vk::FALSE);
    enabled.extend(set.map(|(name, _)| *name));
}

/// VkPhysicalDeviceFeatures
const CORE: &[&str] = &[
    "robustBufferAccess",
    "fullDrawIndexUint32",
    "imageCubeArray",
    "independentBlend",
    "geometryShader",
    "tessellationShader",
    "sampleRateShading",
    "dualSrcBlend",
    "logicOp",
    "multiDrawIndirect",
    "drawIndirectFirstInstance",
    "depthClamp",
    "depthBiasClamp",
    "fillModeNonSolid",
    "depthBounds",
    "wideLines",
    "largePoints",
    "alphaToOne",
    "multiViewport",
    "samplerAnisotropy",
    "textureCompressionETC2",
    "textureCompressionASTC_LDR",
    "textureCompressionBC",
    "occlusionQueryPrecise",
    "pipelineStatisticsQuery",
    "vertexPipelineStoresAndAtomics",
    "fragmentStoresAndAtomics",
    "shaderTessellationAndGeometryPointSize",
    "shaderImageGatherExtended",
    "shaderStorageImageExtendedFormats",
    "shaderStorageImageMultisample",
    "shaderStorageImageReadWithoutFormat",
    "shaderStorageImageWriteWithoutFormat",
    "shaderUniformBufferArrayDynamicIndexing",
    "shaderSampledImageArrayDynamicIndexing",
    "shaderStorageBufferArrayDynamicIndexing",
    "shaderStorageImageArrayDynamicIndexing",
    "shaderClipDistance",
    "shaderCullDistance",
    "shaderFloat64",
    "shaderInt64",
    "shaderInt16",
    "shaderResourceResidency",
    "shaderResourceMinLod",
    "sparseBinding",
    "sparseResidencyBuffer",
    "sparseResidencyImage2D",
    "sparseResidencyImage3D",
    "sparseResidency2Samples",
    "sparseResidency4Samples",
    "sparseResidency8Samples",
    "sparseResidency16Samples",
    "sparseResidencyAliased",
    "variableMultisampleRate",
    "inheritedQueries",
];

/// Structures that may be chained to VkDeviceCreateInfo, by the features in their order.
const STRUCTURES: &[(vk::StructureType, &[&str])] = &[
    (
        vk::StructureType::PHYSICAL_DEVICE_VULKAN_1_1_FEATURES,
        &[
            "storageBuffer16BitAccess",
            "uniformAndStorageBuffer16BitAccess",
            "storagePushConstant16",
            "storageInputOutput16",
            "multiview",
            "multiviewGeometryShader",
            "multiviewTessellationShader",
            "variablePointersStorageBuffer",
            "variablePointers",
            "protectedMemory",
            "samplerYcbcrConversion",
            "shaderDrawParameters",
        ],
    ),
    (
        vk::StructureType::PHYSICAL_DEVICE_VULKAN_1_2_FEATURES,
        &[
            "samplerMirrorClampToEdge",
            "drawIndirectCount",
            "storageBuffer8BitAccess",
            "uniformAndStorageBuffer8BitAccess",
            "storagePushConstant8",
            "shaderBufferInt64Atomics",
            "shaderSharedInt64Atomics",
            "shaderFloat16",
            "shaderInt8",
            "descriptorIndexing",
            "shaderInputAttachmentArrayDynamicIndexing",
            "shaderUniformTexelBufferArrayDynamicIndexing",
            "shaderStorageTexelBufferArrayDynamicIndexing",
            "shaderUniformBufferArrayNonUniformIndexing",
            "shaderSampledImageArrayNonUniformIndexing",
            "shaderStorageBufferArrayNonUniformIndexing",
            "shaderStorageImageArrayNonUniformIndexing",
            "shaderInputAttachmentArrayNonUniformIndexing",
            "shaderUniformTexelBufferArrayNonUniformIndexing",
            "shaderStorageTexelBufferArrayNonUniformIndexing",
            "descriptorBindingUniformBufferUpdateAfterBind",
            "descriptorBindingSampledImageUpdateAfterBind",
            "descriptorBindingStorageImageUpdateAfterBind",
            "descriptorBindingStorageBufferUpdateAfterBind",
            "descriptorBindingUniformTexelBufferUpdateAfterBind",
            "descriptorBindingStorageTexelBufferUpdateAfterBind",
            "descriptorBindingUpdateUnusedWhilePending",
            "descriptorBindingPartiallyBound",
            "descriptorBindingVariableDescriptorCount",
            "runtimeDescriptorArray",
            "samplerFilterMinmax",
            "scalarBlockLayout",
            "imagelessFramebuffer",
            "uniformBufferStandardLayout",
            "shaderSubgroupExtendedTypes",
            "separateDepthStencilLayouts",
            "hostQueryReset",
            "timelineSemaphore",
            "bufferDeviceAddress",
            "bufferDeviceAddressCaptureReplay",
            "bufferDeviceAddressMultiDevice",
            "vulkanMemoryModel",
            "vulkanMemoryModelDeviceScope",
            "vulkanMemoryModelAvailabilityVisibilityChains",
            "shaderOutputViewportIndex",
            "shaderOutputLayer",
            "subgroupBroadcastDynamicId",
        ],
    ),
    (
        vk::StructureType::PHYSICAL_DEVICE_VULKAN_1_3_FEATURES,
        &[
            "robustImageAccess",
            "inlineUniformBlock",
            "descriptorBindingInlineUniformBlockUpdateAfterBind",
            "pipelineCreationCacheControl",
            "privateData",
            "shaderDemoteToHelperInvocation",
            "shaderTerminateInvocation",
            "subgroupSizeControl",
            "computeFullSubgroups",
            "synchronization2",
            "textureCompressionASTC_HDR",
            "shaderZeroInitializeWorkgroupMemory",
            "dynamicRendering",
            "shaderIntegerDotProduct",
            "maintenance4",
        ],
    ),
    (
        vk::StructureType::PHYSICAL_DEVICE_16BIT_STORAGE_FEATURES,
        &[
            "storageBuffer16BitAccess",
            "uniformAndStorageBuffer16BitAccess",
            "storagePushConstant16",
            "storageInputOutput16",
        ],
    ),
    (
        vk::StructureType::PHYSICAL_DEVICE_8BIT_STORAGE_FEATURES,
        &[
            "storageBuffer8BitAccess",
            "uniformAndStorageBuffer8BitAccess",
            "storagePushConstant8",
        ],
    ),
    (
        vk::StructureType::PHYSICAL_DEVICE_SHADER_FLOAT16_INT8_FEATURES,
        &["shaderFloat16", "shaderInt8"],
    ),
    (
        vk::StructureType::PHYSICAL_DEVICE_VARIABLE_POINTERS_FEATURES,
        &["variablePointersStorageBuffer", "variablePointers"],
    ),
    (
        vk::StructureType::PHYSICAL_DEVICE_SUBGROUP_SIZE_CONTROL_FEATURES,
        &["subgroupSizeControl", "computeFullSubgroups"],
    ),
    (
        vk::StructureType::PHYSICAL_DEVICE_SYNCHRONIZATION_2_FEATURES,
        &["synchronization2"],
    ),
    (
        vk::StructureType::PHYSICAL_DEVICE_MAINTENANCE_4_FEATURES,
        &["maintenance4"],
    ),
    (
        vk::StructureType::PHYSICAL_DEVICE_MAINTENANCE_5_FEATURES_KHR,
        &["maintenance5"],
    ),
    (
        vk::StructureType::PHYSICAL_DEVICE_MAINTENANCE_6_FEATURES_KHR,
        &["maintenance6"],
    ),
    (
        vk::StructureType::PHYSICAL_DEVICE_SHADER_INTEGER_DOT_PRODUCT_FEATURES,
        &["shaderIntegerDotProduct"],
    ),
    (
        vk::StructureType::PHYSICAL_DEVICE_COOPERATIVE_MATRIX_FEATURES_KHR,
        &["cooperativeMatrix", "cooperativeMatrixRobustBufferAccess"],
    ),
    (
        vk::StructureType::PHYSICAL_DEVICE_COOPERATIVE_MATRIX_FEATURES_NV,
        &["cooperativeMatrix", "cooperativeMatrixRobustBufferAccess"],
    ),
    (
        vk::StructureType::PHYSICAL_DEVICE_TIMELINE_SEMAPHORE_FEATURES,
        &["timelineSemaphore"],
    ),
    (
        vk::StructureType::PHYSICAL_DEVICE_BUFFER_DEVICE_ADDRESS_FEATURES,
        &[
            "bufferDeviceAddress",
            "bufferDeviceAddressCaptureReplay",
            "bufferDeviceAddressMultiDevice",
        ],
    ),
    (
        vk::StructureType::PHYSICAL_DEVICE_VULKAN_MEMORY_MODEL_FEATURES,
        &[
            "vulkanMemoryModel",
            "vulkanMemoryModelDeviceScope",
            "vulkanMemoryModelAvailabilityVisibilityChains",
        ],
    ),
    (
        vk::StructureType::PHYSICAL_DEVICE_SCALAR_BLOCK_LAYOUT_FEATURES,
        &["scalarBlockLayout"],
    ),
    (
        vk::StructureType::PHYSICAL_DEVICE_UNIFORM_BUFFER_STANDARD_LAYOUT_FEATURES,
        &["uniformBufferStandardLayout"],
    ),
    (
        vk::StructureType::PHYSICAL_DEVICE_HOST_QUERY_RESET_FEATURES,
        &["hostQueryReset"],
    ),
    (
        vk::StructureType::PHYSICAL_DEVICE_SHADER_SUBGROUP_EXTENDED_TYPES_FEATURES,
        &["shaderSubgroupExtendedTypes"],
    ),
    (
        vk::StructureType::PHYSICAL_DEVICE_ROBUSTNESS_2_FEATURES_EXT,
        &[
            "robustBufferAccess2",
            "robustImageAccess2",
            "nullDescriptor",
        ],
    ),
    (
        vk::StructureType::PHYSICAL_DEVICE_IMAGE_ROBUSTNESS_FEATURES,
        &["robustImageAccess"],
    ),
    (
        vk::StructureType::PHYSICAL_DEVICE_PIPELINE_ROBUSTNESS_FEATURES_EXT,
        &["pipelineRobustness"],
    ),
    (
        vk::StructureType::PHYSICAL_DEVICE_SHADER_ATOMIC_INT64_FEATURES,
        &["shaderBufferInt64Atomics", "shaderSharedInt64Atomics"],
    ),
    (
        vk::StructureType::PHYSICAL_DEVICE_SHADER_ATOMIC_FLOAT_FEATURES_EXT,
        &[
            "shaderBufferFloat32Atomics",
            "shaderBufferFloat32AtomicAdd",
            "shaderBufferFloat64Atomics",
            "shaderBufferFloat64AtomicAdd",
            "shaderSharedFloat32Atomics",
            "shaderSharedFloat32AtomicAdd",
            "shaderSharedFloat64Atomics",
            "shaderSharedFloat64AtomicAdd",
            "shaderImageFloat32Atomics",
            "shaderImageFloat32AtomicAdd",
            "sparseImageFloat32Atomics",
            "sparseImageFloat32AtomicAdd",
        ],
    ),
    (
        vk::StructureType::PHYSICAL_DEVICE_SHADER_ATOMIC_FLOAT_2_FEATURES_EXT,
        &[
            "shaderBufferFloat16Atomics",
            "shaderBufferFloat16AtomicAdd",
            "shaderBufferFloat16AtomicMinMax",
            "shaderBufferFloat32AtomicMinMax",
            "shaderBufferFloat64AtomicMinMax",
            "shaderSharedFloat16Atomics",
            "shaderSharedFloat16AtomicAdd",
            "shaderSharedFloat16AtomicMinMax",
            "shaderSharedFloat32AtomicMinMax",
            "shaderSharedFloat64AtomicMinMax",
            "shaderImageFloat32AtomicMinMax",
            "sparseImageFloat32AtomicMinMax",
        ],
    ),
    (
        vk::StructureType::PHYSICAL_DEVICE_ZERO_INITIALIZE_WORKGROUP_MEMORY_FEATURES,
        &["shaderZeroInitializeWorkgroupMemory"],
    ),
    (
        vk::StructureType::PHYSICAL_DEVICE_SHADER_FLOAT_CONTROLS_2_FEATURES_KHR,
        &["shaderFloatControls2"],
    ),
    (
        vk::StructureType::PHYSICAL_DEVICE_PIPELINE_EXECUTABLE_PROPERTIES_FEATURES_KHR,
        &["pipelineExecutableInfo"],
    ),
    (
        vk::StructureType::PHYSICAL_DEVICE_WORKGROUP_MEMORY_EXPLICIT_LAYOUT_FEATURES_KHR,
        &[
            "workgroupMemoryExplicitLayout",
            "workgroupMemoryExplicitLayoutScalarBlockLayout",
            "workgroupMemoryExplicitLayout8BitAccess",
            "workgroupMemoryExplicitLayout16BitAccess",
        ],
    ),
    (
        vk::StructureType::PHYSICAL_DEVICE_SHADER_EXPECT_ASSUME_FEATURES_KHR,
        &["shaderExpectAssume"],
    ),
    (
        vk::StructureType::PHYSICAL_DEVICE_SHADER_SUBGROUP_ROTATE_FEATURES_KHR,
        &["shaderSubgroupRotate", "shaderSubgroupRotateClustered"],
    ),
    (
        vk::StructureType::PHYSICAL_DEVICE_SHADER_SUBGROUP_UNIFORM_CONTROL_FLOW_FEATURES_KHR,
        &["shaderSubgroupUniformControlFlow"],
    ),
    (
        vk::StructureType::PHYSICAL_DEVICE_SHADER_MAXIMAL_RECONVERGENCE_FEATURES_KHR,
        &["shaderMaximalReconvergence"],
    ),
    (
        vk::StructureType::PHYSICAL_DEVICE_SHADER_QUAD_CONTROL_FEATURES_KHR,
        &["shaderQuadControl"],
    ),
    (
        vk::StructureType::PHYSICAL_DEVICE_DESCRIPTOR_INDEXING_FEATURES,
        &[
            "shaderInputAttachmentArrayDynamicIndexing",
            "shaderUniformTexelBufferArrayDynamicIndexing",
            "shaderStorageTexelBufferArrayDynamicIndexing",
            "shaderUniformBufferArrayNonUniformIndexing",
            "shaderSampledImageArrayNonUniformIndexing",
            "shaderStorageBufferArrayNonUniformIndexing",
            "shaderStorageImageArrayNonUniformIndexing",
            "shaderInputAttachmentArrayNonUniformIndexing",
            "shaderUniformTexelBufferArrayNonUniformIndexing",
            "shaderStorageTexelBufferArrayNonUniformIndexing",
            "descriptorBindingUniformBufferUpdateAfterBind",
            "descriptorBindingSampledImageUpdateAfterBind",
            "descriptorBindingStorageImageUpdateAfterBind",
            "descriptorBindingStorageBufferUpdateAfterBind",
            "descriptorBindingUniformTexelBufferUpdateAfterBind",
            "descriptorBindingStorageTexelBufferUpdateAfterBind",
            "descriptorBindingUpdateUnusedWhilePending",
            "descriptorBindingPartiallyBound",
            "descriptorBindingVariableDescriptorCount",
            "runtimeDescriptorArray",
        ],
    ),
    (
        vk::StructureType::PHYSICAL_DEVICE_INLINE_UNIFORM_BLOCK_FEATURES,
        &[
            "inlineUniformBlock",
            "descriptorBindingInlineUniformBlockUpdateAfterBind",
        ],
    ),
    (
        vk::StructureType::PHYSICAL_DEVICE_DESCRIPTOR_BUFFER_FEATURES_EXT,
        &[
            "descriptorBuffer",
            "descriptorBufferCaptureReplay",
            "descriptorBufferImageLayoutIgnored",
            "descriptorBufferPushDescriptors",
        ],
    ),
    (
        vk::StructureType::PHYSICAL_DEVICE_SHADER_DEMOTE_TO_HELPER_INVOCATION_FEATURES,
        &["shaderDemoteToHelperInvocation"],
    ),
    (
        vk::StructureType::PHYSICAL_DEVICE_SHADER_TERMINATE_INVOCATION_FEATURES,
        &["shaderTerminateInvocation"],
    ),
    (
        vk::StructureType::PHYSICAL_DEVICE_SHADER_CLOCK_FEATURES_KHR,
        &["shaderSubgroupClock", "shaderDeviceClock"],
    ),
    (
        vk::StructureType::PHYSICAL_DEVICE_PRIVATE_DATA_FEATURES,
        &["privateData"],
    ),
    (
        vk::StructureType::PHYSICAL_DEVICE_PIPELINE_CREATION_CACHE_CONTROL_FEATURES,
        &["pipelineCreationCacheControl"],
    ),
    (
        vk::StructureType::PHYSICAL_DEVICE_SHADER_DRAW_PARAMETERS_FEATURES,
        &["shaderDrawParameters"],
    ),
    (
        vk::StructureType::PHYSICAL_DEVICE_SAMPLER_YCBCR_CONVERSION_FEATURES,
        &["samplerYcbcrConversion"],
    ),
    (
        vk::StructureType::PHYSICAL_DEVICE_MULTIVIEW_FEATURES,
        &[
            "multiview",
            "multiviewGeometryShader",
            "multiviewTessellationShader",
        ],
    ),
    (
        vk::StructureType::PHYSICAL_DEVICE_PROTECTED_MEMORY_FEATURES,
        &["protectedMemory"],
    ),
    (
        vk::StructureType::PHYSICAL_DEVICE_DYNAMIC_RENDERING_FEATURES,
        &["dynamicRendering"],
    ),
    (
        vk::StructureType::PHYSICAL_DEVICE_SHADER_OBJECT_FEATURES_EXT,
        &["shaderObject"],
    ),
    (
        vk::StructureType::PHYSICAL_DEVICE_SEPARATE_DEPTH_STENCIL_LAYOUTS_FEATURES,
        &["separateDepthStencilLayouts"],
    ),
    (
        vk::StructureType::PHYSICAL_DEVICE_IMAGELESS_FRAMEBUFFER_FEATURES,
        &["imagelessFramebuffer"],
    ),
    (
        vk::StructureType::PHYSICAL_DEVICE_COMPUTE_SHADER_DERIVATIVES_FEATURES_NV,
        &[
            "computeDerivativeGroupQuads",
            "computeDerivativeGroupLinear",
        ],
    ),
    (
        vk::StructureType::PHYSICAL_DEVICE_MUTABLE_DESCRIPTOR_TYPE_FEATURES_EXT,
        &["mutableDescriptorType"],
    ),
];
