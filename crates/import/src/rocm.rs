//! Converts rocprofv3's records of programs on AMD's GPUs, which readers of its formats decode, to rows of a profile;
//! [`crate::rocprofv3`] has the table. For each process: [`Recorded::new`], its GPUs, kernels and streams, then its
//! records, [`Recorded::finish`]; after all processes, [`write()`]. Times are in nanoseconds.

use crate::inventory::KernelFacts;
use crate::profile::{
    ApiCall, CallQueue, Correlation, DeviceWork, DeviceWorkKind, FileReasons, HostRange, Profile,
    Span,
};
use crate::{Error, Options, Output, functions, transfers};
use gapscope_trace::LossKind;
use gapscope_trace::build::TextId;
use gapscope_trace::ids::{AllocationId, DeviceId, ProcessId, ThreadId};
use gapscope_trace::manifest::{Api, Device, Host};
use gapscope_trace::tables::{MemoryEvent, MemoryRow, TransferKind};
use rustc_hash::FxHashMap;

/// The handle by which rocprofv3 names a GPU or a CPU.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub(crate) struct Agent(pub u64);

/// A kernel that the program loaded.
#[derive(Debug, Clone, Copy, Default)]
pub(crate) struct Symbol<'a> {
    /// The demangled name, with parameters where it is C++.
    pub name: &'a str,
    pub mangled: &'a str,
    /// The vector registers of a thread, and the fixed bytes of a workgroup's shared memory.
    pub registers: Option<u32>,
    pub shared_bytes: Option<u32>,
}

/// An execution of a kernel.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Dispatch {
    pub agent: Option<Agent>,
    /// The handles of the stream and of the kernel in the file.
    pub stream: Option<u64>,
    pub kernel: u64,
    pub correlation: Option<Correlation>,
    /// The start and the end.
    pub times: Option<(i64, i64)>,
    pub workgroup: [Option<u32>; 3],
    /// The numbers of work-items (threads) of the grid in x, y and z.
    pub grid: [Option<u32>; 3],
    /// The bytes of local memory of a thread, and of shared memory of a workgroup.
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

/// Returns an empty profile of files of rocprofv3.
pub(crate) fn profile() -> Profile {
    Profile::new("rocprofv3", Api::Hip)
}

/// Writes the trace of a profile. `machines` are those of the files, and `file` is a word for each of the files.
/// Files of one machine share a clock.
///
/// # Errors
/// The files are of several machines or hold nothing, or the system refuses to write.
pub(crate) fn write(
    profile: Profile,
    mut machines: Vec<String>,
    file: &str,
    options: &Options,
    output: &mut Output,
) -> Result<(), Error> {
    machines.sort_unstable();
    machines.dedup();
    if machines.len() > 1 {
        return Err(Error::nothing(format!(
            "the {file}s are of several machines, whose clocks differ: import those of one machine at a time"
        )));
    }
    if !profile.has_rows() {
        let what = format!("the {file} has no kernels, copies, calls or markers");
        return Err(Error::nothing(match options.pid {
            Some(pid) => format!("{what} of process {pid}"),
            None => format!("{what}: record with `rocprofv3 --sys-trace`"),
        }));
    }
    let new = output.trace()?;
    profile.write(FileReasons::default(), options, new, output)
}

/// Returns whether a category is one of the program's markers.
pub(crate) fn is_of_marker(category: &str) -> bool {
    is_of(category, "MARKER")
}

/// Returns whether a category is one of an API: rocprof-sys writes `rocm_rccl_api` where rocprofv3 writes `RCCL_API`.
fn is_of(category: &str, api: &str) -> bool {
    let own = category.strip_prefix("rocm_").unwrap_or(category);
    (own.get(..api.len())).is_some_and(|start| start.eq_ignore_ascii_case(api))
}

/// Returns the facts of the machine on which a process ran, from the names of its system, release and processor.
pub(crate) fn host([system, release, processor]: [&str; 3]) -> Host {
    Host {
        system: format!("{system} {release}").trim().to_owned(),
        processor: processor.to_owned(),
        ..Host::default()
    }
}

/// The records of one process and the profile that receives their rows.
pub(crate) struct Recorded<'a> {
    pub profile: &'a mut Profile,
    pub process: ProcessId,
    /// The GPUs, with their numbers in the trace and their facts.
    gpus: FxHashMap<Agent, (u32, Device)>,
    /// The kernels that the program loaded, by their ids in the file.
    kernels: FxHashMap<u64, KernelFacts>,
    /// The numbers of streams in the trace, by handle.
    streams: FxHashMap<u64, u32>,
    /// The names of streams, by their numbers in the trace.
    stream_names: FxHashMap<u32, String>,
    /// The rows of allocations that were not freed, by address.
    allocations: FxHashMap<u64, MemoryRow>,
    /// The id of the next allocation.
    next_allocation: u32,
    /// The number of calls and ranges without possible times.
    refused: u64,
}

impl<'a> Recorded<'a> {
    pub fn new(profile: &'a mut Profile, pid: u32, program: &str) -> Recorded<'a> {
        let process = profile.inventory.process(pid);
        let inventory = &mut profile.inventory;
        inventory.name_process(process, program, Vec::new());
        Recorded {
            profile,
            process,
            gpus: FxHashMap::default(),
            kernels: FxHashMap::default(),
            streams: FxHashMap::default(),
            stream_names: FxHashMap::default(),
            allocations: FxHashMap::default(),
            next_allocation: 0,
            refused: 0,
        }
    }

    /// Adds a GPU with its name, uuid and limits. It becomes a device of the trace once work names it.
    pub fn add_gpu(&mut self, agent: Agent, facts: Device) {
        let number = self.gpus.len() as u32;
        self.gpus.entry(agent).or_insert((number, facts));
    }

    /// Adds a kernel with its id in the file.
    pub fn add_symbol(&mut self, id: u64, symbol: Symbol) {
        let mangled = functions::kernel_name(symbol.mangled);
        let best = [symbol.name, symbol.mangled];
        let best = best.into_iter().find(|text| !text.is_empty());
        let name = best.unwrap_or("unknown kernel");
        let name = self.profile.text(functions::kernel_name(name));
        let entry_point = match mangled.is_empty() {
            true => name,
            false => self.profile.text(mangled),
        };
        let kernel = KernelFacts {
            entry_point: Some(entry_point),
            registers: symbol.registers,
            static_shared_bytes: symbol.shared_bytes,
            ..KernelFacts::new(self.process, name)
        };
        self.kernels.insert(id, kernel);
    }

    /// Names a stream.
    pub fn name_stream(&mut self, stream: u64, name: String) {
        let number = self.stream(stream);
        self.stream_names.insert(number, name);
    }

    /// Returns the device of an agent; an agent that was not added gets the next number.
    fn device(&mut self, agent: Option<Agent>) -> DeviceId {
        let fresh = (self.gpus.len() as u32, Device::default());
        let gpu = agent.map(|agent| &*self.gpus.entry(agent).or_insert(fresh));
        let inventory = &mut self.profile.inventory;
        inventory.device(self.process, gpu.map(|(number, _)| *number), |device| {
            device.api = Api::Hip;
            if let Some((_, facts)) = gpu {
                device.name.clone_from(&facts.name);
                device.uuid.clone_from(&facts.uuid);
                device.limits.clone_from(&facts.limits);
            }
        })
    }

    /// Returns the number of a stream in the trace: its handle if that is below 65536, as in rocpd, or else a number
    /// from there on.
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

    /// Adds a dispatch, and its kernel if that is new. The numbers of workgroups are those of work-items divided by
    /// the size of a workgroup, rounded up.
    pub fn add_dispatch(&mut self, dispatch: Dispatch) {
        if !self.kernels.contains_key(&dispatch.kernel) {
            self.add_symbol(dispatch.kernel, Symbol::default());
        }
        let device = self.device(dispatch.agent);
        let stream = dispatch.stream.map(|stream| self.stream(stream));
        let known = self.kernels[&dispatch.kernel];
        let static_bytes = known.static_shared_bytes;
        let kernel = self.profile.inventory.kernel(KernelFacts {
            local: dispatch.workgroup,
            local_bytes: dispatch.private_bytes,
            static_shared_bytes: static_bytes.or(dispatch.group_bytes),
            dynamic_shared_bytes: static_bytes
                .zip(dispatch.group_bytes)
                .map(|(fixed, all)| all.saturating_sub(fixed)),
            ..known
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

    /// Adds a copy: to the GPU at its source if it goes to the host, otherwise to the GPU at its destination, and in
    /// either case to the other end if that alone is a GPU. A copy between two GPUs is peer to peer.
    pub fn add_copy(&mut self, copy: Copy) {
        let is_gpu = |agent: &Agent| self.gpus.contains_key(agent);
        let (source, destination) = (copy.source.filter(is_gpu), copy.destination.filter(is_gpu));
        let kind = match transfers::kind(copy.operation) {
            known @ (TransferKind::HostToDevice
            | TransferKind::DeviceToHost
            | TransferKind::HostToHost
            | TransferKind::Fill) => known,
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

    /// Adds a piece of work to the queue of a stream. Impossible times count as unknown.
    fn add_work(
        &mut self,
        device: DeviceId,
        stream: Option<u32>,
        correlation: Option<Correlation>,
        times: Option<(i64, i64)>,
        kind: DeviceWorkKind,
    ) {
        let queue = self.profile.inventory.stream(device, Some(0), stream);
        let work = DeviceWork {
            queue,
            span: times.and_then(|(start_ns, end_ns)| Span::checked(start_ns, end_ns)),
            of_graph: false,
            graph: None,
            graph_node: None,
            label: None,
            kind,
        };
        let work = (self.process, correlation, work);
        self.profile.recorded.work.push(work);
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
        let is_marker = is_of_marker(region.category);
        if is_marker || is_of(region.category, "RCCL") {
            let text = match region.message.filter(|_| is_marker) {
                Some(message) => message,
                None => self.profile.text(region.operation),
            };
            let domain = (!is_marker).then(|| self.profile.text("RCCL"));
            self.profile.recorded.ranges.push(HostRange {
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
                has_row: true,
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
            graph: None,
        };
        self.profile.recorded.calls.push((self.process, call));
    }

    /// Adds an allocation of a GPU's memory, or the free of one that was added; others are ignored.
    pub fn add_memory(&mut self, memory: Memory) {
        let Memory { at_ns, event, .. } = memory;
        let gpu = memory.agent.filter(|agent| self.gpus.contains_key(agent));
        let row = match (event, gpu, memory.bytes) {
            (MemoryEvent::Allocate, Some(gpu), Some(bytes)) => {
                let row = MemoryRow {
                    process: self.process,
                    device: self.device(Some(gpu)),
                    at_ns,
                    event,
                    allocation: AllocationId(self.next_allocation),
                    bytes,
                    heap: 0,
                };
                self.next_allocation += 1;
                self.allocations.insert(memory.address, row.clone());
                Some(row)
            }
            (MemoryEvent::Allocate, ..) => None,
            // The freeing of host memory matches no allocation of a device.
            _ => self.allocations.remove(&memory.address),
        };
        let row = row.map(|row| MemoryRow {
            at_ns,
            event,
            ..row
        });
        self.profile.memory.extend(row);
    }

    /// Completes the process after its last record: counts losses and names the streams that work named.
    pub fn finish(self) {
        let inventory = &mut self.profile.inventory;
        let reason = "the file has no times of them, or impossible ones";
        inventory.lose(LossKind::HostCalls, self.refused, reason);
        for (process, queue) in inventory.streams() {
            if process == self.process {
                let name = self.stream_names.get(&queue.index);
                queue.name = name.filter(|name| !name.is_empty()).cloned();
            }
        }
    }
}

/// Formats the name of a GPU from its product and its target: `AMD Instinct MI300X (gfx942)`.
pub(crate) fn device_name(product: Option<String>, target: Option<String>) -> String {
    match (product, target) {
        (Some(product), Some(target)) if product != target => format!("{product} ({target})"),
        (Some(name), _) | (None, Some(name)) => name,
        (None, None) => String::new(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn categories_of_rocprof_sys_are_those_of_rocprofv3() {
        for category in ["MARKER_CORE_RANGE_API", "MARKER", "rocm_marker_api"] {
            assert!(is_of_marker(category), "{category}");
            assert!(!is_of(category, "RCCL"), "{category}");
        }
        for category in ["RCCL_API", "rocm_rccl_api"] {
            assert!(is_of(category, "RCCL"), "{category}");
        }
        for category in ["HIP_RUNTIME_API", "rocm_hip_api", "rocm_", "", "é"] {
            assert!(!is_of_marker(category), "{category}");
        }
    }
}
