//! Device memory: addresses without memory behind them, which are used again as soon as they are free.

use super::{CONTEXT, INVALID_CONTEXT, INVALID_VALUE, SUCCESS, call};
use crate::names::Call;
use crate::{cupti, records};
use std::collections::HashMap;
use std::ffi::c_int;

#[derive(Default)]
pub struct Memory {
    /// Bytes and kind of live allocations, by address.
    live: HashMap<u64, (u64, u32)>,
    /// Freed addresses, with bytes and kind.
    free: Vec<(u64, (u64, u32))>,
    next: u64,
    pool_bytes: u64,
    pool_used: u64,
}

/// CUPTI_ACTIVITY_MEMORY_KIND_DEVICE, CUPTI_ACTIVITY_MEMORY_KIND_MANAGED
pub const DEVICE: u32 = 3;
pub const MANAGED: u32 = 5;
const POOL: u64 = 0x7000_0000;

pub fn allocate(call_of: Call, bytes: u64, kind: u32, pooled: bool) -> Result<u64, c_int> {
    let mut made = 0;
    let code = call(call_of, |driver, correlation, at| {
        let context = CONTEXT.get();
        if context == 0 {
            return INVALID_CONTEXT;
        }
        let device = driver.device_of(context);
        let memory = &mut driver.memory;
        let same = memory
            .free
            .iter()
            .rposition(|(_, had)| *had == (bytes, kind));
        made = match same {
            Some(index) => memory.free.swap_remove(index).0,
            None => {
                memory.next += bytes.next_multiple_of(512);
                0x7f00_0000_0000 + memory.next
            }
        };
        memory.live.insert(made, (bytes, kind));
        let mut cupti = cupti::state();
        if pooled {
            let is_new = memory.pool_bytes == 0;
            memory.pool_used += bytes;
            memory.pool_bytes = memory.pool_bytes.max(memory.pool_used);
            if is_new {
                let record = records::MemoryPool {
                    kind: records::MEMORY_POOL,
                    operation: 1,
                    pool_type: 1,
                    correlation_id: correlation,
                    device_id: device,
                    address: POOL,
                    size: memory.pool_bytes,
                    timestamp: cupti.stamp(at),
                    utilized_size: memory.pool_used,
                    ..records::MemoryPool::default()
                };
                cupti.record(records::MEMORY_POOL, &record);
            }
        }
        let record = records::Memory {
            kind: records::MEMORY2,
            operation: 1,
            memory_kind: kind,
            correlation_id: correlation,
            address: made,
            bytes,
            timestamp: cupti.stamp(at),
            device_id: device,
            context_id: context,
            is_async: pooled.into(),
            pool_type: pooled.into(),
            pool_address: if pooled { POOL } else { 0 },
            pool_size: memory.pool_bytes,
            utilized_size: memory.pool_used,
            ..records::Memory::default()
        };
        cupti.record(records::MEMORY2, &record);
        SUCCESS
    });
    if code == SUCCESS { Ok(made) } else { Err(code) }
}

pub fn free(call_of: Call, address: u64) -> c_int {
    call(call_of, |driver, correlation, at| {
        let device = driver.device_of(CONTEXT.get().max(1));
        let memory = &mut driver.memory;
        let Some((bytes, kind)) = memory.live.remove(&address) else {
            return INVALID_VALUE;
        };
        memory.free.push((address, (bytes, kind)));
        let mut cupti = cupti::state();
        let record = records::Memory {
            kind: records::MEMORY2,
            operation: 2,
            memory_kind: kind,
            correlation_id: correlation,
            address,
            bytes,
            timestamp: cupti.stamp(at),
            device_id: device,
            context_id: CONTEXT.get(),
            ..records::Memory::default()
        };
        cupti.record(records::MEMORY2, &record);
        SUCCESS
    })
}
