//! Command recordings: the commands of a command buffer, with ids of the trace. A recording is kept until it can no
//! longer be submitted, and expanded into rows for each instance (execution). A query is the index of a timestamp
//! that the hook asked the device for.

use super::bindings::BoundSets;
use gapscope_spool::event::{NO_QUERY, OpaqueWorkKind, TransferKind};
use gapscope_spool::ids as hook;
use gapscope_trace::build::TextId;
use gapscope_trace::ids::{BindingSetId, BufferId, KernelId};
use rustc_hash::FxHashMap;
use serde::{Deserialize, Serialize};

/// A command recording of one process.
#[derive(Debug, Serialize, Deserialize)]
pub struct Recording {
    /// The commands.
    pub steps: Vec<Step>,
    /// The name that the program gave the command buffer.
    pub name: Option<String>,
    /// The greatest query plus one.
    pub queries: u32,
    /// The query of the start.
    pub start_query: u32,
    /// The query of the end.
    pub end_query: u32,
    /// The number of instances that are not expanded yet, and of recordings that execute this one.
    pub users: u32,
    /// Whether the recording can no longer be submitted.
    pub ended: bool,
    /// The executed secondary recordings, with the number of executions.
    pub secondaries: FxHashMap<hook::CommandRecording, u32>,
    /// The number of labels that the recording ends and did not start.
    pub label_ends: u32,
    /// The texts of the labels that are open after the last command.
    pub open_labels: Vec<TextId>,
    /// The descriptor sets that are bound after the last command.
    pub bound: BoundSets,
}

impl Default for Recording {
    fn default() -> Self {
        Recording {
            steps: Vec::new(),
            name: None,
            queries: 0,
            start_query: NO_QUERY,
            end_query: NO_QUERY,
            users: 0,
            ended: false,
            secondaries: FxHashMap::default(),
            label_ends: 0,
            open_labels: Vec::new(),
            bound: BoundSets::default(),
        }
    }
}

/// The queries before and after a piece of work.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct QueryPair {
    /// The index of the timestamp before the work.
    pub start: u32,
    /// The index of the timestamp after it.
    pub end: u32,
}

impl QueryPair {
    /// Returns the pair of a query and the next one.
    pub fn from(start: u32) -> QueryPair {
        let end = match start {
            NO_QUERY => NO_QUERY,
            start => start + 1,
        };
        QueryPair { start, end }
    }
}

impl Recording {
    /// Returns the queries of the recording's start and end.
    pub fn ends(&self) -> QueryPair {
        QueryPair {
            start: self.start_query,
            end: self.end_query,
        }
    }
}

/// A command. Queries are indices into the timestamps of the recording, or [`NO_QUERY`].
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
pub enum Step {
    /// The command buffer starts.
    Begin { query: u32 },
    /// The command buffer ends.
    End { query: u32 },
    /// A kernel execution.
    Dispatch {
        query: u32,
        kernel: KernelId,
        bindings: Option<BindingSetId>,
        /// The number of workgroups; `None` if it comes from a buffer.
        groups: Option<[u32; 3]>,
    },
    /// A copy, a fill or another transfer.
    Transfer {
        query: u32,
        kind: TransferKind,
        bytes: Option<u64>,
        source: Option<BufferId>,
        destination: Option<BufferId>,
    },
    /// A barrier.
    Barrier {
        source_stages: u64,
        destination_stages: u64,
    },
    /// A label starts.
    LabelBegin { text: TextId },
    /// The innermost label ends.
    LabelEnd,
    /// A label without a duration.
    LabelInstant { text: TextId },
    /// A secondary recording is executed.
    Execute {
        query: u32,
        recording: hook::CommandRecording,
    },
    /// Work that is timed as a whole starts.
    OpaqueBegin { query: u32, kind: OpaqueWorkKind },
    /// The work that is timed as a whole ends.
    OpaqueEnd { query: u32 },
}

impl Step {
    /// Returns the command's greatest query plus one.
    pub fn queries(&self) -> u32 {
        let (query, count) = match *self {
            Step::Begin { query } | Step::End { query } => (query, 1),
            Step::OpaqueBegin { query, .. } | Step::OpaqueEnd { query } => (query, 1),
            Step::Dispatch { query, .. } | Step::Transfer { query, .. } => (query, 2),
            Step::Execute { query, .. } => (query, 2),
            _ => (NO_QUERY, 0),
        };
        if query == NO_QUERY {
            0
        } else {
            query.saturating_add(count)
        }
    }
}
