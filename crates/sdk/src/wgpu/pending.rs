//! Waits for the results of the queries (slots for timestamps) of a batch, which is one command buffer. Each buffer
//! of results reports when it is mapped; the last one hands the batch over, and a batch dropped before is lost.

use super::batch::Batch;
use super::inner::Inner;
use crate::kernel_profile::host_now_ns;
use std::sync::atomic::{
    AtomicBool, AtomicU32, Ordering::AcqRel, Ordering::Acquire, Ordering::Release,
};
use std::sync::{Arc, Mutex, PoisonError};

/// A batch that waits for its results.
pub(super) struct PendingBatch {
    inner: Arc<Inner>,
    /// The batch; `None` until its results are asked for, and after it was handed over.
    batch: Mutex<Option<Batch>>,
    /// The number of buffers that are not mapped yet.
    left: AtomicU32,
    /// Whether a buffer could not be mapped.
    failed: AtomicBool,
}

impl PendingBatch {
    /// Encodes the end of a batch: copies of its results, which are read when they have arrived. A batch without
    /// queries is recorded at once. It cannot have run before `finished_ns`.
    pub fn start(
        inner: &Arc<Inner>,
        mut batch: Batch,
        finished_ns: u64,
        encoder: &mut ::wgpu::CommandEncoder,
    ) {
        batch.finished_ns = finished_ns;
        if batch.chunks.is_empty() {
            inner.record_untimed(&batch);
            return;
        }
        for chunk in &batch.chunks {
            chunk.resolve(encoder);
        }
        inner.expect_results();
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

    /// Notes that a buffer was mapped or cannot be; the last one hands the batch over. wgpu calls this from its own
    /// code, so that it does little.
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
        self.inner.expect_no_more();
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
            self.inner.expect_no_more();
            self.inner.record_lost(
                batch,
                "the command buffer was never submitted, or the device was lost",
            );
        }
    }
}
