//! What the hooks of all `vkCmd*` functions have in common.

/// Calls the next layer's function; while the command buffer is recorded, `$start` runs before and `$record` after it.
/// The state comes from a cache of the thread, so that the device is not looked up.
macro_rules! command {
    ($cb:ident, $($function:ident).+($($argument:expr),*), |$before:ident| $start:expr, |$state:ident, $token:pat_param| $record:expr) => {
        // SAFETY: the program's own call, which gives this thread the command buffer.
        unsafe {
            match $crate::command_buffers::state($cb) {
                Some(state) => {
                    let Some(call) = state.functions.$($function).+ else { return };
                    if !state.is_recorded() {
                        return call($cb $(, $argument)*);
                    }
                    let started = gapscope_spool::hook::guard(|| { let $before = &mut *state; $start });
                    call($cb $(, $argument)*);
                    if let Some($token) = started {
                        gapscope_spool::hook::guard(|| { let $state = state; $record });
                    }
                }
                None => {
                    if let Some((_, call)) = $crate::devices::with($cb, |f| f.$($function).+) {
                        call($cb $(, $argument)*);
                    }
                }
            }
        }
    };
}
pub(crate) use command;
