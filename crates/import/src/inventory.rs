//! Collects the processes, threads, devices, queues, kernels, labels and counters that the rows of an imported trace
//! refer to by id. Importers ask for the id of each object while they push rows, and at the end call
//! [`Inventory::finish`], which writes these objects and the manifest.

use crate::output::{NewTrace, Output};
use crate::{Error, Options, functions};
use gapscope_trace::build::{CountedId, Interner, Labels, TextId};
use gapscope_trace::ids::*;
use gapscope_trace::manifest::*;
use gapscope_trace::tables::{Counter, CounterUnit, Kernel, NameSource, Table};
use gapscope_trace::{Ledger, LossKind};
use rustc_hash::{FxHashMap, FxHashSet};
use std::collections::BTreeMap;
use std::sync::Arc;

/// The reason for the loss of records that are not imported.
pub(crate) const NO_PLACE: &str =
    "a trace has no place for them, or gapscope does not import them yet";

/// CUPTI's value for an unknown context or stream.
const UNKNOWN_NUMBER: u32 = u32::MAX;

/// The beginning of the names of devices that a file does not describe.
pub(crate) const UNKNOWN_GPU: &str = "unknown GPU";

/// The name of processes whose number and name are not known.
pub(crate) const UNKNOWN_PROCESS: &str = "unknown process";

/// A kernel as the profiler describes it. Each distinct description becomes a row of the table `kernels`.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub(crate) struct KernelFacts {
    pub process: ProcessId,
    /// The demangled name, with parameters where it is C++.
    pub name: TextId,
    /// The demangled name, where `name` may be another one.
    pub full_name: Option<TextId>,
    /// The name that the compiler gave the kernel.
    pub entry_point: Option<TextId>,
    /// The numbers of threads of a workgroup in x, y and z; `None` where the profiler does not record them.
    pub local: [Option<u32>; 3],
    /// The registers and the bytes of local memory of a thread.
    pub registers: Option<u32>,
    pub local_bytes: Option<u32>,
    /// The bytes of shared memory of a workgroup: those that the code fixes, and those that the launch adds.
    pub static_shared_bytes: Option<u32>,
    pub dynamic_shared_bytes: Option<u32>,
}

impl KernelFacts {
    /// Returns a kernel of which only the name is known.
    pub fn new(process: ProcessId, name: TextId) -> KernelFacts {
        KernelFacts {
            process,
            name,
            full_name: None,
            entry_point: None,
            local: [None; 3],
            registers: None,
            local_bytes: None,
            static_shared_bytes: None,
            dynamic_shared_bytes: None,
        }
    }
}

/// A counter as the profiler describes it.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
struct CounterFacts {
    name: Arc<str>,
    unit: CounterUnit,
    device: Option<DeviceId>,
    queue: Option<QueueId>,
}

/// The identity of a stream: its device, its context and its number, each of which may be unknown.
type Stream = (DeviceId, Option<u32>, Option<u32>);

/// The named objects of a trace, in the order in which they were met.
#[derive(Default)]
pub(crate) struct Inventory {
    /// The profiler that made the files. It is the hook of the processes and the source of the counters.
    pub tool: String,
    /// The driver of all devices.
    pub driver: String,
    /// The processes, threads, devices and queues; an id counts from 0 in this order.
    processes: Vec<Process>,
    by_pid: FxHashMap<u32, ProcessId>,
    threads: BTreeMap<(ProcessId, ThreadId), String>,
    devices: Vec<Device>,
    /// The devices that the trace leaves out.
    forgotten: FxHashSet<DeviceId>,
    /// Devices by process and by the number that the importer gives a device; `None` stands for an unknown device.
    by_number: FxHashMap<(ProcessId, Option<u32>), DeviceId>,
    /// The GPU API of a process's calls; `None` if the process calls several APIs.
    called: FxHashMap<ProcessId, Option<Api>>,
    queues: Vec<Queue>,
    /// The queue of each stream.
    by_stream: FxHashMap<Stream, QueueId>,
    /// The queue of each device for moves of managed memory's pages.
    page_moves: FxHashMap<DeviceId, QueueId>,
    kernels: Interner<KernelFacts, KernelId>,
    counters: Interner<CounterFacts, CounterId>,
    pub labels: Labels,
    /// The losses so far.
    pub losses: Ledger,
    notes: Vec<String>,
    /// The first start and the last end; `None` before the first event.
    span_ns: Option<(i64, i64)>,
    /// The manifest, whose lists are filled at the end. Its start is the zero of the clock until then.
    pub manifest: Manifest,
}

impl Inventory {
    /// Creates an empty inventory of files that `tool` made.
    pub fn new(tool: &str) -> Inventory {
        Inventory {
            tool: tool.to_owned(),
            ..Inventory::default()
        }
    }

    /// Returns the process with a pid; 0 stands for a process that the tool does not name.
    pub fn process(&mut self, pid: u32) -> ProcessId {
        if let Some(id) = self.by_pid.get(&pid) {
            return *id;
        }
        let name = if pid == 0 { UNKNOWN_PROCESS } else { "" };
        let id = self.add_process(pid, name);
        self.by_pid.insert(pid, id);
        id
    }

    /// Adds a process with a name and returns its id. Unlike [`Self::process`], it does not make the pid known.
    pub fn add_process(&mut self, pid: u32, name: &str) -> ProcessId {
        let id = ProcessId::counted(self.processes.len());
        self.processes.push(Process {
            id,
            pid,
            executable: name.to_owned(),
            ..Process::default()
        });
        id
    }

    /// Returns the process of rows that name none: the only process so far, or else an unknown process.
    pub fn unnamed_process(&mut self) -> ProcessId {
        match self.processes.as_slice() {
            [only] => only.id,
            _ => self.process(0),
        }
    }

    /// Returns the processes, each with its pid; 0 stands for an unknown pid.
    pub fn processes(&self) -> impl Iterator<Item = (ProcessId, u32)> {
        self.processes
            .iter()
            .map(|process| (process.id, process.pid))
    }

    /// Sets the name and arguments of a process; an empty name changes nothing.
    pub fn name_process(&mut self, process: ProcessId, executable: &str, arguments: Vec<String>) {
        if let Some(known) = self.processes.get_mut(process.index())
            && !executable.is_empty()
        {
            known.executable = executable.to_owned();
            known.arguments = arguments;
        }
    }

    /// Adds a thread, with its name if that is not empty. The first name stays.
    pub fn thread(&mut self, process: ProcessId, thread: ThreadId, name: &str) {
        let known = self.threads.entry((process, thread)).or_default();
        if known.is_empty() && !name.is_empty() {
            known.push_str(name);
        }
    }

    /// Adds a thread, or replaces its name.
    pub fn name_thread(&mut self, process: ProcessId, thread: ThreadId, name: String) {
        self.threads.insert((process, thread), name);
    }

    /// Returns the id of the device with a number in a process; `describe` fills the entry of a new device.
    pub fn device(
        &mut self,
        process: ProcessId,
        number: Option<u32>,
        describe: impl FnOnce(&mut Device),
    ) -> DeviceId {
        let next = DeviceId::counted(self.devices.len());
        let id = *self.by_number.entry((process, number)).or_insert(next);
        if id == next {
            let mut device = Device {
                id,
                process,
                name: UNKNOWN_GPU.to_owned(),
                number,
                clock: Clock {
                    nanoseconds_per_tick: 1.0,
                    ..Clock::default()
                },
                ..Device::default()
            };
            describe(&mut device);
            self.devices.push(device);
        }
        id
    }

    /// Returns the devices that have a number, each with its number.
    pub fn numbered_devices(&mut self) -> impl Iterator<Item = (u32, &mut Device)> {
        let numbers =
            (self.by_number.iter()).filter_map(|((_, number), id)| Some((*id, (*number)?)));
        let numbers: FxHashMap<_, _> = numbers.collect();
        let devices = self.devices.iter_mut();
        devices.filter_map(move |device| Some((*numbers.get(&device.id)?, device)))
    }

    /// Returns the devices that have a number in their process, each with that number.
    pub fn device_numbers(&self) -> impl Iterator<Item = (u32, DeviceId)> {
        (self.by_number.iter()).filter_map(|((_, number), id)| Some(((*number)?, *id)))
    }

    /// Returns whether the file describes a device: it has a name beside its number.
    pub fn is_described(&self, device: DeviceId) -> bool {
        let known = self.devices.get(device.index());
        known.is_some_and(|device| {
            let name = device.name.trim();
            !name.is_empty() && !name.starts_with(UNKNOWN_GPU)
        })
    }

    /// Leaves devices out of the trace, with their queues; no row may name these.
    pub fn forget_devices(&mut self, devices: &FxHashSet<DeviceId>) {
        self.forgotten.extend(devices);
    }

    /// Says that devices of several processes are one physical GPU.
    pub fn identify(&mut self, devices: &[DeviceId], identity: &str) {
        for device in &mut self.devices {
            if devices.contains(&device.id) {
                identity.clone_into(&mut device.uuid);
            }
        }
    }

    /// Returns the pids of the processes of devices, in words.
    pub fn pids_of(&self, devices: &[DeviceId]) -> String {
        let mut pids: Vec<u32> = (devices.iter())
            .filter_map(|device| self.processes.get(self.process_of(*device).index()))
            .map(|process| process.pid)
            .collect();
        pids.sort_unstable();
        let pids: Vec<String> = pids.iter().map(u32::to_string).collect();
        match pids.split_last() {
            Some((last, [])) => last.clone(),
            Some((last, before)) => format!("{} and {last}", before.join(", ")),
            None => String::new(),
        }
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

    /// Returns the id of the first device with a number in any process.
    pub fn any_device(&self, number: u32) -> Option<DeviceId> {
        let known = (self.by_number.iter()).filter(|((_, other), _)| *other == Some(number));
        known.map(|(_, device)| *device).min()
    }

    /// Returns the id of the device of a process with a number; `None` if no work named the device.
    pub fn known_device(&self, process: ProcessId, number: u32) -> Option<DeviceId> {
        let device = self.by_number.get(&(process, Some(number))).copied();
        device.filter(|device| !self.forgotten.contains(device))
    }

    /// Returns the process of a device; process 0 for an unknown device.
    pub fn process_of(&self, device: DeviceId) -> ProcessId {
        let known = self.devices.get(device.index());
        known.map_or(ProcessId(0), |device| device.process)
    }

    /// Returns the device of a queue; device 0 for an unknown queue.
    pub fn device_of(&self, queue: QueueId) -> DeviceId {
        let known = self.queues.get(queue.index());
        known.map_or(DeviceId(0), |queue| queue.device)
    }

    /// Returns the API of a queue's device: the device's own, or else that of its process's calls.
    pub fn api_of(&self, queue: QueueId) -> Api {
        let device = (self.queues.get(queue.index()))
            .and_then(|queue| self.devices.get(queue.device.index()));
        device.map_or(Api::Unknown, |device| match device.api {
            Api::Unknown => {
                (self.called.get(&device.process).copied().flatten()).unwrap_or_default()
            }
            api => api,
        })
    }

    /// Returns true if there are queues.
    pub fn has_queues(&self) -> bool {
        !self.queues.is_empty()
    }

    /// Adds a queue to a device and returns its id. Its family is 0, and its index the number of the device's queues
    /// before it.
    pub fn add_queue(&mut self, device: DeviceId, name: Option<String>) -> QueueId {
        let index = self.queues.iter().filter(|queue| queue.device == device);
        let index = index.count() as u32;
        self.push_queue(device, (0, index), name)
    }

    /// Adds a queue with a family and an index: for a stream, its context and number.
    fn push_queue(
        &mut self,
        device: DeviceId,
        (family, index): (u32, u32),
        name: Option<String>,
    ) -> QueueId {
        let id = QueueId::counted(self.queues.len());
        self.queues.push(Queue {
            id,
            device,
            family,
            index,
            timestamp_bits: 64,
            name,
            ..Queue::default()
        });
        id
    }

    /// Returns the id of the queue that stands for a stream of a device, by the stream's context and number.
    #[inline]
    pub fn stream(
        &mut self,
        device: DeviceId,
        context: Option<u32>,
        number: Option<u32>,
    ) -> QueueId {
        let stream = (device, context, number);
        if let Some(queue) = self.by_stream.get(&stream) {
            return *queue;
        }
        let place = [context, number].map(|number| number.unwrap_or(UNKNOWN_NUMBER));
        let name = number.is_none().then(|| "unknown stream".to_owned());
        let id = self.push_queue(device, place.into(), name);
        self.by_stream.insert(stream, id);
        id
    }

    /// Returns the id of the queue that stands for the driver's moves of managed memory's pages to and from a device.
    /// They are on no stream.
    pub fn page_moves(&mut self, device: DeviceId) -> QueueId {
        if let Some(queue) = self.page_moves.get(&device) {
            return *queue;
        }
        let place = (UNKNOWN_NUMBER, UNKNOWN_NUMBER);
        let id = self.push_queue(device, place, Some("managed memory".to_owned()));
        self.page_moves.insert(device, id);
        id
    }

    /// Returns the queues that stand for streams with a context and a number, each with the process of its device.
    pub fn streams(&mut self) -> impl Iterator<Item = (ProcessId, &mut Queue)> {
        let (devices, by_stream) = (&self.devices, &self.by_stream);
        self.queues.iter_mut().filter_map(move |queue| {
            let stream = (queue.device, Some(queue.family), Some(queue.index));
            by_stream.get(&stream)?;
            Some((devices.get(queue.device.index())?.process, queue))
        })
    }

    /// Returns the id of the kernel with these facts, and adds a new kernel.
    pub fn kernel(&mut self, facts: KernelFacts) -> KernelId {
        self.kernels.id(facts)
    }

    /// Returns the name of a kernel.
    pub fn kernel_name(&self, kernel: KernelId) -> Option<&str> {
        let facts = self.kernels.get(kernel)?;
        Some(self.labels.text_of(facts.name))
    }

    /// Returns the id of a counter, and adds a new counter.
    pub fn counter(
        &mut self,
        name: &str,
        unit: CounterUnit,
        device: Option<DeviceId>,
        queue: Option<QueueId>,
    ) -> CounterId {
        self.counters.id(CounterFacts {
            name: name.into(),
            unit,
            device,
            queue,
        })
    }

    /// Adds `count` to the loss of a kind and reason.
    pub fn lose(&mut self, kind: impl Into<LossKind>, count: u64, reason: &'static str) {
        self.losses.add(kind.into(), count, reason);
    }

    /// Adds a note that every report shows, unless it is there.
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

    /// Takes back that later events extended the span.
    pub fn keep_span(&mut self, span_ns: Option<(i64, i64)>) {
        self.span_ns = span_ns;
    }

    /// Returns the span from the first to the last event as start and end; `None` if there were no events.
    pub fn span_ns(&self) -> Option<(i64, i64)> {
        self.span_ns
    }

    /// Writes the named objects and the manifest, and completes the trace. The manifest starts with the first event,
    /// and its command and further notes come from `options`.
    ///
    /// # Errors
    /// The system refuses to write.
    pub fn finish(
        mut self,
        mut trace: NewTrace,
        options: &Options,
        output: &mut Output,
    ) -> Result<(), Error> {
        for (number, device) in self.numbered_devices() {
            if device.name.trim().is_empty() {
                device.name = format!("GPU {number}");
            }
        }
        for device in &mut self.devices {
            device.driver.clone_from(&self.driver);
            if let (Api::Unknown, Some(Some(api))) = (device.api, self.called.get(&device.process))
            {
                device.api = *api;
            }
            // The profiler put the times of devices and hosts on one clock.
            if self.span_ns.is_some() {
                device.clock.method = ClockMethod::Calibrated;
            }
        }
        // Whoever lists GPUs lists them in the order of the file's numbers.
        (self.devices).sort_by_key(|device| device.number.unwrap_or(u32::MAX));
        let tables = trace.tables_mut();
        self.labels.push_into(&mut tables.labels);
        let text = |text: TextId| self.labels.shared_text(text);
        let kernel_name = |name: TextId| {
            let name = text(name);
            match functions::kernel_name(&name) {
                bare if bare.len() == name.len() => name,
                bare => bare.into(),
            }
        };
        for (id, facts) in self.kernels.iter() {
            let [local_x, local_y, local_z] = facts.local;
            tables.kernels.push(Kernel {
                id,
                process: facts.process,
                name: kernel_name(facts.name),
                name_source: NameSource::EntryPoint,
                entry_point: facts.entry_point.map(kernel_name),
                source: None,
                specialisation: None,
                local_x,
                local_y,
                local_z,
                full_name: facts.full_name.map(kernel_name),
                source_file: None,
                source_file_hash: None,
                registers: facts.registers,
                local_bytes: facts.local_bytes,
                static_shared_bytes: facts.static_shared_bytes,
                dynamic_shared_bytes: facts.dynamic_shared_bytes,
                accesses: None,
            });
        }
        for (id, facts) in self.counters.iter() {
            tables.counters.push(Counter {
                id,
                name: facts.name.clone(),
                unit: facts.unit,
                device: facts.device.filter(|id| !self.forgotten.contains(id)),
                queue: facts.queue,
                source: self.tool.as_str().into(),
            });
        }
        let forgotten = &self.forgotten;
        self.queues
            .retain(|queue| !forgotten.contains(&queue.device));
        self.devices
            .retain(|device| !forgotten.contains(&device.id));
        self.notes.extend(options.notes.iter().cloned());
        for reason in &options.unread_ends {
            (self.losses).add(LossKind::FileRests, 1, reason.clone());
        }
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
                    hook: self.tool.clone(),
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
        manifest.start_unix_ns = manifest.start_unix_ns.filter(|ns| *ns > 0);
        if let Some(command) = command {
            manifest.command = command;
        }
        trace.finish(&manifest, output)
    }
}
