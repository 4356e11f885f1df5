//! The macro that makes the body of the hooks of this layer's own `vkCmd*` functions.

/// Calls the next layer's function; while the command buffer is recorded, `$start` runs before and `$record` after
/// it. The state comes from a cache of the thread, so that the device is not looked up.
macro_rules! command {
    ($cb:ident, $($function:ident).+($($argument:expr),*), |$before:ident| $start:expr, |$state:ident, $token:pat_param| $record:expr) => {
        // SAFETY: the program's own call, which gives this thread the command buffer.
        unsafe {
            match $crate::command_buffers::state($cb) {
                Some(state) => {
                    let Some(call) = state.$($function).+ else { return };
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
                    let call = $crate::devices::DEVICES.get($cb).and_then(|device| device.$($function).+);
                    if let Some(call) = call {
                        call($cb $(, $argument)*);
                    }
                }
            }
        }
    };
}
pub(crate) use command;
