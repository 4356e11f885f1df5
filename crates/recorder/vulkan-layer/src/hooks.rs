//! Defines the functions that the program calls instead of the next layer's (hooks), and that both layers hook: one
//! file for each group of functions. The macro [`crate::device_hooks`] makes them; each does the layer's work through
//! the traits of [`crate::layer`] and passes the call on.

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

/// Defines hooks of a layer's type for devices, `[Device]`, or of a type parameter with its bound, `[L: Layer]`. Each finds the device of
/// its first argument and the next layer's function of its own name. An unknown handle and a missing function get the same answer from
/// all hooks. The word after `=` says what a hook does:
///
/// - `before |device| work`: runs the work, then passes the call on;
/// - `after |device| work`: passes the call on, and runs the work if the call has succeeded;
/// - `around |device, call| body`: whatever the body does with the next layer's function `call`.
///
/// A panic in the work before or after the call ends there.
#[macro_export]
macro_rules! device_hooks {
    (
        $layer:tt
        $($(#[$doc:meta])* fn $hook:ident $arguments:tt $(-> $result:ty)? = $when:ident |$($local:pat_param),+| $work:expr;)+
    ) => {
        $($crate::device_hooks! { @$when $layer [$(#[$doc])*] $hook $arguments [$(-> $result)?] |$($local),+| $work })+
    };
    (
        @before [$layer:ident $($bound:tt)*] $doc:tt $hook:ident ($($argument:ident: $type:ty),* $(,)?) $result:tt
        |$device:pat_param| $work:expr
    ) => {
        $crate::device_hooks! { @around [$layer $($bound)*] $doc $hook ($($argument: $type),*) $result |$device, call| {
            <$layer as $crate::layer::Layer>::guard(|| $work);
            call($($argument),*)
        } }
    };
    (
        @after [$layer:ident $($bound:tt)*] $doc:tt $hook:ident ($($argument:ident: $type:ty),* $(,)?) $result:tt
        |$device:pat_param| $work:expr
    ) => {
        $crate::device_hooks! { @around [$layer $($bound)*] $doc $hook ($($argument: $type),*) $result |$device, call| {
            let result = call($($argument),*);
            if result == ash::vk::Result::SUCCESS {
                <$layer as $crate::layer::Layer>::guard(|| $work);
            }
            result
        } }
    };
    (
        @around [$layer:ident $(: $bound:ident)?] [$(#[$doc:meta])*]
        $hook:ident ($handle:ident: $handle_type:ty $(, $argument:ident: $type:ty)* $(,)?) [$(-> $result:ty)?]
        |$device:pat_param, $call:pat_param| $body:expr
    ) => {
        $(#[$doc])*
        pub unsafe extern "system" fn $hook$(<$layer: $crate::layer::$bound>)?(
            $handle: $handle_type $(, $argument: $type)*
        ) $(-> $result)? {
            // SAFETY: the program's own call: its handles are live, and its structures valid until it returns.
            unsafe {
                match $crate::layer::find::<$layer, _>($handle, |functions| functions.$hook) {
                    Some(($device, $call)) => $body,
                    None => $crate::layer::Answer::UNKNOWN,
                }
            }
        }
    };
}
