//! Writes parts of JSON that several formats share: strings, and the commas of lists.

use crate::texts::Texts;
use std::io::{self, Write};

/// Returns the texts as JSON strings, by the ids of the texts.
pub(crate) fn strings(texts: &Texts) -> Vec<String> {
    texts.all().iter().map(|text| string(text)).collect()
}

/// Returns a text as a JSON string.
pub(crate) fn string(text: &str) -> String {
    serde_json::Value::from(text).to_string()
}

/// Writes the commas of a list. The value is whether an element has been written.
#[derive(Debug, Default)]
pub(crate) struct CommaList(bool);

impl CommaList {
    /// Continues a list that already has elements if `any`.
    pub fn after(any: bool) -> CommaList {
        CommaList(any)
    }

    /// Writes what comes before the next element: a comma, unless it is the first, and a line break.
    pub fn next(&mut self, out: &mut impl Write) -> io::Result<()> {
        match std::mem::replace(&mut self.0, true) {
            true => out.write_all(b",\n"),
            false => out.write_all(b"\n"),
        }
    }
}
