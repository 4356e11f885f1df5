//! Hooks the commands that bind shader objects and descriptor buffers; the binding is recorded in the command
//! buffer's state. The buffers in descriptor buffers are not followed, so their sets become unknown.

use crate::api::arguments::slice;
use crate::hooks::command::command_hooks;
use ash::vk;

command_hooks! {
    functions;

    fn cmd_bind_shaders(
        count: u32,
        stages: *const vk::ShaderStageFlags,
        shaders: *const vk::ShaderEXT,
    ) = |_state| (), |state, ()| {
        let shaders = slice(shaders, count);
        for (index, stage) in slice(stages, count).iter().enumerate() {
            if stage.contains(vk::ShaderStageFlags::COMPUTE) {
                // Without shaders the stage is unbound.
                let shader = shaders.get(index).copied().unwrap_or_default();
                let kernel = state.device.kernels.kernel_of_shader(shader);
                state.kernel = kernel.unwrap_or_default();
            }
        }
    };

    fn cmd_set_descriptor_buffer_offsets(
        point: vk::PipelineBindPoint,
        layout: vk::PipelineLayout,
        first: u32,
        count: u32,
        indices: *const u32,
        offsets: *const u64,
    ) = |_state| (), |state, ()| {
        if point == vk::PipelineBindPoint::COMPUTE {
            (first..first.saturating_add(count)).for_each(|set| state.forget_set(set));
        }
    };

    fn cmd_set_descriptor_buffer_offsets2(info: *const vk::SetDescriptorBufferOffsetsInfoEXT<'_>) =
        |_state| (), |state, ()| {
            let info = &*info;
            if info.stage_flags.contains(vk::ShaderStageFlags::COMPUTE) {
                let sets = info.first_set..info.first_set.saturating_add(info.set_count);
                sets.for_each(|set| state.forget_set(set));
            }
        };
}
