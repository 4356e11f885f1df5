//! Collects the rows of CUDA and HIP profilers in memory and writes them as one trace.
//!
//! Readers of formats add calls of threads, the work that the calls launched, labels and names in any order;
//! [`Profile::write`] builds the rows with `gapscope_timeline_builder`, which also builds the rows of traces that
//! gapscope records.

mod manifest;
mod rows;

pub(crate) use gapscope_model::Span;
pub(crate) use gapscope_timeline_builder::{
    ApiCall, CallQueue, Correlation, DeviceWork, DeviceWorkKind, FunctionId, Overhead, StreamEvent,
    StreamPlace,
};
pub(crate) use manifest::About;
pub(crate) use rows::*;

use crate::output::NewTrace;
use crate::{Error, Options, functions};
use gapscope_model::cuda::base_name;
use gapscope_timeline_builder::{
    CategoryId, FileReasons, Function, HostRange, Ids, Recorded, Shared,
};
use gapscope_trace::Ledger;
use gapscope_trace::build::{CountedId, Interner, Labels};
use gapscope_trace::ids::*;
use gapscope_trace::manifest::{Api, Queue};
use gapscope_trace::tables::{Kernel, MemoryRow, NameSource, Table};
use rustc_hash::FxHashMap;
use std::collections::BTreeMap;
use std::sync::Arc;

/// The rows of a profile.
pub(crate) struct Profile {
    api: Api,
    driver: String,
    /// Processes by pid; rows that name no process share one.
    processes: Interner<Option<u32>, ProcessId>,
    process_names: FxHashMap<ProcessId, String>,
    thread_names: BTreeMap<(ProcessId, ThreadId), String>,
    /// Devices by process and number; rows that name no device share one.
    devices: Interner<(ProcessId, Option<u32>), DeviceId>,
    device_facts: FxHashMap<DeviceId, DeviceFacts>,
    /// Queues by device, context and number; rows may lack both numbers.
    queues: Interner<(DeviceId, Option<u32>, Option<u32>), QueueId>,
    queue_facts: FxHashMap<QueueId, Queue>,
    texts: Interner<Arc<str>, TextId>,
    kernels: Interner<KernelShape, KernelId>,
    function_ids: FxHashMap<Arc<str>, FunctionId>,
    /// Calls, work and stream events. Labels are kept elsewhere until all texts are known.
    recorded: Recorded,
    ranges: Vec<Range>,
    /// The queue that each call waited for, by process and correlation (the number that joins a call with its
    /// work).
    awaited: FxHashMap<(ProcessId, Correlation), QueueId>,
    memory: Vec<MemoryRow>,
    labels: Labels,
    /// The losses so far.
    pub ledger: Ledger,
}

impl Profile {
    /// Creates an empty profile of devices that are used through `api`.
    pub fn new(api: Api) -> Profile {
        Profile {
            api,
            driver: String::new(),
            processes: Interner::default(),
            process_names: FxHashMap::default(),
            thread_names: BTreeMap::new(),
            devices: Interner::default(),
            device_facts: FxHashMap::default(),
            queues: Interner::default(),
            queue_facts: FxHashMap::default(),
            texts: Interner::default(),
            kernels: Interner::default(),
            function_ids: FxHashMap::default(),
            recorded: Recorded::default(),
            ranges: Vec::new(),
            awaited: FxHashMap::default(),
            memory: Vec::new(),
            labels: Labels::default(),
            ledger: Ledger::default(),
        }
    }

    /// Sets the driver of all devices.
    pub fn set_driver(&mut self, driver: String) {
        self.driver = driver;
    }

    /// Returns the id of the process with a pid.
    pub fn process(&mut self, pid: u32) -> ProcessId {
        self.processes.id(Some(pid))
    }

    /// Returns the id of the process of rows that name none: the only process so far, or else an unknown process.
    pub fn unnamed_process(&mut self) -> ProcessId {
        match self.processes.len() {
            1 => ProcessId::counted(0),
            _ => self.processes.id(None),
        }
    }

    /// Names a process.
    pub fn name_process(&mut self, process: ProcessId, name: String) {
        self.process_names.insert(process, name);
    }

    /// Names a thread.
    pub fn name_thread(&mut self, process: ProcessId, thread: ThreadId, name: String) {
        self.thread_names.insert((process, thread), name);
    }

    /// Returns the processes that have a pid.
    pub fn processes(&self) -> impl Iterator<Item = (ProcessId, u32)> {
        self.processes
            .iter()
            .filter_map(|(id, pid)| Some((id, (*pid)?)))
    }

    /// Returns the id of the device with a number in a process, or of the process's unknown device if there is no
    /// number.
    pub fn device(&mut self, process: ProcessId, number: Option<u32>) -> DeviceId {
        self.devices.id((process, number))
    }

    /// Returns the devices that have a number, with their processes.
    pub fn devices(&self) -> impl Iterator<Item = (DeviceId, ProcessId, u32)> {
        self.devices
            .iter()
            .filter_map(|(id, (process, number))| Some((id, *process, (*number)?)))
    }

    /// Sets the facts of a device.
    pub fn describe_device(&mut self, device: DeviceId, facts: DeviceFacts) {
        self.device_facts.insert(device, facts);
    }

    /// Returns the id of the queue of a device with a context and a number, each of which may be unknown.
    #[inline]
    pub fn queue(
        &mut self,
        device: DeviceId,
        context: Option<u32>,
        number: Option<u32>,
    ) -> QueueId {
        self.queues.id((device, context, number))
    }

    /// Returns the queues that have a context and a number, as queue, process of its device, context and number.
    pub fn queues(&self) -> impl Iterator<Item = (QueueId, ProcessId, u32, u32)> {
        self.queues
            .iter()
            .filter_map(|(id, (device, context, number))| {
                let (process, _) = self.devices.get(*device)?;
                Some((id, *process, (*context)?, (*number)?))
            })
    }

    /// Returns the queue of a process with a context and a number; `None` if no row of work has named it.
    pub fn queue_in_context(
        &self,
        process: ProcessId,
        context: u32,
        number: u32,
    ) -> Option<QueueId> {
        let same = |queue: &(QueueId, ProcessId, u32, u32)| {
            (queue.1, queue.2, queue.3) == (process, context, number)
        };
        self.queues().find(same).map(|queue| queue.0)
    }

    /// Sets the name, kind and priority of a queue.
    pub fn describe_queue(&mut self, queue: QueueId, facts: Queue) {
        self.queue_facts.insert(queue, facts);
    }

    pub fn text(&mut self, text: &str) -> TextId {
        match self.texts.known(text) {
            Some(id) => id,
            None => self.texts.id(Arc::from(text)),
        }
    }

    fn shared(&self, id: TextId) -> Arc<str> {
        self.texts.get(id).cloned().unwrap_or_default()
    }

    pub fn kernel(&mut self, shape: KernelShape) -> KernelId {
        self.kernels.id(shape)
    }

    /// Returns the id of the function with a name, without the suffix of a version.
    pub fn function(&mut self, name: &str) -> FunctionId {
        if let Some(id) = self.function_ids.get(name) {
            return *id;
        }
        let base = base_name(name);
        let class = functions::class_of(name).unwrap_or_default();
        let functions = &mut self.recorded.functions;
        let is_same = |function: &Function| &*function.name == base && function.class == class;
        let known = functions.iter().position(is_same);
        let id = FunctionId(known.unwrap_or(functions.len()) as u32);
        if known.is_none() {
            let name = Arc::from(base);
            functions.push(Function { class, name });
        }
        self.function_ids.insert(Arc::from(name), id);
        id
    }

    pub fn add_call(&mut self, process: ProcessId, call: ApiCall) {
        self.recorded.calls.push((process, call));
    }

    /// Adds a piece of work with the correlation of its call.
    pub fn add_work(
        &mut self,
        process: ProcessId,
        correlation: Option<Correlation>,
        work: DeviceWork,
    ) {
        self.recorded.work.push((process, correlation, work));
    }

    pub fn add_range(&mut self, range: Range) {
        self.ranges.push(range);
    }

    pub fn ranges_mut(&mut self) -> &mut [Range] {
        &mut self.ranges
    }

    /// Moves the labels and losses of a profile that another thread filled into this profile.
    pub fn take_labels(&mut self, other: Profile) {
        let processes: Vec<_> = (other.processes.iter())
            .map(|(_, pid)| match pid {
                Some(pid) => self.process(*pid),
                None => self.unnamed_process(),
            })
            .collect();
        let texts: Vec<_> = (other.texts.iter())
            .map(|(_, text)| self.text(text))
            .collect();
        let mut ranges = other.ranges;
        for range in &mut ranges {
            range.process = processes[range.process.index()];
            range.text = texts[range.text.index()];
            for text in [&mut range.domain, &mut range.category, &mut range.payload] {
                *text = text.map(|text| texts[text.index()]);
            }
        }
        match self.ranges.is_empty() {
            true => self.ranges = ranges,
            false => self.ranges.append(&mut ranges),
        }
        self.ledger.merge(&other.ledger);
    }

    /// Adds time that a thread spent outside calls, such as in the profiler.
    pub fn add_overhead(&mut self, process: ProcessId, overhead: Overhead) {
        self.recorded.overheads.push((process, overhead));
    }

    /// Records that a call waited for a queue.
    pub fn add_awaited(&mut self, process: ProcessId, call: Correlation, queue: QueueId) {
        self.awaited.insert((process, call), queue);
    }

    /// Adds the recording of an event on a stream by a call.
    pub fn add_event(&mut self, event: StreamEvent) {
        self.recorded.events.push(event);
    }

    /// Adds a wait for an event that a call enqueued on a stream.
    pub fn add_wait(&mut self, wait: StreamEvent) {
        self.recorded.waits.push(wait);
    }

    pub fn add_memory(&mut self, row: MemoryRow) {
        self.memory.push(row);
    }

    /// Returns true if there is work of a device.
    pub fn has_work(&self) -> bool {
        !self.recorded.work.is_empty()
    }

    /// Returns true if there are calls or labels of the host.
    pub fn has_host_rows(&self) -> bool {
        !self.recorded.calls.is_empty() || !self.ranges.is_empty()
    }

    /// Adds `by_ns` to all times, which converts them to another clock.
    pub fn shift(&mut self, by_ns: i64) {
        let later = |ns: &mut i64| *ns = ns.saturating_add(by_ns);
        let calls = self.recorded.calls.iter_mut();
        calls.for_each(|(_, call)| later(&mut call.span.start_ns));
        let work = self.recorded.work.iter_mut();
        let spans = work.filter_map(|(_, _, work)| work.span.as_mut());
        spans.for_each(|span| later(&mut span.start_ns));
        for range in &mut self.ranges {
            later(&mut range.start_ns);
            if let Some(end_ns) = &mut range.end_ns {
                later(end_ns);
            }
        }
        let overheads = self.recorded.overheads.iter_mut();
        overheads.for_each(|(_, overhead)| later(&mut overhead.span.start_ns));
        self.memory.iter_mut().for_each(|row| later(&mut row.at_ns));
    }

    /// Joins the rows and writes all of the trace but its manifest.
    ///
    /// # Errors
    /// The system refuses to write.
    pub fn write(
        mut self,
        about: About,
        options: &Options,
        mut new: NewTrace,
        output: &mut crate::output::Output,
    ) -> Result<(), Error> {
        let extent = self.extent();
        let threads = self.threads();
        for (process, call) in &mut self.recorded.calls {
            let of_call = call
                .correlation
                .and_then(|id| self.awaited.get(&(*process, id)));
            call.queue = of_call.map_or(CallQueue::Unknown, |queue| CallQueue::Known(*queue));
        }
        let recorded = self.with_labels();
        let shared = Shared {
            labels: &mut self.labels,
            ledger: &mut self.ledger,
            ids: &mut Ids::default(),
            reasons: FileReasons::default(),
        };
        recorded.build(shared, &mut new)?;
        self.write_kernels(&mut new)?;
        self.memory.sort_by_key(|row| row.at_ns);
        for row in std::mem::take(&mut self.memory) {
            new.tables_mut().memory.push(row);
            new.flush()?;
        }
        self.labels.push_into(&mut new.tables_mut().labels);
        let manifest = self.manifest(about, options, extent, threads);
        new.finish(&manifest, output)
    }

    /// Takes the recorded rows out of the profile, with the labels added.
    fn with_labels(&mut self) -> Recorded {
        let mut recorded = std::mem::take(&mut self.recorded);
        let texts: Vec<_> = (self.texts.iter())
            .map(|(_, text)| self.labels.text(text))
            .collect();
        // Domains and categories are numbered as texts are; 0 stands for none.
        let number = |text: Option<TextId>| text.map_or(0, |text| text.index() as u32 + 1);
        let mut refused = 0;
        for range in std::mem::take(&mut self.ranges) {
            let end_ns = range.end_ns.unwrap_or(range.start_ns);
            if Span::checked(range.start_ns, end_ns).is_none() {
                refused += 1;
                continue;
            }
            for text in [range.domain, range.category].into_iter().flatten() {
                let name = || self.shared(text);
                recorded.name_domain(number(Some(text)), name);
                recorded.name_category(CategoryId(number(Some(text))), name);
            }
            recorded.ranges.push(HostRange {
                process: range.process,
                thread: range.thread,
                of_process: range.of_process,
                text: texts[range.text.index()],
                domain: number(range.domain),
                category: CategoryId(number(range.category)),
                payload: range.payload.map(|text| self.shared(text)),
                start_ns: range.start_ns,
                end_ns: range.end_ns,
                labels_work: range.labels_work,
                has_row: true,
            });
        }
        let reason = "their times are impossible";
        (self.ledger).add(gapscope_trace::LossKind::Labels, refused, reason);
        recorded
    }

    /// Writes a row for each kernel.
    fn write_kernels(&mut self, new: &mut NewTrace) -> Result<(), Error> {
        for (id, shape) in self.kernels.iter() {
            let [local_x, local_y, local_z] = shape.block;
            new.tables_mut().kernels.push(Kernel {
                id,
                process: shape.process,
                name: self.shared(shape.name),
                name_source: NameSource::EntryPoint,
                entry_point: Some(self.shared(shape.mangled.unwrap_or(shape.name))),
                source: None,
                specialisation: None,
                local_x,
                local_y,
                local_z,
                full_name: None,
                source_file: None,
                source_file_hash: None,
                registers: shape.registers,
                local_bytes: shape.local_bytes,
                static_shared_bytes: shape.static_shared_bytes,
                dynamic_shared_bytes: shape.dynamic_shared_bytes,
            });
            new.flush()?;
        }
        Ok(())
    }

    /// Returns the span from the first to the last time of all rows.
    fn extent(&self) -> Option<Span> {
        let calls = self.recorded.calls.iter().map(|(_, call)| call.span);
        let work = (self.recorded.work.iter()).filter_map(|(_, _, work)| work.span);
        let ranges = self.ranges.iter();
        let ranges =
            ranges.filter_map(|r| Span::checked(r.start_ns, r.end_ns.unwrap_or(r.start_ns)));
        let ends = calls
            .chain(work)
            .chain(ranges)
            .map(|span| (span.start_ns, span.end_ns()));
        let whole = ends.reduce(|a, b| (a.0.min(b.0), a.1.max(b.1)));
        whole.and_then(|(start_ns, end_ns)| Span::checked(start_ns, end_ns))
    }
}
