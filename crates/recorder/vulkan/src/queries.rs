//! Timestamp queries, and the mapped memory in which their results arrive.
//!
//! Queries come in slabs: one query pool and one mapped buffer with 16 bytes a query (value, availability). Command
//! buffers take chunks of a slab, a small one first, since many hold only a few dispatches. A chunk goes back to its
//! list when the last user of the recording's [`Timing`] is gone.

use crate::device::Device;
use crate::handles::lock;
use ash::vk;
use std::sync::{Arc, Mutex};

/// Queries of a slab.
const SLAB_QUERIES: u32 = 16 * 1024;
/// Queries of the first chunk of a recording, and of the others. Results of one chunk are one 256-byte multiple, so
/// that no two chunks share a block of non-coherent memory.
const SMALL: u32 = 16;
const LARGE: u32 = 1024;
/// Bytes of a result: value and availability.
const RESULT_BYTES: u64 = 16;

/// How results of a queue family leave the GPU.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Delivery {
    /// Copied inside the command buffer.
    Copied,
    /// Transfer-only families can neither reset nor copy queries: reset by the host before each submission, and asked
    /// for by the host.
    Asked,
    /// The family has no timestamps.
    None,
}

struct Slab {
    pool: vk::QueryPool,
    buffer: vk::Buffer,
    memory: vk::DeviceMemory,
    results: *mut [u64; 2],
}

/// A range of queries of a slab.
#[derive(Clone, Copy)]
pub struct Chunk {
    pub pool: vk::QueryPool,
    buffer: vk::Buffer,
    memory: vk::DeviceMemory,
    /// First query in the pool.
    pub first: u32,
    pub count: u32,
    results: *mut [u64; 2],
}

// SAFETY: `results` points into memory that stays mapped until the device is destroyed. It is written by the GPU and
// read by whoever holds the harvester's lock; all accesses are volatile.
unsafe impl Send for Chunk {}
// SAFETY: as above.
unsafe impl Sync for Chunk {}
// SAFETY: as for `Chunk`.
unsafe impl Send for Slab {}

/// The queries of a device.
#[derive(Default)]
pub struct Queries {
    state: Mutex<State>,
}

#[derive(Default)]
struct State {
    slabs: Vec<Slab>,
    small: Vec<Chunk>,
    large: Vec<Chunk>,
    /// The unused end of the newest slab.
    rest: Option<Chunk>,
    failed: bool,
}

impl Queries {
    /// A chunk, small or large; `None` when the driver gives no more memory or query pools.
    pub fn take(&self, device: &Device, small: bool) -> Option<Chunk> {
        let mut state = lock(&self.state);
        let (list, count) = if small {
            (&mut state.small, SMALL)
        } else {
            (&mut state.large, LARGE)
        };
        let chunk = match list.pop() {
            Some(chunk) => chunk,
            None => state.split(device, count)?,
        };
        drop(state);
        chunk.clear(device, 0..chunk.count);
        Some(chunk)
    }

    fn give_back(&self, chunk: Chunk) {
        let mut state = lock(&self.state);
        if chunk.count == SMALL {
            state.small.push(chunk)
        } else {
            state.large.push(chunk)
        }
    }

    /// Destroys all slabs.
    ///
    /// # Safety
    /// No work of the device is pending and no chunk is used any more.
    pub unsafe fn destroy(&self, device: &Device) {
        let mut state = lock(&self.state);
        state.small.clear();
        state.large.clear();
        state.rest = None;
        for slab in state.slabs.drain(..) {
            // SAFETY: the objects are ours and, as the caller promises, idle.
            unsafe { slab.destroy(device) };
        }
    }
}

impl State {
    fn split(&mut self, device: &Device, count: u32) -> Option<Chunk> {
        if self.rest.is_none_or(|rest| rest.count < count) {
            if self.failed {
                return None;
            }
            let slab = device
                .physical
                .result_memory
                .and_then(|(kind, _)| Slab::create(device, kind));
            let Some(slab) = slab else {
                self.failed = true;
                return None;
            };
            self.rest = Some(Chunk {
                pool: slab.pool,
                buffer: slab.buffer,
                memory: slab.memory,
                first: 0,
                count: SLAB_QUERIES,
                results: slab.results,
            });
            self.slabs.push(slab);
        }
        let rest = self.rest.as_mut()?;
        let chunk = Chunk { count, ..*rest };
        // SAFETY: the chunk holds `count` results of the mapping, which are behind `results`.
        rest.results = unsafe { rest.results.add(count as usize) };
        rest.first += count;
        rest.count -= count;
        Some(chunk)
    }
}

impl Slab {
    fn create(device: &Device, memory_type: u32) -> Option<Slab> {
        let f = &device.next;
        let handle = device.handle;
        let pool_info = vk::QueryPoolCreateInfo::default()
            .query_type(vk::QueryType::TIMESTAMP)
            .query_count(SLAB_QUERIES);
        let bytes = u64::from(SLAB_QUERIES) * RESULT_BYTES;
        let buffer_info = vk::BufferCreateInfo::default()
            .size(bytes)
            .usage(vk::BufferUsageFlags::TRANSFER_DST);
        let mut slab = Slab {
            pool: vk::QueryPool::null(),
            buffer: vk::Buffer::null(),
            memory: vk::DeviceMemory::null(),
            results: std::ptr::null_mut(),
        };
        // SAFETY: each structure is valid for its call, and each object is made before it is used.
        unsafe {
            let none = std::ptr::null();
            let made = (f.create_query_pool?)(handle, &pool_info, none, &mut slab.pool)
                == vk::Result::SUCCESS
                && (f.create_buffer?)(handle, &buffer_info, none, &mut slab.buffer)
                    == vk::Result::SUCCESS
                && {
                    let mut needs = vk::MemoryRequirements::default();
                    (f.get_buffer_memory_requirements?)(handle, slab.buffer, &mut needs);
                    let info = vk::MemoryAllocateInfo::default()
                        .allocation_size(needs.size)
                        .memory_type_index(memory_type);
                    let mut address = std::ptr::null_mut();
                    needs.memory_type_bits & 1 << memory_type != 0
                        && (f.allocate_memory?)(handle, &info, none, &mut slab.memory)
                            == vk::Result::SUCCESS
                        && (f.bind_buffer_memory?)(handle, slab.buffer, slab.memory, 0)
                            == vk::Result::SUCCESS
                        && (f.map_memory?)(
                            handle,
                            slab.memory,
                            0,
                            vk::WHOLE_SIZE,
                            vk::MemoryMapFlags::empty(),
                            &mut address,
                        ) == vk::Result::SUCCESS
                        && {
                            slab.results = address.cast();
                            !address.is_null()
                        }
                };
            if made {
                Some(slab)
            } else {
                slab.destroy(device);
                None
            }
        }
    }

    /// # Safety
    /// The objects are ours, and idle.
    unsafe fn destroy(self, device: &Device) {
        let f = &device.next;
        let none = std::ptr::null();
        // SAFETY: as the caller promises; destroying a null handle does nothing.
        unsafe {
            if let Some(destroy) = f.destroy_query_pool {
                destroy(device.handle, self.pool, none);
            }
            if let Some(destroy) = f.destroy_buffer {
                destroy(device.handle, self.buffer, none);
            }
            if let Some(free) = f.free_memory {
                free(device.handle, self.memory, none);
            }
        }
    }
}

impl Chunk {
    /// Records the copy of the first `used` results.
    ///
    /// # Safety
    /// `cb` is being recorded outside a render pass, on a family that may copy queries; all of the queries are written
    /// before this point (the copy waits for them).
    pub unsafe fn copy_results(&self, device: &Device, cb: vk::CommandBuffer, used: u32) {
        let Some(copy) = device.next.cmd_copy_query_pool_results else {
            return;
        };
        let flags = vk::QueryResultFlags::TYPE_64
            | vk::QueryResultFlags::WITH_AVAILABILITY
            | vk::QueryResultFlags::WAIT;
        // SAFETY: the range lies in the pool, and its results in the slab's buffer.
        unsafe {
            copy(
                cb,
                self.pool,
                self.first,
                used,
                self.buffer,
                u64::from(self.first) * RESULT_BYTES,
                RESULT_BYTES,
                flags,
            );
        }
    }

    /// Records the reset of all queries.
    ///
    /// # Safety
    /// As [`Self::copy_results`].
    pub unsafe fn reset_in(&self, device: &Device, cb: vk::CommandBuffer) {
        if let Some(reset) = device.next.cmd_reset_query_pool {
            // SAFETY: the range lies in the pool.
            unsafe { reset(cb, self.pool, self.first, self.count) };
        }
    }

    /// Resets all queries from the host.
    ///
    /// # Safety
    /// The feature is enabled and no pending work uses the queries.
    pub unsafe fn reset_by_host(&self, device: &Device) {
        if let Some(reset) = device.next.reset_query_pool {
            // SAFETY: the range lies in the pool.
            unsafe { reset(device.handle, self.pool, self.first, self.count) };
        }
    }

    /// Forgets results, so that the next ones can be told from them.
    pub fn clear(&self, device: &Device, range: std::ops::Range<u32>) {
        for query in range {
            // SAFETY: the result lies in the chunk's part of the mapping.
            unsafe { (&raw mut (*self.results.add(query as usize))[1]).write_volatile(0) };
        }
        device.sync_results(self.memory_range(), true);
    }

    /// The ticks of a query, when they have arrived.
    fn ticks(&self, query: u32) -> Option<u64> {
        // SAFETY: the result lies in the chunk's part of the mapping. The availability is read first; the value was
        // written no later by the device.
        unsafe {
            let result = self.results.add(query as usize);
            let available = (&raw const (*result)[1]).read_volatile();
            std::sync::atomic::fence(std::sync::atomic::Ordering::Acquire);
            (available != 0).then(|| (&raw const (*result)[0]).read_volatile())
        }
    }

    fn memory_range(&self) -> vk::MappedMemoryRange<'static> {
        vk::MappedMemoryRange::default()
            .memory(self.memory)
            .offset(u64::from(self.first) * RESULT_BYTES)
            .size(u64::from(self.count) * RESULT_BYTES)
    }

    /// Asks the driver for results that are not copied.
    fn ask(&self, device: &Device, used: u32) {
        let Some(get) = device.next.get_query_pool_results else {
            return;
        };
        let flags = vk::QueryResultFlags::TYPE_64 | vk::QueryResultFlags::WITH_AVAILABILITY;
        let bytes = used as usize * RESULT_BYTES as usize;
        // SAFETY: the chunk's part of the mapping has room for `used` results, and it is not used by copies.
        unsafe {
            let _ = get(
                device.handle,
                self.pool,
                self.first,
                used,
                bytes,
                self.results.cast(),
                RESULT_BYTES,
                flags,
            );
        }
    }
}

/// The queries of one recording. It outlives the recording while instances of it are pending.
pub struct Timing {
    pub recording: u32,
    device: &'static Device,
    delivery: Delivery,
    /// Chunks with the number of queries used in each.
    chunks: Vec<(Chunk, u32)>,
    /// Timings of secondary recordings that it executes.
    pub children: Vec<Arc<Timing>>,
}

impl Timing {
    pub fn new(
        device: &'static Device,
        recording: u32,
        delivery: Delivery,
        chunks: Vec<(Chunk, u32)>,
        children: Vec<Arc<Timing>>,
    ) -> Timing {
        Timing {
            recording,
            device,
            delivery,
            chunks,
            children,
        }
    }

    /// True when all results have arrived.
    pub fn arrived(&self) -> bool {
        self.chunks.iter().rev().all(|(chunk, used)| {
            match self.delivery {
                Delivery::Copied => self.device.sync_results(chunk.memory_range(), false),
                Delivery::Asked => chunk.ask(self.device, *used),
                Delivery::None => {}
            }
            (0..*used).rev().all(|query| chunk.ticks(query).is_some())
        }) && self.children.iter().all(|child| child.arrived())
    }

    /// Hands out all ticks, chunk by chunk with the recording and the index of the first query, and forgets them.
    pub fn collect(&self, scratch: &mut Vec<u64>, deliver: &mut impl FnMut(u32, u32, &[u64])) {
        let mut first = 0;
        for (chunk, used) in &self.chunks {
            scratch.clear();
            scratch.extend((0..*used).map(|query| {
                chunk
                    .ticks(query)
                    .unwrap_or(gapscope_spool::event::NO_TICKS)
            }));
            deliver(self.recording, first, scratch);
            chunk.clear(self.device, 0..*used);
            first += chunk.count;
        }
        for child in &self.children {
            child.collect(scratch, deliver);
        }
    }

    /// Prepares the queries for another execution.
    ///
    /// # Safety
    /// No instance of the recording is pending.
    pub unsafe fn prepare(&self) {
        if self.delivery == Delivery::Asked {
            for (chunk, _) in &self.chunks {
                // SAFETY: as the caller promises; `Asked` is chosen only with the feature enabled.
                unsafe { chunk.reset_by_host(self.device) };
            }
        }
        for child in &self.children {
            // SAFETY: a pending child would make the recording pending.
            unsafe { child.prepare() };
        }
    }
}

impl Drop for Timing {
    fn drop(&mut self) {
        for (chunk, _) in self.chunks.drain(..) {
            self.device.queries.give_back(chunk);
        }
    }
}
