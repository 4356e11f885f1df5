//! Addresses that a program reserves, and memory that is mapped there.

use super::address_space::BLOCK;
use super::memory::OUT_OF_MEMORY;
use super::{CONTEXT, INVALID_VALUE, SUCCESS, driver};
use crate::config::config;
use std::ffi::{c_int, c_uint, c_void};

// Every pointer is the caller's variable or structure, as in CUDA.

#[unsafe(no_mangle)]
pub unsafe extern "C" fn cuMemGetAllocationGranularity(
    bytes: *mut usize,
    _properties: *const c_void,
    _option: c_uint,
) -> c_int {
    // SAFETY: the caller's variable.
    unsafe { *bytes = BLOCK as usize };
    SUCCESS
}

fn are_blocks(number: u64) -> bool {
    number > 0 && number.is_multiple_of(BLOCK)
}

/// Reserves the wished addresses if they are free and a multiple of 32 MiB; others are rounded up to it, as on an H100.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn cuMemAddressReserve(
    address: *mut u64,
    bytes: usize,
    alignment: usize,
    wish: u64,
    flags: u64,
) -> c_int {
    let is_power = alignment == 0 || alignment.is_power_of_two();
    if !are_blocks(bytes as u64) || !is_power || flags != 0 {
        return INVALID_VALUE;
    }
    let others = config().other_addresses;
    let made = (driver().memory.space).reserve(wish, bytes as u64, others);
    // SAFETY: the caller's variable.
    unsafe { *address = made.unwrap_or_default() };
    if made.is_some() {
        SUCCESS
    } else {
        OUT_OF_MEMORY
    }
}

#[unsafe(no_mangle)]
pub extern "C" fn cuMemAddressFree(address: u64, bytes: usize) -> c_int {
    match driver().memory.space.give_back(address, bytes as u64) {
        true => SUCCESS,
        false => INVALID_VALUE,
    }
}

#[unsafe(no_mangle)]
pub unsafe extern "C" fn cuMemCreate(
    handle: *mut usize,
    bytes: usize,
    _properties: *const c_void,
    _flags: u64,
) -> c_int {
    if !are_blocks(bytes as u64) {
        return INVALID_VALUE;
    }
    let mut driver = driver();
    let made = driver.handle();
    driver.memory.physical.insert(made, bytes as u64);
    // SAFETY: the caller's variable.
    unsafe { *handle = made };
    SUCCESS
}

/// No memory of a program is mapped; replays ask nothing of theirs.
#[unsafe(no_mangle)]
pub extern "C" fn cuMemRetainAllocationHandle(_handle: usize, _address: usize) -> c_int {
    INVALID_VALUE
}

/// What is mapped stays until it is unmapped.
#[unsafe(no_mangle)]
pub extern "C" fn cuMemRelease(handle: usize) -> c_int {
    match driver().memory.physical.remove(&handle) {
        Some(_) => SUCCESS,
        None => INVALID_VALUE,
    }
}

#[unsafe(no_mangle)]
pub extern "C" fn cuMemMap(
    address: u64,
    bytes: usize,
    offset: usize,
    handle: usize,
    _flags: u64,
) -> c_int {
    let mut driver = driver();
    let has = driver.memory.physical.get(&handle).copied();
    let is_whole = are_blocks(bytes as u64) && address.is_multiple_of(BLOCK) && offset == 0;
    if has != Some(bytes as u64) || !is_whole {
        return INVALID_VALUE;
    }
    match (driver.memory.space).map(address, bytes as u64, CONTEXT.get()) {
        true => SUCCESS,
        false => INVALID_VALUE,
    }
}

#[unsafe(no_mangle)]
pub extern "C" fn cuMemSetAccess(
    address: u64,
    bytes: usize,
    _access: *const c_void,
    _count: usize,
) -> c_int {
    match driver().memory.space.set_access(address, bytes as u64) {
        true => SUCCESS,
        false => INVALID_VALUE,
    }
}

#[unsafe(no_mangle)]
pub extern "C" fn cuMemUnmap(address: u64, bytes: usize) -> c_int {
    match driver().memory.space.unmap(address, bytes as u64) {
        true => SUCCESS,
        false => INVALID_VALUE,
    }
}
