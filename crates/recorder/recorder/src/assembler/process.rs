//! The state of a recorded process: the objects that its events have defined, and their ids in the trace. Keys are
//! ids of the hook (gapscope's library in the process), values those of the trace.

use super::bindings::Contents;
use super::cuda::Cuda;
use super::instance::Instance;
use super::recording::Recording;
use super::semaphores::Semaphores;
use gapscope_spool::ids as hook;
use gapscope_stacks::Frame as StackFrame;
use gapscope_timeline_builder::TimelineBuilder;
use gapscope_trace::build::TextId;
use gapscope_trace::ids::{
    AllocationId, BufferId, DeviceId, KernelId, QueueId, SubmissionId, ThreadId,
};
use gapscope_trace::manifest;
use rustc_hash::FxHashMap;
use serde::{Deserialize, Serialize};
use std::collections::{BTreeMap, BTreeSet};

/// One recorded process.
#[derive(Debug, Default, Serialize, Deserialize)]
pub struct Process {
    /// The process in the manifest.
    pub facts: manifest::Process,
    /// The threads that have written, with their names.
    pub threads: BTreeMap<ThreadId, String>,
    /// The trace's ids of the process's devices.
    pub devices: FxHashMap<hook::Device, DeviceId>,
    /// The trace's ids of the process's queues.
    pub queues: FxHashMap<hook::Queue, QueueId>,
    /// The trace's ids of the process's kernels.
    pub kernels: FxHashMap<hook::Kernel, KernelId>,
    /// The trace's ids of the process's texts.
    pub texts: FxHashMap<hook::Text, TextId>,
    /// The trace's ids of the process's buffers.
    pub buffers: FxHashMap<hook::Buffer, BufferId>,
    /// The allocations that exist.
    pub allocations: FxHashMap<hook::Allocation, Allocation>,
    /// The allocations that memory pools hold.
    pub pools: FxHashMap<hook::Pool, Allocation>,
    /// The contents of descriptor sets.
    pub contents: Contents,
    /// The command recordings that may still be expanded into rows.
    pub recordings: FxHashMap<hook::CommandRecording, Recording>,
    /// The instances that are not finished.
    pub instances: FxHashMap<hook::Instance, Instance>,
    pub semaphores: Semaphores,
    /// The last submissions of Vulkan, for calls that waited for them.
    pub submissions: BTreeMap<hook::Submission, SubmissionId>,
    /// The calls, the work that they launched, and the labels of threads.
    pub timeline: TimelineBuilder,
    /// The functions and lines of the stacks that threads wrote.
    pub frames: FxHashMap<(hook::Thread, hook::Frame), StackFrame>,
    /// The threads that have submitted or waited.
    pub callers: BTreeSet<ThreadId>,
    /// The thread that submitted or waited last.
    pub last_caller: Option<ThreadId>,
    pub cuda: Cuda,
    /// Whether a hook could not record the process's GPU work; its next event gives the reason.
    pub is_refused: bool,
    /// Whether the process is gone, so that no more events come.
    pub finished: bool,
}

/// The number of submissions that are kept for calls that wait: a wait for an older one found it done long ago.
const MAX_SUBMISSIONS: usize = 1 << 12;

/// An allocation of device memory.
#[derive(Debug, Clone, Copy, Serialize, Deserialize)]
pub struct Allocation {
    pub id: AllocationId,
    pub device: DeviceId,
    /// The number of the heap that the memory is in.
    pub heap: u32,
    pub bytes: u64,
}

impl Process {
    /// Returns the threads that have written, for the manifest.
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

    /// Keeps the trace's id of a submission of Vulkan.
    pub fn submitted(&mut self, submission: hook::Submission, id: SubmissionId) {
        self.submissions.insert(submission, id);
        if self.submissions.len() > MAX_SUBMISSIONS {
            self.submissions.pop_first();
        }
    }

    /// Removes a user (an instance, or a recording around) of a recording, which is dropped if nothing can use it.
    pub fn release(&mut self, recording: hook::CommandRecording) {
        if let Some(found) = self.recordings.get_mut(&recording) {
            found.users = found.users.saturating_sub(1);
        }
        self.drop_if_unused(recording);
    }

    /// Drops a recording that can no longer be used, and its uses of other recordings.
    pub fn drop_if_unused(&mut self, recording: hook::CommandRecording) {
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
