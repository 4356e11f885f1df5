//! Records pipeline barriers.

use ash::vk;

use super::stages::{waits_for_work, widen};
use super::{Recorder, TRANSFER, record};
use crate::chain;
use crate::command::Command;

pub unsafe extern "system" fn pipeline_barrier(
    buffer: vk::CommandBuffer,
    source: vk::PipelineStageFlags,
    destination: vk::PipelineStageFlags,
    _: vk::DependencyFlags,
    _: u32,
    _: *const vk::MemoryBarrier<'_>,
    _: u32,
    _: *const vk::BufferMemoryBarrier<'_>,
    _: u32,
    _: *const vk::ImageMemoryBarrier<'_>,
) {
    record("vkCmdPipelineBarrier", buffer, TRANSFER, |recorder| {
        if source.is_empty() || destination.is_empty() {
            recorder.report("a stage mask is empty");
        }
        recorder.barrier(widen(source), widen(destination));
    });
}

pub unsafe extern "system" fn pipeline_barrier2(
    buffer: vk::CommandBuffer,
    info: *const vk::DependencyInfo<'_>,
) {
    record("vkCmdPipelineBarrier2", buffer, TRANSFER, |recorder| {
        recorder.require_synchronization2();
        let info = &*info;
        let memory = chain::slice(info.p_memory_barriers, info.memory_barrier_count).iter();
        let buffers = chain::slice(
            info.p_buffer_memory_barriers,
            info.buffer_memory_barrier_count,
        )
        .iter();
        let images = chain::slice(
            info.p_image_memory_barriers,
            info.image_memory_barrier_count,
        )
        .iter();
        let stages = memory
            .map(|barrier| (barrier.src_stage_mask, barrier.dst_stage_mask))
            .chain(buffers.map(|barrier| (barrier.src_stage_mask, barrier.dst_stage_mask)))
            .chain(images.map(|barrier| (barrier.src_stage_mask, barrier.dst_stage_mask)));
        let (source, destination) = stages.fold(
            Default::default(),
            |all: (vk::PipelineStageFlags2, _), one| (all.0 | one.0, all.1 | one.1),
        );
        recorder.barrier(source, destination);
    });
}

impl Recorder<'_> {
    fn barrier(&mut self, source: vk::PipelineStageFlags2, destination: vk::PipelineStageFlags2) {
        self.check_stages(source | destination);
        let bottom = vk::PipelineStageFlags2::BOTTOM_OF_PIPE;
        if waits_for_work(source) && !bottom.contains(destination) {
            self.push(Command::Barrier);
        }
    }
}
