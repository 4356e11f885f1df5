//! What the user is told when CUDA cannot be recorded, or not all of it.

use crate::recorder::Recorder;
use gapscope_spool::event::{CommonEvent, LossKind};
use std::borrow::Cow;

/// The loss that stands for all GPU work of a process.
pub const ALL_WORK: LossKind = LossKind::CudaWork;

/// Nothing of CUDA is recorded in this process: a line in the ledger and a sentence for the report.
pub fn unrecorded(recorder: &Recorder, reason: &'static str, sentence: &str) {
    recorder.loss(ALL_WORK, 1, reason);
    note(recorder, sentence);
}

/// A sentence for the report.
pub fn note(recorder: &Recorder, sentence: &str) {
    recorder.write(&CommonEvent::Note {
        text: Cow::Borrowed(sentence),
    });
}
