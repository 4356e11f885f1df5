//! Tracks devices, queues, memory pools and other objects of processes, to which later events refer, and gives them
//! ids of the trace.

use super::Assembler;
use super::device::{Device, Queue};
use super::process::Allocation;
use super::thread_labels::label_domain;
use gapscope_model::LossKind;
use gapscope_spool::event::{
    Binding, DeviceProperties, Object, PoolEdge, PoolState, SourceFormat, StreamKind, heap,
};
use gapscope_spool::ids as hook;
use gapscope_timeline_builder::CategoryId;
use gapscope_trace::ids::{DeviceId, ProcessId, QueueId, ThreadId};
use gapscope_trace::manifest;
use gapscope_trace::tables::{MemoryEvent, MemoryRow, Table, Tables};
use std::sync::Arc;

impl Assembler {
    /// Returns the trace's id of a process's device. A device whose record was lost is added.
    pub(super) fn device(&mut self, process: ProcessId, device: hook::Device) -> DeviceId {
        let next = self.devices.next_id();
        let id = *self.processes[process]
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
                ..Device::default()
            });
        }
        id
    }

    /// Returns the trace's id of a process's queue. A queue whose record was lost is added.
    pub(super) fn queue(&mut self, process: ProcessId, queue: hook::Queue) -> QueueId {
        if let Some(id) = self.processes[process].queues.get(&queue) {
            return *id;
        }
        let id = self.queues.next_id();
        // `CommonEvent::Queue` corrects the device at once if there is such an event.
        let known = self
            .devices
            .iter()
            .rfind(|d| d.facts.process == process)
            .map(|d| d.facts.id);
        let device = match known {
            Some(device) => device,
            None => self.device(process, hook::Device(u32::MAX)),
        };
        self.processes[process].queues.insert(queue, id);
        self.queues.push(Queue {
            facts: manifest::Queue {
                id,
                device,
                ..manifest::Queue::default()
            },
            ..Queue::default()
        });
        id
    }

    /// Adds the code of kernels: SPIR-V by the hash of the event, CUDA's code by the kernels in it.
    pub(super) fn source(
        &mut self,
        process: ProcessId,
        hash: [u8; 16],
        format: SourceFormat,
        bytes: &[u8],
    ) {
        match format {
            SourceFormat::SpirV => self.add_source(hash, "spv", bytes),
            SourceFormat::Ptx | SourceFormat::Cubin | SourceFormat::FatBinary => {
                self.loaded(process, format, bytes);
            }
        }
    }

    /// Keeps the name that the program gave an object; an empty text takes the name away.
    pub(super) fn name(&mut self, process: ProcessId, object: Object, name: &str) {
        let state = &mut self.processes[process];
        let name = Some(name).filter(|n| !n.is_empty()).map(str::to_owned);
        match object {
            Object::Kernel(id) | Object::KernelSource(id) => {
                let kernel = state
                    .kernels
                    .get(&id)
                    .and_then(|id| self.kernels.get_mut(*id));
                if let Some(kernel) = kernel {
                    match object {
                        Object::Kernel(_) => kernel.object_name = name,
                        _ => kernel.module_name = name,
                    }
                }
            }
            Object::Buffer(id) => {
                if let Some(id) = state.buffers.get(&id) {
                    self.buffers.name(*id, name);
                }
            }
            Object::Queue(id) => {
                let id = self.queue(process, id);
                self.queues[id].facts.name = name;
            }
            Object::Thread(hook::Thread(id)) => {
                let known = state.threads.get_mut(&ThreadId(id));
                if let (Some(thread), Some(name)) = (known, name) {
                    *thread = name;
                }
            }
            Object::LabelDomain(id) => {
                let name = Arc::from(name.unwrap_or_default());
                (state.timeline.labels).name_domain(label_domain(id), name);
            }
            Object::LabelCategory(id) => {
                let name = Arc::from(name.unwrap_or_default());
                (state.timeline.labels).name_category(CategoryId(id.0), name);
            }
            Object::CommandRecording(id) => state.recordings.entry(id).or_default().name = name,
        }
    }

    /// Appends a row for an allocation that was made or freed.
    pub(super) fn memory(
        &mut self,
        process: ProcessId,
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

    /// Adds the facts of a stream.
    pub(super) fn stream(
        &mut self,
        process: ProcessId,
        queue: hook::Queue,
        kind: StreamKind,
        priority: i32,
    ) {
        let id = self.queue(process, queue);
        let facts = &mut self.queues[id].facts;
        facts.kind = (kind != StreamKind::Unknown).then(|| kind.to_string());
        facts.priority = Some(priority);
    }

    /// Adds the limits of a device, such as its clock and bandwidth; 0 means that the driver does not tell one.
    pub(super) fn device_limits(
        &mut self,
        process: ProcessId,
        device: hook::Device,
        limits: DeviceProperties,
    ) {
        let DeviceProperties {
            capability: (major, minor),
            multiprocessors,
            core_clock_khz,
            memory_bytes_per_s,
            l2_bytes,
            threads_per_multiprocessor,
            registers_per_multiprocessor,
            shared_bytes_per_multiprocessor,
            groups_per_multiprocessor,
            partition,
        } = limits;
        let id = self.device(process, device);
        let known = |value: u32| (value > 0).then_some(value);
        let bytes = |value: u64| (value > 0).then_some(value);
        self.devices[id].facts.limits = Some(manifest::DeviceProperties {
            compute_capability: (major > 0).then(|| format!("{major}.{minor}")),
            multiprocessors: known(multiprocessors),
            core_clock_khz: known(core_clock_khz),
            memory_bytes_per_s: bytes(memory_bytes_per_s),
            l2_bytes: bytes(l2_bytes),
            threads_per_multiprocessor: known(threads_per_multiprocessor),
            registers_per_multiprocessor: known(registers_per_multiprocessor),
            shared_bytes_per_multiprocessor: bytes(shared_bytes_per_multiprocessor),
            groups_per_multiprocessor: known(groups_per_multiprocessor),
            partition,
            measured: None,
        });
    }

    /// Records the size of a memory pool. The pool is one allocation, which is replaced when the size changes.
    pub(super) fn pool(&mut self, process: ProcessId, state: PoolState, tables: &mut Tables) {
        let PoolState {
            pool,
            device,
            edge,
            bytes,
            at_ns,
        } = state;
        let device = self.device(process, device);
        if at_ns <= 0 {
            // The pool's next event includes the content of this one.
            let reason = "the tracing library delivered no times";
            self.ledger.add(LossKind::MemoryEvents, 1, reason);
            return;
        }
        let pools = &mut self.processes[process].pools;
        let before = pools.get(&pool).copied();
        let bytes = if edge == PoolEdge::End { 0 } else { bytes };
        if before.map_or(0, |b| b.bytes) == bytes {
            return;
        }
        if let Some(before) = before {
            pools.remove(&pool);
            self.memory(process, before, MemoryEvent::Free, at_ns, tables);
        }
        if bytes > 0 {
            let allocation = Allocation {
                id: self.next_allocation(),
                device,
                heap: heap::DEVICE,
                bytes,
            };
            let pools = &mut self.processes[process].pools;
            pools.insert(pool, allocation);
            self.memory(process, allocation, MemoryEvent::Allocate, at_ns, tables);
        }
    }

    /// Returns a text that many rows share.
    pub(super) fn shared_text(&mut self, text: &'static str) -> Arc<str> {
        let known = self.shared_texts.entry(text.to_owned());
        known.or_insert_with(|| Arc::from(text)).clone()
    }

    /// Keeps the content of a descriptor set (a table of buffers); entries of unknown buffers are counted as lost.
    pub(super) fn bindings(
        &mut self,
        process: ProcessId,
        content: hook::BindingContent,
        entries: &[Binding],
    ) {
        let state = &mut self.processes[process];
        let ids = &state.buffers;
        let unknown = state.contents.add(
            content,
            entries,
            |buffer| ids.get(&buffer).copied(),
            &self.buffers,
        );
        self.ledger
            .add(LossKind::Bindings, unknown, "their buffer is not known");
    }
}

/// Returns the names of VkQueueFlags.
pub(super) fn capabilities(flags: u32) -> Vec<String> {
    ["graphics", "compute", "transfer"]
        .into_iter()
        .enumerate()
        .filter(|(bit, _)| flags & (1 << bit) != 0)
        .map(|(_, word)| word.to_owned())
        .collect()
}
