//! Hooks the host calls of which only the time is recorded: those of the table in [`crate::api::timed_calls`]. A
//! macro makes the hooks of other host calls whose time is recorded.

use crate::api::timed_calls::timed_calls;
use crate::devices::DEVICES;
use crate::host_call::HostCallTimer;
use ash::vk;
use gapscope_spool::event::HostCallKind;
use gapscope_spool::hook::guard;
use gapscope_vulkan_layer::hook_table;
use gapscope_vulkan_layer::layer::Answer;
use gapscope_vulkan_layer::table::Pointer;

/// Makes the hooks from the rows of the table: each times the call and writes it with the row's kind.
macro_rules! hooks {
    ($($hook:ident $($name:literal)+ ($($argument:ident: $type:ty),*) = $kind:expr;)+) => {
        $(pub unsafe extern "system" fn $hook(handle: vk::Device $(, $argument: $type)*) -> vk::Result {
            // SAFETY: the program's own call.
            unsafe {
                let known = DEVICES.get(handle).and_then(|device| Some((device, device.timed_calls.$hook?)));
                let Some((device, call)) = known else {
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

/// Defines hooks of host calls whose time is recorded. The expression runs after the call and finishes the timer; it
/// has the device, the timer and the call's result at hand.
macro_rules! timed_hooks {
    ($(fn $hook:ident($($argument:ident: $type:ty),* $(,)?) = |$device:pat_param, $timer:ident, $result:ident| $finish:expr;)+) => {
        gapscope_vulkan_layer::device_hooks! {
            [Device]
            $(fn $hook($($argument: $type),*) -> vk::Result = around |device, call| {
                let $timer = $crate::host_call::HostCallTimer::start(device.recorder);
                let $result = call($($argument),*);
                let $device = device;
                gapscope_spool::hook::guard(|| $finish);
                $result
            };)+
        }
    };
}
pub(crate) use timed_hooks;
