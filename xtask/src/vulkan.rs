//! Installs the Vulkan loader, drivers and layers that a task needs.

use std::path::{Path, PathBuf};

use anyhow::Result;

use crate::packages;

/// Debian's package of the software driver, for machines without a GPU.
const SOFTWARE_DRIVER: &str = "mesa-vulkan-drivers";
/// The oldest major version of Mesa with which several real programs (Dawn, slangpy) work.
const LEAST_MESA: u32 = 24;

/// Installs the loader, and the software driver if the machine has no Vulkan driver.
pub fn ensure_any_driver() -> Result<()> {
    let mut missing = Vec::new();
    if !has_loader() {
        missing.push("libvulkan1");
    }
    if drivers().is_empty() {
        missing.push(SOFTWARE_DRIVER);
    }
    install(&missing)
}

/// Installs the loader, a recent software driver, and the layers that the tests run beside gapscope's.
pub fn ensure_test_drivers() -> Result<()> {
    let mut missing = Vec::new();
    for package in ["libvulkan1", "vulkan-validationlayers", "gfxreconstruct"] {
        if !packages::is_installed(package) {
            missing.push(package);
        }
    }
    let software = drivers().iter().any(|driver| is_lavapipe(driver));
    let mesa = packages::version(SOFTWARE_DRIVER).and_then(|version| major(&version));
    if !software || mesa.is_some_and(|major| major < LEAST_MESA) {
        missing.push(SOFTWARE_DRIVER);
    }
    install(&missing)
}

/// Installs these packages; the software driver comes from backports where the release has them.
fn install(missing: &[&str]) -> Result<()> {
    if missing.is_empty() {
        return Ok(());
    }
    packages::install(missing, missing.contains(&SOFTWARE_DRIVER))
}

fn has_loader() -> bool {
    let folders = ["/usr/lib", "/usr/lib64", "/usr/local/lib", "/lib"];
    let architecture = format!("{}-linux-gnu", std::env::consts::ARCH);
    folders.iter().any(|folder| {
        let folder = Path::new(folder);
        folder.join("libvulkan.so.1").exists()
            || folder.join(&architecture).join("libvulkan.so.1").exists()
    })
}

/// Returns the manifests of the drivers that the loader finds.
fn drivers() -> Vec<PathBuf> {
    let mut drivers = Vec::new();
    for variable in ["VK_DRIVER_FILES", "VK_ICD_FILENAMES", "VK_ADD_DRIVER_FILES"] {
        let Some(files) = std::env::var_os(variable) else {
            continue;
        };
        drivers.extend(std::env::split_paths(&files).filter(|file| file.exists()));
    }
    for folder in ["/etc", "/usr/local/etc", "/usr/share", "/usr/local/share"] {
        let Ok(entries) = Path::new(folder).join("vulkan/icd.d").read_dir() else {
            continue;
        };
        drivers.extend(entries.flatten().map(|entry| entry.path()).filter(|file| {
            file.extension()
                .is_some_and(|extension| extension == "json")
        }));
    }
    drivers
}

/// Returns whether a manifest is that of Mesa's software GPU.
fn is_lavapipe(driver: &Path) -> bool {
    driver
        .file_name()
        .is_some_and(|name| name.to_string_lossy().starts_with("lvp_icd"))
}

/// Returns the major version of a Debian version such as `25.0.7-2~bpo12+1`, here `25`. An epoch in front is
/// skipped.
fn major(version: &str) -> Option<u32> {
    let upstream = version
        .split_once(':')
        .map_or(version, |(_, upstream)| upstream);
    upstream.split('.').next()?.parse().ok()
}

#[cfg(test)]
mod tests {
    use super::major;

    #[test]
    fn the_major_version_is_read_from_a_debian_version() {
        assert_eq!(major("22.3.6-1+deb12u1"), Some(22));
        assert_eq!(major("1:25.0.7-2~bpo12+1"), Some(25));
        assert_eq!(major("unknown"), None);
    }
}
