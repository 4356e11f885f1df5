//! The target for Chrome's JSON of PyTorch's profiler (Kineto): an input is a document, the file that is imported.

use super::imported;
use crate::bytes::{self, MutateBytes};
use crate::{Target, json};
use fastrand::Rng;
use gapscope_import::{Options, kineto};
use std::path::{Path, PathBuf};

/// The target.
pub const TARGET: Target = Target {
    name: "kineto",
    read,
    mutate,
};

/// Imports an input. A trace that comes out must have no diagnostics, and no work of negative length.
fn read(input: &[u8]) {
    let import = |files: &[PathBuf], output: &Path| {
        kineto::IMPORTER.import(files, output, &Options::default(), &|_, _| ())
    };
    imported::check("run.json", input, input, import, |trace, diagnostics| {
        assert!(diagnostics.is_empty(), "{diagnostics:?}");
        let work = trace.tables.dispatches.duration_ns.iter();
        assert!(work.flatten().all(|ns| ns >= 0), "work of negative length");
    });
}

/// Changes the document so that it mostly stays JSON.
fn mutate(input: &mut Vec<u8>, rng: &mut Rng, mutate_bytes: MutateBytes<'_>) {
    match rng.u8(0..8) {
        0 => mutate_bytes(input, rng),
        1 => bytes::change_lines(input, rng),
        2 => bytes::change_value(input, rng),
        _ if json::change_document(input, rng) => {}
        _ => bytes::change_value(input, rng),
    }
}
