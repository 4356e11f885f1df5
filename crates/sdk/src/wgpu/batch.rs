//! The passes and dispatches of one command buffer, from its encoder to the profile.

use super::chunk::{Chunk, QUERIES};
use super::profiler::Inner;
use crate::kernel_profile::{CommandBufferId, host_now_ns};
use std::sync::atomic::{
    AtomicBool, AtomicU32, Ordering::AcqRel, Ordering::Acquire, Ordering::Release,
};
use std::sync::{Arc, Mutex, PoisonError};

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

/// A pass.
#[derive(Debug)]
pub(super) struct EncodedPass {
    /// The queries at the boundaries of the pass, if these are timed.
    pub pair: Option<QueryPair>,
    pub label: Arc<str>,
    /// The index of the first dispatch in the command buffer.
    pub first: u32,
    /// The program writes timestamps of its own at the boundaries of the pass.
    pub is_taken: bool,
}

/// A dispatch.
#[derive(Debug)]
pub(super) struct EncodedDispatch {
    /// The queries around the dispatch, if dispatches are timed.
    pub pair: Option<QueryPair>,
    pub kernel: Arc<str>,
    pub label: Arc<str>,
    pub groups: Option<[u32; 3]>,
}

/// One command buffer.
#[derive(Debug)]
pub(super) struct Batch {
    pub id: CommandBufferId,
    pub label: Arc<str>,
    pub chunks: Vec<Chunk>,
    /// The queries around the whole command buffer.
    pub whole: Option<QueryPair>,
    /// The passes, if passes or dispatches are timed.
    pub passes: Vec<EncodedPass>,
    pub dispatches: Vec<EncodedDispatch>,
    /// The number of dispatches so far, timed or not.
    pub dispatch_count: u32,
    /// The time at which the program finished the command buffer, before which it cannot have run.
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
            dispatch_count: 0,
            finished_ns: 0,
        }
    }

    /// Takes two queries; `None` if there are none left.
    pub fn pair(&mut self, inner: &Inner) -> Option<QueryPair> {
        let first = match self.chunks.last_mut().and_then(Chunk::pair) {
            Some(first) => first,
            None => {
                let mut chunk = inner.take_chunk()?;
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

/// A batch that waits for its results.
pub(super) struct PendingBatch {
    inner: Arc<Inner>,
    batch: Mutex<Option<Batch>>,
    /// The number of buffers that are not mapped yet.
    left: AtomicU32,
    failed: AtomicBool,
}

impl PendingBatch {
    /// Encodes the end of a batch, whose results are read when they have arrived.
    pub fn start(inner: &Arc<Inner>, mut batch: Batch, encoder: &mut ::wgpu::CommandEncoder) {
        batch.finished_ns = host_now_ns();
        if batch.chunks.is_empty() {
            inner.record_untimed(&batch);
            return;
        }
        for chunk in &batch.chunks {
            chunk.resolve(encoder);
        }
        let pending = Arc::new(PendingBatch {
            inner: Arc::clone(inner),
            left: AtomicU32::new(batch.chunks.len() as u32),
            failed: AtomicBool::new(false),
            batch: Mutex::new(None),
        });
        for chunk in &batch.chunks {
            let pending = Arc::clone(&pending);
            encoder.map_buffer_on_submit(
                &chunk.readable,
                ::wgpu::MapMode::Read,
                0..chunk.bytes(),
                move |result| pending.mapped(result.is_ok()),
            );
        }
        *pending.batch.lock().unwrap_or_else(PoisonError::into_inner) = Some(batch);
    }

    /// Records that a buffer was mapped or cannot be. wgpu calls it, so that it does little.
    fn mapped(&self, ok: bool) {
        if !ok {
            self.failed.store(true, Release);
        }
        if self.left.fetch_sub(1, AcqRel) > 1 {
            return;
        }
        let batch = self
            .batch
            .lock()
            .unwrap_or_else(PoisonError::into_inner)
            .take();
        let Some(batch) = batch else { return };
        if self.failed.load(Acquire) {
            self.inner
                .record_lost(batch, "the device was lost, or refused to map the results");
        } else {
            self.inner.arrived(batch, host_now_ns());
        }
    }
}

impl Drop for PendingBatch {
    fn drop(&mut self) {
        let batch = self.batch.get_mut().unwrap_or_else(PoisonError::into_inner);
        if let Some(batch) = batch.take() {
            self.inner.record_lost(
                batch,
                "the command buffer was never submitted, or the device was lost",
            );
        }
    }
}
