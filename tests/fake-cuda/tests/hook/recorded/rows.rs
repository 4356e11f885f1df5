//! The rows of what was recorded.

use gapscope_spool::event::{
    LabelEdge, LabelScope, LaunchShape, Payload, Span, TransferKind, WaitKind,
};
use gapscope_spool::ids;
use std::collections::BTreeMap;

/// The samples of instructions.
#[derive(Debug, Default)]
pub struct Instructions {
    /// The sampled devices, with their periods.
    pub sampling: Vec<(u32, u64)>,
    pub reasons: BTreeMap<u32, String>,
    /// The samples by cubin, function, offset and reason.
    pub samples: BTreeMap<(u64, String, u64, String), u32>,
    pub cubins: BTreeMap<u64, Vec<u8>>,
}

/// A kernel that ran.
#[derive(Debug, Clone)]
pub struct Kernel {
    pub name: String,
    pub shape: LaunchShape,
    pub span: Option<Span>,
    pub correlation: u32,
    pub of_graph: bool,
    /// CUPTI's number of the graph; 0 where there is none.
    pub graph: u32,
    pub node: ids::GraphNode,
}

/// A call of the program.
#[derive(Debug, Clone)]
pub struct Call {
    pub name: String,
    pub thread: u32,
    pub span: Span,
    pub correlation: u32,
    pub result: u32,
}

/// Calls that asked again and again.
#[derive(Debug, Clone)]
pub struct Polls {
    pub name: String,
    pub thread: u32,
    pub span: Span,
    pub count: u32,
    pub busy_ns: i64,
    pub result: u32,
}

/// A wait.
#[derive(Debug, Clone)]
pub struct Wait {
    pub kind: WaitKind,
    pub queue: u32,
    pub event: u32,
    pub occurrence: u64,
    pub span: Option<Span>,
    pub correlation: u32,
}

/// A record of an event on a queue.
#[derive(Debug, Clone)]
pub struct EventRecord {
    pub event: u32,
    pub occurrence: u64,
    pub queue: u32,
    pub correlation: u32,
}

/// The kind and the queue of a transfer.
pub type Route = (TransferKind, u32);

/// A transfer that ran.
#[derive(Debug, Clone)]
pub struct Transfer {
    pub kind: TransferKind,
    pub queue: u32,
    pub bytes: u64,
    pub span: Option<Span>,
    pub correlation: u32,
}

/// A function that the host ran for a queue.
#[derive(Debug, Clone)]
pub struct HostFunction {
    pub queue: u32,
    pub thread: u32,
    pub span: Option<Span>,
    pub correlation: u32,
}

/// One end of a label.
#[derive(Debug, Clone, PartialEq)]
pub struct Label {
    pub thread: u32,
    pub scope: LabelScope,
    pub edge: LabelEdge,
    pub text: String,
    pub category: u32,
    pub payload: Option<Payload>,
    /// The value, which may have several parts.
    pub parts: String,
    pub at_ns: i64,
}

/// A launch that was profiled.
#[derive(Debug)]
pub struct Profile {
    pub correlation: u32,
    pub kernel: String,
    pub span: Span,
    pub passes: u32,
    pub values: Vec<(u16, f64)>,
}
