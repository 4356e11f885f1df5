//! Making the tables of a trace: what every producer of one shares.
//!
//! Rows are pushed as rows, with all their columns named, so that a new column does not compile where nobody thought
//! of it.

use crate::ids::{DeviceId, FrameId, KernelId, LabelId, ProcessId, QueueId, StackId};
use crate::tables::{Label, Labels as LabelTable, Table};
use rustc_hash::FxHashMap;
use serde::{Deserialize, Serialize};
use std::hash::Hash;
use std::sync::Arc;

/// An id of things that are counted.
pub trait CountedId: Copy {
    /// The id of the thing that is `index`th, from 0.
    fn counted(index: usize) -> Self;
    /// Its index.
    fn index(self) -> usize;
}

macro_rules! counted {
    ($($name:ident),+) => {$(
        impl CountedId for $name {
            fn counted(index: usize) -> Self {
                $name(index as _)
            }
            fn index(self) -> usize {
                self.0 as usize
            }
        }
    )+};
}
counted!(
    KernelId, LabelId, ProcessId, DeviceId, QueueId, StackId, FrameId, TextId
);

/// Gives things that are equal the same id, in the order in which they are first seen, from 0.
#[derive(Debug, Clone, Serialize, Deserialize)]
#[serde(
    bound = "K: Serialize + serde::de::DeserializeOwned + Eq + Hash, I: Serialize + serde::de::DeserializeOwned"
)]
pub struct Interner<K, I> {
    ids: FxHashMap<K, I>,
    keys: Vec<K>,
}

impl<K, I> Default for Interner<K, I> {
    fn default() -> Self {
        Interner {
            ids: FxHashMap::default(),
            keys: Vec::new(),
        }
    }
}

impl<K: Clone + Eq + Hash, I: CountedId> Interner<K, I> {
    /// The id of a thing.
    pub fn id(&mut self, key: K) -> I {
        if let Some(id) = self.ids.get(&key) {
            return *id;
        }
        let id = I::counted(self.keys.len());
        self.keys.push(key.clone());
        self.ids.insert(key, id);
        id
    }

    /// The id of a thing that may be known already, as which it can be borrowed.
    pub fn known<Q: ?Sized + Eq + Hash>(&self, key: &Q) -> Option<I>
    where
        K: std::borrow::Borrow<Q>,
    {
        self.ids.get(key).copied()
    }

    /// The thing with this id.
    pub fn get(&self, id: I) -> Option<&K> {
        self.keys.get(id.index())
    }

    /// All things with their ids, in order.
    pub fn iter(&self) -> impl Iterator<Item = (I, &K)> {
        let keys = self.keys.iter().enumerate();
        keys.map(|(index, key)| (I::counted(index), key))
    }

    /// How many there are.
    pub fn len(&self) -> usize {
        self.keys.len()
    }

    /// True when there is none.
    pub fn is_empty(&self) -> bool {
        self.keys.is_empty()
    }
}

/// A text of labels, which many labels may have.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(transparent)]
pub struct TextId(u32);

/// The labels of a trace: one for each text in its nesting.
#[derive(Debug, Clone, Default, Serialize, Deserialize)]
pub struct Labels {
    texts: Interner<Arc<str>, TextId>,
    labels: Interner<(Option<LabelId>, TextId), LabelId>,
}

impl Labels {
    /// The id of a text.
    pub fn text(&mut self, text: &str) -> TextId {
        match self.texts.known(text) {
            Some(id) => id,
            None => self.texts.id(Arc::from(text)),
        }
    }

    /// The text of an id; empty for one that was not made here.
    pub fn text_of(&self, text: TextId) -> &str {
        self.texts.get(text).map_or("", |text| text)
    }

    /// The label of a text inside `parent`.
    pub fn label(&mut self, parent: Option<LabelId>, text: TextId) -> LabelId {
        self.labels.id((parent, text))
    }

    /// The label `text` inside `parent`.
    pub fn named(&mut self, parent: Option<LabelId>, text: &str) -> LabelId {
        let text = self.text(text);
        self.label(parent, text)
    }

    /// Appends a row for each label.
    pub fn push_into(&self, table: &mut LabelTable) {
        for (id, (parent, text)) in self.labels.iter() {
            table.push(Label {
                id,
                text: self.texts.get(*text).cloned().unwrap_or_default(),
                parent: *parent,
            });
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_label_is_made_once_for_each_text_in_its_nesting() {
        let mut labels = Labels::default();
        let step = labels.named(None, "step");
        let inner = labels.named(Some(step), "step");
        assert_ne!(step, inner);
        assert_eq!(labels.named(Some(step), "step"), inner);
        let mut table = LabelTable::default();
        labels.push_into(&mut table);
        assert_eq!(table.id, [step, inner]);
        assert_eq!(table.parent, [None, Some(step)]);
        assert!(table.text.iter().all(|text| &**text == "step"));
    }
}
