//! Allocations, which are used again as soon as they are free, and what the driver says of addresses.

use super::address_space::{AddressSpace, MemoryKind};
use super::{CONTEXT, INVALID_CONTEXT, INVALID_VALUE, SUCCESS, call, driver};
use crate::config::config;
use crate::names::Call;
use crate::{cupti, records};
use std::ffi::{c_int, c_uint, c_void};

/// CUDA_ERROR_OUT_OF_MEMORY
pub const OUT_OF_MEMORY: c_int = 2;
/// CUDA_ERROR_HOST_MEMORY_ALREADY_REGISTERED, CUDA_ERROR_HOST_MEMORY_NOT_REGISTERED
const ALREADY_REGISTERED: c_int = 712;
const NOT_REGISTERED: c_int = 713;

#[derive(Default)]
pub struct Memory {
    pub space: AddressSpace,
    /// Freed addresses, with bytes and kind.
    free: Vec<(u64, (u64, u32))>,
    pool_bytes: u64,
    pool_used: u64,
    /// The handles of physical memory, with its bytes.
    pub physical: std::collections::HashMap<usize, u64>,
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
        let same = memory.free.iter().rposition(|(_, had)| {
            let is_larger = config().reuses_larger && had.0 > bytes && had.1 == kind;
            *had == (bytes, kind) || is_larger
        });
        let place = match kind {
            MANAGED => MemoryKind::Managed,
            _ => MemoryKind::Device,
        };
        let found = match same {
            Some(index) => {
                let (address, _) = memory.free.swap_remove(index);
                memory.space.add(address, bytes, place, context);
                Some(address)
            }
            None => memory.space.allocate(bytes, place, context),
        };
        let Some(address) = found else {
            return OUT_OF_MEMORY;
        };
        made = address;
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
        let kind = match memory.space.find(address) {
            Some((begin, range)) if begin == address => match range.place {
                MemoryKind::Device => DEVICE,
                MemoryKind::Managed => MANAGED,
                _ => return INVALID_VALUE,
            },
            _ => return INVALID_VALUE,
        };
        let Some(range) = memory.space.remove(address) else {
            return INVALID_VALUE;
        };
        let bytes = range.bytes;
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

// Every pointer is the caller's variable, as in CUDA.

#[unsafe(no_mangle)]
pub unsafe extern "C" fn cuMemGetAddressRange_v2(
    base: *mut u64,
    bytes: *mut usize,
    address: u64,
) -> c_int {
    let Some((begin, range)) = driver().memory.space.find(address) else {
        return super::NOT_FOUND;
    };
    // SAFETY: the caller's variables, or null.
    unsafe {
        if !base.is_null() {
            *base = begin;
        }
        if !bytes.is_null() {
            *bytes = range.bytes as usize;
        }
    }
    SUCCESS
}

/// Says one thing of an address: `cuda.h` numbers the attributes as `CUpointer_attribute`.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn cuPointerGetAttribute(
    value: *mut c_void,
    attribute: c_uint,
    address: u64,
) -> c_int {
    let driver = driver();
    let Some((begin, range)) = driver.memory.space.find(address) else {
        return INVALID_VALUE;
    };
    let is_host = matches!(range.place, MemoryKind::Host { .. });
    // SAFETY: the caller's variable, of the attribute's type.
    unsafe {
        match attribute {
            // CONTEXT, DEVICE_POINTER, HOST_POINTER
            1 => *value.cast::<usize>() = range.context as usize,
            3 => *value.cast::<u64>() = address,
            4 if is_host || range.place == MemoryKind::Managed => *value.cast::<u64>() = address,
            // MEMORY_TYPE: CU_MEMORYTYPE_HOST or CU_MEMORYTYPE_DEVICE
            2 => *value.cast::<c_uint>() = if is_host { 1 } else { 2 },
            // IS_MANAGED and MAPPED
            8 => *value.cast::<u8>() = (range.place == MemoryKind::Managed).into(),
            13 => *value.cast::<u8>() = 1,
            // DEVICE_ORDINAL
            9 => *value.cast::<c_int>() = driver.device_of(range.context.max(1)) as c_int,
            // IS_LEGACY_CUDA_IPC_CAPABLE
            10 => *value.cast::<u8>() = (range.place == MemoryKind::Device).into(),
            // RANGE_START_ADDR, RANGE_SIZE
            11 => *value.cast::<u64>() = begin,
            12 => *value.cast::<usize>() = range.bytes as usize,
            // MEMPOOL_HANDLE
            17 => *value.cast::<usize>() = 0,
            _ => return INVALID_VALUE,
        }
    }
    SUCCESS
}

/// Says several things of an address: those that do not apply are 0.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn cuPointerGetAttributes(
    count: c_uint,
    attributes: *const c_uint,
    values: *const *mut c_void,
    address: u64,
) -> c_int {
    for at in 0..count as usize {
        // SAFETY: the caller's arrays of so many attributes and places.
        unsafe { cuPointerGetAttribute(*values.add(at), *attributes.add(at), address) };
    }
    SUCCESS
}

#[unsafe(no_mangle)]
pub unsafe extern "C" fn cuMemAllocHost_v2(address: *mut u64, bytes: usize) -> c_int {
    let place = MemoryKind::Host { registered: false };
    let made = (driver().memory.space).allocate(bytes as u64, place, CONTEXT.get());
    // SAFETY: the caller's variable.
    unsafe { *address = made.unwrap_or_default() };
    if made.is_some() {
        SUCCESS
    } else {
        OUT_OF_MEMORY
    }
}

#[unsafe(no_mangle)]
pub unsafe extern "C" fn cuMemHostAlloc(address: *mut u64, bytes: usize, _: c_uint) -> c_int {
    // SAFETY: as the caller of this one promises.
    unsafe { cuMemAllocHost_v2(address, bytes) }
}

#[unsafe(no_mangle)]
pub extern "C" fn cuMemFreeHost(address: u64) -> c_int {
    let mut driver = driver();
    match driver.memory.space.find(address) {
        Some((begin, range))
            if begin == address && range.place == (MemoryKind::Host { registered: false }) =>
        {
            driver.memory.space.remove(address);
            let at = address.next_multiple_of(4096);
            let pages = (range.bytes.saturating_sub(at - address)) / 4096 * 4096;
            // SAFETY: the whole pages of the memory are used no more.
            unsafe { libc::madvise(at as *mut c_void, pages as usize, libc::MADV_DONTNEED) };
            SUCCESS
        }
        _ => INVALID_VALUE,
    }
}

#[unsafe(no_mangle)]
pub extern "C" fn cuMemHostRegister_v2(address: u64, bytes: usize, _flags: c_uint) -> c_int {
    let space = &mut driver().memory.space;
    let last = address.saturating_add(bytes as u64).saturating_sub(1);
    if space.find(address).is_some() || space.find(last).is_some() {
        return ALREADY_REGISTERED;
    }
    let place = MemoryKind::Host { registered: true };
    space.add(address, bytes as u64, place, CONTEXT.get());
    SUCCESS
}

#[unsafe(no_mangle)]
pub extern "C" fn cuMemHostUnregister(address: u64) -> c_int {
    let space = &mut driver().memory.space;
    match space.find(address) {
        Some((begin, range))
            if begin == address && range.place == (MemoryKind::Host { registered: true }) =>
        {
            space.remove(address);
            SUCCESS
        }
        _ => NOT_REGISTERED,
    }
}

/// Page-locked memory has one address for the host and for devices.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn cuMemHostGetDevicePointer_v2(
    device: *mut u64,
    address: u64,
    _flags: c_uint,
) -> c_int {
    let found = driver().memory.space.find(address);
    if !found.is_some_and(|(_, range)| matches!(range.place, MemoryKind::Host { .. })) {
        return INVALID_VALUE;
    }
    // SAFETY: the caller's variable.
    unsafe { *device = address };
    SUCCESS
}
