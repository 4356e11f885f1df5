//! Timestamp queries, and the memory in which their results arrive.
//!
//! Queries come in slabs: one query pool, and memory with 16 bytes a query (value, availability). Command
//! buffers take chunks of a slab, a small one first, since many hold only a few dispatches. A chunk goes back to its
//! list when the last user of the recording's [`Timing`](crate::timing::Timing) is gone.

use crate::device::Device;
use crate::handles::lock;
use ash::vk;
use std::sync::Mutex;

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
    /// The host resets the queries before each submission and asks the driver for results: nothing but timestamps is
    /// added to the program's command buffers. Needs host query reset, and a driver that answers without waiting.
    Asked,
    /// Reset and copied to mapped memory of ours inside the command buffer. The copy waits for the last timestamp, so
    /// the device cannot begin what follows before it has finished what came before.
    Copied,
    /// The family has no timestamps, or no way to get at them.
    None,
}

/// A query pool, and the memory for its results.
struct Slab {
    pool: vk::QueryPool,
    memory: ResultMemory,
    results: *mut [u64; 2],
}

/// Where results arrive.
enum ResultMemory {
    /// In memory of the host.
    Host { _results: Box<[[u64; 2]]> },
    /// In device memory that is mapped.
    Mapped(Mapped),
}

#[derive(Clone, Copy)]
struct Mapped {
    buffer: vk::Buffer,
    memory: vk::DeviceMemory,
}

/// A range of queries of a slab.
#[derive(Clone, Copy)]
pub struct Chunk {
    pub pool: vk::QueryPool,
    mapped: Option<Mapped>,
    /// First query in the pool.
    pub first: u32,
    pub count: u32,
    /// Its queries have been reset by the host and not been written since.
    pub reset: bool,
    results: *mut [u64; 2],
}

// SAFETY: `results` points into memory that lives until the device is destroyed. It is written by the GPU or by the
// driver when asked, and read by whoever holds the harvester's lock; all accesses are volatile.
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
    /// Of either size, with queries that have been written.
    used: Vec<Chunk>,
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
            None => match state.used.iter().rposition(|chunk| chunk.count == count) {
                Some(place) => state.used.swap_remove(place),
                None => state.split(device, count)?,
            },
        };
        drop(state);
        chunk.clear(device, 0..chunk.count);
        Some(chunk)
    }

    pub fn give_back(&self, chunk: Chunk) {
        let mut state = lock(&self.state);
        if !chunk.reset {
            state.used.push(chunk);
        } else if chunk.count == SMALL {
            state.small.push(chunk);
        } else {
            state.large.push(chunk);
        }
    }

    /// Resets the queries of chunks that nobody has, so that the program's thread does not have to.
    pub fn reset_used(&self, device: &Device) {
        if !device.asks() {
            return;
        }
        loop {
            let Some(mut chunk) = lock(&self.state).used.pop() else {
                return;
            };
            // SAFETY: `Asked` is chosen only with the feature enabled; a chunk is given back when the recording that
            // used it is no longer pending.
            unsafe { chunk.make_reset(device) };
            self.give_back(chunk);
        }
    }

    /// Destroys all slabs.
    ///
    /// # Safety
    /// No work of the device is pending and no chunk is used any more.
    pub unsafe fn destroy(&self, device: &Device) {
        let mut state = lock(&self.state);
        state.small.clear();
        state.used.clear();
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
            let slab = Slab::create(device);
            let Some(slab) = slab else {
                self.failed = true;
                return None;
            };
            self.rest = Some(Chunk {
                pool: slab.pool,
                mapped: match slab.memory {
                    ResultMemory::Mapped(mapped) => Some(mapped),
                    ResultMemory::Host { .. } => None,
                },
                first: 0,
                count: SLAB_QUERIES,
                reset: false,
                results: slab.results,
            });
            self.slabs.push(slab);
            if let Some(rest) = &mut self.rest
                && device.asks()
            {
                // SAFETY: `Asked` is chosen only with the feature enabled; the pool is new.
                unsafe { rest.make_reset(device) };
            }
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
    fn create(device: &Device) -> Option<Slab> {
        let info = vk::QueryPoolCreateInfo::default()
            .query_type(vk::QueryType::TIMESTAMP)
            .query_count(SLAB_QUERIES);
        let mut pool = vk::QueryPool::null();
        // SAFETY: the structure is valid.
        let made = unsafe {
            (device.next.create_query_pool?)(device.handle, &info, std::ptr::null(), &mut pool)
        };
        if made != vk::Result::SUCCESS {
            return None;
        }
        let copies = device
            .families
            .iter()
            .any(|f| f.delivery == Delivery::Copied);
        let memory = if copies {
            Mapped::create(device).map(|(mapped, results)| (ResultMemory::Mapped(mapped), results))
        } else {
            let mut host = vec![[0; 2]; SLAB_QUERIES as usize].into_boxed_slice();
            let results = host.as_mut_ptr();
            Some((ResultMemory::Host { _results: host }, results))
        };
        match memory {
            Some((memory, results)) => Some(Slab {
                pool,
                memory,
                results,
            }),
            None => {
                // SAFETY: the pool is ours and new.
                unsafe { (device.next.destroy_query_pool?)(device.handle, pool, std::ptr::null()) };
                None
            }
        }
    }

    /// # Safety
    /// The objects are idle.
    unsafe fn destroy(self, device: &Device) {
        if let Some(destroy) = device.next.destroy_query_pool {
            // SAFETY: as the caller promises.
            unsafe { destroy(device.handle, self.pool, std::ptr::null()) };
        }
        if let ResultMemory::Mapped(mapped) = self.memory {
            // SAFETY: as the caller promises.
            unsafe { mapped.destroy(device) };
        }
    }
}

impl Mapped {
    /// A mapped buffer for the results of a slab, and its address.
    fn create(device: &Device) -> Option<(Mapped, *mut [u64; 2])> {
        let (memory_type, _) = device.physical.result_memory?;
        let mut mapped = Mapped {
            buffer: vk::Buffer::null(),
            memory: vk::DeviceMemory::null(),
        };
        // SAFETY: what has been made is destroyed once.
        let address = unsafe { mapped.fill(device, memory_type) };
        if address.is_none() {
            // SAFETY: as above; null handles are passed over.
            unsafe { mapped.destroy(device) };
        }
        address.map(|address| (mapped, address))
    }

    /// # Safety
    /// `self` holds null handles; the caller destroys what is left in them.
    unsafe fn fill(&mut self, device: &Device, memory_type: u32) -> Option<*mut [u64; 2]> {
        let f = &device.next;
        let none = std::ptr::null();
        let ok = |result: vk::Result| (result == vk::Result::SUCCESS).then_some(());
        let info = vk::BufferCreateInfo::default()
            .size(u64::from(SLAB_QUERIES) * RESULT_BYTES)
            .usage(vk::BufferUsageFlags::TRANSFER_DST);
        let mut address = std::ptr::null_mut();
        // SAFETY: each structure is valid for its call, and each object is made before it is used.
        unsafe {
            ok((f.create_buffer?)(
                device.handle,
                &info,
                none,
                &mut self.buffer,
            ))?;
            let mut needs = vk::MemoryRequirements::default();
            (f.get_buffer_memory_requirements?)(device.handle, self.buffer, &mut needs);
            if needs.memory_type_bits & 1 << memory_type == 0 {
                return None;
            }
            let info = vk::MemoryAllocateInfo::default()
                .allocation_size(needs.size)
                .memory_type_index(memory_type);
            ok((f.allocate_memory?)(
                device.handle,
                &info,
                none,
                &mut self.memory,
            ))?;
            ok((f.bind_buffer_memory?)(
                device.handle,
                self.buffer,
                self.memory,
                0,
            ))?;
            let flags = vk::MemoryMapFlags::empty();
            ok((f.map_memory?)(
                device.handle,
                self.memory,
                0,
                vk::WHOLE_SIZE,
                flags,
                &mut address,
            ))?;
        }
        (!address.is_null()).then_some(address.cast())
    }

    /// # Safety
    /// The objects are ours, and idle.
    unsafe fn destroy(self, device: &Device) {
        let none = std::ptr::null();
        // SAFETY: as the caller promises; destroying a null handle does nothing.
        unsafe {
            if let Some(destroy) = device.next.destroy_buffer {
                destroy(device.handle, self.buffer, none);
            }
            if let Some(free) = device.next.free_memory {
                free(device.handle, self.memory, none);
            }
        }
    }
}

impl Chunk {
    /// Records the copy of the first `used` results, which waits for them.
    ///
    /// # Safety
    /// `cb` is being recorded outside a render pass, on a family that may copy queries; all of the queries are written
    /// before this point, and nothing resets them meanwhile.
    pub unsafe fn copy_results(&self, device: &Device, cb: vk::CommandBuffer, used: u32) {
        let (Some(copy), Some(mapped)) = (device.next.cmd_copy_query_pool_results, self.mapped)
        else {
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
                mapped.buffer,
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

    /// Resets all queries from the host unless that has been done.
    ///
    /// # Safety
    /// As [`Self::reset_by_host`].
    pub unsafe fn make_reset(&mut self, device: &Device) {
        if !self.reset {
            // SAFETY: as the caller promises.
            unsafe { self.reset_by_host(device) };
            self.reset = true;
        }
    }

    /// Forgets results, so that the next ones can be told from them.
    pub fn clear(&self, device: &Device, range: std::ops::Range<u32>) {
        for query in range {
            // SAFETY: the result lies in the chunk's part of the mapping.
            unsafe { (&raw mut (*self.results.add(query as usize))[1]).write_volatile(0) };
        }
        self.sync(device, true);
    }

    /// The ticks of a query, when they have arrived.
    pub fn ticks(&self, query: u32) -> Option<u64> {
        // SAFETY: the result lies in the chunk's part of the mapping. The availability is read first; the value was
        // written no later by the device.
        unsafe {
            let result = self.results.add(query as usize);
            let available = (&raw const (*result)[1]).read_volatile();
            std::sync::atomic::fence(std::sync::atomic::Ordering::Acquire);
            (available != 0).then(|| (&raw const (*result)[0]).read_volatile())
        }
    }

    /// Makes host writes visible to the device (`written`), or the device's to the host, where memory needs it.
    pub fn sync(&self, device: &Device, written: bool) {
        if let Some(mapped) = self.mapped {
            let range = vk::MappedMemoryRange::default()
                .memory(mapped.memory)
                .offset(u64::from(self.first) * RESULT_BYTES)
                .size(u64::from(self.count) * RESULT_BYTES);
            device.sync_results(range, written);
        }
    }

    /// Asks the driver for results that are not copied.
    pub fn ask(&self, device: &Device, used: u32) {
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
