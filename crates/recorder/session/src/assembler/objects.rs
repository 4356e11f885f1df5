//! Devices, queues and other objects of processes, which later events refer to.

use super::device::{Device, Queue};
use super::process::Allocation;
use super::{Assembler, Source, kernels};
use gapscope_spool::event::{Binding, ObjectKind, SourceFormat};
use gapscope_trace::manifest;
use gapscope_trace::tables::{MemoryEvent, MemoryRow, Table, Tables};

impl Assembler {
    /// The trace's id of a process's device. One that was never announced (its record is lost) is made.
    pub(super) fn device(&mut self, process: u32, device: u32) -> u32 {
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
    pub(super) fn queue(&mut self, process: u32, queue: u32) -> u32 {
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
            spans: Default::default(),
            last_begin: None,
        });
        id
    }

    pub(super) fn source(&mut self, hash: [u8; 16], format: SourceFormat, bytes: &[u8]) {
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

    pub(super) fn name(&mut self, process: u32, object: ObjectKind, id: u32, name: &str) {
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
            ObjectKind::Thread | ObjectKind::LabelDomain | ObjectKind::LabelCategory => {}
            ObjectKind::Recording => state.recordings.entry(id).or_default().name = name,
        }
    }

    pub(super) fn memory(
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

    pub(super) fn bindings(&mut self, process: u32, content: u32, entries: &[Binding]) {
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
}

/// VkQueueFlags as words.
pub(super) fn capabilities(flags: u32) -> Vec<String> {
    ["graphics", "compute", "transfer"]
        .into_iter()
        .enumerate()
        .filter(|(bit, _)| flags & (1 << bit) != 0)
        .map(|(_, word)| word.to_owned())
        .collect()
}
