//! Defines [`Texts`], which keeps each distinct text that an export shows once, under a number.

use rustc_hash::FxHashMap;

/// The index of a text in [`Texts`].
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub(crate) struct TextId(pub u32);

/// The most characters of a text; a longer one is cut, because viewers repeat names a million times and lay out each.
/// The trace has it whole.
const MAX_CHARACTERS: usize = 1000;

/// Cuts a text that is too long.
pub(crate) fn cut(text: &str) -> String {
    match text.char_indices().nth(MAX_CHARACTERS) {
        Some((end, _)) => format!("{}…", &text[..end]),
        None => text.to_owned(),
    }
}

/// Distinct texts in the order of their first use.
#[derive(Debug, Default)]
pub(crate) struct Texts {
    all: Vec<String>,
    /// The id of each text.
    ids: FxHashMap<String, TextId>,
}

impl Texts {
    /// Returns the id of a text, which is cut if it is too long.
    pub fn add(&mut self, text: &str) -> TextId {
        let text = cut(text);
        if let Some(id) = self.ids.get(&text) {
            return *id;
        }
        let id = TextId(self.all.len() as u32);
        self.all.push(text.clone());
        self.ids.insert(text, id);
        id
    }

    /// Returns all texts, by their ids.
    pub fn all(&self) -> &[String] {
        &self.all
    }
}

impl std::ops::Index<TextId> for Texts {
    type Output = String;

    fn index(&self, id: TextId) -> &String {
        &self.all[id.0 as usize]
    }
}
