//! Checks the promise of every import of one file: it gives a trace that can be read completely, or an error of one
//! sentence.

use crate::outcome::{self, Choice};
use crate::scratch;
use gapscope_import::{Importer, Options};
use gapscope_trace::{Selection, read};

/// Imports an input as a file.
pub(super) fn import(importer: &Importer, input: &[u8]) {
    let folder = scratch::folder();
    let path = scratch::file(folder.path(), "input", input);
    // `recognises` must accept every file.
    let _ = (importer.recognises)(&path);
    let output = folder.path().join("out.gapscope");
    let progress = |_: u64, _: u64| {};
    match importer.import(&[path], &output, &Options::default(), &progress) {
        Ok(_) => {
            let (trace, _) =
                read(&output, &Selection::all()).expect("what was written can be read");
            outcome::show(&trace, &[], Choice::from_input(input));
        }
        Err(error) => {
            let text = error.to_string();
            assert!(!text.contains('\n'), "{text}");
            assert!(!output.exists(), "a failed import leaves nothing behind");
        }
    }
}
