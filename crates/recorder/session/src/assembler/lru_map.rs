//! A map that forgets what was not asked for lately, so that its memory stays bounded.

use rustc_hash::FxHashMap;
use serde::{Deserialize, Serialize};
use std::borrow::Borrow;
use std::hash::Hash;

/// Keys of one generation.
const GENERATION: usize = 1 << 16;

/// Remembers at least the last [`GENERATION`] keys that were added or asked for, and at most twice as many.
#[derive(Debug, Serialize, Deserialize)]
pub struct Recent<K: Eq + Hash, V> {
    young: FxHashMap<K, V>,
    old: FxHashMap<K, V>,
}

impl<K: Eq + Hash, V> Default for Recent<K, V> {
    fn default() -> Self {
        Recent {
            young: FxHashMap::default(),
            old: FxHashMap::default(),
        }
    }
}

impl<K: Eq + Hash, V> Recent<K, V> {
    /// The value of a key, which is then young again.
    #[inline]
    pub fn get<Q: Eq + Hash + ?Sized>(&mut self, key: &Q) -> Option<&V>
    where
        K: Borrow<Q>,
    {
        if !self.young.contains_key(key) {
            let (key, value) = self.old.remove_entry(key)?;
            self.insert(key, value);
        }
        // Adding it may have begun a new generation.
        self.young.get(key).or_else(|| self.old.get(key))
    }

    /// Adds a key. True: what was not asked for lately has been forgotten.
    pub fn insert(&mut self, key: K, value: V) -> bool {
        self.young.insert(key, value);
        let full = self.young.len() >= GENERATION;
        if full {
            // The space is used again.
            std::mem::swap(&mut self.young, &mut self.old);
            self.young.clear();
        }
        full
    }

    /// All values.
    pub fn values(&self) -> impl Iterator<Item = &V> {
        self.young.values().chain(self.old.values())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_asked_for_stays_and_the_rest_is_forgotten() {
        let mut recent: Recent<u32, u32> = Recent::default();
        recent.insert(u32::MAX, 7);
        for key in 0..10 * GENERATION as u32 {
            recent.insert(key, key);
            if key % 1000 == 0 {
                assert_eq!(recent.get(&u32::MAX), Some(&7));
            }
            assert_eq!(recent.get(&key), Some(&key));
        }
        assert_eq!(recent.get(&0), None);
        assert!(recent.values().count() <= 2 * GENERATION);
    }
}
