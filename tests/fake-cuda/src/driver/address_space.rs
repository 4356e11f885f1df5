//! The addresses of memory, with bytes behind them: kernels written in Rust and copies read and write them.
//!
//! Allocations of a device lie at `0x7e00_0000_0000` and above, several small ones in a block of 2 MiB; page-locked memory lies at
//! `0x3_0200_0000` and above. The system gives a page only when something is written there, so that large allocations are free.

use std::collections::BTreeMap;

/// The size of the blocks that the driver takes from the device.
pub const BLOCK: u64 = 2 << 20;
/// Allocations are aligned to it.
const ALIGNMENT: u64 = 512;
const OF_DEVICE: u64 = 0x7e00_0000_0000;
const OF_HOST: u64 = 0x3_0200_0000;
const OF_GLOBALS: u64 = 0x7d00_0000_0000;
/// Reserved addresses that are not as wished lie here and above.
const OTHER: u64 = 0x7c00_0000_0000;

/// The kind of the memory at an address.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum MemoryKind {
    Device,
    Managed,
    /// Page-locked memory; `registered`: the program's own.
    Host {
        registered: bool,
    },
    /// Memory that was mapped at a reserved address; `usable` since access was set.
    Mapped {
        usable: bool,
    },
    /// A variable of a module.
    Global,
}

#[derive(Debug, Clone, Copy)]
pub struct Range {
    pub bytes: u64,
    pub place: MemoryKind,
    pub context: u32,
}

/// The place at which the next memory of a kind begins, and the end of its last block.
#[derive(Debug, Clone, Copy, Default)]
struct Cursor {
    next: u64,
    end: u64,
}

#[derive(Default)]
pub struct AddressSpace {
    live: BTreeMap<u64, Range>,
    reserved: BTreeMap<u64, u64>,
    device: Cursor,
    host: Cursor,
    globals: Cursor,
    others: u64,
}

fn map(address: u64, bytes: u64, protection: i32) -> bool {
    let flags = libc::MAP_PRIVATE | libc::MAP_ANONYMOUS | libc::MAP_NORESERVE;
    // SAFETY: the flag makes the system refuse addresses that are in use.
    let at = unsafe {
        libc::mmap(
            address as *mut libc::c_void,
            bytes as usize,
            protection,
            flags | libc::MAP_FIXED_NOREPLACE,
            -1,
            0,
        )
    };
    if at == libc::MAP_FAILED {
        return false;
    }
    if at as u64 != address {
        // SAFETY: the mapping was made here; an old system knows the flag not, and takes another address.
        unsafe { libc::munmap(at, bytes as usize) };
    }
    at as u64 == address
}

const USABLE: i32 = libc::PROT_READ | libc::PROT_WRITE;

impl Cursor {
    /// Returns the address of new memory, which is mapped.
    fn take(&mut self, begin: u64, bytes: u64) -> Option<u64> {
        let bytes = bytes.max(1).next_multiple_of(ALIGNMENT);
        if self.next == 0 {
            (self.next, self.end) = (begin, begin);
        }
        if self.next + bytes > self.end {
            let size = bytes.next_multiple_of(BLOCK);
            let mut at = self.end;
            // Addresses in use, such as reserved ones, are passed over.
            let mut tries = 0;
            while !map(at, size, USABLE) {
                at += BLOCK;
                tries += 1;
                if tries > 1 << 16 {
                    return None;
                }
            }
            (self.next, self.end) = (at, at + size);
        }
        let at = self.next;
        self.next += bytes;
        Some(at)
    }
}

impl AddressSpace {
    pub fn allocate(&mut self, bytes: u64, place: MemoryKind, context: u32) -> Option<u64> {
        let at = match place {
            MemoryKind::Host { .. } => self.host.take(OF_HOST, bytes)?,
            MemoryKind::Global => {
                // The address is another one in each process, as it is on a real machine.
                let begin = OF_GLOBALS + u64::from(std::process::id() % 65_521) * BLOCK;
                self.globals.take(begin, bytes)?
            }
            _ => self.device.take(OF_DEVICE, bytes)?,
        };
        self.add(at, bytes, place, context);
        Some(at)
    }

    /// Adds memory that is there already.
    pub fn add(&mut self, address: u64, bytes: u64, place: MemoryKind, context: u32) {
        let range = Range {
            bytes,
            place,
            context,
        };
        self.live.insert(address, range);
    }

    pub fn remove(&mut self, address: u64) -> Option<Range> {
        self.live.remove(&address)
    }

    /// Returns the memory in which an address lies, and its begin.
    pub fn find(&self, address: u64) -> Option<(u64, Range)> {
        let (begin, range) = self.live.range(..=address).next_back()?;
        (address - begin < range.bytes).then_some((*begin, *range))
    }

    /// Returns whether all of these bytes can be read and written.
    pub fn is_usable(&self, address: u64, bytes: u64) -> bool {
        let Some((begin, range)) = self.find(address) else {
            return false;
        };
        let end = address.checked_add(bytes);
        let is_usable = range.place != MemoryKind::Mapped { usable: false };
        match end {
            Some(end) if is_usable && end <= begin + range.bytes => true,
            // Pieces that are mapped side by side are one memory to a kernel.
            Some(end) if is_usable => {
                self.is_usable(begin + range.bytes, end - begin - range.bytes)
            }
            _ => false,
        }
    }

    /// Reserves addresses: the wished ones, rounded up to 32 MiB, where they are free.
    pub fn reserve(&mut self, wish: u64, bytes: u64, others: bool) -> Option<u64> {
        const ROUNDED: u64 = 32 << 20;
        let rounded = wish.next_multiple_of(ROUNDED);
        if wish >= OF_HOST && !others && map(rounded, bytes, libc::PROT_NONE) {
            self.reserved.insert(rounded, bytes);
            return Some(rounded);
        }
        for _ in 0..1 << 12 {
            let at = OTHER + self.others;
            self.others += bytes.next_multiple_of(ROUNDED);
            if map(at, bytes, libc::PROT_NONE) {
                self.reserved.insert(at, bytes);
                return Some(at);
            }
        }
        None
    }

    /// Gives reserved addresses back; nothing may be mapped there.
    pub fn give_back(&mut self, address: u64, bytes: u64) -> bool {
        let is_empty = (self.live.range(address..address + bytes)).next().is_none();
        if !is_empty || self.reserved.get(&address) != Some(&bytes) {
            return false;
        }
        self.reserved.remove(&address);
        // SAFETY: the addresses are this reservation's.
        unsafe { libc::munmap(address as *mut libc::c_void, bytes as usize) == 0 }
    }

    /// Maps memory at reserved addresses.
    pub fn map(&mut self, address: u64, bytes: u64, context: u32) -> bool {
        let is_inside = (self.reserved.range(..=address).next_back())
            .is_some_and(|(begin, size)| address + bytes <= begin + size);
        let is_free = (self.live.range(..address + bytes).next_back())
            .is_none_or(|(begin, range)| begin + range.bytes <= address);
        if is_inside && is_free {
            self.add(
                address,
                bytes,
                MemoryKind::Mapped { usable: false },
                context,
            );
        }
        is_inside && is_free
    }

    /// Lets devices use what is mapped in a range.
    pub fn set_access(&mut self, address: u64, bytes: u64) -> bool {
        let mut found = false;
        for (begin, range) in self.live.range_mut(address..address + bytes) {
            if let MemoryKind::Mapped { usable } = &mut range.place {
                *usable = true;
                found = true;
                // SAFETY: the addresses are mapped by this library.
                unsafe {
                    libc::mprotect(*begin as *mut libc::c_void, range.bytes as usize, USABLE)
                };
            }
        }
        found
    }

    /// Takes memory from its reserved addresses, which stay reserved.
    pub fn unmap(&mut self, address: u64, bytes: u64) -> bool {
        let within: Vec<(u64, Range)> = (self.live.range(address..address + bytes))
            .map(|(begin, range)| (*begin, *range))
            .collect();
        let are_mapped = within.iter().all(|(begin, range)| {
            matches!(range.place, MemoryKind::Mapped { .. })
                && begin + range.bytes <= address + bytes
        });
        if within.is_empty() || !are_mapped {
            return false;
        }
        for (begin, range) in within {
            self.live.remove(&begin);
            let flags = libc::MAP_PRIVATE | libc::MAP_ANONYMOUS | libc::MAP_NORESERVE;
            // SAFETY: the addresses are mapped by this library, and nothing uses them.
            unsafe {
                libc::mmap(
                    begin as *mut libc::c_void,
                    range.bytes as usize,
                    libc::PROT_NONE,
                    flags | libc::MAP_FIXED,
                    -1,
                    0,
                )
            };
        }
        true
    }

    /// Copies bytes from one address to another.
    ///
    /// # Safety
    /// Both are addresses that [`Self::is_usable`] knows, or the caller's memory, of so many bytes.
    pub unsafe fn copy(to: u64, from: u64, bytes: u64) {
        // SAFETY: as the caller promises.
        unsafe { std::ptr::copy(from as *const u8, to as *mut u8, bytes as usize) };
    }

    pub fn read<const N: usize>(&self, address: u64) -> Option<[u8; N]> {
        // SAFETY: the bytes are mapped, and any are valid.
        (self.is_usable(address, N as u64))
            .then(|| unsafe { (address as *const [u8; N]).read_unaligned() })
    }

    pub fn write<const N: usize>(&self, address: u64, bytes: [u8; N]) -> Option<()> {
        // SAFETY: the bytes are mapped, and belong to the program that launches.
        (self.is_usable(address, N as u64))
            .then(|| unsafe { (address as *mut [u8; N]).write_unaligned(bytes) })
    }
}
