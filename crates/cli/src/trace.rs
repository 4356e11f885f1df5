//! Opens traces for the commands that read them.

use crate::failure::Failure;
use crate::ranks;
use gapscope_timeline::{LabelFilter, Timeline};
use gapscope_trace::tables::Dispatches;
use gapscope_trace::{
    Diagnostic, DispatchPieces, Selection, Trace, rank_folders, read, read_manifest,
};
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

/// A complete trace whose dispatches are read piece by piece, as often as they are needed.
pub struct InPieces {
    /// Its table of dispatches is empty.
    pub trace: Trace,
    /// One sentence for each thing that it lacks.
    pub remarks: Vec<String>,
    /// Absent where the trace has them: their file is damaged, and what there is of it was read at once.
    dispatches: Option<DispatchPieces>,
}

impl InPieces {
    /// Hands over all dispatches. Gives what reading says of them; `None` where they cannot be read to their end.
    pub fn each(&self, take: &mut (dyn FnMut(&Dispatches) + Send)) -> Option<Vec<Diagnostic>> {
        match &self.dispatches {
            Some(pieces) => pieces.each(&self.trace, take),
            None => {
                take(&self.trace.tables.dispatches);
                Some(Vec::new())
            }
        }
    }

    /// How many dispatches there are.
    pub fn rows(&self) -> usize {
        match &self.dispatches {
            Some(pieces) => pieces.rows(),
            None => self.trace.tables.dispatches.queue.len(),
        }
    }

    /// The timeline, with the work that the filter selects, and all remarks.
    pub fn timeline<'a>(
        &'a self,
        filter: Option<&'a LabelFilter>,
    ) -> Option<(Timeline<'a>, Vec<String>)> {
        self.timeline_counting(filter, |_| ())
    }

    /// The same; `taken` is told how many dispatches were taken of each piece.
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

/// Reads a complete trace and shows it. `show` gives `None` where the dispatches cannot be read to their end; then it is
/// called again, with what there is of them.
pub fn in_pieces<R>(
    path: &Path,
    selection: &Selection,
    mut show: impl FnMut(&mut InPieces) -> Option<R>,
) -> Result<R, Failure> {
    let mut shown = |selection: &Selection, dispatches| -> Result<Option<R>, Failure> {
        let Opened { trace, remarks } = open(path, selection)?;
        let mut opened = InPieces {
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
        .ok_or_else(|| Failure::new(format!("{}: its dispatches cannot be read", path.display())))
}

/// The same with the timeline and the remarks.
pub fn with_timeline<R>(
    path: &Path,
    selection: &Selection,
    mut show: impl FnMut(&Trace, &Timeline, &[String]) -> R,
) -> Result<R, Failure> {
    in_pieces(path, selection, |opened| {
        let (timeline, remarks) = opened.timeline(None)?;
        Some(show(&opened.trace, &timeline, &remarks))
    })
}

/// The name of a trace in its report.
pub fn name(path: &Path) -> String {
    let name = path.canonicalize().ok();
    let name = name.as_deref().unwrap_or(path).file_name();
    name.unwrap_or(path.as_os_str())
        .to_string_lossy()
        .into_owned()
}
