//! The reasons why instructions are not sampled, as sentences for the report.

use crate::cupti::refusal;
use crate::recorder::Recorder;
use gapscope_cupti::{Failure, LibraryError, code};
use std::fmt::Display;

/// Notes for the report that no instructions were sampled.
pub fn not_sampled(recorder: &Recorder, why: impl Display) {
    recorder.note(&format!("Instructions were not sampled: {why}."));
}

/// Notes for the report that sampling ended before the recording did.
pub fn note_end(recorder: &Recorder, why: impl Display) {
    recorder.note(&format!(
        "Instructions were sampled in a part of the recording only: {why}."
    ));
}

/// Says why a libcupti cannot sample instructions, without a full stop.
pub fn unusable(error: &LibraryError) -> String {
    match error {
        LibraryError::NotLoaded { .. } => error.to_string(),
        LibraryError::NoFunction { path, function } => format!(
            "{} has no function {function}: it is too old for it",
            path.display()
        ),
    }
}

/// The reason why a context (a program's state on a GPU) is not sampled, as a sentence without its full stop.
#[derive(Debug, thiserror::Error)]
pub enum SamplingError {
    #[error("CUPTI does not say which device a context is of")]
    NoDevice,
    #[error("{}", explain(*.0))]
    Refused(#[from] Failure),
}

/// Explains a code by which CUPTI refuses, without a full stop.
fn explain(failure: Failure) -> String {
    let meaning = match failure.code {
        code::NOT_SUPPORTED => {
            Some("this libcupti or the GPU cannot do it; GPUs from compute capability 7.0 on can")
        }
        code::OUT_OF_MEMORY => Some("there is not enough memory for it"),
        _ => None,
    };
    refusal::explain(failure, meaning)
}
