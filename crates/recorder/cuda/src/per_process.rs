//! Holds a value that each process has for itself: a forked child gets a new one and never touches its parent's,
//! whose lock another thread of the parent may hold forever.

use std::sync::atomic::AtomicPtr;
use std::sync::atomic::Ordering::{AcqRel, Acquire};

/// A value that each process has for itself: a forked child leaves its parent's alone and gets a new one.
pub struct PerProcess<T: 'static> {
    /// The value made last; null before the first.
    current: AtomicPtr<Tagged<T>>,
}

/// A value, with the generation (count of forks) of the process that it belongs to.
struct Tagged<T> {
    generation: u32,
    value: T,
}

impl<T: Send + Sync> PerProcess<T> {
    pub const fn new() -> PerProcess<T> {
        PerProcess {
            current: AtomicPtr::new(std::ptr::null_mut()),
        }
    }

    /// Returns this process's value, which `make` creates at the first use. It lives as long as the process.
    #[inline]
    pub fn get(&self, make: impl FnOnce() -> T) -> &'static T {
        let generation = gapscope_spool::writer::generation();
        let current = self.current.load(Acquire);
        // SAFETY: null, or leaked by `replace` and never freed or changed.
        match unsafe { current.as_ref() } {
            Some(held) if held.generation == generation => &held.value,
            _ => self.replace(current, generation, make()),
        }
    }

    /// Returns this process's value, where it has one.
    pub fn existing(&self) -> Option<&'static T> {
        // SAFETY: as in `get`.
        let held = unsafe { self.current.load(Acquire).as_ref() }?;
        (held.generation == gapscope_spool::writer::generation()).then_some(&held.value)
    }

    /// Stores a new value, unless another thread has stored one since `current` was read; returns the stored one.
    #[cold]
    fn replace(&self, current: *mut Tagged<T>, generation: u32, value: T) -> &'static T {
        let new = Box::into_raw(Box::new(Tagged { generation, value }));
        let used = match self.current.compare_exchange(current, new, AcqRel, Acquire) {
            Ok(_) => new,
            Err(other) => {
                // SAFETY: it was made above, and nobody else has it.
                drop(unsafe { Box::from_raw(new) });
                other
            }
        };
        // SAFETY: as in `get`; it is not null, since only this function stores, and never null.
        unsafe { &(*used).value }
    }
}
