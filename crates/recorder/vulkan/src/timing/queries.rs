//! Hands out timestamp queries to command recordings (contents of command buffers), and takes them back for reuse.
//!
//! Queries come in slabs: one query pool, and memory with 16 bytes a query (value, availability). Command buffers
//! take chunks of a slab, a small one first, since many hold only a few dispatches. A chunk goes back to its list
//! when the last user of the recording's [`Timing`](crate::timing::command_recording::Timing) is gone.

use crate::api::families::{Delivery, Families};
use crate::handles::lock;
use crate::timing::chunk::{Chunk, RESULT_BYTES};
use crate::timing::result_buffer::{ResultBuffer, ResultMemory};
use ash::vk;
use std::sync::Mutex;
use std::sync::atomic::{AtomicBool, Ordering::Relaxed};

/// The number of queries of a slab.
const SLAB_QUERIES: u32 = 16 * 1024;
/// The number of queries of the first chunk of a command recording. The results of one chunk are a multiple of 256
/// bytes, so that no two chunks share a block of non-coherent memory.
const SMALL_CHUNK_QUERIES: u32 = 16;
/// The number of queries of each further chunk.
const LARGE_CHUNK_QUERIES: u32 = 1024;

/// The queries of a device.
pub struct Queries {
    /// The next layer's functions.
    pub next: &'static ash::Device,
    /// Whether the results of some family are copied to mapped memory by command buffers.
    copied: bool,
    /// Whether the driver is asked for the results of some family.
    asked: bool,
    /// Where results are copied to; `None` if no memory type is host-visible.
    memory: Option<ResultMemory>,
    /// Whether there are finished command recordings with queries, which must be prepared even while the recorder is
    /// off.
    recorded: AtomicBool,
    state: Mutex<State>,
}

/// The chunks of queries that nobody uses, by their size and state.
#[derive(Default)]
struct State {
    /// All slabs (query pools with the memory for their results).
    slabs: Vec<Slab>,
    /// Unused chunks of [`SMALL_CHUNK_QUERIES`] whose queries are reset.
    small: Vec<Chunk>,
    /// Unused chunks of [`LARGE_CHUNK_QUERIES`] whose queries are reset.
    large: Vec<Chunk>,
    /// Chunks of either size with queries that have been written.
    used: Vec<Chunk>,
    /// The unused end of the newest slab.
    rest: Option<Chunk>,
    /// Whether the driver has refused a slab; then no more are asked for.
    failed: bool,
}

impl Queries {
    pub fn new(
        next: &'static ash::Device,
        families: &Families,
        memory: &vk::PhysicalDeviceMemoryProperties,
    ) -> Queries {
        Queries {
            next,
            copied: families.have(Delivery::Copied),
            asked: families.have(Delivery::Asked),
            memory: ResultMemory::choose(memory),
            recorded: AtomicBool::new(false),
            state: Mutex::default(),
        }
    }

    /// Notes that a command recording with queries has been finished.
    pub fn note_recorded(&self) {
        self.recorded.store(true, Relaxed);
    }

    /// Returns whether some command recording with queries has been finished.
    pub fn are_recorded(&self) -> bool {
        self.recorded.load(Relaxed)
    }

    /// Returns a chunk, small or large; `None` when the driver gives no more memory or query pools.
    pub fn take(&self, small: bool) -> Option<Chunk> {
        let mut state = lock(&self.state);
        let (list, count) = if small {
            (&mut state.small, SMALL_CHUNK_QUERIES)
        } else {
            (&mut state.large, LARGE_CHUNK_QUERIES)
        };
        let chunk = match list.pop() {
            Some(chunk) => chunk,
            None => match state.used.iter().rposition(|chunk| chunk.count == count) {
                Some(index) => state.used.swap_remove(index),
                None => self.split(&mut state, count)?,
            },
        };
        drop(state);
        chunk.clear(self.next, 0..chunk.count);
        Some(chunk)
    }

    /// Takes back a chunk that nobody uses any more, for later recordings.
    pub fn give_back(&self, chunk: Chunk) {
        let mut state = lock(&self.state);
        if !chunk.reset {
            state.used.push(chunk);
        } else if chunk.count == SMALL_CHUNK_QUERIES {
            state.small.push(chunk);
        } else {
            state.large.push(chunk);
        }
    }

    /// Resets the queries of unused chunks, so that the program's thread does not have to.
    pub fn reset_used(&self) {
        if !self.asked {
            return;
        }
        loop {
            let Some(mut chunk) = lock(&self.state).used.pop() else {
                return;
            };
            // SAFETY: `Asked` is chosen only with the feature enabled; a chunk is given back when the recording that
            // used it is no longer pending.
            unsafe { chunk.make_reset(self.next) };
            self.give_back(chunk);
        }
    }

    /// Destroys all slabs.
    ///
    /// # Safety
    /// No work of the device is pending and no chunk is used any more.
    pub unsafe fn destroy(&self) {
        let mut state = lock(&self.state);
        state.small.clear();
        state.used.clear();
        state.large.clear();
        state.rest = None;
        for slab in state.slabs.drain(..) {
            // SAFETY: the objects are ours and, as the caller promises, idle.
            unsafe { slab.destroy(self.next) };
        }
    }

    /// Splits a chunk that has never been used off the newest slab, or a new one; `None` where the driver gives none.
    fn split(&self, state: &mut State, count: u32) -> Option<Chunk> {
        if let Some(chunk) = state.rest.as_mut().and_then(|rest| rest.split(count)) {
            return Some(chunk);
        }
        if state.failed {
            return None;
        }
        let Some((slab, mut rest)) = self.create_slab() else {
            state.failed = true;
            return None;
        };
        state.slabs.push(slab);
        if self.asked {
            // SAFETY: `Asked` is chosen only with the feature enabled; the pool is new.
            unsafe { rest.make_reset(self.next) };
        }
        state.rest.insert(rest).split(count)
    }

    /// Makes a slab, and returns it with all of its queries; `None` where the driver refuses the pool or the memory.
    fn create_slab(&self) -> Option<(Slab, Chunk)> {
        let next = self.next;
        let info = vk::QueryPoolCreateInfo::default()
            .query_type(vk::QueryType::TIMESTAMP)
            .query_count(SLAB_QUERIES);
        // SAFETY: the structure is valid.
        let pool = unsafe { next.create_query_pool(&info, None) }.ok()?;
        let (results, memory) = if self.copied {
            let bytes = u64::from(SLAB_QUERIES) * RESULT_BYTES;
            let Some((mapped, results)) = self
                .memory
                .and_then(|memory| ResultBuffer::create(next, memory, bytes))
            else {
                // SAFETY: the pool is ours and new.
                unsafe { next.destroy_query_pool(pool, None) };
                return None;
            };
            (results, SlabMemory::Mapped(mapped))
        } else {
            let mut host = vec![[0; 2]; SLAB_QUERIES as usize].into_boxed_slice();
            (host.as_mut_ptr(), SlabMemory::Host { _results: host })
        };
        let mapped = match memory {
            SlabMemory::Mapped(mapped) => Some(mapped),
            SlabMemory::Host { .. } => None,
        };
        // SAFETY: the memory has room for the results of a slab.
        let all = unsafe { Chunk::new(pool, SLAB_QUERIES, results, mapped) };
        Some((Slab { pool, memory }, all))
    }
}

/// A query pool, and the memory for its results.
struct Slab {
    pool: vk::QueryPool,
    memory: SlabMemory,
}

/// The place at which the results of a slab arrive.
enum SlabMemory {
    /// The results arrive in host memory.
    Host { _results: Box<[[u64; 2]]> },
    /// The results arrive in device memory that is mapped.
    Mapped(ResultBuffer),
}

impl Slab {
    /// Destroys the query pool and its memory.
    ///
    /// # Safety
    /// The objects are idle.
    unsafe fn destroy(self, next: &ash::Device) {
        // SAFETY: as the caller promises.
        unsafe {
            next.destroy_query_pool(self.pool, None);
            if let SlabMemory::Mapped(mapped) = self.memory {
                mapped.destroy(next);
            }
        }
    }
}
