//! Reusable chunks of query sets and of the buffers for their results: the GPU writes timestamps to the queries, the
//! end of the command buffer copies them to a buffer that the host can map.

use ::wgpu::{
    Buffer, BufferDescriptor, BufferUsages, CommandEncoder, Device, ErrorFilter, QUERY_SIZE,
    QuerySet, QuerySetDescriptor, QueryType,
};
use std::pin::pin;
use std::task::{Context, Poll, Waker};

/// The number of queries in a chunk, for 512 dispatches.
pub(super) const QUERIES: u32 = 1024;

/// The maximum number of chunks in use: a million queries, 16 MiB.
pub(super) const MAX_CHUNKS: u32 = 1024;

/// A query set with the buffers for its results.
#[derive(Debug)]
pub(super) struct Chunk {
    pub set: QuerySet,
    /// The buffer to which the GPU resolves the queries; it cannot be mapped.
    resolved: Buffer,
    /// The buffer that the host maps.
    pub readable: Buffer,
    /// The number of queries that are taken.
    used: u32,
}

impl Chunk {
    /// Creates a chunk; `None` if the device has no memory or no more query sets.
    pub fn new(device: &Device) -> Option<Chunk> {
        // Without an error scope, a failure would reach the program's error handler, which ends it by default.
        let memory = device.push_error_scope(ErrorFilter::OutOfMemory);
        let validation = device.push_error_scope(ErrorFilter::Validation);
        let internal = device.push_error_scope(ErrorFilter::Internal);
        let set = device.create_query_set(&QuerySetDescriptor {
            label: Some("gapscope timestamps"),
            ty: QueryType::Timestamp,
            count: QUERIES,
        });
        let buffer = |label, usage| {
            device.create_buffer(&BufferDescriptor {
                label: Some(label),
                size: u64::from(QUERIES * QUERY_SIZE),
                usage,
                mapped_at_creation: false,
            })
        };
        let resolved = buffer(
            "gapscope resolved timestamps",
            BufferUsages::QUERY_RESOLVE | BufferUsages::COPY_SRC,
        );
        let readable = buffer(
            "gapscope timestamps",
            BufferUsages::MAP_READ | BufferUsages::COPY_DST,
        );
        // Scopes end in the reverse order, and all must end.
        let failed = [
            now(internal.pop()),
            now(validation.pop()),
            now(memory.pop()),
        ];
        if failed.iter().any(|error| !matches!(error, Some(None))) {
            return None;
        }
        Some(Chunk {
            set,
            resolved,
            readable,
            used: 0,
        })
    }

    /// Takes two queries and returns the index of the first; `None` if the chunk is full.
    pub fn pair(&mut self) -> Option<u32> {
        let first = self.used;
        (first + 2 <= QUERIES).then(|| {
            self.used += 2;
            first
        })
    }

    /// Marks all queries as unused.
    pub fn emptied(self) -> Chunk {
        Chunk { used: 0, ..self }
    }

    /// Returns the size in bytes of the results of the queries that are taken.
    pub fn bytes(&self) -> u64 {
        u64::from(self.used * QUERY_SIZE)
    }

    /// Encodes the copy of the results to the readable buffer.
    pub fn resolve(&self, encoder: &mut CommandEncoder) {
        encoder.resolve_query_set(&self.set, 0..self.used, &self.resolved, 0);
        encoder.copy_buffer_to_buffer(&self.resolved, 0, &self.readable, 0, self.bytes());
    }
}

/// Returns the value of a future that is ready, as those of error scopes are on native platforms; `None` for another.
fn now<T>(future: impl Future<Output = T>) -> Option<T> {
    match pin!(future).poll(&mut Context::from_waker(Waker::noop())) {
        Poll::Ready(value) => Some(value),
        Poll::Pending => None,
    }
}
