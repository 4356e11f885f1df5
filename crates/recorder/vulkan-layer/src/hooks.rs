//! The functions that the program calls instead of the next layer's, and that both layers hook: one file for each
//! group.

mod command_buffers;
mod commands;
mod descriptors;
pub(crate) mod devices;
pub(crate) mod instances;
mod kernels;
mod labels;
mod memory;
mod queues;

pub(crate) use command_buffers::*;
pub(crate) use commands::*;
pub(crate) use descriptors::*;
pub(crate) use devices::*;
pub(crate) use kernels::*;
pub(crate) use labels::*;
pub(crate) use memory::*;
pub(crate) use queues::*;

use ash::vk;

type Allocator<'a> = *const vk::AllocationCallbacks<'a>;

/// Defines hooks: each finds the device of its first argument and the next layer's function of its own name. All
/// hooks give the same answer for an unknown handle and for a function that the next layer lacks.
macro_rules! hooks {
    (
        $layer:ident: $bound:ident;
        $($(#[$doc:meta])* fn $hook:ident($handle:ident: $handle_type:ty $(, $argument:ident: $type:ty)* $(,)?) $(-> $result:ty)?
            = |$device:ident, $call:ident| $body:block)+
    ) => {
        $($(#[$doc])*
        pub(crate) unsafe extern "system" fn $hook<$layer: crate::layer::$bound>(
            $handle: $handle_type $(, $argument: $type)*
        ) $(-> $result)? {
            // SAFETY: the program's own call: its handles are live, and its structures valid until it returns.
            unsafe {
                match crate::layer::find::<$layer, _>($handle, |functions| functions.$hook) {
                    Some(($device, $call)) => $body
                    None => crate::layer::Answer::UNKNOWN,
                }
            }
        })+
    };
}
use hooks;
