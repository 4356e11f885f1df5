//! Runs programs for ARM under qemu, together with the programs that they start.

use std::fs;
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};
use std::process::Command;

use anyhow::Result;

use super::sysroot;
use crate::command;

/// A script that registers qemu for programs for ARM and then becomes the command that it is given. The
/// registration belongs to the user namespace of the task, so that the machine's own registration stays.
const REGISTER: &str = r#"#!/bin/sh
set -e
mount -t binfmt_misc none /proc/sys/fs/binfmt_misc
header='\x7fELF\x02\x01\x01\x00\x00\x00\x00\x00\x00\x00\x00\x00\x02\x00\xb7\x00'
mask='\xff\xff\xff\xff\xff\xff\xff\x00\xff\xff\xff\xff\xff\xff\xff\xff\xfe\xff\xff\xff'
printf '%s' ":arm:M::$header:$mask:$(command -v qemu-aarch64):P" > /proc/sys/fs/binfmt_misc/register
exec "$@"
"#;

/// The way in which programs for ARM run on this machine.
#[derive(Debug)]
pub struct Emulation {
    /// The script that registers qemu.
    register: PathBuf,
    /// The folder with the libraries for ARM.
    sysroot: PathBuf,
    /// True if a program for ARM can start another program: Linux 6.7 or later lets a user register qemu in a
    /// namespace.
    pub starts_programs: bool,
    /// True if qemu can emulate larger pages.
    pub knows_page_sizes: bool,
}

impl Emulation {
    /// Finds out what qemu and this system can do.
    pub fn find(sysroot: &Path) -> Result<Emulation> {
        let help = command::output(Command::new("qemu-aarch64").arg("-h"))?;
        let mut emulation = Emulation {
            register: sysroot::folder("with-qemu")?,
            sysroot: sysroot.to_owned(),
            starts_programs: true,
            knows_page_sizes: help.contains("set the host page size"),
        };
        fs::write(&emulation.register, REGISTER)?;
        fs::set_permissions(&emulation.register, fs::Permissions::from_mode(0o755))?;
        let registered = command::output(&mut emulation.command(&Command::new("true")));
        if let Err(error) = registered {
            eprintln!("arm: qemu cannot be registered in a namespace here: {error:#}");
            emulation.starts_programs = false;
        }
        Ok(emulation)
    }

    /// Returns a command that runs `of` where programs for ARM can be started.
    pub fn command(&self, of: &Command) -> Command {
        let program = of.get_program();
        let mut command = if self.starts_programs {
            let mut command = Command::new("unshare");
            command.args(["--user", "--map-root-user", "--mount"]);
            command.arg(&self.register).arg(program);
            command
        } else {
            let mut command = Command::new(program);
            command.env(RUNNER, "qemu-aarch64");
            command
        };
        command.args(of.get_args());
        for (name, value) in of.get_envs() {
            match value {
                Some(value) => command.env(name, value),
                None => command.env_remove(name),
            };
        }
        command.env("QEMU_LD_PREFIX", &self.sysroot);
        // The loader looks for manifests in folders for which qemu would answer with the machine's own.
        command.env("XDG_DATA_DIRS", self.sysroot.join("usr/share"));
        // The programs and libraries that some tests need are those of this machine, and cannot be loaded under emulation.
        command.env_remove("GAPSCOPE_REQUIRE_CLIENTS");
        // The usual number is 256. Tests on this machine find the same faults many times as fast.
        command.env("PROPTEST_CASES", "32");
        command
    }
}

/// The variable that names the program by which cargo starts a test for ARM.
const RUNNER: &str = "CARGO_TARGET_AARCH64_UNKNOWN_LINUX_GNU_RUNNER";
