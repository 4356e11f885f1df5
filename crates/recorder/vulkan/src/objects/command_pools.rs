//! Command pools: which command buffers come from each, and which queue family they are for.

use crate::handles::{HandleMap, lock};
use ash::vk;
use ash::vk::Handle;
use std::sync::{Mutex, MutexGuard};

pub struct CommandPool {
    pub family: u32,
    pub members: Vec<vk::CommandBuffer>,
}

/// The command pools of a device.
#[derive(Default)]
pub struct CommandPools(Mutex<HandleMap<CommandPool>>);

impl CommandPools {
    pub fn lock(&self) -> MutexGuard<'_, HandleMap<CommandPool>> {
        lock(&self.0)
    }

    pub fn add(&self, pool: vk::CommandPool, family: u32) {
        let members = Vec::new();
        self.lock()
            .insert(pool.as_raw(), CommandPool { family, members });
    }
}
