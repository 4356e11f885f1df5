//! Writes a capture as a folder that two small programs run without gapscope: the code, the data, an index of what
//! to do, and the programs, in C++ (`run.cu`) and in Python (`run.py`).
//!
//! The programs are the same for all captures, and read all that they need from the index. No text of a capture is part
//! of a program, and names in the index are of letters, digits, `_`, `$`, `.` and escaped bytes alone.

mod data;
mod index;
#[cfg(test)]
mod tests;

use std::fs::{self, File};
use std::io::{self, BufWriter, Write};
use std::path::Path;

use gapscope_capture::cuda::CudaCapture;
use gapscope_files::NewFolder;
use schemars::JsonSchema;
use serde::Serialize;

use crate::error::Error;
use crate::plan::Plan;
use data::Data;
use index::{Index, escaped};

const RUN_CU: &str = include_str!("export/run.cu");
const RUN_PY: &str = include_str!("export/run.py");
const README: &str = include_str!("export/README.md");

/// The most kernels that the README lists.
const MAX_LISTED: usize = 50;

/// A folder that was written.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, JsonSchema)]
pub struct Exported {
    /// The folder.
    pub folder: String,
    /// Number of launches.
    pub launches: u64,
    /// Number of cubins.
    pub modules: u64,
    /// Size of `data.bin`.
    pub data_bytes: u64,
    /// Number of pieces of memory that launches changed, which the programs compare with the captured ones.
    pub outputs: u64,
    /// Number of those whose bytes are in `data.bin`. The others are compared by their hashes.
    pub outputs_kept: u64,
}

/// Writes a capture as a folder, which must not exist, that runs without gapscope. Nothing of the capture runs.
///
/// # Errors
/// The capture has no launch or lacks content, the folder exists, or a file cannot be written.
pub fn export(capture: &CudaCapture, to: &Path) -> Result<Exported, Error> {
    let plan = Plan::new(capture)?;
    let failed = |error: io::Error| match error.kind() {
        io::ErrorKind::AlreadyExists => Error::Unsupported(format!(
            "{} exists, and nothing is overwritten: name another folder",
            to.display()
        )),
        _ => Error::File {
            path: to.display().to_string(),
            error,
        },
    };
    let folder = NewFolder::create(to).map_err(failed)?;
    let create = |name: &str| File::create_new(folder.path().join(name)).map_err(failed);
    for (number, module) in capture.modules.values().enumerate() {
        let code = capture.code(module).map_err(Error::Content)?;
        let mut file = create(&module_file(number))?;
        file.write_all(&code).map_err(failed)?;
    }
    let mut data = Data::new(capture, BufWriter::new(create("data.bin")?));
    let mut index = Index::new(capture, BufWriter::new(create("index.txt")?));
    index.write(&plan, &mut data).map_err(|error| match error {
        // The capture's content has errors of its own, which the data keeps.
        _ if data.damage.is_some() => data.damage.take().map_or(Error::Empty, Error::Content),
        error => failed(error),
    })?;
    let exported = Exported {
        folder: to.display().to_string(),
        launches: plan.stages.len() as u64,
        modules: capture.modules.len() as u64,
        data_bytes: data.bytes(),
        outputs: index.outputs,
        outputs_kept: index.outputs_kept,
    };
    let texts = [
        ("run.cu", RUN_CU),
        ("run.py", RUN_PY),
        ("README.md", &readme(capture, &plan, &exported)),
    ];
    for (name, text) in texts {
        fs::write(folder.path().join(name), text).map_err(failed)?;
    }
    folder.place().map_err(failed)?;
    Ok(exported)
}

/// Returns the name of the file of a module.
fn module_file(number: usize) -> String {
    format!("module-{number}.cubin")
}

/// Returns the text that says what is in the folder, and how to run it.
fn readme(capture: &CudaCapture, plan: &Plan<'_>, exported: &Exported) -> String {
    let device = &capture.header.device;
    let [major, minor] = device.compute_capability;
    let mut kernels = String::new();
    for stage in plan.stages.iter().take(MAX_LISTED) {
        let launch = stage.launch;
        let shape = |[x, y, z]: [u32; 3]| format!("{x} × {y} × {z}");
        kernels.push_str(&format!(
            "- {}: `{}`, {} blocks of {} threads\n",
            stage.number,
            escaped(&launch.kernel),
            shape(launch.grid),
            shape(launch.block)
        ));
    }
    if plan.stages.len() > MAX_LISTED {
        let others = plan.stages.len() - MAX_LISTED;
        kernels.push_str(&format!("- … and {others} more\n"));
    }
    let hashed = exported.outputs - exported.outputs_kept;
    // The values have none of the other placeholders in them.
    let values = [
        ("{DEVICE}", escaped(&device.name).replace("%20", " ")),
        ("{CAPABILITY}", format!("{major}.{minor}")),
        ("{LAUNCHES}", exported.launches.to_string()),
        ("{OUTPUTS}", exported.outputs.to_string()),
        ("{HASHED}", hashed.to_string()),
        ("{KERNELS}", kernels),
    ];
    let text = README.to_owned();
    values
        .iter()
        .fold(text, |text, (name, value)| text.replace(name, value))
}
