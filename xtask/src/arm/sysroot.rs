//! Unpacks Debian's packages of the libraries for ARM that programs load.

use std::fs;
use std::path::{Path, PathBuf};

use anyhow::{Context, Result};

use crate::{packages, target};

/// The C library, Vulkan's loader and the layers that check its use.
pub const LOADER: &[&str] = &[
    "libc6",
    "libgcc-s1",
    "libvulkan1",
    "vulkan-validationlayers",
];
/// The packages of [`LOADER`] and a software GPU.
pub const WITH_GPU: &[&str] = &[
    "libc6",
    "libgcc-s1",
    "libvulkan1",
    "vulkan-validationlayers",
    "mesa-vulkan-drivers",
];

/// Returns a path in the folder of everything for ARM.
pub fn folder(path: &str) -> Result<PathBuf> {
    let folder = std::path::absolute(target("arm"))?;
    fs::create_dir_all(&folder).with_context(|| format!("cannot make {}", folder.display()))?;
    Ok(folder.join(path))
}

/// Returns a folder with these packages and the packages that they need. The folder may contain more packages.
pub fn ensure(wanted: &[&str]) -> Result<PathBuf> {
    let root = folder("sysroot")?;
    let installed = folder("installed")?;
    let there = fs::read_to_string(&installed).unwrap_or_default();
    if wanted
        .iter()
        .all(|package| there.lines().any(|line| line == *package))
    {
        return Ok(root);
    }
    let _ = fs::remove_dir_all(&root);
    fs::create_dir_all(&root)?;
    let suite = packages::release().context("this system is no Debian")?;
    let apt = packages::PrivateApt::new(&folder("apt")?, &[&suite], Some("arm64"))?;
    apt.unpack(wanted, &root)?;
    hide_the_machines_own(&root)?;
    fs::write(&installed, wanted.join("\n"))?;
    Ok(root)
}

/// Hides this machine's drivers and layers, which are for another processor: qemu looks outside for a folder that
/// does not exist inside.
fn hide_the_machines_own(root: &Path) -> Result<()> {
    for base in ["etc", "usr/share", "usr/local/share"] {
        for folder in ["icd.d", "explicit_layer.d", "implicit_layer.d"] {
            fs::create_dir_all(root.join(base).join("vulkan").join(folder))?;
        }
    }
    Ok(())
}
