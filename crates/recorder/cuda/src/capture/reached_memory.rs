//! Finds the memory that a launch can reach: words of its parameters and of memory go in, the allocations that they lie
//! in come out.
//!
//! No call that allocates is followed. The driver says of any address which allocation it lies in, and only few words of
//! real data could be addresses: those in the parts of the address space that the driver has reserved for the GPU.

use super::copier::Range;
use super::driver_functions::DriverFunctions;
use super::refusal::Refusal;
use std::ffi::c_void;

/// CUpointer_attribute: CU_POINTER_ATTRIBUTE_MEMORY_TYPE, …_IS_MANAGED, …_DEVICE_ORDINAL
const MEMORY_TYPE: i32 = 2;
const IS_MANAGED: i32 = 8;
const DEVICE_ORDINAL: i32 = 9;
/// CUmemorytype: CU_MEMORYTYPE_HOST, …_DEVICE, …_UNIFIED
const HOST: u32 = 1;
const DEVICE: u32 = 2;
const UNIFIED: u32 = 4;
/// No memory of a GPU lies below this address, which small numbers would otherwise reach.
const MIN_ADDRESS: u64 = 1 << 32;
/// Addresses of processes end here.
const MAX_ADDRESS: u64 = 1 << 47;

/// The kind of an allocation.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum AllocationKind {
    Device,
    Host,
}

/// An allocation.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Allocation {
    pub range: Range,
    pub kind: AllocationKind,
}

/// The parts of the address space that may hold memory of the GPU.
#[derive(Debug, Default)]
pub struct AddressSpace {
    /// The parts in order: start and end.
    parts: Vec<(u64, u64)>,
}

impl AddressSpace {
    /// Reads the mappings of this process. The driver reserves the addresses of all memory of the GPU in them, by
    /// mappings that the processor cannot read, or of its own device files; page-locked memory is mapped as usual.
    pub fn of_this_process() -> AddressSpace {
        let maps = std::fs::read_to_string("/proc/self/maps").unwrap_or_default();
        AddressSpace::from_maps(&maps)
    }

    fn from_maps(maps: &str) -> AddressSpace {
        let mut parts: Vec<(u64, u64)> = Vec::new();
        for line in maps.lines() {
            let mut fields = line.split_ascii_whitespace();
            let (Some(range), Some(access)) = (fields.next(), fields.next()) else {
                continue;
            };
            let is_file = fields.nth(3).is_some_and(|path| {
                path.starts_with('[') || (path.starts_with('/') && !path.starts_with("/dev/"))
            });
            if is_file || access.contains('x') {
                continue;
            }
            let ends = range
                .split_once('-')
                .map(|(start, end)| (u64::from_str_radix(start, 16), u64::from_str_radix(end, 16)));
            let Some((Ok(start), Ok(end))) = ends else {
                continue;
            };
            match parts.last_mut() {
                Some(last) if last.1 == start => last.1 = end,
                _ => parts.push((start, end)),
            }
        }
        parts.retain(|(_, end)| *end > MIN_ADDRESS);
        AddressSpace { parts }
    }

    /// Returns whether memory of the GPU may lie at an address.
    #[inline]
    pub fn may_hold(&self, address: u64) -> bool {
        if !(MIN_ADDRESS..MAX_ADDRESS).contains(&address) {
            return false;
        }
        let after = self.parts.partition_point(|(start, _)| *start <= address);
        after > 0 && address < self.parts[after - 1].1
    }

    /// Adds the words of memory that may be addresses to `found`. Words lie at multiples
    /// of 8 bytes.
    pub fn scan(&self, bytes: &[u8], found: &mut rustc_hash::FxHashSet<u64>) {
        let mut last = 0;
        for word in bytes.as_chunks::<8>().0 {
            let word = u64::from_ne_bytes(*word);
            if (MIN_ADDRESS..MAX_ADDRESS).contains(&word) && word != last && self.may_hold(word) {
                last = word;
                found.insert(word);
            }
        }
    }
}

/// Returns the words of parameters that may be addresses. Structures may be packed, so each byte may begin one.
pub fn words_of_parameters(parameters: &[u8]) -> Vec<(usize, u64)> {
    let words = parameters.windows(8).enumerate().map(|(at, bytes)| {
        let word = bytes.try_into().map_or(0, u64::from_ne_bytes);
        (at, word)
    });
    words
        .filter(|(_, word)| (MIN_ADDRESS..MAX_ADDRESS).contains(word))
        .collect()
}

/// Asks the driver for the allocation at an address; `None` where there is none.
///
/// # Errors
/// A replay could not have the memory as the program has it.
pub fn allocation_at(
    driver: &DriverFunctions,
    address: u64,
    device: i32,
    kernel: &str,
) -> Result<Option<Allocation>, Refusal> {
    let (mut start, mut bytes) = (0, 0);
    // SAFETY: the driver's function, which stores numbers, and refuses an address that is none.
    if unsafe { (driver.address_range)(&mut start, &mut bytes, address) } != 0 || bytes == 0 {
        return Ok(None);
    }
    let attribute = |attribute| {
        let mut value = 0_u32;
        // SAFETY: the driver stores 32 bits for these attributes, or answers with an error.
        let code = unsafe {
            (driver.pointer_attribute)((&raw mut value).cast::<c_void>(), attribute, address)
        };
        (code == 0).then_some(value)
    };
    let kernel = || kernel.to_owned();
    let is_managed = attribute(IS_MANAGED).is_some_and(|value| value & 0xff != 0);
    let kind = match attribute(MEMORY_TYPE) {
        _ if is_managed => {
            let kernel = kernel();
            return Err(Refusal::Managed { kernel, address });
        }
        Some(HOST) => AllocationKind::Host,
        Some(DEVICE | UNIFIED) => AllocationKind::Device,
        Some(_) => {
            let kernel = kernel();
            return Err(Refusal::Array { kernel, address });
        }
        None => return Ok(None),
    };
    let of = attribute(DEVICE_ORDINAL).map(|ordinal| ordinal as i32);
    if let Some(other) = of.filter(|of| kind == AllocationKind::Device && *of != device) {
        return Err(Refusal::OtherGpu {
            kernel: kernel(),
            device: other,
            address,
        });
    }
    let range = Range {
        address: start,
        bytes: bytes as u64,
    };
    let is_mapped = kind == AllocationKind::Device && is_mapped(driver, address);
    Ok(Some(Allocation {
        range: match is_mapped {
            true => with_neighbours(driver, range),
            false => range,
        },
        kind,
    }))
}

/// Returns whether memory was mapped to its address by cuMemMap.
fn is_mapped(driver: &DriverFunctions, address: u64) -> bool {
    let mut handle = 0;
    // SAFETY: the driver's function, which refuses addresses of other memory; the handle is given back.
    unsafe {
        let code = (driver.retain_mapped)(&mut handle, address as *mut c_void);
        code == 0 && (driver.release_mapped)(handle) == 0
    }
}

/// Joins mapped memory with the mapped memory next to it: programs map a large range piece by piece, and what lies in the
/// range goes over the bounds of pieces.
fn with_neighbours(driver: &DriverFunctions, range: Range) -> Range {
    let at = |address: u64| {
        let (mut start, mut bytes) = (0, 0);
        // SAFETY: the driver's function, which stores numbers, and refuses an address that is none.
        let code = unsafe { (driver.address_range)(&mut start, &mut bytes, address) };
        let end = start + bytes as u64;
        (code == 0 && (start..end).contains(&address) && is_mapped(driver, address))
            .then_some((start, end))
    };
    let (mut start, mut end) = (range.address, range.address + range.bytes);
    while let Some((before, _)) = at(start - 1) {
        start = before;
    }
    while let Some((_, after)) = at(end) {
        end = after;
    }
    Range {
        address: start,
        bytes: end - start,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const MAPS: &str = "\
302000000-304000000 ---p 00000000 00:00 0
555500000000-555500010000 r-xp 00000000 08:01 1 /usr/bin/python3
555500010000-555500020000 rw-p 00000000 00:00 0 [heap]
7f0000000000-7f0100000000 ---p 00000000 00:00 0
7f0100000000-7f0200000000 rw-s 00000000 00:05 9 /dev/nvidia-uvm
7f0200000000-7f0200001000 r--p 00000000 08:01 2 /lib/libc.so.6
7f0300000000-7f0300001000 rw-p 00000000 00:00 0
";

    #[test]
    fn words_that_lie_in_reserved_addresses_may_be_pointers() {
        let space = AddressSpace::from_maps(MAPS);
        for may in [
            0x3_0200_0000,
            0x7f00_0000_0001,
            0x7f01_ffff_ffff,
            0x7f03_0000_0000,
        ] {
            assert!(space.may_hold(may), "{may:#x}");
        }
        for not in [
            0,
            0x3_0400_0000,
            0x5555_0001_0000,
            0x7f02_0000_0000,
            1 << 50,
        ] {
            assert!(!space.may_hold(not), "{not:#x}");
        }
        let mut found = rustc_hash::FxHashSet::default();
        let words = [0x7f00_0000_0008_u64, 0x7f00_0000_0010, 7, 0x3_0200_0200];
        space.scan(&bytes_of(&words), &mut found);
        let mut found: Vec<u64> = found.into_iter().collect();
        found.sort_unstable();
        assert_eq!(found, [0x3_0200_0200, 0x7f00_0000_0008, 0x7f00_0000_0010]);
    }

    fn bytes_of(words: &[u64]) -> Vec<u8> {
        words.iter().flat_map(|word| word.to_ne_bytes()).collect()
    }

    #[test]
    fn a_packed_parameter_is_found_at_any_byte() {
        let mut parameters = vec![1; 3];
        parameters.extend(0x7f00_0000_1000_u64.to_ne_bytes());
        let words = words_of_parameters(&parameters);
        assert!(words.contains(&(3, 0x7f00_0000_1000)), "{words:x?}");
    }
}
