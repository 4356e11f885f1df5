//! Keeps the texts of an export, to which its rows refer by id.

use rustc_hash::FxHashMap;

/// The texts of an export.
#[derive(Debug, Default)]
pub(super) struct Strings {
    /// All texts, one behind the other.
    bytes: Vec<u8>,
    /// The start and end of each text, by its id.
    places: FxHashMap<i64, (usize, usize)>,
}

impl Strings {
    /// Returns the text with an id; bytes that are not UTF-8 are replaced. `None` if the export lacks the text.
    pub fn get(&self, id: i64) -> Option<std::borrow::Cow<'_, str>> {
        let (start, end) = *self.places.get(&id)?;
        Some(String::from_utf8_lossy(self.bytes.get(start..end)?))
    }

    /// Adds a text with its id.
    pub fn push(&mut self, id: i64, text: &[u8]) {
        let start = self.bytes.len();
        self.bytes.extend_from_slice(text);
        self.places.insert(id, (start, self.bytes.len()));
    }
}
