//! Reads the crates of the workspace and their dependencies from `cargo metadata`.

use std::path::Path;

use anyhow::{Context, Result};
use serde::Deserialize;

use crate::command;

/// A crate of the workspace.
#[derive(Debug)]
pub struct Package {
    pub name: String,
    pub description: Option<String>,
    /// The crates of the workspace on which it depends, except for tests.
    pub uses: Vec<String>,
    /// The root files of its libraries and binaries, as paths from the root of the workspace.
    pub roots: Vec<String>,
}

/// The members of the output of `cargo metadata` that are read.
#[derive(Deserialize)]
struct Metadata {
    packages: Vec<CargoPackage>,
    workspace_root: String,
}

#[derive(Deserialize)]
/// A crate as cargo describes it.
struct CargoPackage {
    name: String,
    description: Option<String>,
    dependencies: Vec<CargoDependency>,
    targets: Vec<CargoTarget>,
}

#[derive(Deserialize)]
struct CargoDependency {
    name: String,
    /// `dev` or `build`; `None` for an ordinary dependency.
    kind: Option<String>,
    /// The folder of a crate of the workspace; `None` for others.
    path: Option<String>,
}

#[derive(Deserialize)]
struct CargoTarget {
    kind: Vec<String>,
    src_path: String,
}

/// Returns the crates of the workspace at `root`.
pub fn packages(root: &Path) -> Result<Vec<Package>> {
    let mut metadata = command::cargo(["metadata", "--no-deps", "--offline", "--format-version=1"]);
    let text = command::output(metadata.current_dir(root))?;
    let metadata: Metadata =
        serde_json::from_str(&text).context("cannot read what cargo metadata printed")?;
    let root = format!("{}/", metadata.workspace_root);
    let packages = metadata.packages.into_iter();
    Ok(packages
        .map(|package| Package::new(package, &root))
        .collect())
}

impl Package {
    fn new(package: CargoPackage, root: &str) -> Package {
        let uses = package.dependencies.into_iter();
        let roots = package.targets.into_iter();
        Package {
            name: package.name,
            description: package.description,
            uses: uses
                .filter(|used| used.path.is_some() && used.kind.as_deref() != Some("dev"))
                .map(|used| used.name)
                .collect(),
            roots: roots
                .filter(|target| {
                    target
                        .kind
                        .iter()
                        .any(|kind| kind.ends_with("lib") || kind == "bin")
                })
                .map(|target| target.src_path.replacen(root, "", 1))
                .collect(),
        }
    }
}
