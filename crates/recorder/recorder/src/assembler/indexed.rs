//! Provides a vector that is indexed by ids of the trace, which count from 0.

use gapscope_trace::build::CountedId;
use serde::de::DeserializeOwned;
use serde::{Deserialize, Serialize};
use std::marker::PhantomData;
use std::ops::{Index, IndexMut};

/// A vector whose elements have the ids from 0 on.
#[derive(Debug, Serialize, Deserialize)]
#[serde(bound = "T: Serialize + DeserializeOwned")]
pub struct Indexed<I, T> {
    items: Vec<T>,
    #[serde(skip)]
    id: PhantomData<fn() -> I>,
}

impl<I, T> Default for Indexed<I, T> {
    fn default() -> Self {
        Indexed {
            items: Vec::new(),
            id: PhantomData,
        }
    }
}

impl<I: CountedId, T> Indexed<I, T> {
    /// Returns the id of the next element.
    pub fn next_id(&self) -> I {
        I::counted(self.items.len())
    }

    /// Appends an element and returns its id.
    pub fn push(&mut self, item: T) -> I {
        let id = self.next_id();
        self.items.push(item);
        id
    }

    pub fn iter_mut(&mut self) -> impl Iterator<Item = &mut T> {
        self.items.iter_mut()
    }

    /// Returns the element with an id.
    pub fn get(&self, id: I) -> Option<&T> {
        self.items.get(id.index())
    }

    /// Returns the element with an id for changes.
    pub fn get_mut(&mut self, id: I) -> Option<&mut T> {
        self.items.get_mut(id.index())
    }

    /// Returns all ids in order.
    pub fn ids(&self) -> impl Iterator<Item = I> + use<I, T> {
        (0..self.items.len()).map(I::counted)
    }

    /// Returns all elements in the order of their ids.
    pub fn iter(&self) -> std::slice::Iter<'_, T> {
        self.items.iter()
    }

    pub fn len(&self) -> usize {
        self.items.len()
    }
}

impl<I: CountedId, T> Index<I> for Indexed<I, T> {
    type Output = T;

    fn index(&self, id: I) -> &T {
        &self.items[id.index()]
    }
}

impl<I: CountedId, T> IndexMut<I> for Indexed<I, T> {
    fn index_mut(&mut self, id: I) -> &mut T {
        &mut self.items[id.index()]
    }
}
