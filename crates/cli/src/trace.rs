//! Opens traces for the commands that read them, whole or with the dispatches in pieces (so that they are never in
//! memory at once), and collects remarks (sentences about what a trace lacks).

use crate::failure::Failure;
use gapscope_timeline::{LabelFilter, Timeline};
use gapscope_trace::tables::Dispatches;
use gapscope_trace::{
    Diagnostic, DispatchPieces, Selection, Trace, rank_folders, read, read_manifest,
};
use std::path::{Path, PathBuf};

/// A trace, and sentences about the parts that it lacks.
pub struct OpenedTrace {
    pub trace: Trace,
    pub remarks: Vec<String>,
}

/// Reads the selected tables of a complete trace. A recording that has not ended, and a folder of ranks (traces of
/// the processes of a distributed program), are errors.
pub fn open(path: &Path, selection: &Selection) -> Result<OpenedTrace, Failure> {
    let manifest = read_manifest(path)?;
    if !manifest.complete {
        let path = path.display();
        return Err(failure!(
            "{path} is not complete: it is still being recorded, or its recording was killed; wait for its end, or run \
             `gapscope recover {path}`"
        ));
    }
    if manifest.processes.is_empty() && !manifest.ranks.is_empty() {
        return Err(choose_rank(path, &rank_folders(path), "this command"));
    }
    let (trace, diagnostics) = read(path, selection)?;
    let remarks = diagnostics.iter().map(ToString::to_string).collect();
    Ok(OpenedTrace { trace, remarks })
}

/// A complete trace whose dispatches are read piece by piece, as often as they are needed.
pub struct PiecewiseTrace {
    /// The trace, with an empty table of dispatches.
    pub trace: Trace,
    /// Sentences about the parts that the trace lacks.
    pub remarks: Vec<String>,
    /// The dispatches; `None` if `trace` has them because their file is damaged, and the readable part was read at
    /// once.
    dispatches: Option<DispatchPieces>,
}

impl PiecewiseTrace {
    /// Passes all dispatches to `take` piece by piece and returns the diagnostics; `None` if the dispatches cannot
    /// be read to their end.
    pub fn each(&self, take: &mut (dyn FnMut(&Dispatches) + Send)) -> Option<Vec<Diagnostic>> {
        match &self.dispatches {
            Some(pieces) => pieces.each(&self.trace, take),
            None => {
                take(&self.trace.tables.dispatches);
                Some(Vec::new())
            }
        }
    }

    /// Returns the number of dispatches.
    pub fn rows(&self) -> usize {
        match &self.dispatches {
            Some(pieces) => pieces.rows(),
            None => self.trace.tables.dispatches.queue.len(),
        }
    }

    /// Returns the timeline, with the work that the filter selects, and all remarks; `None` if the dispatches cannot
    /// be read to their end.
    pub fn timeline<'a>(
        &'a self,
        filter: Option<&'a LabelFilter>,
    ) -> Option<(Timeline<'a>, Vec<String>)> {
        self.timeline_counting(filter, |_| ())
    }

    /// Returns the same as [`Self::timeline`], and tells `taken` how many dispatches each piece had.
    pub fn timeline_counting<'a>(
        &'a self,
        filter: Option<&'a LabelFilter>,
        taken: impl Fn(usize) + Sync,
    ) -> Option<(Timeline<'a>, Vec<String>)> {
        let (timeline, unknown) =
            Timeline::from_pieces(&self.trace, filter, self.rows(), |take| {
                self.each(&mut |piece| {
                    take(piece);
                    taken(piece.queue.len());
                })
            })?;
        let mut remarks = self.remarks.clone();
        remarks.extend(unknown.iter().map(ToString::to_string));
        Some((timeline, remarks))
    }
}

/// Reads a complete trace and passes it to `show`. If `show` returns `None` because the dispatches cannot be read
/// to their end, it is called again with the readable dispatches.
pub fn read_in_pieces<R>(
    path: &Path,
    selection: &Selection,
    mut show: impl FnMut(&mut PiecewiseTrace) -> Option<R>,
) -> Result<R, Failure> {
    let mut shown = |selection: &Selection, dispatches| -> Result<Option<R>, Failure> {
        let OpenedTrace { trace, remarks } = open(path, selection)?;
        let mut opened = PiecewiseTrace {
            trace,
            remarks,
            dispatches,
        };
        let shown = show(&mut opened);
        match opened.dispatches.and_then(|pieces| pieces.stopped()) {
            Some(error) => Err(error.into()),
            None => Ok(shown),
        }
    };
    if let Some(pieces) = DispatchPieces::open(path, selection) {
        let others = selection.clone().without::<Dispatches>();
        if let Some(shown) = shown(&others, Some(pieces))? {
            return Ok(shown);
        }
    }
    shown(selection, None)?
        .ok_or_else(|| failure!("{}: its dispatches cannot be read", path.display()))
}

/// Reads a complete trace and passes it to `show` with its timeline and remarks.
pub fn with_timeline<R>(
    path: &Path,
    selection: &Selection,
    mut show: impl FnMut(&Trace, &Timeline, &[String]) -> R,
) -> Result<R, Failure> {
    read_in_pieces(path, selection, |opened| {
        let (timeline, remarks) = opened.timeline(None)?;
        Some(show(&opened.trace, &timeline, &remarks))
    })
}

/// Returns the name of a trace for its report.
pub fn name(path: &Path) -> String {
    let name = path.canonicalize().ok();
    let name = name.as_deref().unwrap_or(path).file_name();
    name.unwrap_or(path.as_os_str())
        .to_string_lossy()
        .into_owned()
}

/// Returns the failure of a command that takes one trace and was given a folder of ranks.
pub fn choose_rank(folder: &Path, ranks: &[(u32, PathBuf)], what: &str) -> Failure {
    let first = ranks.first().map(|(_, path)| path.display().to_string());
    failure!(
        "{} holds the traces of {} ranks, and {what} takes one: name it, such as {}",
        folder.display(),
        ranks.len(),
        first.unwrap_or_default()
    )
}
