//! Hooks the commands that set and reset events (flags that order work); they are kept in the command buffer as what
//! stands after `=`, and passed on.

use ash::vk;

use crate::hooks::command::commands;
use crate::objects::command::Command;

commands! {
    fn cmd_set_event(event: vk::Event, stages: vk::PipelineStageFlags) = |_| Command::SetEvent(event);
    fn cmd_set_event2(event: vk::Event, info: *const vk::DependencyInfo<'_>) = |_| Command::SetEvent(event);
    fn cmd_reset_event(event: vk::Event, stages: vk::PipelineStageFlags) = |_| Command::ResetEvent(event);
    fn cmd_reset_event2(event: vk::Event, stages: vk::PipelineStageFlags2) = |_| Command::ResetEvent(event);
}
