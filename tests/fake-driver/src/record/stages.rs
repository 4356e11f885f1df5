//! Converts pipeline stages.

use ash::vk::{self, QueueFlags};

use crate::command::CommandBuffer;
use crate::misuse;

pub fn require_synchronization2(call: &str, buffer: &CommandBuffer) {
    if !buffer.pool.enabled.synchronization2 {
        misuse::report(
            call,
            "the device was created without the feature synchronization2",
        );
    }
}

/// Converts stages to those of synchronization2, where the first 32 are the same.
pub fn widen(stages: vk::PipelineStageFlags) -> vk::PipelineStageFlags2 {
    vk::PipelineStageFlags2::from_raw(stages.as_raw().into())
}

/// Returns whether a stage mask waits for the end of earlier work and not only for its start.
pub fn waits_for_work(stages: vk::PipelineStageFlags2) -> bool {
    let no_work = vk::PipelineStageFlags2::TOP_OF_PIPE | vk::PipelineStageFlags2::HOST;
    !no_work.contains(stages)
}

pub fn check_stages(call: &str, buffer: &CommandBuffer, stages: vk::PipelineStageFlags2) {
    use vk::PipelineStageFlags2 as Stages;
    let flags = buffer.pool.queue_flags;
    if flags.contains(QueueFlags::GRAPHICS) {
        return;
    }
    let mut known = Stages::TOP_OF_PIPE
        | Stages::BOTTOM_OF_PIPE
        | Stages::HOST
        | Stages::ALL_COMMANDS
        | Stages::ALL_TRANSFER
        | Stages::COPY
        | Stages::CLEAR;
    if flags.contains(QueueFlags::COMPUTE) {
        known |= Stages::COMPUTE_SHADER | Stages::DRAW_INDIRECT;
    }
    if !known.contains(stages) {
        misuse::report(
            call,
            format_args!(
                "{stages:?} on queue family {} ({flags:?})",
                buffer.pool.family
            ),
        );
    }
}
