//! Records the barriers of the captured program into a command buffer of the replay: their ranges move to the
//! replay's memory, and stages that a compute queue does not have are left out.

use ash::vk;
use gapscope_capture::Capture;
use gapscope_capture::model::{Barrier, Dependency};

use crate::gpu::Gpu;
use crate::memory::Memory;
use crate::regions::Regions;

use vk::AccessFlags2 as Access;
use vk::PipelineStageFlags2 as Stage;

/// Stages with the accesses that they may have. Windows of compute work have no others.
const STAGES: [(Stage, Access); 8] = [
    (Stage::TOP_OF_PIPE, Access::NONE),
    (Stage::BOTTOM_OF_PIPE, Access::NONE),
    (Stage::DRAW_INDIRECT, Access::INDIRECT_COMMAND_READ),
    (
        Stage::COMPUTE_SHADER,
        Access::from_raw(
            Access::UNIFORM_READ.as_raw()
                | Access::SHADER_READ.as_raw()
                | Access::SHADER_WRITE.as_raw()
                | Access::SHADER_SAMPLED_READ.as_raw()
                | Access::SHADER_STORAGE_READ.as_raw()
                | Access::SHADER_STORAGE_WRITE.as_raw(),
        ),
    ),
    (Stage::ALL_TRANSFER, TRANSFERS),
    (Stage::COPY, TRANSFERS),
    (Stage::CLEAR, Access::TRANSFER_WRITE),
    (
        Stage::HOST,
        Access::from_raw(Access::HOST_READ.as_raw() | Access::HOST_WRITE.as_raw()),
    ),
];

/// The accesses of copies.
const TRANSFERS: Access =
    Access::from_raw(Access::TRANSFER_READ.as_raw() | Access::TRANSFER_WRITE.as_raw());

/// Records a barrier of the capture. A buffer's barrier covers the parts of the range that the replay has.
pub fn record(
    gpu: &Gpu,
    commands: vk::CommandBuffer,
    capture: &Capture,
    regions: &Regions,
    memory: &Memory,
    barrier: &Barrier,
) {
    let mut of_memory: Vec<_> = barrier
        .memory
        .iter()
        .map(|dependency| memory_barrier(*dependency))
        .collect();
    let mut of_buffers = Vec::new();
    for (dependency, range) in &barrier.buffers {
        let (id, offset) = capture.place(*range);
        let parts = regions.parts(id, offset, range.bytes);
        if parts.is_empty() {
            // None of the buffers is in the window, so that only the order is left.
            of_memory.push(memory_barrier(Dependency {
                after_access: 0,
                before_access: 0,
                ..*dependency
            }));
        }
        let (after, before) = both(*dependency);
        for (_, place, bytes) in parts {
            of_buffers.push(
                vk::BufferMemoryBarrier2::default()
                    .src_stage_mask(after.0)
                    .src_access_mask(after.1)
                    .dst_stage_mask(before.0)
                    .dst_access_mask(before.1)
                    .src_queue_family_index(vk::QUEUE_FAMILY_IGNORED)
                    .dst_queue_family_index(vk::QUEUE_FAMILY_IGNORED)
                    .buffer(memory.raw(place.region))
                    .offset(place.offset)
                    .size(bytes),
            );
        }
    }
    let info = vk::DependencyInfo::default()
        .memory_barriers(&of_memory)
        .buffer_memory_barriers(&of_buffers);
    // SAFETY: the command buffer is being recorded; each range is inside its buffer, and stages and accesses fit each
    // other.
    unsafe { gpu.raw.cmd_pipeline_barrier2(commands, &info) };
}

/// Returns the barrier of a dependency for all memory.
fn memory_barrier(dependency: Dependency) -> vk::MemoryBarrier2<'static> {
    let (after, before) = both(dependency);
    vk::MemoryBarrier2::default()
        .src_stage_mask(after.0)
        .src_access_mask(after.1)
        .dst_stage_mask(before.0)
        .dst_access_mask(before.1)
}

/// Returns the stages and accesses that must have happened, then those that wait for them.
fn both(of: Dependency) -> ((Stage, Access), (Stage, Access)) {
    (
        served(of.after_stages, of.after_access),
        served(of.before_stages, of.before_access),
    )
}

/// Returns those of the given stages and accesses that a compute queue supports; general accesses stay. Stages that
/// only order (the top and the bottom of the pipe) have no accesses.
fn served(stages: u64, accesses: u64) -> (Stage, Access) {
    let (stages, accesses) = (Stage::from_raw(stages), Access::from_raw(accesses));
    let general = Access::MEMORY_READ | Access::MEMORY_WRITE;
    let every = STAGES
        .iter()
        .fold(general, |sum, (_, of_stage)| sum | *of_stage);
    if stages.contains(Stage::ALL_COMMANDS) {
        return (Stage::ALL_COMMANDS, accesses & every);
    }
    let kept = STAGES.iter().filter(|(stage, _)| stages.contains(*stage));
    let (stages, allowed) = kept.fold(
        (Stage::NONE, Access::NONE),
        |(sum, of), (stage, accesses)| (sum | *stage, of | *accesses),
    );
    let orders_only = Stage::TOP_OF_PIPE | Stage::BOTTOM_OF_PIPE;
    match (stages & !orders_only).is_empty() {
        true => (stages, Access::NONE),
        false => (stages, accesses & (allowed | general)),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn check(stages: Stage, accesses: Access, expected: (Stage, Access)) {
        assert_eq!(served(stages.as_raw(), accesses.as_raw()), expected);
    }

    #[test]
    fn what_a_queue_that_computes_has_is_kept() {
        let stages = Stage::COMPUTE_SHADER | Stage::ALL_TRANSFER;
        let accesses = Access::SHADER_WRITE | Access::TRANSFER_READ;
        check(stages, accesses, (stages, accesses));
        check(
            Stage::ALL_COMMANDS,
            Access::MEMORY_WRITE,
            (Stage::ALL_COMMANDS, Access::MEMORY_WRITE),
        );
    }

    #[test]
    fn graphics_goes_with_its_accesses() {
        let mixed = Stage::COMPUTE_SHADER | Stage::VERTEX_INPUT;
        let accesses = Access::SHADER_READ | Access::VERTEX_ATTRIBUTE_READ;
        check(
            mixed,
            accesses,
            (Stage::COMPUTE_SHADER, Access::SHADER_READ),
        );
        check(
            Stage::VERTEX_SHADER,
            Access::SHADER_READ,
            (Stage::NONE, Access::NONE),
        );
        check(
            Stage::TOP_OF_PIPE,
            Access::MEMORY_READ,
            (Stage::TOP_OF_PIPE, Access::NONE),
        );
    }

    #[test]
    fn numbers_of_nobody_are_left_out() {
        check(
            Stage::from_raw(1 << 60),
            Access::from_raw(1 << 60),
            (Stage::NONE, Access::NONE),
        );
    }
}
