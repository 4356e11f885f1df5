//! Hooks the creation and destruction of shader objects (kernels without a pipeline). The hooks of pipelines are
//! in `gapscope_vulkan_layer`, which the layer for captures uses, too.

use crate::api::arguments::slice;
use crate::device::Device;
use crate::hooks::timed_calls::timed_hooks;
use ash::vk;
use gapscope_spool::event::HostCallKind;
use gapscope_vulkan_layer::device_hooks;

timed_hooks! {
    fn create_shaders(
        handle: vk::Device,
        count: u32,
        infos: *const vk::ShaderCreateInfoEXT<'_>,
        allocator: *const vk::AllocationCallbacks<'_>,
        out: *mut vk::ShaderEXT,
    ) = |device, timer, result| {
        timer.finish(HostCallKind::CreatePipelines, result);
        // Shaders that could not be made are null; the others exist, whatever the result.
        let made = slice(out.cast_const(), count);
        for (shader, info) in made.iter().zip(slice(infos, count)) {
            let is_kernel = info.stage.contains(vk::ShaderStageFlags::COMPUTE);
            if is_kernel && *shader != vk::ShaderEXT::null() {
                device.kernels.add_shader(*shader, info);
            }
        }
    };
}

device_hooks! {
    [Device]

    fn destroy_shader(
        handle: vk::Device,
        shader: vk::ShaderEXT,
        allocator: *const vk::AllocationCallbacks<'_>,
    ) = before |device| device.kernels.remove_shader(shader);
}
