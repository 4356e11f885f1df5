//! Exports of xctrace (the command of Apple's Instruments): documents of XML with a zero byte between them, each a
//! file of the folder that is imported.

use crate::bytes::{self, MutateBytes};
use crate::outcome::{self, Choice};
use crate::{Target, scratch};
use fastrand::Rng;
use gapscope_import::{Options, xctrace};

/// The target.
pub const TARGET: Target = Target {
    name: "xctrace",
    read,
    mutate,
};

/// Checks each document, and shows the trace where all of them give one.
fn read(input: &[u8]) {
    let folder = scratch::folder();
    for (number, document) in input.split(|byte| *byte == 0).enumerate() {
        let path = scratch::file(folder.path(), &format!("{number:03}.xml"), document);
        if let Ok(checked) = xctrace::check(&path) {
            // `<row/>` is the shortest row.
            assert!(checked.rows <= document.len() as u64 / 6, "{checked:?}");
        }
    }
    match xctrace::read(&[folder.path().to_owned()], &Options::default()) {
        Ok(trace) => outcome::show(&trace, &[], Choice::from_input(input)),
        Err(error) => drop(error.to_string()),
    }
}

/// Changes elements across documents, or one document.
fn mutate(input: &mut Vec<u8>, rng: &mut Rng, mutate_bytes: MutateBytes<'_>) {
    match rng.u8(0..8) {
        0 => mutate_bytes(input, rng),
        1 | 2 => change_elements(input, rng),
        _ => {
            let mut documents: Vec<Vec<u8>> =
                input.split(|byte| *byte == 0).map(<[u8]>::to_vec).collect();
            let at = rng.usize(0..documents.len());
            match rng.u8(0..8) {
                0 => drop(documents.remove(at)),
                1 => bytes::change_lines(&mut documents[at], rng),
                2 => mutate_bytes(&mut documents[at], rng),
                _ => bytes::change_value(&mut documents[at], rng),
            }
            *input = documents.join(&0);
        }
    }
}

/// Doubles, removes or exchanges the text between two `<`.
fn change_elements(input: &mut Vec<u8>, rng: &mut Rng) {
    let mut parts: Vec<&[u8]> = input.split(|byte| *byte == b'<').collect();
    let (at, to) = (rng.usize(0..parts.len()), rng.usize(0..parts.len()));
    let end = (at + rng.usize(1..=12)).min(parts.len());
    match rng.u8(0..3) {
        0 => drop(parts.splice(to..to, parts[at..end].to_vec())),
        1 => drop(parts.drain(at..end)),
        _ => parts.swap(at, to),
    }
    *input = parts.join(&b'<');
}
