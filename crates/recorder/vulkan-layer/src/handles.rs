//! Maps Vulkan handles (the numbers by which programs name objects) to the layer's state of the objects.

use std::collections::HashMap;
use std::hash::{BuildHasherDefault, Hasher};
use std::sync::atomic::{AtomicU64, Ordering::Relaxed};
use std::sync::{Mutex, MutexGuard, PoisonError};

/// Hashes handles. They are addresses or counters, which one multiplication spreads well enough.
#[derive(Default)]
pub struct HandleHasher(u64);

impl Hasher for HandleHasher {
    fn write(&mut self, bytes: &[u8]) {
        for byte in bytes {
            self.write_u64(u64::from(*byte));
        }
    }
    fn write_u64(&mut self, value: u64) {
        self.0 = (self.0 ^ value)
            .wrapping_mul(0x9E37_79B9_7F4A_7C15)
            .rotate_left(26);
    }
    fn finish(&self) -> u64 {
        self.0
    }
}

/// A hash map keyed by raw handle.
pub type HandleMap<T> = HashMap<u64, T, BuildHasherDefault<HandleHasher>>;

/// The number of parts of a map, each with a lock of its own.
const SHARDS: usize = 16;

/// A map for objects that several threads create and use, in shards so that they rarely contend.
pub struct Handles<T> {
    shards: [Mutex<HandleMap<T>>; SHARDS],
}

impl<T> Default for Handles<T> {
    fn default() -> Handles<T> {
        Handles {
            shards: std::array::from_fn(|_| Mutex::default()),
        }
    }
}

impl<T> Handles<T> {
    /// Locks the part of the map that a handle belongs to.
    fn shard(&self, handle: u64) -> MutexGuard<'_, HandleMap<T>> {
        let mut hasher = HandleHasher::default();
        hasher.write_u64(handle);
        lock(&self.shards[hasher.finish() as usize >> 7 & (SHARDS - 1)])
    }

    pub fn insert(&self, handle: u64, value: T) {
        self.shard(handle).insert(handle, value);
    }

    pub fn remove(&self, handle: u64) -> Option<T> {
        self.shard(handle).remove(&handle)
    }

    /// Reads or changes the value of a handle; `None` where the handle is not known.
    pub fn with<R>(&self, handle: u64, read: impl FnOnce(&mut T) -> R) -> Option<R> {
        self.shard(handle).get_mut(&handle).map(read)
    }

    /// Returns a copy of the value of a handle; `None` where the handle is not known.
    pub fn get(&self, handle: u64) -> Option<T>
    where
        T: Clone,
    {
        self.with(handle, |value| value.clone())
    }
}

/// Tells objects apart for the life of the process, as handles are used again.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct Serial(u64);

impl Serial {
    /// Returns a serial number that no other object of the process has.
    pub fn next() -> Serial {
        static NEXT: AtomicU64 = AtomicU64::new(0);
        Serial(NEXT.fetch_add(1, Relaxed))
    }
}

/// Locks a mutex. A panic of the layer while it was held (caught by the guard) does not matter to what these locks
/// protect.
pub fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}
