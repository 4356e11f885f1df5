//! Lists the features that the fake GPU offers, and those that a device was created with.

use std::ffi::c_void;

use ash::vk;

use crate::chain;
use crate::config::config;

/// The features on which the use of a function depends.
#[derive(Clone, Copy, Default)]
pub struct Enabled {
    pub host_query_reset: bool,
    pub timeline_semaphore: bool,
    pub synchronization2: bool,
    pub buffer_device_address: bool,
    pub dynamic_rendering: bool,
    pub performance_queries: bool,
}

impl Enabled {
    /// Returns the features that a `VkDeviceCreateInfo` chain asks for.
    pub unsafe fn requested(p_next: *const c_void) -> Self {
        let v12 = chain::find::<vk::PhysicalDeviceVulkan12Features<'_>>(p_next)
            .copied()
            .unwrap_or_default();
        let v13 = chain::find::<vk::PhysicalDeviceVulkan13Features<'_>>(p_next)
            .copied()
            .unwrap_or_default();
        macro_rules! either {
            ($core:ident, $type:ident, $feature:ident) => {
                $core.$feature != 0
                    || chain::find::<vk::$type<'_>>(p_next)
                        .is_some_and(|features| features.$feature != 0)
            };
        }
        let performance = chain::find::<vk::PhysicalDevicePerformanceQueryFeaturesKHR<'_>>(p_next);
        Self {
            host_query_reset: either!(v12, PhysicalDeviceHostQueryResetFeatures, host_query_reset),
            timeline_semaphore: either!(
                v12,
                PhysicalDeviceTimelineSemaphoreFeatures,
                timeline_semaphore
            ),
            synchronization2: either!(
                v13,
                PhysicalDeviceSynchronization2Features,
                synchronization2
            ),
            buffer_device_address: either!(
                v12,
                PhysicalDeviceBufferDeviceAddressFeatures,
                buffer_device_address
            ),
            dynamic_rendering: either!(
                v13,
                PhysicalDeviceDynamicRenderingFeatures,
                dynamic_rendering
            ),
            performance_queries: performance
                .is_some_and(|features| features.performance_counter_query_pools != 0),
        }
    }

    pub fn supported(self) -> bool {
        (!self.host_query_reset || config().host_query_reset)
            && (!self.performance_queries || config().counters.is_some())
    }
}

pub fn core() -> vk::PhysicalDeviceFeatures {
    vk::PhysicalDeviceFeatures::default()
        .robust_buffer_access(true)
        .full_draw_index_uint32(true)
        .image_cube_array(true)
        .independent_blend(true)
        .sample_rate_shading(true)
        .multi_draw_indirect(true)
        .draw_indirect_first_instance(true)
        .depth_clamp(true)
        .depth_bias_clamp(true)
        .fill_mode_non_solid(true)
        .sampler_anisotropy(true)
        .vertex_pipeline_stores_and_atomics(true)
        .fragment_stores_and_atomics(true)
        .shader_storage_image_extended_formats(true)
        .shader_storage_image_read_without_format(true)
        .shader_storage_image_write_without_format(true)
        .shader_uniform_buffer_array_dynamic_indexing(true)
        .shader_sampled_image_array_dynamic_indexing(true)
        .shader_storage_buffer_array_dynamic_indexing(true)
        .shader_storage_image_array_dynamic_indexing(true)
        .shader_clip_distance(true)
        .shader_float64(true)
        .shader_int64(true)
        .shader_int16(true)
}

fn v11() -> vk::PhysicalDeviceVulkan11Features<'static> {
    vk::PhysicalDeviceVulkan11Features::default()
        .storage_buffer16_bit_access(true)
        .uniform_and_storage_buffer16_bit_access(true)
        .storage_push_constant16(true)
        .multiview(true)
        .variable_pointers_storage_buffer(true)
        .variable_pointers(true)
        .protected_memory(true)
        .shader_draw_parameters(true)
}

fn v12() -> vk::PhysicalDeviceVulkan12Features<'static> {
    vk::PhysicalDeviceVulkan12Features::default()
        .storage_buffer8_bit_access(true)
        .uniform_and_storage_buffer8_bit_access(true)
        .storage_push_constant8(true)
        .shader_buffer_int64_atomics(true)
        .shader_shared_int64_atomics(true)
        .shader_float16(true)
        .shader_int8(true)
        .scalar_block_layout(true)
        .imageless_framebuffer(true)
        .uniform_buffer_standard_layout(true)
        .shader_subgroup_extended_types(true)
        .separate_depth_stencil_layouts(true)
        .host_query_reset(config().host_query_reset)
        .timeline_semaphore(true)
        .buffer_device_address(true)
        .vulkan_memory_model(true)
        .vulkan_memory_model_device_scope(true)
        .subgroup_broadcast_dynamic_id(true)
}

fn v13() -> vk::PhysicalDeviceVulkan13Features<'static> {
    vk::PhysicalDeviceVulkan13Features::default()
        .robust_image_access(true)
        .pipeline_creation_cache_control(true)
        .shader_demote_to_helper_invocation(true)
        .shader_terminate_invocation(true)
        .subgroup_size_control(true)
        .compute_full_subgroups(true)
        .synchronization2(true)
        .shader_zero_initialize_workgroup_memory(true)
        .dynamic_rendering(true)
        .shader_integer_dot_product(true)
        .maintenance4(true)
}

/// Fills the chained structures of features from those of the core versions.
macro_rules! fill_features {
    ($p_next:expr, { $($type:ident: $source:ident { $($field:ident),+ },)* }) => {
        for item in chain::structures($p_next) {
            match (*item).s_type {
                $(<vk::$type<'_> as vk::TaggedStructure>::STRUCTURE_TYPE => {
                    let (out, source) = (&mut *item.cast::<vk::$type<'_>>(), $source());
                    $(out.$field = source.$field;)+
                })*
                vk::StructureType::PHYSICAL_DEVICE_VULKAN_1_1_FEATURES => chain::fill(item, v11()),
                vk::StructureType::PHYSICAL_DEVICE_VULKAN_1_2_FEATURES => chain::fill(item, v12()),
                vk::StructureType::PHYSICAL_DEVICE_VULKAN_1_3_FEATURES => chain::fill(item, v13()),
                _ => {}
            }
        }
    };
}

pub unsafe extern "system" fn get_features(
    _: vk::PhysicalDevice,
    out: *mut vk::PhysicalDeviceFeatures,
) {
    *out = core();
}

pub unsafe extern "system" fn get_features2(
    _: vk::PhysicalDevice,
    out: *mut vk::PhysicalDeviceFeatures2<'_>,
) {
    (*out).features = core();
    fill_features!((*out).p_next, {
        PhysicalDevice16BitStorageFeatures: v11 {
            storage_buffer16_bit_access, uniform_and_storage_buffer16_bit_access, storage_push_constant16
        },
        PhysicalDeviceVariablePointersFeatures: v11 { variable_pointers, variable_pointers_storage_buffer },
        PhysicalDeviceMultiviewFeatures: v11 { multiview },
        PhysicalDeviceShaderDrawParametersFeatures: v11 { shader_draw_parameters },
        PhysicalDevice8BitStorageFeatures: v12 {
            storage_buffer8_bit_access, uniform_and_storage_buffer8_bit_access, storage_push_constant8
        },
        PhysicalDeviceShaderFloat16Int8Features: v12 { shader_float16, shader_int8 },
        PhysicalDeviceShaderAtomicInt64Features: v12 {
            shader_buffer_int64_atomics, shader_shared_int64_atomics
        },
        PhysicalDeviceScalarBlockLayoutFeatures: v12 { scalar_block_layout },
        PhysicalDeviceImagelessFramebufferFeatures: v12 { imageless_framebuffer },
        PhysicalDeviceUniformBufferStandardLayoutFeatures: v12 { uniform_buffer_standard_layout },
        PhysicalDeviceShaderSubgroupExtendedTypesFeatures: v12 { shader_subgroup_extended_types },
        PhysicalDeviceHostQueryResetFeatures: v12 { host_query_reset },
        PhysicalDeviceTimelineSemaphoreFeatures: v12 { timeline_semaphore },
        PhysicalDeviceBufferDeviceAddressFeatures: v12 { buffer_device_address },
        PhysicalDeviceVulkanMemoryModelFeatures: v12 {
            vulkan_memory_model, vulkan_memory_model_device_scope
        },
        PhysicalDeviceSubgroupSizeControlFeatures: v13 { subgroup_size_control, compute_full_subgroups },
        PhysicalDeviceSynchronization2Features: v13 { synchronization2 },
        PhysicalDeviceDynamicRenderingFeatures: v13 { dynamic_rendering },
        PhysicalDeviceZeroInitializeWorkgroupMemoryFeatures: v13 { shader_zero_initialize_workgroup_memory },
        PhysicalDeviceShaderIntegerDotProductFeatures: v13 { shader_integer_dot_product },
        PhysicalDeviceMaintenance4Features: v13 { maintenance4 },
    });
    for item in chain::structures((*out).p_next) {
        if (*item).s_type == vk::StructureType::PHYSICAL_DEVICE_PERFORMANCE_QUERY_FEATURES_KHR {
            let out = &mut *item.cast::<vk::PhysicalDevicePerformanceQueryFeaturesKHR<'_>>();
            out.performance_counter_query_pools = config().counters.is_some().into();
        }
    }
}
