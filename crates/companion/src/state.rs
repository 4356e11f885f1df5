//! Locates the folder of the user's state: history and preferences, which are kept from one run to the next.

use std::path::PathBuf;

/// Returns gapscope's folder according to the XDG Base Directory Specification: in `$XDG_STATE_HOME`, or else
/// `~/.local/state`.
pub fn state_folder() -> Option<PathBuf> {
    let set = |name: &str| std::env::var_os(name).filter(|value| !value.is_empty());
    let folder = match set("XDG_STATE_HOME") {
        Some(folder) => PathBuf::from(folder),
        None => PathBuf::from(set("HOME")?).join(".local/state"),
    };
    Some(folder.join("gapscope"))
}
