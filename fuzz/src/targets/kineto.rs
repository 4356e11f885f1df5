//! Chrome's JSON: a document, the file that is imported.

use crate::bytes::{self, Any};
use crate::outcome::{self, Choice};
use crate::{Target, json, scratch};
use fastrand::Rng;
use gapscope_import::{Options, kineto};
use gapscope_trace::Selection;

/// The target.
pub const TARGET: Target = Target {
    name: "kineto",
    read,
    mutate,
};

fn read(input: &[u8]) {
    let folder = scratch::folder();
    let path = scratch::file(folder.path(), "run.json", input);
    let output = folder.path().join("run.gapscope");
    let imported = kineto::IMPORTER.import(&[path], &output, &Options::default(), &|_, _| ());
    if let Err(error) = imported {
        assert!(!output.exists(), "{error} left something behind");
        return;
    }
    let (trace, diagnostics) =
        gapscope_trace::read(&output, &Selection::all()).expect("what an import wrote can be read");
    assert!(diagnostics.is_empty(), "{diagnostics:?}");
    let work = trace.tables.dispatches.duration_ns.iter();
    assert!(work.flatten().all(|ns| ns >= 0), "work of negative length");
    outcome::show(&trace, &[], Choice::from_input(input));
}

fn mutate(input: &mut Vec<u8>, rng: &mut Rng, any: Any<'_>) {
    match rng.u8(0..8) {
        0 => any(input, rng),
        1 => bytes::change_lines(input, rng),
        2 => bytes::change_value(input, rng),
        _ => match serde_json::from_slice(input) {
            Ok(mut document) => {
                json::change(&mut document, rng);
                *input = serde_json::to_vec(&document).unwrap_or_default();
            }
            Err(_) => bytes::change_value(input, rng),
        },
    }
}
