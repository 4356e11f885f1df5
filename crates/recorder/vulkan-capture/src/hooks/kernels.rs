//! Shader modules, pipeline layouts and compute pipelines as programs make them.

use std::sync::Arc;

use ash::vk::{self, Handle};
use gapscope_capture::model;
use gapscope_spool::hook::guard;
use gapscope_vulkan_layer::arguments::slice;

use crate::api::device;
use crate::objects::Serial;
use crate::objects::kernels::{self, PipelineLayout};

pub unsafe extern "system" fn create_shader_module(
    handle: vk::Device,
    info: *const vk::ShaderModuleCreateInfo<'_>,
    allocator: *const vk::AllocationCallbacks<'_>,
    out: *mut vk::ShaderModule,
) -> vk::Result {
    // SAFETY: the program's own call on a live device.
    unsafe {
        let Some(device) = device::of(handle) else {
            return vk::Result::ERROR_DEVICE_LOST;
        };
        let result = (device.next.fp_v1_0().create_shader_module)(handle, info, allocator, out);
        if result == vk::Result::SUCCESS {
            guard(|| {
                let module = Arc::new(kernels::module(&*info));
                device.objects.modules.insert((*out).as_raw(), module);
            });
        }
        result
    }
}

pub unsafe extern "system" fn destroy_shader_module(
    handle: vk::Device,
    module: vk::ShaderModule,
    allocator: *const vk::AllocationCallbacks<'_>,
) {
    // SAFETY: the program's own call on a live device.
    unsafe {
        let Some(device) = device::of(handle) else {
            return;
        };
        guard(|| device.objects.modules.remove(module.as_raw()));
        (device.next.fp_v1_0().destroy_shader_module)(handle, module, allocator);
    }
}

pub unsafe extern "system" fn create_pipeline_layout(
    handle: vk::Device,
    info: *const vk::PipelineLayoutCreateInfo<'_>,
    allocator: *const vk::AllocationCallbacks<'_>,
    out: *mut vk::PipelineLayout,
) -> vk::Result {
    // SAFETY: the program's own call on a live device.
    unsafe {
        let Some(device) = device::of(handle) else {
            return vk::Result::ERROR_DEVICE_LOST;
        };
        let result = (device.next.fp_v1_0().create_pipeline_layout)(handle, info, allocator, out);
        if result == vk::Result::SUCCESS {
            guard(|| {
                let info = &*info;
                let sets = slice(info.p_set_layouts, info.set_layout_count).iter();
                let ranges = slice(info.p_push_constant_ranges, info.push_constant_range_count);
                let layout = PipelineLayout {
                    serial: Serial::next(),
                    handle: *out,
                    flags: info.flags.as_raw(),
                    sets: sets
                        .map(|set| device.objects.descriptors.layouts.get(set.as_raw()))
                        .collect(),
                    push_constants: (ranges.iter())
                        .map(|range| model::PushConstantRange {
                            stages: range.stage_flags.as_raw(),
                            offset: range.offset,
                            bytes: range.size,
                        })
                        .collect(),
                };
                let layouts = &device.objects.pipeline_layouts;
                layouts.insert((*out).as_raw(), Arc::new(layout));
            });
        }
        result
    }
}

pub unsafe extern "system" fn destroy_pipeline_layout(
    handle: vk::Device,
    layout: vk::PipelineLayout,
    allocator: *const vk::AllocationCallbacks<'_>,
) {
    // SAFETY: the program's own call on a live device.
    unsafe {
        let Some(device) = device::of(handle) else {
            return;
        };
        guard(|| device.objects.pipeline_layouts.remove(layout.as_raw()));
        (device.next.fp_v1_0().destroy_pipeline_layout)(handle, layout, allocator);
    }
}

pub unsafe extern "system" fn create_compute_pipelines(
    handle: vk::Device,
    cache: vk::PipelineCache,
    count: u32,
    infos: *const vk::ComputePipelineCreateInfo<'_>,
    allocator: *const vk::AllocationCallbacks<'_>,
    out: *mut vk::Pipeline,
) -> vk::Result {
    // SAFETY: the program's own call on a live device.
    unsafe {
        let Some(device) = device::of(handle) else {
            return vk::Result::ERROR_DEVICE_LOST;
        };
        let create = device.next.fp_v1_0().create_compute_pipelines;
        let result = create(handle, cache, count, infos, allocator, out);
        guard(|| {
            // Where some could not be made, the others are there.
            for (info, made) in slice(infos, count).iter().zip(slice(out, count)) {
                if *made != vk::Pipeline::null()
                    && let Some(pipeline) = device.objects.pipeline(*made, info)
                {
                    device
                        .objects
                        .pipelines
                        .insert(made.as_raw(), Arc::new(pipeline));
                }
            }
        });
        result
    }
}

pub unsafe extern "system" fn destroy_pipeline(
    handle: vk::Device,
    pipeline: vk::Pipeline,
    allocator: *const vk::AllocationCallbacks<'_>,
) {
    // SAFETY: the program's own call on a live device.
    unsafe {
        let Some(device) = device::of(handle) else {
            return;
        };
        guard(|| device.objects.pipelines.remove(pipeline.as_raw()));
        (device.next.fp_v1_0().destroy_pipeline)(handle, pipeline, allocator);
    }
}
