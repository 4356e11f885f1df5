//! Keeps how command buffers set and reset events.

use ash::vk;

use crate::hooks::command::commands;
use crate::objects::command::Command;

commands! {
    fn cmd_set_event(event: vk::Event, stages: vk::PipelineStageFlags) = |_| Command::SetEvent(event);
    fn cmd_set_event2(event: vk::Event, info: *const vk::DependencyInfo<'_>) = |_| Command::SetEvent(event);
    fn cmd_reset_event(event: vk::Event, stages: vk::PipelineStageFlags) = |_| Command::ResetEvent(event);
    fn cmd_reset_event2(event: vk::Event, stages: vk::PipelineStageFlags2) = |_| Command::ResetEvent(event);
}
