//! Where programs keep what their user did and prefers.

use std::path::PathBuf;

/// `gapscope` in the folder for such, as the XDG Base Directory Specification has it: `$XDG_STATE_HOME`, or else `~/.local/state`.
pub fn state_folder() -> Option<PathBuf> {
    let set = |name: &str| std::env::var_os(name).filter(|value| !value.is_empty());
    let folder = match set("XDG_STATE_HOME") {
        Some(folder) => PathBuf::from(folder),
        None => PathBuf::from(set("HOME")?).join(".local/state"),
    };
    Some(folder.join("gapscope"))
}
