//! Defines the macro that makes the hooks of this layer's own `vkCmd*` functions.

/// Defines hooks of commands. Each calls the next layer's function with the hook's name from the field `$table` of
/// the state. While the command buffer is recorded, `$start` runs before that call and `$record` after it, with the
/// value that `$start` gave; otherwise only the call is made. The state comes from a cache of the thread, so
/// that the device is not looked up.
macro_rules! command_hooks {
    (
        $table:ident;
        $(fn $hook:ident($($argument:ident: $type:ty),* $(,)?) =
            |$before:ident| $start:expr, |$state:ident, $token:pat_param| $record:expr;)+
    ) => {
        $(pub unsafe extern "system" fn $hook(cb: ash::vk::CommandBuffer $(, $argument: $type)*) {
            // SAFETY: the program's own call, which gives this thread the command buffer; its structures are valid until it returns.
            unsafe {
                match $crate::command_buffers::state(cb) {
                    Some(state) => {
                        let Some(call) = state.$table.$hook else { return };
                        if !state.is_recorded() {
                            return call(cb $(, $argument)*);
                        }
                        let started = gapscope_spool::hook::guard(|| { let $before = &mut *state; $start });
                        call(cb $(, $argument)*);
                        if let Some($token) = started {
                            gapscope_spool::hook::guard(|| { let $state = state; $record });
                        }
                    }
                    None => {
                        let call = $crate::devices::DEVICES.get(cb).and_then(|device| device.$table.$hook);
                        if let Some(call) = call {
                            call(cb $(, $argument)*);
                        }
                    }
                }
            }
        })+
    };
}
pub(crate) use command_hooks;
