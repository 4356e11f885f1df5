//! From planes to rows.

use super::event::{Event, Line, Odd, detail, own_fact, sizes};
use super::plane::Plane;
use crate::inventory::{Inventory, KernelFacts};
use crate::output::NewTrace;
use crate::{Error, functions, transfers};
use gapscope_trace::LossKind;
use gapscope_trace::ids::*;
use gapscope_trace::manifest::{Api, DeviceLimits};
use gapscope_trace::tables::*;
use rustc_hash::FxHashMap;

/// No GPU has more registers for a thread; the profiler is known to write others.
const MOST_REGISTERS: u32 = 1024;

/// A call whose work is not found yet.
struct Call {
    submission: Submission,
    /// What it is if it has no work in the trace.
    call: HostCallKind,
}

/// See the module.
pub(super) struct Work {
    inventory: Inventory,
    trace: NewTrace,
    process: ProcessId,
    /// Calls by the number that links them with their work.
    calls: FxHashMap<u64, Call>,
    /// Submissions whose call is in the trace.
    submitted: FxHashMap<u64, SubmissionId>,
    next_submission: u64,
    derived: u64,
}

impl Work {
    pub fn new(mut inventory: Inventory, trace: NewTrace, pid: u32, planes: &[Plane]) -> Work {
        let process = inventory.process(pid);
        let task = planes.iter().find(|plane| plane.name == "Task Environment");
        let start = task.and_then(|task| own_fact(task, "profile_start_time"));
        let start = start.and_then(|fact| fact.unsigned());
        inventory.manifest.start_unix_ns = start
            .and_then(|ns| i64::try_from(ns).ok())
            .filter(|_| is_relative(planes));
        Work {
            inventory,
            trace,
            process,
            calls: FxHashMap::default(),
            submitted: FxHashMap::default(),
            next_submission: 0,
            derived: 0,
        }
    }

    /// Adds a plane: those of hosts first.
    ///
    /// # Errors
    /// The system refuses.
    pub fn add(&mut self, plane: &Plane) -> Result<(), Error> {
        let device = plane.gpu.map(|gpu| self.device(gpu, plane));
        if device.is_none() && !plane.is_host {
            let lines = plane.lines.iter().map(|line| Line::of(*line));
            let events: usize = lines.map(|line| line.events().count()).sum();
            let reason = "they are on planes that are no GPU's and no thread's";
            self.inventory
                .lose("events of profiles", events as u64, reason);
            return Ok(());
        }
        for message in &plane.lines {
            let line = Line::of(*message);
            if device.is_some() && !is_stream(&line) {
                self.derived += line.events().count() as u64;
                continue;
            }
            match device {
                Some(device) => self.stream(&line, plane, device)?,
                None => self.thread(&line, plane)?,
            }
        }
        Ok(())
    }

    /// All planes were added.
    pub fn complete(mut self) -> (Inventory, NewTrace) {
        // Calls that submitted nothing that is in the trace are calls like others.
        let calls = std::mem::take(&mut self.calls);
        let mut calls: Vec<Call> = calls.into_values().collect();
        calls.sort_by_key(|call| call.submission.id);
        let launches = calls
            .iter()
            .filter(|call| call.call == HostCallKind::Launch);
        let reason = "the file does not have the GPU work that they submitted";
        let launches = launches.count() as u64;
        self.inventory.lose(LossKind::Submissions, launches, reason);
        for Call { submission, call } in calls {
            self.host_call(submission, call);
        }
        if self.derived > 0 {
            self.inventory.note(format!(
                "{} events of lines that the profiler derives from the streams, such as XLA Ops, were not imported: they are the same work again.",
                self.derived
            ));
        }
        (self.inventory, self.trace)
    }

    fn device(&mut self, gpu: u32, plane: &Plane) -> DeviceId {
        let fact = |name| own_fact(plane, name);
        let number = |name| fact(name).and_then(|fact| fact.unsigned());
        let vendor = fact("device_vendor").map(|vendor| vendor.to_string());
        let kind = fact("device_type_string").map(|kind| kind.to_string());
        let major = number("compute_cap_major");
        let capability = major.zip(number("compute_cap_minor"));
        let is_amd = (vendor.as_deref()).is_some_and(|vendor| {
            vendor.eq_ignore_ascii_case("amd") || vendor.starts_with("Advanced Micro Devices")
        });
        let is_nvidia = vendor
            .as_deref()
            .is_some_and(|v| v.eq_ignore_ascii_case("nvidia"));
        self.inventory.device(self.process, gpu.into(), |device| {
            device.name = match (kind, &vendor) {
                (Some(kind), _) => kind,
                (None, Some(vendor)) => format!("{vendor} GPU {gpu}"),
                (None, None) => format!("GPU {gpu}"),
            };
            if is_nvidia {
                device.api = Api::Cuda;
            } else if is_amd {
                device.api = Api::Hip;
            }
            device.heaps.extend(number("memory_size"));
            device.limits = Some(DeviceLimits {
                compute_capability: capability
                    .filter(|_| is_nvidia)
                    .map(|(major, minor)| format!("{major}.{minor}")),
                multiprocessors: number("core_count").and_then(|n| u32::try_from(n).ok()),
                core_clock_khz: number("clock_rate").and_then(|n| u32::try_from(n).ok()),
                memory_bytes_per_s: number("memory_bandwidth"),
                ..DeviceLimits::default()
            });
        })
    }

    fn stream(&mut self, line: &Line, plane: &Plane, device: DeviceId) -> Result<(), Error> {
        let queue = self
            .inventory
            .add_queue(device, Some(line.name.to_string()));
        for message in line.events() {
            match line.event(message, plane) {
                Ok(event) => self.gpu_work(&event, queue),
                Err(odd) => self.lose(odd, LossKind::GpuIntervals),
            }
            self.trace.flush()?;
        }
        Ok(())
    }

    fn thread(&mut self, line: &Line, plane: &Plane) -> Result<(), Error> {
        // Threads' ids may be of 64 bits there; of those the low half tells them apart here.
        let thread = ThreadId(line.id as u32);
        self.inventory.thread(self.process, thread, &line.name);
        let mut open: Vec<(i64, LabelId)> = Vec::new();
        for message in line.events() {
            match line.event(message, plane) {
                Ok(event) => self.host_event(&event, thread, &mut open),
                Err(odd) => self.lose(odd, LossKind::HostCalls),
            }
            self.trace.flush()?;
        }
        Ok(())
    }

    fn lose(&mut self, odd: Odd, kind: LossKind) {
        let reason = match odd {
            Odd::Impossible => "their times are impossible",
            Odd::Aggregate => "they say how often something happened, not when",
        };
        self.inventory.lose(kind, 1, reason);
    }

    fn host_event(&mut self, event: &Event, thread: ThreadId, open: &mut Vec<(i64, LabelId)>) {
        let end_ns = event.start_ns.saturating_add(event.duration_ns);
        self.inventory.spans(event.start_ns, end_ns);
        let linked = event.unsigned("correlation_id").filter(|id| *id != 0);
        // Calls of ROCm may have the name of what they launch.
        let launch = linked.map(|_| HostCallKind::Launch);
        let Some(call) = functions::host_call_kind(event.name).or(launch) else {
            return self.marker(event, thread, end_ns, open);
        };
        self.inventory.calls(self.process, event.name);
        self.next_submission += 1;
        let submission = Submission {
            id: SubmissionId(self.next_submission),
            process: self.process,
            queue: QueueId(0),
            kind: SubmissionKind::Unknown,
            thread: Some(thread),
            start_ns: event.start_ns,
            duration_ns: event.duration_ns,
            command_buffers: 0,
            function: Some(event.name.into()),
        };
        match linked {
            Some(id) if !self.calls.contains_key(&id) => {
                self.calls.insert(id, Call { submission, call });
            }
            _ => self.host_call(submission, call),
        }
    }

    fn host_call(&mut self, call: Submission, kind: HostCallKind) {
        self.trace.tables_mut().host_calls.push(HostCall {
            process: call.process,
            thread: call.thread,
            call: kind,
            start_ns: call.start_ns,
            duration_ns: call.duration_ns,
            count: 1,
            busy_ns: call.duration_ns,
            queue: None,
            bytes: None,
            result: 0,
            function: call.function,
        });
    }

    fn marker(
        &mut self,
        event: &Event,
        thread: ThreadId,
        end_ns: i64,
        open: &mut Vec<(i64, LabelId)>,
    ) {
        while open.last().is_some_and(|(end, _)| *end <= event.start_ns) {
            open.pop();
        }
        let around = open.last().map(|(_, label)| *label);
        let label = self.inventory.labels.named(around, event.name);
        open.push((end_ns, label));
        // Names that begin with an underscore are links that the profiler itself needs.
        let facts = event
            .facts
            .iter()
            .filter(|(name, _)| !name.starts_with('_'));
        let facts: Vec<String> = facts.map(|(name, fact)| format!("{name}={fact}")).collect();
        self.trace.tables_mut().markers.push(Marker {
            process: self.process,
            scope: MarkerScope::Thread,
            label,
            queue: None,
            thread: Some(thread),
            command_buffer: None,
            start_ns: Some(event.start_ns),
            duration_ns: Some(event.duration_ns),
            domain: None,
            category: None,
            payload: (!facts.is_empty()).then(|| facts.join(", ").into()),
        });
    }

    fn gpu_work(&mut self, event: &Event, queue: QueueId) {
        let end_ns = event.start_ns.saturating_add(event.duration_ns);
        self.inventory.spans(event.start_ns, end_ns);
        let copied = ["memcpy_details", "memset_details"];
        let copied = copied.iter().find_map(|name| event.text(name));
        let kernel = event.text("kernel_details");
        let transfer = copied.is_some() || kernel.is_none() && transfers::is_transfer(event.name);
        let kind = match transfer {
            true => SubmissionKind::Transfer,
            false => SubmissionKind::Kernel,
        };
        let submission = self.submission(event, queue, kind);
        let label = self.label(event);
        let (start_ns, duration_ns) = (Some(event.start_ns), Some(event.duration_ns));
        if transfer {
            let bytes = copied.and_then(|details| {
                let size = detail(details, "size").or(detail(details, "num_bytes"));
                size?.parse().ok()
            });
            let kind = match event.text("memset_details") {
                Some(_) => TransferKind::Fill,
                None => transfers::kind(event.name),
            };
            self.trace.tables_mut().transfers.push(Transfer {
                command_buffer: None,
                position: 0,
                queue,
                kind,
                bytes,
                start_ns,
                duration_ns,
                source: None,
                destination: None,
                label,
                submission,
                host_memory: None,
            });
            return;
        }
        let kernel = self.kernel(event, kernel.unwrap_or_default());
        let details = event.text("kernel_details").unwrap_or_default();
        let [groups_x, groups_y, groups_z] = sizes(detail(details, "grid"));
        self.trace.tables_mut().dispatches.push(Dispatch {
            command_buffer: None,
            position: 0,
            queue,
            kernel,
            start_ns,
            duration_ns,
            groups_x,
            groups_y,
            groups_z,
            bindings: None,
            label,
            submission,
        });
    }

    fn kernel(&mut self, event: &Event, details: &str) -> KernelId {
        let number = |key| detail(details, key).and_then(|text| text.parse::<u32>().ok());
        let registers = number("regs");
        // Where registers are nonsense, the memory beside them is, too: some versions of the profiler for ROCm write
        // what was in memory.
        let plausible = registers.is_none_or(|count| count <= MOST_REGISTERS);
        if !plausible {
            let reason = "the profiler wrote numbers of registers that no GPU has";
            self.inventory
                .lose("registers and memory of kernels", 1, reason);
        }
        let known = |value: Option<u32>| value.filter(|_| plausible);
        self.inventory.kernel(KernelFacts {
            process: self.process,
            name: event.name.into(),
            local: sizes(detail(details, "block")),
            registers: known(registers),
            local_bytes: known(number("private_mem")),
            static_shared_bytes: known(number("static_shared").or(number("group_mem"))),
            dynamic_shared_bytes: known(number("dynamic_shared")),
            ..KernelFacts::default()
        })
    }

    /// The module, the scope in the program and the operation that a piece of work is of.
    fn label(&mut self, event: &Event) -> Option<LabelId> {
        let labels = &mut self.inventory.labels;
        let mut label = None;
        let scope = event.text("name").or(event.text("tf_op"));
        // The scope has parts, such as `jit(step)/transpose/dot_general`.
        let scope = scope.into_iter().flat_map(|scope| scope.split('/'));
        let texts = event.text("hlo_module").into_iter().chain(scope);
        for text in texts.chain(event.text("hlo_op")) {
            if !text.is_empty() {
                label = Some(labels.named(label, text));
            }
        }
        label
    }

    /// The submission that launched a piece of work, if its call is in the file.
    fn submission(
        &mut self,
        event: &Event,
        queue: QueueId,
        kind: SubmissionKind,
    ) -> Option<SubmissionId> {
        let id = event.unsigned("correlation_id").filter(|id| *id != 0);
        let known = id.and_then(|id| self.submitted.get(&id)).copied();
        if known.is_some() {
            return known;
        }
        let call = id.and_then(|id| Some((id, self.calls.remove(&id)?)));
        let Some((id, mut call)) = call else {
            let reason = "the file does not have the calls that submitted them";
            self.inventory.lose(LossKind::HostCallsOfWork, 1, reason);
            return None;
        };
        call.submission.queue = queue;
        call.submission.kind = kind;
        // Copies that return when they are done keep the thread, too.
        if call.call != HostCallKind::Launch {
            self.host_call(call.submission.clone(), call.call);
        }
        let submission = call.submission.id;
        self.trace.tables_mut().submissions.push(call.submission);
        self.submitted.insert(id, submission);
        Some(submission)
    }
}

/// Lines with work: streams. The others are derived from them.
fn is_stream(line: &Line) -> bool {
    line.name.starts_with("Stream #") || line.name.starts_with("stream ")
}

/// Whether times count from the start of the profile, as in newer files, and not from 1970.
fn is_relative(planes: &[Plane]) -> bool {
    let lines = planes.iter().flat_map(|plane| &plane.lines);
    let mut starts = lines.map(|line| Line::of(*line).start_ns);
    // The year 2001.
    starts.all(|start_ns| start_ns < 1_000_000_000_000_000_000)
}
