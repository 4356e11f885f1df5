//! Records dispatches, and what is bound for them.

use ash::vk::{self, BufferUsageFlags};

use super::{BINDING, COMPUTE, buffer_address, record};
use crate::chain;
use crate::command::{Command, Recording};
use crate::config::config;
use crate::descriptor::{DescriptorSet, DescriptorUpdateTemplate, check_buffers};
use crate::misuse;
use crate::object::{self, Object};
use crate::pipeline::{Pipeline, PipelineLayout};

pub unsafe extern "system" fn dispatch(buffer: vk::CommandBuffer, x: u32, y: u32, z: u32) {
    record("vkCmdDispatch", buffer, COMPUTE, |_, recording| {
        let pipeline = bound_compute("vkCmdDispatch", recording);
        recording.program.commands.push(Command::Dispatch {
            groups: [x, y, z],
            pipeline,
        });
    });
}

pub unsafe extern "system" fn dispatch_base(
    buffer: vk::CommandBuffer,
    _: u32,
    _: u32,
    _: u32,
    x: u32,
    y: u32,
    z: u32,
) {
    record("vkCmdDispatchBase", buffer, COMPUTE, |_, recording| {
        let pipeline = bound_compute("vkCmdDispatchBase", recording);
        recording.program.commands.push(Command::Dispatch {
            groups: [x, y, z],
            pipeline,
        });
    });
}

pub unsafe extern "system" fn dispatch_indirect(
    buffer: vk::CommandBuffer,
    arguments: vk::Buffer,
    offset: u64,
) {
    const CALL: &str = "vkCmdDispatchIndirect";
    record(CALL, buffer, COMPUTE, |_, recording| {
        let bytes = size_of::<vk::DispatchIndirectCommand>() as u64;
        let pipeline = bound_compute(CALL, recording);
        if let Some(address) = buffer_address(
            CALL,
            recording,
            arguments,
            offset,
            bytes,
            BufferUsageFlags::INDIRECT_BUFFER,
        ) {
            recording
                .program
                .commands
                .push(Command::DispatchIndirect { address, pipeline });
        }
    });
}

#[inline]
fn bound_compute(call: &str, recording: &Recording) -> Option<&'static Object<Pipeline>> {
    if recording.compute_pipeline.is_none() && !config().null {
        misuse::report(call, "no compute pipeline is bound");
    }
    recording.compute_pipeline
}

pub unsafe extern "system" fn bind_pipeline(
    buffer: vk::CommandBuffer,
    point: vk::PipelineBindPoint,
    pipeline: vk::Pipeline,
) {
    const CALL: &str = "vkCmdBindPipeline";
    record(CALL, buffer, BINDING, |_, recording| {
        let Some(pipeline) = object::get::<Pipeline>(CALL, pipeline) else {
            return;
        };
        recording.program.uses(&pipeline.header);
        match point {
            vk::PipelineBindPoint::COMPUTE => recording.compute_pipeline = Some(pipeline),
            _ => recording.graphics_pipeline = Some(pipeline),
        }
    });
}

pub unsafe extern "system" fn bind_descriptor_sets(
    buffer: vk::CommandBuffer,
    _: vk::PipelineBindPoint,
    layout: vk::PipelineLayout,
    _: u32,
    count: u32,
    sets: *const vk::DescriptorSet,
    _: u32,
    _: *const u32,
) {
    const CALL: &str = "vkCmdBindDescriptorSets";
    record(CALL, buffer, BINDING, |_, recording| {
        object::get::<PipelineLayout>(CALL, layout);
        for &set in chain::slice(sets, count) {
            if let Some(set) = object::get::<DescriptorSet>(CALL, set) {
                recording.program.uses(&set.header);
            }
        }
    });
}

pub unsafe extern "system" fn push_descriptor_set(
    buffer: vk::CommandBuffer,
    _: vk::PipelineBindPoint,
    layout: vk::PipelineLayout,
    _: u32,
    count: u32,
    writes: *const vk::WriteDescriptorSet<'_>,
) {
    const CALL: &str = "vkCmdPushDescriptorSetKHR";
    record(CALL, buffer, BINDING, |_, _| {
        object::get::<PipelineLayout>(CALL, layout);
        for write in chain::slice(writes, count) {
            check_buffers(CALL, write);
        }
    });
}

pub unsafe extern "system" fn push_descriptor_set_with_template(
    buffer: vk::CommandBuffer,
    template: vk::DescriptorUpdateTemplate,
    layout: vk::PipelineLayout,
    _: u32,
    _: *const std::ffi::c_void,
) {
    const CALL: &str = "vkCmdPushDescriptorSetWithTemplateKHR";
    record(CALL, buffer, BINDING, |_, _| {
        object::get::<DescriptorUpdateTemplate>(CALL, template);
        object::get::<PipelineLayout>(CALL, layout);
    });
}

pub unsafe extern "system" fn push_constants(
    buffer: vk::CommandBuffer,
    layout: vk::PipelineLayout,
    _: vk::ShaderStageFlags,
    _: u32,
    _: u32,
    _: *const std::ffi::c_void,
) {
    const CALL: &str = "vkCmdPushConstants";
    record(CALL, buffer, BINDING, |_, _| {
        object::get::<PipelineLayout>(CALL, layout);
    });
}
