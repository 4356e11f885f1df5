//! Wraps wgpu's command encoder, so that its compute passes and the whole command buffer are timed, each by a pair of
//! queries (places for the GPU's timestamps). A batch is what was encoded into one command buffer, with its queries.

use super::Capability;
use super::batch::{Batch, EncodedPass};
use super::inner::Inner;
use super::pass::ComputePass;
use super::pending::PendingBatch;
use crate::kernel_profile::host_now_ns;
use ::wgpu::{
    BufferAddress, CommandBuffer, CommandEncoder, ComputePassDescriptor, Extent3d, RenderPass,
    RenderPassDescriptor, TexelCopyBufferInfo, TexelCopyTextureInfo,
};
use std::ops::{Deref, DerefMut, Range};
use std::sync::Arc;

/// A [`wgpu::CommandEncoder`](::wgpu::CommandEncoder) whose compute passes are timed. It dereferences to wgpu's
/// encoder, and what is encoded there counts in the command buffer's time only. Render passes and copies count so, too.
///
/// ```no_run
/// # fn example(profiler: &gapscope_sdk::wgpu::Profiler, from: &wgpu::Buffer, to: &wgpu::Buffer) {
/// let mut encoder = profiler.encoder("copy");
/// encoder.copy_buffer_to_buffer(from, 0, to, 0, 1024);
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
        batch.is_off = !inner.is_enabled();
        if !batch.is_off {
            inner.say();
        }
        if !batch.is_off && inner.times_encoders() {
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
        let wanted = self.inner.capability == Capability::Passes && !self.batch.is_off;
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
        if self.inner.lists_work() && !self.batch.is_off {
            self.batch.passes.push(EncodedPass {
                pair,
                label: Arc::clone(&label),
                first: self.batch.dispatch_count,
                is_taken,
                is_borrowed: false,
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
        if !batch.is_off {
            PendingBatch::start(&inner, batch, host_now_ns(), &mut encoder);
        }
        encoder.finish()
    }
}

/// The methods of wgpu's encoder that encode no dispatch. Others are reached by dereferencing.
macro_rules! pass_on {
    ($($(#[$doc:meta])* $name:ident($($argument:ident: $type:ty),*);)+) => {
        impl Encoder {
            $(
                $(#[$doc])*
                pub fn $name(&mut self, $($argument: $type),*) {
                    self.encoder.$name($($argument),*);
                }
            )+
        }
    };
}

pass_on! {
    /// As of [`wgpu::CommandEncoder`](::wgpu::CommandEncoder).
    copy_buffer_to_buffer(
        source: &::wgpu::Buffer,
        source_offset: BufferAddress,
        destination: &::wgpu::Buffer,
        destination_offset: BufferAddress,
        copy_size: impl Into<Option<BufferAddress>>
    );
    /// As of [`wgpu::CommandEncoder`](::wgpu::CommandEncoder).
    copy_buffer_to_texture(
        source: TexelCopyBufferInfo<'_>,
        destination: TexelCopyTextureInfo<'_>,
        copy_size: Extent3d
    );
    /// As of [`wgpu::CommandEncoder`](::wgpu::CommandEncoder).
    copy_texture_to_buffer(
        source: TexelCopyTextureInfo<'_>,
        destination: TexelCopyBufferInfo<'_>,
        copy_size: Extent3d
    );
    /// As of [`wgpu::CommandEncoder`](::wgpu::CommandEncoder).
    copy_texture_to_texture(
        source: TexelCopyTextureInfo<'_>,
        destination: TexelCopyTextureInfo<'_>,
        copy_size: Extent3d
    );
    /// As of [`wgpu::CommandEncoder`](::wgpu::CommandEncoder).
    clear_buffer(buffer: &::wgpu::Buffer, offset: BufferAddress, size: Option<BufferAddress>);
    /// As of [`wgpu::CommandEncoder`](::wgpu::CommandEncoder).
    insert_debug_marker(label: &str);
    /// As of [`wgpu::CommandEncoder`](::wgpu::CommandEncoder).
    push_debug_group(label: &str);
    /// As of [`wgpu::CommandEncoder`](::wgpu::CommandEncoder).
    pop_debug_group();
    /// As of [`wgpu::CommandEncoder`](::wgpu::CommandEncoder).
    resolve_query_set(
        query_set: &::wgpu::QuerySet,
        query_range: Range<u32>,
        destination: &::wgpu::Buffer,
        destination_offset: BufferAddress
    );
    /// As of [`wgpu::CommandEncoder`](::wgpu::CommandEncoder).
    write_timestamp(query_set: &::wgpu::QuerySet, query_index: u32);
}

impl Encoder {
    /// Begins a render pass, whose time counts in that of the command buffer; [`super::Profiler::scopes`] times render
    /// passes of their own.
    pub fn begin_render_pass(&mut self, pass: &RenderPassDescriptor<'_>) -> RenderPass<'_> {
        self.encoder.begin_render_pass(pass)
    }
}

impl Deref for Encoder {
    type Target = CommandEncoder;

    fn deref(&self) -> &CommandEncoder {
        &self.encoder
    }
}

impl DerefMut for Encoder {
    /// What is encoded there is not listed, and the results say so.
    fn deref_mut(&mut self) -> &mut CommandEncoder {
        self.batch.is_borrowed = true;
        &mut self.encoder
    }
}
