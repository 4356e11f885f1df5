//! Builds the page of `gapscope view` from `web/` into `web/dist`, which is committed, and tests it in real
//! browsers.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

use anyhow::{Context, Result, bail};

use crate::{command, packages, target};

/// The folder of the page's source, and the one with the built page.
const SOURCE: &str = "web";
const BUILT: &str = "web/dist";
/// The oldest version of Node, as (major, minor), with which Vite works.
const LEAST_NODE: (u32, u32) = (20, 19);
/// The tests that Firefox also runs: those of what differs between browsers, which is drawing, layout, the keyboard and the
/// order of late answers. `docs/view.md` names them.
const IN_FIREFOX: &str = "page races accessibility narrow notes tracks";

/// Installs Node, the page's packages in the versions of its lock file, Chromium and Firefox.
pub fn set_up() -> Result<()> {
    ensure_node()?;
    ensure_packages()?;
    if browser().is_none() {
        packages::install(&["chromium"], false)?;
    }
    if firefox().is_none() {
        packages::install(&["firefox-esr"], false)?;
    }
    Ok(())
}

/// Returns the browser that the tests drive: the one that the variable CHROMIUM names, or Debian's Chromium.
pub fn browser() -> Option<PathBuf> {
    let named = std::env::var_os("CHROMIUM").map(PathBuf::from);
    [named, Some("/usr/bin/chromium".into())]
        .into_iter()
        .flatten()
        .find(|path| path.exists())
}

/// Returns the second browser: the one that the variable FIREFOX names, or Debian's Firefox.
fn firefox() -> Option<PathBuf> {
    let named = std::env::var_os("FIREFOX").map(PathBuf::from);
    [named, Some("/usr/bin/firefox-esr".into())]
        .into_iter()
        .flatten()
        .find(|path| path.exists())
}

/// Installs Node where it is missing. A version that is too old is an error.
fn ensure_node() -> Result<()> {
    if !command::succeeds("npm", &["--version"]) {
        packages::install(&["nodejs", "npm"], false)?;
    }
    let said = command::output(Command::new("node").arg("--version"))?;
    if version(&said).is_none_or(|version| version < LEAST_NODE) {
        let (major, minor) = LEAST_NODE;
        bail!(
            "building the page needs Node {major}.{minor} or later, and this is {}: install a newer one from nodejs.org",
            said.trim()
        );
    }
    Ok(())
}

/// Returns the major and minor version of a text such as `v20.20.2`, here (20, 20).
fn version(said: &str) -> Option<(u32, u32)> {
    let mut numbers = said.trim().strip_prefix('v')?.split('.');
    Some((numbers.next()?.parse().ok()?, numbers.next()?.parse().ok()?))
}

/// Installs the page's packages unless those of the present lock file are installed.
fn ensure_packages() -> Result<()> {
    let lock = Path::new(SOURCE).join("package-lock.json");
    let wanted =
        fs::read_to_string(&lock).with_context(|| format!("cannot read {}", lock.display()))?;
    let installed = Path::new(SOURCE).join("node_modules/.gapscope-lock");
    if fs::read_to_string(&installed).is_ok_and(|there| there == wanted) {
        return Ok(());
    }
    eprintln!("installing the packages that build and test the page");
    let mut npm = npm(&["ci", "--no-audit", "--no-fund"]);
    command::output(&mut npm)?;
    fs::write(&installed, wanted).with_context(|| format!("cannot write {}", installed.display()))
}

fn npm(arguments: &[&str]) -> Command {
    let mut npm = Command::new("npm");
    npm.args(arguments).current_dir(SOURCE);
    npm
}

/// Builds the page into `web/dist`.
pub fn build() -> Result<()> {
    set_up()?;
    command::run(&mut npm(&["run", "--silent", "build"]))
}

/// Checks types, compares `web/dist` with a fresh build of its source, and runs the tests of functions that need no
/// browser.
pub fn check() -> Result<()> {
    command::run(&mut npm(&["run", "--silent", "check"]))?;
    let fresh = target("web-dist");
    fs::create_dir_all(&fresh).with_context(|| format!("cannot make {}", fresh.display()))?;
    let fresh = fresh
        .canonicalize()
        .with_context(|| format!("cannot find {}", fresh.display()))?;
    let mut build = npm(&["run", "--silent", "build", "--", "--logLevel=warn"]);
    command::run(build.arg("--emptyOutDir").arg("--outDir").arg(&fresh))?;
    same(&fresh, Path::new(BUILT))?;
    command::run(&mut npm(&["run", "--silent", "test"]))
}

/// Returns an error that names the first file that is not the same in both folders.
fn same(fresh: &Path, committed: &Path) -> Result<()> {
    let differing: Vec<String> = files(fresh)?
        .into_iter()
        .chain(files(committed)?)
        .filter(|name| fs::read(fresh.join(name)).ok() != fs::read(committed.join(name)).ok())
        .collect();
    if let Some(name) = differing.first() {
        bail!(
            "{}/{name} is not what {SOURCE} builds to: run `cargo xtask web` and commit {BUILT}",
            committed.display()
        );
    }
    Ok(())
}

/// Returns the sorted names of the entries of a folder.
pub fn files(folder: &Path) -> Result<Vec<String>> {
    let entries =
        fs::read_dir(folder).with_context(|| format!("cannot list {}", folder.display()))?;
    let mut names: Vec<String> = entries
        .flatten()
        .map(|entry| entry.file_name().to_string_lossy().into_owned())
        .collect();
    names.sort();
    Ok(names)
}

/// Builds the programs that write the traces of the browser tests.
pub fn build_writers() -> Result<()> {
    // The whole workspace is built, because for one package alone cargo chooses other features of dependencies.
    command::run(&mut command::cargo_line(
        "build --workspace --example=synthetic --example=from_text",
    ))
}

/// Runs the tests of the page in two browsers, with the built command.
pub fn test_in_browsers() -> Result<()> {
    let mut tests = npm(&["run", "--silent", "browser"]);
    if let Some(browser) = browser() {
        tests.env("CHROMIUM", browser);
    }
    let folder = whole(&target(""))?;
    command::run(tests.env("CARGO_TARGET_DIR", &folder))?;
    let mut tests = npm(&["run", "--silent", "browser", "--"]);
    let names = IN_FIREFOX.split(' ');
    tests.args(names.map(|name| format!("browser/{name}.test.ts")));
    if let Some(firefox) = firefox() {
        tests.env("FIREFOX", firefox);
    }
    tests.env("GAPSCOPE_BROWSER", "firefox");
    command::run(tests.env("CARGO_TARGET_DIR", &folder))
}

/// Returns the absolute path of a folder, for programs that run in other folders.
pub fn whole(folder: &Path) -> Result<PathBuf> {
    folder
        .canonicalize()
        .with_context(|| format!("cannot find {}", folder.display()))
}

#[cfg(test)]
mod tests {
    use super::{files, same, version};
    use std::fs;

    #[test]
    fn versions_of_node_are_compared_by_number() {
        assert_eq!(version("v20.20.2\n"), Some((20, 20)));
        assert!(version("v9.1.0").unwrap() < (20, 19));
        assert_eq!(version("20.1"), None);
    }

    #[test]
    fn a_page_that_differs_or_has_more_files_is_named() {
        let folder = std::env::temp_dir().join(format!("gapscope-web-{}", std::process::id()));
        let (fresh, committed) = (folder.join("fresh"), folder.join("committed"));
        for made in [&fresh, &committed] {
            fs::create_dir_all(made).unwrap();
            fs::write(made.join("app.js"), "1").unwrap();
        }
        same(&fresh, &committed).unwrap();
        fs::write(fresh.join("app.js"), "2").unwrap();
        assert!(format!("{:#}", same(&fresh, &committed).unwrap_err()).contains("app.js"));
        fs::write(fresh.join("app.js"), "1").unwrap();
        fs::write(committed.join("more.js"), "1").unwrap();
        assert!(format!("{:#}", same(&fresh, &committed).unwrap_err()).contains("more.js"));
        assert_eq!(files(&committed).unwrap(), ["app.js", "more.js"]);
        fs::remove_dir_all(&folder).unwrap();
    }
}
