//! Keeps a chunk: a range of timestamp queries that one command recording uses, and the memory in which their
//! results arrive. Results arrive by one of two ways: the command buffer copies them ([`Chunk::copy_results`], then
//! [`Chunk::receive`] on the host), or the driver is asked ([`Chunk::ask`]); [`Chunk::ticks`] reads either.

use crate::timing::result_buffer::ResultBuffer;
use ash::vk;

/// The bytes of a result: value and availability.
pub const RESULT_BYTES: u64 = 16;

/// A range of the queries of a slab (one query pool).
#[derive(Clone, Copy)]
pub struct Chunk {
    pub pool: vk::QueryPool,
    /// The memory into which the command buffer copies results; `None` where the driver is asked for them.
    mapped: Option<ResultBuffer>,
    /// The first query, in the pool.
    pub first: u32,
    pub count: u32,
    /// Whether the host has reset the queries and nothing has been written since.
    pub reset: bool,
    /// For each query of the chunk its value and its availability (not 0 once arrived).
    results: *mut [u64; 2],
}

// SAFETY: `results` points into memory that lives until the device is destroyed. It is written by the GPU or by the
// driver when asked, and read by the thread that holds the harvester's lock; all accesses are volatile.
unsafe impl Send for Chunk {}
// SAFETY: as above.
unsafe impl Sync for Chunk {}
impl Chunk {
    /// Returns all queries of a pool, with the address of their results and the mapped memory, if that is where they
    /// are.
    ///
    /// # Safety
    /// `results` has room for `count` results, and lives until the device is destroyed.
    pub unsafe fn new(
        pool: vk::QueryPool,
        count: u32,
        results: *mut [u64; 2],
        mapped: Option<ResultBuffer>,
    ) -> Chunk {
        Chunk {
            pool,
            mapped,
            first: 0,
            count,
            reset: false,
            results,
        }
    }

    /// Splits the first `count` queries off; `None` if there are fewer.
    pub fn split(&mut self, count: u32) -> Option<Chunk> {
        if count > self.count {
            return None;
        }
        let chunk = Chunk { count, ..*self };
        // SAFETY: the chunk has at least `count` results behind `results`.
        self.results = unsafe { self.results.add(count as usize) };
        self.first += count;
        self.count -= count;
        Some(chunk)
    }

    /// Records the copy of the first `used` results, which waits for them.
    ///
    /// # Safety
    /// `cb` is being recorded outside a render pass, on a family that may copy queries; all of the queries are written
    /// before this point, and nothing resets them meanwhile.
    pub unsafe fn copy_results(&self, next: &ash::Device, cb: vk::CommandBuffer, used: u32) {
        let Some(mapped) = self.mapped else { return };
        let flags = vk::QueryResultFlags::TYPE_64
            | vk::QueryResultFlags::WITH_AVAILABILITY
            | vk::QueryResultFlags::WAIT;
        // SAFETY: the range lies in the pool, and its results in the slab's buffer.
        unsafe {
            next.cmd_copy_query_pool_results(
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

    /// Records a reset of all queries.
    ///
    /// # Safety
    /// As [`Self::copy_results`].
    pub unsafe fn reset_in(&self, next: &ash::Device, cb: vk::CommandBuffer) {
        // SAFETY: the range lies in the pool.
        unsafe { next.cmd_reset_query_pool(cb, self.pool, self.first, self.count) };
    }

    /// Resets all queries from the host.
    ///
    /// # Safety
    /// The feature is enabled and no pending work uses the queries.
    pub unsafe fn reset_by_host(&self, next: &ash::Device) {
        // SAFETY: the range lies in the pool.
        unsafe { next.reset_query_pool(self.pool, self.first, self.count) };
    }

    /// Resets all queries from the host unless that has been done.
    ///
    /// # Safety
    /// As [`Self::reset_by_host`].
    pub unsafe fn make_reset(&mut self, next: &ash::Device) {
        if !self.reset {
            // SAFETY: as the caller promises.
            unsafe { self.reset_by_host(next) };
            self.reset = true;
        }
    }

    /// Marks the results of a range of the chunk's queries as not arrived, so that the next ones are not taken for
    /// them.
    pub fn clear(&self, next: &ash::Device, range: std::ops::Range<u32>) {
        for query in range {
            // SAFETY: the result lies in the chunk's part of the mapping.
            unsafe { (&raw mut (*self.results.add(query as usize))[1]).write_volatile(0) };
        }
        if let Some(mapped) = self.mapped {
            let (offset, bytes) = self.bytes();
            mapped.flush(next, offset, bytes);
        }
    }

    /// Returns the ticks (raw time of the device) of the chunk's query with this index, when they have arrived.
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

    /// Makes results that the device has copied visible to the host.
    pub fn receive(&self, next: &ash::Device) {
        if let Some(mapped) = self.mapped {
            let (offset, bytes) = self.bytes();
            mapped.invalidate(next, offset, bytes);
        }
    }

    /// Returns the offset and length of the results in the slab's memory.
    fn bytes(&self) -> (u64, u64) {
        (
            u64::from(self.first) * RESULT_BYTES,
            u64::from(self.count) * RESULT_BYTES,
        )
    }

    /// Asks the driver, without waiting, for the first `used` results, where they are not copied.
    pub fn ask(&self, next: &ash::Device, used: u32) {
        let flags = vk::QueryResultFlags::TYPE_64 | vk::QueryResultFlags::WITH_AVAILABILITY;
        let bytes = used as usize * RESULT_BYTES as usize;
        // SAFETY: the chunk's part of the mapping has room for `used` results, and it is not used by copies.
        unsafe {
            let _ = (next.fp_v1_0().get_query_pool_results)(
                next.handle(),
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
