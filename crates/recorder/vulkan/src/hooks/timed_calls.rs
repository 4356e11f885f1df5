//! Host calls of which nothing but the time is recorded: those of [`crate::api::timed_calls`]'s table.

use crate::api::table::{Pointer, hook_table};
use crate::api::timed_calls::timed_calls;
use crate::devices;
use crate::host_call::HostCallTimer;
use ash::vk;
use gapscope_spool::event::HostCallKind;
use gapscope_spool::hook::guard;

macro_rules! hooks {
    ($($hook:ident $($name:literal)+ ($($argument:ident: $type:ty),*) = $kind:expr;)+) => {
        $(pub unsafe extern "system" fn $hook(handle: vk::Device $(, $argument: $type)*) -> vk::Result {
            // SAFETY: the program's own call.
            unsafe {
                let Some((device, call)) = devices::with(handle, |f| f.timed_calls.$hook) else {
                    return vk::Result::ERROR_INITIALIZATION_FAILED;
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
