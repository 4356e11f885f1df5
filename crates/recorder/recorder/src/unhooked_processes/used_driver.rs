//! Finds out which of the Vulkan drivers that a process has mapped it really runs on. Vulkan's loader maps every
//! installed driver, and a driver without a device of its own stays mapped.

use std::fs;
use std::path::{Path, PathBuf};

/// The modules of the kernel that drive GPUs, each with a part of its Vulkan driver's name.
const KERNEL_DRIVERS: [(&str, &str); 6] = [
    ("i915", "intel"),
    ("xe", "intel"),
    ("amdgpu", "radeon"),
    ("radeon", "radeon"),
    ("nouveau", "nouveau"),
    ("virtio_gpu", "virtio"),
];

/// Returns the drivers of those that are mapped on which the process may run: a single one where its threads or its
/// open devices tell.
pub fn candidates(pid: u32, mapped: Vec<PathBuf>) -> Vec<PathBuf> {
    if mapped.len() < 2 {
        return mapped;
    }
    let mut signs = Vec::new();
    // Mesa's software driver starts threads for a device that is really used.
    if thread_names(pid).any(|name| name.starts_with("llvmpipe")) {
        signs.push("lvp");
    } else {
        signs.extend(open_files(pid).filter_map(|file| sign_of_device(&file)));
    }
    let is_signed = |driver: &&PathBuf| {
        let name = driver.file_name().unwrap_or_default().to_string_lossy();
        signs.iter().any(|sign| name.contains(sign))
    };
    let signed: Vec<PathBuf> = mapped.iter().filter(is_signed).cloned().collect();
    if signed.is_empty() { mapped } else { signed }
}

/// Returns the part of a Vulkan driver's name that an open device file stands for.
fn sign_of_device(file: &Path) -> Option<&'static str> {
    let name = file.strip_prefix("/dev").ok()?.to_str()?;
    if name
        .strip_prefix("nvidia")
        .is_some_and(|number| number.parse::<u32>().is_ok())
    {
        return Some("nvidia");
    }
    let node = name.strip_prefix("dri/")?;
    let driver = fs::read_link(format!("/sys/class/drm/{node}/device/driver")).ok()?;
    let module = driver.file_name()?.to_str()?;
    let entry = KERNEL_DRIVERS
        .iter()
        .find(|(kernel, _)| *kernel == module)?;
    Some(entry.1)
}

/// Returns the names of a process's threads.
fn thread_names(pid: u32) -> impl Iterator<Item = String> {
    let threads = fs::read_dir(format!("/proc/{pid}/task"));
    let threads = threads.into_iter().flatten().flatten();
    threads.filter_map(|thread| fs::read_to_string(thread.path().join("comm")).ok())
}

/// Returns the files that a process has open.
fn open_files(pid: u32) -> impl Iterator<Item = PathBuf> {
    let files = fs::read_dir(format!("/proc/{pid}/fd"));
    let files = files.into_iter().flatten().flatten();
    files.filter_map(|file| fs::read_link(file.path()).ok())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_driver_with_threads_is_the_one_that_runs() {
        let drivers = ["/lib/libvulkan_intel.so", "/lib/libvulkan_lvp.so"].map(PathBuf::from);
        let me = std::process::id();
        let (started, is_started) = std::sync::mpsc::channel();
        let (end, ends) = std::sync::mpsc::channel::<()>();
        let thread = std::thread::Builder::new().name("llvmpipe-0".to_owned());
        let thread = thread.spawn(move || {
            started.send(()).unwrap();
            let _ = ends.recv();
        });
        is_started.recv().unwrap();
        assert_eq!(candidates(me, drivers.to_vec()), drivers[1..]);
        drop(end);
        thread.unwrap().join().unwrap();
    }

    #[test]
    fn without_a_sign_all_drivers_remain() {
        let mut child = std::process::Command::new("sleep")
            .arg("9")
            .spawn()
            .unwrap();
        let drivers = ["/lib/libvulkan_intel.so", "/lib/libvulkan_radeon.so"].map(PathBuf::from);
        assert_eq!(candidates(child.id(), drivers.to_vec()), drivers);
        child.kill().unwrap();
        child.wait().unwrap();
    }
}
