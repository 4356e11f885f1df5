//! The command encoder.

use super::Capability;
use super::batch::{Batch, UnderWay};
use super::pass::ComputePass;
use super::profiler::Inner;
use ::wgpu::{CommandBuffer, CommandEncoder, CommandEncoderDescriptor, ComputePassDescriptor};
use std::ops::{Deref, DerefMut};
use std::sync::Arc;

/// A [`wgpu::CommandEncoder`](::wgpu::CommandEncoder) whose compute passes are timed. It can do whatever wgpu's can:
/// it dereferences to it. Render passes and copies are part of the command buffer's time.
#[derive(Debug)]
pub struct Encoder {
    encoder: CommandEncoder,
    inner: Arc<Inner>,
    batch: Batch,
}

impl Encoder {
    pub(super) fn new(inner: &Arc<Inner>, label: &str) -> Encoder {
        let described = CommandEncoderDescriptor {
            label: (!label.is_empty()).then_some(label),
        };
        let mut encoder = inner.device().create_command_encoder(&described);
        let mut batch = Batch {
            id: inner.profile().command_buffer(),
            label: Arc::from(label),
            chunks: Vec::new(),
            whole: None,
            work: Vec::new(),
            dispatches: 0,
            finished_ns: 0,
        };
        if inner.encoders {
            batch.whole = batch.pair(inner);
            if let Some((set, query)) = batch.whole.and_then(|first| batch.query(first)) {
                encoder.write_timestamp(set, query);
            }
        }
        Encoder {
            encoder,
            inner: Arc::clone(inner),
            batch,
        }
    }

    /// Begins a compute pass, timed. A pass that the program times itself (`timestamp_writes`) keeps its own.
    pub fn begin_compute_pass(&mut self, pass: &ComputePassDescriptor<'_>) -> ComputePass<'_> {
        let label: Arc<str> = Arc::from(pass.label.unwrap_or_default());
        let mut boundaries = None;
        if self.inner.capability == Capability::Passes {
            if pass.timestamp_writes.is_some() {
                let reason = "the program times this pass itself";
                self.inner.profile().lose("pass times", 1, reason);
            } else {
                boundaries = self.batch.pair(&self.inner);
            }
        }
        let writes = boundaries.and_then(|first| self.batch.query(first));
        let described = ComputePassDescriptor {
            label: pass.label,
            timestamp_writes: match writes {
                Some((set, query)) => Some(::wgpu::ComputePassTimestampWrites {
                    query_set: set,
                    beginning_of_pass_write_index: Some(query),
                    end_of_pass_write_index: Some(query + 1),
                }),
                None => pass.timestamp_writes.clone(),
            },
        };
        let begun = self.encoder.begin_compute_pass(&described);
        ComputePass::new(begun, &self.inner, &mut self.batch, label, boundaries)
    }

    /// Finishes the command buffer. Its times are recorded when it has run: see [`super::Profiler::harvest`].
    pub fn finish(self) -> CommandBuffer {
        let Encoder {
            mut encoder,
            inner,
            batch,
        } = self;
        if let Some((set, query)) = batch.whole.and_then(|first| batch.query(first + 1)) {
            encoder.write_timestamp(set, query);
        }
        UnderWay::start(&inner, batch, &mut encoder);
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
