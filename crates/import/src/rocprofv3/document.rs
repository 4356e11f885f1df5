//! Reads rocprofv3's document and passes each record to [`crate::rocm`] as soon as it is decoded. The levels of the
//! document are [`Documents`], [`Processes`], [`Process`], [`Kinds`] (of records) and [`Records`], each a [`Part`]
//! that `serde` drives through [`Read`].

use super::loose::{Object, Objects};
use super::records::{AgentRecord, Handle, KernelSymbol, Metadata, Record, Strings};
use crate::inventory::NO_PLACE;
use crate::profile::{Correlation, Profile};
use crate::rocm::{self, Agent, Copy, Dispatch, Memory, Recorded, Region, Symbol, device_name};
use gapscope_trace::build::TextId;
use gapscope_trace::manifest::{Device, DeviceProperties};
use gapscope_trace::tables::MemoryEvent;
use rustc_hash::FxHashMap;
use serde::de::{DeserializeSeed, Deserializer, IgnoredAny, MapAccess, SeqAccess, Visitor};
use std::fmt;

/// An object or an array of the document, whose parts are read one after the other. Parts that an implementor does
/// not read are skipped.
pub(super) trait Part {
    /// Reads the value of a member of the object.
    fn member<'de, M: MapAccess<'de>>(&mut self, _: &str, map: &mut M) -> Result<(), M::Error> {
        map.next_value::<IgnoredAny>().map(drop)
    }
    /// Reads the next element of the array. Returns false at its end.
    fn element<'de, S: SeqAccess<'de>>(&mut self, seq: &mut S) -> Result<bool, S::Error> {
        Ok(seq.next_element::<IgnoredAny>()?.is_some())
    }
}

/// Reads a value into a part, which gets its members or elements in the order of the document.
pub(super) struct Read<'a, T>(pub &'a mut T);

impl<'de, T: Part> DeserializeSeed<'de> for Read<'_, T> {
    type Value = ();
    fn deserialize<D: Deserializer<'de>>(self, from: D) -> Result<(), D::Error> {
        from.deserialize_any(self)
    }
}

impl<'de, T: Part> Visitor<'de> for Read<'_, T> {
    type Value = ();
    fn expecting(&self, f: &mut fmt::Formatter) -> fmt::Result {
        f.write_str("an object or an array of rocprofv3")
    }
    fn visit_map<M: MapAccess<'de>>(self, mut map: M) -> Result<(), M::Error> {
        while let Some(name) = map.next_key::<String>()? {
            self.0.member(&name, &mut map)?;
        }
        Ok(())
    }
    fn visit_seq<S: SeqAccess<'de>>(self, mut seq: S) -> Result<(), S::Error> {
        while self.0.element(&mut seq)? {}
        Ok(())
    }
    /// Accepts `null` for kinds that were not recorded.
    fn visit_unit<E>(self) -> Result<(), E> {
        Ok(())
    }
    fn visit_bool<E>(self, _: bool) -> Result<(), E> {
        Ok(())
    }
    fn visit_u64<E>(self, _: u64) -> Result<(), E> {
        Ok(())
    }
    fn visit_i64<E>(self, _: i64) -> Result<(), E> {
        Ok(())
    }
    fn visit_f64<E>(self, _: f64) -> Result<(), E> {
        Ok(())
    }
    fn visit_str<E>(self, _: &str) -> Result<(), E> {
        Ok(())
    }
}

/// The document, which is an object with the list of processes.
pub(super) struct Documents<'a> {
    pub profile: &'a mut Profile,
    /// The machines of the processes so far.
    pub machines: &'a mut Vec<String>,
    /// The only process that is imported, if the options name one.
    pub pid: Option<u32>,
    /// The processes that have been read.
    pub processes: usize,
    /// Facts of processes that come behind their records, by the process's place. Where they are known in advance, they
    /// are taken, and only the records of these processes are read.
    pub late: FxHashMap<usize, ProcessFacts>,
    pub is_again: bool,
}

/// The names and kinds to which a process's records refer.
#[derive(Debug, Default)]
pub(super) struct ProcessFacts {
    metadata: Metadata,
    agents: Vec<AgentRecord>,
    symbols: Vec<KernelSymbol>,
    strings: Strings,
}

impl Part for Documents<'_> {
    fn member<'de, M: MapAccess<'de>>(&mut self, name: &str, map: &mut M) -> Result<(), M::Error> {
        match name {
            "rocprofiler-sdk-tool" => map.next_value_seed(Read(&mut Processes(self))),
            _ => map.next_value::<IgnoredAny>().map(drop),
        }
    }
}

/// The document's list of processes.
struct Processes<'a, 'b>(&'a mut Documents<'b>);

impl Part for Processes<'_, '_> {
    fn element<'de, S: SeqAccess<'de>>(&mut self, seq: &mut S) -> Result<bool, S::Error> {
        let place = self.0.processes;
        let facts = self.0.late.remove(&place);
        let mut process = Process {
            is_wanted: !self.0.is_again || facts.is_some(),
            facts: facts.unwrap_or_default(),
            known: 0,
            is_late: false,
            documents: &mut *self.0,
        };
        let has_next = seq.next_element_seed(Read(&mut process))?.is_some();
        let (is_late, facts) = (process.is_late, process.facts);
        self.0.processes += 1;
        if is_late {
            self.0.late.insert(place, facts);
        }
        Ok(has_next)
    }
}

/// One process of the document.
struct Process<'a, 'b> {
    documents: &'a mut Documents<'b>,
    facts: ProcessFacts,
    /// How many of the members that the records refer to have been read.
    known: usize,
    /// True where the records came before these members, and were left for a second reading.
    is_late: bool,
    is_wanted: bool,
}

/// The number of members that records refer to.
const FACTS: usize = 4;

impl Part for Process<'_, '_> {
    fn member<'de, M: MapAccess<'de>>(&mut self, name: &str, map: &mut M) -> Result<(), M::Error> {
        let is_again = self.documents.is_again;
        let pid = self.documents.pid;
        let is_wanted = self.is_wanted && pid.is_none_or(|pid| pid == self.facts.metadata.pid);
        let facts = &mut self.facts;
        match name {
            "metadata" | "agents" | "kernel_symbols" | "strings" if is_again => {
                map.next_value::<IgnoredAny>()?;
            }
            "metadata" => facts.metadata = map.next_value::<Object<_>>()?.0,
            "agents" => facts.agents = map.next_value::<Objects<_>>()?.0,
            "kernel_symbols" => facts.symbols = map.next_value::<Objects<_>>()?.0,
            "strings" => facts.strings = map.next_value::<Object<_>>()?.0,
            "buffer_records" if self.known < FACTS && !is_again => {
                self.is_late = true;
                map.next_value::<IgnoredAny>()?;
            }
            "buffer_records" if is_wanted => {
                self.describe();
                let mut kinds = Kinds::new(self);
                let read = map.next_value_seed(Read(&mut kinds));
                // The records before a fault are imported, too.
                let Kinds {
                    recorded, others, ..
                } = kinds;
                recorded.finish();
                read?;
                for (kind, count) in others {
                    let inventory = &mut self.documents.profile.inventory;
                    inventory.lose(format!("records of {kind}"), count, NO_PLACE);
                }
            }
            _ => drop(map.next_value::<IgnoredAny>()?),
        }
        let is_fact = matches!(name, "metadata" | "agents" | "kernel_symbols" | "strings");
        self.known += usize::from(is_fact);
        Ok(())
    }
}

impl Process<'_, '_> {
    /// Adds the facts of the process to the facts of the recording.
    fn describe(&mut self) {
        let node = &self.facts.metadata.node;
        let machine = format!("{} {}", node.machine_id, node.hostname);
        self.documents.machines.push(machine);
        let manifest = &mut self.documents.profile.inventory.manifest;
        if manifest.command.is_empty() {
            manifest.command.clone_from(&self.facts.metadata.command);
        }
        manifest.host = rocm::host([&node.system_name, &node.release, &node.hardware_name]);
    }
}

/// The records of a process, by kind, while they are read.
struct Kinds<'a> {
    recorded: Recorded<'a>,
    names: &'a Strings,
    /// The texts of the program's ranges, by correlation.
    messages: FxHashMap<u64, TextId>,
    /// The kinds so far, each with the number of its records that are not imported.
    others: Vec<(String, u64)>,
}

impl<'a> Kinds<'a> {
    /// Adds the texts, GPUs and kernels of a process, which come before its records.
    fn new(process: &'a mut Process<'_, '_>) -> Kinds<'a> {
        let profile = &mut *process.documents.profile;
        let process = &process.facts;
        let mut messages = FxHashMap::default();
        for message in &process.strings.marker_api {
            messages.insert(message.key, profile.text(&message.value));
        }
        let program = process.metadata.command.first();
        let program = program.map_or("", String::as_str);
        let mut recorded = Recorded::new(profile, process.metadata.pid, program);
        for record in process.agents.iter().filter(|agent| agent.kind == 2) {
            let text = |text: &String| Some(text.clone()).filter(|text| !text.is_empty());
            let facts = Device {
                name: device_name(text(&record.product_name), text(&record.name)),
                uuid: record
                    .node_id
                    .map(|node| format!("{node:x}"))
                    .unwrap_or_default(),
                limits: Some(DeviceProperties {
                    multiprocessors: record.cu_count.filter(|count| *count > 0),
                    core_clock_khz: record
                        .max_engine_clk_fcompute
                        .filter(|mhz| *mhz > 0)
                        .and_then(|mhz| mhz.checked_mul(1000)),
                    ..DeviceProperties::default()
                }),
                ..Device::default()
            };
            recorded.add_gpu(Agent(record.id.handle), facts);
        }
        for record in &process.symbols {
            let symbol = Symbol {
                name: &record.formatted_kernel_name,
                mangled: &record.kernel_name,
                registers: record.arch_vgpr_count,
                shared_bytes: record.group_segment_size,
            };
            recorded.add_symbol(record.kernel_id, symbol);
        }
        Kinds {
            recorded,
            names: &process.strings,
            messages,
            others: Vec::new(),
        }
    }

    /// Adds a record of a kind. Returns false if the record cannot be imported.
    fn add(&mut self, kind: &str, record: &Record) -> bool {
        let names = self.names.buffer_records.get(record.kind);
        let category = names.map_or("", |names| names.kind.as_str());
        let operation = names.and_then(|names| names.operations.get(record.operation));
        let operation = operation.map_or("", String::as_str);
        let internal = record.correlation_id.internal;
        let correlation = Some(Correlation(internal)).filter(|id| id.0 != 0);
        let agent = |handle: Option<Handle>| handle.map(|handle| Agent(handle.handle));
        let stream = |handle: Option<Handle>| handle.map(|handle| handle.handle);
        match kind {
            "kernel_dispatch" => {
                let Some(info) = record.dispatch_info else {
                    return false;
                };
                self.recorded.add_dispatch(Dispatch {
                    agent: agent(info.agent_id),
                    stream: stream(record.stream_id.or(info.queue_id)),
                    kernel: info.kernel_id,
                    correlation,
                    times: record.times(),
                    workgroup: info.workgroup_size.all(),
                    grid: info.grid_size.all(),
                    private_bytes: info.private_segment_size,
                    group_bytes: info.group_segment_size,
                });
            }
            "memory_copy" => self.recorded.add_copy(Copy {
                source: agent(record.src_agent_id),
                destination: agent(record.dst_agent_id),
                stream: stream(record.stream_id.or(record.queue_id)),
                correlation,
                times: record.times(),
                operation,
                bytes: record.bytes,
            }),
            "memory_allocation" => {
                let event = match operation {
                    operation if operation.contains("VMEM") => return false,
                    operation if operation.ends_with("FREE") => MemoryEvent::Free,
                    operation if operation.ends_with("ALLOCATE") => MemoryEvent::Allocate,
                    _ => return false,
                };
                let (Some(at_ns), Some(address)) =
                    (record.start_timestamp.or(record.timestamp), record.address)
                else {
                    return false;
                };
                self.recorded.add_memory(Memory {
                    agent: agent(record.agent_id),
                    at_ns,
                    event,
                    address,
                    bytes: record.allocation_size,
                });
            }
            _ => self.recorded.add_region(Region {
                thread: record.thread_id,
                correlation,
                times: record.times(),
                category: match (kind, category) {
                    ("marker_api", "") => "MARKER",
                    ("rccl_api", "") => "RCCL",
                    (_, category) => category,
                },
                operation: if operation.is_empty() {
                    "unknown function"
                } else {
                    operation
                },
                message: self.messages.get(&internal).copied(),
            }),
        }
        true
    }
}

impl Part for Kinds<'_> {
    fn member<'de, M: MapAccess<'de>>(&mut self, kind: &str, map: &mut M) -> Result<(), M::Error> {
        let mut records = Records {
            kinds: self,
            kind,
            others: 0,
        };
        map.next_value_seed(Read(&mut records))?;
        let others = records.others;
        self.others.push((kind.to_owned(), others));
        Ok(())
    }
}

/// The kinds that are imported.
const KINDS: [&str; 10] = [
    "kernel_dispatch",
    "memory_copy",
    "memory_allocation",
    "hip_api",
    "hsa_api",
    "marker_api",
    "rccl_api",
    "rocdecode_api",
    "rocjpeg_api",
    "hipfile_api",
];

/// The records of one kind.
struct Records<'a, 'b> {
    kinds: &'a mut Kinds<'b>,
    kind: &'a str,
    /// The number of records that are not imported.
    others: u64,
}

impl Part for Records<'_, '_> {
    fn element<'de, S: SeqAccess<'de>>(&mut self, seq: &mut S) -> Result<bool, S::Error> {
        let (is_last, is_imported) = match KINDS.contains(&self.kind) {
            true => match seq.next_element::<Object<Record>>()? {
                Some(Object(record)) => (false, self.kinds.add(self.kind, &record)),
                None => (true, true),
            },
            false => (seq.next_element::<IgnoredAny>()?.is_none(), false),
        };
        self.others += u64::from(!is_last && !is_imported);
        Ok(!is_last)
    }
}
