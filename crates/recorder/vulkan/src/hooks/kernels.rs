//! Shader modules and pipelines as programs create and destroy them.

use crate::api::arguments::slice;
use crate::devices;
use crate::host_call::HostCallTimer;
use ash::vk;
use gapscope_spool::event::HostCallKind;
use gapscope_spool::hook::guard;

pub unsafe extern "system" fn create_shader_module(
    handle: vk::Device,
    info: *const vk::ShaderModuleCreateInfo<'_>,
    allocator: *const vk::AllocationCallbacks<'_>,
    out: *mut vk::ShaderModule,
) -> vk::Result {
    // SAFETY: the program's own call.
    unsafe {
        let Some((device, call)) = devices::with(handle, |f| f.create_shader_module) else {
            return vk::Result::ERROR_INITIALIZATION_FAILED;
        };
        let timer = HostCallTimer::start(device.recorder);
        let result = call(handle, info, allocator, out);
        guard(|| {
            timer.finish(HostCallKind::CreateShaderModule, result);
            if result == vk::Result::SUCCESS {
                let code = slice((*info).p_code, ((*info).code_size / 4) as u32);
                device.kernels.add_module(*out, code);
            }
        });
        result
    }
}

pub unsafe extern "system" fn destroy_shader_module(
    handle: vk::Device,
    module: vk::ShaderModule,
    allocator: *const vk::AllocationCallbacks<'_>,
) {
    // SAFETY: the program's own call.
    unsafe {
        let Some((device, call)) = devices::with(handle, |f| f.destroy_shader_module) else {
            return;
        };
        guard(|| device.kernels.remove_module(module));
        call(handle, module, allocator);
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
    // SAFETY: the program's own call. A pipeline that could not be made is null.
    unsafe {
        let Some((device, call)) = devices::with(handle, |f| f.create_compute_pipelines) else {
            return vk::Result::ERROR_INITIALIZATION_FAILED;
        };
        let timer = HostCallTimer::start(device.recorder);
        let result = call(handle, cache, count, infos, allocator, out);
        guard(|| {
            timer.finish(HostCallKind::CreatePipelines, result);
            let made = slice(out.cast_const(), count);
            for (pipeline, info) in made.iter().zip(slice(infos, count)) {
                if *pipeline != vk::Pipeline::null() && result.as_raw() >= 0 {
                    device.kernels.add_pipeline(*pipeline, info);
                }
            }
        });
        result
    }
}

pub unsafe extern "system" fn create_shaders(
    handle: vk::Device,
    count: u32,
    infos: *const vk::ShaderCreateInfoEXT<'_>,
    allocator: *const vk::AllocationCallbacks<'_>,
    out: *mut vk::ShaderEXT,
) -> vk::Result {
    // SAFETY: the program's own call. A shader that could not be made is null.
    unsafe {
        let Some((device, call)) = devices::with(handle, |f| f.create_shaders) else {
            return vk::Result::ERROR_INITIALIZATION_FAILED;
        };
        let timer = HostCallTimer::start(device.recorder);
        let result = call(handle, count, infos, allocator, out);
        guard(|| {
            timer.finish(HostCallKind::CreatePipelines, result);
            let made = slice(out.cast_const(), count);
            for (shader, info) in made.iter().zip(slice(infos, count)) {
                let is_kernel = info.stage.contains(vk::ShaderStageFlags::COMPUTE);
                if is_kernel && *shader != vk::ShaderEXT::null() && result.as_raw() >= 0 {
                    device.kernels.add_shader(*shader, info);
                }
            }
        });
        result
    }
}

pub unsafe extern "system" fn destroy_shader(
    handle: vk::Device,
    shader: vk::ShaderEXT,
    allocator: *const vk::AllocationCallbacks<'_>,
) {
    // SAFETY: the program's own call.
    unsafe {
        let Some((device, call)) = devices::with(handle, |f| f.destroy_shader) else {
            return;
        };
        guard(|| device.kernels.remove_shader(shader));
        call(handle, shader, allocator);
    }
}

pub unsafe extern "system" fn destroy_pipeline(
    handle: vk::Device,
    pipeline: vk::Pipeline,
    allocator: *const vk::AllocationCallbacks<'_>,
) {
    // SAFETY: the program's own call.
    unsafe {
        let Some((device, call)) = devices::with(handle, |f| f.destroy_pipeline) else {
            return;
        };
        guard(|| device.kernels.remove_pipeline(pipeline));
        call(handle, pipeline, allocator);
    }
}
