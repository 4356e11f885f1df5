//! Hooks the commands that no capture can hold: they are passed on, and a window (the captured part of the run) ends
//! before a submission with one of them.

use ash::vk;
use gapscope_vulkan_layer::hook_table;
use gapscope_vulkan_layer::table::Pointer;

use crate::api::refused::refused_commands;
use crate::hooks::command::push;
use crate::objects::command::Command;

/// Makes a hook for each command of the list, and their table.
macro_rules! hooks {
    ($($hook:ident $name:literal $($alias:literal)* ($($argument:ident: $type:ty),*) = $effect:expr;)+) => {
        $(unsafe extern "system" fn $hook(buffer: vk::CommandBuffer $(, $argument: $type)*) {
            // SAFETY: the program's own call.
            unsafe {
                let device = push(buffer, |_| Command::Refused($name));
                if let Some(call) = device.and_then(|device| device.refused.$hook) {
                    call(buffer $(, $argument)*);
                }
            }
        })+

        hook_table! { $($hook $name $($alias)* ($($argument: $type),*) = ();)+ }
    };
}
refused_commands!(hooks);
