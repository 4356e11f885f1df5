//! Hooks of the host calls of which only the time is recorded: those of the table in [`crate::api::timed_calls`].

use crate::api::timed_calls::timed_calls;
use crate::devices::DEVICES;
use crate::host_call::HostCallTimer;
use ash::vk;
use gapscope_spool::event::HostCallKind;
use gapscope_spool::hook::guard;
use gapscope_vulkan_layer::hook_table;
use gapscope_vulkan_layer::layer::Answer;
use gapscope_vulkan_layer::table::Pointer;

macro_rules! hooks {
    ($($hook:ident $($name:literal)+ ($($argument:ident: $type:ty),*) = $kind:expr;)+) => {
        $(pub unsafe extern "system" fn $hook(handle: vk::Device $(, $argument: $type)*) -> vk::Result {
            // SAFETY: the program's own call.
            unsafe {
                let found = DEVICES.get(handle).and_then(|device| Some((device, device.timed_calls.$hook?)));
                let Some((device, call)) = found else {
                    return Answer::UNKNOWN;
                };
                let timer = HostCallTimer::start(device.recorder);
                let result = call(handle $(, $argument)*);
                guard(|| timer.finish($kind, result));
                result
            }
        })+
        hook_table! { $($hook $($name)+ ($($argument: $type),*) = $kind;)+ }
    };
}
timed_calls!(hooks);
