//! Reads rocprofv3's document and passes each record to [`crate::rocm`] as soon as it is decoded.

use super::records::{AgentRecord, KernelSymbol, Metadata, Record, Strings};
use crate::profile::{About, Correlation, DeviceFacts, Profile, TextId};
use crate::rocm::{Agent, Copy, Dispatch, Memory, Recorded, Region, Symbol, device_name};
use gapscope_trace::manifest::{DeviceProperties, Host};
use gapscope_trace::tables::MemoryEvent;
use rustc_hash::FxHashMap;
use serde::de::{DeserializeSeed, Deserializer, Error, IgnoredAny, MapAccess, SeqAccess, Visitor};
use std::fmt;

/// The list of the document's processes.
pub(super) struct Documents<'a> {
    pub profile: &'a mut Profile,
    pub about: &'a mut About,
    pub machines: &'a mut Vec<String>,
    pub pid: Option<u32>,
}

impl<'de> DeserializeSeed<'de> for &mut Documents<'_> {
    type Value = ();
    fn deserialize<D: Deserializer<'de>>(self, from: D) -> Result<(), D::Error> {
        from.deserialize_map(self)
    }
}

impl<'de> Visitor<'de> for &mut Documents<'_> {
    type Value = ();
    fn expecting(&self, f: &mut fmt::Formatter) -> fmt::Result {
        f.write_str("an object with the member rocprofiler-sdk-tool")
    }
    fn visit_map<M: MapAccess<'de>>(self, mut map: M) -> Result<(), M::Error> {
        while let Some(name) = map.next_key::<String>()? {
            match name.as_str() {
                "rocprofiler-sdk-tool" => map.next_value_seed(Processes(self))?,
                _ => drop(map.next_value::<IgnoredAny>()?),
            }
        }
        Ok(())
    }
}

/// The visitor of the document's list of processes.
struct Processes<'a, 'b>(&'a mut Documents<'b>);

impl<'de> DeserializeSeed<'de> for Processes<'_, '_> {
    type Value = ();
    fn deserialize<D: Deserializer<'de>>(self, from: D) -> Result<(), D::Error> {
        from.deserialize_seq(self)
    }
}

impl<'de> Visitor<'de> for Processes<'_, '_> {
    type Value = ();
    fn expecting(&self, f: &mut fmt::Formatter) -> fmt::Result {
        f.write_str("an array of processes")
    }
    fn visit_seq<S: SeqAccess<'de>>(self, mut seq: S) -> Result<(), S::Error> {
        while seq.next_element_seed(Process::new(self.0))?.is_some() {}
        Ok(())
    }
}

/// One process of the document.
struct Process<'a, 'b> {
    documents: &'a mut Documents<'b>,
    metadata: Metadata,
    agents: Vec<AgentRecord>,
    symbols: Vec<KernelSymbol>,
    strings: Strings,
}

impl<'a, 'b> Process<'a, 'b> {
    fn new(documents: &'a mut Documents<'b>) -> Process<'a, 'b> {
        Process {
            documents,
            metadata: Metadata::default(),
            agents: Vec::new(),
            symbols: Vec::new(),
            strings: Strings::default(),
        }
    }
}

impl<'de> DeserializeSeed<'de> for Process<'_, '_> {
    type Value = ();
    fn deserialize<D: Deserializer<'de>>(self, from: D) -> Result<(), D::Error> {
        from.deserialize_map(self)
    }
}

impl<'de> Visitor<'de> for Process<'_, '_> {
    type Value = ();
    fn expecting(&self, f: &mut fmt::Formatter) -> fmt::Result {
        f.write_str("a process")
    }
    fn visit_map<M: MapAccess<'de>>(mut self, mut map: M) -> Result<(), M::Error> {
        while let Some(name) = map.next_key::<String>()? {
            match name.as_str() {
                "metadata" => self.metadata = map.next_value()?,
                "agents" => self.agents = map.next_value()?,
                "kernel_symbols" => self.symbols = map.next_value()?,
                "strings" => self.strings = map.next_value()?,
                "buffer_records" => {
                    let wanted = self.documents.pid;
                    if wanted.is_some_and(|wanted| wanted != self.metadata.pid) {
                        map.next_value::<IgnoredAny>()?;
                        continue;
                    }
                    self.describe();
                    let counts = map.next_value_seed(Kinds::new(&mut self))?;
                    for (kind, count) in counts {
                        let reason =
                            "a trace has no place for them, or gapscope does not import them yet";
                        let ledger = &mut self.documents.profile.ledger;
                        ledger.add(format!("records of {kind}").into(), count, reason);
                    }
                }
                _ => drop(map.next_value::<IgnoredAny>()?),
            }
        }
        Ok(())
    }
}

impl Process<'_, '_> {
    /// Adds the facts of the process to the facts of the recording.
    fn describe(&mut self) {
        let node = &self.metadata.node;
        self.documents
            .machines
            .push(format!("{} {}", node.machine_id, node.hostname));
        let about = &mut *self.documents.about;
        if about.command.is_empty() {
            about.command.clone_from(&self.metadata.command);
        }
        about.host = Host {
            system: format!("{} {}", node.system_name, node.release)
                .trim()
                .to_owned(),
            processor: node.hardware_name.clone(),
            ..Host::default()
        };
    }
}

/// The records of a process, by kind, while they are read.
struct Kinds<'a> {
    recorded: Recorded<'a>,
    names: &'a Strings,
    messages: FxHashMap<u64, TextId>,
    devices: FxHashMap<Agent, DeviceFacts>,
    /// The kinds of records that are not imported, with their numbers of records.
    others: Vec<(String, u64)>,
}

impl<'a> Kinds<'a> {
    fn new<'b>(process: &'a mut Process<'_, 'b>) -> Kinds<'a>
    where
        'b: 'a,
    {
        let profile = &mut *process.documents.profile;
        let mut messages = FxHashMap::default();
        for message in &process.strings.marker_api {
            messages.insert(message.key, profile.text(&message.value));
        }
        let mut recorded = Recorded::new(profile, process.metadata.pid);
        let program = process.metadata.command.first().cloned();
        let id = recorded.process;
        recorded
            .profile
            .name_process(id, program.unwrap_or_default());
        let mut devices = FxHashMap::default();
        for record in process.agents.iter().filter(|agent| agent.kind == 2) {
            let agent = Agent(record.id.handle);
            recorded.add_gpu(agent);
            let text = |text: &String| Some(text.clone()).filter(|text| !text.is_empty());
            devices.insert(
                agent,
                DeviceFacts {
                    name: device_name(text(&record.product_name), text(&record.name)),
                    uuid: record
                        .node_id
                        .map(|node| format!("{node:x}"))
                        .unwrap_or_default(),
                    memory_bytes: None,
                    limits: Some(DeviceProperties {
                        multiprocessors: record.cu_count.filter(|count| *count > 0),
                        core_clock_khz: record
                            .max_engine_clk_fcompute
                            .filter(|mhz| *mhz > 0)
                            .and_then(|mhz| mhz.checked_mul(1000)),
                        ..DeviceProperties::default()
                    }),
                },
            );
        }
        for symbol in &process.symbols {
            recorded.symbols.insert(
                symbol.kernel_id,
                Symbol {
                    name: symbol.formatted_kernel_name.clone(),
                    mangled: symbol.kernel_name.clone(),
                    registers: symbol.arch_vgpr_count,
                    shared_bytes: symbol.group_segment_size,
                },
            );
        }
        Kinds {
            recorded,
            names: &process.strings,
            messages,
            devices,
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
        let agent =
            |handle: Option<super::records::Handle>| handle.map(|handle| Agent(handle.handle));
        let stream = |handle: Option<super::records::Handle>| handle.map(|handle| handle.handle);
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

impl<'de> DeserializeSeed<'de> for Kinds<'_> {
    /// The kinds of records that are not imported, with their numbers of records.
    type Value = Vec<(String, u64)>;
    fn deserialize<D: Deserializer<'de>>(self, from: D) -> Result<Self::Value, D::Error> {
        from.deserialize_map(self)
    }
}

impl<'de> Visitor<'de> for Kinds<'_> {
    type Value = Vec<(String, u64)>;
    fn expecting(&self, f: &mut fmt::Formatter) -> fmt::Result {
        f.write_str("records by their kinds")
    }
    fn visit_map<M: MapAccess<'de>>(mut self, mut map: M) -> Result<Self::Value, M::Error> {
        let mut failed = None;
        loop {
            let kind = match map.next_key::<String>() {
                Ok(Some(kind)) => kind,
                Ok(None) => break,
                Err(error) => {
                    failed = Some(error);
                    break;
                }
            };
            if let Err(error) = map.next_value_seed(Records {
                kinds: &mut self,
                kind,
            }) {
                failed = Some(error);
                break;
            }
        }
        // The records before a fault are imported, too.
        for (agent, device) in self.recorded.devices() {
            if let Some(facts) = self.devices.get(&agent) {
                self.recorded.profile.describe_device(device, facts.clone());
            }
        }
        self.recorded.finish();
        match failed {
            Some(error) => Err(M::Error::custom(error)),
            None => Ok(self.others),
        }
    }
}

/// The records of one kind.
struct Records<'a, 'b> {
    kinds: &'a mut Kinds<'b>,
    kind: String,
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

impl<'de> DeserializeSeed<'de> for Records<'_, '_> {
    type Value = ();
    fn deserialize<D: Deserializer<'de>>(self, from: D) -> Result<(), D::Error> {
        from.deserialize_any(self)
    }
}

impl<'de> Visitor<'de> for Records<'_, '_> {
    type Value = ();
    fn expecting(&self, f: &mut fmt::Formatter) -> fmt::Result {
        f.write_str("an array of records")
    }
    fn visit_seq<S: SeqAccess<'de>>(self, mut seq: S) -> Result<(), S::Error> {
        let mut others = 0;
        if KINDS.contains(&self.kind.as_str()) {
            while let Some(record) = seq.next_element::<Record>()? {
                others += u64::from(!self.kinds.add(&self.kind, &record));
            }
        } else {
            while seq.next_element::<IgnoredAny>()?.is_some() {
                others += 1;
            }
        }
        if others > 0 {
            self.kinds.others.push((self.kind, others));
        }
        Ok(())
    }
    /// Accepts `null` for kinds that were not recorded.
    fn visit_unit<E>(self) -> Result<(), E> {
        Ok(())
    }
    fn visit_map<M: MapAccess<'de>>(self, mut map: M) -> Result<(), M::Error> {
        while map.next_entry::<IgnoredAny, IgnoredAny>()?.is_some() {}
        Ok(())
    }
}
