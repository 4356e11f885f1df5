//! Why instructions are not sampled, in sentences for the report.

use crate::cupti::refusal::meaning;
use crate::recorder::Recorder;
use gapscope_cupti::{Failure, Missing, code};

pub fn not_sampled(recorder: &Recorder, why: &str) {
    recorder.note(&format!("Instructions were not sampled: {why}."));
}

pub fn note_end(recorder: &Recorder, why: &str) {
    recorder.note(&format!(
        "Instructions were sampled in a part of the recording only: {why}."
    ));
}

/// Why a libcupti cannot be used for it; as those below a sentence without its full stop.
pub fn missing(missing: &Missing) -> String {
    match missing {
        Missing::Library { .. } => missing.to_string(),
        Missing::Function { path, function } => format!(
            "{} has no function {function}: it is too old for it",
            path.display()
        ),
    }
}

/// What CUPTI's refusal means.
pub fn refusal(failure: Failure) -> String {
    let known = meaning(failure).or(match failure.code {
        code::NOT_SUPPORTED => {
            Some("this libcupti or the GPU cannot do it; GPUs from compute capability 7.0 on can")
        }
        code::OUT_OF_MEMORY => Some("there is not enough memory for it"),
        _ => None,
    });
    match known {
        Some(meaning) => format!("{meaning} ({failure})"),
        None => failure.to_string(),
    }
}
