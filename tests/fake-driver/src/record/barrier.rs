//! Records pipeline barriers.

use ash::vk;

use super::stages::{check_stages, require_synchronization2, waits_for_work, widen};
use super::{TRANSFER, record};
use crate::command::{Command, CommandBuffer, Recording};
use crate::object::Object;
use crate::{chain, misuse};

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
    const CALL: &str = "vkCmdPipelineBarrier";
    record(CALL, buffer, TRANSFER, |buffer, recording| {
        if source.is_empty() || destination.is_empty() {
            misuse::report(CALL, "a stage mask is empty");
        }
        barrier(CALL, buffer, recording, widen(source), widen(destination));
    });
}

pub unsafe extern "system" fn pipeline_barrier2(
    buffer: vk::CommandBuffer,
    info: *const vk::DependencyInfo<'_>,
) {
    const CALL: &str = "vkCmdPipelineBarrier2";
    record(CALL, buffer, TRANSFER, |buffer, recording| {
        require_synchronization2(CALL, buffer);
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
        barrier(CALL, buffer, recording, source, destination);
    });
}

fn barrier(
    call: &str,
    buffer: &Object<CommandBuffer>,
    recording: &mut Recording,
    source: vk::PipelineStageFlags2,
    destination: vk::PipelineStageFlags2,
) {
    check_stages(call, buffer, source | destination);
    let bottom = vk::PipelineStageFlags2::BOTTOM_OF_PIPE;
    if waits_for_work(source) && !bottom.contains(destination) {
        recording.program.commands.push(Command::Barrier);
    }
}
