//! What is known of the program's objects, by their handles.

pub mod descriptors;
pub mod kernels;
pub mod memory;
pub mod spirv;

use std::sync::atomic::{AtomicU64, Ordering::Relaxed};
use std::sync::{Arc, Mutex};

use ash::vk;
use gapscope_vulkan_layer::handles::{HandleMap, Handles};

use crate::command::CommandBuffer;
use descriptors::Descriptors;
use kernels::{Module, Pipeline, PipelineLayout};
use memory::{Buffer, Memory};

/// The objects of a device.
#[derive(Default)]
pub struct Objects {
    pub memories: Handles<Arc<Memory>>,
    pub buffers: Handles<Arc<Buffer>>,
    pub modules: Handles<Arc<Module>>,
    pub pipeline_layouts: Handles<Arc<PipelineLayout>>,
    pub pipelines: Handles<Arc<Pipeline>>,
    pub descriptors: Descriptors,
    pub semaphores: Handles<Semaphore>,
    pub command_buffers: Handles<Arc<Mutex<CommandBuffer>>>,
    /// The command buffers of each pool.
    pub command_pools: Mutex<HandleMap<Vec<vk::CommandBuffer>>>,
}

/// Tells objects apart for the life of the process: handles come again.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct Serial(u64);

impl Serial {
    pub fn next() -> Serial {
        static NEXT: AtomicU64 = AtomicU64::new(0);
        Serial(NEXT.fetch_add(1, Relaxed))
    }
}

/// A semaphore.
#[derive(Clone, Copy)]
pub struct Semaphore {
    pub serial: Serial,
    pub is_timeline: bool,
    /// Others, whom nobody knows, may signal it.
    pub is_shared: bool,
}
