//! Builds the wheel of the Python package, installs it in a fresh environment and tests it, and runs the tests of
//! the Python programs in `tests/cuda-programs` and `tests/scenarios`.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

use anyhow::{Context, Result, bail};

use crate::{command, progress, target, venv};

/// The packages that build the wheel, check its types and read tables, and wgpu and numpy for the recorded program.
const TOOLS: &str = "maturin==1.16.0 mypy==2.4.1 pandas==3.1.1 pandas-stubs==3.1.0.261029 polars==2.1.0 \
                     pyarrow==26.0.1 pyarrow-stubs==20.0.0.20260819 numpy==2.4.6 wgpu==0.32.0 uv==0.13.9";

/// Builds the workspace and runs all tests of Python code.
pub fn run() -> Result<()> {
    command::run(&mut command::cargo(["build", "--workspace"]))?;
    test()
}

/// Runs all tests of Python code. The workspace must have been built.
pub fn test() -> Result<()> {
    let tools = ensure_tools()?;
    unittest(&tools, "tests/cuda-programs", "test_harness")?;
    unittest(&tools, "tests/scenarios", "test_scenarios")?;
    let wheel = wheel(&tools)?;
    uvx(&tools, &wheel)?;
    let installed = install(&wheel)?;
    // The package is tested first alone and then with the packages that it can work with.
    run_tests(&installed, &[])?;
    share(&tools, &installed)?;
    run_tests(&installed, &[("GAPSCOPE_REQUIRE_PACKAGES", "1")])?;
    let mut mypy = Command::new(tools.join("bin/python"));
    mypy.args("-m mypy --config-file pyproject.toml --cache-dir".split(' '));
    mypy.arg(absolute(&target("python/mypy"))?);
    command::run(mypy.current_dir("python"))
}

/// Builds a release wheel for users and prints its path. `cross` prepares cargo and maturin for another system.
pub fn dist(cross: impl Fn(&mut Command)) -> Result<()> {
    let tools = ensure_tools()?;
    let made = absolute(&target("python/dist"))?;
    build_release(&cross)?;
    let mut pip = pip_wheel(&tools, &made)?;
    cross(&mut pip);
    // The tag of the wheel states the oldest glibc with which it works.
    pip.env("MATURIN_PEP517_ARGS", "--compatibility pypi");
    let wheel = build_wheel(&mut pip, &made)?;
    let out = target("wheels");
    fs::create_dir_all(&out).with_context(|| format!("cannot make {}", out.display()))?;
    let out = out.join(wheel.file_name().unwrap_or_default());
    fs::rename(&wheel, &out).with_context(|| format!("cannot write {}", out.display()))?;
    eprintln!("the wheel is {}", out.display());
    Ok(())
}

/// Builds the programs and libraries of the wheel, so that cargo shows its progress; pip hides it.
fn build_release(cross: impl Fn(&mut Command)) -> Result<()> {
    eprintln!(
        "building gapscope in release mode, its SQL engine (DataFusion) included: the first time this takes twenty minutes \
         on two cores"
    );
    let mut cargo = command::cargo_line(
        "build --release --package=gapscope --package=gapscope-query --package=gapscope-mcp --package=gapscope-vulkan \
         --package=gapscope-vulkan-capture --package=gapscope-cuda --lib --bin=gapscope --bin=gapscope-query --bin=gapscope-mcp",
    );
    cross(&mut cargo);
    progress::build(&mut cargo)
}

/// Returns the environment with the tools, which is kept between runs.
fn ensure_tools() -> Result<PathBuf> {
    let folder = absolute(&target("python/tools"))?;
    let installed = folder.join("installed");
    if fs::read_to_string(&installed).is_ok_and(|there| there == TOOLS) {
        return Ok(folder);
    }
    let mut pip = venv::pip(&venv::create(&folder)?, "install");
    pip.arg("--only-binary=:all:");
    command::run(pip.args(TOOLS.split_whitespace()))?;
    fs::write(&installed, TOOLS)
        .with_context(|| format!("cannot write {}", installed.display()))?;
    Ok(folder)
}

/// Runs the tests of a module of Python code that is not part of the package, in its folder.
fn unittest(tools: &Path, folder: &str, module: &str) -> Result<()> {
    let mut tests = Command::new(tools.join("bin/python"));
    tests.args(["-m", "unittest", "--quiet", module]);
    tests.env("PYTHONDONTWRITEBYTECODE", "1");
    command::run(tests.current_dir(folder))
}

/// Builds a wheel of the debug build for another system; `cross` is as in [`dist`].
pub fn cross_wheel(folder: &Path, cross: impl Fn(&mut Command)) -> Result<PathBuf> {
    let tools = ensure_tools()?;
    let out = absolute(folder)?;
    let mut pip = pip_wheel(&tools, &out)?;
    cross(&mut pip);
    pip.env("GAPSCOPE_PROFILE", "dev").env(
        "MATURIN_PEP517_ARGS",
        "--compression-level 1 --compatibility pypi",
    );
    build_wheel(&mut pip, &out)
}

/// Builds a wheel of the result of `cargo build --workspace`.
fn wheel(tools: &Path) -> Result<PathBuf> {
    let out = absolute(&target("python/wheels"))?;
    let mut pip = pip_wheel(tools, &out)?;
    pip.env("GAPSCOPE_PROFILE", "dev")
        .env("MATURIN_PEP517_ARGS", "--compression-level 1");
    build_wheel(&mut pip, &out)
}

/// Runs pip, which must make one wheel in a folder of its own, and returns the wheel.
fn build_wheel(pip: &mut Command, out: &Path) -> Result<PathBuf> {
    let _ = fs::remove_dir_all(out);
    command::run(pip)?;
    let wheels: Vec<_> = fs::read_dir(out)?
        .flatten()
        .map(|entry| entry.path())
        .collect();
    match wheels.as_slice() {
        [wheel] => Ok(wheel.clone()),
        other => bail!("{} wheels were built, not one", other.len()),
    }
}

/// Returns a command of pip that builds the package's wheel into a folder, with the tools in its PATH.
fn pip_wheel(tools: &Path, out: &Path) -> Result<Command> {
    let mut pip = venv::pip(&tools.join("bin/python"), "wheel");
    pip.args(["--no-deps", "--no-build-isolation", "--wheel-dir"]);
    pip.arg(out).arg("./python");
    let path = std::env::var_os("PATH").unwrap_or_default();
    let folders = [tools.join("bin")]
        .into_iter()
        .chain(std::env::split_paths(&path));
    pip.env("PATH", std::env::join_paths(folders)?);
    Ok(pip)
}

/// Returns a fresh environment in which only the wheel is installed.
fn install(wheel: &Path) -> Result<PathBuf> {
    let folder = absolute(&target("python/fresh"))?;
    let mut pip = venv::pip(&venv::create(&folder)?, "install");
    command::run(pip.arg("--no-index").arg(wheel))?;
    Ok(folder)
}

/// Checks that `uvx gapscope` runs the command.
fn uvx(tools: &Path, wheel: &Path) -> Result<()> {
    let mut uvx = Command::new(tools.join("bin/uvx"));
    uvx.args(["--quiet", "--offline", "--from"]).arg(wheel);
    uvx.args(["gapscope", "--version"]);
    uvx.env("UV_CACHE_DIR", absolute(&target("python/uv"))?);
    let shown = command::output(&mut uvx)?;
    if !shown.starts_with("gapscope ") {
        bail!("uvx gapscope --version printed {shown:?}");
    }
    Ok(())
}

/// Lets an environment also import the packages of another environment.
fn share(from: &Path, to: &Path) -> Result<()> {
    let mut query = Command::new(to.join("bin/python"));
    let purelib = command::output(query.args([
        "-c",
        "import sysconfig; print(sysconfig.get_path('purelib', vars={'base': '.', 'platbase': '.'}))",
    ]))?;
    let purelib = Path::new(purelib.trim());
    let file = to.join(purelib).join("tools.pth");
    fs::write(&file, format!("{}\n", from.join(purelib).display()))
        .with_context(|| format!("cannot write {}", file.display()))
}

/// Runs the package's tests in an environment, with these environment variables.
fn run_tests(environment: &Path, variables: &[(&str, &str)]) -> Result<()> {
    let mut tests = Command::new(environment.join("bin/python"));
    // The tests do not run in the folder of the sources, which Python would import instead of the installed
    // package.
    tests.args("-m unittest discover --quiet --start-directory python/tests".split(' '));
    tests
        .env("GAPSCOPE_FIXTURES", absolute(Path::new("fixtures"))?)
        .env("PYTHONDONTWRITEBYTECODE", "1")
        .envs(variables.iter().copied());
    command::run(&mut tests)
}

fn absolute(path: &Path) -> Result<PathBuf> {
    std::path::absolute(path).with_context(|| format!("{} has no absolute path", path.display()))
}
