//! Records dispatches, and what is bound for them.

use ash::vk::{self, BufferUsageFlags};

use super::{BINDING, COMPUTE, Recorder, record};
use crate::chain;
use crate::command::Command;
use crate::config::config;
use crate::descriptor::{DescriptorSet, DescriptorUpdateTemplate, check_buffers};
use crate::object::Object;
use crate::pipeline::{Pipeline, PipelineLayout};

pub unsafe extern "system" fn dispatch(buffer: vk::CommandBuffer, x: u32, y: u32, z: u32) {
    record("vkCmdDispatch", buffer, COMPUTE, |recorder| {
        recorder.dispatch([x, y, z])
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
    record("vkCmdDispatchBase", buffer, COMPUTE, |recorder| {
        recorder.dispatch([x, y, z])
    });
}

pub unsafe extern "system" fn dispatch_indirect(
    buffer: vk::CommandBuffer,
    arguments: vk::Buffer,
    offset: u64,
) {
    record("vkCmdDispatchIndirect", buffer, COMPUTE, |recorder| {
        let bytes = size_of::<vk::DispatchIndirectCommand>() as u64;
        let pipeline = recorder.bound_compute();
        let usage = BufferUsageFlags::INDIRECT_BUFFER;
        if let Some(address) = recorder.buffer_address(arguments, offset, bytes, usage) {
            recorder.push(Command::DispatchIndirect { address, pipeline });
        }
    });
}

impl Recorder<'_> {
    #[inline]
    fn dispatch(&mut self, groups: [u32; 3]) {
        let pipeline = self.bound_compute();
        self.push(Command::Dispatch { groups, pipeline });
    }

    #[inline]
    fn bound_compute(&self) -> Option<&'static Object<Pipeline>> {
        if self.recording.compute_pipeline.is_none() && !config().null {
            self.report("no compute pipeline is bound");
        }
        self.recording.compute_pipeline
    }
}

pub unsafe extern "system" fn bind_pipeline(
    buffer: vk::CommandBuffer,
    point: vk::PipelineBindPoint,
    pipeline: vk::Pipeline,
) {
    record("vkCmdBindPipeline", buffer, BINDING, |recorder| {
        let Some(pipeline) = recorder.get::<Pipeline>(pipeline) else {
            return;
        };
        recorder.recording.program.uses(&pipeline.header);
        match point {
            vk::PipelineBindPoint::COMPUTE => recorder.recording.compute_pipeline = Some(pipeline),
            _ => recorder.recording.graphics_pipeline = Some(pipeline),
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
    record("vkCmdBindDescriptorSets", buffer, BINDING, |recorder| {
        recorder.get::<PipelineLayout>(layout);
        for &set in chain::slice(sets, count) {
            if let Some(set) = recorder.get::<DescriptorSet>(set) {
                recorder.recording.program.uses(&set.header);
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
    record("vkCmdPushDescriptorSetKHR", buffer, BINDING, |recorder| {
        recorder.get::<PipelineLayout>(layout);
        for write in chain::slice(writes, count) {
            check_buffers(recorder.call, write);
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
    record(CALL, buffer, BINDING, |recorder| {
        recorder.get::<DescriptorUpdateTemplate>(template);
        recorder.get::<PipelineLayout>(layout);
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
    record("vkCmdPushConstants", buffer, BINDING, |recorder| {
        recorder.get::<PipelineLayout>(layout);
    });
}
