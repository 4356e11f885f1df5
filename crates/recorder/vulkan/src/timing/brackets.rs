//! Makes brackets: two command buffers of the layer that write a timestamp before and after one of the program's.
//! They time a command buffer that may run twice at once, as the timestamps inside it would overwrite each other.

use crate::api::families::Delivery;
use crate::api::loader::SetDeviceLoaderData;
use crate::handles::{HandleMap, lock};
use crate::timing::barriers;
use crate::timing::command_recording::Timing;
use crate::timing::queries::Queries;
use ash::vk;
use ash::vk::Handle;
use gapscope_spool::ids;
use std::collections::hash_map::Entry;
use std::sync::{Arc, Mutex};

/// A pair of command buffers with their two queries, recorded when made, and reused for later submissions.
pub struct Bracket {
    family: u32,
    pub before: vk::CommandBuffer,
    pub after: vk::CommandBuffer,
    pub timing: Arc<Timing>,
}

/// The brackets of a device.
pub struct Brackets {
    queries: &'static Queries,
    /// The loader's function that makes a layer's own command buffers callable.
    set_loader_data: Option<SetDeviceLoaderData>,
    state: Mutex<State>,
}

/// The command pools of brackets, and the brackets that nobody uses.
#[derive(Default)]
struct State {
    /// A command pool for each queue family.
    pools: HandleMap<vk::CommandPool>,
    /// The unused brackets of each queue family.
    free: HandleMap<Vec<Bracket>>,
}

impl Brackets {
    pub fn new(
        queries: &'static Queries,
        set_loader_data: Option<SetDeviceLoaderData>,
    ) -> Brackets {
        Brackets {
            queries,
            set_loader_data,
            state: Mutex::default(),
        }
    }

    /// Returns a bracket for a queue family whose results leave the GPU by `delivery`; `None` where the family has no
    /// timestamps, or no bracket can be made.
    pub fn take(&self, family: u32, delivery: Delivery) -> Option<Bracket> {
        if delivery == Delivery::None {
            return None;
        }
        let mut state = lock(&self.state);
        let free = state.free.get_mut(&u64::from(family)).and_then(Vec::pop);
        let bracket = match free {
            Some(bracket) => bracket,
            None => self.make(&mut state, family, delivery)?,
        };
        // SAFETY: a bracket is given back once its results have been read.
        unsafe { bracket.timing.prepare() };
        Some(bracket)
    }

    /// Takes back a bracket whose results have been read, for later submissions.
    pub fn give_back(&self, bracket: Bracket) {
        lock(&self.state)
            .free
            .entry(u64::from(bracket.family))
            .or_default()
            .push(bracket);
    }

    /// Destroys the command pools of all brackets.
    ///
    /// # Safety
    /// No bracket is pending.
    pub unsafe fn destroy(&self) {
        let mut state = lock(&self.state);
        state.free.clear();
        for (_, pool) in state.pools.drain() {
            // SAFETY: the pool is ours and, as the caller promises, idle.
            unsafe { self.queries.next.destroy_command_pool(pool, None) };
        }
    }

    /// Makes and records a bracket; `None` where the driver refuses one of its parts.
    fn make(&self, state: &mut State, family: u32, delivery: Delivery) -> Option<Bracket> {
        let next = self.queries.next;
        // SAFETY: each structure is valid for its call, objects are made before they are used, and the lock that
        // `state` stands for synchronises the pool.
        unsafe {
            let pool = match state.pools.entry(u64::from(family)) {
                Entry::Occupied(entry) => *entry.get(),
                Entry::Vacant(entry) => {
                    let info = vk::CommandPoolCreateInfo::default().queue_family_index(family);
                    *entry.insert(next.create_command_pool(&info, None).ok()?)
                }
            };
            let info = vk::CommandBufferAllocateInfo::default()
                .command_pool(pool)
                .command_buffer_count(2);
            let pair = next.allocate_command_buffers(&info).ok()?;
            for cb in &pair {
                // Without this call the handle lacks the dispatch table.
                if let Some(set) = self.set_loader_data {
                    let _ = set(next.handle(), cb.as_raw() as *mut std::ffi::c_void);
                }
            }
            let (before, after) = (pair[0], pair[1]);
            let mut chunk = self.queries.take(true)?;
            // The pair is submitted again once its results have arrived. Layers below may learn that it is no longer
            // pending only from a fence of the program's, perhaps later.
            let begin = vk::CommandBufferBeginInfo::default()
                .flags(vk::CommandBufferUsageFlags::SIMULTANEOUS_USE);
            let (top, bottom) = (
                vk::PipelineStageFlags::TOP_OF_PIPE,
                vk::PipelineStageFlags::BOTTOM_OF_PIPE,
            );
            let _ = next.begin_command_buffer(before, &begin);
            match delivery {
                Delivery::Copied => chunk.reset_in(next, before),
                _ => chunk.make_reset(next),
            }
            next.cmd_write_timestamp(before, top, chunk.pool, chunk.first);
            let _ = next.end_command_buffer(before);
            let _ = next.begin_command_buffer(after, &begin);
            next.cmd_write_timestamp(after, bottom, chunk.pool, chunk.first + 1);
            if delivery == Delivery::Copied {
                chunk.copy_results(next, after, 2);
                barriers::to_host(next, after);
            }
            let _ = next.end_command_buffer(after);
            let timing = Timing::new(
                self.queries,
                ids::CommandRecording::NONE,
                delivery,
                vec![(chunk, 2)],
                Vec::new(),
            );
            Some(Bracket {
                family,
                before,
                after,
                timing: Arc::new(timing),
            })
        }
    }
}
