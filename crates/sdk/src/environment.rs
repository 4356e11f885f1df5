//! Reads the switches of the environment, gapscope's own and those of MLX and mlx-native.

/// The environment variables of MLX and mlx-native, which are read like gapscope's own.
pub mod mlx_variables {
    /// The variable that asks for a capture and holds its path: see [`crate::capture::CAPTURE_VARIABLES`].
    pub const METAL_CAPTURE: &str = "MLX_METAL_CAPTURE";

    /// The variable that switches the profiling of command buffers on: see
    /// [`crate::kernel_profile::COMMAND_BUFFER_VARIABLES`].
    pub const PROFILE_CB: &str = "MLX_PROFILE_CB";

    /// The variable that switches the profiling of dispatches on: see [`crate::kernel_profile::DISPATCH_VARIABLES`].
    pub const PROFILE_DISPATCH: &str = "MLX_PROFILE_DISPATCH";

    /// The variable that asks for labels and for the sources of kernels: see [`crate::metal`].
    pub const METAL_DEBUG: &str = "MLX_METAL_DEBUG";
}

/// The command of gapscope that started this process.
#[cfg(target_os = "linux")]
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Session {
    /// `gapscope record`
    Record,
    /// `gapscope capture`
    Capture,
}

/// Returns the command that started this process. It is read once.
#[cfg(target_os = "linux")]
pub(crate) fn session() -> Option<Session> {
    use gapscope_spool::env::{CAPTURE_REQUEST, SPOOL};
    static SESSION: std::sync::OnceLock<Option<Session>> = std::sync::OnceLock::new();
    *SESSION.get_or_init(|| {
        if std::env::var_os(CAPTURE_REQUEST).is_some() {
            Some(Session::Capture)
        } else {
            std::env::var_os(SPOOL).map(|_| Session::Record)
        }
    })
}

/// Returns true if one of these variables is set to something other than `0` and the empty text.
pub(crate) fn any_is_on(variables: &[&str]) -> bool {
    let on = |value: std::ffi::OsString| means_on(&value.to_string_lossy());
    variables
        .iter()
        .any(|variable| std::env::var_os(variable).is_some_and(on))
}

/// Returns whether a variable's value switches something on.
fn means_on(value: &str) -> bool {
    !matches!(value.trim(), "" | "0")
}

#[cfg(test)]
mod tests {
    use super::means_on;

    #[test]
    fn off_is_off() {
        for off in ["", "0", " 0 "] {
            assert!(!means_on(off), "{off:?}");
        }
        for on in ["1", "true", "yes", "2"] {
            assert!(means_on(on), "{on:?}");
        }
    }
}
