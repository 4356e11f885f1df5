//! Describes the result of a recording: how the program ended, and what was recorded. A dispatch is one run of a
//! kernel; a window is a part of the program's run that the program chose to record (`start_capture`).

use crate::windows::WrittenWindow;
use gapscope_trace::manifest::{Exit, Loss};
use std::path::PathBuf;

/// The result of a recording that has ended.
#[derive(Debug, Clone, PartialEq)]
pub struct Recorded {
    /// The folder of the trace.
    pub output: PathBuf,
    /// The way in which the command ended, such as its exit status.
    pub exit: Exit,
    /// Whether the time limit ended the command.
    pub timed_out: bool,
    /// Whether GPU work was recorded.
    pub outcome: Outcome,
    /// The number of dispatches in the trace.
    pub dispatches: u64,
    /// The losses: things that were not recorded, with their numbers and reasons.
    pub losses: Vec<Loss>,
    /// The sentences of the manifest's notes, which every report shows.
    pub notes: Vec<String>,
    /// The windows of the recording that the program began.
    pub windows: Vec<WrittenWindow>,
}

/// Whether a recording has GPU work.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Outcome {
    /// The recording has GPU work.
    Recorded,
    /// The command itself ran `gapscope record`, and there was no GPU work besides. No trace was written unless
    /// `trace_kept`.
    RecordedInside {
        /// A sentence that names the traces of the inner recordings.
        reason: String,
        /// A trace was written all the same, because a process of this recording used a GPU's library.
        trace_kept: bool,
        /// The inner traces.
        inner: Vec<PathBuf>,
    },
    /// The recording has no GPU work.
    NothingRecorded {
        /// A sentence that says why.
        reason: String,
        /// A trace was written all the same, because the program used a GPU's library.
        trace_kept: bool,
    },
}

impl Outcome {
    /// Returns why the recording itself has no GPU work, and whether its trace was written all the same; `None` if it
    /// has some.
    pub fn without_work(&self) -> Option<(&str, bool)> {
        match self {
            Outcome::Recorded => None,
            Outcome::RecordedInside {
                reason, trace_kept, ..
            }
            | Outcome::NothingRecorded { reason, trace_kept } => Some((reason, *trace_kept)),
        }
    }
}
