//! `gapscope replay --export`: writes a capture of CUDA as a folder that runs without gapscope.

use crate::args;
use crate::exit;
use crate::failure::Failure;
use crate::replay::json::ExportedFolder;
use crate::replay::remarks;
use crate::{page, progress};
use gapscope_capture::Problem;
use gapscope_capture::cuda::CudaCapture;
use gapscope_report::Document;
use gapscope_report::document::{Block, Text};
use gapscope_timeline::quantity;
use std::path::Path;
use std::process::ExitCode;

/// Writes the folder and says how to run it.
pub fn run(
    arguments: &args::Replay,
    capture: &CudaCapture,
    folder: &Path,
    problem: Option<&Problem>,
) -> Result<ExitCode, Failure> {
    let exported = progress::while_running("exporting", || {
        gapscope_cuda_replay::export(capture, folder)
    });
    let exported = exported.map_err(|error| Failure::new(error.to_string()))?;
    let notes = remarks(capture.end.as_ref(), problem);
    let status = exit::after_reading(problem.is_none());
    if arguments.json {
        page::write_json(&ExportedFolder { exported, notes })?;
        return Ok(status);
    }
    let launches = quantity::count_of(exported.launches, "launch", "launches");
    let modules = quantity::count_of(exported.modules, "cubin", "cubins");
    let bytes = quantity::bytes(exported.data_bytes);
    let text = Text::new()
        .and(format!(
            "Wrote {launches}, {modules} and {bytes} of data to "
        ))
        .strong(folder.display().to_string())
        .and(". README.md there says how they run without gapscope; nothing has run now.");
    let mut blocks = vec![Block::Sentence(text)];
    let hashed = exported.outputs - exported.outputs_kept;
    if hashed > 0 {
        let pieces = quantity::count_of(exported.outputs, "piece", "pieces");
        let hashed = quantity::count(hashed);
        blocks.push(Block::Item(
            format!("{hashed} of {pieces} of memory that launches change are compared by hash; capture with --keep-outputs to have their bytes.").into(),
        ));
    }
    blocks.extend(page::items(&notes));
    page::print(&Document { blocks }, &arguments.width)?;
    Ok(status)
}
