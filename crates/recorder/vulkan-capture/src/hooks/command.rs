//! Defines the macro and the functions by which hooks (functions that the program calls instead of the next layer's)
//! keep a command in the state of its command buffer.

use ash::vk::{self, Handle};
use gapscope_vulkan_layer::handles::lock;

use crate::api::device::{DEVICES, Device};
use crate::objects::command::Command;
use crate::window;

/// Adds a command to a command buffer.
pub fn add(device: &Device, buffer: vk::CommandBuffer, command: Command) {
    if let Some(state) = device.objects.command_buffers.get(buffer.as_raw()) {
        lock(&state).commands.push(command);
    }
}

/// Adds a command in a hook, and returns the device, so that the hook can pass the call on; `None` for a device that
/// is not known. `command` is called only while a window may still need commands.
///
/// # Safety
/// The command buffer is live.
pub unsafe fn push(
    buffer: vk::CommandBuffer,
    command: impl FnOnce(&Device) -> Command,
) -> Option<&'static Device> {
    // SAFETY: as the caller promises.
    let device = unsafe { DEVICES.get(buffer) }?;
    window::unless_over(|| add(device, buffer, command(device)));
    Some(device)
}

/// Defines hooks that keep a command, each with the device at hand, and then call the next layer's function of their
/// name.
macro_rules! commands {
    ($(fn $hook:ident($($argument:ident: $type:ty),* $(,)?) = |$device:pat_param| $command:expr;)+) => {$(
        pub unsafe extern "system" fn $hook(buffer: ash::vk::CommandBuffer $(, $argument: $type)*) {
            // SAFETY: the program's own call on a command buffer; its arrays are valid until the call returns.
            unsafe {
                let device = $crate::hooks::command::push(buffer, |$device| $command);
                if let Some(call) = device.and_then(|device| device.functions.$hook) {
                    call(buffer $(, $argument)*);
                }
            }
        }
    )+};
}
pub(crate) use commands;
