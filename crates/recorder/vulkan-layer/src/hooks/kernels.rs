//! Hooks the creation and destruction of shader modules (code) and compute pipelines (kernels), and tells the layer
//! through [`ObjectHooks`](crate::layer::ObjectHooks), which may take the time of a creation. A body runs `before` or
//! `around` the call of the next layer.

use ash::vk;

use super::Allocator;
use crate::arguments::{shader_code, slice};
use crate::device_hooks;
use crate::layer::TimedCall;

device_hooks! {
    [L: ObjectHooks]

    fn create_shader_module(
        handle: vk::Device,
        info: *const vk::ShaderModuleCreateInfo<'_>,
        allocator: Allocator<'_>,
        out: *mut vk::ShaderModule,
    ) -> vk::Result = around |device, call| {
        let timer = device.start_timer();
        let result = call(handle, info, allocator, out);
        L::guard(|| {
            device.finish_timer(timer, TimedCall::CreateShaderModule, result, None);
            if result == vk::Result::SUCCESS {
                device.add_module(*out, shader_code(&*info));
            }
        });
        result
    };

    fn destroy_shader_module(handle: vk::Device, module: vk::ShaderModule, allocator: Allocator<'_>) =
        before |device| device.remove_module(module);

    fn create_compute_pipelines(
        handle: vk::Device,
        cache: vk::PipelineCache,
        count: u32,
        infos: *const vk::ComputePipelineCreateInfo<'_>,
        allocator: Allocator<'_>,
        out: *mut vk::Pipeline,
    ) -> vk::Result = around |device, call| {
        let timer = device.start_timer();
        let result = call(handle, cache, count, infos, allocator, out);
        L::guard(|| {
            device.finish_timer(timer, TimedCall::CreatePipelines, result, None);
            // Pipelines that could not be made are null; the others exist, whatever the result.
            for (info, pipeline) in slice(infos, count).iter().zip(slice(out, count)) {
                if *pipeline != vk::Pipeline::null() {
                    device.add_pipeline(*pipeline, info);
                }
            }
        });
        result
    };

    fn destroy_pipeline(handle: vk::Device, pipeline: vk::Pipeline, allocator: Allocator<'_>) =
        before |device| device.remove_pipeline(pipeline);
}
