//! The switches of the environment.

use std::sync::OnceLock;

/// The variables that switch the profiling of command buffers on; `0` and the empty text mean off.
pub const COMMAND_BUFFER_VARIABLES: [&str; 2] = ["GAPSCOPE_PROFILE_CB", "MLX_PROFILE_CB"];

/// The variables that switch the profiling of dispatches on; `0` and the empty text mean off.
pub const DISPATCH_VARIABLES: [&str; 2] = ["GAPSCOPE_PROFILE_DISPATCH", "MLX_PROFILE_DISPATCH"];

pub(super) fn command_buffers() -> bool {
    static ON: OnceLock<bool> = OnceLock::new();
    *ON.get_or_init(|| any(&COMMAND_BUFFER_VARIABLES))
}

pub(super) fn dispatches() -> bool {
    static ON: OnceLock<bool> = OnceLock::new();
    *ON.get_or_init(|| any(&DISPATCH_VARIABLES))
}

fn any(variables: &[&str]) -> bool {
    variables.iter().any(|variable| {
        std::env::var_os(variable).is_some_and(|value| means_on(&value.to_string_lossy()))
    })
}

pub(super) fn means_on(value: &str) -> bool {
    !matches!(value.trim(), "" | "0")
}
