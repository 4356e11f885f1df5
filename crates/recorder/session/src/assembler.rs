//! From the events of processes to the rows of a trace.
//!
//! Ids in events are per process; rows have ids of the trace. Commands are kept as recordings until they cannot be
//! submitted any more, and each submitted instance is expanded into rows once its times are there and its device's
//! clock is settled for them. Everything is serialisable, so that a checkpoint resumes exactly.

mod bindings;
mod buffers;
mod commands;
mod device;
mod expand;
mod finish;
mod instance;
mod kernels;
mod labels;
mod ledger;
mod process;
mod recording;
mod semaphores;
#[cfg(test)]
mod tests;

use crate::clock::DeviceClock;
use crate::names::Names;
use device::{Device, Queue};
use gapscope_spool::event::{
    Binding, Call, Event, Instance as Submitted, LabelEdge, LabelScope, ObjectKind, Outcome,
    SemaphoreValue, SourceFormat,
};
use gapscope_trace::manifest::{self, Manifest, SamplingMode};
use gapscope_trace::tables::{
    HostCall, HostCallKind, Marker, MarkerScope, MemoryEvent, MemoryRow, Submission, Table, Tables,
};
use instance::{Instance, Place};
use kernels::{Kernel, Kernels};
use labels::Labels;
use ledger::Ledger;
use process::{Allocation, Process};
use rustc_hash::FxHashSet;
use serde::{Deserialize, Serialize};

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
    sources: FxHashSet<[u8; 16]>,
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
            sources: FxHashSet::default(),
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

    /// One event of a process, in sequence. Rows that it completes are appended to `tables`.
    ///
    /// # Panics
    /// `process` is not one of [`Self::add_process`].
    pub fn apply(&mut self, process: u32, thread: u32, event: Event<'_>, tables: &mut Tables) {
        let state = &mut self.processes[process as usize];
        match event {
            Event::Process {
                pid,
                parent,
                executable,
                arguments,
                hook,
            } => {
                let facts = &mut state.facts;
                facts.pid = pid;
                facts.parent_pid = parent;
                facts.executable = executable.into_owned();
                facts.arguments = arguments.into_iter().map(|a| a.into_owned()).collect();
                facts.hook = hook.into_owned();
            }
            Event::ProcessEnd { at_ns } => {
                state.facts.end_ns = Some(at_ns);
                self.saw(at_ns);
            }
            Event::Thread { thread, name } => {
                if !state.threads.iter().any(|t| t.thread == thread) {
                    let name = name.to_owned();
                    state.threads.push(manifest::Thread {
                        process,
                        thread,
                        name,
                    });
                }
            }
            Event::Device {
                device,
                api,
                name,
                driver,
                uuid,
                nanoseconds_per_tick,
                clock,
                heaps,
            } => {
                let id = self.device(process, device);
                let known = &mut self.devices[id as usize];
                known.facts.api = api.into_owned();
                known.facts.name = name.into_owned();
                known.facts.driver = driver.into_owned();
                known.facts.uuid = kernels::hex(uuid);
                known.facts.heaps = heaps;
                known.clock = Some(DeviceClock::new(clock, nanoseconds_per_tick));
            }
            Event::DeviceEnd {
                device,
                lost,
                at_ns,
            } => {
                let id = self.device(process, device);
                self.devices[id as usize].facts.lost |= lost;
                self.saw(at_ns);
                self.settle(id, true, tables);
            }
            Event::Queue {
                queue,
                device,
                family,
                index,
                flags,
                timestamp_bits,
            } => {
                let device = self.device(process, device);
                let id = self.queue(process, queue);
                let facts = &mut self.queues[id as usize].facts;
                facts.device = device;
                facts.family = family;
                facts.index = index;
                facts.capabilities = capabilities(flags);
                facts.timestamp_bits = timestamp_bits.min(64);
                if let Some(clock) = &mut self.devices[device as usize].clock {
                    clock.queue_bits(timestamp_bits);
                }
            }
            Event::ClockSample {
                device,
                ticks,
                host_ns,
                error_ns,
            } => {
                let id = self.device(process, device);
                let used = match &mut self.devices[id as usize].clock {
                    Some(clock) => clock.sample(ticks, host_ns, error_ns),
                    None => true,
                };
                self.ledger.add(
                    "clock samples",
                    u64::from(!used),
                    "the device's clock went back",
                );
                self.saw(host_ns);
                self.settle(id, false, tables);
            }
            Event::Source {
                hash,
                format,
                bytes,
            } => self.source(hash, format, bytes),
            Event::Kernel {
                kernel,
                device: _,
                source,
                entry_point,
                specialisation,
                source_name,
                local_size,
                accesses,
            } => {
                let id = self.kernels.add(Kernel {
                    process,
                    source: Some(source).filter(|s| *s != [0; 16]),
                    entry_point: entry_point.into_owned(),
                    specialisation: specialisation.into_owned(),
                    source_name: source_name.into_owned(),
                    local_size,
                    accesses,
                    ..Kernel::default()
                });
                state.kernels.insert(kernel, id);
            }
            Event::Name { object, id, name } => self.name(process, object, id, name),
            Event::Text { text, value } => {
                state.texts.insert(text, self.labels.text(value));
            }
            Event::Allocate {
                memory,
                device,
                heap,
                flags: _,
                bytes,
                at_ns,
            } => {
                let device = self.device(process, device);
                let allocation = Allocation {
                    id: self.allocations,
                    device,
                    heap,
                    bytes,
                };
                self.allocations += 1;
                self.processes[process as usize]
                    .allocations
                    .insert(memory, allocation);
                self.memory(process, allocation, MemoryEvent::Allocate, at_ns, tables);
            }
            Event::Free { memory, at_ns } => match state.allocations.remove(&memory) {
                Some(allocation) => {
                    self.memory(process, allocation, MemoryEvent::Free, at_ns, tables)
                }
                None => self.ledger.add(
                    "memory frees",
                    1,
                    "the record of their allocation is missing",
                ),
            },
            Event::Buffer {
                buffer,
                device,
                bytes,
                at_ns,
            } => {
                let device = self.device(process, device);
                let id = self.buffers.add(process, device, bytes);
                self.processes[process as usize].buffers.insert(buffer, id);
                self.saw(at_ns);
            }
            Event::BufferMemory {
                buffer,
                memory,
                offset,
            } => {
                if let Some(id) = state.buffers.get(&buffer) {
                    let allocation = state.allocations.get(&memory).map(|a| a.id);
                    self.buffers.bind(*id, allocation, offset);
                }
            }
            Event::BufferEnd { buffer, at_ns } => {
                if let Some(id) = state.buffers.remove(&buffer) {
                    self.buffers.end(id, tables);
                }
                self.saw(at_ns);
            }
            Event::Bindings { content, entries } => self.bindings(process, content, &entries),
            Event::Commands {
                recording,
                commands,
            } => self.commands(process, recording, commands, tables),
            Event::RecordingEnd { recording } => {
                if let Some(found) = state.recordings.get_mut(&recording) {
                    found.ended = true;
                }
                state.drop_if_unused(recording);
            }
            Event::Submit {
                submission: _,
                queue,
                begin_ns,
                end_ns,
                instances,
                waits,
                signals,
            } => {
                let call = SubmitCall {
                    thread,
                    queue,
                    begin_ns,
                    end_ns,
                };
                self.submit(process, call, &instances, &waits, &signals, tables);
            }
            Event::Timestamps {
                instance,
                recording,
                first_query,
                ticks,
            } => {
                let most = state.recordings.get(&recording).map_or(0, |r| r.queries);
                let lost = match state.instances.get_mut(&instance) {
                    Some(instance) => instance.add(recording, first_query, ticks, most),
                    None => ticks.len() as u64 / 8,
                };
                self.ledger
                    .add("timestamps", lost, "the record of their command is missing");
            }
            Event::Bracket {
                instance,
                begin_ticks,
                end_ticks,
            } => match state.instances.get_mut(&instance) {
                Some(instance) => instance.bracket = Some((begin_ticks, end_ticks)),
                None => self
                    .ledger
                    .add("timestamps", 2, "the record of their command is missing"),
            },
            Event::InstanceEnd {
                instance,
                outcome,
                seen_ns,
            } => {
                if let Some(mut instance) = state.instances.remove(&instance) {
                    instance.outcome = Some(outcome);
                    instance.seen_ns = Some(seen_ns).filter(|_| outcome == Outcome::Timed);
                    self.saw(seen_ns);
                    self.finished(instance, tables);
                }
            }
            Event::HostCall {
                call,
                begin_ns,
                end_ns,
                count,
                busy_ns,
                queue,
                bytes,
                result,
            } => {
                let queue = queue.map(|q| self.queue(process, q));
                tables.host_calls.push(HostCall {
                    process,
                    thread,
                    call: host_call(call),
                    start_ns: begin_ns,
                    duration_ns: end_ns.saturating_sub(begin_ns),
                    count,
                    busy_ns,
                    queue,
                    bytes,
                    result,
                });
                self.saw(end_ns);
            }
            Event::Label {
                scope,
                edge,
                text,
                at_ns,
            } => {
                self.label(process, thread, scope, edge, text, at_ns, tables);
            }
            Event::HostSignal { semaphore, at_ns } => {
                state.semaphores.host_signal(semaphore, at_ns, tables);
                self.saw(at_ns);
            }
            Event::Loss {
                what,
                count,
                reason,
            } => self.ledger.add(&what, count, &reason),
        }
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
        for device in 0..self.devices.len() as u32 {
            if self.devices[device as usize].facts.process == process {
                self.settle(device, true, tables);
            }
        }
        let state = &mut self.processes[process as usize];
        state.semaphores.finish(tables);
        state.recordings.clear();
        let mut threads: Vec<_> = state.thread_labels.drain().collect();
        threads.sort_unstable_by_key(|(thread, _)| *thread);
        for (thread, labels) in threads {
            for (label, begin_ns) in labels {
                let scope = (MarkerScope::Thread, None, Some(thread));
                host_marker(process, scope, label, begin_ns, None, tables);
            }
        }
        let mut queues: Vec<u32> = state.queues.values().copied().collect();
        queues.sort_unstable();
        for queue in queues {
            for (label, begin_ns) in std::mem::take(&mut self.queues[queue as usize].labels) {
                let scope = (MarkerScope::Queue, Some(queue), None);
                host_marker(process, scope, label, begin_ns, None, tables);
            }
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

    /// The trace's id of a process's device. One that was never announced (its record is lost) is made.
    fn device(&mut self, process: u32, device: u32) -> u32 {
        let next = self.devices.len() as u32;
        let id = *self.processes[process as usize]
            .devices
            .entry(device)
            .or_insert(next);
        if id == next {
            let facts = manifest::Device {
                id,
                process,
                ..manifest::Device::default()
            };
            self.devices.push(Device {
                facts,
                clock: None,
                waiting: Default::default(),
                waiting_bytes: 0,
            });
        }
        id
    }

    /// The trace's id of a process's queue. One that was never announced (its record is lost) is made.
    fn queue(&mut self, process: u32, queue: u32) -> u32 {
        if let Some(id) = self.processes[process as usize].queues.get(&queue) {
            return *id;
        }
        let id = self.queues.len() as u32;
        // `Event::Queue` corrects the device at once where there is one.
        let known = self
            .devices
            .iter()
            .rfind(|d| d.facts.process == process)
            .map(|d| d.facts.id);
        let device = match known {
            Some(device) => device,
            None => self.device(process, u32::MAX),
        };
        self.processes[process as usize].queues.insert(queue, id);
        self.queues.push(Queue {
            facts: manifest::Queue {
                id,
                device,
                ..manifest::Queue::default()
            },
            labels: Vec::new(),
            last_begin: None,
        });
        id
    }

    fn source(&mut self, hash: [u8; 16], format: SourceFormat, bytes: &[u8]) {
        if self.sources.insert(hash) {
            self.new_sources.push(Source {
                hash: kernels::hex(hash),
                extension: match format {
                    SourceFormat::SpirV => "spv",
                },
                bytes: bytes.to_owned(),
            });
        }
    }

    fn name(&mut self, process: u32, object: ObjectKind, id: u32, name: &str) {
        let state = &mut self.processes[process as usize];
        let name = Some(name).filter(|n| !n.is_empty()).map(str::to_owned);
        match object {
            ObjectKind::Kernel | ObjectKind::KernelSource => {
                let kernel = state
                    .kernels
                    .get(&id)
                    .and_then(|id| self.kernels.get_mut(*id));
                if let Some(kernel) = kernel {
                    match object {
                        ObjectKind::Kernel => kernel.object_name = name,
                        _ => kernel.module_name = name,
                    }
                }
            }
            ObjectKind::Buffer => {
                if let Some(id) = state.buffers.get(&id) {
                    self.buffers.name(*id, name);
                }
            }
            ObjectKind::Queue => {
                let id = self.queue(process, id);
                self.queues[id as usize].facts.name = name;
            }
            // The manifest has the driver's name for it.
            ObjectKind::Device => {}
            ObjectKind::Recording => state.recordings.entry(id).or_default().name = name,
        }
    }

    fn memory(
        &mut self,
        process: u32,
        allocation: Allocation,
        event: MemoryEvent,
        at_ns: i64,
        tables: &mut Tables,
    ) {
        tables.memory.push(MemoryRow {
            process,
            device: allocation.device,
            at_ns,
            event,
            allocation: allocation.id,
            bytes: allocation.bytes,
            heap: allocation.heap,
        });
        self.saw(at_ns);
    }

    fn bindings(&mut self, process: u32, content: u32, entries: &[Binding]) {
        let state = &mut self.processes[process as usize];
        let ids = &state.buffers;
        let unknown = state.contents.add(
            content,
            entries,
            |buffer| ids.get(&buffer).copied(),
            &self.buffers,
        );
        self.ledger
            .add("bindings", unknown, "their buffer is not known");
    }

    fn submit(
        &mut self,
        process: u32,
        call: SubmitCall,
        instances: &[Submitted],
        waits: &[SemaphoreValue],
        signals: &[SemaphoreValue],
        tables: &mut Tables,
    ) {
        let queue = self.queue(process, call.queue);
        let submission = self.submissions;
        self.submissions += 1;
        self.first_submit_ns.get_or_insert(call.begin_ns);
        let label = self.queues[queue as usize]
            .labels
            .last()
            .map(|(label, _)| *label);
        let state = &mut self.processes[process as usize];
        for submitted in instances {
            if let Some(recording) = state.recordings.get_mut(&submitted.recording) {
                recording.users += 1;
            }
            let instance = Instance {
                process,
                command_buffer: self.command_buffers,
                recording: submitted.recording,
                submission,
                queue,
                submitted_ns: call.begin_ns,
                label,
                timestamps: Vec::new(),
                bracket: None,
                outcome: None,
                seen_ns: None,
                place: Place::Open,
            };
            self.command_buffers += 1;
            state.instances.insert(submitted.instance, instance);
        }
        state.semaphores.submit(submission, waits, signals, tables);
        tables.submissions.push(Submission {
            id: submission,
            process,
            queue,
            thread: call.thread,
            begin_ns: call.begin_ns,
            end_ns: call.end_ns,
            command_buffers: instances.len() as u32,
        });
        self.saw(call.end_ns);
    }

    #[allow(clippy::too_many_arguments)]
    fn label(
        &mut self,
        process: u32,
        thread: u32,
        scope: LabelScope,
        edge: LabelEdge,
        text: u32,
        at_ns: i64,
        tables: &mut Tables,
    ) {
        self.saw(at_ns);
        let queue = match scope {
            LabelScope::Queue(queue) => Some(self.queue(process, queue)),
            LabelScope::Thread => None,
        };
        let state = &mut self.processes[process as usize];
        let text = commands::text(&state.texts, &mut self.labels, text);
        let (open, place) = match queue {
            Some(queue) => (
                &mut self.queues[queue as usize].labels,
                (MarkerScope::Queue, Some(queue), None),
            ),
            None => (
                state.thread_labels.entry(thread).or_default(),
                (MarkerScope::Thread, None, Some(thread)),
            ),
        };
        let parent = open.last().map(|(label, _)| *label);
        match edge {
            LabelEdge::Begin => open.push((self.labels.label(parent, text), at_ns)),
            LabelEdge::End => {
                if let Some((label, begin_ns)) = open.pop() {
                    host_marker(process, place, label, begin_ns, Some(at_ns), tables);
                }
            }
            LabelEdge::Instant => {
                let label = self.labels.label(parent, text);
                host_marker(process, place, label, at_ns, Some(at_ns), tables);
            }
        }
    }
}

/// The host's part of a submission.
struct SubmitCall {
    thread: u32,
    /// In the process's ids.
    queue: u32,
    begin_ns: i64,
    end_ns: i64,
}

fn host_marker(
    process: u32,
    (scope, queue, thread): (MarkerScope, Option<u32>, Option<u32>),
    label: u32,
    begin_ns: i64,
    end_ns: Option<i64>,
    tables: &mut Tables,
) {
    tables.markers.push(Marker {
        process,
        scope,
        label,
        queue,
        thread,
        command_buffer: None,
        start_ns: Some(begin_ns),
        duration_ns: end_ns.map(|end| end.saturating_sub(begin_ns)),
    });
}

/// VkQueueFlags as words.
fn capabilities(flags: u32) -> Vec<String> {
    ["graphics", "compute", "transfer"]
        .into_iter()
        .enumerate()
        .filter(|(bit, _)| flags & (1 << bit) != 0)
        .map(|(_, word)| word.to_owned())
        .collect()
}

fn host_call(call: Call) -> HostCallKind {
    match call {
        Call::Submit => HostCallKind::Submit,
        Call::BindSparse => HostCallKind::BindSparse,
        Call::WaitFences => HostCallKind::WaitFences,
        Call::WaitSemaphores => HostCallKind::WaitSemaphores,
        Call::WaitQueueIdle => HostCallKind::WaitQueueIdle,
        Call::WaitDeviceIdle => HostCallKind::WaitDeviceIdle,
        Call::PollFence => HostCallKind::PollFence,
        Call::PollSemaphore => HostCallKind::PollSemaphore,
        Call::GetQueryResults => HostCallKind::GetQueryResults,
        Call::MapMemory => HostCallKind::MapMemory,
        Call::AllocateMemory => HostCallKind::AllocateMemory,
        Call::FreeMemory => HostCallKind::FreeMemory,
        Call::CreatePipelines => HostCallKind::CreatePipelines,
        Call::CreateShaderModule => HostCallKind::CreateShaderModule,
        Call::Present => HostCallKind::Present,
        Call::AcquireImage => HostCallKind::AcquireImage,
    }
}
