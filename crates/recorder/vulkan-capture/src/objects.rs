//! Keeps the state of the program's objects, such as buffers and pipelines, by their handles (Vulkan's numbers of
//! objects, which are used again). Objects that a capture numbers also have a serial number, which is never used
//! again.

pub mod command;
pub mod kernels;
pub mod memory;
pub mod query_pool;
pub mod refusal;

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex};

use gapscope_vulkan_layer::descriptors::{Descriptor, Descriptors};
use gapscope_vulkan_layer::handles::{Handles, Serial};

use command::CommandBuffer;
use kernels::{Module, Pipeline, PipelineLayout};
use memory::{Buffer, Memory};
use query_pool::QueryPool;

/// The descriptors of a set, by their index among all descriptors of the set. Descriptors that were never written
/// are absent.
pub type Contents = BTreeMap<u32, Descriptor>;

/// The objects of a device.
#[derive(Default)]
pub struct Objects {
    pub memories: Handles<Arc<Memory>>,
    pub buffers: Handles<Arc<Buffer>>,
    pub modules: Handles<Arc<Module>>,
    pub pipeline_layouts: Handles<Arc<PipelineLayout>>,
    pub pipelines: Handles<Arc<Pipeline>>,
    pub descriptors: Descriptors<Contents>,
    pub semaphores: Handles<Semaphore>,
    pub query_pools: Handles<QueryPool>,
    pub command_buffers: Handles<Arc<Mutex<CommandBuffer>>>,
}

/// A semaphore.
#[derive(Clone, Copy)]
pub struct Semaphore {
    pub serial: Serial,
    pub is_timeline: bool,
    /// Whether other processes or APIs may signal the semaphore.
    pub is_shared: bool,
}
