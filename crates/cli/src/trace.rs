//! Opens traces for the commands that read them.

use crate::failure::Failure;
use crate::ranks;
use gapscope_analysis::Timeline;
use gapscope_trace::tables::Dispatches;
use gapscope_trace::{DispatchPieces, Selection, Trace, rank_folders, read, read_manifest};
use std::path::Path;

/// A trace and sentences about how it could be read.
pub struct Opened {
    /// The trace.
    pub trace: Trace,
    /// One sentence for each thing that it lacks.
    pub remarks: Vec<String>,
}

/// Reads a complete trace.
pub fn open(path: &Path, selection: &Selection) -> Result<Opened, Failure> {
    let manifest = read_manifest(path)?;
    if !manifest.complete {
        let path = path.display();
        return Err(Failure::new(format!(
            "{path} is not complete: it is still being recorded, or its recording was killed; wait for its end, or run \
             `gapscope recover {path}`"
        )));
    }
    if manifest.processes.is_empty() && !manifest.ranks.is_empty() {
        return Err(ranks::choose(path, &rank_folders(path), "this command"));
    }
    let (trace, diagnostics) = read(path, selection)?;
    let remarks = diagnostics.iter().map(ToString::to_string).collect();
    Ok(Opened { trace, remarks })
}

/// Reads a complete trace, all but its dispatches at once and those piece by piece, and shows it with its timeline and
/// the sentences about how it could be read.
pub fn with_timeline<R>(
    path: &Path,
    selection: &Selection,
    show: impl FnOnce(&Trace, &Timeline, &[String]) -> R,
) -> Result<R, Failure> {
    let Opened { trace, mut remarks } = open(path, &selection.clone().without::<Dispatches>())?;
    if let Some(pieces) = DispatchPieces::open(path, selection) {
        let rows = pieces.rows();
        let found = Timeline::of_pieces(&trace, rows, |take| pieces.each(&trace, take));
        if let Some((timeline, unknown)) = found {
            remarks.extend(unknown.iter().map(ToString::to_string));
            return Ok(show(&trace, &timeline, &remarks));
        }
    }
    // Their file is damaged: this reads what there is of it, and says what there is not.
    let Opened { trace, remarks } = open(path, selection)?;
    Ok(show(&trace, &Timeline::of(&trace), &remarks))
}

/// The name of a trace in its report.
pub fn name(path: &Path) -> String {
    let name = path.canonicalize().ok();
    let name = name.as_deref().unwrap_or(path).file_name();
    name.unwrap_or(path.as_os_str())
        .to_string_lossy()
        .into_owned()
}
