//! The environment variables that switch profiling on. The program asks; a profile records whether they are set or
//! not.

use crate::environment::{any_is_on, mlx_variables};
use std::sync::OnceLock;

/// The variables that switch the profiling of command buffers on; `0` and the empty text mean off.
///
/// ```
/// # use gapscope_sdk::kernel_profile::COMMAND_BUFFER_VARIABLES;
/// assert!(COMMAND_BUFFER_VARIABLES[0].starts_with("GAPSCOPE_"));
/// ```
pub const COMMAND_BUFFER_VARIABLES: [&str; 2] = ["GAPSCOPE_PROFILE_CB", mlx_variables::PROFILE_CB];

/// The variables that switch the profiling of dispatches on; `0` and the empty text mean off.
///
/// ```
/// # use gapscope_sdk::kernel_profile::DISPATCH_VARIABLES;
/// assert!(DISPATCH_VARIABLES[0].starts_with("GAPSCOPE_"));
/// ```
pub const DISPATCH_VARIABLES: [&str; 2] =
    ["GAPSCOPE_PROFILE_DISPATCH", mlx_variables::PROFILE_DISPATCH];

/// Returns true if command buffers are to be profiled: `GAPSCOPE_PROFILE_CB` or `MLX_PROFILE_CB` is set to something
/// other than `0` and the empty text, or [`is_dispatch_enabled`]. The environment is read once.
///
/// ```
/// # use gapscope_sdk::kernel_profile;
/// if kernel_profile::is_enabled() {
///     kernel_profile::record("step", 1_000);
/// }
/// ```
pub fn is_enabled() -> bool {
    static ON: OnceLock<bool> = OnceLock::new();
    *ON.get_or_init(|| any_is_on(&COMMAND_BUFFER_VARIABLES) || is_dispatch_enabled())
}

/// Returns true if single dispatches are to be profiled: `GAPSCOPE_PROFILE_DISPATCH` or `MLX_PROFILE_DISPATCH` is set
/// as for [`is_enabled`], which it includes.
///
/// ```
/// # use gapscope_sdk::kernel_profile;
/// // Without the variables:
/// assert!(!kernel_profile::is_dispatch_enabled());
/// ```
pub fn is_dispatch_enabled() -> bool {
    static ON: OnceLock<bool> = OnceLock::new();
    *ON.get_or_init(|| any_is_on(&DISPATCH_VARIABLES))
}
