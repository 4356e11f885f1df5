//! Provides a map of bounded memory that forgets keys which were not used recently.

use rustc_hash::FxHashMap;
use serde::{Deserialize, Serialize};
use std::borrow::Borrow;
use std::hash::Hash;

/// The number of keys of a generation.
const GENERATION_KEYS: usize = 1 << 16;

/// A map that remembers at least the last [`GENERATION_KEYS`] keys that were inserted or read, and at most twice as
/// many.
#[derive(Debug, Serialize, Deserialize)]
pub struct LruMap<K: Eq + Hash, V> {
    /// The keys that were used last; when they are [`GENERATION_KEYS`], they become the old ones.
    young: FxHashMap<K, V>,
    /// The keys of the generation before, which are forgotten next.
    old: FxHashMap<K, V>,
}

impl<K: Eq + Hash, V> Default for LruMap<K, V> {
    fn default() -> Self {
        LruMap {
            young: FxHashMap::default(),
            old: FxHashMap::default(),
        }
    }
}

impl<K: Eq + Hash, V> LruMap<K, V> {
    /// Returns the value of a key and moves the key to the young generation.
    #[inline]
    pub fn get<Q: Eq + Hash + ?Sized>(&mut self, key: &Q) -> Option<&V>
    where
        K: Borrow<Q>,
    {
        if !self.young.contains_key(key) {
            let (key, value) = self.old.remove_entry(key)?;
            self.insert(key, value);
        }
        // Inserting the key may have begun a new generation.
        self.young.get(key).or_else(|| self.old.get(key))
    }

    /// Inserts a key. Returns true if keys that were not used recently were forgotten.
    pub fn insert(&mut self, key: K, value: V) -> bool {
        self.young.insert(key, value);
        let full = self.young.len() >= GENERATION_KEYS;
        if full {
            // Swapping reuses the memory.
            std::mem::swap(&mut self.young, &mut self.old);
            self.young.clear();
        }
        full
    }

    pub fn values(&self) -> impl Iterator<Item = &V> {
        self.young.values().chain(self.old.values())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_asked_for_stays_and_the_rest_is_forgotten() {
        let mut map: LruMap<u32, u32> = LruMap::default();
        map.insert(u32::MAX, 7);
        for key in 0..10 * GENERATION_KEYS as u32 {
            map.insert(key, key);
            if key % 1000 == 0 {
                assert_eq!(map.get(&u32::MAX), Some(&7));
            }
            assert_eq!(map.get(&key), Some(&key));
        }
        assert_eq!(map.get(&0), None);
        assert!(map.values().count() <= 2 * GENERATION_KEYS);
    }
}
