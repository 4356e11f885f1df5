//! Builds the tables of a trace: interned ids and labels that every producer of a trace needs. To intern a thing is
//! to give it an id at its first occurrence and the same id at each later one.
//!
//! Producers push whole rows that name all columns, so that a new column does not compile until each producer handles
//! it.

use crate::ids::{CounterId, DeviceId, FrameId, KernelId, LabelId, ProcessId, QueueId, StackId};
use crate::tables::{Label, Labels as LabelTable, Table};
use rustc_hash::FxHashMap;
use serde::{Deserialize, Serialize};
use std::hash::Hash;
use std::sync::Arc;

/// An id that counts things up from 0.
pub trait CountedId: Copy {
    /// Returns the id of the thing at `index`.
    fn counted(index: usize) -> Self;
    /// Returns the index of the thing with this id.
    fn index(self) -> usize;
}

/// Implements [`CountedId`] for types of ids.
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
    CounterId, KernelId, LabelId, ProcessId, DeviceId, QueueId, StackId, FrameId, TextId
);

/// Gives equal keys the same id. Ids count up from 0 in the order in which the keys are first seen.
#[derive(Debug, Clone, Serialize, Deserialize)]
#[serde(
    bound = "K: Serialize + serde::de::DeserializeOwned + Eq + Hash, I: Serialize + serde::de::DeserializeOwned"
)]
pub struct Interner<K, I> {
    /// The id of each key.
    ids: FxHashMap<K, I>,
    /// The keys, in the order of their ids.
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
    /// Returns the id of a key, which gets a new id if it is new.
    pub fn id(&mut self, key: K) -> I {
        if let Some(id) = self.ids.get(&key) {
            return *id;
        }
        let id = I::counted(self.keys.len());
        self.keys.push(key.clone());
        self.ids.insert(key, id);
        id
    }

    /// Returns the id of a key; `None` for one that was not interned before.
    pub fn known<Q: ?Sized + Eq + Hash>(&self, key: &Q) -> Option<I>
    where
        K: std::borrow::Borrow<Q>,
    {
        self.ids.get(key).copied()
    }

    /// Returns the key with this id.
    pub fn get(&self, id: I) -> Option<&K> {
        self.keys.get(id.index())
    }

    /// Returns all keys with their ids, in order.
    pub fn iter(&self) -> impl Iterator<Item = (I, &K)> {
        let keys = self.keys.iter().enumerate();
        keys.map(|(index, key)| (I::counted(index), key))
    }

    /// Returns the number of keys.
    pub fn len(&self) -> usize {
        self.keys.len()
    }

    /// Returns true when there are no keys.
    pub fn is_empty(&self) -> bool {
        self.keys.is_empty()
    }
}

/// The id of a label's own text, which many labels may share.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(transparent)]
pub struct TextId(u32);

/// The labels of a trace: one for each text in its nesting, so that one text inside two parents makes two labels.
#[derive(Debug, Clone, Default, Serialize, Deserialize)]
pub struct Labels {
    texts: Interner<Arc<str>, TextId>,
    labels: Interner<(Option<LabelId>, TextId), LabelId>,
}

impl Labels {
    /// Returns the id of a text, which gets a new id if it is new.
    pub fn text(&mut self, text: &str) -> TextId {
        match self.texts.known(text) {
            Some(id) => id,
            None => self.texts.id(Arc::from(text)),
        }
    }

    /// Returns the text of an id; empty for an id that another `Labels` made.
    pub fn text_of(&self, text: TextId) -> &str {
        self.texts.get(text).map_or("", |text| text)
    }

    /// Returns the shared text of an id; empty for an id that another `Labels` made.
    pub fn shared_text(&self, text: TextId) -> Arc<str> {
        self.texts.get(text).cloned().unwrap_or_default()
    }

    /// Returns the label of a text inside `parent`. The label gets a new id if it is new. Without a parent it is an
    /// outermost one.
    pub fn label(&mut self, parent: Option<LabelId>, text: TextId) -> LabelId {
        self.labels.id((parent, text))
    }

    /// Returns the label `text` inside `parent`.
    pub fn named(&mut self, parent: Option<LabelId>, text: &str) -> LabelId {
        let text = self.text(text);
        self.label(parent, text)
    }

    /// Returns true if there is not a single label.
    pub fn is_empty(&self) -> bool {
        self.labels.iter().next().is_none()
    }

    /// Returns the label around a label, and the label's own text; `None` for an id that another `Labels` made.
    pub fn parts_of(&self, label: LabelId) -> Option<(Option<LabelId>, TextId)> {
        self.labels.get(label).copied()
    }

    /// Appends a row for each label.
    pub fn push_into(&self, table: &mut LabelTable) {
        for (id, (parent, text)) in self.labels.iter() {
            table.push(Label {
                id,
                text: self.shared_text(*text),
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
