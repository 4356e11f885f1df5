//! Allocations and memory pools.

use super::objects::Objects;
use super::{Losses, NO_TIMES, known_time};
use crate::cupti::fields::{self, Record};
use crate::hash::FastMap;
use crate::recorder::Recorder;
use gapscope_spool::Event;
use gapscope_spool::event::{PoolEdge, heap};

/// VkMemoryPropertyFlags: device-local; visible to the host, coherent and cached.
const DEVICE_LOCAL: u32 = 1;
const HOST: u32 = 2 | 4 | 8;

#[derive(Debug, Default)]
pub struct Memory {
    /// By address: when it was allocated, and its id.
    live: FastMap<u64, (i64, u32)>,
    /// Older allocations at addresses that are in use again: their frees have not come yet, for records have no order.
    older: Vec<(u64, i64, u32)>,
    next: u32,
    pools: FastMap<(u32, u64), u32>,
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
            let Some(at_ns) = known_time(record.get(AT)) else {
                losses.add("memory events", NO_TIMES);
                return;
            };
            match record.get(OPERATION) {
                1 => {
                    self.next += 1;
                    if let Some((before_ns, before)) = self.live.insert(address, (at_ns, self.next))
                    {
                        self.older.push((address, before_ns, before));
                    }
                    let (heap, flags) = heap_of(record.get(KIND), record.get(POOL_TYPE) != 0);
                    recorder.write(&Event::Allocate {
                        memory: self.next,
                        device: objects.device(record.get(DEVICE), recorder),
                        heap,
                        flags,
                        bytes: record.get(BYTES),
                        at_ns,
                    });
                }
                2 => match self.freed(address, at_ns) {
                    Some(memory) => recorder.write(&Event::Free { memory, at_ns }),
                    None => losses.add("memory frees", "their allocation was not recorded"),
                },
                _ => losses.add("memory events", "CUPTI does not say what they are"),
            }
        }
    }

    /// The allocation at `address` that a free at `at_ns` ends: the last one that was made before.
    fn freed(&mut self, address: u64, at_ns: i64) -> Option<u32> {
        if let Some((made_ns, memory)) = self.live.get(&address).copied()
            && made_ns <= at_ns
        {
            self.live.remove(&address);
            return Some(memory);
        }
        let fits =
            |(_, (at, made_ns, _)): &(usize, &(u64, i64, u32))| *at == address && *made_ns <= at_ns;
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
            let Some(at_ns) = known_time(record.get(AT)) else {
                losses.add("memory pool events", NO_TIMES);
                return;
            };
            let device = record.get(DEVICE);
            let key = (device, record.get(ADDRESS));
            let next = self.pools.len() as u32 + 1;
            let pool = *self.pools.entry(key).or_insert(next);
            recorder.write(&Event::Pool {
                pool,
                device: objects.device(device, recorder),
                edge: match record.get(OPERATION) {
                    1 => PoolEdge::Begin,
                    2 => PoolEdge::End,
                    3 => PoolEdge::Change,
                    _ => PoolEdge::Unknown,
                },
                bytes: record.get(BYTES),
                used_bytes: record.get(USED),
                at_ns,
            });
        }
    }
}

/// Heap and flags of a CUpti_ActivityMemoryKind.
fn heap_of(kind: u32, pooled: bool) -> (u32, u32) {
    match kind {
        1 | 2 => (heap::PINNED, HOST),
        5 | 7 => (heap::MANAGED, DEVICE_LOCAL | HOST),
        _ if pooled => (heap::POOL, DEVICE_LOCAL),
        _ => (heap::DEVICE, DEVICE_LOCAL),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_free_that_comes_late_ends_the_allocation_of_its_own_time() {
        let mut memory = Memory::default();
        memory.live.insert(7, (10, 1));
        // The address is allocated again at 30; the free at 20 has not come yet.
        let before = memory.live.insert(7, (30, 2)).map(|(at, id)| (7, at, id));
        memory.older.extend(before);
        assert_eq!(memory.freed(7, 20), Some(1));
        assert_eq!(memory.freed(7, 40), Some(2));
        assert_eq!(memory.freed(7, 50), None);
    }
}
