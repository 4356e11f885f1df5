//! `cargo xtask tidy`: the rules of the repository that a compiler does not check. Each module below checks one kind
//! of rule: a file or a crate goes in, and sentences about violations (problems) come out.

mod files;
mod layers;
mod links;
mod modules;
mod opening;
mod rows;
mod words;
pub mod workspace;

use std::path::Path;
use std::process::Command;

use anyhow::{Result, bail};

use crate::command;
use workspace::Package;

/// Checks the repository at `root`. The error lists all violations.
pub fn run(root: &Path) -> Result<()> {
    let packages = workspace::packages(root)?;
    let files = tracked_files(root)?;
    let architecture = std::fs::read_to_string(root.join("ARCHITECTURE.md"))?;
    let mut problems = links::problems(root, &files);
    for package in &packages {
        problems.extend(layers::problems(&architecture, package));
        problems.extend(crate_problems(package, root));
        problems.extend(modules::problems(package, root, &files));
    }
    for file in &files {
        let Ok(bytes) = std::fs::read(root.join(file)) else {
            continue;
        };
        let Ok(text) = String::from_utf8(bytes) else {
            continue;
        };
        problems.extend(files::problems(file, &text));
        problems.extend(opening::problems(file, &text));
        problems.extend(rows::problems(file, &text));
        problems.extend(words::problems(file, &text));
        if let Some(note) = files::size_note(file, &text) {
            eprintln!("note: {note}");
        }
    }
    if problems.is_empty() {
        eprintln!(
            "tidy: {} crates and {} files are in order",
            packages.len(),
            files.len()
        );
        return Ok(());
    }
    bail!("the repository is not tidy:\n  {}", problems.join("\n  "));
}

/// Returns the files that git tracks or would track, so that a new file is checked before its commit.
fn tracked_files(root: &Path) -> Result<Vec<String>> {
    let mut git = Command::new("git");
    git.args(["ls-files", "--cached", "--others", "--exclude-standard"])
        .current_dir(root);
    Ok(command::output(&mut git)?
        .lines()
        .map(str::to_owned)
        .collect())
}

/// Crates that call the system, Vulkan or CUPTI themselves. `unsafe` is forbidden in all others.
const UNSAFE_ALLOWED: &[&str] = &[
    "gapscope-spool",
    "gapscope-recorder",
    "gapscope-stacks",
    "gapscope-vulkan",
    "gapscope-vulkan-capture",
    "gapscope-vulkan-layer",
    "gapscope-cuda",
    "gapscope-cupti",
    "gapscope-replay",
    "gapscope-cuda-replay",
    "gapscope-device-peaks",
    "gapscope-sdk",
    "doubled",
    "fake-vulkan-driver",
    "fake-cuda",
    "planted",
    // The package has an allocator and the entry points of libFuzzer.
    "fuzz",
];

/// Returns a sentence if a crate has no description, and for each root file that does not forbid `unsafe` though it
/// must.
fn crate_problems(package: &Package, root: &Path) -> Vec<String> {
    let mut problems = Vec::new();
    if package.description.as_deref().is_none_or(str::is_empty) {
        problems.push(format!("{}: Cargo.toml has no description", package.name));
    }
    if !UNSAFE_ALLOWED.contains(&package.name.as_str()) {
        for file in &package.roots {
            let forbids = std::fs::read_to_string(root.join(file))
                .is_ok_and(|text| text.contains("#![forbid(unsafe_code)]"));
            if !forbids {
                problems.push(format!(
                    "{}: {file} does not say #![forbid(unsafe_code)]",
                    package.name
                ));
            }
        }
    }
    problems
}

#[cfg(test)]
mod tests {
    #[test]
    fn the_repository_is_tidy() {
        let root = std::path::Path::new(env!("CARGO_MANIFEST_DIR")).join("..");
        super::run(&root).unwrap();
    }
}
