//! Finds which launches of a capture of CUDA depend on which: a capture goes in, [`Dependencies`] come out.
//!
//! A capture has the memory that a launch may reach, and the pieces of 64 KiB that it changed. So reads are only bounded, and
//! writes are whole pieces. Content that is not that of the first use was written between two launches, by the host or by a copy.

use std::collections::BTreeSet;
use std::sync::Arc;

use gapscope_capture::cuda::{CudaCapture, CudaStep, Launch, MemoryPlace};
use gapscope_capture::model::{ContentCause, MemoryId};

use crate::bytes::ByteSet;
use crate::findings::Dependencies;
use crate::graph::{Access, Node, NodeKind};
use crate::scope::Scope;

/// The most accesses of all nodes; later steps are left out.
const MAX_ACCESSES: usize = 1 << 20;

/// The reasons why bytes are only bounded.
const MAY_READ: &str =
    "a capture of CUDA has the memory that a launch may reach, not the bytes that it read";
const PIECES: &str =
    "a capture of CUDA has the pieces of 64 KiB that a launch changed, not the bytes that it wrote";
const BETWEEN: &str =
    "a capture of CUDA has the pieces of 64 KiB that were changed between launches";
/// Why hazards are not known.
const NO_BARRIERS: &str =
    "a capture of CUDA has the streams of launches, not the events and waits that order them";

impl Dependencies {
    /// Finds the dependencies between the launches of a capture, and the writes between launches. Returns them, and
    /// whether they are of all steps of the capture.
    pub fn from_cuda(capture: &CudaCapture) -> (Dependencies, bool) {
        let mut nodes: Vec<Node> = Vec::new();
        let mut accesses = 0;
        let mut launches = 0;
        let mut is_between = false;
        for step in &capture.steps {
            if accesses > MAX_ACCESSES {
                return (Dependencies::without_barriers(nodes, NO_BARRIERS), false);
            }
            match step {
                CudaStep::Launch(launch) => {
                    nodes.push(launch_node(capture, launch, launches));
                    accesses += launch.reached.len() + 1;
                    launches += 1;
                    is_between = false;
                }
                CudaStep::Outcome(outcome) => {
                    let written = outcome.offset..outcome.offset.saturating_add(outcome.bytes);
                    let access = access(capture, outcome.memory, Scope::StorageWrite, PIECES);
                    let set = Arc::new(ByteSet::from_range(written));
                    accesses += 1;
                    if let Some(node) = nodes.last_mut() {
                        node.accesses.push(Access { set, ..access });
                    }
                }
                // Before the first launch there is only what memory held.
                CudaStep::Content(content)
                    if content.cause == ContentCause::HostWrite && launches > 0 =>
                {
                    if !is_between {
                        nodes.push(write_node(launches));
                        is_between = true;
                    }
                    let bytes = capture.total_bytes(&content.chunks);
                    let written = content.offset..content.offset.saturating_add(bytes);
                    let access = access(capture, content.memory, Scope::CopyWrite, BETWEEN);
                    let set = Arc::new(ByteSet::from_range(written));
                    accesses += 1;
                    if let Some(node) = nodes.last_mut() {
                        node.accesses.push(Access { set, ..access });
                    }
                }
                CudaStep::Content(_) => {}
            }
        }
        (Dependencies::without_barriers(nodes, NO_BARRIERS), true)
    }
}

/// Returns the node of a launch, with all memory that it may read.
fn launch_node(capture: &CudaCapture, launch: &Launch, number: usize) -> Node {
    let reached: BTreeSet<MemoryId> = launch.reached.iter().copied().collect();
    let reads = reached.into_iter().map(|id| {
        let bytes = capture.memories.get(&id).map_or(0, |memory| memory.bytes);
        Access {
            set: Arc::new(ByteSet::from_range(0..bytes)),
            ..access(capture, id, Scope::StorageRead, MAY_READ)
        }
    });
    Node {
        kind: Some(NodeKind::Dispatch),
        name: launch.kernel.clone(),
        submission: number,
        batch: number,
        queue: launch.stream,
        accesses: reads.collect(),
        duration_ns: launch.device_ns,
        ..Node::default()
    }
}

/// Returns the node of what the host or copies wrote before a launch.
fn write_node(number: usize) -> Node {
    Node {
        kind: Some(NodeKind::Update),
        name: "written by the host or a copy".to_owned(),
        submission: number,
        batch: number,
        ..Node::default()
    }
}

/// Returns an access to no byte of a memory.
fn access(capture: &CudaCapture, id: MemoryId, scope: Scope, bound: &str) -> Access {
    let buffer = match capture.memories.get(&id).map(|memory| &memory.place) {
        Some(MemoryPlace::Global { name, .. }) => name.clone(),
        _ => format!("memory {id}"),
    };
    Access {
        memory: id.0.into(),
        offset: 0,
        set: Arc::default(),
        scope,
        bound: Some(bound.to_owned()),
        atomic: false,
        buffer: buffer.into(),
        map: None,
        binding: None,
    }
}
