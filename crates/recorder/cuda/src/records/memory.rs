//! Allocations and memory pools.

use super::devices::Devices;
use super::losses::{Losses, NO_TIMES};
use super::times;
use crate::cupti::fields::{self, Record};
use crate::recorder::Recorder;
use gapscope_spool::event::{CommonEvent, CudaEvent, LossKind, PoolEdge, heap};
use gapscope_spool::ids;
use rustc_hash::FxHashMap;

#[derive(Debug, Default)]
pub struct Memory {
    /// By address.
    live: FxHashMap<u64, Allocation>,
    /// Older allocations at addresses that are in use again: their frees have not come yet, since records are not in order.
    older: Vec<(u64, Allocation)>,
    next: u32,
    pools: FxHashMap<PoolKey, ids::Pool>,
}

#[derive(Debug, Clone, Copy)]
struct Allocation {
    id: ids::Allocation,
    made_ns: i64,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
struct PoolKey {
    device: u32,
    address: u64,
}

impl Memory {
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
            match record.get(OPERATION) {
                1 => {
                    self.next += 1;
                    let memory = ids::Allocation(self.next);
                    self.made(address, memory, at_ns);
                    let heap = heap_of(record.get(KIND), record.get(POOL_TYPE) != 0);
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

    fn made(&mut self, address: u64, id: ids::Allocation, made_ns: i64) {
        let before = self.live.insert(address, Allocation { id, made_ns });
        self.older.extend(before.map(|before| (address, before)));
    }

    /// The allocation at `address` that a free at `at_ns` ends: the last one that was made before.
    fn freed(&mut self, address: u64, at_ns: i64) -> Option<ids::Allocation> {
        if let Some(live) = self.live.get(&address).copied()
            && live.made_ns <= at_ns
        {
            self.live.remove(&address);
            return Some(live.id);
        }
        let older = self.older.iter().enumerate();
        let (index, _) = older
            .filter(|(_, (at, before))| *at == address && before.made_ns <= at_ns)
            .max_by_key(|(_, (_, before))| before.made_ns)?;
        Some(self.older.swap_remove(index).1.id)
    }

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
            recorder.write(&CudaEvent::Pool {
                pool,
                device: devices.id(device, recorder),
                edge: match record.get(OPERATION) {
                    2 => PoolEdge::End,
                    _ => PoolEdge::Change,
                },
                bytes: record.get(BYTES),
                at_ns,
            });
        }
    }
}

/// The heap of a CUpti_ActivityMemoryKind.
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
