//! What profilers of CUDA and HIP record: calls of threads, the work that each launched by their correlation, and labels.
//!
//! A reader of a format puts its rows in, in any order; [`Profile::write`] joins them and writes the tables of a trace as a
//! recording of CUDA has them. What does not fit together is counted in the ledger.

mod dependencies;
mod host;
mod labels;
mod manifest;
mod rows;
mod work;

pub(crate) use manifest::About;
pub(crate) use rows::*;

use crate::output::NewTrace;
use crate::{Error, Options, functions};
use gapscope_model::cuda::{FunctionClass, base_name};
use gapscope_trace::build::{CountedId, Interner, Labels};
use gapscope_trace::ids::*;
use gapscope_trace::manifest::{Api, Queue};
use gapscope_trace::tables::{MemoryRow, Table};
use gapscope_trace::{Ledger, LossKind};
use labels::Nested;
use rustc_hash::FxHashMap;
use std::collections::BTreeMap;
use std::sync::Arc;

/// A function, and what it does.
#[derive(Debug, Clone)]
struct Function {
    /// Without suffixes for versions.
    name: Arc<str>,
    class: Option<FunctionClass>,
}

/// The rows of a profile.
pub(crate) struct Profile {
    api: Api,
    driver: String,
    /// By pid; one that rows do not name is one of its own.
    processes: Interner<Option<u32>, ProcessId>,
    process_names: FxHashMap<ProcessId, String>,
    thread_names: BTreeMap<(ProcessId, ThreadId), String>,
    /// Of a process, by number there; those that rows do not name are one of its own.
    devices: Interner<(ProcessId, Option<u32>), DeviceId>,
    device_facts: FxHashMap<DeviceId, DeviceFacts>,
    /// Of a device: context and number, which rows may not name either.
    queues: Interner<(DeviceId, Option<u32>, Option<u32>), QueueId>,
    queue_facts: FxHashMap<QueueId, Queue>,
    texts: Interner<Arc<str>, TextId>,
    kernels: Interner<KernelShape, KernelId>,
    functions: Vec<Function>,
    function_ids: FxHashMap<Arc<str>, FunctionId>,
    calls: Vec<Call>,
    work: Vec<Work>,
    ranges: Vec<Range>,
    overheads: Vec<Overhead>,
    /// Queues that calls waited for.
    awaited: FxHashMap<(ProcessId, Correlation), QueueId>,
    events: Vec<EventOnQueue>,
    waits: Vec<EventOnQueue>,
    memory: Vec<MemoryRow>,
    labels: Labels,
    /// What is missing.
    pub ledger: Ledger,
}

impl Profile {
    /// Without rows, of devices that are used through `api`.
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
            functions: Vec::new(),
            function_ids: FxHashMap::default(),
            calls: Vec::new(),
            work: Vec::new(),
            ranges: Vec::new(),
            overheads: Vec::new(),
            awaited: FxHashMap::default(),
            events: Vec::new(),
            waits: Vec::new(),
            memory: Vec::new(),
            labels: Labels::default(),
            ledger: Ledger::default(),
        }
    }

    /// The driver of all devices.
    pub fn set_driver(&mut self, driver: String) {
        self.driver = driver;
    }

    /// A process by its pid.
    pub fn process(&mut self, pid: u32) -> ProcessId {
        self.processes.id(Some(pid))
    }

    /// The process of rows that do not name one: the only one that others have named until then, otherwise one that is not known.
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

    /// The processes that the rows name, with their pids.
    pub fn processes(&self) -> impl Iterator<Item = (ProcessId, u32)> {
        self.processes
            .iter()
            .filter_map(|(id, pid)| Some((id, (*pid)?)))
    }

    /// A device of a process, by its number there, if that is known.
    pub fn device(&mut self, process: ProcessId, number: Option<u32>) -> DeviceId {
        self.devices.id((process, number))
    }

    /// The devices that the rows name: each with its process and its number there.
    pub fn devices(&self) -> impl Iterator<Item = (DeviceId, ProcessId, u32)> {
        self.devices
            .iter()
            .filter_map(|(id, (process, number))| Some((id, *process, (*number)?)))
    }

    /// Says what a device is.
    pub fn describe_device(&mut self, device: DeviceId, facts: DeviceFacts) {
        self.device_facts.insert(device, facts);
    }

    /// A queue of a device: its context and its number, if they are known.
    #[inline]
    pub fn queue(
        &mut self,
        device: DeviceId,
        context: Option<u32>,
        number: Option<u32>,
    ) -> QueueId {
        self.queues.id((device, context, number))
    }

    /// The queues that the rows name: each with the process of its device, its context and its number.
    pub fn queues(&self) -> impl Iterator<Item = (QueueId, ProcessId, u32, u32)> {
        self.queues
            .iter()
            .filter_map(|(id, (device, context, number))| {
                let (process, _) = self.devices.get(*device)?;
                Some((id, *process, (*context)?, (*number)?))
            })
    }

    /// The queue of a process by its context and its number, if a row of work has named it.
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

    /// Says what a queue is: its name, kind and priority count.
    pub fn describe_queue(&mut self, queue: QueueId, facts: Queue) {
        self.queue_facts.insert(queue, facts);
    }

    /// A text.
    pub fn text(&mut self, text: &str) -> TextId {
        match self.texts.known(text) {
            Some(id) => id,
            None => self.texts.id(Arc::from(text)),
        }
    }

    fn shared(&self, id: TextId) -> Arc<str> {
        self.texts.get(id).cloned().unwrap_or_default()
    }

    /// A kernel.
    pub fn kernel(&mut self, shape: KernelShape) -> KernelId {
        self.kernels.id(shape)
    }

    /// A function by its name; suffixes for versions do not count.
    pub fn function(&mut self, name: &str) -> FunctionId {
        if let Some(id) = self.function_ids.get(name) {
            return *id;
        }
        let base = base_name(name);
        let class = functions::class_of(name);
        let known = self
            .functions
            .iter()
            .position(|f| &*f.name == base && f.class == class);
        let id = FunctionId(known.unwrap_or(self.functions.len()) as u32);
        if known.is_none() {
            let name = Arc::from(base);
            self.functions.push(Function { name, class });
        }
        self.function_ids.insert(Arc::from(name), id);
        id
    }

    fn class(&self, call: &Call) -> Option<FunctionClass> {
        self.functions.get(call.function.0 as usize)?.class
    }

    /// Adds a call.
    pub fn add_call(&mut self, call: Call) {
        self.calls.push(call);
    }

    /// Adds a piece of work.
    pub fn add_work(&mut self, work: Work) {
        self.work.push(work);
    }

    /// Adds a label.
    pub fn add_range(&mut self, range: Range) {
        self.ranges.push(range);
    }

    /// The labels so far.
    pub fn ranges_mut(&mut self) -> &mut [Range] {
        &mut self.ranges
    }

    /// Takes the labels of a profile that another thread read, with what that lost.
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

    /// Adds time of a thread that is no call.
    pub fn add_overhead(&mut self, overhead: Overhead) {
        self.overheads.push(overhead);
    }

    /// A call waited for a queue.
    pub fn add_awaited(&mut self, process: ProcessId, call: Correlation, queue: QueueId) {
        self.awaited.insert((process, call), queue);
    }

    /// A call recorded an event on a queue.
    pub fn add_event(&mut self, event: EventOnQueue) {
        self.events.push(event);
    }

    /// A call let a queue wait for an event.
    pub fn add_wait(&mut self, wait: EventOnQueue) {
        self.waits.push(wait);
    }

    /// Adds an allocation or a free.
    pub fn add_memory(&mut self, row: MemoryRow) {
        self.memory.push(row);
    }

    /// Whether there is any work of a device.
    pub fn has_work(&self) -> bool {
        !self.work.is_empty()
    }

    /// Whether there is anything of a host.
    pub fn has_host_rows(&self) -> bool {
        !self.calls.is_empty() || !self.ranges.is_empty()
    }

    /// Puts all times on another clock, which shows so much more.
    pub fn shift(&mut self, by_ns: i64) {
        let later = |ns: &mut i64| *ns = ns.saturating_add(by_ns);
        self.calls
            .iter_mut()
            .for_each(|call| later(&mut call.span.start_ns));
        let spans = self.work.iter_mut().filter_map(|work| work.span.as_mut());
        spans.for_each(|span| later(&mut span.start_ns));
        for range in &mut self.ranges {
            later(&mut range.start_ns);
            if let Some(end_ns) = &mut range.end_ns {
                later(end_ns);
            }
        }
        let overheads = self.overheads.iter_mut();
        overheads.for_each(|overhead| later(&mut overhead.span.start_ns));
        self.memory.iter_mut().for_each(|row| later(&mut row.at_ns));
    }

    /// Joins the rows and writes them. The trace then lacks only its manifest.
    ///
    /// # Errors
    /// The system refuses.
    pub fn write(
        mut self,
        about: About,
        options: &Options,
        mut new: NewTrace,
        output: &mut crate::output::Output,
    ) -> Result<(), Error> {
        let extent = self.extent();
        let ranges = std::mem::take(&mut self.ranges);
        let nested = std::thread::scope(|scope| {
            let nested = scope.spawn(|| Nested::of(ranges));
            self.calls.sort_by_key(|call| call.span.start_ns);
            self.work
                .sort_by_key(|work| work.span.map(|span| span.start_ns));
            let nested = nested.join();
            nested.unwrap_or_else(|panic| std::panic::resume_unwind(panic))
        });
        let (by_correlation, doubles) = self.launches();
        self.ledger.add(
            LossKind::HostCallsOfWork,
            doubles,
            "another call of the process has the same correlation",
        );
        let in_label = self.write_ranges(&nested, &mut new)?;
        let submissions = self.write_work(&by_correlation, &in_label, &mut new)?;
        self.write_calls(&submissions, &mut new)?;
        self.write_dependencies(&submissions, &mut new)?;
        self.write_kernels(&mut new)?;
        self.memory.sort_by_key(|row| row.at_ns);
        for row in std::mem::take(&mut self.memory) {
            new.tables_mut().memory.push(row);
            new.flush()?;
        }
        self.labels.push_into(&mut new.tables_mut().labels);
        let manifest = self.manifest(about, options, extent);
        new.finish(&manifest, output)
    }

    /// The calls that may have launched something, by their correlations; and how many correlations two of them have.
    fn launches(&self) -> (FxHashMap<(ProcessId, Correlation), u32>, u64) {
        let launching = |call: &Call| {
            self.class(call)
                .is_some_and(|c| c.submission_kind().is_some())
        };
        let mut launches = FxHashMap::default();
        launches.reserve(self.work.len());
        let mut doubles = 0;
        for (index, call) in (0u32..).zip(&self.calls) {
            let Some(correlation) = call.correlation.filter(|_| launching(call)) else {
                continue;
            };
            let before = launches.insert((call.process, correlation), index);
            doubles += u64::from(before.is_some());
        }
        (launches, doubles)
    }

    /// From the first to the last time of all rows.
    fn extent(&self) -> Option<Span> {
        let calls = self.calls.iter().map(|call| call.span);
        let work = self.work.iter().filter_map(|work| work.span);
        let ranges = self.ranges.iter();
        let ranges =
            ranges.filter_map(|r| Span::between(r.start_ns, r.end_ns.unwrap_or(r.start_ns)));
        let ends = calls
            .chain(work)
            .chain(ranges)
            .map(|span| (span.start_ns, span.end_ns()));
        let whole = ends.reduce(|a, b| (a.0.min(b.0), a.1.max(b.1)));
        whole.and_then(|(start_ns, end_ns)| Span::between(start_ns, end_ns))
    }
}
