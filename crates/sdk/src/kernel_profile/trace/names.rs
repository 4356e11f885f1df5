//! Ids of texts.

use gapscope_trace::tables::{Label, Labels as LabelTable, Table};
use rustc_hash::FxHashMap;
use std::hash::Hash;
use std::sync::Arc;

/// Things with their ids, in the order in which they came.
pub(super) struct Ids<T> {
    texts: Vec<T>,
    ids: FxHashMap<T, u32>,
}

impl<T> Default for Ids<T> {
    fn default() -> Ids<T> {
        Ids {
            texts: Vec::new(),
            ids: FxHashMap::default(),
        }
    }
}

impl<T: Clone + Eq + Hash> Ids<T> {
    pub fn id(&mut self, text: T) -> u32 {
        if let Some(id) = self.ids.get(&text) {
            return *id;
        }
        let id = self.texts.len() as u32;
        self.texts.push(text.clone());
        self.ids.insert(text, id);
        id
    }

    pub fn texts(&self) -> &[T] {
        &self.texts
    }
}

/// Labels in their nesting.
#[derive(Default)]
pub(super) struct Labels(Ids<(Option<u32>, Arc<str>)>);

impl Labels {
    /// The id of a label inside another; without a text, that of the other.
    pub fn id(&mut self, parent: Option<u32>, text: &str) -> Option<u32> {
        match text.is_empty() {
            true => parent,
            false => Some(self.0.id((parent, Arc::from(text)))),
        }
    }

    pub fn put_into(&self, table: &mut LabelTable) {
        for (id, (parent, text)) in self.0.texts().iter().enumerate() {
            table.push(Label {
                id: id as u32,
                text: text.to_string(),
                parent: *parent,
            });
        }
    }
}
