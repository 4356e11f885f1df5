//! From the events of processes to the rows of a trace.
//!
//! Ids in events are per process; rows have ids of the trace. Commands are kept as recordings until they cannot be
//! submitted any more, and each submitted instance is expanded into rows once its times are there and its device's
//! clock is settled for them. Everything is serialisable, so that a checkpoint resumes exactly.

mod apply;
mod bindings;
mod buffers;
mod captures;
mod commands;
mod cuda;
mod device;
mod expand;
mod finish;
mod host;
mod instance;
mod kernel_names;
mod kernels;
mod labels;
mod ledger;
mod objects;
mod placement;
mod process;
mod recent;
mod recording;
mod semaphores;
mod spans;
mod submit;
#[cfg(test)]
mod tests;
mod thread_labels;

use crate::names::Names;
pub use captures::Capture;
use device::{Device, Queue};
use gapscope_trace::manifest::{self, Manifest, SamplingMode};
use gapscope_trace::tables::Tables;
use host::HostMarker;
use instance::Instance;
use kernels::Kernels;
use labels::Labels;
use ledger::Ledger;
use process::Process;
use rustc_hash::{FxHashMap, FxHashSet};
use serde::{Deserialize, Serialize};
use std::sync::Arc;

/// Turns events into rows.
#[derive(Debug, Serialize, Deserialize)]
pub struct Assembler {
    mode: SamplingMode,
    processes: Vec<Process>,
    devices: Vec<Device>,
    queues: Vec<Queue>,
    kernels: Kernels,
    labels: Labels,
    buffers: buffers::Buffers,
    binding_sets: bindings::BindingSets,
    ledger: Ledger,
    command_buffers: u64,
    submissions: u64,
    allocations: u32,
    dispatches: u64,
    /// The latest host time in any event.
    latest_ns: i64,
    first_submit_ns: Option<i64>,
    captures: Vec<Capture>,
    sources: FxHashSet<[u8; 16]>,
    #[serde(skip)]
    shared_texts: FxHashMap<String, Arc<str>>,
    /// Sentences for every report.
    notes: Vec<String>,
    #[serde(skip)]
    new_sources: Vec<Source>,
    #[serde(skip)]
    recent: Vec<Activity>,
}

/// The code of kernels, to be kept with the trace.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Source {
    /// Its hash as hexadecimal.
    pub hash: String,
    /// Extension of its file: `spv`.
    pub extension: &'static str,
    /// The code.
    pub bytes: Vec<u8>,
}

/// A command buffer's time on a device, for the progress line.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Activity {
    /// Begin on the host's clock, about.
    pub begin_ns: i64,
    /// End.
    pub end_ns: i64,
}

impl Assembler {
    /// An assembler of a recording in this mode.
    pub fn new(mode: SamplingMode) -> Assembler {
        Assembler {
            mode,
            processes: Vec::new(),
            devices: Vec::new(),
            queues: Vec::new(),
            kernels: Kernels::default(),
            labels: Labels::default(),
            buffers: buffers::Buffers::default(),
            binding_sets: bindings::BindingSets::default(),
            ledger: Ledger::default(),
            command_buffers: 0,
            submissions: 0,
            allocations: 0,
            dispatches: 0,
            latest_ns: i64::MIN,
            first_submit_ns: None,
            captures: Vec::new(),
            sources: FxHashSet::default(),
            shared_texts: FxHashMap::default(),
            notes: Vec::new(),
            new_sources: Vec::new(),
            recent: Vec::new(),
        }
    }

    /// A process has appeared. Returns its id in the trace, which [`Self::apply`] takes.
    pub fn add_process(&mut self, pid: u32, start_ns: i64) -> u32 {
        let id = self.processes.len() as u32;
        let facts = manifest::Process {
            id,
            pid,
            start_ns,
            ..manifest::Process::default()
        };
        self.processes.push(Process {
            facts,
            ..Process::default()
        });
        id
    }

    /// Nothing more comes from a process: what is open is given up, and all its times are settled.
    pub fn end_process(&mut self, process: u32, tables: &mut Tables) {
        let state = &mut self.processes[process as usize];
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
        for device in 0..self.devices.len() as u32 {
            if self.devices[device as usize].facts.process == process {
                self.settle(device, true, tables);
            }
        }
        let state = &mut self.processes[process as usize];
        state.semaphores.finish(tables);
        state.recordings.clear();
        state.host_labels.finish(process, tables);
        let mut queues: Vec<u32> = state.queues.values().copied().collect();
        queues.sort_unstable();
        for queue in queues {
            for span in self.queues[queue as usize].spans.finish() {
                let (label, command_buffer) = (span.label, span.command_buffer);
                expand::label_marker(process, queue, label, command_buffer, span.hull, tables);
            }
            for (label, begin_ns) in std::mem::take(&mut self.queues[queue as usize].labels) {
                HostMarker::on_queue(queue, label, begin_ns).write(process, None, tables);
            }
        }
    }

    /// A process is gone, and did not say that it would go: what CUDA's tracing had not delivered is not in the trace.
    pub fn ended_suddenly(&mut self, process: u32) {
        let state = &self.processes[process as usize];
        if state.facts.end_ns.is_none() && state.cuda.is_used {
            let pid = state.facts.pid;
            self.note(&format!(
                "Process {pid} ended suddenly: what CUDA did in up to its last 100 ms is not in the trace, nor the work that was \
                 still running; the calls are."
            ));
        }
    }

    /// Ends all processes and appends the rows that could change until now: kernels, labels and buffers.
    pub fn finish(&mut self, names: &Names, tables: &mut Tables) {
        for process in 0..self.processes.len() as u32 {
            self.end_process(process, tables);
        }
        self.kernels.write(names, &self.labels, tables);
        self.labels.write(tables);
        self.buffers.write(tables);
    }

    /// Says a sentence in every report, once.
    pub(super) fn note(&mut self, sentence: &str) {
        if !self.notes.iter().any(|note| note == sentence) {
            self.notes.push(sentence.to_owned());
        }
    }

    /// What hooks had to say, for every report.
    pub fn notes(&self) -> &[String] {
        &self.notes
    }

    /// Counts something that was not recorded.
    pub fn lose(&mut self, what: &str, count: u64, reason: &str) {
        self.ledger.add(what, count, reason);
    }

    /// Fills in what the assembler knows of a recording: processes, threads, devices, queues and losses.
    pub fn describe(&self, manifest: &mut Manifest) {
        manifest.processes = self.processes.iter().map(|p| p.facts.clone()).collect();
        manifest.threads = self
            .processes
            .iter()
            .flat_map(|p| p.threads.iter().cloned())
            .collect();
        manifest.devices = self.devices.iter().map(Device::summary).collect();
        manifest.queues = self.queues.iter().map(|q| q.facts.clone()).collect();
        manifest.losses = self.ledger.losses();
        manifest.notes.clone_from(&self.notes);
    }

    /// Dispatches that have become rows.
    pub fn dispatches(&self) -> u64 {
        self.dispatches
    }

    /// Submissions so far.
    pub fn submissions(&self) -> u64 {
        self.submissions
    }

    /// The latest host time in any event.
    pub fn latest_ns(&self) -> i64 {
        self.latest_ns
    }

    /// When the first submission began.
    pub fn first_submit_ns(&self) -> Option<i64> {
        self.first_submit_ns
    }

    /// True when a hook recorded a process: `vulkan`, `cuda`.
    pub fn is_recorded(&self, pid: u32, hook: &str) -> bool {
        let facts = |p: &Process| p.facts.pid == pid && p.facts.hook == hook;
        self.processes.iter().any(facts)
    }

    /// True when a hook recorded any process.
    pub fn has_hook(&self, hook: &str) -> bool {
        self.processes.iter().any(|p| p.facts.hook == hook)
    }

    /// Devices so far.
    pub fn devices(&self) -> usize {
        self.devices.len()
    }

    /// Sources that are new since the last call.
    pub fn take_sources(&mut self) -> Vec<Source> {
        std::mem::take(&mut self.new_sources)
    }

    /// Command buffers seen finished since the last call.
    pub fn take_activity(&mut self) -> Vec<Activity> {
        std::mem::take(&mut self.recent)
    }

    fn saw(&mut self, at_ns: i64) {
        self.latest_ns = self.latest_ns.max(at_ns);
    }
}
