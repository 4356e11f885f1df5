//! `cargo xtask fleet`: asks `gapscope query` and Ballista, a distributed query engine (`tests/fleet`), one query
//! over the traces of many ranks (processes of one program), and compares their answers.

use std::path::Path;

use anyhow::{Context, Result};

use crate::{command, target};

/// The manifest of the comparison, which is a workspace of its own because Ballista takes longer to build than
/// gapscope.
const MANIFEST: &str = "tests/fleet/Cargo.toml";
/// The page that contains the query.
const PAGE: &str = "docs/fleet.md";
/// The number of ranks, among which one slow machine and one slow kernel are planted, and below it the steps of
/// each rank.
const RANKS: &str = "256";
const STEPS: &str = "20";

/// Builds the programs, writes traces of many ranks, and runs the comparison.
pub fn run() -> Result<()> {
    let built = std::path::absolute(target(""))?;
    let example = "build -p gapscope-trace --features synthetic --example fleet";
    command::run(&mut command::cargo_line(example))?;
    command::run(&mut command::cargo_line("build -p gapscope-query"))?;
    let of_fleet = |task: &str| {
        let mut cargo = command::cargo([task, "--locked", "--manifest-path", MANIFEST]);
        cargo.env("CARGO_TARGET_DIR", built.join("fleet"));
        cargo
    };
    command::run(&mut of_fleet("test"))?;
    let runs = built.join("fleet/runs");
    if runs.exists() {
        std::fs::remove_dir_all(&runs)
            .with_context(|| format!("cannot remove {}", runs.display()))?;
    }
    let debug = built.join("debug");
    let mut write = std::process::Command::new(debug.join("examples/fleet"));
    command::run(write.args([RANKS, STEPS]).arg(&runs))?;
    let mut compare = of_fleet("run");
    compare.arg("--").args([
        runs.as_path(),
        Path::new(PAGE),
        &debug.join("gapscope-query"),
    ]);
    command::run(&mut compare)
}
