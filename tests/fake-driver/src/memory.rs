//! Simulates device memory: host memory, and without coherence a second copy of it which only the host sees.

use std::sync::Mutex;

use ash::vk;

use crate::config::config;
use crate::device::{self, Device, lock};
use crate::object::{self, Body, Object};
use crate::{chain, misuse};

/// The limit `nonCoherentAtomSize`: flushed and invalidated ranges consist of whole atoms.
pub const ATOM_BYTES: u64 = 64;
/// The size of each of both heaps.
pub const HEAP_BYTES: u64 = 8 << 30;

const DEVICE_LOCAL: u32 = 0;
const HOST_VISIBLE: u32 = 1;
const DEVICE_LOCAL_HOST_VISIBLE: u32 = 2;
const TYPES: u32 = 3;

pub fn properties() -> vk::PhysicalDeviceMemoryProperties {
    use vk::MemoryPropertyFlags as Flags;
    let visible = if config().coherent {
        Flags::HOST_VISIBLE | Flags::HOST_COHERENT
    } else {
        Flags::HOST_VISIBLE
    };
    let mut properties = vk::PhysicalDeviceMemoryProperties {
        memory_type_count: TYPES,
        memory_heap_count: 2,
        ..vk::PhysicalDeviceMemoryProperties::default()
    };
    let kinds = [
        (DEVICE_LOCAL, Flags::DEVICE_LOCAL, 0),
        (HOST_VISIBLE, visible | Flags::HOST_CACHED, 1),
        (DEVICE_LOCAL_HOST_VISIBLE, visible | Flags::DEVICE_LOCAL, 0),
    ];
    for (index, property_flags, heap_index) in kinds {
        properties.memory_types[index as usize] = vk::MemoryType {
            property_flags,
            heap_index,
        };
    }
    properties.memory_heaps[0] = vk::MemoryHeap {
        size: HEAP_BYTES,
        flags: vk::MemoryHeapFlags::DEVICE_LOCAL,
    };
    properties.memory_heaps[1] = vk::MemoryHeap {
        size: HEAP_BYTES,
        flags: vk::MemoryHeapFlags::empty(),
    };
    properties
}

/// Returns what buffers and images require of memory.
pub fn requirements(bytes: u64) -> vk::MemoryRequirements {
    const ALIGNMENT: u64 = 256;
    vk::MemoryRequirements {
        size: bytes.next_multiple_of(ALIGNMENT),
        alignment: ALIGNMENT,
        memory_type_bits: (1 << TYPES) - 1,
    }
}

/// Binds all of several resources, and returns the last error, if there is one.
pub fn bind_all<T>(infos: &[T], bind: impl FnMut(&T) -> vk::Result) -> vk::Result {
    let results = infos.iter().map(bind);
    let errors = results.filter(|result| *result != vk::Result::SUCCESS);
    errors.last().unwrap_or(vk::Result::SUCCESS)
}

pub struct DeviceMemory {
    bytes: u64,
    host_visible: bool,
    /// The memory as the GPU sees it.
    device: Pages,
    /// The memory as the host sees it, where that differs.
    host: Option<Pages>,
    /// The start and the end of the mapped bytes; `None` while nothing is mapped.
    mapped: Mutex<Option<(u64, u64)>>,
}

impl Body for DeviceMemory {
    type Handle = vk::DeviceMemory;
}

/// A mapping of anonymous pages, which are zeroed and cost nothing until they are touched.
struct Pages {
    address: usize,
    bytes: usize,
}

impl Pages {
    fn new(bytes: usize) -> Option<Self> {
        let protection = libc::PROT_READ | libc::PROT_WRITE;
        let flags = libc::MAP_PRIVATE | libc::MAP_ANONYMOUS | libc::MAP_NORESERVE;
        // SAFETY: a new anonymous mapping touches nothing that exists.
        let address = unsafe { libc::mmap(std::ptr::null_mut(), bytes, protection, flags, -1, 0) };
        (address != libc::MAP_FAILED).then_some(Self {
            address: address as usize,
            bytes,
        })
    }

    unsafe fn unmap(&self) {
        libc::munmap(self.address as *mut libc::c_void, self.bytes);
    }
}

impl DeviceMemory {
    pub fn bytes(&self) -> u64 {
        self.bytes
    }

    /// Returns the address at which the GPU finds a byte.
    pub fn device_address(&self, offset: u64) -> usize {
        self.device.address + offset as usize
    }

    fn host_address(&self, offset: u64) -> usize {
        self.host.as_ref().unwrap_or(&self.device).address + offset as usize
    }
}

pub unsafe extern "system" fn allocate_memory(
    device: vk::Device,
    info: *const vk::MemoryAllocateInfo<'_>,
    _: *const vk::AllocationCallbacks<'_>,
    out: *mut vk::DeviceMemory,
) -> vk::Result {
    const CALL: &str = "vkAllocateMemory";
    let Some(device) = object::get::<Device>(CALL, device) else {
        return vk::Result::ERROR_UNKNOWN;
    };
    let info = &*info;
    let bytes = info.allocation_size;
    if bytes == 0 || info.memory_type_index >= TYPES {
        misuse::report(
            CALL,
            format_args!("{bytes} bytes of memory type {}", info.memory_type_index),
        );
        return vk::Result::ERROR_UNKNOWN;
    }
    if bytes > HEAP_BYTES {
        return vk::Result::ERROR_OUT_OF_DEVICE_MEMORY;
    }
    let host_visible = info.memory_type_index != DEVICE_LOCAL;
    let shadowed = host_visible && !config().coherent;
    let Some(gpu_side) = Pages::new(bytes as usize) else {
        return vk::Result::ERROR_OUT_OF_DEVICE_MEMORY;
    };
    let host = if shadowed {
        Pages::new(bytes as usize)
    } else {
        None
    };
    if shadowed && host.is_none() {
        gpu_side.unmap();
        return vk::Result::ERROR_OUT_OF_HOST_MEMORY;
    }
    *out = device.create(DeviceMemory {
        bytes,
        host_visible,
        device: gpu_side,
        host,
        mapped: Mutex::default(),
    });
    vk::Result::SUCCESS
}

pub unsafe extern "system" fn free_memory(
    device: vk::Device,
    memory: vk::DeviceMemory,
    _: *const vk::AllocationCallbacks<'_>,
) {
    let Some((_, memory)) = device::destroy::<DeviceMemory>("vkFreeMemory", device, memory) else {
        return;
    };
    // Memory that is freed while submitted work still uses it keeps its pages, so that the queue's thread does not fault.
    if !memory.header.is_pending() {
        memory.device.unmap();
        if let Some(host) = &memory.host {
            host.unmap();
        }
    }
}

pub unsafe extern "system" fn map_memory(
    _: vk::Device,
    memory: vk::DeviceMemory,
    offset: u64,
    size: u64,
    _: vk::MemoryMapFlags,
    out: *mut *mut std::ffi::c_void,
) -> vk::Result {
    const CALL: &str = "vkMapMemory";
    let Some(memory) = object::get::<DeviceMemory>(CALL, memory) else {
        return vk::Result::ERROR_MEMORY_MAP_FAILED;
    };
    if !memory.host_visible {
        misuse::report(CALL, "the memory is not host-visible");
        return vk::Result::ERROR_MEMORY_MAP_FAILED;
    }
    let end = if size == vk::WHOLE_SIZE {
        memory.bytes
    } else {
        offset.saturating_add(size)
    };
    if offset >= end || end > memory.bytes {
        misuse::report(
            CALL,
            format_args!("bytes {offset}..{end} of {}", memory.bytes),
        );
        return vk::Result::ERROR_MEMORY_MAP_FAILED;
    }
    if lock(&memory.mapped).replace((offset, end)).is_some() {
        misuse::report(CALL, "the memory is already mapped");
    }
    *out = memory.host_address(offset) as *mut std::ffi::c_void;
    vk::Result::SUCCESS
}

pub unsafe extern "system" fn unmap_memory(_: vk::Device, memory: vk::DeviceMemory) {
    const CALL: &str = "vkUnmapMemory";
    if let Some(memory) = object::get::<DeviceMemory>(CALL, memory)
        && lock(&memory.mapped).take().is_none()
    {
        misuse::report(CALL, "the memory is not mapped");
    }
}

pub unsafe extern "system" fn flush_ranges(
    _: vk::Device,
    count: u32,
    ranges: *const vk::MappedMemoryRange<'_>,
) -> vk::Result {
    for range in chain::slice(ranges, count) {
        if let Some((memory, offset, bytes)) = checked("vkFlushMappedMemoryRanges", range) {
            copy(
                memory.host_address(offset),
                memory.device_address(offset),
                bytes,
            );
        }
    }
    vk::Result::SUCCESS
}

pub unsafe extern "system" fn invalidate_ranges(
    _: vk::Device,
    count: u32,
    ranges: *const vk::MappedMemoryRange<'_>,
) -> vk::Result {
    for range in chain::slice(ranges, count) {
        if let Some((memory, offset, bytes)) = checked("vkInvalidateMappedMemoryRanges", range) {
            copy(
                memory.device_address(offset),
                memory.host_address(offset),
                bytes,
            );
        }
    }
    vk::Result::SUCCESS
}

/// Returns the part of the memory that a range names, if it is inside of the mapped bytes. A range that does not consist
/// of whole atoms is only reported.
fn checked(
    call: &str,
    range: &vk::MappedMemoryRange<'_>,
) -> Option<(&'static Object<DeviceMemory>, u64, u64)> {
    let memory = object::get::<DeviceMemory>(call, range.memory)?;
    let Some((mapped_start, mapped_end)) = *lock(&memory.mapped) else {
        misuse::report(call, "the memory is not mapped");
        return None;
    };
    let start = range.offset;
    let end = if range.size == vk::WHOLE_SIZE {
        mapped_end
    } else {
        start.saturating_add(range.size)
    };
    let ends_at_atom =
        end.is_multiple_of(ATOM_BYTES) || end == memory.bytes || range.size == vk::WHOLE_SIZE;
    if !start.is_multiple_of(ATOM_BYTES) || !ends_at_atom {
        misuse::report(
            call,
            format_args!("bytes {start}..{end} are not whole atoms of {ATOM_BYTES} bytes"),
        );
    }
    if start < mapped_start || end > mapped_end || start > end {
        misuse::report(
            call,
            format_args!(
                "bytes {start}..{end} are outside the mapped {mapped_start}..{mapped_end}"
            ),
        );
        return None;
    }
    Some((memory, start, end - start))
}

unsafe fn copy(from: usize, to: usize, bytes: u64) {
    // Without a shadow both views are the same memory.
    if from != to {
        std::ptr::copy_nonoverlapping(from as *const u8, to as *mut u8, bytes as usize);
    }
}

pub unsafe extern "system" fn get_commitment(
    _: vk::Device,
    memory: vk::DeviceMemory,
    out: *mut u64,
) {
    *out = object::get::<DeviceMemory>("vkGetDeviceMemoryCommitment", memory)
        .map_or(0, |memory| memory.bytes);
}
