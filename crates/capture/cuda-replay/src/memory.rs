//! Makes the memory of a capture at its recorded addresses, and knows where each memory is.

use std::collections::BTreeMap;
use std::ffi::c_int;

use gapscope_capture::cuda::{CudaCapture, CudaMemory, MemoryPlace};
use gapscope_capture::model::MemoryId;

use crate::driver::Driver;
use crate::error::Error;
use crate::modules::Modules;
use crate::spans::{self, MAPPED_STEP, RESERVED_STEP, Span};

/// The size of the host's pages.
pub const PAGE_BYTES: u64 = 4096;

/// Where a memory is in this process.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum MemoryAddress {
    /// An address of the GPU.
    Device(u64),
    /// An address of the host, which is the GPU's, too.
    Host(u64),
}

/// The memory of a capture.
#[derive(Debug)]
pub struct Placed {
    places: BTreeMap<MemoryId, MemoryAddress>,
    /// Memory of the host that is memory of the GPU in this process, as its address could not be had.
    pub moved_to_device: u64,
}

impl Placed {
    /// Makes all allocations at their addresses. Globals follow once the modules are loaded.
    pub fn new(driver: &Driver, device: c_int, capture: &CudaCapture) -> Result<Placed, Error> {
        let of = |wanted: &dyn Fn(&CudaMemory) -> bool| -> Vec<&CudaMemory> {
            capture
                .memories
                .values()
                .filter(|memory| wanted(memory))
                .collect()
        };
        let mut on_device = of(&|memory| memory.place == MemoryPlace::Device);
        let on_host = of(&|memory| memory.place == MemoryPlace::Host);
        let reserved = spans::joined(on_device.iter().map(|memory| span(memory)), RESERVED_STEP);
        let mut places = BTreeMap::new();
        let mut moved_to_device = 0;
        // Page-locked memory of the host is mapped by pages, which several allocations may share.
        for pages in spans::joined(on_host.iter().map(|memory| span(memory)), PAGE_BYTES) {
            let here: Vec<_> = (on_host.iter().copied())
                .filter(|memory| spans::overlap(span(memory), pages))
                .collect();
            let is_taken = reserved.iter().any(|range| spans::overlap(*range, pages));
            if !is_taken && map_host(driver, pages).is_ok() {
                let each = here.iter();
                places.extend(each.map(|memory| (memory.id, MemoryAddress::Host(memory.address))));
            } else {
                // A kernel finds the same bytes at the same address in the GPU's memory.
                moved_to_device += here.len() as u64;
                on_device.extend(here);
            }
        }
        let ranges = || on_device.iter().map(|memory| span(memory));
        for (start, end) in spans::joined(ranges(), RESERVED_STEP) {
            let bytes = end - start;
            let refused = |reason: String| Error::Address {
                wanted: start,
                bytes,
                reason,
            };
            match driver.reserve(start, bytes) {
                Ok(given) if given == start => {}
                Ok(given) => {
                    driver.free_addresses(given, bytes);
                    let reason = format!("cuMemAddressReserve gave {given:#x} instead");
                    return Err(refused(reason));
                }
                Err(error) => return Err(refused(error.to_string())),
            }
        }
        let mapped = spans::joined(ranges(), MAPPED_STEP);
        let total: u64 = mapped.iter().map(|(start, end)| end - start).sum();
        for (start, end) in mapped {
            (driver.map(device, start, end - start)).map_err(|error| match error {
                Error::Call { call, code, what } => Error::Call {
                    call,
                    code,
                    what: format!("{what} (the capture reaches {total} bytes of the GPU's memory)"),
                },
                error => error,
            })?;
        }
        let each = on_device.iter();
        places.extend(each.map(|memory| (memory.id, MemoryAddress::Device(memory.address))));
        Ok(Placed {
            places,
            moved_to_device,
        })
    }

    /// Adds the globals of the loaded modules.
    pub fn add_globals(
        &mut self,
        driver: &Driver,
        capture: &CudaCapture,
        modules: &Modules,
    ) -> Result<(), Error> {
        for memory in capture.memories.values() {
            let MemoryPlace::Global { module, name } = &memory.place else {
                continue;
            };
            let (address, bytes) = driver.global(modules.handle(*module)?, name)?;
            if bytes < memory.bytes {
                let captured = memory.bytes;
                return Err(Error::Unsupported(format!(
                    "variable {name} has {bytes} bytes in its module and {captured} in the capture"
                )));
            }
            self.places
                .insert(memory.id, MemoryAddress::Device(address));
        }
        Ok(())
    }

    /// Returns where a memory is.
    pub fn place(&self, memory: MemoryId) -> Result<MemoryAddress, Error> {
        let place = self.places.get(&memory).copied();
        place.ok_or_else(|| Error::Unsupported(format!("memory {memory} is not in the capture")))
    }
}

/// Returns the addresses of a memory. The reader of captures has checked that they do not overflow.
pub fn span(memory: &CudaMemory) -> Span {
    (memory.address, memory.address + memory.bytes)
}

/// Maps pages of the host at their address, and lets the GPU use them.
#[cfg(target_os = "linux")]
fn map_host(driver: &Driver, (start, end): Span) -> Result<(), Error> {
    let bytes = end - start;
    let refused = |reason: String| Error::Address {
        wanted: start,
        bytes,
        reason,
    };
    let wanted = std::ptr::with_exposed_provenance_mut(start as usize);
    // SAFETY: the mapping is new, and with this flag replaces none. It stays until the process ends.
    let given = unsafe {
        libc::mmap(
            wanted,
            bytes as usize,
            libc::PROT_READ | libc::PROT_WRITE,
            libc::MAP_PRIVATE | libc::MAP_ANONYMOUS | libc::MAP_FIXED_NOREPLACE,
            -1,
            0,
        )
    };
    if given == libc::MAP_FAILED {
        return Err(refused(std::io::Error::last_os_error().to_string()));
    }
    let unmap = || {
        // SAFETY: the mapping is the one that was made above, and nothing refers to it.
        unsafe { libc::munmap(given, bytes as usize) };
    };
    // Kernels before Linux 4.17 take the flag for a wish.
    if given != wanted {
        unmap();
        return Err(refused("the system gave another one".to_owned()));
    }
    driver.register(start, bytes).inspect_err(|_| unmap())
}

#[cfg(not(target_os = "linux"))]
fn map_host(_: &Driver, (start, end): Span) -> Result<(), Error> {
    Err(Error::Address {
        wanted: start,
        bytes: end - start,
        reason: "captures of CUDA run on Linux".to_owned(),
    })
}
