//! Finds the files of the hooks, which are loaded into the recorded program: the two Vulkan layers and the CUDA
//! library.

use anyhow::{Result, bail};
use std::env::consts::{DLL_PREFIX, DLL_SUFFIX};
use std::path::{Path, PathBuf};

/// The variable that overrides the folder of the hooks.
pub const FOLDER_VARIABLE: &str = "GAPSCOPE_HOOKS_DIR";

/// Returns the path of the recording layer.
pub fn find_layer() -> Result<PathBuf> {
    find_in(&folders()?, "gapscope_vulkan")
}

/// Returns the path of the capturing layer.
pub fn find_capture_layer() -> Result<PathBuf> {
    find_in(&folders()?, "gapscope_vulkan_capture")
}

/// Returns the path of the library that records CUDA; `None` if there is none, as on systems without CUDA.
pub fn find_cuda() -> Result<Option<PathBuf>> {
    let file = format!("{DLL_PREFIX}gapscope_cuda{DLL_SUFFIX}");
    let found = folders()?.into_iter().map(|folder| folder.join(&file));
    let found = found.into_iter().find(|path| path.is_file());
    Ok(found.map(|path| path.canonicalize()).transpose()?)
}

/// Returns the folders that are searched: the one that the variable names, else those of this installation.
fn folders() -> Result<Vec<PathBuf>> {
    Ok(match std::env::var_os(FOLDER_VARIABLE) {
        Some(folder) => vec![PathBuf::from(folder)],
        None => beside(&std::env::current_exe()?),
    })
}

/// Returns the folders where an installed or a freshly built gapscope has its hooks.
fn beside(executable: &Path) -> Vec<PathBuf> {
    let beside = executable.parent().unwrap_or(Path::new("."));
    vec![beside.to_owned(), beside.join("../lib/gapscope")]
}

/// Returns the file of a layer in the first folder that has it; the error says how to get it.
fn find_in(folders: &[PathBuf], library: &str) -> Result<PathBuf> {
    let file = format!("{DLL_PREFIX}{library}{DLL_SUFFIX}");
    for folder in folders {
        let path = folder.join(&file);
        if path.is_file() {
            // The recorded program may run in another working directory.
            return Ok(path.canonicalize()?);
        }
    }
    let folders: Vec<_> = folders.iter().map(|f| f.display().to_string()).collect();
    bail!(
        "the Vulkan layer {file} is not in {}; build it with `cargo build -p {}` (with the same \
         --release), or set {FOLDER_VARIABLE} to its folder",
        folders.join(" or "),
        library.replace('_', "-"),
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_installed_layer_is_looked_for_in_lib() {
        let folders = beside(Path::new("/opt/bin/gapscope"));
        assert_eq!(folders[1], Path::new("/opt/bin/../lib/gapscope"));
    }

    #[test]
    fn a_missing_layer_says_where_it_was_looked_for() {
        let error = find_in(&["/nowhere/a".into(), "/nowhere/b".into()], "x").unwrap_err();
        let text = error.to_string();
        assert!(text.contains("/nowhere/a or /nowhere/b"), "{text}");
        assert!(text.contains(FOLDER_VARIABLE), "{text}");
    }
}
