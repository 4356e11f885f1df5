//! Remembers the captures of CUDA that this user made on this machine, so that they run without `--trust`.
//!
//! A cubin is code for the GPU, which reads and writes the memory of the replaying process. The file of records has the hashes of
//! all content, so that its own hash stands for the whole capture.

use crate::page;
use gapscope_capture::RECORDS;
use gapscope_companion::state_folder;
use gapscope_trace::ContainedPath;
use gapscope_trace::own_hashes::OwnHashes;
use std::path::Path;

/// Remembers a capture that was made just now. A failure is printed, as replays then ask for `--trust`.
pub fn remember(capture: &Path) {
    let Some(own) = own() else {
        return;
    };
    let records = ContainedPath::new(capture, RECORDS).open();
    if let Err(error) = records.and_then(|records| own.remember(records)) {
        page::note(format!(
            "a replay will ask for --trust, because the capture could not be remembered as your own: {error}"
        ));
    }
}

/// Returns whether this user made a capture on this machine.
pub fn has(capture: &Path) -> bool {
    let records = ContainedPath::new(capture, RECORDS).open();
    match (own(), records) {
        (Some(own), Ok(records)) => own.has(records),
        _ => false,
    }
}

fn own() -> Option<OwnHashes> {
    Some(OwnHashes::new(state_folder()?.join("captures")))
}
