//! The names of compute pipelines, kept without the pipelines themselves: what the program drops is freed.

use ::wgpu::ComputePipeline;
use std::collections::{HashMap, VecDeque};
use std::hash::{Hash, Hasher};
use std::sync::Arc;

/// The maximum number of names. Beyond it the oldest pipelines lose theirs.
const MAX_NAMES: usize = 1 << 16;

/// The id of a pipeline, as wgpu hashes it. wgpu gives no id to a second pipeline, also not after the first
/// one was dropped.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
struct PipelineId(u128);

impl PipelineId {
    fn new(pipeline: &ComputePipeline) -> PipelineId {
        let mut written = Written(0);
        pipeline.hash(&mut written);
        PipelineId(written.0)
    }
}

/// A hasher that keeps the last 16 bytes that are written to it.
struct Written(u128);

impl Hasher for Written {
    fn write(&mut self, bytes: &[u8]) {
        for byte in bytes {
            self.0 = self.0.rotate_left(8) ^ u128::from(*byte);
        }
    }

    fn finish(&self) -> u64 {
        self.0 as u64
    }
}

/// The names by pipeline.
#[derive(Debug, Default)]
pub(super) struct PipelineNames {
    names: HashMap<PipelineId, Arc<str>>,
    /// The pipelines in the order in which they were named first.
    order: VecDeque<PipelineId>,
}

impl PipelineNames {
    pub fn insert(&mut self, pipeline: &ComputePipeline, name: &str) {
        let id = PipelineId::new(pipeline);
        if self.names.insert(id, Arc::from(name)).is_some() {
            return;
        }
        self.order.push_back(id);
        if self.order.len() > MAX_NAMES
            && let Some(oldest) = self.order.pop_front()
        {
            self.names.remove(&oldest);
        }
    }

    pub fn name(&self, pipeline: &ComputePipeline) -> Option<Arc<str>> {
        self.names.get(&PipelineId::new(pipeline)).cloned()
    }
}
