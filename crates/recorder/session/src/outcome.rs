//! What a recording gave.

use crate::captures::WrittenCapture;
use gapscope_trace::manifest::{Exit, Loss};
use std::path::PathBuf;

/// How a recording ended.
#[derive(Debug, Clone, PartialEq)]
pub struct Recorded {
    /// The folder of the trace.
    pub output: PathBuf,
    /// How the command ended.
    pub exit: Exit,
    /// True when the time limit ended it.
    pub timed_out: bool,
    /// What there is to see.
    pub outcome: Outcome,
    /// Dispatches in the trace.
    pub dispatches: u64,
    /// What was not recorded.
    pub losses: Vec<Loss>,
    /// Sentences that are in the manifest, for every report.
    pub notes: Vec<String>,
    /// Captures that the program made.
    pub captures: Vec<WrittenCapture>,
}

/// What a recording gave.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Outcome {
    /// GPU work.
    Recorded,
    /// None.
    NothingRecorded {
        /// Why: a sentence.
        reason: String,
        /// A trace was written all the same, because the program did use a GPU's library.
        trace_kept: bool,
    },
}
