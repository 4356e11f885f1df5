//! Checks that a wheel (the Python package with gapscope's programs) is for ARM's 64-bit processors.

use std::path::Path;
use std::process::Command;

use anyhow::{Result, bail};

use crate::command;

/// A Python program that prints each ELF file of a wheel with the number of its processor.
const PROCESSORS: &str = "\
import sys, zipfile
with zipfile.ZipFile(sys.argv[1]) as wheel:
    for name in wheel.namelist():
        start = wheel.open(name).read(20)
        if start[:4] == b'\\x7fELF':
            print(int.from_bytes(start[18:20], 'little'), name.rsplit('/', 1)[-1])
";
/// The number of ARM's 64-bit processors in ELF files (`EM_AARCH64`).
const AARCH64: &str = "183";
/// The ELF files of a wheel, by name.
const PROGRAMS: [&str; 6] = [
    "gapscope",
    "gapscope-mcp",
    "gapscope-query",
    "libgapscope_cuda.so",
    "libgapscope_vulkan.so",
    "libgapscope_vulkan_capture.so",
];

/// Returns an error unless the wheel's tag and the programs in it are for ARM.
pub fn check(wheel: &Path) -> Result<()> {
    let name = wheel.file_name().unwrap_or_default().to_string_lossy();
    if !name.contains("-manylinux_2_") || !name.ends_with("_aarch64.whl") {
        bail!("{name} is not tagged as a wheel for ARM");
    }
    let mut python = Command::new("python3");
    let listed = command::output(python.args(["-c", PROCESSORS]).arg(wheel))?;
    let mut found: Vec<_> = listed
        .lines()
        .filter_map(|line| line.split_once(' '))
        .collect();
    found.sort_by_key(|(_, name)| *name);
    if found != PROGRAMS.map(|name| (AARCH64, name)) {
        bail!("{name} should hold {PROGRAMS:?} for ARM, and holds {found:?}");
    }
    eprintln!(
        "arm: {} holds {} for ARM",
        wheel.display(),
        PROGRAMS.join(", ")
    );
    Ok(())
}
