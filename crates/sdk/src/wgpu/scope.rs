//! Times parts of wgpu's own encoders and passes: [`Scopes`] holds the queries of a command buffer or a frame, and each
//! [`Scope`] writes a timestamp at its start and at its end.

use super::batch::{Batch, EncodedScope, QueryPair};
use super::inner::{Inner, lock};
use super::pending::PendingBatch;
use crate::kernel_profile::host_now_ns;
use ::wgpu::{
    CommandEncoder, ComputePass, ComputePassDescriptor, ComputePassTimestampWrites, Features,
    QuerySet, RenderPass, RenderPassDescriptor, RenderPassTimestampWrites,
};
use std::ops::{Deref, DerefMut};
use std::sync::{Arc, Mutex};

// The reasons why a scope has no time.
const NO_QUERIES: &str = "there was no memory for timestamps";
const NO_TIMESTAMPS: &str = "the device has no timestamps, or was made without TIMESTAMP_QUERY";
const NOT_BETWEEN_PASSES: &str = "the device was made without TIMESTAMP_QUERY_INSIDE_ENCODERS";
const NOT_INSIDE_PASSES: &str = "the device was made without TIMESTAMP_QUERY_INSIDE_PASSES";
const TAKEN: &str = "the program times this pass itself";

/// Something into which timestamps can be written: wgpu's command encoder, compute pass and render pass.
pub trait Recorder: private::Sealed {
    /// Writes a timestamp.
    #[doc(hidden)]
    fn stamp(&mut self, set: &QuerySet, query: u32);

    /// Returns the feature that timestamps need here, and the reason for scopes on a device without it.
    #[doc(hidden)]
    fn needs() -> (Features, &'static str);
}

mod private {
    pub trait Sealed {}
    impl Sealed for ::wgpu::CommandEncoder {}
    impl Sealed for ::wgpu::ComputePass<'_> {}
    impl Sealed for ::wgpu::RenderPass<'_> {}
}

impl Recorder for CommandEncoder {
    fn stamp(&mut self, set: &QuerySet, query: u32) {
        self.write_timestamp(set, query);
    }

    fn needs() -> (Features, &'static str) {
        (
            Features::TIMESTAMP_QUERY_INSIDE_ENCODERS,
            NOT_BETWEEN_PASSES,
        )
    }
}

impl Recorder for ComputePass<'_> {
    fn stamp(&mut self, set: &QuerySet, query: u32) {
        self.write_timestamp(set, query);
    }

    fn needs() -> (Features, &'static str) {
        (Features::TIMESTAMP_QUERY_INSIDE_PASSES, NOT_INSIDE_PASSES)
    }
}

impl Recorder for RenderPass<'_> {
    fn stamp(&mut self, set: &QuerySet, query: u32) {
        self.write_timestamp(set, query);
    }

    fn needs() -> (Features, &'static str) {
        (Features::TIMESTAMP_QUERY_INSIDE_PASSES, NOT_INSIDE_PASSES)
    }
}

/// The scopes of a command buffer, or of the command buffers of a frame: [`Profiler::scopes`](super::Profiler::scopes)
/// makes it and shows its use. Threads may share it.
///
/// Scopes of encoders need `TIMESTAMP_QUERY_INSIDE_ENCODERS`, scopes inside passes `TIMESTAMP_QUERY_INSIDE_PASSES`,
/// and whole passes ([`Scopes::compute_pass`], [`Scope::render_pass`] and their like) only `TIMESTAMP_QUERY`. A scope
/// without a time is counted with the reason.
#[derive(Debug)]
pub struct Scopes {
    inner: Arc<Inner>,
    /// `None` while the profiler is switched off, and once the results have been asked for.
    batch: Mutex<Option<Batch>>,
}

/// An open scope that is ended by [`Scopes::end`], for programs in which no guard can live as long as the scope.
#[derive(Debug)]
#[must_use = "a scope ends with `Scopes::end`"]
pub struct OpenScope(Option<OpenIndex>);

/// A scope by its index in the batch, and the query at its end.
#[derive(Debug, Clone, Copy)]
struct OpenIndex {
    index: usize,
    pair: Option<QueryPair>,
}

impl Scopes {
    /// Begins the scopes of a command buffer.
    pub(super) fn begin(inner: &Arc<Inner>, label: &str) -> Scopes {
        let batch = inner.is_enabled().then(|| {
            inner.say_of_scopes();
            let mut batch = Batch::new(inner.profile().command_buffer(), label);
            batch.finished_ns = host_now_ns();
            batch
        });
        Scopes {
            inner: Arc::clone(inner),
            batch: Mutex::new(batch),
        }
    }

    /// Opens a scope that ends when it is dropped. It dereferences to `recorder`.
    ///
    /// ```no_run
    /// # fn example(scopes: &gapscope_sdk::wgpu::Scopes, pass: &mut wgpu::RenderPass<'_>) {
    /// let mut trees = scopes.scope("trees", pass);
    /// trees.draw(0..3, 0..100);
    /// # }
    /// ```
    pub fn scope<'a, R: Recorder>(&'a self, label: &str, recorder: &'a mut R) -> Scope<'a, R> {
        let open = self.open(label, None, R::needs());
        self.stamp_start(open, recorder);
        Scope::new(self, open, true, Access::Borrowed(recorder))
    }

    /// Begins a compute pass that is timed at its boundaries, under its label.
    ///
    /// ```no_run
    /// # fn example(scopes: &gapscope_sdk::wgpu::Scopes, encoder: &mut wgpu::CommandEncoder) {
    /// let mut pass = scopes.compute_pass(encoder, &wgpu::ComputePassDescriptor {
    ///     label: Some("blur"),
    ///     timestamp_writes: None,
    /// });
    /// pass.dispatch_workgroups(64, 1, 1);
    /// # }
    /// ```
    pub fn compute_pass<'a>(
        &'a self,
        encoder: &'a mut CommandEncoder,
        pass: &ComputePassDescriptor<'_>,
    ) -> Scope<'a, ComputePass<'a>> {
        self.compute_pass_in(None, encoder, pass)
    }

    /// Begins a render pass that is timed at its boundaries, under its label.
    ///
    /// ```no_run
    /// # fn example(scopes: &gapscope_sdk::wgpu::Scopes, encoder: &mut wgpu::CommandEncoder, described: &wgpu::RenderPassDescriptor<'_>) {
    /// let mut pass = scopes.render_pass(encoder, described);
    /// pass.draw(0..3, 0..1);
    /// # }
    /// ```
    pub fn render_pass<'a>(
        &'a self,
        encoder: &'a mut CommandEncoder,
        pass: &RenderPassDescriptor<'_>,
    ) -> Scope<'a, RenderPass<'a>> {
        self.render_pass_in(None, encoder, pass)
    }

    /// Opens a scope that [`Self::end`] ends, inside `parent` if one is given.
    ///
    /// ```no_run
    /// # fn example(scopes: &gapscope_sdk::wgpu::Scopes, encoder: &mut wgpu::CommandEncoder) {
    /// let upload = scopes.open_scope("upload", None, encoder);
    /// // …
    /// scopes.end(upload, encoder);
    /// # }
    /// ```
    pub fn open_scope<R: Recorder>(
        &self,
        label: &str,
        parent: Option<&OpenScope>,
        recorder: &mut R,
    ) -> OpenScope {
        let parent = parent.and_then(|parent| parent.0);
        let open = self.open(label, parent, R::needs());
        self.stamp_start(open, recorder);
        OpenScope(open)
    }

    /// Ends a scope of [`Self::open_scope`]. The scope has a time only if both ends are in the same kind of recorder.
    pub fn end<R: Recorder>(&self, scope: OpenScope, recorder: &mut R) {
        self.stamp_end(scope.0, Some(recorder));
    }

    /// Encodes the copy of the results behind all scopes, into the last encoder. They are recorded when they have
    /// arrived: see [`Profiler::harvest`](super::Profiler::harvest).
    pub fn resolve(self, encoder: &mut CommandEncoder) {
        if let Some(batch) = lock(&self.batch).take() {
            let began_ns = batch.finished_ns;
            PendingBatch::start(&self.inner, batch, began_ns, encoder);
        }
    }

    /// Adds a scope; `None` if nothing is listed. `needs` is the feature that its timestamps need.
    fn open(
        &self,
        label: &str,
        parent: Option<OpenIndex>,
        needs: (Features, &'static str),
    ) -> Option<OpenIndex> {
        let pair = |batch: &mut Batch| {
            if !self.inner.has(Features::TIMESTAMP_QUERY) {
                Err(NO_TIMESTAMPS)
            } else if !self.inner.has(needs.0) {
                Err(needs.1)
            } else {
                batch.pair(|| self.inner.take_chunk()).ok_or(NO_QUERIES)
            }
        };
        self.add(label, parent, pair)
    }

    /// Adds a scope with the queries that `pair` takes from the batch.
    fn add(
        &self,
        label: &str,
        parent: Option<OpenIndex>,
        pair: impl FnOnce(&mut Batch) -> Result<QueryPair, &'static str>,
    ) -> Option<OpenIndex> {
        let mut batch = lock(&self.batch);
        let batch = batch.as_mut()?;
        let pair = pair(batch);
        let outer = parent.and_then(|parent| batch.scopes.get(parent.index));
        let around = outer.map_or(&[] as &[Arc<str>], |outer| &outer.path);
        let path = around.iter().cloned().chain([Arc::from(label)]).collect();
        batch.scopes.push(EncodedScope {
            pair,
            path,
            is_ended: false,
        });
        Some(OpenIndex {
            index: batch.scopes.len() - 1,
            pair: pair.ok(),
        })
    }

    fn stamp_start(&self, open: Option<OpenIndex>, recorder: &mut impl Recorder) {
        let batch = lock(&self.batch);
        let pair = open.and_then(|open| open.pair);
        if let (Some(batch), Some(pair)) = (batch.as_ref(), pair)
            && let Some(queries) = batch.queries(pair)
        {
            recorder.stamp(queries.set, queries.start);
        }
    }

    /// Notes the end of a scope; the timestamp goes to `recorder`, unless the boundaries of a pass are timed.
    fn stamp_end<R: Recorder>(&self, open: Option<OpenIndex>, recorder: Option<&mut R>) {
        let (mut batch, Some(open)) = (lock(&self.batch), open) else {
            return;
        };
        let Some(batch) = batch.as_mut() else { return };
        if let (Some(recorder), Some(pair)) = (recorder, open.pair)
            && let Some(queries) = batch.queries(pair)
        {
            if !self.inner.has(R::needs().0) {
                return;
            }
            recorder.stamp(queries.set, queries.end);
        }
        if let Some(scope) = batch.scopes.get_mut(open.index) {
            scope.is_ended = true;
        }
    }

    /// Adds a scope for a whole pass; `is_taken`: the program times it itself.
    fn open_pass(
        &self,
        label: Option<&str>,
        parent: Option<OpenIndex>,
        is_taken: bool,
    ) -> Option<OpenIndex> {
        let label = label.unwrap_or("(pass without a label)");
        match is_taken {
            true => self.add(label, parent, |_| Err(TAKEN)),
            false => self.open(label, parent, (Features::empty(), "")),
        }
    }

    fn compute_pass_in<'a>(
        &'a self,
        parent: Option<OpenIndex>,
        encoder: &'a mut CommandEncoder,
        pass: &ComputePassDescriptor<'_>,
    ) -> Scope<'a, ComputePass<'a>> {
        let open = self.open_pass(pass.label, parent, pass.timestamp_writes.is_some());
        let batch = lock(&self.batch);
        let pair = open.and_then(|open| open.pair);
        let queries = pair.and_then(|pair| batch.as_ref()?.queries(pair));
        let writes = queries.map(|queries| ComputePassTimestampWrites {
            query_set: queries.set,
            beginning_of_pass_write_index: Some(queries.start),
            end_of_pass_write_index: Some(queries.end),
        });
        let pass = encoder.begin_compute_pass(&ComputePassDescriptor {
            label: pass.label,
            timestamp_writes: writes.or_else(|| pass.timestamp_writes.clone()),
        });
        drop(batch);
        Scope::new(self, open, false, Access::Own(pass))
    }

    fn render_pass_in<'a>(
        &'a self,
        parent: Option<OpenIndex>,
        encoder: &'a mut CommandEncoder,
        pass: &RenderPassDescriptor<'_>,
    ) -> Scope<'a, RenderPass<'a>> {
        let open = self.open_pass(pass.label, parent, pass.timestamp_writes.is_some());
        let batch = lock(&self.batch);
        let pair = open.and_then(|open| open.pair);
        let queries = pair.and_then(|pair| batch.as_ref()?.queries(pair));
        let writes = queries.map(|queries| RenderPassTimestampWrites {
            query_set: queries.set,
            beginning_of_pass_write_index: Some(queries.start),
            end_of_pass_write_index: Some(queries.end),
        });
        let pass = encoder.begin_render_pass(&RenderPassDescriptor {
            timestamp_writes: writes.or_else(|| pass.timestamp_writes.clone()),
            ..pass.clone()
        });
        drop(batch);
        Scope::new(self, open, false, Access::Own(pass))
    }
}

impl Drop for Scopes {
    fn drop(&mut self) {
        if let Some(batch) = lock(&self.batch).take() {
            self.inner
                .record_lost(batch, "its scopes were dropped without `Scopes::resolve`");
        }
    }
}

/// An open scope, which ends when it is dropped. It dereferences to wgpu's encoder or pass.
#[derive(Debug)]
pub struct Scope<'a, R: Recorder> {
    scopes: &'a Scopes,
    open: Option<OpenIndex>,
    /// Timestamps are written between other commands, and not at the boundaries of a pass.
    is_stamped: bool,
    recorder: Access<'a, R>,
}

/// The program's recorder, or a pass that the scope has begun.
#[derive(Debug)]
enum Access<'a, R> {
    Borrowed(&'a mut R),
    Own(R),
}

impl<'a, R: Recorder> Scope<'a, R> {
    fn new(
        scopes: &'a Scopes,
        open: Option<OpenIndex>,
        is_stamped: bool,
        recorder: Access<'a, R>,
    ) -> Scope<'a, R> {
        Scope {
            scopes,
            open,
            is_stamped,
            recorder,
        }
    }

    /// Opens a scope inside this one.
    ///
    /// ```no_run
    /// # fn example(frame: &mut gapscope_sdk::wgpu::Scope<'_, wgpu::RenderPass<'_>>) {
    /// let mut trees = frame.scope("trees");
    /// trees.draw(0..3, 0..100);
    /// # }
    /// ```
    pub fn scope(&mut self, label: &str) -> Scope<'_, R> {
        let (scopes, outer) = (self.scopes, self.open);
        let recorder: &mut R = self;
        let open = scopes.open(label, outer, R::needs());
        scopes.stamp_start(open, recorder);
        Scope::new(scopes, open, true, Access::Borrowed(recorder))
    }
}

impl Scope<'_, CommandEncoder> {
    /// Begins a compute pass inside this scope as [`Scopes::compute_pass`] does.
    pub fn compute_pass(&mut self, pass: &ComputePassDescriptor<'_>) -> Scope<'_, ComputePass<'_>> {
        let (scopes, outer) = (self.scopes, self.open);
        scopes.compute_pass_in(outer, self, pass)
    }

    /// Begins a render pass inside this scope as [`Scopes::render_pass`] does.
    pub fn render_pass(&mut self, pass: &RenderPassDescriptor<'_>) -> Scope<'_, RenderPass<'_>> {
        let (scopes, outer) = (self.scopes, self.open);
        scopes.render_pass_in(outer, self, pass)
    }
}

impl<R: Recorder> Deref for Scope<'_, R> {
    type Target = R;

    fn deref(&self) -> &R {
        match &self.recorder {
            Access::Borrowed(recorder) => recorder,
            Access::Own(recorder) => recorder,
        }
    }
}

impl<R: Recorder> DerefMut for Scope<'_, R> {
    fn deref_mut(&mut self) -> &mut R {
        match &mut self.recorder {
            Access::Borrowed(recorder) => recorder,
            Access::Own(recorder) => recorder,
        }
    }
}

impl<R: Recorder> Drop for Scope<'_, R> {
    fn drop(&mut self) {
        let (scopes, open, is_stamped) = (self.scopes, self.open, self.is_stamped);
        let recorder: Option<&mut R> = is_stamped.then_some(&mut **self);
        scopes.stamp_end(open, recorder);
    }
}
