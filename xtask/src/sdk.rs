//! `cargo xtask sdk`: checks that the SDK, with the crates that it is made of, is fit to be published: how many crates
//! it brings, its documentation, its packages, and that its public items stay.

mod described;
mod items;
mod render;
pub mod semver;

use std::collections::BTreeSet;
use std::path::Path;

use anyhow::{Context, Result, bail};

use crate::{command, target, tidy::workspace};

/// The package that programs use.
const SDK: &str = "gapscope-sdk";
/// The most crates that the SDK may bring without features, itself counted.
const MAX_CRATES: usize = 40;
/// Systems with dependencies of their own.
const TARGETS: [&str; 3] = [
    "x86_64-unknown-linux-gnu",
    "aarch64-apple-darwin",
    "x86_64-pc-windows-msvc",
];
/// The sets of features whose documentation is built; the last has all of them.
const FEATURES: [&str; 5] = ["", "trace", "tracing", "wgpu", "trace,tracing,wgpu"];
/// The file with the public items that programs may rely on.
const KEPT: &str = "crates/sdk/public-items.txt";

/// Runs all checks. With UPDATE=1 in the environment, the file of public items is written instead of compared.
pub fn run() -> Result<()> {
    check_number_of_crates()?;
    let packages = published()?;
    check_packages(&packages)?;
    for features in FEATURES {
        let mut doc = command::cargo(["doc", "--no-deps", "--package", SDK]);
        doc.args(["--features", features]);
        command::run(doc.env("RUSTDOCFLAGS", "-D warnings"))?;
    }
    check_items()
}

/// Counts the crates that the SDK brings by default, on each system.
fn check_number_of_crates() -> Result<()> {
    for system in TARGETS {
        let mut tree = command::cargo_line("tree --quiet --edges normal --prefix none --package");
        let tree = command::output(tree.args([SDK, "--target", system]))?;
        let crates: BTreeSet<_> = tree.lines().map(|line| line.split(" (").next()).collect();
        if crates.len() > MAX_CRATES {
            bail!(
                "{SDK} brings {} crates by default on {system}: at most {MAX_CRATES} are allowed",
                crates.len()
            );
        }
    }
    Ok(())
}

/// Returns the SDK and the crates of the workspace that it uses, directly or not.
fn published() -> Result<BTreeSet<String>> {
    let all = workspace::packages(Path::new("."))?;
    let mut found = BTreeSet::new();
    let mut next = vec![SDK.to_owned()];
    while let Some(name) = next.pop() {
        if let Some(package) = all.iter().find(|package| package.name == name)
            && found.insert(name)
        {
            next.extend(package.uses.iter().cloned());
        }
    }
    Ok(found)
}

/// Packs the crates as `cargo publish` does, without compiling them from there.
fn check_packages(packages: &BTreeSet<String>) -> Result<()> {
    let mut package = command::cargo_line("package --quiet --offline --no-verify --allow-dirty");
    for name in packages {
        package.args(["--package", name]);
    }
    command::run(&mut package)
}

/// Compares the public items with those that are kept, and refuses types of crates that programs do not see.
fn check_items() -> Result<()> {
    let crates = [describe("gapscope-model", "")?, describe(SDK, FEATURES[4])?];
    let [model, sdk] = &crates;
    let listed = items::list(sdk, model)?;
    if !listed.hidden_types.is_empty() {
        bail!(
            "public items of {SDK} have types of crates that programs do not see; re-export the types, or hide them:\n  {}",
            Vec::from_iter(listed.hidden_types).join("\n  ")
        );
    }
    let text: String = listed
        .items
        .iter()
        .map(|line| format!("{line}\n"))
        .collect();
    if std::env::var_os("UPDATE").is_some_and(|value| value == "1") {
        return std::fs::write(KEPT, text).with_context(|| format!("cannot write {KEPT}"));
    }
    let kept = std::fs::read_to_string(KEPT).with_context(|| format!("cannot read {KEPT}"))?;
    let kept: BTreeSet<String> = kept.lines().map(str::to_owned).collect();
    let gone = kept
        .difference(&listed.items)
        .map(|item| format!("- {item}"));
    let new = listed
        .items
        .difference(&kept)
        .map(|item| format!("+ {item}"));
    let (gone, new): (Vec<_>, Vec<_>) = (gone.collect(), new.collect());
    if !gone.is_empty() {
        bail!(
            "public items of {SDK} are gone or have changed, which breaks programs:\n  {}\nPut them back; or else \
             say so in CHANGELOG.md, raise the version, and write the new items to {KEPT} with `UPDATE=1 cargo xtask sdk`",
            [gone, new].concat().join("\n  ")
        );
    }
    if !new.is_empty() {
        eprintln!(
            "note: {SDK} has {} new public items; `UPDATE=1 cargo xtask sdk` writes them to {KEPT}, from when on they stay",
            new.len()
        );
    }
    eprintln!("{SDK}: its {} public items are those of {KEPT}", kept.len());
    Ok(())
}

/// Returns rustdoc's description of a package in JSON, which is still an unstable option of rustdoc.
fn describe(package: &str, features: &str) -> Result<described::Crate> {
    let mut rustdoc = command::cargo(["rustdoc", "--lib", "--package", package]);
    rustdoc.args(["--features", features, "--", "-Zunstable-options"]);
    rustdoc.args(["--output-format=json", "--cap-lints=allow"]);
    rustdoc.env("RUSTDOC", unstable_rustdoc()?);
    command::run(&mut rustdoc)?;
    let file = target("doc").join(format!("{}.json", package.replace('-', "_")));
    let text = std::fs::read(&file).with_context(|| format!("cannot read {}", file.display()))?;
    let described = serde_json::from_slice(&text);
    Ok(described::Crate(described.with_context(|| {
        format!("{} is not what rustdoc writes", file.display())
    })?))
}

/// Writes a program that is rustdoc with unstable options. For cargo itself they stay off, because build scripts would
/// ask for them, and everything would be compiled again.
fn unstable_rustdoc() -> Result<std::path::PathBuf> {
    use std::os::unix::fs::PermissionsExt;
    let program = std::path::absolute(target("rustdoc-unstable"))?;
    let rustdoc = std::env::var("RUSTDOC").unwrap_or_else(|_| "rustdoc".to_owned());
    std::fs::write(
        &program,
        format!("#!/bin/sh\nRUSTC_BOOTSTRAP=1 exec '{rustdoc}' \"$@\"\n"),
    )?;
    std::fs::set_permissions(&program, std::fs::Permissions::from_mode(0o755))?;
    Ok(program)
}
