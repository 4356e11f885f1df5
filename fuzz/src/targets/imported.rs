//! Imports an input as the file of another tool, and defines the targets of tools whose files need no more than that.
//!
//! Every import of one file keeps a promise: it gives a trace that can be read completely, or an error of one sentence.

use super::wire;
use crate::bytes::{self, MutateBytes};
use crate::outcome::{self, Choice};
use crate::{Target, scratch};
use fastrand::Rng;
use gapscope_import::{
    Error, Imported, Importer, Options, counters_csv, ggml, memory_snapshot, perfetto, xplane,
};
use gapscope_trace::{Diagnostic, Selection, Trace, read};
use std::path::{Path, PathBuf};

/// Tables of counters of Xcode: comma-separated values.
pub const COUNTERS_CSV: Target = Target {
    name: "counters_csv",
    read: |input| import(&counters_csv::IMPORTER, input),
    mutate: |input, rng, mutate_bytes| change(input, rng, mutate_bytes, bytes::change_lines),
};

/// Logs of ggml's Vulkan backend: lines of text.
pub const GGML: Target = Target {
    name: "ggml",
    read: |input| import(&ggml::IMPORTER, input),
    mutate: |input, rng, mutate_bytes| change(input, rng, mutate_bytes, bytes::change_lines),
};

/// Snapshots of PyTorch's memory: a pickle.
pub const MEMORY_SNAPSHOT: Target = Target {
    name: "memory_snapshot",
    read: |input| import(&memory_snapshot::IMPORTER, input),
    mutate: |input, rng, mutate_bytes| change(input, rng, mutate_bytes, bytes::change_value),
};

/// Perfetto's traces: packets of protobuf.
pub const PERFETTO: Target = Target {
    name: "perfetto",
    read: |input| import(&perfetto::IMPORTER, input),
    mutate: |input, rng, mutate_bytes| change(input, rng, mutate_bytes, wire::change),
};

/// Profiles of JAX: one message of protobuf.
pub const XPLANE: Target = Target {
    name: "xplane",
    read: |input| import(&xplane::IMPORTER, input),
    mutate: |input, rng, mutate_bytes| change(input, rng, mutate_bytes, wire::change),
};

/// Mutates an input: one time in four a value, two times in four a part of its format (a line, a field) by `change_part`,
/// else any bytes by the fuzzer's own mutation.
fn change(
    input: &mut Vec<u8>,
    rng: &mut Rng,
    mutate_bytes: MutateBytes<'_>,
    change_part: fn(&mut Vec<u8>, &mut Rng),
) {
    match rng.u8(0..4) {
        0 => bytes::change_value(input, rng),
        1 | 2 => change_part(input, rng),
        _ => mutate_bytes(input, rng),
    }
}

/// Imports an input by one importer, as a file named `input`.
fn import(importer: &Importer, input: &[u8]) {
    let import = |files: &[PathBuf], output: &Path| {
        // Whatever the file is, `recognises` must answer without a panic.
        let _ = (importer.recognises)(&files[0]);
        importer.import(files, output, &Options::default(), &|_, _| ())
    };
    check("input", input, input, import, |_, _| {});
}

/// Imports `file` under a name, and makes one of gapscope's outputs (a report, a page, an export, ...) of the trace after
/// `check_trace` has checked it with its diagnostics. `input`, of which the file was made, chooses the output. An error
/// must be one line, and leave no trace behind.
pub(super) fn check(
    name: &str,
    input: &[u8],
    file: &[u8],
    import: impl FnOnce(&[PathBuf], &Path) -> Result<Imported, Error>,
    check_trace: impl FnOnce(&Trace, &[Diagnostic]),
) {
    let folder = scratch::folder();
    let path = scratch::file(folder.path(), name, file);
    let output = folder.path().join("out.gapscope");
    match import(&[path], &output) {
        Ok(_) => {
            let read = read(&output, &Selection::all());
            let (trace, diagnostics) = read.expect("what was written can be read");
            check_trace(&trace, &diagnostics);
            outcome::show(&trace, &[], Choice::from_input(input));
        }
        Err(error) => {
            let text = error.to_string();
            assert!(!text.contains('\n'), "{text}");
            assert!(!output.exists(), "a failed import leaves nothing behind");
        }
    }
}
