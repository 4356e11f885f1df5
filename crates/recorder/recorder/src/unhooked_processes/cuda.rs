//! Notices processes that load the CUDA driver in an environment that does not make it load the hook's library
//! (gapscope's library that records CUDA inside the program).

use crate::procfs;
use std::ffi::{OsStr, OsString};
use std::path::{Path, PathBuf};

/// The variable that tells the CUDA driver what library to load.
pub const CUDA_INJECTION: &str = "CUDA_INJECTION64_PATH";
/// The variable that tells NVTX what library to load.
pub const NVTX_INJECTION: &str = "NVTX_INJECTION64_PATH";

/// Returns the library that a variable names, when that is another tool's. In a recording inside another, the
/// variable names ours.
pub fn other_tools_library(variable: &str) -> Option<OsString> {
    std::env::var_os(variable).filter(|library| !library.is_empty() && !is_ours(Path::new(library)))
}

/// Returns a sentence for the user when another tool receives the NVTX ranges of CUDA programs.
pub fn nvtx_note() -> Option<String> {
    other_tools_library(NVTX_INJECTION).map(|other| {
        format!(
            "{NVTX_INJECTION} was set to {} already, so that NVTX ranges are not in the trace; unset it to record them.",
            other.display()
        )
    })
}

/// Returns true for the hook's library, in whatever folder.
pub fn is_ours(library: &Path) -> bool {
    let name = library.file_name().unwrap_or_default();
    name.to_string_lossy().starts_with("libgapscope_cuda.")
}

/// Returns a sentence on a process that loaded the driver when that was told to load `instead`, or nothing. `has_library`
/// tells whether there is a library of the hook to load.
fn sentence(pid: u32, name: &str, instead: Option<&str>, has_library: bool) -> String {
    let why = match instead {
        _ if !has_library => {
            "the library that records CUDA is not beside gapscope; build it with `cargo build -p gapscope-cuda` \
             (with the same --release)"
                .to_owned()
        }
        Some(other) => format!(
            "{CUDA_INJECTION} was set to {other} already, and the driver loads one library only; unset it to record CUDA"
        ),
        None => {
            format!("it was started with an environment without {CUDA_INJECTION}, so that nothing could record it")
        }
    };
    format!(
        "{name} (process {pid}) loaded the CUDA driver, and its CUDA work could not be recorded: {why}"
    )
}

/// Returns a sentence on a process that has loaded the driver in an environment that does not make it load `library`,
/// the hook's (`None` when there is none to load). `files` are those that the process has mapped.
pub fn find_unhooked(pid: u32, files: &[PathBuf], library: Option<&Path>) -> Option<String> {
    let named = |begin: &str| {
        files.iter().any(|file| {
            let name = file.file_name().unwrap_or_default().to_string_lossy();
            name.starts_with(begin)
        })
    };
    if !named("libcuda.so") || files.iter().any(|file| is_ours(file)) {
        return None;
    }
    let told = procfs::environment(pid, CUDA_INJECTION).filter(|value| !value.is_empty());
    // A driver that was told to load the hook's library and has not loaded it is not in use yet.
    let ours = |told: &String| library.is_some_and(|l| l.as_os_str() == OsStr::new(told));
    (!told.as_ref().is_some_and(ours)).then(|| {
        let name = procfs::name_for_user(pid);
        sentence(pid, &name, told.as_deref(), library.is_some())
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_driver_that_was_told_of_no_library_is_a_bypass() {
        let me = std::process::id();
        let driver = PathBuf::from("/usr/lib/libcuda.so.1");
        let ours = PathBuf::from("/opt/lib/libgapscope_cuda.so");
        let library = Some(ours.as_path());
        assert_eq!(find_unhooked(me, &[], library), None);
        assert_eq!(
            find_unhooked(me, &[driver.clone(), ours.clone()], library),
            None
        );
        let found = find_unhooked(me, std::slice::from_ref(&driver), library).unwrap();
        assert!(found.contains("without CUDA_INJECTION64_PATH"));
        let missing = find_unhooked(me, &[driver], None).unwrap();
        assert!(missing.contains("cargo build -p gapscope-cuda"));
    }

    #[test]
    fn our_library_is_known_in_any_folder() {
        assert!(is_ours(Path::new("/other/build/libgapscope_cuda.so")));
        assert!(!is_ours(Path::new("/opt/libinjection.so")));
    }

    #[test]
    fn a_library_that_the_user_chose_is_named() {
        assert_eq!(
            sentence(7, "python", Some("/opt/other.so"), true),
            "python (process 7) loaded the CUDA driver, and its CUDA work could not be recorded: CUDA_INJECTION64_PATH \
             was set to /opt/other.so already, and the driver loads one library only; unset it to record CUDA"
        );
    }
}
