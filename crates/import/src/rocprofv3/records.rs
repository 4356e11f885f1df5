//! The records of rocprofv3's document as types for deserialization; `document` reads them. Members have the names of
//! the document. Members that a version lacks, and those of another type, are `None` or empty. Times are in nanoseconds.

use super::loose;
use serde::{Deserialize, Deserializer};

/// An object `{"handle": 1}`, which names another object.
#[derive(Debug, Clone, Copy, Default, Deserialize)]
#[serde(default)]
pub(super) struct Handle {
    #[serde(deserialize_with = "loose::number_or_0")]
    pub handle: u64,
}

/// The numbers that join a call with its work.
#[derive(Debug, Clone, Copy, Default, Deserialize)]
#[serde(default)]
pub(super) struct CorrelationIds {
    #[serde(deserialize_with = "loose::number_or_0")]
    pub internal: u64,
}

/// A size in x, y and z.
#[derive(Debug, Clone, Copy, Default, Deserialize)]
#[serde(default)]
pub(super) struct Size {
    #[serde(deserialize_with = "loose::number")]
    pub x: Option<u32>,
    #[serde(deserialize_with = "loose::number")]
    pub y: Option<u32>,
    #[serde(deserialize_with = "loose::number")]
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
    #[serde(deserialize_with = "loose::number_or_0")]
    pub kind: usize,
    #[serde(deserialize_with = "loose::number_or_0")]
    pub operation: usize,
    #[serde(deserialize_with = "loose::object")]
    pub correlation_id: CorrelationIds,
    #[serde(deserialize_with = "loose::number")]
    pub start_timestamp: Option<i64>,
    #[serde(deserialize_with = "loose::number")]
    pub end_timestamp: Option<i64>,
    /// The time of scratch memory and allocations, in versions that have no start for them.
    #[serde(deserialize_with = "loose::number")]
    pub timestamp: Option<i64>,
    #[serde(deserialize_with = "loose::number")]
    pub thread_id: Option<u32>,
    #[serde(deserialize_with = "loose::optional")]
    pub stream_id: Option<Handle>,
    #[serde(deserialize_with = "loose::optional")]
    pub queue_id: Option<Handle>,
    #[serde(deserialize_with = "loose::optional")]
    pub dispatch_info: Option<DispatchInfo>,
    #[serde(deserialize_with = "loose::optional")]
    pub src_agent_id: Option<Handle>,
    #[serde(deserialize_with = "loose::optional")]
    pub dst_agent_id: Option<Handle>,
    #[serde(deserialize_with = "loose::optional")]
    pub agent_id: Option<Handle>,
    #[serde(deserialize_with = "loose::number")]
    pub bytes: Option<u64>,
    #[serde(deserialize_with = "loose::number")]
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
    #[serde(deserialize_with = "loose::optional")]
    pub agent_id: Option<Handle>,
    #[serde(deserialize_with = "loose::optional")]
    pub queue_id: Option<Handle>,
    #[serde(deserialize_with = "loose::number_or_0")]
    pub kernel_id: u64,
    #[serde(deserialize_with = "loose::number")]
    pub private_segment_size: Option<u32>,
    #[serde(deserialize_with = "loose::number")]
    pub group_segment_size: Option<u32>,
    #[serde(deserialize_with = "loose::object")]
    pub workgroup_size: Size,
    #[serde(deserialize_with = "loose::object")]
    pub grid_size: Size,
}

/// The facts of a process.
#[derive(Debug, Default, Deserialize)]
#[serde(default)]
pub(super) struct Metadata {
    #[serde(deserialize_with = "loose::object")]
    pub node: Node,
    #[serde(deserialize_with = "loose::number_or_0")]
    pub pid: u32,
    #[serde(deserialize_with = "loose::texts")]
    pub command: Vec<String>,
}

/// The machine on which a process ran.
#[derive(Debug, Default, Deserialize)]
#[serde(default)]
pub(super) struct Node {
    #[serde(deserialize_with = "loose::text")]
    pub machine_id: String,
    #[serde(deserialize_with = "loose::text")]
    pub hostname: String,
    #[serde(deserialize_with = "loose::text")]
    pub system_name: String,
    #[serde(deserialize_with = "loose::text")]
    pub release: String,
    #[serde(deserialize_with = "loose::text")]
    pub hardware_name: String,
}

/// A GPU or CPU with its properties.
#[derive(Debug, Default, Deserialize)]
#[serde(default)]
pub(super) struct AgentRecord {
    #[serde(deserialize_with = "loose::object")]
    pub id: Handle,
    /// The type of the agent: 1 is a CPU, 2 is a GPU.
    #[serde(rename = "type")]
    #[serde(deserialize_with = "loose::number_or_0")]
    pub kind: u32,
    #[serde(deserialize_with = "loose::text")]
    pub name: String,
    #[serde(deserialize_with = "loose::text")]
    pub product_name: String,
    #[serde(deserialize_with = "loose::number")]
    pub node_id: Option<u64>,
    #[serde(deserialize_with = "loose::number")]
    pub cu_count: Option<u32>,
    #[serde(deserialize_with = "loose::number")]
    pub max_engine_clk_fcompute: Option<u32>,
}

/// A kernel that the process loaded.
#[derive(Debug, Default, Deserialize)]
#[serde(default)]
pub(super) struct KernelSymbol {
    #[serde(deserialize_with = "loose::number_or_0")]
    pub kernel_id: u64,
    #[serde(deserialize_with = "loose::text")]
    pub kernel_name: String,
    #[serde(deserialize_with = "loose::text")]
    pub formatted_kernel_name: String,
    #[serde(deserialize_with = "loose::number")]
    pub group_segment_size: Option<u32>,
    #[serde(deserialize_with = "loose::number")]
    pub arch_vgpr_count: Option<u32>,
}

/// The texts to which records refer by number.
#[derive(Debug, Default, Deserialize)]
#[serde(default)]
pub(super) struct Strings {
    #[serde(deserialize_with = "loose::objects")]
    pub buffer_records: Vec<Names>,
    #[serde(deserialize_with = "loose::objects")]
    pub marker_api: Vec<Message>,
}

/// The names of a kind of records and of its operations, by number.
#[derive(Debug, Default, Deserialize)]
#[serde(default)]
pub(super) struct Names {
    #[serde(deserialize_with = "loose::text")]
    pub kind: String,
    #[serde(deserialize_with = "loose::texts")]
    pub operations: Vec<String>,
}

/// The text of a range of the program, with its number.
#[derive(Debug, Default, Deserialize)]
#[serde(default)]
pub(super) struct Message {
    #[serde(deserialize_with = "loose::number_or_0")]
    pub key: u64,
    #[serde(deserialize_with = "loose::text")]
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
