//! Events as command buffers set and reset them.

use ash::vk;

use crate::command::Command;
use crate::hooks::command::commands;

commands! {
    fn cmd_set_event(event: vk::Event, stages: vk::PipelineStageFlags) = |_| Command::SetEvent(event);
    fn cmd_set_event2(event: vk::Event, info: *const vk::DependencyInfo<'_>) = |_| Command::SetEvent(event);
    fn cmd_reset_event(event: vk::Event, stages: vk::PipelineStageFlags) = |_| Command::ResetEvent(event);
    fn cmd_reset_event2(event: vk::Event, stages: vk::PipelineStageFlags2) = |_| Command::ResetEvent(event);
}
