//! Links programs for macOS against stubs of its libraries. Success shows that code can be generated and that the
//! bindings declare all symbols. It does not show that a class or selector exists in any macOS.

use std::process::Command;

use anyhow::{Context, Result};

use super::zig::Zig;
use super::{LINKED, SDK, folder};
use crate::cannot_check::cannot;
use crate::command;
use crate::toolchain::Toolchain;

/// The program that makes stubs of the symbols that the bindings declare.
const STUBS: &str = "xtask/src/darwin/stubs.py";

pub fn link(toolchain: &Toolchain, zig: &Zig) -> Result<()> {
    let sdk = folder("sdk")?;
    cannot(make_stubs(&sdk, zig).context("the stubs of Apple's frameworks"))?;
    let packages = [
        vec![format!("--package={LINKED}")],
        vec![
            format!("--package={SDK}"),
            "--features=wgpu".to_owned(),
            "--examples".to_owned(),
        ],
    ];
    for package in packages {
        let mut build = toolchain.cargo("build");
        zig.set(&mut build);
        build
            .env("SDKROOT", &sdk)
            .env(
                "CARGO_TARGET_AARCH64_APPLE_DARWIN_LINKER",
                &toolchain.linker,
            )
            .env(
                "CARGO_TARGET_AARCH64_APPLE_DARWIN_RUSTFLAGS",
                "-Clinker-flavor=ld64.lld",
            )
            // Other flags would replace the artefacts of the type check, so that linking has a folder of its own.
            .env("CARGO_TARGET_DIR", crate::target("darwin/link"));
        command::run(build.args(package))?;
    }
    Ok(())
}

/// Writes the stubs into the folder `sdk`, with zig's list of libSystem's symbols.
fn make_stubs(sdk: &std::path::Path, zig: &Zig) -> Result<()> {
    let mut python = Command::new("python3");
    python
        .arg(STUBS)
        .arg(sdk)
        .args(["--manifest-path", "Cargo.toml", "--libsystem"]);
    python.arg(zig.package.join("lib/libc/darwin/libSystem.tbd"));
    command::output(&mut python).map(drop)
}
