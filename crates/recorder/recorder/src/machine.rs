//! Describes the machine: what it is, for a trace's manifest, and what of it a recording needs, for `gapscope doctor`
//! (the command that tells what can be recorded here). Each function answers one question.

mod cuda_driver;
mod description;
mod processor;

pub use crate::conditions::{NvmlError, NvmlInfo as Nvml, nvml_info as nvml};
pub use crate::vulkan_drivers::manifests as vulkan_manifests;
pub use cuda_driver::{Cuda, CudaDriverError, Cupti, cuda};
pub(crate) use description::describe;
pub use gapscope_stacks::{Permissions as StacksAllowed, check_permissions as stacks_allowed};

use std::fs;
use std::path::Path;

/// Returns whether the driver keeps the hardware counters of NVIDIA's GPUs for administrators; `None` when the driver
/// does not say or there is none. `root` is the folder with `proc`.
pub fn counters_are_for_administrators(root: &Path) -> Option<bool> {
    let parameters = fs::read_to_string(root.join("proc/driver/nvidia/params")).ok()?;
    let mut lines = parameters.lines().filter_map(|line| line.split_once(':'));
    let (_, value) = lines.find(|(name, _)| *name == "RmProfilingAdminOnly")?;
    match value.trim() {
        "0" => Some(false),
        "1" => Some(true),
        _ => None,
    }
}

/// Returns true for root, to whom no driver refuses counters.
pub fn is_administrator() -> bool {
    rustix::process::geteuid().is_root()
}

/// Returns the number of bytes that this user may still write to the file system of a folder.
///
/// # Errors
/// The system does not say.
pub fn free_bytes(folder: &Path) -> std::io::Result<u64> {
    let system = rustix::fs::statvfs(folder)?;
    Ok(system.f_bavail.saturating_mul(system.f_frsize))
}

/// Returns the kind of container that this process is in (`docker`, `podman`, …, or `container` when the kind is not
/// known); `None` when nothing tells of a container. `root` is the folder that has `proc` and the marks of
/// containers.
pub fn container(root: &Path) -> Option<String> {
    if let Some(kind) = std::env::var_os("container").filter(|kind| !kind.is_empty()) {
        return Some(kind.to_string_lossy().into_owned());
    }
    let marks = [
        (".dockerenv", "docker"),
        ("run/.containerenv", "podman"),
        ("run/systemd/container", "container"),
    ];
    let mark = marks.iter().find(|(file, _)| root.join(file).exists());
    let kubernetes = std::env::var_os("KUBERNETES_SERVICE_HOST").map(|_| "kubernetes");
    mark.map(|(_, kind)| *kind)
        .or(kubernetes)
        .map(str::to_owned)
}

/// Returns whether a filter of system calls (seccomp) is active for this process; `None` when the kernel does not
/// say. `root` is the folder with `proc`.
pub fn filters_system_calls(root: &Path) -> Option<bool> {
    let status = fs::read_to_string(root.join("proc/self/status")).ok()?;
    let mode = status
        .lines()
        .find_map(|line| line.strip_prefix("Seccomp:"))?;
    Some(mode.trim() != "0")
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Makes a folder with these files: pairs of path and text.
    fn root(files: &[(&str, &str)]) -> tempfile::TempDir {
        let root = tempfile::tempdir().unwrap();
        for (path, text) in files {
            let path = root.path().join(path);
            fs::create_dir_all(path.parent().unwrap()).unwrap();
            fs::write(path, text).unwrap();
        }
        root
    }

    #[test]
    fn who_may_read_counters_is_what_the_driver_says() {
        let says = |text: &str| {
            let root = root(&[("proc/driver/nvidia/params", text)]);
            counters_are_for_administrators(root.path())
        };
        assert_eq!(
            says("ResmanDebugLevel: 4294967295\nRmProfilingAdminOnly: 1\n"),
            Some(true)
        );
        assert_eq!(says("RmProfilingAdminOnly: 0\n"), Some(false));
        assert_eq!(says("ResmanDebugLevel: 4294967295\n"), None);
        assert_eq!(counters_are_for_administrators(root(&[]).path()), None);
    }

    #[test]
    fn a_filter_of_system_calls_is_in_the_status() {
        let says = |text: &str| filters_system_calls(root(&[("proc/self/status", text)]).path());
        assert_eq!(says("Name:\tx\nSeccomp:\t2\n"), Some(true));
        assert_eq!(says("Seccomp:\t0\n"), Some(false));
        assert_eq!(says("Name:\tx\n"), None);
    }

    #[test]
    fn there_is_space_somewhere() {
        assert!(free_bytes(&std::env::temp_dir()).unwrap() > 0);
        assert!(free_bytes(Path::new("/nowhere")).is_err());
    }
}
