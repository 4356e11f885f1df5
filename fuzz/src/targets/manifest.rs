//! The manifest `trace.json` (the facts about a recording as a whole): any bytes, in a trace whose tables are whole.

use super::fixture;
use crate::bytes::{self, MutateBytes};
use crate::json;
use crate::outcome::{self, Choice};
use crate::{Target, scratch};
use fastrand::Rng;
use gapscope_trace::Selection;
use std::cell::OnceCell;
use tempfile::TempDir;

/// The target.
pub const TARGET: Target = Target {
    name: "manifest",
    read,
    mutate,
};

thread_local! {
    /// The folder of the thread's inputs, one after the other.
    static FOLDER: OnceCell<TempDir> = const { OnceCell::new() };
}

/// Reads the manifest, and shows the facts alone, or the trace with the fixture's tables.
fn read(input: &[u8]) {
    FOLDER.with(|folder| {
        let folder = folder.get_or_init(scratch::folder).path();
        scratch::file(folder, "trace.json", input);
        let Ok((mut trace, diagnostics)) = gapscope_trace::read(folder, &Selection::manifest())
        else {
            return;
        };
        let remarks: Vec<String> = diagnostics.iter().map(ToString::to_string).collect();
        let choice = Choice::from_input(input);
        if choice.one_of(4, 0) == 0 {
            let sizes = gapscope_trace::table_sizes(folder, trace.manifest.format_version);
            let sizes = sizes.expect("the folder can be read");
            return outcome::show_info(&trace, &sizes, &remarks);
        }
        trace.tables = fixture::trace().tables.clone();
        outcome::show(&trace, &remarks, choice);
    });
}

/// Changes the document so that it mostly stays JSON.
fn mutate(input: &mut Vec<u8>, rng: &mut Rng, mutate_bytes: MutateBytes<'_>) {
    match rng.u8(0..8) {
        0 => mutate_bytes(input, rng),
        1 => bytes::change_value(input, rng),
        _ if json::change_document(input, rng) => {}
        _ => mutate_bytes(input, rng),
    }
}
