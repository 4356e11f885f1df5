//! A command buffer while it is recorded, which keeps count of what is put in.

use anyhow::Result;
use ash::vk;

use crate::buffer::Buffer;
use crate::gpu::Gpu;
use crate::truth::Tally;

/// A command buffer that is ready, with what one execution of it does.
#[derive(Clone, Copy)]
pub struct Recorded {
    pub buffer: vk::CommandBuffer,
    pub tally: Tally,
}

pub struct Recording<'gpu> {
    pub gpu: &'gpu Gpu,
    pub buffer: vk::CommandBuffer,
    tally: Tally,
}

impl<'gpu> Recording<'gpu> {
    /// Begins a primary or secondary command buffer.
    pub fn begin(
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

    pub fn dispatch(&mut self, groups: u32) {
        unsafe { self.gpu.device.cmd_dispatch(self.buffer, groups, 1, 1) };
        self.tally.dispatches += 1;
    }

    /// Makes what came before visible to what comes after, on the host too.
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

    pub fn copy(&mut self, from: &Buffer, to: &Buffer, bytes: u64) {
        let region = [vk::BufferCopy::default().size(bytes)];
        unsafe {
            self.gpu
                .device
                .cmd_copy_buffer(self.buffer, from.handle, to.handle, &region)
        };
        self.count_transfer(bytes);
    }

    pub fn count_transfer(&mut self, bytes: u64) {
        self.tally.transfers += 1;
        self.tally.transfer_bytes += bytes;
    }

    pub fn count_dispatch(&mut self) {
        self.tally.dispatches += 1;
    }

    pub fn end(self) -> Result<Recorded> {
        // The next submission and the host then see the results.
        self.barrier();
        unsafe { self.gpu.device.end_command_buffer(self.buffer)? };
        Ok(Recorded {
            buffer: self.buffer,
            tally: self.tally,
        })
    }
}
