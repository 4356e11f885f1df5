//! Databases and documents of profilers: exports of Nsight Systems, rocpd, rocprofv3's JSON.
//!
//! An input is such a file, or the rows of one as text, of which a sound database is made, so that changes reach what becomes of
//! rows.

use super::{imported, planted};
use crate::Target;
use crate::bytes::{self, MutateBytes};
use fastrand::Rng;
use gapscope_import::{Options, import};
use gapscope_trace::Diagnostic;
use std::borrow::Cow;
use std::path::{Path, PathBuf};

/// The target.
pub const TARGET: Target = Target {
    name: "database",
    read,
    mutate,
};

/// The first bytes of a database.
const MAGIC: &[u8] = b"SQLite format 3";

/// Returns true if an input is a file and not rows.
fn is_file(input: &[u8]) -> bool {
    input.starts_with(MAGIC) || input.trim_ascii_start().starts_with(b"{")
}

/// Imports an input. A trace that comes out may only have diagnostics about missing submissions.
fn read(input: &[u8]) {
    let file = match is_file(input) {
        true => Cow::Borrowed(input),
        false => Cow::Owned(planted::database(&String::from_utf8_lossy(input))),
    };
    let import =
        |files: &[PathBuf], output: &Path| import(files, output, &Options::default(), &|_, _| {});
    imported::check("input", input, &file, import, |_, diagnostics| {
        // If the launch of a graph is missing, its id names nothing.
        let is_launch = |found: &Diagnostic| found.to_string().contains("submission");
        assert!(diagnostics.iter().all(is_launch), "{diagnostics:?}");
    });
}

/// Changes databases by cutting them or at the start of a page, texts by value or line, and both at any byte.
fn mutate(input: &mut Vec<u8>, rng: &mut Rng, mutate_bytes: MutateBytes<'_>) {
    match (input.starts_with(MAGIC), rng.u8(0..4)) {
        (true, 0) => {
            let at = rng.usize(0..input.len());
            input.truncate(at);
        }
        // Pages begin with their headers and with the offsets into them.
        (true, 1 | 2) => {
            let pages = input.len() / 512;
            let at = 512 * rng.usize(0..=pages) + rng.usize(0..16);
            if let Some(byte) = input.get_mut(at) {
                *byte = rng.u8(..);
            }
        }
        (false, 0 | 1) => bytes::change_value(input, rng),
        (false, 2) => bytes::change_lines(input, rng),
        _ => mutate_bytes(input, rng),
    }
}
