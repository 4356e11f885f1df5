//! `cargo xtask darwin`: type-checks, lints and links the code that is compiled on macOS only, on a machine that is
//! not a Mac. None of the code runs.
//!
//! [`toolchain`] finds a compiler that has the standard library for macOS. Where there is none, Debian's own compiler
//! and its sources are unpacked in a folder and used through chroot, which needs root, for the SDK's Metal code only.
//!
//! zig, from PyPI, compiles the C code of dependencies. Frameworks are linked against stubs, which are made of the
//! symbols that the bindings declare: no file of Apple's is used.

mod chroot;
mod link;
mod zig;

use std::path::PathBuf;

use anyhow::{Context, Result};

use crate::cannot_check::cannot;
use crate::toolchain::{self, Toolchain};
use crate::{command, target};

/// The crates with code that is compiled on macOS only or differs there.
const CRATES: &[&str] = &[SDK, "gapscope-metal", "gapscope", LINKED];
const SDK: &str = "gapscope-sdk";
/// A program that uses the Metal code of the SDK without wgpu, for the linker.
const LINKED: &str = "doubled";
/// The target triple of macOS on Apple's processors.
const TARGET: &str = "aarch64-apple-darwin";

/// Returns a path in the folder `darwin` of cargo's target folder, which is made if it is missing.
fn folder(path: &str) -> Result<PathBuf> {
    let folder = std::path::absolute(target("darwin"))?;
    std::fs::create_dir_all(&folder)
        .with_context(|| format!("cannot make {}", folder.display()))?;
    Ok(folder.join(path))
}

/// Runs the checks. A check that cannot be done is a failure.
pub fn run() -> Result<()> {
    if cfg!(target_os = "macos") {
        eprintln!("darwin: this is macOS: the ordinary checks cover it");
        return Ok(());
    }
    match toolchain::find(TARGET) {
        Ok(toolchain) => check(&toolchain),
        Err(reason) => {
            eprintln!("darwin: no toolchain for {TARGET}: {reason:#}");
            eprintln!(
                "darwin: going on with Debian's own compiler, which checks the SDK's Metal code only"
            );
            chroot::check().context("Debian's own compiler could not be used either")
        }
    }
}

/// Lints the crates, and links what can be linked, with a toolchain that has the target.
fn check(toolchain: &Toolchain) -> Result<()> {
    let zig = cannot(zig::ensure())?;
    let clippy = || {
        let mut clippy = toolchain.cargo("clippy");
        clippy.env("CARGO_TARGET_DIR", target("darwin/build"));
        zig.set(&mut clippy);
        clippy
    };
    let mut crates = clippy();
    for name in CRATES {
        crates.arg(format!("--package={name}"));
    }
    command::run(crates.args(["--lib", "--bins", "--", "-D", "warnings"]))?;
    // The tests and examples of the SDK are checked, too, and its feature wgpu, which the crates above do not use.
    let mut sdk = clippy();
    sdk.args([
        &format!("--package={SDK}"),
        "--features=wgpu",
        "--all-targets",
    ]);
    command::run(sdk.args(["--", "-D", "warnings"]))?;
    link::link(toolchain, &zig)?;
    eprintln!(
        "darwin: {} are checked and linted for {TARGET}, {LINKED} and the examples of {SDK} are linked; nothing of them ran",
        CRATES.join(", ")
    );
    Ok(())
}
