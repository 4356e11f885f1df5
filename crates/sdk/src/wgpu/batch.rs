//! The passes and dispatches of one command buffer, with the queries that time them. A query is a slot into which the
//! GPU writes a timestamp; a chunk is a set of queries with memory for their results.

use super::chunk::{Chunk, QUERIES};
use crate::kernel_profile::CommandBufferId;
use std::sync::Arc;

/// Two consecutive queries of a batch, by the index of the first over all its chunks.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct QueryPair(u32);

impl QueryPair {
    pub fn start(self) -> u32 {
        self.0
    }

    pub fn end(self) -> u32 {
        self.0 + 1
    }
}

/// Two queries in the form that wgpu takes.
#[derive(Debug, Clone, Copy)]
pub(super) struct SetQueries<'a> {
    pub set: &'a ::wgpu::QuerySet,
    pub start: u32,
    pub end: u32,
}

/// A pass that the program began.
#[derive(Debug)]
pub(super) struct EncodedPass {
    /// The queries at the boundaries of the pass, if these are timed.
    pub pair: Option<QueryPair>,
    pub label: Arc<str>,
    /// The index of the first dispatch in the command buffer.
    pub first: u32,
    /// The program writes timestamps of its own at the boundaries of the pass.
    pub is_taken: bool,
    /// The program had wgpu's own pass in its hands, and may have encoded dispatches that are not listed.
    pub is_borrowed: bool,
}

/// A scope that the program opened.
#[derive(Debug)]
pub(super) struct EncodedScope {
    /// The queries at the start and the end, or why there are none.
    pub pair: Result<QueryPair, &'static str>,
    /// The labels of the scopes around it and its own, outermost first.
    pub path: Arc<[Arc<str>]>,
    pub is_ended: bool,
}

/// A dispatch that the program encoded.
#[derive(Debug)]
pub(super) struct EncodedDispatch {
    /// The queries around the dispatch, if dispatches are timed.
    pub pair: Option<QueryPair>,
    pub kernel: Arc<str>,
    /// The program's name for the operation, or else the label of the innermost debug group or of the pass.
    pub label: Arc<str>,
    /// The workgroups in x, y and z; `None` where they come from a buffer.
    pub groups: Option<[u32; 3]>,
}

/// One command buffer.
#[derive(Debug)]
pub(super) struct Batch {
    pub id: CommandBufferId,
    pub label: Arc<str>,
    /// The chunks of queries, in the order in which they were taken.
    pub chunks: Vec<Chunk>,
    /// The queries around the whole command buffer.
    pub whole: Option<QueryPair>,
    /// The passes, if passes or dispatches are timed.
    pub passes: Vec<EncodedPass>,
    pub dispatches: Vec<EncodedDispatch>,
    pub scopes: Vec<EncodedScope>,
    /// The program had wgpu's own encoder in its hands, and may have encoded passes that are not listed.
    pub is_borrowed: bool,
    /// Nothing is timed or listed, because the program has switched the profiler off.
    pub is_off: bool,
    /// The number of dispatches so far, timed or not.
    pub dispatch_count: u32,
    /// A time before which the command buffer cannot have run: when the program finished it, or began its scopes.
    pub finished_ns: u64,
}

impl Batch {
    pub fn new(id: CommandBufferId, label: &str) -> Batch {
        Batch {
            id,
            label: Arc::from(label),
            chunks: Vec::new(),
            whole: None,
            passes: Vec::new(),
            dispatches: Vec::new(),
            scopes: Vec::new(),
            is_borrowed: false,
            is_off: false,
            dispatch_count: 0,
            finished_ns: 0,
        }
    }

    /// Returns true if the program may have encoded dispatches that are not listed.
    pub fn hides_work(&self) -> bool {
        self.is_borrowed || self.passes.iter().any(|pass| pass.is_borrowed)
    }

    /// Takes two queries of the last chunk or, if it is full, of the one that `take_chunk` gives; `None` if it gives
    /// none.
    pub fn pair(&mut self, take_chunk: impl FnOnce() -> Option<Chunk>) -> Option<QueryPair> {
        let first = match self.chunks.last_mut().and_then(Chunk::pair) {
            Some(first) => first,
            None => {
                let mut chunk = take_chunk()?;
                let first = chunk.pair()?;
                self.chunks.push(chunk);
                first
            }
        };
        Some(QueryPair((self.chunks.len() as u32 - 1) * QUERIES + first))
    }

    /// Returns the query set and the indices of a pair.
    pub fn queries(&self, pair: QueryPair) -> Option<SetQueries<'_>> {
        let chunk = self.chunks.get((pair.start() / QUERIES) as usize)?;
        Some(SetQueries {
            set: &chunk.set,
            start: pair.start() % QUERIES,
            end: pair.end() % QUERIES,
        })
    }
}
