//! Stores each distinct text of the file once and gives it an id, by its bytes between quotes.

use super::json;
use rustc_hash::FxHashMap;
use std::sync::Arc;

/// The id of a text.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub(super) struct TextId(pub(super) u32);

/// The texts in the order of their ids.
#[derive(Debug, Default)]
pub(super) struct Texts {
    ids: FxHashMap<Box<[u8]>, TextId>,
    texts: Vec<Arc<str>>,
}

impl Texts {
    /// Returns the id of a text from the bytes between its quotes.
    #[inline]
    pub(super) fn id(&mut self, written: &[u8]) -> TextId {
        if let Some(id) = self.ids.get(written) {
            return *id;
        }
        let id = TextId(self.texts.len() as u32);
        self.texts.push(Arc::from(&*json::text(written)));
        self.ids.insert(Box::from(written), id);
        id
    }

    pub(super) fn get(&self, id: TextId) -> &Arc<str> {
        &self.texts[id.0 as usize]
    }
}
