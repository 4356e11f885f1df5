//! Converts rocprofv3's records of programs on AMD's GPUs, which readers of its formats decode, to rows of a
//! profile; [`crate::rocprofv3`] has the table.

use crate::profile::{
    ApiCall, CallQueue, Correlation, DeviceWork, DeviceWorkKind, KernelShape, Profile, Range, Span,
    TextId,
};
use crate::transfers;
use gapscope_trace::LossKind;
use gapscope_trace::ids::{AllocationId, DeviceId, ProcessId, ThreadId};
use gapscope_trace::manifest::Queue;
use gapscope_trace::tables::{MemoryEvent, MemoryRow, TransferKind};
use rustc_hash::FxHashMap;

/// The handle by which rocprofv3 names a GPU or a CPU.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub(crate) struct Agent(pub u64);

/// A kernel that the program loaded.
#[derive(Debug, Clone, Default)]
pub(crate) struct Symbol {
    /// The demangled name, with parameters where it is C++.
    pub name: String,
    pub mangled: String,
    pub registers: Option<u32>,
    pub shared_bytes: Option<u32>,
}

/// An execution of a kernel.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Dispatch {
    pub agent: Option<Agent>,
    pub stream: Option<u64>,
    pub kernel: u64,
    pub correlation: Option<Correlation>,
    pub times: Option<(i64, i64)>,
    pub workgroup: [Option<u32>; 3],
    /// The numbers of work-items (threads) of the grid in x, y and z.
    pub grid: [Option<u32>; 3],
    pub private_bytes: Option<u32>,
    pub group_bytes: Option<u32>,
}

/// A copy.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Copy<'a> {
    pub source: Option<Agent>,
    pub destination: Option<Agent>,
    pub stream: Option<u64>,
    pub correlation: Option<Correlation>,
    pub times: Option<(i64, i64)>,
    /// The operation, such as `MEMORY_COPY_HOST_TO_DEVICE`.
    pub operation: &'a str,
    pub bytes: Option<u64>,
}

/// A call or a range of a thread.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Region<'a> {
    pub thread: Option<u32>,
    pub correlation: Option<Correlation>,
    pub times: Option<(i64, i64)>,
    /// The category, such as `HIP_RUNTIME_API`.
    pub category: &'a str,
    /// The name of the function, or the kind of a range.
    pub operation: &'a str,
    /// The text of the program's range; `None` for calls.
    pub message: Option<TextId>,
}

/// An allocation or a free.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Memory {
    pub agent: Option<Agent>,
    pub at_ns: i64,
    pub event: MemoryEvent,
    pub address: u64,
    pub bytes: Option<u64>,
}

/// The records of one process and the profile that receives their rows.
pub(crate) struct Recorded<'a> {
    pub profile: &'a mut Profile,
    pub process: ProcessId,
    /// The GPUs, with their numbers in the trace.
    gpus: FxHashMap<Agent, u32>,
    pub symbols: FxHashMap<u64, Symbol>,
    streams: FxHashMap<u64, u32>,
    stream_names: FxHashMap<u64, String>,
    texts: FxHashMap<u64, (TextId, Option<TextId>)>,
    allocations: FxHashMap<u64, (AllocationId, DeviceId, u64)>,
    next_allocation: u32,
    refused: u64,
}

impl<'a> Recorded<'a> {
    pub fn new(profile: &'a mut Profile, pid: u32) -> Recorded<'a> {
        let process = profile.process(pid);
        Recorded {
            profile,
            process,
            gpus: FxHashMap::default(),
            symbols: FxHashMap::default(),
            streams: FxHashMap::default(),
            stream_names: FxHashMap::default(),
            texts: FxHashMap::default(),
            allocations: FxHashMap::default(),
            next_allocation: 0,
            refused: 0,
        }
    }

    /// Adds a GPU, which becomes a device of the trace once work names it.
    pub fn add_gpu(&mut self, agent: Agent) {
        let number = self.gpus.len() as u32;
        self.gpus.entry(agent).or_insert(number);
    }

    /// Returns the devices of the GPUs that work has named, as the GPU's handle and the device's id.
    pub fn devices(&self) -> Vec<(Agent, DeviceId)> {
        let of_process = self
            .profile
            .devices()
            .filter(|device| device.1 == self.process);
        let by_number: FxHashMap<u32, DeviceId> =
            of_process.map(|device| (device.2, device.0)).collect();
        let gpus = self.gpus.iter();
        gpus.filter_map(|(agent, number)| Some((*agent, *by_number.get(number)?)))
            .collect()
    }

    /// Names a stream.
    pub fn name_stream(&mut self, stream: u64, name: String) {
        self.stream_names.insert(stream, name);
    }

    fn device(&mut self, agent: Option<Agent>) -> DeviceId {
        let fresh = self.gpus.len() as u32;
        let number = agent.map(|agent| *self.gpus.entry(agent).or_insert(fresh));
        self.profile.device(self.process, number)
    }

    /// Returns the number of a stream: its handle if the handle is small, as in rocpd.
    fn stream(&mut self, stream: u64) -> u32 {
        let fresh = self.streams.len() as u32;
        *self
            .streams
            .entry(stream)
            .or_insert(match u32::try_from(stream) {
                Ok(number) if number < 1 << 16 => number,
                _ => (1 << 16) + fresh,
            })
    }

    /// Adds a dispatch, and its kernel if that is new.
    pub fn add_dispatch(&mut self, dispatch: Dispatch) {
        let device = self.device(dispatch.agent);
        let stream = dispatch.stream.map(|stream| self.stream(stream));
        let symbol = self.symbols.get(&dispatch.kernel);
        let (name, mangled) = match self.texts.get(&dispatch.kernel) {
            Some(texts) => *texts,
            None => {
                let known = symbol.map(|symbol| (symbol.name.as_str(), symbol.mangled.as_str()));
                let (name, mangled) = known.unwrap_or_default();
                let best = [name, mangled].into_iter().find(|text| !text.is_empty());
                let texts = (
                    self.profile.text(
                        best.unwrap_or("unknown kernel")
                            .trim_end_matches(" [clone .kd]")
                            .trim_end_matches(".kd"),
                    ),
                    Some(mangled.trim_end_matches(".kd"))
                        .filter(|text| !text.is_empty())
                        .map(|text| self.profile.text(text)),
                );
                self.texts.insert(dispatch.kernel, texts);
                texts
            }
        };
        let static_bytes = symbol.and_then(|symbol| symbol.shared_bytes);
        let kernel = self.profile.kernel(KernelShape {
            process: self.process,
            name,
            mangled: mangled.filter(|mangled| *mangled != name),
            block: dispatch.workgroup,
            registers: symbol.and_then(|symbol| symbol.registers),
            local_bytes: dispatch.private_bytes,
            static_shared_bytes: static_bytes.or(dispatch.group_bytes),
            dynamic_shared_bytes: static_bytes
                .zip(dispatch.group_bytes)
                .map(|(fixed, all)| all.saturating_sub(fixed)),
        });
        let groups = std::array::from_fn(|at| {
            let threads = dispatch.workgroup[at].filter(|threads| *threads > 0)?;
            Some(dispatch.grid[at]?.div_ceil(threads))
        });
        self.add_work(
            device,
            stream,
            dispatch.correlation,
            dispatch.times,
            DeviceWorkKind::Kernel { kernel, groups },
        );
    }

    pub fn add_copy(&mut self, copy: Copy) {
        let is_gpu = |agent: &Agent| self.gpus.contains_key(agent);
        let (source, destination) = (copy.source.filter(is_gpu), copy.destination.filter(is_gpu));
        let kind = match transfers::kind(copy.operation) {
            known @ (TransferKind::HostToDevice
            | TransferKind::DeviceToHost
            | TransferKind::HostToHost) => known,
            _ if source.is_some() && destination.is_some() && source != destination => {
                TransferKind::PeerToPeer
            }
            _ => TransferKind::Copy,
        };
        let agent = match kind {
            TransferKind::DeviceToHost => source.or(destination),
            _ => destination.or(source),
        };
        let device = self.device(agent.or(copy.destination));
        let stream = copy.stream.map(|stream| self.stream(stream));
        let work = DeviceWorkKind::Transfer {
            kind,
            bytes: copy.bytes,
            host_memory: None,
        };
        self.add_work(device, stream, copy.correlation, copy.times, work);
    }

    fn add_work(
        &mut self,
        device: DeviceId,
        stream: Option<u32>,
        correlation: Option<Correlation>,
        times: Option<(i64, i64)>,
        kind: DeviceWorkKind,
    ) {
        let queue = self.profile.queue(device, Some(0), stream);
        let work = DeviceWork {
            queue,
            span: times.and_then(|(start_ns, end_ns)| Span::checked(start_ns, end_ns)),
            of_graph: false,
            label: None,
            kind,
        };
        self.profile.add_work(self.process, correlation, work);
    }

    /// Adds a call, or a range of the program or of RCCL, by its category.
    pub fn add_region(&mut self, region: Region) {
        let Some(span) = region
            .times
            .and_then(|(start, end)| Span::checked(start, end))
        else {
            self.refused += 1;
            return;
        };
        let thread = region.thread.map(ThreadId);
        let is_marker = region.category.starts_with("MARKER");
        if is_marker || region.category.starts_with("RCCL") {
            let text = match region.message.filter(|_| is_marker) {
                Some(message) => message,
                None => self.profile.text(region.operation),
            };
            let domain = (!is_marker).then(|| self.profile.text("RCCL"));
            self.profile.add_range(Range {
                process: self.process,
                thread,
                of_process: region.operation.contains("ProcessRange"),
                text,
                domain,
                category: None,
                payload: None,
                start_ns: span.start_ns,
                end_ns: Some(span.end_ns()),
                labels_work: true,
            });
            return;
        }
        let function = self.profile.function(region.operation);
        let call = ApiCall {
            thread,
            correlation: region.correlation,
            span,
            function,
            result: gapscope_model::UNKNOWN_RESULT,
            queue: CallQueue::Unknown,
            host_functions: None,
        };
        self.profile.add_call(self.process, call);
    }

    pub fn add_memory(&mut self, memory: Memory) {
        let gpu = memory.agent.filter(|agent| self.gpus.contains_key(agent));
        match memory.event {
            MemoryEvent::Allocate => {
                let (Some(agent), Some(bytes)) = (gpu, memory.bytes) else {
                    return;
                };
                let device = self.device(Some(agent));
                let allocation = AllocationId(self.next_allocation);
                self.next_allocation += 1;
                self.allocations
                    .insert(memory.address, (allocation, device, bytes));
                self.push_memory(&memory, allocation, device, bytes);
            }
            _ => {
                // The freeing of host memory matches no allocation of a device.
                if let Some((allocation, device, bytes)) = self.allocations.remove(&memory.address)
                {
                    self.push_memory(&memory, allocation, device, bytes);
                }
            }
        }
    }

    fn push_memory(
        &mut self,
        memory: &Memory,
        allocation: AllocationId,
        device: DeviceId,
        bytes: u64,
    ) {
        self.profile.add_memory(MemoryRow {
            process: self.process,
            device,
            at_ns: memory.at_ns,
            event: memory.event,
            allocation,
            bytes,
            heap: 0,
        });
    }

    /// Completes the process after its last record.
    pub fn finish(self) {
        let reason = "the file has no times of them, or impossible ones";
        self.profile
            .ledger
            .add(LossKind::HostCalls, self.refused, reason);
        let numbers: FxHashMap<u32, u64> = self
            .streams
            .iter()
            .map(|(stream, number)| (*number, *stream))
            .collect();
        let queues: Vec<_> = self
            .profile
            .queues()
            .filter(|queue| queue.1 == self.process)
            .collect();
        for (queue, _, _, number) in queues {
            let name = numbers
                .get(&number)
                .and_then(|stream| self.stream_names.get(stream));
            let facts = Queue {
                name: name.filter(|name| !name.is_empty()).cloned(),
                ..Queue::default()
            };
            self.profile.describe_queue(queue, facts);
        }
    }
}

/// Formats the name of a GPU: `AMD Instinct MI300X (gfx942)`.
pub(crate) fn device_name(product: Option<String>, target: Option<String>) -> String {
    match (product, target) {
        (Some(product), Some(target)) if product != target => format!("{product} ({target})"),
        (Some(name), _) | (None, Some(name)) => name,
        (None, None) => String::new(),
    }
}
