//! Simulates shaders, pipelines and render passes. No shader is ever run; a pipeline remembers the name of its entry
//! point.

use std::ffi::CStr;

use ash::vk;

use crate::device::{self, Device, destroy_functions, plain_objects};
use crate::object::{self, Body};
use crate::{chain, misuse};

pub struct Pipeline {
    pub kernel: String,
}

impl Body for Pipeline {
    type Handle = vk::Pipeline;
}

pub struct ShaderModule;

impl Body for ShaderModule {
    type Handle = vk::ShaderModule;
}

plain_objects! {
    PipelineCache, create_cache("vkCreatePipelineCache"), destroy_cache("vkDestroyPipelineCache"),
        vk::PipelineCacheCreateInfo<'_>;
    PipelineLayout, create_layout("vkCreatePipelineLayout"), destroy_layout("vkDestroyPipelineLayout"),
        vk::PipelineLayoutCreateInfo<'_>;
    RenderPass, create_render_pass("vkCreateRenderPass"), destroy_render_pass("vkDestroyRenderPass"),
        vk::RenderPassCreateInfo<'_>;
    Framebuffer, create_framebuffer("vkCreateFramebuffer"), destroy_framebuffer("vkDestroyFramebuffer"),
        vk::FramebufferCreateInfo<'_>;
}

destroy_functions! {
    ShaderModule, destroy_shader_module("vkDestroyShaderModule");
    Pipeline, destroy_pipeline("vkDestroyPipeline");
}

pub unsafe extern "system" fn create_render_pass2(
    device: vk::Device,
    _: *const vk::RenderPassCreateInfo2<'_>,
    allocator: *const vk::AllocationCallbacks<'_>,
    out: *mut vk::RenderPass,
) -> vk::Result {
    create_render_pass(device, std::ptr::null(), allocator, out)
}

pub unsafe extern "system" fn get_render_area_granularity(
    _: vk::Device,
    _: vk::RenderPass,
    out: *mut vk::Extent2D,
) {
    *out = vk::Extent2D {
        width: 1,
        height: 1,
    };
}

pub unsafe extern "system" fn create_shader_module(
    device: vk::Device,
    info: *const vk::ShaderModuleCreateInfo<'_>,
    _: *const vk::AllocationCallbacks<'_>,
    out: *mut vk::ShaderModule,
) -> vk::Result {
    const CALL: &str = "vkCreateShaderModule";
    const SPIRV_MAGIC: u32 = 0x0723_0203;
    if chain::slice((*info).p_code, ((*info).code_size / 4) as u32).first() != Some(&SPIRV_MAGIC) {
        misuse::report(CALL, "the code is not SPIR-V");
    }
    device::create(CALL, device, out, |_| ShaderModule)
}

pub unsafe extern "system" fn create_compute_pipelines(
    device: vk::Device,
    _: vk::PipelineCache,
    count: u32,
    infos: *const vk::ComputePipelineCreateInfo<'_>,
    _: *const vk::AllocationCallbacks<'_>,
    out: *mut vk::Pipeline,
) -> vk::Result {
    const CALL: &str = "vkCreateComputePipelines";
    let Some(device) = object::get::<Device>(CALL, device) else {
        return vk::Result::ERROR_UNKNOWN;
    };
    for (index, info) in chain::slice(infos, count).iter().enumerate() {
        if chain::find::<vk::ShaderModuleCreateInfo<'_>>(info.stage.p_next).is_none() {
            object::get::<ShaderModule>(CALL, info.stage.module);
        }
        object::get::<PipelineLayout>(CALL, info.layout);
        let kernel = CStr::from_ptr(info.stage.p_name)
            .to_string_lossy()
            .into_owned();
        *out.add(index) = device.create(Pipeline { kernel });
    }
    vk::Result::SUCCESS
}

pub unsafe extern "system" fn create_graphics_pipelines(
    device: vk::Device,
    _: vk::PipelineCache,
    count: u32,
    _: *const vk::GraphicsPipelineCreateInfo<'_>,
    _: *const vk::AllocationCallbacks<'_>,
    out: *mut vk::Pipeline,
) -> vk::Result {
    let Some(device) = object::get::<Device>("vkCreateGraphicsPipelines", device) else {
        return vk::Result::ERROR_UNKNOWN;
    };
    for index in 0..count as usize {
        *out.add(index) = device.create(Pipeline {
            kernel: "graphics".to_owned(),
        });
    }
    vk::Result::SUCCESS
}

pub unsafe extern "system" fn get_cache_data(
    _: vk::Device,
    _: vk::PipelineCache,
    bytes: *mut usize,
    _: *mut std::ffi::c_void,
) -> vk::Result {
    *bytes = 0;
    vk::Result::SUCCESS
}

pub unsafe extern "system" fn merge_caches(
    _: vk::Device,
    _: vk::PipelineCache,
    _: u32,
    _: *const vk::PipelineCache,
) -> vk::Result {
    vk::Result::SUCCESS
}
