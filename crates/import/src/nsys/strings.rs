//! Keeps the texts of an export.

use super::Import;
use crate::Error;
use rustc_hash::FxHashMap;
use std::sync::Arc;

/// The texts by their ids.
#[derive(Debug, Default)]
pub(super) struct Strings {
    bytes: Vec<u8>,
    /// The start and end of each text.
    places: FxHashMap<i64, (usize, usize)>,
}

impl Strings {
    /// Returns the text with an id; bytes that are not UTF-8 are replaced.
    pub fn get(&self, id: i64) -> Option<std::borrow::Cow<'_, str>> {
        let (start, end) = *self.places.get(&id)?;
        Some(String::from_utf8_lossy(self.bytes.get(start..end)?))
    }
}

impl Import {
    pub(super) fn read_strings(&mut self) -> Result<(), Error> {
        let mut strings = Strings::default();
        self.scan("StringIds", &["id", "value"], |_, row| {
            if let (Some(id), Some(text)) = (row.integer(0), row.text(1)) {
                let start = strings.bytes.len();
                strings.bytes.extend_from_slice(text);
                strings.places.insert(id, (start, strings.bytes.len()));
            }
        })?;
        self.strings = Arc::new(strings);
        Ok(())
    }
}
