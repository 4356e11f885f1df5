//! Converts and checks pipeline stages.

use ash::vk::{self, QueueFlags};

use super::Recorder;

/// Converts stages to those of synchronization2, where the first 32 are the same.
pub fn widen(stages: vk::PipelineStageFlags) -> vk::PipelineStageFlags2 {
    vk::PipelineStageFlags2::from_raw(stages.as_raw().into())
}

/// Returns whether a stage mask waits for the end of earlier work and not only for its start.
pub fn waits_for_work(stages: vk::PipelineStageFlags2) -> bool {
    let no_work = vk::PipelineStageFlags2::TOP_OF_PIPE | vk::PipelineStageFlags2::HOST;
    !no_work.contains(stages)
}

impl Recorder<'_> {
    pub fn require_synchronization2(&self) {
        if !self.buffer.pool.enabled.synchronization2 {
            self.report("the device was created without the feature synchronization2");
        }
    }

    /// Reports stages that the queue family does not have.
    pub fn check_stages(&self, stages: vk::PipelineStageFlags2) {
        use vk::PipelineStageFlags2 as Stages;
        let (family, flags) = (self.buffer.pool.family, self.buffer.pool.queue_flags);
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
            self.report(format_args!(
                "{stages:?} on queue family {family} ({flags:?})"
            ));
        }
    }
}
