//! The compute pass.

use super::Capability;
use super::batch::{Batch, Pair, Timed, Work};
use super::profiler::Inner;
use ::wgpu::{Buffer, BufferAddress, ComputePipeline};
use std::ops::{Deref, DerefMut};
use std::sync::Arc;

/// A [`wgpu::ComputePass`](::wgpu::ComputePass) whose dispatches are timed where the device can, and counted
/// elsewhere. It can do whatever wgpu's can: it dereferences to it.
#[derive(Debug)]
pub struct ComputePass<'encoder> {
    pass: ::wgpu::ComputePass<'encoder>,
    inner: &'encoder Arc<Inner>,
    batch: &'encoder mut Batch,
    label: Arc<str>,
    boundaries: Pair,
    /// Debug groups that are open, innermost last.
    groups: Vec<Arc<str>>,
    /// What the program calls what follows.
    operation: Option<Arc<str>>,
    kernel: Arc<str>,
    dispatches: u32,
    /// The groups of the last dispatch.
    last: Option<[u32; 3]>,
}

impl<'encoder> ComputePass<'encoder> {
    pub(super) fn new(
        pass: ::wgpu::ComputePass<'encoder>,
        inner: &'encoder Arc<Inner>,
        batch: &'encoder mut Batch,
        label: Arc<str>,
        boundaries: Pair,
    ) -> ComputePass<'encoder> {
        ComputePass {
            pass,
            inner,
            batch,
            label,
            boundaries,
            groups: Vec::new(),
            operation: None,
            kernel: Arc::from(""),
            dispatches: 0,
            last: None,
        }
    }

    /// Sets the pipeline; its name is that of the kernel (see
    /// [`Profiler::create_compute_pipeline`](super::Profiler::create_compute_pipeline)).
    pub fn set_pipeline(&mut self, pipeline: &ComputePipeline) {
        self.kernel = self
            .inner
            .name_of(pipeline)
            .unwrap_or_else(|| Arc::from(""));
        self.pass.set_pipeline(pipeline);
    }

    /// Names the operation that the dispatches from here on belong to; `""` ends it.
    pub fn operation(&mut self, name: &str) {
        self.operation = (!name.is_empty()).then(|| Arc::from(name));
    }

    /// Begins a debug group, which also labels its dispatches.
    pub fn push_debug_group(&mut self, label: &str) {
        self.groups.push(Arc::from(label));
        self.pass.push_debug_group(label);
    }

    /// Ends the innermost debug group.
    pub fn pop_debug_group(&mut self) {
        self.groups.pop();
        self.pass.pop_debug_group();
    }

    /// Dispatches, timed.
    pub fn dispatch_workgroups(&mut self, x: u32, y: u32, z: u32) {
        self.timed(Some([x, y, z]), |pass| pass.dispatch_workgroups(x, y, z));
    }

    /// Dispatches, timed, with the workgroups from a buffer.
    pub fn dispatch_workgroups_indirect(&mut self, buffer: &Buffer, offset: BufferAddress) {
        self.timed(None, |pass| {
            pass.dispatch_workgroups_indirect(buffer, offset)
        });
    }

    fn timed(
        &mut self,
        groups: Option<[u32; 3]>,
        dispatch: impl FnOnce(&mut ::wgpu::ComputePass<'_>),
    ) {
        let index = self.batch.dispatches;
        self.batch.dispatches += 1;
        self.dispatches += 1;
        self.last = groups;
        if self.inner.capability != Capability::Dispatches {
            dispatch(&mut self.pass);
            return;
        }
        let pair = self.batch.pair(self.inner);
        if let Some((set, query)) = pair.and_then(|first| self.batch.query(first)) {
            self.pass.write_timestamp(set, query);
            dispatch(&mut self.pass);
            self.pass.write_timestamp(set, query + 1);
        } else {
            dispatch(&mut self.pass);
        }
        let what = self.dispatch(groups, index);
        self.batch.work.push(Timed { pair, what });
    }

    fn dispatch(&self, groups: Option<[u32; 3]>, index: u32) -> Work {
        let label = self
            .operation
            .as_ref()
            .or(self.groups.last())
            .unwrap_or(&self.label);
        Work::Dispatch {
            kernel: Arc::clone(&self.kernel),
            label: Arc::clone(label),
            groups,
            index,
        }
    }
}

impl Drop for ComputePass<'_> {
    fn drop(&mut self) {
        if self.inner.capability != Capability::Passes {
            return;
        }
        let pair = self.boundaries;
        if self.dispatches == 1 {
            // The pass is the dispatch.
            let what = self.dispatch(self.last, self.batch.dispatches - 1);
            self.batch.work.push(Timed { pair, what });
        }
        let what = Work::Pass {
            label: Arc::clone(&self.label),
            dispatches: self.dispatches,
        };
        self.batch.work.push(Timed { pair, what });
    }
}

impl<'encoder> Deref for ComputePass<'encoder> {
    type Target = ::wgpu::ComputePass<'encoder>;

    fn deref(&self) -> &::wgpu::ComputePass<'encoder> {
        &self.pass
    }
}

impl<'encoder> DerefMut for ComputePass<'encoder> {
    fn deref_mut(&mut self) -> &mut ::wgpu::ComputePass<'encoder> {
        &mut self.pass
    }
}
