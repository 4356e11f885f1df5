//! A table from the program's handles to a number for each, of fixed size, which the program's threads use without
//! a lock.

use std::sync::atomic::AtomicU64;
use std::sync::atomic::Ordering::{AcqRel, Acquire, Relaxed};

/// The number of slots in which a handle may be; where all are taken, the handle is not kept.
const SLOTS_PER_HANDLE: usize = 16;

/// A table of at most `SLOTS` handles, whose numbers are 0 at first.
pub struct HandleTable<const SLOTS: usize>([Slot; SLOTS]);

/// A slot of the table: a handle and its number.
struct Slot {
    /// The handle; 0 marks a free slot.
    handle: AtomicU64,
    number: AtomicU64,
}

impl<const SLOTS: usize> HandleTable<SLOTS> {
    pub const fn new() -> Self {
        HandleTable(
            [const {
                Slot {
                    handle: AtomicU64::new(0),
                    number: AtomicU64::new(0),
                }
            }; SLOTS],
        )
    }

    /// Returns the slot of a handle; a handle that has none gets one where `make` says so. `None`: the handle is null
    /// or unknown, or all slots in which it may be are taken.
    pub fn find(&self, handle: usize, make: bool) -> Option<usize> {
        let handle = handle as u64;
        if handle == 0 {
            return None;
        }
        // Handles are addresses.
        let first = (handle.wrapping_mul(0x9E37_79B9_7F4A_7C15) >> 48) as usize;
        for at in (first..first + SLOTS_PER_HANDLE).map(|at| at % SLOTS) {
            let slot = &self.0[at].handle;
            let there = match slot.load(Acquire) {
                0 if make => match slot.compare_exchange(0, handle, AcqRel, Acquire) {
                    Ok(_) => handle,
                    Err(other) => other,
                },
                there => there,
            };
            match there {
                there if there == handle => return Some(at),
                0 => return None,
                _ => {}
            }
        }
        None
    }

    /// Returns the number in a slot.
    pub fn number(&self, slot: usize) -> &AtomicU64 {
        &self.0[slot].number
    }

    /// Returns the numbers of all handles.
    pub fn numbers(&self) -> impl Iterator<Item = &AtomicU64> {
        let used = self.0.iter().filter(|slot| slot.handle.load(Relaxed) != 0);
        used.map(|slot| &slot.number)
    }
}
