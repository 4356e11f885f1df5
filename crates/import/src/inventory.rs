//! Collects the processes, threads, devices, queues, kernels, labels and counters that the rows of an imported
//! trace refer to by id, and writes them and the manifest at the end.

use crate::output::{NewTrace, Output};
use crate::{Error, Options, functions};
use gapscope_trace::build::{Interner, Labels};
use gapscope_trace::ids::*;
use gapscope_trace::manifest::*;
use gapscope_trace::tables::{Counter, CounterUnit, Kernel, NameSource, Table};
use gapscope_trace::{Ledger, LossKind};
use rustc_hash::FxHashMap;
use std::collections::BTreeMap;
use std::sync::Arc;

/// A kernel as the profiler describes it. Each distinct description becomes a row of the table `kernels`.
#[derive(Debug, Clone, Default, PartialEq, Eq, Hash)]
pub(crate) struct KernelFacts {
    pub process: ProcessId,
    pub name: Arc<str>,
    pub full_name: Option<Arc<str>>,
    pub entry_point: Option<Arc<str>>,
    /// The numbers of threads of a workgroup in x, y and z; `None` where the profiler does not record them.
    pub local: [Option<u32>; 3],
    pub registers: Option<u32>,
    pub local_bytes: Option<u32>,
    pub static_shared_bytes: Option<u32>,
    pub dynamic_shared_bytes: Option<u32>,
}

/// A counter as the profiler describes it.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
struct CounterFacts {
    name: Arc<str>,
    unit: CounterUnit,
    device: Option<DeviceId>,
    queue: Option<QueueId>,
}

/// The named objects of a trace, in the order in which they were met.
pub(crate) struct Inventory {
    /// The profiler that made the files. It is the hook of the processes and the source of the counters.
    tool: String,
    processes: Vec<Process>,
    by_pid: FxHashMap<u32, ProcessId>,
    threads: BTreeMap<(ProcessId, ThreadId), String>,
    devices: Vec<Device>,
    /// Devices by process and by the number that the importer gives a device.
    by_device: FxHashMap<(ProcessId, u64), DeviceId>,
    /// The GPU API of a process's calls; `None` if the process calls several APIs.
    called: FxHashMap<ProcessId, Option<Api>>,
    queues: Vec<Queue>,
    kernels: Interner<KernelFacts, KernelId>,
    counters: FxHashMap<CounterFacts, CounterId>,
    counter_rows: Vec<CounterFacts>,
    pub labels: Labels,
    /// The losses so far.
    pub losses: Ledger,
    notes: Vec<String>,
    span_ns: Option<(i64, i64)>,
    /// The manifest, whose lists are filled at the end.
    pub manifest: Manifest,
}

impl Inventory {
    /// Creates an empty inventory of files that `tool` made.
    pub fn new(tool: &str) -> Inventory {
        Inventory {
            tool: tool.to_owned(),
            processes: Vec::new(),
            by_pid: FxHashMap::default(),
            threads: BTreeMap::new(),
            devices: Vec::new(),
            by_device: FxHashMap::default(),
            called: FxHashMap::default(),
            queues: Vec::new(),
            kernels: Interner::default(),
            counters: FxHashMap::default(),
            counter_rows: Vec::new(),
            labels: Labels::default(),
            losses: Ledger::default(),
            notes: Vec::new(),
            span_ns: None,
            manifest: Manifest::default(),
        }
    }

    /// Returns the process with a pid; 0 stands for a process that the tool does not name.
    pub fn process(&mut self, pid: u32) -> ProcessId {
        if let Some(id) = self.by_pid.get(&pid) {
            return *id;
        }
        let id = ProcessId(self.processes.len() as u32 + 1);
        self.by_pid.insert(pid, id);
        let executable = if pid == 0 { "unknown process" } else { "" };
        self.processes.push(Process {
            id,
            pid,
            executable: executable.to_owned(),
            hook: self.tool.clone(),
            ..Process::default()
        });
        id
    }

    /// Sets the name and arguments of a process.
    pub fn name_process(&mut self, process: ProcessId, executable: &str, arguments: Vec<String>) {
        if let Some(known) = self.processes.iter_mut().find(|known| known.id == process)
            && !executable.is_empty()
        {
            known.executable = executable.to_owned();
            known.arguments = arguments;
        }
    }

    /// Adds a thread, with its name if that is known.
    pub fn thread(&mut self, process: ProcessId, thread: ThreadId, name: &str) {
        let known = self.threads.entry((process, thread)).or_default();
        if known.is_empty() && !name.is_empty() {
            known.push_str(name);
        }
    }

    /// Returns the id of the device with a key in a process; `describe` fills the entry of a new device.
    pub fn device(
        &mut self,
        process: ProcessId,
        key: u64,
        describe: impl FnOnce(&mut Device),
    ) -> DeviceId {
        if let Some(id) = self.by_device.get(&(process, key)) {
            return *id;
        }
        let id = DeviceId(self.devices.len() as u32 + 1);
        let mut device = Device {
            id,
            process,
            name: "unknown GPU".to_owned(),
            clock: Clock {
                nanoseconds_per_tick: 1.0,
                ..Clock::default()
            },
            ..Device::default()
        };
        describe(&mut device);
        device.id = id;
        self.devices.push(device);
        self.by_device.insert((process, key), id);
        id
    }

    /// Notes that a process calls a function. Devices whose API the profiler does not name get the API of their
    /// process's calls.
    pub fn calls(&mut self, process: ProcessId, function: &str) {
        let Some(api) = functions::api_of(function) else {
            return;
        };
        let known = self.called.entry(process).or_insert(Some(api));
        if *known != Some(api) {
            *known = None;
        }
    }

    /// Returns the id of the first device with a key in any process.
    pub fn any_device(&self, key: u64) -> Option<DeviceId> {
        let known = self
            .by_device
            .iter()
            .filter(|((_, other), _)| *other == key);
        known.map(|(_, device)| *device).min()
    }

    pub fn process_of(&self, device: DeviceId) -> ProcessId {
        let known = self.devices.get((device.0 as usize).wrapping_sub(1));
        known.map_or(ProcessId(0), |device| device.process)
    }

    pub fn device_of(&self, queue: QueueId) -> DeviceId {
        let known = self.queues.get((queue.0 as usize).wrapping_sub(1));
        known.map_or(DeviceId(0), |queue| queue.device)
    }

    /// Adds a queue to a device and returns its id.
    pub fn add_queue(&mut self, device: DeviceId, name: Option<String>) -> QueueId {
        let id = QueueId(self.queues.len() as u32 + 1);
        let index = self.queues.iter().filter(|queue| queue.device == device);
        self.queues.push(Queue {
            id,
            device,
            index: index.count() as u32,
            timestamp_bits: 64,
            name,
            ..Queue::default()
        });
        id
    }

    /// Returns the id of the kernel with these facts, and adds a new kernel.
    pub fn kernel(&mut self, facts: KernelFacts) -> KernelId {
        KernelId(self.kernels.id(facts).0 + 1)
    }

    /// Returns the id of a counter, and adds a new counter.
    pub fn counter(
        &mut self,
        name: &str,
        unit: CounterUnit,
        device: Option<DeviceId>,
        queue: Option<QueueId>,
    ) -> CounterId {
        let facts = CounterFacts {
            name: name.into(),
            unit,
            device,
            queue,
        };
        let next = CounterId(self.counter_rows.len() as u32 + 1);
        let id = *self.counters.entry(facts.clone()).or_insert(next);
        if id == next {
            self.counter_rows.push(facts);
        }
        id
    }

    /// Adds `count` to the loss of a kind and reason.
    pub fn lose(&mut self, kind: impl Into<LossKind>, count: u64, reason: &'static str) {
        self.losses.add(kind.into(), count, reason);
    }

    /// Adds a note that every report shows.
    pub fn note(&mut self, note: impl Into<String>) {
        let note = note.into();
        if !self.notes.contains(&note) {
            self.notes.push(note);
        }
    }

    /// Extends the span of the trace to cover an interval.
    pub fn spans(&mut self, start_ns: i64, end_ns: i64) {
        let (first, last) = self.span_ns.unwrap_or((start_ns, end_ns));
        self.span_ns = Some((first.min(start_ns), last.max(end_ns)));
    }

    /// Returns the span from the first to the last event as start and end; `None` if there were no events.
    pub fn span_ns(&self) -> Option<(i64, i64)> {
        self.span_ns
    }

    /// Writes the named objects and the manifest, and completes the trace.
    ///
    /// # Errors
    /// The system refuses to write.
    pub fn finish(
        mut self,
        mut trace: NewTrace,
        options: &Options,
        output: &mut Output,
    ) -> Result<(), Error> {
        for device in &mut self.devices {
            if let (Api::Unknown, Some(Some(api))) = (device.api, self.called.get(&device.process))
            {
                device.api = *api;
            }
            // The profiler put the times of devices and hosts on one clock.
            if self.span_ns.is_some() {
                device.clock.method = ClockMethod::Calibrated;
            }
        }
        let tables = trace.tables_mut();
        self.labels.push_into(&mut tables.labels);
        for (id, facts) in self.kernels.iter() {
            let [local_x, local_y, local_z] = facts.local;
            tables.kernels.push(Kernel {
                id: KernelId(id.0 + 1),
                process: facts.process,
                name: facts.name.clone(),
                name_source: NameSource::EntryPoint,
                entry_point: facts.entry_point.clone(),
                source: None,
                specialisation: None,
                local_x,
                local_y,
                local_z,
                full_name: facts.full_name.clone(),
                source_file: None,
                source_file_hash: None,
                registers: facts.registers,
                local_bytes: facts.local_bytes,
                static_shared_bytes: facts.static_shared_bytes,
                dynamic_shared_bytes: facts.dynamic_shared_bytes,
            });
        }
        for (index, facts) in self.counter_rows.iter().enumerate() {
            tables.counters.push(Counter {
                id: CounterId(index as u32 + 1),
                name: facts.name.clone(),
                unit: facts.unit,
                device: facts.device,
                queue: facts.queue,
                source: self.tool.as_str().into(),
            });
        }
        self.notes.extend(options.notes.iter().cloned());
        let (start_ns, end_ns) = self.span_ns.unwrap_or_default();
        let command = options.command.clone();
        let threads = std::mem::take(&mut self.threads).into_iter();
        let processes = std::mem::take(&mut self.processes).into_iter();
        let mut manifest = Manifest {
            format_version: FORMAT_VERSION,
            gapscope_version: env!("CARGO_PKG_VERSION").to_owned(),
            complete: true,
            start_ns: self.manifest.start_ns,
            end_ns,
            processes: processes
                .map(|process| Process {
                    start_ns,
                    ..process
                })
                .collect(),
            threads: threads
                .map(|((process, thread), name)| Thread {
                    process,
                    thread,
                    name,
                })
                .collect(),
            devices: self.devices,
            queues: self.queues,
            losses: self.losses.losses(),
            notes: self.notes,
            ..self.manifest
        };
        manifest.start_at(start_ns);
        if let Some(command) = command {
            manifest.command = command;
        }
        trace.finish(&manifest, output)
    }
}
