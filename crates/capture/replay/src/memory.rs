//! Allocates device memory for the [`Regions`] of a capture (the ranges of the program's memory that the window
//! touches), and copies bytes to and from it through staging memory, which the host can reach.

use std::rc::Rc;

use ash::vk;
use gapscope_capture::Capture;

use crate::error::Error;
use crate::gpu::Gpu;
use crate::regions::{Region, RegionOffset, Regions};

/// The size of staging memory: large enough that a copy takes long beside its fixed cost.
const STAGING_BYTES: u64 = 32 << 20;
/// The size of allocations that regions share where they fit.
const BLOCK_BYTES: u64 = 1 << 30;
/// The alignment of buffers in an allocation: the greatest that Vulkan lets a device require.
const ALIGNMENT: u64 = 64 << 10;

/// The device memory of a replay: a buffer for each region.
pub struct Memory {
    gpu: Rc<Gpu>,
    buffers: Vec<vk::Buffer>,
    /// The size of each buffer.
    sizes: Vec<u64>,
    /// The allocations that the buffers share.
    blocks: Vec<vk::DeviceMemory>,
    staging: Staging,
}

impl Memory {
    /// Allocates the regions. Their bytes are undefined until [`Self::clear`].
    pub fn new(gpu: &Rc<Gpu>, capture: &Capture, regions: &Regions) -> Result<Memory, Error> {
        let mut memory = Memory {
            gpu: Rc::clone(gpu),
            buffers: Vec::new(),
            sizes: Vec::new(),
            blocks: Vec::new(),
            staging: Staging::new(gpu, STAGING_BYTES)?,
        };
        let mut placed = Vec::new();
        for region in regions.all() {
            let wanted = capture.memories[&region.memory].properties;
            placed.push(memory.buffer(region, wanted)?);
        }
        memory.bind(placed)?;
        Ok(memory)
    }

    /// Returns the buffer of a region.
    pub fn raw(&self, region: usize) -> vk::Buffer {
        self.buffers[region]
    }

    /// Fills all regions with zeros.
    pub fn clear(&self) -> Result<(), Error> {
        self.gpu.once("clear memory", |commands| {
            for buffer in &self.buffers {
                // SAFETY: the buffer is of this device, and was made for transfers.
                unsafe {
                    self.gpu
                        .raw
                        .cmd_fill_buffer(commands, *buffer, 0, vk::WHOLE_SIZE, 0)
                };
            }
            self.gpu.full_barrier(commands);
        })
    }

    /// Writes bytes to their places, as many at once as fit into staging memory, and waits for the device.
    pub fn upload(
        &mut self,
        pieces: impl IntoIterator<Item = Result<(RegionOffset, Vec<u8>), Error>>,
    ) -> Result<(), Error> {
        let mut copies = Vec::new();
        let mut used = 0;
        for piece in pieces {
            let (mut place, bytes) = piece?;
            let mut bytes = bytes.as_slice();
            while !bytes.is_empty() {
                if used == self.staging.bytes {
                    self.send(&copies)?;
                    copies.clear();
                    used = 0;
                }
                let room = (self.staging.bytes - used) as usize;
                let (now, later) = bytes.split_at(room.min(bytes.len()));
                self.staging.write(used, now);
                let size = now.len() as u64;
                copies.push((used, place, size));
                used += size;
                place.offset += size;
                bytes = later;
            }
        }
        self.send(&copies)
    }

    /// Reads pieces of at most [`STAGING_BYTES`] each, and passes the index and the bytes of each to `take` in order.
    pub fn download(
        &mut self,
        pieces: &[(RegionOffset, u64)],
        mut take: impl FnMut(usize, &[u8]),
    ) -> Result<(), Error> {
        let mut rest = pieces;
        let mut first = 0;
        while !rest.is_empty() {
            let mut used = 0;
            let fit = rest.iter().take_while(|(_, size)| {
                used += size;
                used <= self.staging.bytes
            });
            let count = fit.count().max(1);
            let (now, later) = rest.split_at(count);
            self.receive(now)?;
            let mut at = 0;
            for (index, (_, size)) in now.iter().enumerate() {
                self.staging
                    .read(at, *size, |bytes| take(first + index, bytes));
                at += size;
            }
            first += count;
            rest = later;
        }
        Ok(())
    }

    /// Reads a range of a region.
    pub fn read(&mut self, place: RegionOffset, bytes: u64) -> Result<Vec<u8>, Error> {
        let mut all = Vec::new();
        self.read_to(place, bytes, |bytes| all.extend_from_slice(bytes))?;
        Ok(all)
    }

    /// Reads a range of a region, and passes it to `take` piece by piece.
    pub fn read_to(
        &mut self,
        place: RegionOffset,
        bytes: u64,
        mut take: impl FnMut(&[u8]),
    ) -> Result<(), Error> {
        let starts = (0..bytes).step_by(STAGING_BYTES as usize);
        let pieces = starts.map(|at| {
            let offset = place.offset + at;
            let size = (bytes - at).min(STAGING_BYTES);
            (RegionOffset { offset, ..place }, size)
        });
        self.download(&pieces.collect::<Vec<_>>(), |_, bytes| take(bytes))
    }

    /// Records a copy from staging memory to a region.
    pub fn copy_from(
        &self,
        commands: vk::CommandBuffer,
        staging: &Staging,
        from: u64,
        place: RegionOffset,
        size: u64,
    ) {
        self.check(place, size);
        staging.check(from, size);
        let region = [vk::BufferCopy::default()
            .src_offset(from)
            .dst_offset(place.offset)
            .size(size)];
        let to = self.buffers[place.region];
        // SAFETY: both buffers are of this device, and the copied range is inside both.
        unsafe {
            self.gpu
                .raw
                .cmd_copy_buffer(commands, staging.buffer, to, &region);
        }
    }

    /// Copies bytes from staging memory. Each copy has its offset there, its place in a region, and its size.
    fn send(&self, copies: &[(u64, RegionOffset, u64)]) -> Result<(), Error> {
        if copies.is_empty() {
            return Ok(());
        }
        self.gpu.once("write memory", |commands| {
            for (from, place, size) in copies {
                self.copy_from(commands, &self.staging, *from, *place, *size);
            }
            self.gpu.full_barrier(commands);
        })
    }

    /// Copies pieces one after the other into staging memory.
    fn receive(&self, pieces: &[(RegionOffset, u64)]) -> Result<(), Error> {
        self.gpu.once("read memory", |commands| {
            self.gpu.full_barrier(commands);
            let mut at = 0;
            for (place, size) in pieces {
                self.check(*place, *size);
                let region = [vk::BufferCopy::default()
                    .src_offset(place.offset)
                    .dst_offset(at)
                    .size(*size)];
                let (from, to) = (self.buffers[place.region], self.staging.buffer);
                // SAFETY: as above.
                unsafe { self.gpu.raw.cmd_copy_buffer(commands, from, to, &region) };
                at += size;
            }
            to_host(&self.gpu, commands);
        })
    }

    /// Panics if a range is not inside its region, because such a mistake must not reach the driver.
    fn check(&self, place: RegionOffset, size: u64) {
        let end = place.offset.checked_add(size);
        assert!(
            end.is_some_and(|end| end <= self.sizes[place.region]) && size > 0,
            "{size} bytes at {place:?} are not inside of their region"
        );
    }

    /// Makes the buffer of a region, without memory; `wanted` are the memory's properties in the program.
    fn buffer(&mut self, region: &Region, wanted: u32) -> Result<Unbound, Error> {
        let usage = vk::BufferUsageFlags::STORAGE_BUFFER
            | vk::BufferUsageFlags::UNIFORM_BUFFER
            | vk::BufferUsageFlags::INDIRECT_BUFFER
            | vk::BufferUsageFlags::TRANSFER_SRC
            | vk::BufferUsageFlags::TRANSFER_DST;
        let buffer = buffer(&self.gpu, region.bytes, usage)?;
        self.buffers.push(buffer);
        self.sizes.push(region.bytes);
        // SAFETY: the buffer is of this device.
        let needs = unsafe { self.gpu.raw.get_buffer_memory_requirements(buffer) };
        let memory_type =
            region_type(&self.gpu.memory, needs.memory_type_bits, wanted).ok_or(Error::Memory {
                bytes: region.bytes,
            })?;
        Ok(Unbound {
            buffer,
            bytes: needs.size,
            alignment: needs.alignment.max(ALIGNMENT),
            memory_type,
        })
    }

    /// Binds buffers to shared allocations: one for consecutive buffers of the same type, up to [`BLOCK_BYTES`], or
    /// alone where a buffer is greater.
    fn bind(&mut self, mut unbound: Vec<Unbound>) -> Result<(), Error> {
        unbound.sort_by_key(|buffer| buffer.memory_type);
        let most = BLOCK_BYTES.min(self.gpu.properties.max_allocation_bytes);
        let mut rest = unbound.as_slice();
        while let Some(first) = rest.first() {
            let mut offsets = Vec::new();
            let mut end = 0;
            for buffer in rest {
                let at = u64::next_multiple_of(end, buffer.alignment);
                let is_first = offsets.is_empty();
                let until = at.saturating_add(buffer.bytes);
                if buffer.memory_type != first.memory_type || (until > most && !is_first) {
                    break;
                }
                offsets.push(at);
                end = until;
            }
            let block = allocate(&self.gpu, end, first.memory_type)?;
            self.blocks.push(block);
            let (now, later) = rest.split_at(offsets.len());
            for (buffer, offset) in now.iter().zip(offsets) {
                // SAFETY: the buffer is new, and the block has room for it there.
                unsafe {
                    self.gpu
                        .raw
                        .bind_buffer_memory(buffer.buffer, block, offset)
                }
                .map_err(Error::from_call("bind memory"))?;
            }
            rest = later;
        }
        Ok(())
    }
}

impl Drop for Memory {
    fn drop(&mut self) {
        // SAFETY: all handles are of this device, and nothing runs.
        unsafe {
            let _ = self.gpu.raw.device_wait_idle();
            for buffer in &self.buffers {
                self.gpu.raw.destroy_buffer(*buffer, None);
            }
            for block in &self.blocks {
                self.gpu.raw.free_memory(*block, None);
            }
        }
    }
}

/// A buffer that has no memory yet, with its needs.
struct Unbound {
    buffer: vk::Buffer,
    bytes: u64,
    alignment: u64,
    memory_type: u32,
}

/// Memory that the host writes and reads, for copies to and from the device.
pub struct Staging {
    gpu: Rc<Gpu>,
    pub buffer: vk::Buffer,
    memory: vk::DeviceMemory,
    /// Where the host reaches the first byte.
    mapped: *mut u8,
    pub bytes: u64,
}

impl Staging {
    /// Allocates and maps staging memory.
    pub fn new(gpu: &Rc<Gpu>, bytes: u64) -> Result<Staging, Error> {
        let usage = vk::BufferUsageFlags::TRANSFER_SRC | vk::BufferUsageFlags::TRANSFER_DST;
        let buffer = buffer(gpu, bytes, usage)?;
        let mut staging = Staging {
            gpu: Rc::clone(gpu),
            buffer,
            memory: vk::DeviceMemory::null(),
            mapped: std::ptr::null_mut(),
            bytes,
        };
        // SAFETY: the buffer is of this device.
        let needs = unsafe { gpu.raw.get_buffer_memory_requirements(buffer) };
        let coherent =
            vk::MemoryPropertyFlags::HOST_VISIBLE | vk::MemoryPropertyFlags::HOST_COHERENT;
        let cached = coherent | vk::MemoryPropertyFlags::HOST_CACHED;
        let memory_type = [cached, coherent]
            .into_iter()
            .find_map(|flags| {
                type_with(&gpu.memory, needs.memory_type_bits, |of| of.contains(flags))
            })
            .ok_or(Error::Memory { bytes })?;
        staging.memory = allocate(gpu, needs.size, memory_type)?;
        // SAFETY: the memory is new and large enough; it is of a type that can be mapped.
        unsafe {
            gpu.raw
                .bind_buffer_memory(buffer, staging.memory, 0)
                .map_err(Error::from_call("bind memory"))?;
            let mapped = gpu
                .raw
                .map_memory(
                    staging.memory,
                    0,
                    vk::WHOLE_SIZE,
                    vk::MemoryMapFlags::empty(),
                )
                .map_err(Error::from_call("map memory"))?;
            staging.mapped = mapped.cast();
        }
        Ok(staging)
    }

    /// Writes bytes at an offset. The device must not be using them.
    pub fn write(&mut self, offset: u64, bytes: &[u8]) {
        self.check(offset, bytes.len() as u64);
        // SAFETY: the mapping has `self.bytes` bytes, and the range is inside it.
        unsafe {
            let to = self.mapped.add(offset as usize);
            to.copy_from_nonoverlapping(bytes.as_ptr(), bytes.len());
        }
    }

    /// Passes bytes that the device wrote to `take`.
    fn read(&self, offset: u64, bytes: u64, take: impl FnOnce(&[u8])) {
        self.check(offset, bytes);
        // SAFETY: as above; the device has written the bytes, and writes no more until this returns.
        take(unsafe {
            std::slice::from_raw_parts(self.mapped.add(offset as usize), bytes as usize)
        });
    }

    fn check(&self, offset: u64, bytes: u64) {
        let end = offset.checked_add(bytes);
        assert!(
            end.is_some_and(|end| end <= self.bytes),
            "staging has {} bytes",
            self.bytes
        );
    }
}

impl Drop for Staging {
    fn drop(&mut self) {
        // SAFETY: both are of this device or null, and nothing runs.
        unsafe {
            let _ = self.gpu.raw.device_wait_idle();
            self.gpu.raw.destroy_buffer(self.buffer, None);
            self.gpu.raw.free_memory(self.memory, None);
        }
    }
}

/// Records a barrier that makes the device's copies visible to the host.
fn to_host(gpu: &Gpu, commands: vk::CommandBuffer) {
    let barrier = [vk::MemoryBarrier2::default()
        .src_stage_mask(vk::PipelineStageFlags2::ALL_COMMANDS)
        .src_access_mask(vk::AccessFlags2::MEMORY_WRITE)
        .dst_stage_mask(vk::PipelineStageFlags2::HOST)
        .dst_access_mask(vk::AccessFlags2::HOST_READ)];
    let info = vk::DependencyInfo::default().memory_barriers(&barrier);
    // SAFETY: the command buffer is being recorded.
    unsafe { gpu.raw.cmd_pipeline_barrier2(commands, &info) };
}

/// Makes a buffer without memory.
pub fn buffer(gpu: &Gpu, bytes: u64, usage: vk::BufferUsageFlags) -> Result<vk::Buffer, Error> {
    let info = vk::BufferCreateInfo::default().size(bytes).usage(usage);
    // SAFETY: the structure is complete; the size was checked against the device's limit.
    unsafe { gpu.raw.create_buffer(&info, None) }.map_err(|result| out_of_memory(result, bytes))
}

/// Allocates memory of a type.
pub fn allocate(gpu: &Gpu, bytes: u64, memory_type: u32) -> Result<vk::DeviceMemory, Error> {
    let info = vk::MemoryAllocateInfo::default()
        .allocation_size(bytes)
        .memory_type_index(memory_type);
    // SAFETY: the type is one of the device's.
    unsafe { gpu.raw.allocate_memory(&info, None) }.map_err(|result| out_of_memory(result, bytes))
}

/// Turns the result of a failed call into an error that says how much was asked for, if memory ran out.
fn out_of_memory(result: vk::Result, bytes: u64) -> Error {
    match result {
        vk::Result::ERROR_OUT_OF_DEVICE_MEMORY | vk::Result::ERROR_OUT_OF_HOST_MEMORY => {
            Error::Memory { bytes }
        }
        result => Error::from_call("make memory")(result),
    }
}

/// Returns the memory type for a region whose memory had the properties `wanted` in the program: the first with
/// exactly these, else the first in the device's memory, else any. `allowed` has a bit for each type that the buffer
/// allows.
pub fn region_type(
    of: &vk::PhysicalDeviceMemoryProperties,
    allowed: u32,
    wanted: u32,
) -> Option<u32> {
    let wanted = vk::MemoryPropertyFlags::from_raw(wanted);
    let exactly = type_with(of, allowed, |flags| flags == wanted);
    exactly
        .or_else(|| {
            type_with(of, allowed, |f| {
                f.contains(vk::MemoryPropertyFlags::DEVICE_LOCAL)
            })
        })
        .or_else(|| type_with(of, allowed, |_| true))
}

/// Returns the first type that is allowed and fits, and is neither protected nor allocated lazily.
fn type_with(
    of: &vk::PhysicalDeviceMemoryProperties,
    allowed: u32,
    fits: impl Fn(vk::MemoryPropertyFlags) -> bool,
) -> Option<u32> {
    let unusual = vk::MemoryPropertyFlags::PROTECTED | vk::MemoryPropertyFlags::LAZILY_ALLOCATED;
    (0..of.memory_type_count).find(|index| {
        let flags = of.memory_types[*index as usize].property_flags;
        allowed >> index & 1 == 1 && !flags.intersects(unusual) && fits(flags)
    })
}
