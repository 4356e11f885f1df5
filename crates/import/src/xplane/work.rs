//! Converts the planes of a profile to calls, ranges and device work of a [`Profile`], from which the caller writes
//! the trace: [`Collector::new`], [`Collector::add`] for each plane, [`Collector::complete`].

use super::event::{Event, Line, Odd, own_fact};
use super::plane::Plane;
use crate::details::{self, detail, sizes};
use crate::inventory::KernelFacts;
use crate::profile::{
    ApiCall, CallQueue, Correlation, DeviceWork, DeviceWorkKind, FileReasons, FunctionId,
    HostRange, Profile,
};
use crate::{functions, transfers};
use gapscope_model::Span;
use gapscope_model::cuda::FunctionClass;
use gapscope_timeline_builder::{Function, Reasons};
use gapscope_trace::LossKind;
use gapscope_trace::build::Interner;
use gapscope_trace::ids::*;
use gapscope_trace::manifest::{Api, DeviceProperties};
use gapscope_trace::tables::TransferKind;
use std::sync::Arc;

/// The maximum number of registers of a thread on any GPU. The profiler is known to write greater numbers.
const MAX_REGISTERS_PER_THREAD: u32 = 1024;

/// The beginning of the names of graph launches that the profiler timed as a whole.
const WHOLE_GRAPH: &str = "CudaGraphExec:";

/// The calls, ranges and device work that were collected so far.
pub(super) struct Collector {
    pub profile: Profile,
    process: ProcessId,
    /// The ids of functions by name.
    functions: Interner<Arc<str>, FunctionId>,
    /// The number of events of lines that repeat the work of streams.
    derived: u64,
}

impl Collector {
    /// Begins with the process `pid` (0 if it is not known), and the start of the profile if the planes say it.
    pub fn new(mut profile: Profile, pid: u32, planes: &[Plane]) -> Collector {
        let inventory = &mut profile.inventory;
        let process = inventory.process(pid);
        let task = planes.iter().find(|plane| plane.name == "Task Environment");
        let start = task.and_then(|task| own_fact(task, "profile_start_time"));
        let start = start.and_then(|fact| fact.unsigned());
        inventory.manifest.start_unix_ns = start
            .and_then(|ns| i64::try_from(ns).ok())
            .filter(|_| is_relative(planes));
        Collector {
            profile,
            process,
            functions: Interner::default(),
            derived: 0,
        }
    }

    /// Adds a plane: a GPU's streams become queues, and the host's lines threads. Other planes and lines are only
    /// counted.
    pub fn add(&mut self, plane: &Plane) {
        let device = plane.gpu.map(|gpu| self.device(gpu, plane));
        if device.is_none() && !plane.is_host {
            let lines = plane.lines.iter().map(|line| Line::parse(*line));
            let events: usize = lines.map(|line| line.events().count()).sum();
            let reason = "they are on planes that are no GPU's and no thread's";
            let inventory = &mut self.profile.inventory;
            inventory.lose("events of profiles", events as u64, reason);
            return;
        }
        for message in &plane.lines {
            let line = Line::parse(*message);
            if device.is_some() && !is_stream(&line) {
                self.derived += line.events().count() as u64;
                continue;
            }
            match device {
                Some(device) => self.stream(&line, plane, device),
                None => self.thread(&line, plane),
            }
        }
    }

    /// Returns the profile of all planes, and why facts are missing in it.
    pub fn complete(mut self) -> (Profile, FileReasons) {
        if self.derived > 0 {
            self.profile.inventory.note(format!(
                "Events of lines that the profiler derives from the streams, such as XLA Ops, were not imported, as they are the same work again: {}.",
                self.derived
            ));
        }
        let reasons = FileReasons::default();
        let reasons = FileReasons {
            work: Reasons {
                without_call: "the file does not have the calls that submitted them",
                ..reasons.work
            },
            ..reasons
        };
        (self.profile, reasons)
    }

    /// Adds the device of a plane with its facts, and returns the device's id.
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
        let inventory = &mut self.profile.inventory;
        inventory.device(self.process, Some(gpu), |device| {
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
            device.limits = Some(DeviceProperties {
                compute_capability: capability
                    .filter(|_| is_nvidia)
                    .map(|(major, minor)| format!("{major}.{minor}")),
                multiprocessors: number("core_count").and_then(|n| u32::try_from(n).ok()),
                core_clock_khz: number("clock_rate").and_then(|n| u32::try_from(n).ok()),
                memory_bytes_per_s: number("memory_bandwidth"),
                ..DeviceProperties::default()
            });
        })
    }

    /// Adds a line of a GPU as a queue with its work.
    fn stream(&mut self, line: &Line, plane: &Plane, device: DeviceId) {
        let inventory = &mut self.profile.inventory;
        let queue = inventory.add_queue(device, Some(line.name.to_string()));
        for message in line.events() {
            match line.event(message, plane) {
                Ok(event) => self.gpu_work(&event, queue),
                Err(odd) => self.lose(odd, LossKind::GpuIntervals),
            }
        }
    }

    /// Adds a line of the host as a thread with its events.
    fn thread(&mut self, line: &Line, plane: &Plane) {
        // The lower halves of 64-bit thread ids are unique in practice.
        let thread = ThreadId(line.id as u32);
        let inventory = &mut self.profile.inventory;
        inventory.thread(self.process, thread, &line.name);
        for message in line.events() {
            match line.event(message, plane) {
                Ok(event) => self.host_event(&event, thread),
                Err(odd) => self.lose(odd, LossKind::HostCalls),
            }
        }
    }

    /// Counts an event that is not imported as a loss of its kind.
    fn lose(&mut self, odd: Odd, kind: LossKind) {
        let reason = match odd {
            Odd::Impossible => "their times are impossible",
            Odd::Aggregate => "they say how often something happened, not when",
        };
        self.profile.inventory.lose(kind, 1, reason);
    }

    /// Adds an event of a host thread: a call if its name is a function's or it has a correlation, a range otherwise.
    fn host_event(&mut self, event: &Event, thread: ThreadId) {
        let span = Span {
            start_ns: event.start_ns,
            duration_ns: event.duration_ns,
        };
        let correlation = correlation(event);
        let is_function = functions::host_call_kind(event.name).is_some();
        if !is_function && correlation.is_none() {
            return self.range(event, thread, span);
        }
        (self.profile.inventory).calls(self.process, event.name);
        let call = ApiCall {
            function: self.function(event.name, is_function),
            thread: Some(thread),
            correlation,
            span,
            result: 0,
            queue: CallQueue::Unknown,
            host_functions: None,
            graph: None,
        };
        self.profile.recorded.calls.push((self.process, call));
    }

    /// Returns the id of a call's function. A name that is no function's is taken for a launch.
    fn function(&mut self, name: &str, is_function: bool) -> FunctionId {
        let known = self.functions.len();
        let id = self.functions.id(name.into());
        if self.functions.len() > known {
            // Calls of ROCm may have the name of the kernel that they launch.
            let class = match is_function {
                true => functions::class_of(functions::bare_name(name)).unwrap_or_default(),
                false => FunctionClass::LaunchKernel,
            };
            self.profile.recorded.functions.push(Function {
                class,
                name: name.into(),
            });
        }
        id
    }

    /// Adds a range of a thread, with its facts as payload.
    fn range(&mut self, event: &Event, thread: ThreadId, span: Span) {
        // The profiler uses names that begin with an underscore for links of its own.
        let facts = event
            .facts
            .iter()
            .filter(|(name, _)| !name.starts_with('_'));
        let facts: Vec<String> = facts.map(|(name, fact)| format!("{name}={fact}")).collect();
        let labels = &mut self.profile.inventory.labels;
        let range = HostRange {
            process: self.process,
            thread: Some(thread),
            of_process: false,
            text: labels.text(event.name),
            domain: None,
            category: None,
            payload: (!facts.is_empty()).then(|| labels.text(&facts.join(", "))),
            start_ns: span.start_ns,
            end_ns: Some(span.end_ns()),
            // The file itself names the operation that each piece of work belongs to.
            labels_work: false,
            has_row: true,
        };
        self.profile.recorded.ranges.push(range);
    }

    /// Adds a transfer, if the event has details of one or only the name of one, a graph launch that was timed as a
    /// whole, or else a kernel.
    fn gpu_work(&mut self, event: &Event, queue: QueueId) {
        let span = Span {
            start_ns: event.start_ns,
            duration_ns: event.duration_ns,
        };
        let copied = ["memcpy_details", "memset_details"];
        let copied = copied.iter().find_map(|name| event.text(name));
        let kernel = event.text("kernel_details");
        let is_transfer =
            copied.is_some() || kernel.is_none() && transfers::is_transfer(event.name);
        let is_whole_graph = !is_transfer
            && kernel.is_none()
            && (event.name.starts_with(WHOLE_GRAPH) || event.fact("cuda_graph_exec_id").is_some());
        let kind = match is_transfer {
            _ if is_whole_graph => DeviceWorkKind::Graph,
            true => DeviceWorkKind::Transfer {
                kind: match event.text("memset_details") {
                    Some(_) => TransferKind::Fill,
                    None => transfers::kind(event.name),
                },
                bytes: copied.and_then(details::bytes),
                host_memory: None,
            },
            false => {
                let details = kernel.unwrap_or_default();
                DeviceWorkKind::Kernel {
                    kernel: self.kernel(event, details),
                    groups: sizes(detail(details, "grid")),
                }
            }
        };
        let work = DeviceWork {
            queue,
            span: Some(span),
            of_graph: is_whole_graph
                || (event.unsigned("cuda_graph_id")).is_some_and(|graph| graph != 0),
            graph: None,
            graph_node: None,
            label: self.label(event),
            kind,
        };
        let work = (self.process, correlation(event), work);
        self.profile.recorded.work.push(work);
    }

    /// Returns the kernel of an event, whose launch is in its `kernel_details`.
    fn kernel(&mut self, event: &Event, details: &str) -> KernelId {
        let number = |key| detail(details, key).and_then(|text| text.parse::<u32>().ok());
        let registers = number("regs");
        // If the number of registers is impossible, the memory beside it is wrong, too: some versions of the profiler
        // for ROCm write uninitialised memory.
        let plausible = registers.is_none_or(|count| count <= MAX_REGISTERS_PER_THREAD);
        if !plausible {
            let reason = "the profiler wrote numbers of registers that no GPU has";
            let inventory = &mut self.profile.inventory;
            inventory.lose("registers and memory of kernels", 1, reason);
        }
        let known = |value: Option<u32>| value.filter(|_| plausible);
        let name = self.profile.text(event.name);
        self.profile.inventory.kernel(KernelFacts {
            local: sizes(detail(details, "block")),
            registers: known(registers),
            local_bytes: known(number("private_mem")),
            static_shared_bytes: known(number("static_shared").or(number("group_mem"))),
            dynamic_shared_bytes: known(number("dynamic_shared")),
            ..KernelFacts::new(self.process, name)
        })
    }

    /// Returns the label of a piece of work, which nests the module, the scope and the operation of the program.
    fn label(&mut self, event: &Event) -> Option<LabelId> {
        let labels = &mut self.profile.inventory.labels;
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
}

/// Returns the number that joins a call with its work; `None` if the event has none.
fn correlation(event: &Event) -> Option<Correlation> {
    let id = event.unsigned("correlation_id").filter(|id| *id != 0);
    id.map(Correlation)
}

/// Returns true if a line is a stream of a device. Other lines are derived from streams.
fn is_stream(line: &Line) -> bool {
    line.name.starts_with("Stream #") || line.name.starts_with("stream ")
}

/// Returns true if times count from the start of the profile, as in newer files, and false if they count from 1970.
fn is_relative(planes: &[Plane]) -> bool {
    let lines = planes.iter().flat_map(|plane| &plane.lines);
    let mut starts = lines.map(|line| Line::parse(*line).start_ns);
    // The bound lies in the year 2001.
    starts.all(|start_ns| start_ns < 1_000_000_000_000_000_000)
}
