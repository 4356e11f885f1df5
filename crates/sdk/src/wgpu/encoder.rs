//! Wraps wgpu's command encoder, so that its compute passes and the whole command buffer are timed, each by a pair of
//! queries (places for the GPU's timestamps). A batch is what was encoded into one command buffer, with its queries.

use super::Capability;
use super::batch::{Batch, EncodedPass};
use super::inner::Inner;
use super::pass::ComputePass;
use super::pending::PendingBatch;
use ::wgpu::{CommandBuffer, CommandEncoder, ComputePassDescriptor};
use std::ops::{Deref, DerefMut};
use std::sync::Arc;

/// A [`wgpu::CommandEncoder`](::wgpu::CommandEncoder) whose compute passes are timed. It dereferences to wgpu's
/// encoder. Render passes and copies count in the command buffer's time.
///
/// ```no_run
/// # fn example(profiler: &gapscope_sdk::wgpu::Profiler, from: &wgpu::Buffer, to: &wgpu::Buffer) {
/// let mut encoder = profiler.encoder("copy");
/// encoder.copy_buffer_to_buffer(from, 0, to, 0, 1024); // of wgpu's own encoder
/// # }
/// ```
#[derive(Debug)]
pub struct Encoder {
    encoder: CommandEncoder,
    inner: Arc<Inner>,
    batch: Batch,
}

impl Encoder {
    /// Wraps an encoder in which nothing is open.
    pub(super) fn around(inner: &Arc<Inner>, mut encoder: CommandEncoder, label: &str) -> Encoder {
        let mut batch = Batch::new(inner.profile().command_buffer(), label);
        if inner.times_encoders() {
            batch.whole = batch.pair(|| inner.take_chunk());
            if let Some(queries) = batch.whole.and_then(|pair| batch.queries(pair)) {
                encoder.write_timestamp(queries.set, queries.start);
            }
        }
        Encoder {
            encoder,
            inner: Arc::clone(inner),
            batch,
        }
    }

    /// Begins a timed compute pass. A pass that the program times itself (`timestamp_writes`) keeps its own
    /// timestamps.
    ///
    /// ```no_run
    /// # fn example(profiler: &gapscope_sdk::wgpu::Profiler, pipeline: &wgpu::ComputePipeline) {
    /// let mut encoder = profiler.encoder("forward");
    /// let mut pass = encoder.begin_compute_pass(&wgpu::ComputePassDescriptor {
    ///     label: Some("attention"),
    ///     timestamp_writes: None,
    /// });
    /// pass.set_pipeline(pipeline);
    /// pass.dispatch_workgroups(64, 1, 1);
    /// # }
    /// ```
    pub fn begin_compute_pass(&mut self, pass: &ComputePassDescriptor<'_>) -> ComputePass<'_> {
        let label: Arc<str> = Arc::from(pass.label.unwrap_or_default());
        let wanted = self.inner.capability == Capability::Passes;
        let is_taken = wanted && pass.timestamp_writes.is_some();
        let pair = (wanted && !is_taken).then(|| self.batch.pair(|| self.inner.take_chunk()));
        let pair = pair.flatten();
        let queries = pair.and_then(|pair| self.batch.queries(pair));
        let described = ComputePassDescriptor {
            label: pass.label,
            timestamp_writes: match queries {
                Some(queries) => Some(::wgpu::ComputePassTimestampWrites {
                    query_set: queries.set,
                    beginning_of_pass_write_index: Some(queries.start),
                    end_of_pass_write_index: Some(queries.end),
                }),
                None => pass.timestamp_writes.clone(),
            },
        };
        let opened = self.encoder.begin_compute_pass(&described);
        if self.inner.lists_work() {
            self.batch.passes.push(EncodedPass {
                pair,
                label: Arc::clone(&label),
                first: self.batch.dispatch_count,
                is_taken,
            });
        }
        ComputePass::new(opened, &self.inner, &mut self.batch, label)
    }

    /// Finishes the command buffer. Its times are recorded after it has run: see [`super::Profiler::harvest`].
    ///
    /// ```no_run
    /// # fn example(profiler: &gapscope_sdk::wgpu::Profiler, queue: &wgpu::Queue) {
    /// let encoder = profiler.encoder("forward");
    /// queue.submit([encoder.finish()]);
    /// # }
    /// ```
    pub fn finish(self) -> CommandBuffer {
        let Encoder {
            mut encoder,
            inner,
            batch,
        } = self;
        if let Some(queries) = batch.whole.and_then(|pair| batch.queries(pair)) {
            encoder.write_timestamp(queries.set, queries.end);
        }
        PendingBatch::start(&inner, batch, &mut encoder);
        encoder.finish()
    }
}

impl Deref for Encoder {
    type Target = CommandEncoder;

    fn deref(&self) -> &CommandEncoder {
        &self.encoder
    }
}

impl DerefMut for Encoder {
    fn deref_mut(&mut self) -> &mut CommandEncoder {
        &mut self.encoder
    }
}
