//! What is known of one recorded process: from its ids to the trace's.

use super::bindings::Contents;
use super::cuda::Cuda;
use super::instance::Instance;
use super::recording::Recording;
use super::semaphores::Semaphores;
use super::stacks::FrameFacts;
use gapscope_spool::ids as hook;
use gapscope_timeline_builder::TimelineBuilder;
use gapscope_trace::build::TextId;
use gapscope_trace::ids::{AllocationId, BufferId, DeviceId, KernelId, QueueId, ThreadId};
use gapscope_trace::manifest;
use rustc_hash::FxHashMap;
use serde::{Deserialize, Serialize};
use std::collections::{BTreeMap, BTreeSet};

/// One recorded process.
#[derive(Debug, Default, Serialize, Deserialize)]
pub struct Process {
    /// What the manifest says.
    pub facts: manifest::Process,
    /// Threads that have written, with their names.
    pub threads: BTreeMap<ThreadId, String>,
    /// From its ids to the trace's.
    pub devices: FxHashMap<hook::Device, DeviceId>,
    /// As above.
    pub queues: FxHashMap<hook::Queue, QueueId>,
    /// As above.
    pub kernels: FxHashMap<hook::Kernel, KernelId>,
    /// As above.
    pub texts: FxHashMap<hook::Text, TextId>,
    /// As above.
    pub buffers: FxHashMap<hook::Buffer, BufferId>,
    /// Allocations that exist.
    pub allocations: FxHashMap<hook::Allocation, Allocation>,
    /// What memory pools hold.
    pub pools: FxHashMap<hook::Pool, Allocation>,
    /// Contents of descriptor sets.
    pub contents: Contents,
    /// Recordings that may still be expanded.
    pub recordings: FxHashMap<hook::Recording, Recording>,
    /// Instances that are not finished.
    pub instances: FxHashMap<hook::Instance, Instance>,
    /// Semaphores.
    pub semaphores: Semaphores,
    /// Its calls, the work that they launched, and the labels of its threads.
    pub timeline: TimelineBuilder,
    /// Lines of functions in stacks that its threads wrote.
    pub frames: FxHashMap<(hook::Thread, hook::Frame), FrameFacts>,
    /// Threads that have submitted or waited.
    pub callers: BTreeSet<ThreadId>,
    /// The one that did last.
    pub last_caller: Option<ThreadId>,
    /// Its use of CUDA.
    pub cuda: Cuda,
    /// A hook could not record its GPU work, and says why next.
    pub is_refused: bool,
    /// It is gone: nothing more comes.
    pub finished: bool,
}

/// An allocation of device memory.
#[derive(Debug, Clone, Copy, Serialize, Deserialize)]
pub struct Allocation {
    pub id: AllocationId,
    pub device: DeviceId,
    pub heap: u32,
    pub bytes: u64,
}

impl Process {
    /// The threads that have written, as the manifest has them.
    pub fn threads(&self) -> impl Iterator<Item = manifest::Thread> {
        let process = self.facts.id;
        self.threads
            .iter()
            .map(move |(thread, name)| manifest::Thread {
                process,
                thread: *thread,
                name: name.clone(),
            })
    }

    /// One user less of a recording; it goes when nobody can use it any more.
    pub fn release(&mut self, recording: hook::Recording) {
        if let Some(found) = self.recordings.get_mut(&recording) {
            found.users = found.users.saturating_sub(1);
        }
        self.drop_if_unused(recording);
    }

    /// Drops a recording that nobody can use any more, and with it its uses of others.
    pub fn drop_if_unused(&mut self, recording: hook::Recording) {
        let mut candidates = vec![recording];
        while let Some(candidate) = candidates.pop() {
            let unused = |r: &Recording| r.ended && r.users == 0;
            if !self.recordings.get(&candidate).is_some_and(unused) {
                continue;
            }
            if let Some(gone) = self.recordings.remove(&candidate) {
                for secondary in gone.secondaries.into_keys() {
                    if let Some(found) = self.recordings.get_mut(&secondary) {
                        found.users = found.users.saturating_sub(1);
                        candidates.push(secondary);
                    }
                }
            }
        }
    }
}
