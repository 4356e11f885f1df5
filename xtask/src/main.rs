//! The tasks of this project. Each does its own set-up, so that a fresh machine needs cargo and nothing else.
#![forbid(unsafe_code)]

mod arm;
mod bench;
mod cannot_check;
mod clients;
mod command;
mod darwin;
mod demo;
mod fleet;
mod fuzz;
mod packages;
mod progress;
mod python;
mod sdk;
mod test;
mod tidy;
mod toolchain;
mod tsan;
mod venv;
mod vulkan;
mod web;

use std::path::{Path, PathBuf};
use std::process::ExitCode;

use anyhow::{Context, Result};
use clap::{Parser, Subcommand};

#[derive(Parser)]
#[command(about = "The tasks of this project", disable_help_subcommand = true)]
struct Args {
    #[command(subcommand)]
    task: Task,
}

#[derive(Subcommand)]
enum Task {
    /// Records the built-in workload and prints its report, after installing what that needs
    Demo,
    /// Installs what the tests need
    Setup,
    /// Type-checks, lints and links for macOS what is only compiled there; runs nothing of it
    Darwin,
    /// Builds for ARM Linux, and runs under emulation the tests that can run there
    Arm {
        /// The tests of the hooks alone, which are a part of all tests
        #[arg(long)]
        hooks: bool,
    },
    /// Does all set-up for the tests and runs them
    Test,
    /// Builds the Python package, installs it in a fresh environment and tests it
    Python,
    /// Builds the release wheel of the Python package, with the command and the hooks
    Dist {
        /// For ARM Linux
        #[arg(long)]
        arm: bool,
    },
    /// Builds the page of `gapscope view` from its source into web/dist
    Web,
    /// Measures what recording costs and writes docs/performance.md
    Bench(bench::Options),
    /// Looks for inputs that break what gapscope promises, with libFuzzer
    Fuzz(fuzz::Options),
    /// Compares a query over many ranks with Ballista's answer: a scheduler, two executors, an object store
    Fleet,
    /// Records programs of several threads with hooks that ThreadSanitizer watches
    Tsan,
    /// Checks that the SDK is fit to be published, and that its public items are those that are kept
    Sdk,
    /// Compares the SDK's public interface with that of the last release, by the rules of cargo-semver-checks
    Semver {
        /// The revision to compare with where there is no release (a tag) yet
        before: Option<String>,
    },
    /// Checks the rules of the repository: who may depend on whom, sizes of files, leftovers
    Tidy,
}

fn main() -> ExitCode {
    match run() {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            eprintln!("xtask: {error:#}");
            ExitCode::FAILURE
        }
    }
}

fn run() -> Result<()> {
    std::env::set_current_dir(repository()?).context("cannot enter the repository")?;
    match Args::parse().task {
        Task::Demo => demo::run(),
        Task::Setup => test::set_up(),
        Task::Darwin => darwin::run(),
        Task::Arm { hooks: false } => arm::run(),
        Task::Arm { hooks: true } => arm::run_hooks(),
        Task::Test => test::run(),
        Task::Python => python::run(),
        Task::Dist { arm: false } => python::dist(|_| {}),
        Task::Dist { arm: true } => arm::dist(),
        Task::Web => web::build(),
        Task::Bench(options) => bench::run(&options),
        Task::Fuzz(options) => fuzz::run(&options),
        Task::Fleet => fleet::run(),
        Task::Tsan => tsan::run(),
        Task::Sdk => sdk::run(),
        Task::Semver { before } => sdk::semver::run(before.as_deref()),
        Task::Tidy => tidy::run(Path::new(".")),
    }
}

/// Returns the root of the repository, which contains this crate's folder.
fn repository() -> Result<PathBuf> {
    let manifest = std::env::var_os("CARGO_MANIFEST_DIR")
        .context("CARGO_MANIFEST_DIR is not set: run the tasks as `cargo xtask TASK`")?;
    Ok(Path::new(&manifest).join(".."))
}

/// Returns a path in the folder into which cargo builds.
fn target(path: &str) -> PathBuf {
    let folder =
        std::env::var_os("CARGO_TARGET_DIR").map_or_else(|| "target".into(), PathBuf::from);
    folder.join(path)
}
