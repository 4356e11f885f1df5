//! `cargo xtask darwin`: type-checks, lints and links for macOS what is only compiled there, on a machine that is not a
//! Mac. Nothing of it runs.
//!
//! The compiler's own support for macOS needs its standard library for that system. It comes, in this order, from
//! 1. the toolchain in use, when it has the target, or rustup can add it;
//! 2. a nightly toolchain that is installed, and Debian's package of the library's sources of the same version;
//! 3. Debian's own compiler with its own sources, unpacked in a folder and used through chroot (needs root).
//!
//! C in dependencies is compiled by zig, from PyPI. Frameworks are linked against stubs that are made of the symbols
//! that the bindings declare: no file of Apple's is used.

mod chroot;
mod link;
mod toolchain;
mod zig;

use std::fmt::Display;
use std::path::PathBuf;

use anyhow::{Context, Result, bail};

use crate::{clients, command, target};
use toolchain::Toolchain;

/// The crates with code that is compiled on macOS only, or differently there.
const CRATES: &[&str] = &["gapscope-sdk", "gapscope-metal", "gapscope", LINKED];
/// A program that uses the Metal code of the SDK, for the linker.
const LINKED: &str = "doubled";
const TARGET: &str = "aarch64-apple-darwin";

/// Where everything for it is kept.
fn folder(path: &str) -> Result<PathBuf> {
    let folder = std::path::absolute(target("darwin"))?;
    std::fs::create_dir_all(&folder)
        .with_context(|| format!("cannot make {}", folder.display()))?;
    Ok(folder.join(path))
}

/// Checks, and fails when it cannot.
pub fn run() -> Result<()> {
    if cfg!(target_os = "macos") {
        eprintln!("darwin: this is macOS: the ordinary checks cover it");
        return Ok(());
    }
    match toolchain::find() {
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

/// Checks as a part of all tests: where it cannot, that is said last and loudly, and is a failure where CI demands
/// everything.
pub fn run_or_warn() -> Result<Option<String>> {
    match run() {
        Ok(()) => Ok(None),
        Err(error) if error.is::<CannotCheck>() || error.chain().any(|e| e.is::<CannotCheck>()) => {
            let reason = format!("{error:#}");
            if clients::required() {
                bail!("the code for macOS was not checked: {reason}");
            }
            Ok(Some(reason))
        }
        Err(error) => Err(error),
    }
}

/// Says what was not checked, so that nobody takes silence for success.
pub fn warn(reason: &str) {
    let line = "!".repeat(100);
    eprintln!(
        "{line}\nNOT CHECKED: the code for macOS was neither type-checked nor linked here:\n{reason}\n{line}"
    );
}

/// What is needed for a check could not be had: the code itself may be right.
#[derive(Debug)]
struct CannotCheck(String);

impl Display for CannotCheck {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(&self.0)
    }
}

impl std::error::Error for CannotCheck {}

/// Marks an error as one of the machine, not of the code.
fn cannot<T>(result: Result<T>) -> Result<T> {
    result.map_err(|error| anyhow::Error::new(CannotCheck(format!("{error:#}"))))
}

fn check(toolchain: &Toolchain) -> Result<()> {
    let zig = cannot(zig::ensure())?;
    let mut clippy = toolchain.cargo("clippy");
    zig.set(&mut clippy);
    for name in CRATES {
        clippy.arg(format!("--package={name}"));
    }
    clippy.args(["--lib", "--bins", "--", "-D", "warnings"]);
    command::run(&mut clippy)?;
    link::link(toolchain, &zig)?;
    eprintln!(
        "darwin: {} are checked, linted and linked for {TARGET}; nothing of them ran",
        CRATES.join(", ")
    );
    Ok(())
}
