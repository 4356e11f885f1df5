//! Loads another form of a kernel from a file: a cubin, PTX, or source that NVIDIA's compiler translates.

use std::fs;
use std::os::unix::fs::DirBuilderExt;
use std::path::Path;
use std::process::Command;

use crate::driver::{Driver, ModuleHandle};
use crate::error::Error;
use crate::modules::Kernel;

/// The most kernels that an error lists.
const MAX_LISTED: usize = 10;

/// Code of a file.
pub struct OtherCode {
    pub module: ModuleHandle,
    pub kernel: Kernel,
    /// The kernel's name.
    pub name: String,
}

impl OtherCode {
    /// Loads a file for a GPU with this compute capability. The kernel is the one that is named, or has the captured kernel's
    /// name, or is the only one.
    pub fn load(
        driver: &Driver,
        file: &Path,
        name: Option<&str>,
        captured: &str,
        capability: [u32; 2],
    ) -> Result<OtherCode, Error> {
        let extension = file.extension().and_then(|extension| extension.to_str());
        let failed = |error| Error::File {
            path: file.display().to_string(),
            error,
        };
        let code = match extension {
            Some("cu") => compiled(file, capability)?,
            Some("ptx") => {
                let mut text = fs::read(file).map_err(failed)?;
                text.push(0);
                text
            }
            _ => fs::read(file).map_err(failed)?,
        };
        let names = match code.starts_with(b"\x7fELF") {
            true => kernels_of_cubin(&code),
            false if extension == Some("cubin") => {
                let path = file.display();
                return Err(Error::Unsupported(format!(
                    "{path} is no cubin: it is no ELF file"
                )));
            }
            false => kernels_of_ptx(&String::from_utf8_lossy(&code)),
        };
        let has = |name: &str| names.iter().any(|one| one == name);
        let chosen = match (name, names.as_slice()) {
            (Some(name), _) => name.to_owned(),
            _ if has(captured) => captured.to_owned(),
            (None, [only]) => only.clone(),
            (None, []) => captured.to_owned(),
            (None, several) => {
                let listed: Vec<&str> = several
                    .iter()
                    .take(MAX_LISTED)
                    .map(String::as_str)
                    .collect();
                return Err(Error::Unsupported(format!(
                    "{} has several kernels: choose one by --kernel-name: {}",
                    file.display(),
                    listed.join(", ")
                )));
            }
        };
        let module = driver.load(&code, &file.display().to_string())?;
        Ok(OtherCode {
            module,
            kernel: Kernel::find(driver, module, &chosen)?,
            name: chosen,
        })
    }
}

/// Translates source by `nvcc`, which the PATH has.
fn compiled(file: &Path, [major, minor]: [u32; 2]) -> Result<Vec<u8>, Error> {
    // Instructions that one architecture alone has are in its own variant.
    let variant = if major >= 9 { "a" } else { "" };
    // A folder of this user alone, which must not exist: nobody else can put a link in the way.
    let folder = std::env::temp_dir().join(format!("gapscope-nvcc-{}", std::process::id()));
    let made = fs::DirBuilder::new().mode(0o700).create(&folder);
    made.map_err(|error| Error::File {
        path: folder.display().to_string(),
        error,
    })?;
    let to = folder.join("kernel.cubin");
    let nvcc = Command::new("nvcc")
        .arg("-cubin")
        .arg("-O3")
        .arg(format!("-arch=sm_{major}{minor}{variant}"))
        .arg("-o")
        .arg(&to)
        .arg(file)
        .output();
    let code = fs::read(&to);
    let _ = fs::remove_dir_all(&folder);
    let output = nvcc.map_err(|error| {
        Error::Unsupported(format!(
            "{} needs NVIDIA's compiler nvcc in the PATH ({error}): install it, or give a .cubin or .ptx",
            file.display()
        ))
    })?;
    match (output.status.success(), code) {
        (true, Ok(code)) => Ok(code),
        _ => {
            let messages = String::from_utf8_lossy(&output.stderr);
            let first = messages.lines().find(|line| line.contains("error"));
            let first = first.or(messages.lines().next()).unwrap_or_default();
            let path = file.display();
            Err(Error::Unsupported(format!(
                "nvcc cannot compile {path}: {first}"
            )))
        }
    }
}

/// Returns the kernels of a cubin: each has a section `.text.NAME`. A damaged file has none.
pub fn kernels_of_cubin(code: &[u8]) -> Vec<String> {
    let number = |at: usize, bytes: usize| -> Option<usize> {
        let mut wide = [0; 8];
        wide[..bytes].copy_from_slice(code.get(at..at.checked_add(bytes)?)?);
        usize::try_from(u64::from_le_bytes(wide)).ok()
    };
    let sections = || -> Option<Vec<String>> {
        let (table, size) = (number(0x28, 8)?, number(0x3a, 2)?);
        let (count, names) = (number(0x3c, 2)?, number(0x3e, 2)?);
        let header = |index: usize| table.checked_add(index.checked_mul(size)?);
        let strings = number(header(names)?.checked_add(0x18)?, 8)?;
        let mut all = Vec::new();
        for index in 0..count {
            let at = strings.checked_add(number(header(index)?, 4)?)?;
            let name = code.get(at..)?.split(|byte| *byte == 0).next()?;
            if let Some(kernel) = name.strip_prefix(b".text.") {
                all.push(String::from_utf8_lossy(kernel).into_owned());
            }
        }
        Some(all)
    };
    sections().unwrap_or_default()
}

/// Returns the kernels of PTX: each is an `.entry`.
pub fn kernels_of_ptx(text: &str) -> Vec<String> {
    let entries = text.split(".entry").skip(1);
    let names = entries.map(|rest| {
        let end = |c: char| c == '(' || c == '{' || c.is_whitespace();
        rest.trim_start()
            .split(end)
            .next()
            .unwrap_or_default()
            .to_owned()
    });
    names.filter(|name| !name.is_empty()).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn kernels_are_listed() {
        let text = ".visible .entry first(\n.param .u64 a) { ret; }\n.entry second\n(";
        assert_eq!(kernels_of_ptx(text), ["first", "second"]);
        for length in 0..70 {
            assert_eq!(kernels_of_cubin(&vec![0xff; length]), [""; 0]);
        }
    }
}
