//! Command pools: which command buffers come from each, and which queue family they are for.

use crate::handles::{HandleMap, lock};
use ash::vk;
use ash::vk::Handle;
use std::sync::{Mutex, MutexGuard};

pub struct CommandPool {
    pub family: u32,
    /// Its command buffers are protected: they must not write to memory that is not.
    pub protected: bool,
    pub members: Vec<vk::CommandBuffer>,
}

/// The command pools of a device.
#[derive(Default)]
pub struct CommandPools(Mutex<HandleMap<CommandPool>>);

impl CommandPools {
    pub fn lock(&self) -> MutexGuard<'_, HandleMap<CommandPool>> {
        lock(&self.0)
    }

    pub fn add(&self, pool: vk::CommandPool, info: &vk::CommandPoolCreateInfo<'_>) {
        let new = CommandPool {
            family: info.queue_family_index,
            protected: info.flags.contains(vk::CommandPoolCreateFlags::PROTECTED),
            members: Vec::new(),
        };
        self.lock().insert(pool.as_raw(), new);
    }
}
