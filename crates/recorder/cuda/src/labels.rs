//! Gives the texts of labels their ids: a text goes in, its number in events comes out. Recording may start with a
//! label of a certain text.

use crate::recorder::Recorder;
use crate::tracing;
use gapscope_spool::ids;

/// Returns the id of a label's text, which is written before its first use. A start label starts the recording.
#[inline]
pub fn text(recorder: &Recorder, text: &[u8]) -> ids::Text {
    if recorder.is_start_label(text) {
        tracing::record(recorder, true);
    }
    recorder.text(text)
}
