//! Keeps for each command pool of the program (from which command buffers are allocated) its command buffers, and the
//! queue family that they are for.

use std::sync::{Mutex, MutexGuard};

use ash::vk;
use ash::vk::Handle;

use crate::handles::{HandleMap, lock};

/// A command pool with its queue family and its command buffers.
pub struct CommandPool {
    pub family: u32,
    /// Whether the command buffers are protected: they must not write to memory that is not.
    pub is_protected: bool,
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
            is_protected: info.flags.contains(vk::CommandPoolCreateFlags::PROTECTED),
            members: Vec::new(),
        };
        self.lock().insert(pool.as_raw(), new);
    }
}
