//! Converts the events of processes to the rows of a trace: events go in one at a time, and rows are appended to
//! tables as soon as nothing can change them any more.
//!
//! Ids in events are unique in their process; rows have ids of the trace. A hook is gapscope's library in a recorded
//! program, which writes the events. Commands are kept as recordings until they can no longer be submitted. Each
//! instance (a submitted execution of a recording) is expanded into rows once its times have arrived and the clock of
//! its device is settled for them. The whole state is serialisable, so that a checkpoint resumes exactly.

mod apply;
mod bindings;
mod buffers;
mod captures;
mod commands;
mod conditions;
mod counters;
mod cross_buffer_labels;
mod cuda;
mod default_names;
mod device;
mod expand;
mod finish;
mod hashes;
mod host;
mod indexed;
mod instance;
mod kernels;
mod loaded_code;
mod lru_map;
mod markers;
mod objects;
mod placement;
mod process;
mod recording;
mod semaphores;
mod stacks;
mod submit;
#[cfg(test)]
mod tests;
mod thread_labels;

pub use captures::Capture;
use device::{Device, Queue};
use gapscope_model::{Ledger, LossKind};
use gapscope_spool::ids as hook;
use gapscope_timeline_builder::Ids;
use gapscope_trace::Names;
use gapscope_trace::build::Labels;
use gapscope_trace::ids::{AllocationId, DeviceId, ProcessId, QueueId, ThreadId};
use gapscope_trace::manifest::{self, Manifest, SamplingMode};
use gapscope_trace::tables::Tables;
use indexed::Indexed;
use instance::Instance;
use kernels::Kernels;
use loaded_code::LoadedCode;
use process::Process;
use rustc_hash::{FxHashMap, FxHashSet};
use serde::{Deserialize, Serialize};
use std::borrow::Cow;
use std::sync::Arc;

/// Converts events to rows, and keeps the state that later events refer to.
#[derive(Debug, Default, Serialize, Deserialize)]
pub struct Assembler {
    /// What is timed on the GPU: each dispatch, or command buffers alone, as the user chose.
    mode: SamplingMode,
    processes: Indexed<ProcessId, Process>,
    devices: Indexed<DeviceId, Device>,
    queues: Indexed<QueueId, Queue>,
    kernels: Kernels,
    /// The code that CUDA programs loaded.
    code: LoadedCode,
    labels: Labels,
    buffers: buffers::Buffers,
    binding_sets: bindings::BindingSets,
    ledger: Ledger,
    /// Numbers submissions and command buffers, and counts dispatches.
    ids: Ids,
    /// The number of allocations that have got an id.
    allocations: u32,
    /// The number of launches whose profiles were written.
    profiles: u32,
    /// The latest host time of any event.
    latest_ns: i64,
    captures: Vec<Capture>,
    conditions: conditions::Conditions,
    counters: counters::Counters,
    stacks: stacks::Stacks,
    /// The hashes of code that was kept with the trace.
    sources: FxHashSet<[u8; 16]>,
    /// Texts that many rows share.
    #[serde(skip)]
    shared_texts: FxHashMap<String, Arc<str>>,
    /// Notes that every report shows.
    notes: Vec<String>,
    /// The notes that explain why there may be no GPU work.
    reasons: Vec<String>,
    /// The code that [`Self::take_sources`] returns next.
    #[serde(skip)]
    new_sources: Vec<Source>,
    /// The busy intervals that [`Self::take_busy`] returns next.
    #[serde(skip)]
    recent: Vec<BusyInterval>,
    /// The threads that [`Self::take_callers`] returns next.
    #[serde(skip)]
    callers: Vec<(ProcessId, ThreadId)>,
}

/// The code of kernels, which is kept with the trace.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Source {
    /// The hash of the code as hexadecimal.
    pub hash: String,
    /// The extension of the file: `spv`, `ptx`, `cubin`.
    pub extension: &'static str,
    /// The code.
    pub bytes: Vec<u8>,
}

/// An interval in which a device was busy, for the progress line.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct BusyInterval {
    /// The approximate start on the host's clock.
    pub start_ns: i64,
    /// The end on the host's clock.
    pub end_ns: i64,
}

impl Assembler {
    /// Creates an assembler of a recording in a mode.
    pub fn new(mode: SamplingMode) -> Assembler {
        Assembler {
            mode,
            latest_ns: i64::MIN,
            ..Assembler::default()
        }
    }

    /// Adds a process and returns its id in the trace, which [`Self::apply`] takes.
    pub fn add_process(&mut self, pid: u32, start_ns: i64) -> ProcessId {
        let id = self.processes.next_id();
        let facts = manifest::Process {
            id,
            pid,
            start_ns,
            ..manifest::Process::default()
        };
        self.processes.push(Process {
            facts,
            ..Process::default()
        })
    }

    /// Ends a process: open calls and work are given up, and all its times are settled. Does nothing the second time.
    pub fn end_process(&mut self, process: ProcessId, tables: &mut Tables) {
        let state = &mut self.processes[process];
        if std::mem::replace(&mut state.finished, true) {
            return;
        }
        let mut open: Vec<Instance> = state
            .instances
            .drain()
            .map(|(_, instance)| instance)
            .collect();
        open.sort_unstable_by_key(|i| i.command_buffer);
        for instance in open {
            self.finished(instance, tables);
        }
        self.finish_cuda(process, tables);
        let devices: Vec<DeviceId> = self.devices_of(process).collect();
        for device in devices {
            self.settle(device, true, tables);
        }
        let state = &mut self.processes[process];
        state.semaphores.finish(tables);
        state.recordings.clear();
        state.submissions.clear();
        state.timeline = Default::default();
        let mut queues: Vec<QueueId> = state.queues.values().copied().collect();
        queues.sort_unstable();
        for queue in queues {
            for open in self.queues[queue].spanning.finish() {
                markers::label_marker(process, queue, &open, tables);
            }
            for open in std::mem::take(&mut self.queues[queue].labels) {
                let started = (open.label, open.start_ns);
                host::queue_marker(process, queue, started, None, tables);
            }
        }
    }

    /// Records that a process ended without an announcement, so that the trace lacks what CUDA's tracing library had
    /// not delivered.
    pub fn ended_suddenly(&mut self, process: ProcessId) {
        let state = &self.processes[process];
        if state.facts.end_ns.is_none() && state.cuda.is_used {
            let pid = state.facts.pid;
            self.explain(&format!(
                "Process {pid} ended suddenly: what CUDA did in up to its last 100 ms is not in the trace, nor the work that was \
                 still running; the calls are."
            ));
        }
    }

    /// Ends all processes and appends the rows that could still change: kernels, labels and buffers.
    pub fn finish(&mut self, names: &Names, tables: &mut Tables) {
        for process in self.processes.ids() {
            self.end_process(process, tables);
        }
        self.kernels.find_code(&self.code, &mut self.ledger);
        self.kernels.write(names, &self.labels, tables);
        self.labels.push_into(&mut tables.labels);
        self.buffers.write(tables);
        self.conditions.finish(self.latest_ns, tables);
    }

    /// Adds a note to every report, once.
    pub(super) fn note(&mut self, sentence: &str) {
        if !self.notes.iter().any(|note| note == sentence) {
            self.notes.push(sentence.to_owned());
        }
    }

    /// Adds a note that explains why there may be no GPU work.
    pub(super) fn explain(&mut self, sentence: &str) {
        self.note(sentence);
        self.reasons.push(sentence.to_owned());
    }

    /// Returns the notes that explain why there may be no GPU work.
    pub fn reasons(&self) -> &[String] {
        &self.reasons
    }

    /// Adds to a loss.
    pub fn lose(&mut self, kind: LossKind, count: u64, reason: impl Into<Cow<'static, str>>) {
        self.ledger.add(kind, count, reason);
    }

    /// Adds processes, threads, devices, queues and losses to the manifest.
    pub fn describe(&self, manifest: &mut Manifest) {
        manifest.processes = self.processes.iter().map(|p| p.facts.clone()).collect();
        manifest.threads = self.processes.iter().flat_map(Process::threads).collect();
        manifest.devices = self.devices.iter().map(Device::summary).collect();
        manifest.queues = self.queues.iter().map(|q| q.facts.clone()).collect();
        manifest.losses = self.ledger.losses();
        manifest.notes.clone_from(&self.notes);
    }

    /// Returns the number of dispatches that have become rows.
    pub fn dispatches(&self) -> u64 {
        self.ids.dispatches
    }

    /// Returns the number of submissions so far.
    pub fn submissions(&self) -> u64 {
        self.ids.submissions()
    }

    /// Returns the latest host time of any event.
    pub fn latest_ns(&self) -> i64 {
        self.latest_ns
    }

    /// Returns the start of the first submission.
    pub fn first_submit_ns(&self) -> Option<i64> {
        self.ids.first_submit_ns
    }

    /// Returns true if a hook (`vulkan`, `cuda`) recorded a process.
    pub fn is_of_hook(&self, process: ProcessId, hook: &str) -> bool {
        let facts = |p: &Process| p.facts.id == process && p.facts.hook == hook;
        self.processes.iter().any(facts)
    }

    /// Returns true if a hook recorded any process.
    pub fn has_hook(&self, hook: &str) -> bool {
        self.processes.iter().any(|p| p.facts.hook == hook)
    }

    /// Returns the number of devices so far.
    pub fn devices(&self) -> usize {
        self.devices.len()
    }

    /// Returns the devices so far.
    pub fn device_facts(&self) -> impl Iterator<Item = &manifest::Device> {
        self.devices.iter().map(|device| &device.facts)
    }

    /// Returns the sources that are new since the last call.
    pub fn take_sources(&mut self) -> Vec<Source> {
        std::mem::take(&mut self.new_sources)
    }

    /// Keeps code with the trace, once for each hash.
    fn add_source(&mut self, hash: [u8; 16], extension: &'static str, bytes: impl Into<Vec<u8>>) {
        if self.sources.insert(hash) {
            self.new_sources.push(Source {
                hash: hashes::hex(hash),
                extension,
                bytes: bytes.into(),
            });
        }
    }

    /// Returns the busy intervals that are new since the last call.
    pub fn take_busy(&mut self) -> Vec<BusyInterval> {
        std::mem::take(&mut self.recent)
    }

    /// Records that a thread called a function that submits or waits, for the sampler of stacks.
    fn called_by(&mut self, process: ProcessId, thread: hook::Thread) {
        let state = &mut self.processes[process];
        let thread = ThreadId(thread.0);
        if state.last_caller != Some(thread) {
            state.last_caller = Some(thread);
            if state.callers.insert(thread) {
                self.callers.push((process, thread));
            }
        }
    }

    /// Returns the threads that submitted or waited for the first time since the last call.
    pub fn take_callers(&mut self) -> Vec<(ProcessId, ThreadId)> {
        std::mem::take(&mut self.callers)
    }

    fn devices_of(&self, process: ProcessId) -> impl Iterator<Item = DeviceId> {
        let all = self.devices.ids();
        all.filter(move |device| self.devices[*device].facts.process == process)
    }

    /// Returns the id of a new allocation.
    fn next_allocation(&mut self) -> AllocationId {
        self.allocations += 1;
        AllocationId(self.allocations - 1)
    }

    /// Notes the host time of an event.
    fn saw(&mut self, at_ns: i64) {
        self.latest_ns = self.latest_ns.max(at_ns);
    }
}
