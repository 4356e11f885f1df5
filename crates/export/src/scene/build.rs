//! Makes the scene of a trace.

use super::groups::{self, Pids};
use super::owners::{QueueSlices, SlicesByOwner, ThreadKey};
use super::{Scene, counters, gaps};
use crate::Rows;
use crate::details::Names;
use crate::slice::{Kind, Slice};
use gapscope_analysis::Timeline;
use gapscope_analysis::code::Stacks;
use gapscope_analysis::intervals::Interval;
use gapscope_analysis::vocabulary::Vocabulary;
use gapscope_trace::Trace;
use gapscope_trace::ids::{CommandBufferId, ProcessId, QueueId, SubmissionId, ThreadId};
use gapscope_trace::lookup::IdIndex;
use gapscope_trace::tables::{HostCallKind, MarkerScope, Table};
use rustc_hash::FxHashMap;

/// Where the earliest piece of work of a target is drawn.
#[derive(Debug, Clone, Copy)]
struct First {
    start_ns: i64,
    kind: Kind,
    queue: u32,
    index: u32,
}

/// What launched a piece of work.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct Launch {
    command_buffer: Option<CommandBufferId>,
    submission: Option<SubmissionId>,
}

/// When and where a host call was made.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
struct CallStart {
    process: ProcessId,
    thread: ThreadId,
    start_ns: i64,
}

struct Builder<'a> {
    trace: &'a Trace,
    slices: SlicesByOwner,
    command_buffers: IdIndex<CommandBufferId>,
    submissions: IdIndex<SubmissionId>,
    /// By target: the rows of the command buffers, then those of submissions whose work has no command buffer.
    firsts: Vec<Option<First>>,
    /// By target.
    last_end_ns: Vec<Option<i64>>,
    rows: Vec<Rows>,
}

impl<'a> Scene<'a> {
    pub fn of(trace: &'a Trace) -> Scene<'a> {
        let timeline = Timeline::of(trace);
        let names = Vocabulary::of(&trace.manifest);
        let tables = &trace.tables;
        let targets = tables.command_buffers.len() + tables.submissions.len();
        let mut builder = Builder {
            trace,
            slices: SlicesByOwner::new(trace),
            command_buffers: IdIndex::new(&trace.tables.command_buffers.id),
            submissions: IdIndex::new(&trace.tables.submissions.id),
            firsts: vec![None; targets],
            last_end_ns: vec![None; targets],
            rows: Vec::new(),
        };
        builder.draw_work();
        builder.draw_host();
        builder.draw_markers();
        let flows = builder.link();
        builder.count_submissions();
        builder.count_counter_values();
        let (origin_ns, end_ns) = builder.times();

        let mut pids = Pids::of(trace);
        let slices = &mut builder.slices;
        let mut groups = groups::processes(trace, &names, slices, &mut pids);
        let mut gpus = groups::gpus(&timeline, &names, slices, &mut pids);
        let gap_rows = gaps::draw(&timeline, &mut gpus);
        let mut host = groups::host(&mut pids);
        counters::add(&timeline, &names, &mut gpus, &mut host);
        groups.append(&mut gpus);
        groups.push(host);
        groups.retain(|group| {
            !(group.tracks.is_empty() && group.counters.is_empty() && group.samples.is_empty())
        });
        Scene {
            trace,
            names: Names::of(trace),
            groups,
            gaps: gap_rows,
            stacks: Stacks::of(tables),
            flows,
            origin_ns,
            end_ns,
            rows: builder.rows,
            command_buffers: builder.command_buffers,
        }
    }
}

impl Builder<'_> {
    fn draw_work(&mut self) {
        let tables = &self.trace.tables;
        macro_rules! draw {
            ($table:ident, $kind:expr) => {{
                let table = &tables.$table;
                let (mut drawn, mut last) = (0, None);
                for row in 0..table.len() {
                    let times = Interval::of_row(table.start_ns[row], table.duration_ns[row]);
                    let Some(interval) = times else { continue };
                    drawn += 1;
                    let launch = Launch {
                        command_buffer: table.command_buffer[row],
                        submission: table.submission[row],
                    };
                    // Neighbours are mostly of one launch.
                    let target = match last {
                        Some((same, target)) if same == launch => target,
                        _ => self.target(launch),
                    };
                    last = Some((launch, target));
                    self.draw_one(slice($kind, row, interval), table.queue[row], target);
                }
                self.count(stringify!($table), drawn, table.len());
            }};
        }
        draw!(dispatches, Kind::Dispatch);
        draw!(transfers, Kind::Transfer);
        draw!(opaque_work, Kind::Opaque);

        let table = &tables.command_buffers;
        let mut drawn = 0;
        for row in 0..table.len() {
            let times = Interval::of_row(table.start_ns[row], table.duration_ns[row]);
            let Some(interval) = times else { continue };
            drawn += 1;
            let slice = slice(Kind::CommandBuffer, row, interval);
            self.draw_one(slice, table.queue[row], Some(row));
        }
        self.count("command_buffers", drawn, table.len());
    }

    /// What an arrow to a piece of work points at: its command buffer, or its submission where it has none.
    fn target(&self, launch: Launch) -> Option<usize> {
        let command_buffers = self.trace.tables.command_buffers.len();
        match launch.command_buffer {
            Some(id) => self.command_buffers.get(id),
            None => Some(command_buffers + self.submissions.get(launch.submission?)?),
        }
    }

    /// The row of the submission of a target.
    fn submission_of(&self, target: usize) -> Option<usize> {
        let ids = &self.trace.tables.command_buffers.submission;
        match ids.get(target) {
            Some(id) => self.submissions.get(*id),
            None => Some(target - ids.len()),
        }
    }

    fn draw_one(&mut self, slice: Slice, queue: QueueId, target: Option<usize>) {
        let place = self.slices.queue(queue);
        let slices = slices_of(&mut self.slices.queues[place], slice.kind);
        slices.push(slice);
        let Some(target) = target else {
            return;
        };
        let last = &mut self.last_end_ns[target];
        *last = (*last).max(Some(slice.end_ns));
        let first = &mut self.firsts[target];
        let earlier = match first {
            None => true,
            // An arrow to a dispatch says more than one to the command buffer around it.
            Some(_) if slice.kind == Kind::CommandBuffer => false,
            Some(first) => slice.start_ns < first.start_ns,
        };
        if earlier {
            *first = Some(First {
                start_ns: slice.start_ns,
                kind: slice.kind,
                queue: place as u32,
                index: slices.len() as u32 - 1,
            });
        }
    }

    fn draw_host(&mut self) {
        let table = &self.trace.tables.host_calls;
        let mut drawn = 0;
        for row in 0..table.len() {
            let times = Interval::of_row(Some(table.start_ns[row]), Some(table.duration_ns[row]));
            let Some(interval) = times else { continue };
            drawn += 1;
            let key = ThreadKey {
                process: table.process[row],
                thread: table.thread[row],
            };
            let thread = self.slices.threads.entry(key).or_default();
            thread.calls.push(slice(Kind::HostCall, row, interval));
        }
        self.count("host_calls", drawn, table.len());
    }

    fn draw_markers(&mut self) {
        let table = &self.trace.tables.markers;
        let mut drawn = 0;
        for row in 0..table.len() {
            let times = Interval::of_row(table.start_ns[row], table.duration_ns[row]);
            let Some(interval) = times else { continue };
            drawn += 1;
            let slice = slice(Kind::Marker, row, interval);
            match (table.queue[row], table.scope[row]) {
                (Some(queue), MarkerScope::CommandBuffer) => {
                    let place = self.slices.queue(queue);
                    self.slices.queues[place].labels.push(slice);
                }
                (Some(queue), MarkerScope::Queue) => {
                    let place = self.slices.queue(queue);
                    self.slices.queues[place].host_labels.push(slice);
                }
                _ => {
                    let key = ThreadKey {
                        process: table.process[row],
                        thread: table.thread[row],
                    };
                    let thread = self.slices.threads.entry(key).or_default();
                    thread.labels.push(slice);
                }
            }
        }
        self.count("markers", drawn, table.len());
    }

    /// Links submitting calls with the first work of each of their targets. Gives these targets, in a list for each such
    /// call.
    fn link(&mut self) -> Vec<Vec<u32>> {
        let tables = &self.trace.tables;
        let calls = &tables.host_calls;
        let mut flows: Vec<Vec<u32>> = Vec::new();
        let mut places: FxHashMap<CallStart, u32> = FxHashMap::default();
        for slices in self.slices.threads.values_mut() {
            for slice in &mut slices.calls {
                let row = slice.row as usize;
                if !matches!(
                    calls.call[row],
                    HostCallKind::Submit | HostCallKind::BindSparse | HostCallKind::CopyAndWait
                ) {
                    continue;
                }
                let Some(thread) = calls.thread[row] else {
                    continue;
                };
                let start = CallStart {
                    process: calls.process[row],
                    thread,
                    start_ns: calls.start_ns[row],
                };
                // Of calls that start at one time on one thread, the first gets the arrows.
                places.entry(start).or_insert_with(|| {
                    flows.push(Vec::new());
                    slice.flow = flows.len() as u32;
                    slice.flow - 1
                });
            }
        }
        let s = &tables.submissions;
        for (target, first) in self.firsts.iter().enumerate() {
            let Some(first) = first else { continue };
            let Some(submission) = self.submission_of(target) else {
                continue;
            };
            let start = s.thread[submission].map(|thread| CallStart {
                process: s.process[submission],
                thread,
                start_ns: s.start_ns[submission],
            });
            let Some(place) = start.and_then(|start| places.get(&start)) else {
                continue;
            };
            flows[*place as usize].push(target as u32);
            let queue = &mut self.slices.queues[first.queue as usize];
            slices_of(queue, first.kind)[first.index as usize].flow = target as u32 + 1;
        }
        flows
    }

    /// Counts the submissions whose work has times: those of which the queue depth is.
    fn count_submissions(&mut self) {
        let starts = &self.trace.tables.submissions.start_ns;
        let mut ends: Vec<Option<i64>> = vec![None; starts.len()];
        for (target, end_ns) in self.last_end_ns.iter().enumerate() {
            if let Some(submission) = self.submission_of(target) {
                ends[submission] = ends[submission].max(*end_ns);
            }
        }
        let times = starts.iter().zip(&ends);
        let drawn = times.filter(|(start_ns, end_ns)| end_ns.is_some_and(|ns| ns >= **start_ns));
        self.count("submissions", drawn.count() as u64, ends.len());
    }

    /// Counts the values of recorded counters that can be drawn.
    fn count_counter_values(&mut self) {
        let values = &self.trace.tables.counter_values;
        if !values.value.is_empty() {
            let drawn = values.value.iter().filter(|value| value.is_finite());
            self.count("counter_values", drawn.count() as u64, values.len());
        }
    }

    /// The first and the last time that is drawn or recorded.
    fn times(&self) -> (i64, i64) {
        let queues = self.slices.queues.iter().flat_map(|queue| {
            let QueueSlices {
                id: _,
                work,
                command_buffers,
                labels,
                host_labels,
            } = queue;
            [work, command_buffers, labels, host_labels]
        });
        let threads = self.slices.threads.values();
        let threads = threads.flat_map(|thread| [&thread.calls, &thread.labels]);
        let slices = queues.chain(threads).flatten();
        let slices = slices.map(|slice| (slice.start_ns, slice.end_ns));
        let tables = &self.trace.tables;
        let points = tables.submissions.start_ns.iter();
        let points = points.chain(&tables.memory.at_ns);
        let points = points.chain(&tables.samples.time_ns).map(|ns| (*ns, *ns));
        let values = &tables.counter_values;
        let values = (values.start_ns.iter().zip(&values.duration_ns)).map(|(start_ns, ns)| {
            let end_ns = start_ns.saturating_add(ns.unwrap_or(0).max(0));
            (*start_ns, end_ns)
        });
        let manifest = &self.trace.manifest;
        let recorded = (manifest.start_ns, manifest.start_ns.max(manifest.end_ns));
        let all = slices.chain(points).chain(values);
        all.fold(recorded, |a, b| (a.0.min(b.0), a.1.max(b.1)))
    }

    fn count(&mut self, table: &'static str, drawn: u64, rows: usize) {
        self.rows.push(Rows {
            table,
            drawn,
            without_times: rows as u64 - drawn,
        });
    }
}

fn slices_of(queue: &mut QueueSlices, kind: Kind) -> &mut Vec<Slice> {
    match kind {
        Kind::CommandBuffer => &mut queue.command_buffers,
        _ => &mut queue.work,
    }
}

fn slice(kind: Kind, row: usize, interval: Interval) -> Slice {
    Slice {
        start_ns: interval.start_ns,
        end_ns: interval.end_ns,
        row: row as u32,
        flow: 0,
        kind,
    }
}
