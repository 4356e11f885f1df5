//! Wraps wgpu's compute pass, so that its dispatches are timed.

use super::Capability;
use super::batch::{Batch, EncodedDispatch};
use super::inner::Inner;
use ::wgpu::{Buffer, BufferAddress, ComputePipeline};
use std::ops::{Deref, DerefMut};
use std::sync::Arc;

/// A [`wgpu::ComputePass`](::wgpu::ComputePass) whose dispatches are timed if the device supports it, and otherwise
/// counted. It dereferences to wgpu's pass; dispatches that are encoded there are not listed.
///
/// ```no_run
/// # fn example(mut encoder: gapscope_sdk::wgpu::Encoder, bindings: &wgpu::BindGroup, pipeline: &wgpu::ComputePipeline) {
/// let mut pass = encoder.begin_compute_pass(&Default::default());
/// pass.set_bind_group(0, bindings, &[]);
/// pass.set_pipeline(pipeline);
/// pass.operation("Sdpa");
/// pass.dispatch_workgroups(64, 1, 1);
/// # }
/// ```
#[derive(Debug)]
pub struct ComputePass<'encoder> {
    pass: ::wgpu::ComputePass<'encoder>,
    inner: &'encoder Arc<Inner>,
    /// What the command buffer holds so far: passes and dispatches, with the queries that time them.
    batch: &'encoder mut Batch,
    label: Arc<str>,
    /// The open debug groups, innermost last.
    groups: Vec<Arc<str>>,
    /// The program's name for the dispatches that follow.
    operation: Option<Arc<str>>,
    /// The name of the pipeline that is set; empty if it is not known.
    kernel: Arc<str>,
}

impl<'encoder> ComputePass<'encoder> {
    pub(super) fn new(
        pass: ::wgpu::ComputePass<'encoder>,
        inner: &'encoder Arc<Inner>,
        batch: &'encoder mut Batch,
        label: Arc<str>,
    ) -> ComputePass<'encoder> {
        ComputePass {
            pass,
            inner,
            batch,
            label,
            groups: Vec::new(),
            operation: None,
            kernel: Arc::from(""),
        }
    }

    /// Sets the pipeline, whose name is the kernel's (see
    /// [`Profiler::create_compute_pipeline`](super::Profiler::create_compute_pipeline)).
    ///
    /// ```no_run
    /// # fn example(pass: &mut gapscope_sdk::wgpu::ComputePass<'_>, pipeline: &wgpu::ComputePipeline, buffer: &wgpu::Buffer) {
    /// pass.set_pipeline(pipeline);
    /// # }
    /// ```
    pub fn set_pipeline(&mut self, pipeline: &ComputePipeline) {
        self.kernel = self
            .inner
            .name_of(pipeline)
            .unwrap_or_else(|| Arc::from(""));
        self.pass.set_pipeline(pipeline);
    }

    /// Names the operation that the following dispatches belong to; `""` ends it.
    ///
    /// ```no_run
    /// # fn example(pass: &mut gapscope_sdk::wgpu::ComputePass<'_>, pipeline: &wgpu::ComputePipeline, buffer: &wgpu::Buffer) {
    /// pass.operation("Sdpa");
    /// pass.dispatch_workgroups(64, 1, 1);
    /// pass.operation("");
    /// # }
    /// ```
    pub fn operation(&mut self, name: &str) {
        self.operation = (!name.is_empty()).then(|| Arc::from(name));
    }

    /// Begins a debug group, which also labels its dispatches.
    ///
    /// ```no_run
    /// # fn example(pass: &mut gapscope_sdk::wgpu::ComputePass<'_>, pipeline: &wgpu::ComputePipeline, buffer: &wgpu::Buffer) {
    /// pass.push_debug_group("head 3");
    /// pass.dispatch_workgroups(64, 1, 1);
    /// pass.pop_debug_group();
    /// # }
    /// ```
    pub fn push_debug_group(&mut self, label: &str) {
        self.groups.push(Arc::from(label));
        self.pass.push_debug_group(label);
    }

    /// Ends the innermost debug group.
    ///
    /// ```no_run
    /// # fn example(pass: &mut gapscope_sdk::wgpu::ComputePass<'_>, pipeline: &wgpu::ComputePipeline, buffer: &wgpu::Buffer) {
    /// pass.push_debug_group("head 3");
    /// pass.pop_debug_group();
    /// # }
    /// ```
    pub fn pop_debug_group(&mut self) {
        self.groups.pop();
        self.pass.pop_debug_group();
    }

    /// Adds a timed dispatch.
    ///
    /// ```no_run
    /// # fn example(pass: &mut gapscope_sdk::wgpu::ComputePass<'_>, pipeline: &wgpu::ComputePipeline, buffer: &wgpu::Buffer) {
    /// pass.set_pipeline(pipeline);
    /// pass.dispatch_workgroups(64, 1, 1);
    /// # }
    /// ```
    pub fn dispatch_workgroups(&mut self, x: u32, y: u32, z: u32) {
        self.timed(Some([x, y, z]), |pass| pass.dispatch_workgroups(x, y, z));
    }

    /// Adds a timed dispatch whose workgroups come from a buffer.
    ///
    /// ```no_run
    /// # fn example(pass: &mut gapscope_sdk::wgpu::ComputePass<'_>, pipeline: &wgpu::ComputePipeline, buffer: &wgpu::Buffer) {
    /// pass.dispatch_workgroups_indirect(buffer, 0); // how many workgroups is not known
    /// # }
    /// ```
    pub fn dispatch_workgroups_indirect(&mut self, buffer: &Buffer, offset: BufferAddress) {
        self.timed(None, |pass| {
            pass.dispatch_workgroups_indirect(buffer, offset)
        });
    }

    /// As of [`wgpu::ComputePass`](::wgpu::ComputePass).
    pub fn set_bind_group<'a, BG>(
        &mut self,
        index: u32,
        bind_group: BG,
        offsets: &[::wgpu::DynamicOffset],
    ) where
        Option<&'a ::wgpu::BindGroup>: From<BG>,
    {
        self.pass.set_bind_group(index, bind_group, offsets);
    }

    /// As of [`wgpu::ComputePass`](::wgpu::ComputePass).
    pub fn set_immediates(&mut self, offset: u32, data: &[u8]) {
        self.pass.set_immediates(offset, data);
    }

    /// As of [`wgpu::ComputePass`](::wgpu::ComputePass).
    pub fn insert_debug_marker(&mut self, label: &str) {
        self.pass.insert_debug_marker(label);
    }

    /// As of [`wgpu::ComputePass`](::wgpu::ComputePass).
    pub fn write_timestamp(&mut self, query_set: &::wgpu::QuerySet, query_index: u32) {
        self.pass.write_timestamp(query_set, query_index);
    }

    /// As of [`wgpu::ComputePass`](::wgpu::ComputePass).
    pub fn begin_pipeline_statistics_query(
        &mut self,
        query_set: &::wgpu::QuerySet,
        query_index: u32,
    ) {
        self.pass
            .begin_pipeline_statistics_query(query_set, query_index);
    }

    /// As of [`wgpu::ComputePass`](::wgpu::ComputePass).
    pub fn end_pipeline_statistics_query(&mut self) {
        self.pass.end_pipeline_statistics_query();
    }

    /// Encodes a dispatch with timestamps around it where dispatches are timed, and lists it for the results.
    fn timed(
        &mut self,
        groups: Option<[u32; 3]>,
        dispatch: impl FnOnce(&mut ::wgpu::ComputePass<'_>),
    ) {
        if self.batch.is_off {
            dispatch(&mut self.pass);
            return;
        }
        self.batch.dispatch_count += 1;
        if !self.inner.lists_work() {
            dispatch(&mut self.pass);
            return;
        }
        let timed = self.inner.capability == Capability::Dispatches;
        let pair = timed
            .then(|| self.batch.pair(|| self.inner.take_chunk()))
            .flatten();
        match pair.and_then(|pair| self.batch.queries(pair)) {
            Some(queries) => {
                self.pass.write_timestamp(queries.set, queries.start);
                dispatch(&mut self.pass);
                self.pass.write_timestamp(queries.set, queries.end);
            }
            None => dispatch(&mut self.pass),
        }
        let label = self.operation.as_ref().or(self.groups.last());
        self.batch.dispatches.push(EncodedDispatch {
            pair,
            kernel: Arc::clone(&self.kernel),
            label: Arc::clone(label.unwrap_or(&self.label)),
            groups,
        });
    }
}

impl<'encoder> Deref for ComputePass<'encoder> {
    type Target = ::wgpu::ComputePass<'encoder>;

    fn deref(&self) -> &::wgpu::ComputePass<'encoder> {
        &self.pass
    }
}

impl<'encoder> DerefMut for ComputePass<'encoder> {
    /// What is encoded there is not listed, and the results say so. The pipeline may be another one afterwards: the
    /// dispatches that follow have no kernel until the next [`Self::set_pipeline`].
    fn deref_mut(&mut self) -> &mut ::wgpu::ComputePass<'encoder> {
        self.kernel = Arc::from("");
        match self.batch.passes.last_mut() {
            Some(pass) => pass.is_borrowed = true,
            // Passes are not listed.
            None => self.batch.is_borrowed = true,
        }
        &mut self.pass
    }
}
