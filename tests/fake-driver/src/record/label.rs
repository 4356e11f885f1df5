//! Checks labels as commands, then drops them.

use ash::vk;

use super::{ANYWHERE, record};

type LabelInfo<'a> = *const vk::DebugUtilsLabelEXT<'a>;

pub unsafe extern "system" fn begin_label(buffer: vk::CommandBuffer, _: LabelInfo<'_>) {
    record("vkCmdBeginDebugUtilsLabelEXT", buffer, ANYWHERE, |_| {});
}

pub unsafe extern "system" fn insert_label(buffer: vk::CommandBuffer, _: LabelInfo<'_>) {
    record("vkCmdInsertDebugUtilsLabelEXT", buffer, ANYWHERE, |_| {});
}

pub unsafe extern "system" fn end_label(buffer: vk::CommandBuffer) {
    record("vkCmdEndDebugUtilsLabelEXT", buffer, ANYWHERE, |_| {});
}
