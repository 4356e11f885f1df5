//! Lists the Vulkan features and extensions that capabilities and extensions of compute shaders need, after the
//! tables of Vulkan's registry (`vk.xml` 1.4.366). `check` looks them up. Capabilities for images alone are left out.

/// A structure of features that `vkGetPhysicalDeviceFeatures2` fills. All of its members are `VkBool32`.
#[derive(Debug)]
pub struct Block {
    /// `VkStructureType`
    pub s_type: i32,
    /// The extension that adds the structure; `None` if it is a part of Vulkan 1.3.
    pub extension: Option<&'static str>,
}

/// A member of a [`Block`].
#[derive(Debug)]
pub struct Feature {
    /// Name of the member.
    pub name: &'static str,
    /// Index of the structure in [`BLOCKS`].
    pub block: usize,
    /// Index of the member in the structure.
    pub member: usize,
}

/// One of the ways in which a device may serve a capability.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Need {
    /// Every device of Vulkan 1.3 serves it.
    Core,
    /// The feature of this name must be enabled.
    Feature(&'static str),
    /// The device extension must be enabled.
    Extension(&'static str),
    /// A bit of `subgroupSupportedOperations` must be set.
    Subgroup(u32),
    /// The float controls that the execution modes name must be supported.
    FloatControl,
}

use Need::*;

/// Structures of features; [`Feature::block`] is an index here.
#[rustfmt::skip]
pub const BLOCKS: &[Block] = &[
    // VkPhysicalDeviceFeatures
    Block { s_type: 1000059000, extension: None },
    // VkPhysicalDeviceVulkan11Features
    Block { s_type: 49, extension: None },
    // VkPhysicalDeviceVulkan12Features
    Block { s_type: 51, extension: None },
    // VkPhysicalDeviceVulkan13Features
    Block { s_type: 53, extension: None },
    // VkPhysicalDeviceShaderAtomicFloat2FeaturesEXT
    Block { s_type: 1000273000, extension: Some("VK_EXT_shader_atomic_float2") },
    // VkPhysicalDeviceShaderAtomicFloatFeaturesEXT
    Block { s_type: 1000260000, extension: Some("VK_EXT_shader_atomic_float") },
    // VkPhysicalDeviceShaderAtomicFloat16VectorFeaturesNV
    Block { s_type: 1000563000, extension: Some("VK_NV_shader_atomic_float16_vector") },
    // VkPhysicalDeviceShaderClockFeaturesKHR
    Block { s_type: 1000181000, extension: Some("VK_KHR_shader_clock") },
    // VkPhysicalDeviceShaderSubgroupPartitionedFeaturesEXT
    Block { s_type: 1000662000, extension: Some("VK_EXT_shader_subgroup_partitioned") },
    // VkPhysicalDeviceShaderSubgroupRotateFeatures
    Block { s_type: 1000416000, extension: Some("VK_KHR_shader_subgroup_rotate") },
    // VkPhysicalDeviceComputeShaderDerivativesFeaturesKHR
    Block { s_type: 1000201000, extension: Some("VK_KHR_compute_shader_derivatives") },
    // VkPhysicalDeviceWorkgroupMemoryExplicitLayoutFeaturesKHR
    Block { s_type: 1000336000, extension: Some("VK_KHR_workgroup_memory_explicit_layout") },
    // VkPhysicalDeviceShaderIntegerFunctions2FeaturesINTEL
    Block { s_type: 1000209000, extension: Some("VK_INTEL_shader_integer_functions2") },
    // VkPhysicalDeviceCooperativeMatrixFeaturesKHR
    Block { s_type: 1000506000, extension: Some("VK_KHR_cooperative_matrix") },
    // VkPhysicalDeviceCooperativeMatrix2FeaturesNV
    Block { s_type: 1000593000, extension: Some("VK_NV_cooperative_matrix2") },
    // VkPhysicalDeviceCooperativeVectorFeaturesNV
    Block { s_type: 1000491000, extension: Some("VK_NV_cooperative_vector") },
    // VkPhysicalDeviceShaderBfloat16FeaturesKHR
    Block { s_type: 1000141000, extension: Some("VK_KHR_shader_bfloat16") },
    // VkPhysicalDeviceShaderFloat8FeaturesEXT
    Block { s_type: 1000567000, extension: Some("VK_EXT_shader_float8") },
    // VkPhysicalDeviceShaderReplicatedCompositesFeaturesEXT
    Block { s_type: 1000564000, extension: Some("VK_EXT_shader_replicated_composites") },
    // VkPhysicalDeviceShaderExpectAssumeFeatures
    Block { s_type: 1000544000, extension: Some("VK_KHR_shader_expect_assume") },
    // VkPhysicalDeviceShaderFloatControls2Features
    Block { s_type: 1000528000, extension: Some("VK_KHR_shader_float_controls2") },
    // VkPhysicalDeviceShaderQuadControlFeaturesKHR
    Block { s_type: 1000235000, extension: Some("VK_KHR_shader_quad_control") },
    // VkPhysicalDeviceRawAccessChainsFeaturesNV
    Block { s_type: 1000555000, extension: Some("VK_NV_raw_access_chains") },
    // VkPhysicalDeviceShaderUntypedPointersFeaturesKHR
    Block { s_type: 1000387000, extension: Some("VK_KHR_shader_untyped_pointers") },
    // VkPhysicalDeviceShaderLongVectorFeaturesEXT
    Block { s_type: 1000635000, extension: Some("VK_EXT_shader_long_vector") },
    // VkPhysicalDeviceRobustness2FeaturesKHR
    Block { s_type: 1000286000, extension: Some("VK_EXT_robustness2") },
    // VkPhysicalDevicePipelineRobustnessFeatures
    Block { s_type: 1000068001, extension: Some("VK_EXT_pipeline_robustness") },
    // VkPhysicalDeviceShaderMaximalReconvergenceFeaturesKHR
    Block { s_type: 1000434000, extension: Some("VK_KHR_shader_maximal_reconvergence") },
    // VkPhysicalDeviceShaderSubgroupUniformControlFlowFeaturesKHR
    Block { s_type: 1000323000, extension: Some("VK_KHR_shader_subgroup_uniform_control_flow") },
    // VkPhysicalDeviceShaderRelaxedExtendedInstructionFeaturesKHR
    Block { s_type: 1000558000, extension: Some("VK_KHR_shader_relaxed_extended_instruction") },
    // VkPhysicalDeviceShaderMixedFloatDotProductFeaturesVALVE
    Block { s_type: 1000673000, extension: Some("VK_VALVE_shader_mixed_float_dot_product") },
    // VkPhysicalDeviceShaderFmaFeaturesKHR
    Block { s_type: 1000579000, extension: Some("VK_KHR_shader_fma") },
    // VkPhysicalDeviceShader64BitIndexingFeaturesEXT
    Block { s_type: 1000627000, extension: Some("VK_EXT_shader_64bit_indexing") },
];

/// Features that compute shaders may need.
#[rustfmt::skip]
pub const FEATURES: &[Feature] = &[
    Feature { name: "shaderFloat64", block: 0, member: 39 },
    Feature { name: "shaderInt64", block: 0, member: 40 },
    Feature { name: "shaderBufferInt64Atomics", block: 2, member: 5 },
    Feature { name: "shaderSharedInt64Atomics", block: 2, member: 6 },
    Feature { name: "shaderBufferFloat16AtomicAdd", block: 4, member: 1 },
    Feature { name: "shaderSharedFloat16AtomicAdd", block: 4, member: 6 },
    Feature { name: "shaderBufferFloat32AtomicAdd", block: 5, member: 1 },
    Feature { name: "shaderSharedFloat32AtomicAdd", block: 5, member: 5 },
    Feature { name: "shaderBufferFloat64AtomicAdd", block: 5, member: 3 },
    Feature { name: "shaderSharedFloat64AtomicAdd", block: 5, member: 7 },
    Feature { name: "shaderBufferFloat16AtomicMinMax", block: 4, member: 2 },
    Feature { name: "shaderSharedFloat16AtomicMinMax", block: 4, member: 7 },
    Feature { name: "shaderBufferFloat32AtomicMinMax", block: 4, member: 3 },
    Feature { name: "shaderSharedFloat32AtomicMinMax", block: 4, member: 8 },
    Feature { name: "shaderBufferFloat64AtomicMinMax", block: 4, member: 4 },
    Feature { name: "shaderSharedFloat64AtomicMinMax", block: 4, member: 9 },
    Feature { name: "shaderFloat16VectorAtomics", block: 6, member: 0 },
    Feature { name: "shaderInt16", block: 0, member: 41 },
    Feature { name: "shaderUniformBufferArrayDynamicIndexing", block: 0, member: 33 },
    Feature { name: "shaderSampledImageArrayDynamicIndexing", block: 0, member: 34 },
    Feature { name: "shaderStorageBufferArrayDynamicIndexing", block: 0, member: 35 },
    Feature { name: "shaderStorageImageArrayDynamicIndexing", block: 0, member: 36 },
    Feature { name: "variablePointersStorageBuffer", block: 1, member: 7 },
    Feature { name: "variablePointers", block: 1, member: 8 },
    Feature { name: "shaderSubgroupClock", block: 7, member: 0 },
    Feature { name: "shaderDeviceClock", block: 7, member: 1 },
    Feature { name: "storageBuffer16BitAccess", block: 1, member: 0 },
    Feature { name: "uniformAndStorageBuffer16BitAccess", block: 1, member: 1 },
    Feature { name: "storagePushConstant16", block: 1, member: 2 },
    Feature { name: "storageInputOutput16", block: 1, member: 3 },
    Feature { name: "shaderSubgroupPartitioned", block: 8, member: 0 },
    Feature { name: "shaderSubgroupRotate", block: 9, member: 0 },
    Feature { name: "runtimeDescriptorArray", block: 2, member: 29 },
    Feature { name: "shaderUniformBufferArrayNonUniformIndexing", block: 2, member: 13 },
    Feature { name: "shaderStorageBufferArrayNonUniformIndexing", block: 2, member: 15 },
    Feature { name: "shaderFloat16", block: 2, member: 7 },
    Feature { name: "shaderInt8", block: 2, member: 8 },
    Feature { name: "storageBuffer8BitAccess", block: 2, member: 2 },
    Feature { name: "uniformAndStorageBuffer8BitAccess", block: 2, member: 3 },
    Feature { name: "storagePushConstant8", block: 2, member: 4 },
    Feature { name: "vulkanMemoryModel", block: 2, member: 41 },
    Feature { name: "vulkanMemoryModelDeviceScope", block: 2, member: 42 },
    Feature { name: "computeDerivativeGroupQuads", block: 10, member: 0 },
    Feature { name: "computeDerivativeGroupLinear", block: 10, member: 1 },
    Feature { name: "bufferDeviceAddress", block: 2, member: 38 },
    Feature { name: "shaderDemoteToHelperInvocation", block: 3, member: 5 },
    Feature { name: "workgroupMemoryExplicitLayout", block: 11, member: 0 },
    Feature { name: "workgroupMemoryExplicitLayout8BitAccess", block: 11, member: 2 },
    Feature { name: "workgroupMemoryExplicitLayout16BitAccess", block: 11, member: 3 },
    Feature { name: "shaderIntegerDotProduct", block: 3, member: 13 },
    Feature { name: "shaderIntegerFunctions2", block: 12, member: 0 },
    Feature { name: "cooperativeMatrix", block: 13, member: 0 },
    Feature { name: "cooperativeMatrixConversions", block: 14, member: 3 },
    Feature { name: "cooperativeMatrixTensorAddressing", block: 14, member: 5 },
    Feature { name: "cooperativeMatrixBlockLoads", block: 14, member: 6 },
    Feature { name: "cooperativeVector", block: 15, member: 0 },
    Feature { name: "cooperativeVectorTraining", block: 15, member: 1 },
    Feature { name: "shaderBFloat16Type", block: 16, member: 0 },
    Feature { name: "shaderBFloat16DotProduct", block: 16, member: 1 },
    Feature { name: "shaderBFloat16CooperativeMatrix", block: 16, member: 2 },
    Feature { name: "shaderFloat8", block: 17, member: 0 },
    Feature { name: "shaderFloat8CooperativeMatrix", block: 17, member: 1 },
    Feature { name: "shaderReplicatedComposites", block: 18, member: 0 },
    Feature { name: "shaderExpectAssume", block: 19, member: 0 },
    Feature { name: "shaderFloatControls2", block: 20, member: 0 },
    Feature { name: "shaderQuadControl", block: 21, member: 0 },
    Feature { name: "shaderRawAccessChains", block: 22, member: 0 },
    Feature { name: "shaderUntypedPointers", block: 23, member: 0 },
    Feature { name: "longVector", block: 24, member: 0 },
    Feature { name: "cooperativeMatrixReductions", block: 14, member: 2 },
    Feature { name: "cooperativeMatrixPerElementOperations", block: 14, member: 4 },
    Feature { name: "robustBufferAccess", block: 0, member: 0 },
    Feature { name: "scalarBlockLayout", block: 2, member: 31 },
    Feature { name: "uniformBufferStandardLayout", block: 2, member: 33 },
    Feature { name: "shaderSubgroupExtendedTypes", block: 2, member: 34 },
    Feature { name: "subgroupSizeControl", block: 3, member: 7 },
    Feature { name: "computeFullSubgroups", block: 3, member: 8 },
    Feature { name: "synchronization2", block: 3, member: 9 },
    Feature { name: "shaderZeroInitializeWorkgroupMemory", block: 3, member: 11 },
    Feature { name: "maintenance4", block: 3, member: 14 },
    Feature { name: "robustBufferAccess2", block: 25, member: 0 },
    Feature { name: "nullDescriptor", block: 25, member: 2 },
    Feature { name: "pipelineRobustness", block: 26, member: 0 },
    Feature { name: "shaderMaximalReconvergence", block: 27, member: 0 },
    Feature { name: "shaderSubgroupUniformControlFlow", block: 28, member: 0 },
    Feature { name: "shaderRelaxedExtendedInstruction", block: 29, member: 0 },
    Feature { name: "cooperativeMatrixWorkgroupScope", block: 14, member: 0 },
    Feature { name: "cooperativeMatrixFlexibleDimensions", block: 14, member: 1 },
    Feature { name: "shaderMixedFloatDotProductFloat16AccFloat32", block: 30, member: 0 },
    Feature { name: "shaderMixedFloatDotProductFloat16AccFloat16", block: 30, member: 1 },
    Feature { name: "shaderMixedFloatDotProductBFloat16Acc", block: 30, member: 2 },
    Feature { name: "shaderMixedFloatDotProductFloat8AccFloat32", block: 30, member: 3 },
    Feature { name: "shaderFmaFloat16", block: 31, member: 0 },
    Feature { name: "shaderFmaFloat32", block: 31, member: 1 },
    Feature { name: "shaderFmaFloat64", block: 31, member: 2 },
    Feature { name: "shader64BitIndexing", block: 32, member: 0 },
];

/// Capabilities by number, with their names and what serves them: any one of these.
#[rustfmt::skip]
pub const CAPABILITIES: &[(u32, &str, &[Need])] = &[
    (0, "Matrix", &[Core]),
    (1, "Shader", &[Core]),
    (9, "Float16", &[Feature("shaderFloat16"), Extension("VK_AMD_gpu_shader_half_float")]),
    (10, "Float64", &[Feature("shaderFloat64")]),
    (11, "Int64", &[Feature("shaderInt64")]),
    (12, "Int64Atomics", &[Feature("shaderBufferInt64Atomics"), Feature("shaderSharedInt64Atomics")]),
    (22, "Int16", &[Feature("shaderInt16")]),
    (28, "UniformBufferArrayDynamicIndexing", &[Feature("shaderUniformBufferArrayDynamicIndexing")]),
    (29, "SampledImageArrayDynamicIndexing", &[Feature("shaderSampledImageArrayDynamicIndexing")]),
    (30, "StorageBufferArrayDynamicIndexing", &[Feature("shaderStorageBufferArrayDynamicIndexing")]),
    (31, "StorageImageArrayDynamicIndexing", &[Feature("shaderStorageImageArrayDynamicIndexing")]),
    (39, "Int8", &[Feature("shaderInt8")]),
    (43, "Sampled1D", &[Core]),
    (44, "Image1D", &[Core]),
    (46, "SampledBuffer", &[Core]),
    (47, "ImageBuffer", &[Core]),
    (49, "StorageImageExtendedFormats", &[Core]),
    (50, "ImageQuery", &[Core]),
    (55, "StorageImageReadWithoutFormat", &[Core]),
    (56, "StorageImageWriteWithoutFormat", &[Core]),
    (61, "GroupNonUniform", &[Subgroup(0x1)]),
    (62, "GroupNonUniformVote", &[Subgroup(0x2)]),
    (63, "GroupNonUniformArithmetic", &[Subgroup(0x4)]),
    (64, "GroupNonUniformBallot", &[Subgroup(0x8)]),
    (65, "GroupNonUniformShuffle", &[Subgroup(0x10)]),
    (66, "GroupNonUniformShuffleRelative", &[Subgroup(0x20)]),
    (67, "GroupNonUniformClustered", &[Subgroup(0x40)]),
    (68, "GroupNonUniformQuad", &[Subgroup(0x80)]),
    (4212, "Float8EXT", &[Feature("shaderFloat8")]),
    (4213, "Float8CooperativeMatrixEXT", &[Feature("shaderFloat8CooperativeMatrix")]),
    (4423, "SubgroupBallotKHR", &[Extension("VK_EXT_shader_subgroup_ballot")]),
    (4428, "WorkgroupMemoryExplicitLayoutKHR", &[Feature("workgroupMemoryExplicitLayout")]),
    (4429, "WorkgroupMemoryExplicitLayout8BitAccessKHR", &[Feature("workgroupMemoryExplicitLayout8BitAccess")]),
    (4430, "WorkgroupMemoryExplicitLayout16BitAccessKHR", &[Feature("workgroupMemoryExplicitLayout16BitAccess")]),
    (4431, "SubgroupVoteKHR", &[Extension("VK_EXT_shader_subgroup_vote")]),
    (4433, "StorageBuffer16BitAccess", &[Feature("storageBuffer16BitAccess")]),
    (4434, "UniformAndStorageBuffer16BitAccess", &[Feature("uniformAndStorageBuffer16BitAccess")]),
    (4435, "StoragePushConstant16", &[Feature("storagePushConstant16")]),
    (4436, "StorageInputOutput16", &[Feature("storageInputOutput16")]),
    (4437, "DeviceGroup", &[Core]),
    (4441, "VariablePointersStorageBuffer", &[Feature("variablePointersStorageBuffer")]),
    (4442, "VariablePointers", &[Feature("variablePointers")]),
    (4448, "StorageBuffer8BitAccess", &[Feature("storageBuffer8BitAccess")]),
    (4449, "UniformAndStorageBuffer8BitAccess", &[Feature("uniformAndStorageBuffer8BitAccess")]),
    (4450, "StoragePushConstant8", &[Feature("storagePushConstant8")]),
    (4464, "DenormPreserve", &[FloatControl]),
    (4465, "DenormFlushToZero", &[FloatControl]),
    (4466, "SignedZeroInfNanPreserve", &[FloatControl]),
    (4467, "RoundingModeRTE", &[FloatControl]),
    (4468, "RoundingModeRTZ", &[FloatControl]),
    (4473, "UntypedPointersKHR", &[Feature("shaderUntypedPointers")]),
    (5055, "ShaderClockKHR", &[Feature("shaderSubgroupClock"), Feature("shaderDeviceClock")]),
    (5087, "QuadControlKHR", &[Feature("shaderQuadControl")]),
    (5116, "BFloat16TypeKHR", &[Feature("shaderBFloat16Type")]),
    (5117, "BFloat16DotProductKHR", &[Feature("shaderBFloat16DotProduct")]),
    (5118, "BFloat16CooperativeMatrixKHR", &[Feature("shaderBFloat16CooperativeMatrix")]),
    (5288, "ComputeDerivativeGroupQuadsKHR", &[Feature("computeDerivativeGroupQuads")]),
    (5297, "GroupNonUniformPartitionedEXT", &[Feature("shaderSubgroupPartitioned"), Subgroup(0x100)]),
    (5301, "ShaderNonUniform", &[Core]),
    (5302, "RuntimeDescriptorArray", &[Feature("runtimeDescriptorArray")]),
    (5306, "UniformBufferArrayNonUniformIndexing", &[Feature("shaderUniformBufferArrayNonUniformIndexing")]),
    (5308, "StorageBufferArrayNonUniformIndexing", &[Feature("shaderStorageBufferArrayNonUniformIndexing")]),
    (5345, "VulkanMemoryModel", &[Feature("vulkanMemoryModel")]),
    (5346, "VulkanMemoryModelDeviceScope", &[Feature("vulkanMemoryModelDeviceScope")]),
    (5347, "PhysicalStorageBufferAddresses", &[Feature("bufferDeviceAddress")]),
    (5350, "ComputeDerivativeGroupLinearKHR", &[Feature("computeDerivativeGroupLinear")]),
    (5379, "DemoteToHelperInvocation", &[Feature("shaderDemoteToHelperInvocation")]),
    (5394, "CooperativeVectorNV", &[Feature("cooperativeVector")]),
    (5404, "AtomicFloat16VectorNV", &[Feature("shaderFloat16VectorAtomics")]),
    (5414, "RawAccessChainsNV", &[Feature("shaderRawAccessChains")]),
    (5425, "LongVectorEXT", &[Feature("longVector")]),
    (5430, "CooperativeMatrixReductionsNV", &[Feature("cooperativeMatrixReductions")]),
    (5431, "CooperativeMatrixConversionsNV", &[Feature("cooperativeMatrixConversions")]),
    (5432, "CooperativeMatrixPerElementOperationsNV", &[Feature("cooperativeMatrixPerElementOperations")]),
    (5433, "CooperativeMatrixTensorAddressingNV", &[Feature("cooperativeMatrixTensorAddressing")]),
    (5434, "CooperativeMatrixBlockLoadsNV", &[Feature("cooperativeMatrixBlockLoads")]),
    (5435, "CooperativeVectorTrainingNV", &[Feature("cooperativeVectorTraining")]),
    (5439, "TensorAddressingNV", &[Feature("cooperativeMatrixTensorAddressing")]),
    (5584, "IntegerFunctions2INTEL", &[Feature("shaderIntegerFunctions2")]),
    (5612, "AtomicFloat32MinMaxEXT", &[Feature("shaderBufferFloat32AtomicMinMax"), Feature("shaderSharedFloat32AtomicMinMax")]),
    (5613, "AtomicFloat64MinMaxEXT", &[Feature("shaderBufferFloat64AtomicMinMax"), Feature("shaderSharedFloat64AtomicMinMax")]),
    (5616, "AtomicFloat16MinMaxEXT", &[Feature("shaderBufferFloat16AtomicMinMax"), Feature("shaderSharedFloat16AtomicMinMax")]),
    (5629, "ExpectAssumeKHR", &[Feature("shaderExpectAssume")]),
    (6016, "DotProductInputAll", &[Feature("shaderIntegerDotProduct")]),
    (6017, "DotProductInput4x8Bit", &[Feature("shaderIntegerDotProduct")]),
    (6018, "DotProductInput4x8BitPacked", &[Feature("shaderIntegerDotProduct")]),
    (6019, "DotProduct", &[Feature("shaderIntegerDotProduct")]),
    (6022, "CooperativeMatrixKHR", &[Feature("cooperativeMatrix")]),
    (6024, "ReplicatedCompositesEXT", &[Feature("shaderReplicatedComposites")]),
    (6026, "GroupNonUniformRotateKHR", &[Feature("shaderSubgroupRotate")]),
    (6029, "FloatControls2", &[Feature("shaderFloatControls2")]),
    (6033, "AtomicFloat32AddEXT", &[Feature("shaderBufferFloat32AtomicAdd"), Feature("shaderSharedFloat32AtomicAdd")]),
    (6034, "AtomicFloat64AddEXT", &[Feature("shaderBufferFloat64AtomicAdd"), Feature("shaderSharedFloat64AtomicAdd")]),
    (6095, "AtomicFloat16AddEXT", &[Feature("shaderBufferFloat16AtomicAdd"), Feature("shaderSharedFloat16AtomicAdd")]),
    (6912, "DotProductFloat16AccFloat32VALVE", &[Feature("shaderMixedFloatDotProductFloat16AccFloat32")]),
    (6913, "DotProductFloat16AccFloat16VALVE", &[Feature("shaderMixedFloatDotProductFloat16AccFloat16")]),
    (6914, "DotProductBFloat16AccVALVE", &[Feature("shaderMixedFloatDotProductBFloat16Acc")]),
    (6915, "DotProductFloat8AccFloat32VALVE", &[Feature("shaderMixedFloatDotProductFloat8AccFloat32")]),
    (6030, "FMAKHR", &[Feature("shaderFmaFloat16"), Feature("shaderFmaFloat32"), Feature("shaderFmaFloat64")]),
    (5426, "Shader64BitIndexingEXT", &[Feature("shader64BitIndexing")]),
];

/// Extensions of SPIR-V by name, each with its device extension; `None` if it is a part of Vulkan 1.3.
#[rustfmt::skip]
pub const EXTENSIONS: &[(&str, Option<&str>)] = &[
    ("SPV_KHR_variable_pointers", None),
    ("SPV_AMD_gcn_shader", Some("VK_AMD_gcn_shader")),
    ("SPV_AMD_gpu_shader_half_float", Some("VK_AMD_gpu_shader_half_float")),
    ("SPV_AMD_gpu_shader_int16", Some("VK_AMD_gpu_shader_int16")),
    ("SPV_AMD_shader_ballot", Some("VK_AMD_shader_ballot")),
    ("SPV_AMD_shader_trinary_minmax", Some("VK_AMD_shader_trinary_minmax")),
    ("SPV_KHR_8bit_storage", None),
    ("SPV_KHR_16bit_storage", None),
    ("SPV_KHR_shader_clock", Some("VK_KHR_shader_clock")),
    ("SPV_KHR_float_controls", None),
    ("SPV_KHR_storage_buffer_storage_class", None),
    ("SPV_KHR_shader_ballot", Some("VK_EXT_shader_subgroup_ballot")),
    ("SPV_KHR_subgroup_vote", Some("VK_EXT_shader_subgroup_vote")),
    ("SPV_NV_shader_subgroup_partitioned", Some("VK_NV_shader_subgroup_partitioned")),
    ("SPV_EXT_shader_subgroup_partitioned", Some("VK_EXT_shader_subgroup_partitioned")),
    ("SPV_NV_shader_invocation_reorder", Some("VK_NV_ray_tracing_invocation_reorder")),
    ("SPV_EXT_descriptor_indexing", None),
    ("SPV_KHR_vulkan_memory_model", None),
    ("SPV_NV_compute_shader_derivatives", Some("VK_NV_compute_shader_derivatives")),
    ("SPV_GOOGLE_hlsl_functionality1", None),
    ("SPV_GOOGLE_user_type", None),
    ("SPV_GOOGLE_decorate_string", None),
    ("SPV_KHR_physical_storage_buffer", None),
    ("SPV_EXT_physical_storage_buffer", Some("VK_EXT_buffer_device_address")),
    ("SPV_NV_cooperative_matrix", Some("VK_NV_cooperative_matrix")),
    ("SPV_NV_shader_sm_builtins", Some("VK_NV_shader_sm_builtins")),
    ("SPV_EXT_demote_to_helper_invocation", None),
    ("SPV_KHR_non_semantic_info", None),
    ("SPV_KHR_terminate_invocation", None),
    ("SPV_KHR_workgroup_memory_explicit_layout", Some("VK_KHR_workgroup_memory_explicit_layout")),
    ("SPV_EXT_shader_atomic_float_add", Some("VK_EXT_shader_atomic_float")),
    ("SPV_KHR_subgroup_uniform_control_flow", Some("VK_KHR_shader_subgroup_uniform_control_flow")),
    ("SPV_EXT_shader_atomic_float_min_max", Some("VK_EXT_shader_atomic_float2")),
    ("SPV_EXT_shader_atomic_float16_add", Some("VK_EXT_shader_atomic_float2")),
    ("SPV_NV_shader_atomic_fp16_vector", Some("VK_NV_shader_atomic_float16_vector")),
    ("SPV_KHR_integer_dot_product", None),
    ("SPV_INTEL_shader_integer_functions2", Some("VK_INTEL_shader_integer_functions2")),
    ("SPV_KHR_device_group", None),
    ("SPV_EXT_split_barrier", Some("VK_EXT_shader_split_barrier")),
    ("SPV_KHR_cooperative_matrix", Some("VK_KHR_cooperative_matrix")),
    ("SPV_KHR_maximal_reconvergence", Some("VK_KHR_shader_maximal_reconvergence")),
    ("SPV_KHR_subgroup_rotate", Some("VK_KHR_shader_subgroup_rotate")),
    ("SPV_KHR_expect_assume", Some("VK_KHR_shader_expect_assume")),
    ("SPV_KHR_float_controls2", Some("VK_KHR_shader_float_controls2")),
    ("SPV_KHR_fma", Some("VK_KHR_shader_fma")),
    ("SPV_KHR_quad_control", Some("VK_KHR_shader_quad_control")),
    ("SPV_KHR_bfloat16", Some("VK_KHR_shader_bfloat16")),
    ("SPV_NV_raw_access_chains", Some("VK_NV_raw_access_chains")),
    ("SPV_KHR_compute_shader_derivatives", Some("VK_KHR_compute_shader_derivatives")),
    ("SPV_EXT_replicated_composites", Some("VK_EXT_shader_replicated_composites")),
    ("SPV_KHR_relaxed_extended_instruction", Some("VK_KHR_shader_relaxed_extended_instruction")),
    ("SPV_NV_cooperative_matrix2", Some("VK_NV_cooperative_matrix2")),
    ("SPV_NV_cooperative_matrix_decode_vector", Some("VK_NV_cooperative_matrix_decode_vector")),
    ("SPV_NV_tensor_addressing", Some("VK_NV_cooperative_matrix2")),
    ("SPV_NV_cooperative_vector", Some("VK_NV_cooperative_vector")),
    ("SPV_NV_push_constant_bank", Some("VK_NV_push_constant_bank")),
    ("SPV_EXT_shader_invocation_reorder", Some("VK_EXT_ray_tracing_invocation_reorder")),
    ("SPV_EXT_float8", Some("VK_EXT_shader_float8")),
    ("SPV_KHR_untyped_pointers", Some("VK_KHR_shader_untyped_pointers")),
    ("SPV_EXT_shader_64bit_indexing", Some("VK_EXT_shader_64bit_indexing")),
    ("SPV_EXT_long_vector", Some("VK_EXT_shader_long_vector")),
    ("SPV_EXT_descriptor_heap", Some("VK_EXT_descriptor_heap")),
    ("SPV_VALVE_mixed_float_dot_product", Some("VK_VALVE_shader_mixed_float_dot_product")),
    ("SPV_KHR_abort", Some("VK_KHR_shader_abort")),
    ("SPV_KHR_constant_data", Some("VK_KHR_shader_constant_data")),
    ("SPV_EXT_ocp_microscaling_types", Some("VK_EXT_shader_ocp_microscaling_types")),
    ("SPV_EXT_cooperative_matrix_maintenance1", Some("VK_EXT_cooperative_matrix_maintenance1")),
];
