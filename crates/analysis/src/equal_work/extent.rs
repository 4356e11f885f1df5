//! Finds the side of a comparison, and the evaluation, that each piece of work belongs to.
//!
//! An evaluation is an instance of a label. A piece of work lies in the instance that was set in its command buffer. Where the
//! label began in an earlier command buffer, it lies in the instance that ran on its queue when the piece began. Where the label
//! was set on the host, it lies in the instance that was open on the thread or queue when the piece was submitted. A piece that
//! may lie in several instances makes all of them unclear, and they are left out.

use super::place::WorkPlace;
use crate::labels::LabelTree;
use gapscope_timeline::Timeline;
use gapscope_timeline::intervals::Interval;
use gapscope_trace::ids::{ProcessId, QueueId, ThreadId};
use gapscope_trace::lookup::NONE;
use gapscope_trace::manifest::SamplingMode;
use gapscope_trace::tables::MarkerScope;
use std::collections::HashMap;

/// The work of a trace that is measured.
pub(super) enum Extent<'t> {
    All,
    /// The work that starts in a window.
    Window(Interval),
    /// The work under labels.
    Labels(Instances<'t>),
}

impl Extent<'_> {
    /// Returns the side that a piece of work belongs to, `None` for work that is not measured. All work of a trace or
    /// window is of side 0.
    #[inline]
    pub(super) fn side(&self, place: &WorkPlace) -> Option<usize> {
        match self {
            Extent::All => Some(0),
            Extent::Window(window) => {
                let inside = place.start_ns.is_some_and(|ns| window.contains(ns));
                inside.then_some(0)
            }
            Extent::Labels(instances) => instances.side(place),
        }
    }

    /// Returns the instances of the labels, or nothing without labels.
    pub(super) fn instances(&self) -> &[Instance] {
        match self {
            Extent::Labels(instances) => &instances.all,
            _ => &[],
        }
    }
}

/// An instance of a label.
#[derive(Debug, Clone, Copy)]
pub(super) struct Instance {
    /// The index of the side that the instance belongs to.
    pub side: usize,
    /// The index of the instance's label in the tree of labels.
    pub node: u32,
    /// True where the instance is a command buffer with that label, as in traces of Instruments.
    pub is_command_buffer: bool,
    /// The time at which the host set the label, where it did.
    pub host_start_ns: Option<i64>,
    /// True where the end of the instance was not recorded.
    pub unfinished: bool,
}

/// A place at which the instances of a label are looked up.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
enum InstanceKey {
    /// The row of a command buffer, for instances set in it.
    CommandBuffer(u32),
    /// The queue that ran the work, for instances whose times are of the device.
    Queue(QueueId),
    /// The queue that work was submitted to, for instances whose times are of the host.
    HostQueue(QueueId),
    Thread(ProcessId, Option<ThreadId>),
    Process(ProcessId),
    /// The process of a thread whose instance it is: another thread of the process may launch the work of the label.
    OtherThread(ProcessId),
    /// The row of a submission, for instances in its command buffers.
    Submission(u32),
}

/// The instances of labels, and the labels inside them.
pub(super) struct Instances<'t> {
    timeline: &'t Timeline<'t>,
    tree: &'t LabelTree<'t>,
    /// For each label, the side that it belongs to, and the outermost label around it that belongs to the same side;
    /// `None` for labels of no side.
    roots: Vec<Option<(usize, u32)>>,
    /// The index here is the number of an instance.
    pub all: Vec<Instance>,
    /// When the instances of a label, given by its index in the tree, were open at each place.
    spans: HashMap<(u32, InstanceKey), Spans>,
}

impl<'t> Instances<'t> {
    /// Finds the instances of labels. `side` returns the side that begins with a label.
    pub(super) fn new(
        timeline: &'t Timeline<'t>,
        tree: &'t LabelTree<'t>,
        side: &dyn Fn(usize) -> Option<usize>,
    ) -> Instances<'t> {
        let mut roots: Vec<Option<(usize, u32)>> = Vec::with_capacity(tree.count());
        for node in 0..tree.count() {
            let around = tree.parent(node).and_then(|parent| roots[parent]);
            roots.push(match (side(node), around) {
                // A label inside another of the same side is part of the outer label's instance.
                (Some(side), Some((outer, _))) if side == outer => around,
                (Some(side), _) => Some((side, node as u32)),
                (None, around) => around,
            });
        }
        let mut instances = Instances {
            timeline,
            tree,
            roots,
            all: Vec::new(),
            spans: HashMap::new(),
        };
        instances.find();
        instances
    }

    /// Fills `all` and `spans` from the table of markers, each row of which is an instance of a label.
    fn find(&mut self) {
        let timeline = self.timeline;
        let markers = &timeline.trace.tables.markers;
        // Markers without scopes can only be counted.
        let scope_of = |row: usize| markers.scope.get(row).copied();
        let root_of = |row: usize| {
            let node = self.tree.node(Some(markers.label[row]));
            let (side, root) = (*self.roots.get(node as usize)?)?;
            (root == node).then_some((side, node))
        };
        // The same label may be set on the host and in command buffers. The latter count, being around the work itself.
        let mut in_command_buffers = vec![false; self.tree.count()];
        for row in 0..markers.label.len() {
            if let Some((_, node)) = root_of(row) {
                in_command_buffers[node as usize] |=
                    scope_of(row) == Some(MarkerScope::CommandBuffer);
            }
        }
        let mut all = Vec::new();
        let mut spans: HashMap<(u32, InstanceKey), Spans> = HashMap::new();
        for row in 0..markers.label.len() {
            let Some((side, node)) = root_of(row) else {
                continue;
            };
            let scope = scope_of(row);
            let inside = scope == Some(MarkerScope::CommandBuffer);
            let start_ns = markers.start_ns.get(row);
            let duration_ns = markers.duration_ns.get(row);
            // An instant on the host holds nothing.
            let instant = !inside && duration_ns == Some(0);
            if inside != in_command_buffers[node as usize] || instant {
                continue;
            }
            let number = all.len() as u32;
            all.push(Instance {
                side,
                node,
                is_command_buffer: false,
                host_start_ns: start_ns.filter(|_| !inside),
                unfinished: scope.is_some() && !inside && duration_ns.is_none(),
            });
            let Some(scope) = scope else { continue };
            let span = Span {
                start_ns: start_ns.unwrap_or(i64::MIN),
                end_ns: Interval::from_row(start_ns, duration_ns)
                    .map_or(i64::MAX, |span| span.end_ns),
                instance: number,
            };
            let mut add = |key: InstanceKey| spans.entry((node, key)).or_default().push(span);
            let queue = markers.queue.get(row);
            let process = markers.process[row];
            match scope {
                MarkerScope::CommandBuffer => {
                    let id = markers.command_buffer.get(row);
                    let row = id.map_or(NONE, |id| timeline.command_buffer_ids.row(id));
                    if let Some(times) = timeline.command_buffers.get(row as usize) {
                        add(InstanceKey::CommandBuffer(row));
                        if times.submission != NONE {
                            add(InstanceKey::Submission(times.submission));
                        }
                    }
                    if let Some(queue) = queue.filter(|_| start_ns.is_some()) {
                        add(InstanceKey::Queue(queue));
                    }
                }
                MarkerScope::Queue => {
                    if let Some(queue) = queue {
                        add(InstanceKey::HostQueue(queue));
                    }
                }
                MarkerScope::Thread => {
                    add(InstanceKey::Thread(process, markers.thread.get(row)));
                    add(InstanceKey::OtherThread(process));
                }
                MarkerScope::Process => add(InstanceKey::Process(process)),
                MarkerScope::Unknown => {}
            }
        }
        (self.all, self.spans) = (all, spans);
        if timeline.trace.manifest.sampling_mode == SamplingMode::Pass {
            self.find_command_buffers();
        }
        self.spans.values_mut().for_each(Spans::sort);
    }

    /// Adds command buffers as instances of their labels, where the labels have no others: traces of Instruments have labels of
    /// command buffers, and no instances of these.
    fn find_command_buffers(&mut self) {
        let timeline = self.timeline;
        let mut is_marked = vec![false; self.tree.count()];
        for instance in &self.all {
            is_marked[instance.node as usize] = true;
        }
        for row in 0..timeline.command_buffers.len() {
            let Some((side, node)) = self.root(&WorkPlace::from_command_buffer(timeline, row))
            else {
                continue;
            };
            if is_marked[node as usize] {
                continue;
            }
            let span = Span {
                start_ns: i64::MIN,
                end_ns: i64::MAX,
                instance: self.all.len() as u32,
            };
            let key = InstanceKey::CommandBuffer(row as u32);
            self.spans.entry((node, key)).or_default().push(span);
            self.all.push(Instance {
                side,
                node,
                is_command_buffer: true,
                host_start_ns: None,
                unfinished: false,
            });
        }
    }

    /// Returns the side of the work at a place, and the outermost label of that side around it.
    #[inline]
    fn root(&self, place: &WorkPlace) -> Option<(usize, u32)> {
        let node = self.tree.node_of_row(place.label) as usize;
        *self.roots.get(node)?
    }

    #[inline]
    fn side(&self, place: &WorkPlace) -> Option<usize> {
        Some(self.root(place)?.0)
    }

    /// Returns the side that begins with a label, or that goes on in it.
    pub(super) fn side_at(&self, node: usize) -> Option<usize> {
        Some((*self.roots.get(node)?)?.0)
    }

    /// Returns the spans of the labels of a side that threads of a process set.
    fn of_threads(&self, side: usize, process: ProcessId) -> impl Iterator<Item = &Spans> {
        let roots = self
            .roots
            .iter()
            .zip(0..)
            .filter(move |(root, node)| **root == Some((side, *node)));
        roots
            .filter_map(move |(_, node)| self.spans.get(&(node, InstanceKey::OtherThread(process))))
    }

    /// Returns true where a thread of a process was in a label of a side at a moment.
    pub(super) fn is_open(&self, side: usize, process: ProcessId, at_ns: i64) -> bool {
        self.of_threads(side, process)
            .any(|spans| spans.is_open(at_ns))
    }

    /// Returns when threads of a process were in labels of a side.
    pub(super) fn open(&self, side: usize, process: ProcessId) -> impl Iterator<Item = Interval> {
        let spans = self
            .of_threads(side, process)
            .flat_map(|spans| &spans.spans);
        spans.map(|span| Interval::new(span.start_ns, span.end_ns))
    }

    /// Puts the instances that a piece of work may lie in into `candidates`: those of the first kind of place that
    /// has any, from the work's command buffer to its submission.
    pub(super) fn find_at(&self, place: &WorkPlace, candidates: &mut Vec<u32>) {
        candidates.clear();
        let Some((_, root)) = self.root(place) else {
            return;
        };
        let queue = self.timeline.queues.get(place.queue as usize);
        let rows = &self.timeline.trace.tables.submissions;
        let submission = place.submission as usize;
        let called_ns = rows.start_ns.get(submission).copied();
        let process = rows.process.get(submission);
        let caller = process.map(|process| (process, rows.thread.get(submission)));
        let keys = [
            Some((
                InstanceKey::CommandBuffer(place.command_buffer),
                place.start_ns,
            )),
            queue.map(|queue| (InstanceKey::Queue(queue.id), place.start_ns)),
            caller.map(|(process, thread)| (InstanceKey::Thread(*process, thread), called_ns)),
            queue.map(|queue| (InstanceKey::HostQueue(queue.id), called_ns)),
            caller.map(|(process, _)| (InstanceKey::Process(*process), called_ns)),
            caller.map(|(process, _)| (InstanceKey::OtherThread(*process), called_ns)),
            // The label may have begun in an earlier command buffer, without times.
            Some((InstanceKey::Submission(place.submission), None)),
        ];
        for (key, at_ns) in keys.into_iter().flatten() {
            let needs_time = !matches!(
                key,
                InstanceKey::CommandBuffer(_) | InstanceKey::Submission(_)
            );
            if needs_time && at_ns.is_none() {
                continue;
            }
            if let Some(spans) = self.spans.get(&(root, key)) {
                spans.at(at_ns, candidates);
                if !candidates.is_empty() {
                    return;
                }
            }
        }
    }
}

/// The time of an instance at one place. An unknown start is the least number, an unknown end the greatest.
#[derive(Debug, Clone, Copy)]
struct Span {
    start_ns: i64,
    end_ns: i64,
    /// The instance's index in [`Instances::all`].
    instance: u32,
}

/// The times of instances, in order of start.
#[derive(Debug, Default)]
struct Spans {
    spans: Vec<Span>,
    /// For each span, the latest end of it and all spans before it.
    latest: Vec<i64>,
}

impl Spans {
    fn push(&mut self, span: Span) {
        self.spans.push(span);
    }

    /// Sorts the spans and computes `latest`, without which [`Spans::at`] finds nothing.
    fn sort(&mut self) {
        self.spans.sort_by_key(|span| (span.start_ns, span.end_ns));
        let mut latest = i64::MIN;
        let ends = self.spans.iter().map(|span| {
            latest = latest.max(span.end_ns);
            latest
        });
        self.latest = ends.collect();
    }

    /// Returns true where an instance is open at a moment.
    fn is_open(&self, at_ns: i64) -> bool {
        let after = self.spans.partition_point(|span| span.start_ns <= at_ns);
        after
            .checked_sub(1)
            .is_some_and(|last| self.latest[last] > at_ns)
    }

    /// Adds the instances at a moment to `candidates`, or all where the moment is not known.
    fn at(&self, at_ns: Option<i64>, candidates: &mut Vec<u32>) {
        let Some(at_ns) = at_ns else {
            return candidates.extend(self.spans.iter().map(|span| span.instance));
        };
        let after = self.spans.partition_point(|span| span.start_ns <= at_ns);
        let mut touching = false;
        for at in (0..after).rev().take_while(|at| self.latest[*at] >= at_ns) {
            let span = self.spans[at];
            // Work that begins at the end of one instance and the start of another belongs to the other.
            if span.end_ns > at_ns || span.start_ns == at_ns {
                if touching {
                    candidates.clear();
                    touching = false;
                }
                candidates.push(span.instance);
            } else if span.end_ns == at_ns && candidates.is_empty() {
                touching = true;
                candidates.push(span.instance);
            }
        }
    }
}
