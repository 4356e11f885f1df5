//! The records of rocprofv3's document as types for deserialization; `document` reads them. Members have the names of
//! the document. Members that a version lacks are `None` or empty. Times are in nanoseconds.

use serde::{Deserialize, Deserializer};

/// An object `{"handle": 1}`, which names another object.
#[derive(Debug, Clone, Copy, Default, Deserialize)]
#[serde(default)]
pub(super) struct Handle {
    pub handle: u64,
}

/// The numbers that join a call with its work.
#[derive(Debug, Clone, Copy, Default, Deserialize)]
#[serde(default)]
pub(super) struct CorrelationIds {
    pub internal: u64,
}

/// A size in x, y and z.
#[derive(Debug, Clone, Copy, Default, Deserialize)]
#[serde(default)]
pub(super) struct Size {
    pub x: Option<u32>,
    pub y: Option<u32>,
    pub z: Option<u32>,
}

impl Size {
    pub fn all(self) -> [Option<u32>; 3] {
        [self.x, self.y, self.z]
    }
}

/// A record of any kind. Each kind has some of the members.
#[derive(Debug, Default, Deserialize)]
#[serde(default)]
pub(super) struct Record {
    /// The numbers of the kind and the operation, whose texts are in [`Strings::buffer_records`].
    pub kind: usize,
    pub operation: usize,
    pub correlation_id: CorrelationIds,
    pub start_timestamp: Option<i64>,
    pub end_timestamp: Option<i64>,
    /// The time of scratch memory and allocations, in versions that have no start for them.
    pub timestamp: Option<i64>,
    pub thread_id: Option<u32>,
    pub stream_id: Option<Handle>,
    pub queue_id: Option<Handle>,
    pub dispatch_info: Option<DispatchInfo>,
    pub src_agent_id: Option<Handle>,
    pub dst_agent_id: Option<Handle>,
    pub agent_id: Option<Handle>,
    pub bytes: Option<u64>,
    pub allocation_size: Option<u64>,
    #[serde(deserialize_with = "address")]
    pub address: Option<u64>,
}

impl Record {
    /// Returns the start and the end; `None` if one is missing.
    pub fn times(&self) -> Option<(i64, i64)> {
        self.start_timestamp.zip(self.end_timestamp)
    }
}

/// The kernel, place and launch shape of a dispatch.
#[derive(Debug, Clone, Copy, Default, Deserialize)]
#[serde(default)]
pub(super) struct DispatchInfo {
    pub agent_id: Option<Handle>,
    pub queue_id: Option<Handle>,
    pub kernel_id: u64,
    pub private_segment_size: Option<u32>,
    pub group_segment_size: Option<u32>,
    pub workgroup_size: Size,
    pub grid_size: Size,
}

/// The facts of a process.
#[derive(Debug, Default, Deserialize)]
#[serde(default)]
pub(super) struct Metadata {
    pub node: Node,
    pub pid: u32,
    pub command: Vec<String>,
}

/// The machine on which a process ran.
#[derive(Debug, Default, Deserialize)]
#[serde(default)]
pub(super) struct Node {
    pub machine_id: String,
    pub hostname: String,
    pub system_name: String,
    pub release: String,
    pub hardware_name: String,
}

/// A GPU or CPU with its properties.
#[derive(Debug, Default, Deserialize)]
#[serde(default)]
pub(super) struct AgentRecord {
    pub id: Handle,
    /// The type of the agent: 1 is a CPU, 2 is a GPU.
    #[serde(rename = "type")]
    pub kind: u32,
    pub name: String,
    pub product_name: String,
    pub node_id: Option<u64>,
    pub cu_count: Option<u32>,
    pub max_engine_clk_fcompute: Option<u32>,
}

/// A kernel that the process loaded.
#[derive(Debug, Default, Deserialize)]
#[serde(default)]
pub(super) struct KernelSymbol {
    pub kernel_id: u64,
    pub kernel_name: String,
    pub formatted_kernel_name: String,
    pub group_segment_size: Option<u32>,
    pub arch_vgpr_count: Option<u32>,
}

/// The texts to which records refer by number.
#[derive(Debug, Default, Deserialize)]
#[serde(default)]
pub(super) struct Strings {
    pub buffer_records: Vec<Names>,
    pub marker_api: Vec<Message>,
}

/// The names of a kind of records and of its operations, by number.
#[derive(Debug, Default, Deserialize)]
#[serde(default)]
pub(super) struct Names {
    pub kind: String,
    pub operations: Vec<String>,
}

/// The text of a range of the program, with its number.
#[derive(Debug, Default, Deserialize)]
#[serde(default)]
pub(super) struct Message {
    pub key: u64,
    pub value: String,
}

/// Deserializes an address or handle from a number, `{"handle": 1}`, or a text such as `0x7f…`; `None` for other
/// values.
fn address<'de, D: Deserializer<'de>>(from: D) -> Result<Option<u64>, D::Error> {
    #[derive(Deserialize)]
    #[serde(untagged)]
    enum Address {
        Number(u64),
        Handle { handle: u64 },
        Text(String),
        Other(serde::de::IgnoredAny),
    }
    Ok(match Address::deserialize(from)? {
        Address::Number(number) | Address::Handle { handle: number } => Some(number),
        Address::Text(text) => match text.strip_prefix("0x") {
            Some(digits) => u64::from_str_radix(digits, 16).ok(),
            None => text.parse().ok(),
        },
        Address::Other(_) => None,
    })
}
