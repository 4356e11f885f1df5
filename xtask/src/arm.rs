//! `cargo xtask arm`: builds for ARM (aarch64 Linux) on a machine with another processor, and runs the tests under
//! user-mode emulation.
//!
//! Debian's cross compiler links and compiles C; [`toolchain`] finds the standard library. qemu runs the tests and
//! the programs that they start ([`emulation`]). Vulkan's loader and layers are Debian's for arm64 ([`sysroot`]).
//!
//! Emulation shows that code can be generated and linked, and how the code meets ARM's calling convention,
//! signedness of `char`, layouts and, where qemu can emulate them, pages of 64 KiB. It does not show memory
//! ordering, which is this machine's (x86-64 orders more than ARM does), nor an ARM machine's clocks, nor speed,
//! nor NVIDIA's driver.

mod emulation;
mod sysroot;
mod wheel;

use std::process::Command;

use anyhow::{Result, bail};

use crate::cannot_check::cannot;
use crate::toolchain::{self, Toolchain};
use crate::{command, packages, python, target};
use emulation::Emulation;

/// The target triple of ARM Linux.
const TARGET: &str = "aarch64-unknown-linux-gnu";

/// The crates that run in recorded programs, and the drivers that start programs with them. `cargo xtask test` runs
/// the tests of both.
const HOOKS: &[&str] = &["gapscope-spool", "gapscope-cuda", "gapscope-vulkan"];
const DRIVERS: &[&str] = &["fake-cuda", "fake-vulkan-driver"];
/// The crates that read what hooks write. Their dependencies take long to build, so that only `cargo xtask arm` runs
/// their tests.
const READERS: &[&str] = &["gapscope-recorder", "gapscope-stacks"];
/// The packages that `cargo xtask arm` also builds: the command, the SDK, and the end-to-end tests.
const PRODUCT: &[&str] = &["gapscope", "gapscope-sdk", "planted", "end-to-end"];
/// The end-to-end tests that need only gapscope's own programs. One of them uses the software GPU, for which
/// emulation is slow.
const END_TO_END: &[&str] = &[
    "fake_driver::",
    "cuda::",
    "counts::the_memory_timeline_has_the_peak_of_the_program",
];

/// Tests that emulation makes impossible, each with its reason.
const NOT_EMULATED: &[(&str, &str)] = &[
    (
        "a_process_with_a_filter_of_its_own_gets_no_thread_of_a_hook",
        "qemu does not emulate filters of system calls, and ends the child",
    ),
    (
        "endings::it_survives_an_abort",
        "qemu says on standard error that the program was aborted",
    ),
    (
        "a_signal_that_was_ignored_from_the_start_stays_ignored",
        "qemu hands no ignored signal on to a program that is started",
    ),
    (
        "a_process_that_outlives_the_command_is_noted",
        "it must end in 5 s, which starting programs under emulation may take by itself",
    ),
    (
        "own_memory_is_read_across_pages",
        "qemu does not know process_vm_readv",
    ),
    (
        "memory_that_is_not_mapped_is_an_error",
        "qemu does not know process_vm_readv",
    ),
    ("stacks_of_", "qemu does not know process_vm_readv"),
    (
        "our_own_memory_may_be_read_and_that_of_nobody_not",
        "qemu does not know process_vm_readv",
    ),
    (
        "the_memory_of_a_pool_goes_back_to_the_system",
        "qemu 7.2 ignores MADV_REMOVE",
    ),
    (
        "cuda::times::a_host_that_asks_again_and_again_waits_and_is_not_late",
        "a call takes about as long as a kernel, so that the program hardly asks twice",
    ),
];

/// The tests of the spool (the files through which a hook hands events over), which maps files into memory.
const SPOOL: &[&str] = &["spool", "interface"];

/// Builds everything for ARM, and runs the tests that can run under emulation.
pub fn run() -> Result<()> {
    if is_arm() {
        return Ok(());
    }
    let arm = Arm::find(sysroot::WITH_GPU)?;
    arm.test(&[DRIVERS, READERS].concat())?;
    let all: Vec<&str> = [HOOKS, DRIVERS, READERS, PRODUCT].concat();
    command::run(arm.cargo("build", &all).args(["--lib", "--bins"]))?;
    let mut tests = arm.cargo("test", &all);
    tests.args(["--test=end-to-end", "--no-fail-fast"]);
    arm.emulate(choose(&mut tests).args(END_TO_END))?;
    wheel::check(&python::cross_wheel(&target("arm/wheels"), cross()?)?)
}

/// Builds the release wheel for ARM.
pub fn dist() -> Result<()> {
    install()?;
    python::dist(cross()?)
}

/// Returns a function that prepares cargo, also as maturin calls it, to build for ARM.
fn cross() -> Result<impl Fn(&mut Command)> {
    if toolchain::find(TARGET)?.builds_std {
        bail!(
            "a wheel for ARM needs a toolchain that has the target: `rustup target add {TARGET}`"
        );
    }
    Ok(|command: &mut Command| {
        cross_compile(command);
        command.env("CARGO_BUILD_TARGET", TARGET);
    })
}

/// Runs the tests for ARM that `cargo xtask test` includes: those of what runs in recorded programs.
pub fn run_hooks() -> Result<()> {
    if is_arm() {
        return Ok(());
    }
    Arm::find(sysroot::LOADER)?.test(DRIVERS)
}

/// Adds to a `cargo test` the arguments of its test binaries: leaves out the tests that emulation makes impossible,
/// and prints their names.
fn choose(tests: &mut Command) -> &mut Command {
    // The tests run one at a time: some measure shares of time, and under qemu the child of a process with several
    // threads may wait for ever for a lock that another thread held.
    tests.args(["--", "--test-threads=1"]);
    for (test, reason) in NOT_EMULATED {
        eprintln!("arm: not run under emulation: {test}: {reason}");
        tests.arg(format!("--skip={test}"));
    }
    tests
}

/// Returns whether this machine is an ARM one, and says so.
fn is_arm() -> bool {
    let is = cfg!(target_arch = "aarch64");
    if is {
        eprintln!("arm: this is ARM: the ordinary tests cover it");
    }
    is
}

/// The tools with which ARM programs are built and run.
struct Arm {
    toolchain: Toolchain,
    emulation: Emulation,
}

impl Arm {
    /// Finds toolchain and emulator, with Debian's packages `libraries` for arm64.
    fn find(libraries: &'static [&'static str]) -> Result<Arm> {
        cannot(install())?;
        let sysroot = cannot(sysroot::ensure(libraries))?;
        Ok(Arm {
            toolchain: cannot(toolchain::find(TARGET))?,
            emulation: cannot(Emulation::find(&sysroot))?,
        })
    }

    fn cargo(&self, task: &str, packages: &[&str]) -> Command {
        let mut cargo = self.toolchain.cargo(task);
        cross_compile(&mut cargo);
        if self.toolchain.builds_std {
            cargo.env("CARGO_TARGET_DIR", target("arm/build"));
        }
        cargo.args(packages.iter().map(|name| format!("--package={name}")));
        cargo
    }

    /// Runs a cargo command whose tests are programs for ARM.
    fn emulate(&self, cargo: &Command) -> Result<()> {
        command::run(&mut self.emulation.command(cargo))
    }

    /// Runs the tests of the hooks and, where programs can be started, of the packages `with_programs`. Prints which
    /// tests were left out.
    fn test(&self, with_programs: &[&str]) -> Result<()> {
        let mut packages = HOOKS.to_vec();
        if self.emulation.starts_programs {
            packages.extend(with_programs);
        } else {
            let left_out = with_programs.join(", ");
            eprintln!("arm: not run under emulation: {left_out}: their tests start programs");
        }
        // The tests load the layer and the drivers as files, which cargo does not build for tests.
        command::run(self.cargo("build", &packages).arg("--lib"))?;
        let mut tests = self.cargo("test", &packages);
        tests.args(["--no-fail-fast", "--lib", "--bins", "--tests"]);
        let tests = self.emulate(choose(&mut tests));
        tests.and(self.test_pages(&packages))
    }

    /// Runs the tests of packages with emulated pages of 64 KiB, which kernels for NVIDIA's Grace processor may
    /// use.
    fn test_pages(&self, packages: &[&str]) -> Result<()> {
        if !self.emulation.knows_page_sizes {
            eprintln!("arm: not run with pages of 64 KiB: this qemu knows the machine's own only");
            return Ok(());
        }
        // The list of packages is the same as before, so that nothing is built again.
        let mut tests = self.cargo("test", packages);
        tests.arg("--no-fail-fast");
        tests.args(SPOOL.iter().map(|test| format!("--test={test}")));
        self.emulate(choose(&mut tests).env("QEMU_PAGESIZE", "65536"))
    }
}

/// Makes cargo and the crate `cc` use Debian's cross compiler.
fn cross_compile(cargo: &mut Command) {
    cargo
        .env(
            "CARGO_TARGET_AARCH64_UNKNOWN_LINUX_GNU_LINKER",
            "aarch64-linux-gnu-gcc",
        )
        .env("CC_aarch64_unknown_linux_gnu", "aarch64-linux-gnu-gcc")
        .env("AR_aarch64_unknown_linux_gnu", "aarch64-linux-gnu-ar")
        // Finding the lines of a backtrace takes long under emulation.
        .env("CARGO_PROFILE_DEV_DEBUG", "0")
        .env("RUST_BACKTRACE", "0");
}

/// Installs the cross compiler and the emulator.
fn install() -> Result<()> {
    let needed = "gcc-aarch64-linux-gnu libc6-dev-arm64-cross qemu-user".split(' ');
    let missing: Vec<&str> = needed
        .filter(|package| !packages::is_installed(package))
        .collect();
    match missing.as_slice() {
        [] => Ok(()),
        missing => packages::install(missing, false),
    }
}
