//! Installs zig from PyPI as the C compiler for macOS. The package has the system's C headers and the list of
//! libSystem's symbols.

use std::fs;
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};
use std::process::Command;

use anyhow::{Context, Result};

use super::folder;
use crate::{command, venv};

const VERSION: &str = "0.15.2";

/// An installed zig.
#[derive(Debug)]
pub struct Zig {
    /// The folder of the package.
    pub package: PathBuf,
    /// The scripts that call zig as a C compiler and as an archiver.
    cc: PathBuf,
    ar: PathBuf,
}

impl Zig {
    /// Makes zig the C compiler of a cargo command for macOS.
    pub fn set(&self, command: &mut Command) {
        command
            .env("CC_aarch64_apple_darwin", &self.cc)
            .env("AR_aarch64_apple_darwin", &self.ar)
            // Without this variable, the crate `cc` asks xcrun for the SDK.
            .env("SDKROOT", self.package.join("lib"))
            .env(
                "ZIG_GLOBAL_CACHE_DIR",
                self.package.with_file_name("zig-cache"),
            );
    }
}

/// Returns zig, which is installed unless it is there already.
pub fn ensure() -> Result<Zig> {
    let venv = folder("zig")?;
    if !venv.join("installed").is_file() {
        let mut pip = venv::pip(&venv::create(&venv)?, "install");
        pip.arg("--only-binary=:all:");
        command::run(pip.arg(format!("ziglang=={VERSION}")))?;
        fs::write(venv.join("installed"), VERSION)?;
    }
    let package = fs::read_dir(venv.join("lib"))?
        .flatten()
        .map(|entry| entry.path().join("site-packages/ziglang"))
        .find(|path| path.is_dir())
        .context("the package ziglang is not where it should be")?;
    // zig rejects some flags in the form in which the crate `cc` writes them for Apple's clang.
    let cc = script(&venv.join("zig-cc"), &package, CC)?;
    let ar = script(&venv.join("zig-ar"), &package, "exec \"$zig\" ar \"$@\"\n")?;
    Ok(Zig { package, cc, ar })
}

/// The rest of the script that calls zig as a compiler, without the flags that it does not know.
const CC: &str = "\
skip=
for argument; do
  shift
  if [ -n \"$skip\" ]; then skip=; continue; fi
  case $argument in
    -arch|-isysroot) skip=1 ;;
    --target=*|-mmacosx-version-min=*) ;;
    *) set -- \"$@\" \"$argument\" ;;
  esac
done
exec \"$zig\" cc -target aarch64-macos \"$@\"
";

/// Writes a script that can be started; `$zig` in its text is the program.
fn script(path: &Path, package: &Path, text: &str) -> Result<PathBuf> {
    let zig = package.join("zig");
    fs::write(path, format!("#!/bin/sh\nzig='{}'\n{text}", zig.display()))?;
    fs::set_permissions(path, fs::Permissions::from_mode(0o755))?;
    Ok(path.to_owned())
}
