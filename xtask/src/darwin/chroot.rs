//! Checks the Metal code of the SDK for macOS with Debian's own compiler and its sources of the standard library,
//! which are unpacked in a folder and used through chroot. This is the last resort: the trace writer and its C code
//! are left out, and nothing is linked.

use std::fs;
use std::path::Path;
use std::process::Command;

use anyhow::{Result, bail};

use super::{TARGET, folder};
use crate::cannot_check::cannot;
use crate::{command, packages};

/// The suite of a stable release whose compiler is recent enough (1.96).
const SUITE: &str = "trixie";
/// Debian's packages of the compiler and what it needs to run in the folder.
const PACKAGES: &[&str] = &[
    "rustc-web",
    "cargo-web",
    "rust-web-src",
    "rust-web-clippy",
    "ca-certificates",
    "base-files",
    "bash",
    "dash",
    "coreutils",
    "libc-bin",
];

/// Lints the SDK's Metal code in the folder.
pub fn check() -> Result<()> {
    let root = folder("chroot")?;
    cannot(ensure(&root))?;
    let project = root.join("build/project");
    cannot(copy_project(&project))?;
    let script = format!(
        "cd /build/project && cargo clippy -Zbuild-std=std,panic_abort,panic_unwind --target {TARGET} \
         --package gapscope-sdk --no-default-features -- -D warnings"
    );
    let mut chroot = Command::new("chroot");
    chroot.arg(&root);
    chroot.args("/usr/bin/env -i PATH=/usr/bin:/bin HOME=/build".split(' '));
    chroot.args("RUSTC_BOOTSTRAP=1 CARGO_TARGET_DIR=/build/target /usr/bin/bash -ec".split(' '));
    let mounted = cannot(Proc::mount(&root))?;
    let result = command::run(chroot.arg(script));
    drop(mounted);
    result?;
    eprintln!(
        "darwin: the SDK's Metal code is checked and linted for {TARGET} by Debian's compiler; not linked, and the other crates are not checked"
    );
    Ok(())
}

/// Makes the folder unless it is there. It needs root.
fn ensure(root: &Path) -> Result<()> {
    if command::output(Command::new("id").arg("-u"))?.trim() != "0" {
        bail!("a chroot needs root");
    }
    if root.join("installed").is_file() {
        return Ok(());
    }
    let _ = fs::remove_dir_all(root);
    for folder in ["bin", "sbin", "lib", "lib64"] {
        fs::create_dir_all(root.join("usr").join(folder))?;
        std::os::unix::fs::symlink(Path::new("usr").join(folder), root.join(folder))?;
    }
    let apt = packages::PrivateApt::new(&folder("chroot-apt")?, &[SUITE], None)?;
    apt.unpack(PACKAGES, root)?;
    for folder in ["proc", "dev", "tmp", "build", "etc/ssl"] {
        fs::create_dir_all(root.join(folder))?;
    }
    let _ = std::os::unix::fs::symlink("gcc", root.join("usr/bin/cc"));
    for (name, minor) in [("null", "3"), ("urandom", "9")] {
        let node = root.join("dev").join(name);
        let mut mknod = command::line("mknod -m 666");
        command::output(mknod.arg(node).args(["c", "1", minor]))?;
    }
    command::output(command::line("cp -rL /etc/ssl/.").arg(root.join("etc/ssl")))?;
    fs::write(root.join("installed"), SUITE)?;
    Ok(())
}

/// Copies the files that git tracks or would track, and the settings by which this machine finds the registry.
fn copy_project(to: &Path) -> Result<()> {
    let _ = fs::remove_dir_all(to);
    fs::create_dir_all(to)?;
    for file in ["/etc/resolv.conf", "/etc/hosts"] {
        let into = to.join("../../etc");
        command::output(Command::new("cp").arg("-L").arg(file).arg(into))?;
    }
    // The configuration in this folder says where this machine's cargo finds its registry.
    let home = std::env::var_os("CARGO_HOME").map_or_else(
        || Path::new(&std::env::var_os("HOME").unwrap_or_default()).join(".cargo"),
        Into::into,
    );
    let config = home.join("config.toml");
    if config.is_file() {
        fs::create_dir_all(to.join("../.cargo"))?;
        fs::copy(config, to.join("../.cargo/config.toml"))?;
    }
    let copy = format!(
        "git ls-files -z --cached --others --exclude-standard | tar -c --null --ignore-failed-read -T - | tar -x -C '{}'",
        to.display()
    );
    command::output(Command::new("sh").args(["-c", &copy])).map(drop)
}

/// A mount of /proc in the folder, which clippy needs; it is unmounted when this value is dropped.
struct Proc(std::path::PathBuf);

impl Proc {
    /// Mounts /proc unless it is mounted.
    fn mount(root: &Path) -> Result<Proc> {
        let proc = root.join("proc");
        if !proc.join("self").exists() {
            command::output(command::line("mount -t proc proc").arg(&proc))?;
        }
        Ok(Proc(proc))
    }
}

impl Drop for Proc {
    fn drop(&mut self) {
        let _ = command::output(Command::new("umount").arg(&self.0));
    }
}
