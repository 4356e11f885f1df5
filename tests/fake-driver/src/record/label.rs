//! Checks labels as commands, then drops them.

use ash::vk;

use super::{ANYWHERE, record};

pub unsafe extern "system" fn begin_label(
    buffer: vk::CommandBuffer,
    _: *const vk::DebugUtilsLabelEXT<'_>,
) {
    record("vkCmdBeginDebugUtilsLabelEXT", buffer, ANYWHERE, |_, _| {});
}

pub unsafe extern "system" fn insert_label(
    buffer: vk::CommandBuffer,
    _: *const vk::DebugUtilsLabelEXT<'_>,
) {
    record("vkCmdInsertDebugUtilsLabelEXT", buffer, ANYWHERE, |_, _| {});
}

pub unsafe extern "system" fn end_label(buffer: vk::CommandBuffer) {
    record("vkCmdEndDebugUtilsLabelEXT", buffer, ANYWHERE, |_, _| {});
}
