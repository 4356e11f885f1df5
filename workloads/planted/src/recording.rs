//! Records a command buffer and counts its commands: `start`, then commands, then `end`, which returns it with the
//! counts.

use anyhow::Result;
use ash::vk;

use crate::buffer::Buffer;
use crate::gpu::Gpu;
use crate::layout::Layout;
use crate::recorded::Recorded;
use crate::truth::Tally;

/// A command buffer that is being recorded.
pub struct Recording<'gpu> {
    pub gpu: &'gpu Gpu,
    pub buffer: vk::CommandBuffer,
    tally: Tally,
}

impl<'gpu> Recording<'gpu> {
    /// Starts to record a primary or secondary command buffer.
    pub fn start(
        gpu: &'gpu Gpu,
        buffer: vk::CommandBuffer,
        usage: vk::CommandBufferUsageFlags,
    ) -> Result<Self> {
        let inheritance = vk::CommandBufferInheritanceInfo::default();
        let info = vk::CommandBufferBeginInfo::default()
            .flags(usage)
            .inheritance_info(&inheritance);
        unsafe { gpu.device.begin_command_buffer(buffer, &info)? };
        Ok(Self {
            gpu,
            buffer,
            tally: Tally::default(),
        })
    }

    /// Binds a pipeline and sets the number of rounds that its kernel spins.
    pub fn bind_pipeline(&self, layout: &Layout, pipeline: vk::Pipeline, rounds: u32) {
        let device = &self.gpu.device;
        let stage = vk::ShaderStageFlags::COMPUTE;
        unsafe {
            device.cmd_bind_pipeline(self.buffer, vk::PipelineBindPoint::COMPUTE, pipeline);
            device.cmd_push_constants(
                self.buffer,
                layout.pipeline,
                stage,
                0,
                &rounds.to_le_bytes(),
            );
        }
    }

    pub fn bind_set(&self, layout: &Layout, set: vk::DescriptorSet, offsets: &[u32]) {
        let point = vk::PipelineBindPoint::COMPUTE;
        unsafe {
            self.gpu.device.cmd_bind_descriptor_sets(
                self.buffer,
                point,
                layout.pipeline,
                0,
                &[set],
                offsets,
            )
        };
    }

    pub fn dispatch(&mut self, groups: u32) {
        unsafe { self.gpu.device.cmd_dispatch(self.buffer, groups, 1, 1) };
        self.tally.dispatches += 1;
    }

    pub fn write_timestamp(&self, stage: vk::PipelineStageFlags, pool: vk::QueryPool, query: u32) {
        unsafe {
            self.gpu
                .device
                .cmd_write_timestamp(self.buffer, stage, pool, query)
        };
    }

    /// Records a dispatch, after whose end the later commands start.
    pub fn dispatch_in_order(&mut self, groups: u32) {
        self.dispatch(groups);
        self.barrier();
    }

    /// Makes earlier writes visible to later commands and to the host.
    pub fn barrier(&self) {
        let memory = [vk::MemoryBarrier::default()
            .src_access_mask(vk::AccessFlags::MEMORY_WRITE)
            .dst_access_mask(vk::AccessFlags::MEMORY_READ | vk::AccessFlags::MEMORY_WRITE)];
        unsafe {
            self.gpu.device.cmd_pipeline_barrier(
                self.buffer,
                vk::PipelineStageFlags::ALL_COMMANDS,
                vk::PipelineStageFlags::ALL_COMMANDS | vk::PipelineStageFlags::HOST,
                vk::DependencyFlags::empty(),
                &memory,
                &[],
                &[],
            );
        }
    }

    /// Counts a dispatch that was recorded by another call than `dispatch`.
    pub fn count_dispatch(&mut self) {
        self.tally.dispatches += 1;
    }

    /// Fills a whole buffer, and counts it as a transfer, as `copy` and `update` do.
    pub fn fill(&mut self, to: &Buffer, value: u32) {
        unsafe {
            self.gpu
                .device
                .cmd_fill_buffer(self.buffer, to.handle, 0, vk::WHOLE_SIZE, value)
        };
        self.count_transfer(to.bytes);
    }

    pub fn copy(&mut self, from: &Buffer, to: &Buffer) {
        let region = [vk::BufferCopy::default().size(to.bytes)];
        unsafe {
            self.gpu
                .device
                .cmd_copy_buffer(self.buffer, from.handle, to.handle, &region)
        };
        self.count_transfer(to.bytes);
    }

    pub fn update(&mut self, to: &Buffer, bytes: &[u8]) {
        unsafe {
            self.gpu
                .device
                .cmd_update_buffer(self.buffer, to.handle, 0, bytes)
        };
        self.count_transfer(bytes.len() as u64);
    }

    /// Counts a transfer, also one that was recorded by another call than those above.
    pub fn count_transfer(&mut self, bytes: u64) {
        self.tally.transfers += 1;
        self.tally.transfer_bytes += bytes;
    }

    pub fn execute(&mut self, secondaries: &[&Recorded]) {
        let buffers: Vec<_> = secondaries
            .iter()
            .map(|secondary| secondary.buffer)
            .collect();
        unsafe { self.gpu.device.cmd_execute_commands(self.buffer, &buffers) };
        for secondary in secondaries {
            self.tally += secondary.tally;
        }
    }

    /// Ends the recording with a barrier.
    pub fn end(self) -> Result<Recorded> {
        // The barrier makes the results visible to the next submission and to the host.
        self.barrier();
        self.end_without_barrier()
    }

    /// Ends the recording without a barrier, for a rendering that is suspended, or for command buffers with only one
    /// kind of command.
    pub fn end_without_barrier(self) -> Result<Recorded> {
        unsafe { self.gpu.device.end_command_buffer(self.buffer)? };
        Ok(Recorded {
            buffer: self.buffer,
            tally: self.tally,
        })
    }
}
