//! JSON, written as it comes.

use crate::texts::Texts;
use std::io::{self, Write};

/// The texts as JSON strings; the id is the index.
pub(crate) fn strings(texts: &Texts) -> Vec<String> {
    texts.all().iter().map(|text| string(text)).collect()
}

/// A text as a JSON string.
pub(crate) fn string(text: &str) -> String {
    serde_json::Value::from(text).to_string()
}

/// Lists with commas between what is in them.
#[derive(Debug, Default)]
pub(crate) struct Commas(bool);

impl Commas {
    /// A list that goes on: something is in it already, or nothing.
    pub fn after(any: bool) -> Commas {
        Commas(any)
    }

    /// Before each part.
    pub fn next(&mut self, out: &mut impl Write) -> io::Result<()> {
        match std::mem::replace(&mut self.0, true) {
            true => out.write_all(b",\n"),
            false => out.write_all(b"\n"),
        }
    }
}
