//! Reads the executed commands of a capture, and returns them as nodes with the bytes that they reach, as barriers,
//! and as batches with their semaphores.
//!
//! The contents of memory are followed along, since kernels may read addresses from them. An executed command is one
//! occurrence of a recorded command: those of a command buffer that is submitted twice are executed twice.

use std::ops::Range;
use std::sync::Arc;

use gapscope_capture::model::{
    Batch, Binding, BufferId, BufferRange, Command, CommandsId, Copy, Dispatch, Fill, Groups,
    Label, Submission, Update,
};
use gapscope_capture::{Capture, Step, model};

use crate::bytes::ByteSet;
use crate::contents::Contents;
use crate::footprint::{Evaluator, Footprint, Limits, bound};
use crate::graph::{Access, Node, NodeKind};
use crate::kernel::reason::Reason;
use crate::scope::{Scope, Scopes, Stages};
use crate::trail::Trail;

/// A callback that takes the index of a dispatch among [`Capture::executed`], the dispatch, and its trail (the bytes
/// that each of its invocations reaches) or why that is not known.
pub type TrailSink<'f> = dyn FnMut(usize, &Dispatch, Result<Arc<Trail>, Reason>) + 'f;

/// Follows each invocation of the dispatches of a capture that `wanted` selects by their index among
/// [`Capture::executed`], and calls `found` with each trail. A kernel with the same constants, buffers and workgroups
/// is followed once.
pub fn trails(
    capture: &Capture,
    limits: Limits,
    wanted: &dyn Fn(usize) -> bool,
    found: &mut TrailSink<'_>,
) {
    Window::read(capture, limits, &mut |_| (), Some((wanted, found)));
}

/// The commands of a capture, ready for the graph.
#[derive(Debug, Default)]
pub(crate) struct Window {
    /// Dispatches and transfers in the order of submission.
    pub nodes: Vec<Node>,
    pub barriers: Vec<Barrier>,
    pub batches: Vec<WindowBatch>,
}

/// A barrier of the window with its position among the nodes.
#[derive(Debug)]
pub(crate) struct Barrier {
    /// Number of nodes before the barrier, of all queues.
    pub position: usize,
    /// Number of the submission, from 0.
    pub submission: usize,
    pub queue: u32,
    /// Id of the command recording that has the barrier; `index` is its index there.
    pub commands: CommandsId,
    pub index: usize,
    /// Index of the barrier among all executed commands.
    pub executed: usize,
    pub parts: Vec<BarrierPart>,
}

/// A part of a barrier: its scopes, and the allocation and range that it is for; `None` if it is for all memory.
pub(crate) type BarrierPart = (Scopes, Option<(u64, Range<u64>)>);

/// A batch (an element of a submission): its queue, and the semaphores that it waits for and signals, each with its
/// value if it is a timeline semaphore.
#[derive(Debug)]
pub(crate) struct WindowBatch {
    pub queue: u32,
    pub waits: Vec<(u32, Option<u64>)>,
    pub signals: Vec<(u32, Option<u64>)>,
    /// The stages that all waits of the batch hold back.
    pub waiting: Stages,
    /// The stages that all signals of the batch come after.
    pub signalled: Stages,
}

impl Window {
    /// Reads the commands of a capture. `progress` is called with the number of commands that are done.
    pub fn new(capture: &Capture, limits: Limits, progress: &mut dyn FnMut(usize)) -> Window {
        Window::read(capture, limits, progress, None)
    }

    /// Reads the commands, and follows the invocations of those that `trails` selects.
    fn read(
        capture: &Capture,
        limits: Limits,
        progress: &mut dyn FnMut(usize),
        trails: Option<Trails<'_, '_>>,
    ) -> Window {
        let mut reader = Reader {
            capture,
            evaluator: Evaluator::new(capture, limits),
            contents: Contents::default(),
            window: Window::default(),
            executed: 0,
            submission: 0,
            progress,
            trails,
        };
        for step in &capture.steps {
            match step {
                Step::Content(content) => reader.contents.set(capture, content),
                Step::Submission(submission) => reader.submission(submission),
                Step::Outcome(_) => {}
            }
        }
        reader.window
    }
}

/// The state of reading the commands of a capture in the order in which they ran.
struct Reader<'a, 'f> {
    capture: &'a Capture,
    evaluator: Evaluator<'a>,
    contents: Contents,
    window: Window,
    /// Number of the commands read so far.
    executed: usize,
    /// Number of the submissions read so far.
    submission: usize,
    progress: &'a mut dyn FnMut(usize),
    trails: Option<Trails<'a, 'f>>,
}

/// A function that selects the dispatches to follow, and the callback that takes their trails.
type Trails<'a, 'f> = (&'a dyn Fn(usize) -> bool, &'a mut TrailSink<'f>);

impl Reader<'_, '_> {
    fn submission(&mut self, submission: &Submission) {
        for batch in &submission.batches {
            self.batch(submission, batch);
        }
        self.submission += 1;
    }

    /// Reads the commands of a batch, one command buffer after the other.
    fn batch(&mut self, submission: &Submission, batch: &Batch) {
        let uses = |uses: &[model::SemaphoreUse]| {
            let each = uses.iter().map(|of| (of.semaphore.0, of.value));
            each.collect()
        };
        self.window.batches.push(WindowBatch {
            queue: submission.queue.0,
            waits: uses(&batch.waits),
            signals: uses(&batch.signals),
            waiting: Stages::waiting(batch.waits.iter().map(|of| of.stages)),
            signalled: Stages::signalled(batch.signals.iter().map(|of| of.stages)),
        });
        for id in &batch.commands {
            let mut labels = Vec::new();
            let capture = self.capture;
            for (index, command) in capture.commands[id].iter().enumerate() {
                self.command(submission.queue.0, (*id, index), command, &mut labels);
                self.executed += 1;
                (self.progress)(self.executed);
            }
        }
    }

    /// Reads a command: adds a node or a barrier, or changes the labels around the next ones.
    fn command(
        &mut self,
        queue: u32,
        (commands, index): (CommandsId, usize),
        command: &Command,
        labels: &mut Vec<String>,
    ) {
        let mut node = Node {
            labels: labels.clone(),
            submission: self.submission,
            batch: self.window.batches.len() - 1,
            queue,
            ..Node::default()
        };
        match command {
            Command::Dispatch(dispatch) => self.dispatch(&mut node, dispatch),
            Command::Copy(copy) => self.copy(&mut node, copy),
            Command::Fill(fill) => self.fill(&mut node, fill),
            Command::Update(update) => self.update(&mut node, update),
            Command::Barrier(barrier) => {
                let parts = self.parts(barrier);
                self.window.barriers.push(Barrier {
                    position: self.window.nodes.len(),
                    submission: self.submission,
                    queue,
                    commands,
                    index,
                    executed: self.executed,
                    parts,
                });
                return;
            }
            Command::Label(label) => {
                match label {
                    Label::Begin(text) => labels.push(text.clone()),
                    Label::End => drop(labels.pop()),
                    Label::Instant(_) => {}
                }
                return;
            }
        }
        self.window.nodes.push(node);
    }

    /// Returns the parts of a barrier: one for each dependency of all memory, and one for each buffer.
    fn parts(&self, barrier: &model::Barrier) -> Vec<BarrierPart> {
        let memory = barrier.memory.iter().map(|of| (Scopes::new(of), None));
        let buffers = barrier.buffers.iter().map(|(of, range)| {
            let (memory, at) = self.capture.place(*range);
            (
                Scopes::new(of),
                Some((memory.0.into(), at..at + range.bytes)),
            )
        });
        memory.chain(buffers).collect()
    }

    fn buffer_name(&self, id: BufferId) -> Arc<str> {
        match &self.capture.buffers[&id].name {
            Some(name) => name.as_str().into(),
            None => format!("buffer {id}").into(),
        }
    }

    /// Returns an exact access to the bytes `set` of a range of a buffer.
    fn access(&self, range: BufferRange, scope: Scope, set: Arc<ByteSet>) -> Access {
        let (memory, offset) = self.capture.place(range);
        Access {
            memory: memory.0.into(),
            offset,
            set,
            scope,
            bound: None,
            atomic: false,
            map: None,
            buffer: self.buffer_name(range.buffer),
            binding: None,
        }
    }

    /// Returns an access to all of a range.
    fn whole(&self, range: BufferRange, scope: Scope) -> Access {
        self.access(range, scope, Arc::new(ByteSet::from_range(0..range.bytes)))
    }

    /// Fills in the node of a dispatch from its footprint (the bytes it reaches), and forgets what it may overwrite.
    fn dispatch(&mut self, node: &mut Node, dispatch: &Dispatch) {
        let capture = self.capture;
        node.kind = Some(NodeKind::Dispatch);
        node.name = capture.pipelines[&dispatch.pipeline].name.clone();
        let groups = match dispatch.groups {
            Groups::Direct(groups) => Some(groups),
            Groups::Indirect(range) => {
                node.accesses.push(self.whole(range, Scope::IndirectRead));
                self.indirect(range)
            }
        };
        if let Some((wanted, found)) = &mut self.trails
            && wanted(self.executed)
        {
            let trail = self.evaluator.trail(dispatch, groups, &mut self.contents);
            found(self.executed, dispatch, trail);
        }
        let footprint = self
            .evaluator
            .footprint(dispatch, groups, &mut self.contents);
        let bindings = bound(dispatch);
        for (binding, of) in bindings.iter().zip(&footprint.bindings) {
            let Some(range) = binding.range else { continue };
            let read = match binding.is_uniform() {
                true => Scope::UniformRead,
                false => Scope::StorageRead,
            };
            for (extent, scope) in [(&of.reads, read), (&of.writes, Scope::StorageWrite)] {
                if !extent.is_empty() {
                    node.accesses.push(Access {
                        bound: extent.bound.as_ref().map(ToString::to_string),
                        atomic: of.atomic,
                        map: extent.map,
                        binding: Some((of.set, of.binding, of.element)),
                        ..self.access(range, scope, extent.set.clone())
                    });
                }
            }
        }
        node.grid = footprint.grid;
        node.beyond = (footprint.beyond.as_ref()).map(|(_, _, reason)| reason.to_string());
        self.overwritten(&bindings, &footprint);
    }

    /// Reads the number of workgroups from memory; `None` if the bytes are not known.
    fn indirect(&mut self, range: BufferRange) -> Option<[u32; 3]> {
        let (memory, at) = self.capture.place(range);
        let bytes = self
            .contents
            .get(self.capture, memory, at..at + range.bytes)?;
        let (words, _) = bytes.as_chunks::<4>();
        let [x, y, z] = words else { return None };
        Some([x, y, z].map(|word| u32::from_le_bytes(*word)))
    }

    /// Forgets the known contents that a dispatch may overwrite.
    fn overwritten(&mut self, bindings: &[Binding], footprint: &Footprint) {
        if matches!(footprint.beyond, Some((_, true, _))) {
            self.contents.forget_all();
        }
        for (binding, of) in bindings.iter().zip(&footprint.bindings) {
            let Some(range) = binding.range else { continue };
            let (memory, at) = self.capture.place(range);
            for written in of.writes.set.shifted(at) {
                self.contents.forget(memory, written);
            }
        }
    }

    /// Fills in the node of a copy, and copies the known contents.
    fn copy(&mut self, node: &mut Node, copy: &Copy) {
        node.kind = Some(NodeKind::Copy);
        node.name = "copy".to_owned();
        let scopes = [Scope::CopyRead, Scope::CopyWrite];
        let buffers = [copy.from, copy.to].into_iter().zip(scopes).enumerate();
        let accesses = buffers.map(|(side, (buffer, scope))| {
            let range = BufferRange::from_start(buffer, self.capture.buffers[&buffer].bytes);
            let ranges = copy.regions.iter().map(|region| copy.ranges(region)[side]);
            let ranges = ranges.map(|range| range.offset..range.offset + range.bytes);
            let set = ByteSet::from_unsorted(ranges.collect());
            self.access(range, scope, Arc::new(set))
        });
        node.accesses = accesses.collect();
        for region in &copy.regions {
            let [from, to] = copy.ranges(region).map(|range| self.capture.place(range));
            self.contents.copy(from, to, region.bytes);
        }
    }

    fn fill(&mut self, node: &mut Node, fill: &Fill) {
        node.kind = Some(NodeKind::Fill);
        node.name = "fill".to_owned();
        node.accesses = vec![self.whole(fill.range, Scope::ClearWrite)];
        let (memory, at) = self.capture.place(fill.range);
        self.contents
            .fill(memory, at..at + fill.range.bytes, fill.value);
    }

    fn update(&mut self, node: &mut Node, update: &Update) {
        node.kind = Some(NodeKind::Update);
        node.name = "update".to_owned();
        let range = update.range();
        node.accesses = vec![self.whole(range, Scope::ClearWrite)];
        let (memory, at) = self.capture.place(range);
        self.contents.write(memory, at, &update.data);
    }
}
