//! Returns the paths of built programs and libraries, in the folder of the build to which these tests belong.

use std::path::{Path, PathBuf};

/// Returns the path of a file of the build.
pub fn built(name: &str) -> PathBuf {
    let file = target().join(profile()).join(name);
    assert!(
        file.exists(),
        "{name} is not built: run `cargo xtask test`, or `cargo build --workspace` before these tests"
    );
    file
}

/// Returns the target folder of cargo.
pub fn target() -> PathBuf {
    let profile = profile_folder();
    profile
        .parent()
        .expect("a profile's folder is in the target folder")
        .to_owned()
}

fn profile() -> String {
    let folder = profile_folder();
    folder
        .file_name()
        .expect("a profile's folder has a name")
        .to_string_lossy()
        .into_owned()
}

/// Returns the folder of the build's profile: `target/debug` for the test `target/debug/deps/end_to_end-…`.
fn profile_folder() -> PathBuf {
    let test = std::env::current_exe().expect("this test has a file");
    let deps = test.parent().expect("a file is in a folder");
    deps.parent()
        .expect("deps is in the profile's folder")
        .to_owned()
}

/// Returns the path of a file of this crate.
pub fn source(path: &str) -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join(path)
}
