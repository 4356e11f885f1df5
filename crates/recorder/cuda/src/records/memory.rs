//! Allocations and memory pools.

use super::losses::{Losses, NO_TIMES};
use super::objects::Objects;
use super::times;
use crate::cupti::fields::{self, Record};
use crate::recorder::Recorder;
use gapscope_spool::event::{CommonEvent, CudaEvent, LossKind, PoolEdge, heap};
use gapscope_spool::ids;
use rustc_hash::FxHashMap;

#[derive(Debug, Default)]
pub struct Memory {
    /// By address: when it was allocated, and its id.
    live: FxHashMap<u64, (i64, ids::Allocation)>,
    /// Older allocations at addresses that are in use again: their frees have not come yet, since records are not in order.
    older: Vec<(u64, i64, ids::Allocation)>,
    next: u32,
    pools: FxHashMap<(u32, u64), ids::Pool>,
}

impl Memory {
    /// # Safety
    /// It is a memory operation's record.
    pub unsafe fn record(
        &mut self,
        record: &Record<'_>,
        objects: &mut Objects,
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
                    if let Some((before_ns, before)) = self.live.insert(address, (at_ns, memory)) {
                        self.older.push((address, before_ns, before));
                    }
                    let heap = heap_of(record.get(KIND), record.get(POOL_TYPE) != 0);
                    recorder.write(&CommonEvent::Allocate {
                        memory,
                        device: objects.device(record.get(DEVICE), recorder),
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

    /// The allocation at `address` that a free at `at_ns` ends: the last one that was made before.
    fn freed(&mut self, address: u64, at_ns: i64) -> Option<ids::Allocation> {
        if let Some((made_ns, memory)) = self.live.get(&address).copied()
            && made_ns <= at_ns
        {
            self.live.remove(&address);
            return Some(memory);
        }
        let fits = |(_, (at, made_ns, _)): &(usize, &(u64, i64, ids::Allocation))| {
            *at == address && *made_ns <= at_ns
        };
        let (index, _) = self
            .older
            .iter()
            .enumerate()
            .filter(fits)
            .max_by_key(|(_, (_, made_ns, _))| *made_ns)?;
        Some(self.older.swap_remove(index).2)
    }

    /// # Safety
    /// It is a memory pool's record.
    pub unsafe fn pool(
        &mut self,
        record: &Record<'_>,
        objects: &mut Objects,
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
            let key = (device, record.get(ADDRESS));
            let next = ids::Pool(self.pools.len() as u32 + 1);
            let pool = *self.pools.entry(key).or_insert(next);
            recorder.write(&CudaEvent::Pool {
                pool,
                device: objects.device(device, recorder),
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

/// Heap and flags of a CUpti_ActivityMemoryKind.
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
        memory.live.insert(7, (10, ids::Allocation(1)));
        // The address is allocated again at 30; the free at 20 has not come yet.
        let before = memory
            .live
            .insert(7, (30, ids::Allocation(2)))
            .map(|(at, id)| (7, at, id));
        memory.older.extend(before);
        assert_eq!(memory.freed(7, 20), Some(ids::Allocation(1)));
        assert_eq!(memory.freed(7, 40), Some(ids::Allocation(2)));
        assert_eq!(memory.freed(7, 50), None);
    }
}
