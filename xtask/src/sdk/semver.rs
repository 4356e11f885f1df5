//! `cargo xtask semver`: compares the SDK's public interface with that of an earlier revision, by the rules of
//! cargo-semver-checks. The workflow of each change runs it; it is no part of `cargo xtask test`, because the tool itself
//! is made of 308 crates.

use anyhow::{Result, bail};

use super::{FEATURES, SDK};
use crate::command;

/// Compares with the last release, which is the newest tag; where there is none, with the revision `before`, or else the
/// one before this.
pub fn run(before: Option<&str>) -> Result<()> {
    if !command::succeeds("cargo", &["semver-checks", "--version"]) {
        bail!(
            "cargo-semver-checks is not installed: `cargo install cargo-semver-checks --locked` compiles it"
        );
    }
    let mut checks = command::cargo([
        "semver-checks",
        "--package",
        SDK,
        "--only-explicit-features",
    ]);
    checks.args(["--features", FEATURES[4], "--baseline-rev"]);
    command::run(checks.arg(baseline(before)?))
}

fn baseline(before: Option<&str>) -> Result<String> {
    let git =
        |arguments: &[&str]| command::output(std::process::Command::new("git").args(arguments));
    if let Ok(tag) = git(&["describe", "--tags", "--abbrev=0"]) {
        return Ok(tag.trim().to_owned());
    }
    let commit = |revision: &str| -> Result<String> {
        let commit = git(&["rev-parse", "--verify", &format!("{revision}^{{commit}}")])?;
        Ok(commit.trim().to_owned())
    };
    // A new branch has no revision before it, for which the service gives zeros; that of a rewritten branch may be gone.
    let before = before.and_then(|before| commit(before).ok());
    before.map_or_else(|| commit("HEAD^"), Ok)
}
