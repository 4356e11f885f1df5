//! Installs *clients* under `target/clients`: real programs that the tests record, and tools that open gapscope's
//! exports.
//!
//! Each client is a folder of `tests/end-to-end/clients` with the versions that it needs: a `requirements.txt` of
//! Python packages, an `apart.txt` of packages that no other client may see, or a `package.json` of Node packages.
//! For a client that cannot be installed, the file `NAME.missing` has the reason, which the tests print.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

use anyhow::{Context, Result};

use crate::{command, packages, target, venv};

/// The folder with a folder for each client.
const SCRIPTS: &str = "tests/end-to-end/clients";
/// The name of the file that lists packages for a folder of their own.
const APART: &str = "apart.txt";
/// The folder of installed clients in the target folder.
const INSTALLED: &str = "clients";

/// A client that could not be installed, with the reason.
pub struct Missing {
    pub name: String,
    pub reason: String,
}

/// Returns true if a client that cannot be installed is a failure.
pub fn required() -> bool {
    std::env::var_os("GAPSCOPE_REQUIRE_CLIENTS").is_some_and(|value| value == "1")
}

/// Installs every client that is not there yet, and returns the clients that could not be installed.
pub fn ensure_all() -> Result<Vec<Missing>> {
    let installed = target(INSTALLED);
    fs::create_dir_all(&installed)
        .with_context(|| format!("cannot make {}", installed.display()))?;
    let mut missing = Vec::new();
    for folder in clients()? {
        let name = folder
            .file_name()
            .unwrap_or_default()
            .to_string_lossy()
            .into_owned();
        if let Err(error) = ensure(&name, &folder) {
            let reason = format!("{error:#}");
            fs::write(marker(&name, "missing"), &reason)?;
            missing.push(Missing { name, reason });
        }
    }
    Ok(missing)
}

fn clients() -> Result<Vec<PathBuf>> {
    let entries = fs::read_dir(SCRIPTS).with_context(|| format!("cannot list {SCRIPTS}"))?;
    let mut folders: Vec<_> = entries
        .flatten()
        .map(|entry| entry.path())
        .filter(|path| path.is_dir())
        .collect();
    folders.sort();
    Ok(folders)
}

/// Installs a client unless it is there in the wanted versions, which `NAME.installed` keeps.
fn ensure(name: &str, folder: &Path) -> Result<()> {
    let (wanted, install): (_, fn(&str, &Path) -> Result<()>) =
        if folder.join("package.json").exists() {
            (folder.join("package.json"), install_node)
        } else if folder.join(APART).exists() {
            (folder.join(APART), install_apart)
        } else {
            (folder.join("requirements.txt"), install_python)
        };
    let versions =
        fs::read_to_string(&wanted).with_context(|| format!("cannot read {}", wanted.display()))?;
    let installed = marker(name, "installed");
    if fs::read_to_string(&installed).is_ok_and(|there| there == versions) {
        return Ok(());
    }
    install(name, folder)?;
    let _ = fs::remove_file(marker(name, "missing"));
    fs::write(&installed, versions).with_context(|| format!("cannot write {}", installed.display()))
}

/// Installs Python packages into the environment that clients share.
fn install_python(name: &str, folder: &Path) -> Result<()> {
    let mut pip = pip(name)?;
    command::output(pip.arg(folder.join("requirements.txt"))).map(drop)
}

/// Installs Python packages into the client's own folder.
fn install_apart(name: &str, folder: &Path) -> Result<()> {
    let mut pip = pip(name)?;
    pip.arg(folder.join(APART)).arg("--upgrade").arg("--target");
    command::output(pip.arg(target(INSTALLED).join(name))).map(drop)
}

/// Returns a command of pip that installs packages; the caller appends the file that lists them.
fn pip(name: &str) -> Result<Command> {
    let python = venv::ensure(&target(INSTALLED).join("python"))?;
    eprintln!("installing the Python packages of {name}");
    let mut pip = venv::pip(&python, "install");
    pip.args(["--only-binary=:all:", "--requirement"]);
    Ok(pip)
}

/// Returns the real libcupti, whose host library plans metrics without a GPU; `None` if it could not be installed.
pub fn cupti() -> Option<PathBuf> {
    let file = target(INSTALLED).join("cupti/nvidia/cu13/lib/libcupti.so.13");
    file.is_file().then(|| file.canonicalize().unwrap_or(file))
}

/// Installs Node, where it is missing, and the client's packages into its own folder.
fn install_node(name: &str, folder: &Path) -> Result<()> {
    if !command::succeeds("npm", &["--version"]) {
        packages::install(&["nodejs", "npm"], false)?;
    }
    eprintln!("installing the Node packages of {name}");
    let target = target(INSTALLED).join(name);
    fs::create_dir_all(&target).with_context(|| format!("cannot make {}", target.display()))?;
    fs::copy(folder.join("package.json"), target.join("package.json"))
        .context("cannot copy package.json")?;
    let mut npm = Command::new("npm");
    npm.args("install --ignore-scripts --no-audit --no-fund --no-package-lock".split(' '));
    command::output(npm.current_dir(&target)).map(drop)
}

/// Returns the file that says something about a client, such as `NAME.missing`.
fn marker(name: &str, kind: &str) -> PathBuf {
    target(INSTALLED).join(format!("{name}.{kind}"))
}
