//! What of a trace a side of a comparison is made of, and in which evaluation each piece of it lies.
//!
//! An evaluation is an instance of a label. A piece of work lies in the instance that was set in its command buffer; where
//! that began in an earlier one, in the instance that ran on its queue when the piece began; where it was set on the host, in
//! the one that was open on the thread, or queue, when the piece was submitted. A piece that may lie in several makes all of these
//! unclear, and they are left out.

use super::place::Place;
use crate::intervals::Interval;
use crate::labels::LabelTree;
use crate::timeline::Timeline;
use gapscope_trace::ids::{ProcessId, QueueId, ThreadId};
use gapscope_trace::lookup::NONE;
use gapscope_trace::manifest::SamplingMode;
use gapscope_trace::tables::MarkerScope;
use std::collections::HashMap;

/// What of a trace is measured.
pub(super) enum Extent<'t> {
    All,
    /// What starts in it.
    Window(Interval),
    Labels(Instances<'t>),
}

impl Extent<'_> {
    /// The side that a piece belongs to.
    #[inline]
    pub(super) fn side(&self, place: &Place) -> Option<usize> {
        match self {
            Extent::All => Some(0),
            Extent::Window(window) => {
                let inside = place.start_ns.is_some_and(|ns| window.contains(ns));
                inside.then_some(0)
            }
            Extent::Labels(instances) => instances.side(place),
        }
    }

    /// The labels' instances; none without labels.
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
    pub side: usize,
    /// Its label.
    pub node: u32,
    /// It is a command buffer with that label: passes have no other instances.
    pub is_command_buffer: bool,
    /// When the host set the label, where it did.
    pub host_start_ns: Option<i64>,
    /// Its end was not recorded.
    pub unfinished: bool,
}

/// Where the instances of a label are looked for.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
enum Key {
    CommandBuffer(u32),
    /// By times of the device.
    Queue(QueueId),
    /// By times of the host.
    HostQueue(QueueId),
    Thread(ProcessId, Option<ThreadId>),
    Process(ProcessId),
    Submission(u32),
}

/// The instances of labels, and the labels inside them.
pub(super) struct Instances<'t> {
    timeline: &'t Timeline<'t>,
    tree: &'t LabelTree<'t>,
    /// By label: the side that it belongs to, and the outermost label around it that does too.
    roots: Vec<Option<(usize, u32)>>,
    pub all: Vec<Instance>,
    found: HashMap<(u32, Key), Spans>,
}

impl<'t> Instances<'t> {
    /// `own` says of a label which side begins with it.
    pub(super) fn of(
        timeline: &'t Timeline<'t>,
        tree: &'t LabelTree<'t>,
        own: &dyn Fn(usize) -> Option<usize>,
    ) -> Instances<'t> {
        let mut roots: Vec<Option<(usize, u32)>> = Vec::with_capacity(tree.len());
        for node in 0..tree.len() {
            let around = tree.parent(node).and_then(|parent| roots[parent]);
            roots.push(match (own(node), around) {
                // A label inside another of its side is part of that one's instance.
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
            found: HashMap::new(),
        };
        instances.find();
        instances
    }

    fn find(&mut self) {
        let timeline = self.timeline;
        let markers = &timeline.trace.tables.markers;
        // Without their scopes the markers can only be counted.
        let scope_of = |row: usize| markers.scope.get(row).copied();
        let root_of = |row: usize| {
            let node = self.tree.node(Some(markers.label[row]));
            let (side, root) = (*self.roots.get(node as usize)?)?;
            (root == node).then_some((side, node))
        };
        // The same label may be set on the host and in command buffers: there it is around the work itself.
        let mut in_command_buffers = vec![false; self.tree.len()];
        for row in 0..markers.label.len() {
            if let Some((_, node)) = root_of(row) {
                in_command_buffers[node as usize] |=
                    scope_of(row) == Some(MarkerScope::CommandBuffer);
            }
        }
        let mut all = Vec::new();
        let mut found: HashMap<(u32, Key), Spans> = HashMap::new();
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
                end_ns: Interval::of_row(start_ns, duration_ns)
                    .map_or(i64::MAX, |span| span.end_ns),
                instance: number,
            };
            let mut add = |key: Key| found.entry((node, key)).or_default().push(span);
            let queue = markers.queue.get(row);
            let process = markers.process[row];
            match scope {
                MarkerScope::CommandBuffer => {
                    let id = markers.command_buffer.get(row);
                    let row = id.map_or(NONE, |id| timeline.command_buffer_ids.row(id));
                    if let Some(times) = timeline.command_buffers.get(row as usize) {
                        add(Key::CommandBuffer(row));
                        if times.submission != NONE {
                            add(Key::Submission(times.submission));
                        }
                    }
                    if let Some(queue) = queue.filter(|_| start_ns.is_some()) {
                        add(Key::Queue(queue));
                    }
                }
                MarkerScope::Queue => {
                    if let Some(queue) = queue {
                        add(Key::HostQueue(queue));
                    }
                }
                MarkerScope::Thread => add(Key::Thread(process, markers.thread.get(row))),
                MarkerScope::Process => add(Key::Process(process)),
                MarkerScope::Unknown => {}
            }
        }
        (self.all, self.found) = (all, found);
        if timeline.trace.manifest.sampling_mode == SamplingMode::Pass {
            self.find_command_buffers();
        }
        self.found.values_mut().for_each(Spans::sort);
    }

    /// Instruments has labels of command buffers, and no instances of these.
    fn find_command_buffers(&mut self) {
        let timeline = self.timeline;
        let mut is_marked = vec![false; self.tree.len()];
        for instance in &self.all {
            is_marked[instance.node as usize] = true;
        }
        for row in 0..timeline.command_buffers.len() {
            let Some((side, node)) = self.root(&Place::of_command_buffer(timeline, row)) else {
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
            let key = Key::CommandBuffer(row as u32);
            self.found.entry((node, key)).or_default().push(span);
            self.all.push(Instance {
                side,
                node,
                is_command_buffer: true,
                host_start_ns: None,
                unfinished: false,
            });
        }
    }

    #[inline]
    fn root(&self, place: &Place) -> Option<(usize, u32)> {
        let node = self.tree.node_of_row(place.label) as usize;
        *self.roots.get(node)?
    }

    #[inline]
    fn side(&self, place: &Place) -> Option<usize> {
        Some(self.root(place)?.0)
    }

    /// The instances that a piece may lie in, into `candidates`.
    pub(super) fn of_place(&self, place: &Place, candidates: &mut Vec<u32>) {
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
            Some((Key::CommandBuffer(place.command_buffer), place.start_ns)),
            queue.map(|queue| (Key::Queue(queue.id), place.start_ns)),
            caller.map(|(process, thread)| (Key::Thread(*process, thread), called_ns)),
            queue.map(|queue| (Key::HostQueue(queue.id), called_ns)),
            caller.map(|(process, _)| (Key::Process(*process), called_ns)),
            // What began in an earlier command buffer, without times.
            Some((Key::Submission(place.submission), None)),
        ];
        for (key, at_ns) in keys.into_iter().flatten() {
            let needs_time = !matches!(key, Key::CommandBuffer(_) | Key::Submission(_));
            if needs_time && at_ns.is_none() {
                continue;
            }
            if let Some(spans) = self.found.get(&(root, key)) {
                spans.at(at_ns, candidates);
                if !candidates.is_empty() {
                    return;
                }
            }
        }
    }
}

/// When an instance was.
#[derive(Debug, Clone, Copy)]
struct Span {
    start_ns: i64,
    end_ns: i64,
    instance: u32,
}

/// Instances in order of start.
#[derive(Debug, Default)]
struct Spans {
    spans: Vec<Span>,
    /// The latest end so far, by span.
    latest: Vec<i64>,
}

impl Spans {
    fn push(&mut self, span: Span) {
        self.spans.push(span);
    }

    fn sort(&mut self) {
        self.spans.sort_by_key(|span| (span.start_ns, span.end_ns));
        let mut latest = i64::MIN;
        let ends = self.spans.iter().map(|span| {
            latest = latest.max(span.end_ns);
            latest
        });
        self.latest = ends.collect();
    }

    /// The instances at a moment; all where it is not known.
    fn at(&self, at_ns: Option<i64>, candidates: &mut Vec<u32>) {
        let Some(at_ns) = at_ns else {
            return candidates.extend(self.spans.iter().map(|span| span.instance));
        };
        let after = self.spans.partition_point(|span| span.start_ns <= at_ns);
        let mut touching = false;
        for at in (0..after).rev().take_while(|at| self.latest[*at] >= at_ns) {
            let span = self.spans[at];
            // What begins where one ends and another begins is the other's.
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
