//! The environment variables that switch profiling on.

use crate::environment::any_is_on;
use crate::mlx::variables;
use std::sync::OnceLock;

/// The variables that switch the profiling of command buffers on; `0` and the empty text mean off.
///
/// ```
/// # use gapscope_sdk::kernel_profile::COMMAND_BUFFER_VARIABLES;
/// assert!(COMMAND_BUFFER_VARIABLES[0].starts_with("GAPSCOPE_"));
/// ```
pub const COMMAND_BUFFER_VARIABLES: [&str; 2] = ["GAPSCOPE_PROFILE_CB", variables::PROFILE_CB];

/// The variables that switch the profiling of dispatches on; `0` and the empty text mean off.
///
/// ```
/// # use gapscope_sdk::kernel_profile::DISPATCH_VARIABLES;
/// assert!(DISPATCH_VARIABLES[0].starts_with("GAPSCOPE_"));
/// ```
pub const DISPATCH_VARIABLES: [&str; 2] =
    ["GAPSCOPE_PROFILE_DISPATCH", variables::PROFILE_DISPATCH];

pub(crate) fn profile_command_buffers() -> bool {
    static ON: OnceLock<bool> = OnceLock::new();
    *ON.get_or_init(|| any_is_on(&COMMAND_BUFFER_VARIABLES))
}

pub(crate) fn profile_dispatches() -> bool {
    static ON: OnceLock<bool> = OnceLock::new();
    *ON.get_or_init(|| any_is_on(&DISPATCH_VARIABLES))
}
