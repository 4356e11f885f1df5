//! Turns CUPTI's records of memory operations into events: allocations, frees and memory pools.

use super::devices::Devices;
use super::losses::{Losses, NO_TIMES};
use super::times;
use crate::cupti::fields::{self, Record};
use crate::recorder::Recorder;
use gapscope_spool::event::{CommonEvent, CudaEvent, LossKind, PoolEdge, PoolState, heap};
use gapscope_spool::ids;
use rustc_hash::FxHashMap;
use std::collections::VecDeque;

/// The most older allocations that are kept of an address: their frees come soon, or are lost.
const MAX_OLDER: usize = 16;

/// The ids of allocations and memory pools, by their addresses.
#[derive(Debug, Default)]
pub struct Memory {
    /// The live allocations by address.
    live: FxHashMap<u64, Allocation>,
    /// Older allocations at addresses that are in use again, the oldest first: their frees have not come yet, since
    /// records are not in order.
    older: FxHashMap<u64, VecDeque<Allocation>>,
    /// The id of the last allocation.
    next: u32,
    pools: FxHashMap<PoolKey, ids::Pool>,
}

/// An allocation, with the time at which it was made.
#[derive(Debug, Clone, Copy)]
struct Allocation {
    id: ids::Allocation,
    made_ns: i64,
}

/// A memory pool, by its device and its address.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
struct PoolKey {
    device: u32,
    address: u64,
}

impl Memory {
    /// Writes an allocation or a free as an event; what cannot be told is counted as lost.
    ///
    /// # Safety
    /// The record is a memory operation's.
    pub unsafe fn record(
        &mut self,
        record: &Record<'_>,
        devices: &mut Devices,
        losses: &mut Losses,
        recorder: &Recorder,
    ) {
        use fields::memory::*;
        // SAFETY: as the caller promises.
        unsafe {
            let address = record.get(ADDRESS);
            let Some(at_ns) = times::known(record.get(AT)) else {
                losses.add(LossKind::MemoryEvents, NO_TIMES);
                return;
            };
            // CUpti_ActivityMemoryOperationType: 1 is an allocation, 2 a free.
            match record.get(OPERATION) {
                1 => {
                    self.next += 1;
                    let memory = ids::Allocation(self.next);
                    if self.made(address, memory, at_ns).is_some() {
                        let reason = "their address was allocated again and again meanwhile";
                        losses.add(LossKind::MemoryFrees, reason);
                    }
                    let heap = heap_of(record.get(KIND), record.get(POOL_TYPE) != 0);
                    if heap == heap::MANAGED {
                        let reason = "pages move when they are used, without a call";
                        losses.add(LossKind::ManagedAllocations, reason);
                    }
                    recorder.write(&CommonEvent::Allocate {
                        memory,
                        device: devices.id(record.get(DEVICE), recorder),
                        heap,
                        bytes: record.get(BYTES),
                        at_ns,
                    });
                }
                2 => match self.freed(address, at_ns) {
                    Some(memory) => recorder.write(&CommonEvent::Free { memory, at_ns }),
                    None => losses.add(LossKind::MemoryFrees, "their allocation was not recorded"),
                },
                _ => losses.add(LossKind::MemoryEvents, "CUPTI does not say what they are"),
            }
        }
    }

    /// Keeps an allocation. Returns an older one whose free is no longer waited for.
    fn made(&mut self, address: u64, id: ids::Allocation, made_ns: i64) -> Option<Allocation> {
        let before = self.live.insert(address, Allocation { id, made_ns })?;
        let older = self.older.entry(address).or_default();
        older.push_back(before);
        (older.len() > MAX_OLDER).then(|| older.pop_front())?
    }

    /// Returns the allocation at `address` that a free at `at_ns` ends: the last one that was made before.
    fn freed(&mut self, address: u64, at_ns: i64) -> Option<ids::Allocation> {
        if let Some(live) = self.live.get(&address).copied()
            && live.made_ns <= at_ns
        {
            self.live.remove(&address);
            return Some(live.id);
        }
        let older = self.older.get_mut(&address)?;
        let before = older.iter().enumerate();
        let (index, _) = before
            .filter(|(_, before)| before.made_ns <= at_ns)
            .max_by_key(|(_, before)| before.made_ns)?;
        let freed = older.remove(index)?;
        if older.is_empty() {
            self.older.remove(&address);
        }
        Some(freed.id)
    }

    /// Writes the state of a memory pool as an event.
    ///
    /// # Safety
    /// The record is a memory pool's.
    pub unsafe fn pool(
        &mut self,
        record: &Record<'_>,
        devices: &mut Devices,
        losses: &mut Losses,
        recorder: &Recorder,
    ) {
        use fields::pool::*;
        // SAFETY: as the caller promises.
        unsafe {
            let Some(at_ns) = times::known(record.get(AT)) else {
                losses.add(LossKind::MemoryPoolEvents, NO_TIMES);
                return;
            };
            let device = record.get(DEVICE);
            let key = PoolKey {
                device,
                address: record.get(ADDRESS),
            };
            let next = ids::Pool(self.pools.len() as u32 + 1);
            let pool = *self.pools.entry(key).or_insert(next);
            recorder.write(&CudaEvent::Pool(PoolState {
                pool,
                device: devices.id(device, recorder),
                edge: match record.get(OPERATION) {
                    2 => PoolEdge::End,
                    _ => PoolEdge::Change,
                },
                bytes: record.get(BYTES),
                at_ns,
            }));
        }
    }
}

/// Returns the heap of a CUpti_ActivityMemoryKind.
fn heap_of(kind: u32, pooled: bool) -> u32 {
    match kind {
        1 | 2 => heap::PINNED,
        5 | 7 => heap::MANAGED,
        _ if pooled => heap::POOL,
        _ => heap::DEVICE,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Frees that never come, such as those of memory that another library frees, must not make later ones slow.
    #[test]
    fn allocations_without_frees_at_the_same_addresses_stay_few() {
        let mut memory = Memory::default();
        for at in 0..100_000 {
            memory.made(at % 2, ids::Allocation(at as u32 + 1), at as i64);
        }
        let older = memory.older.values().map(VecDeque::len).sum::<usize>();
        assert!(older <= 2 * MAX_OLDER, "{older}");
        // The newest older allocation is still known.
        assert_eq!(memory.freed(0, 99_997), Some(ids::Allocation(99_997)));
    }

    #[test]
    fn a_free_that_comes_late_ends_the_allocation_of_its_own_time() {
        let mut memory = Memory::default();
        memory.made(7, ids::Allocation(1), 10);
        // The address is allocated again at 30; the free at 20 has not come yet.
        memory.made(7, ids::Allocation(2), 30);
        assert_eq!(memory.freed(7, 20), Some(ids::Allocation(1)));
        assert_eq!(memory.freed(7, 40), Some(ids::Allocation(2)));
        assert_eq!(memory.freed(7, 50), None);
    }
}
