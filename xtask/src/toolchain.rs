//! Finds a Rust toolchain that can compile for another system, with the standard library of that system.
//!
//! The sources of a toolchain are, in the order in which they are tried:
//! 1. the toolchain in use, when it has the target, or rustup can add it;
//! 2. a nightly toolchain that is installed, and Debian's package of the library's sources of the same version.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

use anyhow::{Context, Result, bail};

use crate::{command, packages};

/// A toolchain that compiles for another system.
#[derive(Debug)]
pub struct Toolchain {
    target: &'static str,
    /// The toolchain's folder `bin`.
    bin: PathBuf,
    /// The toolchain's own linker, which knows the formats of all systems.
    pub linker: PathBuf,
    /// True if the standard library is compiled together with the program.
    pub builds_std: bool,
}

impl Toolchain {
    /// Returns a cargo command that compiles for the other system.
    pub fn cargo(&self, task: &str) -> Command {
        let mut cargo = Command::new(self.bin.join("cargo"));
        let own = "RUSTUP_TOOLCHAIN RUSTC RUSTDOC CARGO RUSTFLAGS CARGO_ENCODED_RUSTFLAGS";
        for variable in own.split(' ') {
            cargo.env_remove(variable);
        }
        let path = std::env::var_os("PATH").unwrap_or_default();
        let paths = std::iter::once(self.bin.clone()).chain(std::env::split_paths(&path));
        if let Ok(paths) = std::env::join_paths(paths) {
            cargo.env("PATH", paths);
        }
        cargo.arg(task);
        if self.builds_std {
            cargo.arg("-Zbuild-std=std,panic_abort,panic_unwind");
        }
        cargo.arg(format!("--target={}", self.target));
        cargo
    }
}

/// Returns the first toolchain that can compile for a target; the error tells why none can.
pub fn find(target: &'static str) -> Result<Toolchain> {
    match installed(target) {
        Ok(toolchain) => Ok(toolchain),
        Err(first) => nightly(target).map_err(|second| anyhow::anyhow!("{first:#}; {second:#}")),
    }
}

/// Returns the folder in which downloads for other systems are kept.
fn folder(path: &str) -> Result<PathBuf> {
    let folder = std::path::absolute(crate::target("toolchain"))?;
    fs::create_dir_all(&folder).with_context(|| format!("cannot make {}", folder.display()))?;
    Ok(folder.join(path))
}

/// Returns the folder of a toolchain: the one that an argument such as `+nightly` names, or the one in use.
fn sysroot(toolchain: &[&str]) -> Result<PathBuf> {
    let mut rustc = Command::new("rustc");
    rustc.args(toolchain).args(["--print", "sysroot"]);
    if !toolchain.is_empty() {
        rustc.env_remove("RUSTUP_TOOLCHAIN");
    }
    Ok(command::output(&mut rustc)?.trim().into())
}

/// Returns the target triple for which the compiler in use compiles if it is not told another one.
pub fn this_machine() -> Result<String> {
    let facts = command::output(Command::new("rustc").arg("-vV"))?;
    let host = facts.lines().find_map(|line| line.strip_prefix("host: "));
    Ok(host.context("`rustc -vV` names no host")?.to_owned())
}

fn linker_of(sysroot: &Path) -> Result<PathBuf> {
    let folder = sysroot.join("lib/rustlib").join(this_machine()?);
    let linker = folder.join("bin/rust-lld");
    if !linker.is_file() {
        bail!("the toolchain has no rust-lld");
    }
    Ok(linker)
}

/// Returns the toolchain in use if it has the target or rustup can add the target.
fn installed(target: &'static str) -> Result<Toolchain> {
    let sysroot = sysroot(&[])?;
    let library = sysroot.join("lib/rustlib").join(target).join("lib");
    if !library.is_dir() {
        let added = command::succeeds("timeout", &["60", "rustup", "target", "add", target]);
        if !added || !library.is_dir() {
            bail!("the toolchain in use has no library for {target}, and rustup could not add it");
        }
    }
    Ok(Toolchain {
        target,
        linker: linker_of(&sysroot)?,
        bin: sysroot.join("bin"),
        builds_std: false,
    })
}

/// Returns an installed nightly toolchain that compiles the standard library from the sources in Debian's package.
fn nightly(target: &'static str) -> Result<Toolchain> {
    let original = sysroot(&["+nightly"]).context("there is no nightly toolchain")?;
    let mut rustc = command::line("rustc +nightly -V");
    let version = command::output(rustc.env_remove("RUSTUP_TOOLCHAIN"))?;
    let version = minor_version(&version).with_context(|| format!("{version} is not a version"))?;
    let library = library_sources(&version)?;
    let copy = folder("nightly")?;
    if !copy.join("bin/cargo").is_file() {
        let _ = fs::remove_dir_all(&copy);
        let links = command::output(command::line("cp -al").arg(&original).arg(&copy));
        if links.is_err() {
            let _ = fs::remove_dir_all(&copy);
            command::run(command::line("cp -a").arg(&original).arg(&copy))?;
        }
    }
    let sources = copy.join("lib/rustlib/src/rust");
    fs::create_dir_all(&sources)?;
    let link = sources.join("library");
    if fs::read_link(&link).ok().as_deref() != Some(library.as_path()) {
        let _ = fs::remove_file(&link);
        std::os::unix::fs::symlink(&library, &link)?;
    }
    Ok(Toolchain {
        target,
        linker: linker_of(&copy)?,
        bin: copy.join("bin"),
        builds_std: true,
    })
}

/// Returns the minor version from `rustc 1.97.0-nightly (…)`, here `1.97`.
fn minor_version(text: &str) -> Option<String> {
    let mut numbers = text.split_whitespace().nth(1)?.split('.');
    let (major, minor) = (numbers.next()?, numbers.next()?);
    let whole = |text: &str| !text.is_empty() && text.bytes().all(|b| b.is_ascii_digit());
    (whole(major) && whole(minor)).then(|| format!("{major}.{minor}"))
}

/// Suites of Debian that may have the sources of a recent version.
const SUITES: &[&str] = &["forky", "sid", "experimental"];

/// Returns the folder `library` of the compiler's sources, from Debian's package `rust-src` of the same minor
/// version.
fn library_sources(version: &str) -> Result<PathBuf> {
    let kept = folder(&format!("library-{version}"))?;
    if kept.join("std/Cargo.toml").is_file() {
        return Ok(kept);
    }
    let apt = packages::PrivateApt::new(&folder("apt")?, SUITES, None)?;
    let listed = command::output(apt.command("apt-cache").args(["madison", "rust-src"]))?;
    let wanted = format!("{version}.");
    let found = listed
        .lines()
        .filter_map(|line| line.split('|').nth(1))
        .map(str::trim)
        .find(|candidate| candidate.starts_with(&wanted));
    let Some(found) = found else {
        bail!(
            "the nightly is {version}, and Debian's suites {} have no rust-src of that version",
            SUITES.join(", ")
        );
    };
    let unpacked = folder("unpacked")?;
    let _ = fs::remove_dir_all(&unpacked);
    fs::create_dir_all(&unpacked)?;
    let mut download = apt.command("apt-get");
    download.args(["--quiet", "download", &format!("rust-src={found}")]);
    command::run(download.current_dir(&unpacked))?;
    let package = fs::read_dir(&unpacked)?
        .flatten()
        .map(|entry| entry.path())
        .find(|path| path.extension().is_some_and(|e| e == "deb"))
        .context("apt downloaded no package")?;
    command::run(command::line("dpkg-deb -x").arg(&package).arg(&unpacked))?;
    let sources = fs::read_dir(unpacked.join("usr/src"))?
        .flatten()
        .map(|entry| entry.path().join("library"))
        .find(|path| path.is_dir())
        .context("the package rust-src has no library")?;
    // The standard library depends on crates of the registry.
    for part in ["vendor", ".cargo"] {
        let _ = fs::remove_dir_all(sources.join(part));
    }
    fs::rename(&sources, &kept)?;
    let _ = fs::remove_dir_all(&unpacked);
    Ok(kept)
}

#[cfg(test)]
mod tests {
    use super::minor_version;

    #[test]
    fn a_minor_version_is_two_numbers() {
        assert_eq!(
            minor_version("rustc 1.97.0-nightly (e50aa6fba 2026-05-19)").as_deref(),
            Some("1.97")
        );
        assert_eq!(minor_version("rustc x.y"), None);
        assert_eq!(minor_version(""), None);
    }
}
