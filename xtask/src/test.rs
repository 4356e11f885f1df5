//! `cargo xtask test`: installs what the tests need and runs all checks and tests that must pass before a change
//! lands.

use std::path::Path;
use std::process::Command;
use std::time::Instant;

use anyhow::{Result, bail};

use crate::{arm, cannot_check, clients, command, darwin, python, sdk, target, tidy, vulkan, web};

/// Installs drivers, layers and programs, and prints which programs could not be installed.
pub fn set_up() -> Result<()> {
    if !cfg!(target_os = "linux") {
        bail!(
            "the tests record through Vulkan on Linux; here run those of one crate: `cargo test --package CRATE`"
        );
    }
    vulkan::ensure_test_drivers()?;
    web::set_up()?;
    let missing = clients::ensure_all()?;
    for client in &missing {
        eprintln!(
            "skipped: the tests that record {}: {}",
            client.name, client.reason
        );
    }
    if !missing.is_empty() && clients::required() {
        bail!(
            "GAPSCOPE_REQUIRE_CLIENTS is set and not every program could be installed: see the lines above"
        );
    }
    Ok(())
}

/// Runs all checks and tests. Checks that this machine cannot do are printed at the end.
pub fn run() -> Result<()> {
    tidy::run(Path::new("."))?;
    command::run(&mut command::cargo(["fmt", "--all", "--check"]))?;
    // Downloads and tasks that use one core run beside the compiler.
    timed("lints and downloads", || {
        std::thread::scope(|scope| {
            let page = scope.spawn(|| set_up().and_then(|()| web::check()));
            command::run(&mut command::cargo_line(
                "clippy --workspace --all-targets -- -D warnings",
            ))
            .and(
                page.join()
                    .unwrap_or_else(|panic| std::panic::resume_unwind(panic)),
            )
        })
    })?;
    timed("the SDK's interface and packages", sdk::run)?;
    // The end-to-end tests start the built programs and load the built layer and fake driver.
    timed("building", || {
        command::run(&mut command::cargo(["build", "--workspace"]))?;
        web::build_writers()
    })?;
    // The end-to-end tests run alone, because they measure shares of time.
    let crates = run_tests();
    // Two browsers use about one core, as do the emulator and then the tests in Python.
    let (page, others) = timed("browsers, Python and other systems", || {
        std::thread::scope(|scope| {
            let others = scope.spawn(|| {
                command::beside(&target("other-systems.log"), || {
                    let (others, python) = (other_systems(), python::test());
                    python.and(others)
                })
            });
            let page = web::test_in_browsers();
            let others = others
                .join()
                .unwrap_or_else(|panic| std::panic::resume_unwind(panic));
            (page, others)
        })
    });
    for unchecked in others.iter().flatten() {
        cannot_check::warn(unchecked);
    }
    crates.and(page).and(others.map(drop))
}

/// Runs a part of the tests and prints how long it took, which tells what to shorten.
fn timed<T>(part: &str, run: impl FnOnce() -> T) -> T {
    let start = Instant::now();
    let result = run();
    eprintln!("test: {part}: {} s", start.elapsed().as_secs());
    result
}

/// Checks what other systems compile and run, and returns a sentence for each check that cannot be done here.
fn other_systems() -> Result<Vec<String>> {
    let checks = [
        cannot_check::tolerate("the code for macOS", darwin::run()),
        cannot_check::tolerate("the hooks on ARM", arm::run_hooks()),
    ];
    let unchecked: Result<Vec<_>> = checks.into_iter().collect();
    Ok(unchecked?.into_iter().flatten().collect())
}

/// Runs the tests of the crates and the end-to-end tests, even if the first of them fail.
fn run_tests() -> Result<()> {
    if command::succeeds("cargo", &["nextest", "--version"]) {
        let nextest = |filter, jobs: &[&str]| {
            let mut nextest = command::cargo_line("nextest run --workspace --no-fail-fast -E");
            tests(nextest.arg(filter).args(jobs))
        };
        let crates = timed("the crates, with building", || {
            nextest("not package(end-to-end)", &[])
        });
        // nextest does not run examples in documentation.
        let mut documented = command::cargo(["test", "--doc", "--workspace"]);
        let documented = timed("examples in documentation", || tests(&mut documented));
        // The end-to-end tests run one at a time, because they measure shares of time.
        let end_to_end = timed("end to end", || {
            nextest("package(end-to-end)", &["--test-threads=1"])
        });
        crates.and(documented).and(end_to_end)
    } else {
        let crates = tests(&mut command::cargo_line(
            "test --workspace --no-fail-fast --exclude=end-to-end",
        ));
        crates.and(tests(&mut command::cargo_line(
            "test --workspace --test=end-to-end -- --test-threads=1",
        )))
    }
}

/// Runs a command of tests, which fail instead of skipping where there is no GPU.
fn tests(command: &mut Command) -> Result<()> {
    // A quarter of the usual cases of property tests, for time; `cargo nextest run` alone runs all of them.
    if std::env::var_os("PROPTEST_CASES").is_none() {
        command.env("PROPTEST_CASES", "64");
    }
    if let Some(cupti) = clients::cupti() {
        command.env("GAPSCOPE_TEST_CUPTI", cupti);
    }
    command::run(command.env("GAPSCOPE_REQUIRE_GPU", "1"))
}
