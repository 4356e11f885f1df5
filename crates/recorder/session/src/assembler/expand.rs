//! From a finished instance to rows.

use super::instance::Instance;
use super::kernels::Kernels;
use super::labels::Labels;
use super::ledger::Ledger;
use super::placement::{Placement, REASONS, REASONS_IN_ORDER, Unknown};
use super::recording::{Recording, Step};
use super::spans::{Spans, join};
use gapscope_spool::event::{NO_QUERY, NO_TICKS, OpaqueWorkKind};
use gapscope_spool::ids as hook;
use gapscope_trace::tables::{
    self, Barrier, CommandBuffer, Marker, MarkerScope, OpaqueWorkRow, Table, Tables, Timing,
};
use rustc_hash::FxHashMap;

/// The recording of a command buffer that was recorded while recording was off.
const NOT_RECORDED: hook::Recording = hook::Recording::NONE;

/// Secondary recordings nest at most so deep; a deeper one is a damaged spool.
const DEEPEST: u32 = 8;

/// Expands one instance.
pub struct Expansion<'a> {
    pub instance: &'a Instance,
    pub recordings: &'a FxHashMap<hook::Recording, Recording>,
    pub placement: Option<Placement<'a>>,
    /// Why the instance has no times, where it has none.
    pub reason: &'static str,
    pub timing: Timing,
    /// Inner times are wanted: the mode is not `command-buffer`.
    pub sampled: bool,
    pub kernels: &'a mut Kernels,
    pub labels: &'a mut Labels,
    pub spans: &'a mut Spans,
    pub ledger: &'a mut Ledger,
    pub tables: &'a mut Tables,
    pub state: State,
}

/// What changes from command to command.
#[derive(Default)]
pub struct State {
    position: u32,
    dispatches: u32,
    transfers: u32,
    open: Vec<OpenLabel>,
    top_level: TopLevel,
    /// Rows of instants that wait for the next timed command.
    instants: Vec<usize>,
    lost: [[u64; REASONS]; 4],
}

/// A label that is open in the command buffer, with the hull of what was timed inside it.
struct OpenLabel {
    label: u32,
    text: u32,
    hull: Option<(i64, i64)>,
    /// It spans several command buffers.
    span: Option<u32>,
}

/// The labels of the outermost level.
#[derive(Default, Clone, Copy)]
enum TopLevel {
    #[default]
    None,
    Only(u32),
    Several,
}

/// What a lost time was of.
#[derive(Clone, Copy)]
#[repr(usize)]
enum Work {
    CommandBuffer,
    Dispatch,
    Transfer,
    Opaque,
}

const WORK: [&str; 4] = [
    "command-buffer times",
    "dispatch times",
    "transfer times",
    "opaque-work times",
];

impl Expansion<'_> {
    /// Appends all rows of the instance. Returns the number of dispatches and the command buffer's interval.
    pub fn run(mut self) -> (u32, Option<(i64, i64)>) {
        let recording = self.recordings.get(&self.instance.recording);
        let around = self.inherit();
        let own = match recording {
            Some(recording) => {
                let whole = self.whole(recording);
                self.reserve(recording);
                self.steps(
                    recording,
                    self.instance.ticks(self.instance.recording),
                    0,
                    false,
                );
                whole
            }
            None => {
                let never = self.instance.recording == NOT_RECORDED;
                let reason = if never {
                    self.reason
                } else {
                    Unknown::NotRecorded.reason("")
                };
                self.ledger.add("command buffers' contents", 1, reason);
                let unknown = if never {
                    Unknown::Instance
                } else {
                    Unknown::NotRecorded
                };
                self.bracketed().unwrap_or(Err(unknown))
            }
        };
        self.leave_open();
        let interval = self.count(Work::CommandBuffer, own, true);
        if interval.is_none() && self.timing == Timing::Measured {
            self.timing = Timing::Unknown;
        }
        let only_label = match self.state.top_level {
            TopLevel::Only(label) => Some(label),
            _ => None,
        };
        self.tables.command_buffers.push(CommandBuffer {
            id: self.instance.command_buffer,
            process: self.instance.process,
            queue: self.instance.queue,
            submission: self.instance.submission,
            start_ns: interval.map(|i| i.0),
            duration_ns: interval.map(|i| i.1),
            seen_ns: self.instance.seen_ns,
            timing: self.timing,
            dispatches: self.state.dispatches,
            transfers: self.state.transfers,
            label: self.instance.label.or(around).or(only_label),
            name: recording.and_then(|r| r.name.clone()),
        });
        for (work, reasons) in self.state.lost.iter().enumerate() {
            for (unknown, count) in REASONS_IN_ORDER.iter().zip(reasons) {
                self.ledger
                    .add(WORK[work], *count, unknown.reason(self.reason));
            }
        }
        (self.state.dispatches, interval)
    }

    fn bracketed(&mut self) -> Option<Result<(i64, i64), Unknown>> {
        let (begin, end) = self.instance.bracket?;
        self.placement.as_mut().map(|p| p.interval(begin, end))
    }

    /// The interval of the command buffer as a whole.
    fn whole(&mut self, recording: &Recording) -> Result<(i64, i64), Unknown> {
        if let Some(whole) = self.bracketed() {
            return whole;
        }
        let ticks = self.instance.ticks(self.instance.recording);
        self.interval(ticks, recording.begin_query, recording.end_query)
    }

    fn reserve(&mut self, recording: &Recording) {
        let dispatches = &mut self.tables.dispatches;
        let more = recording.steps.len();
        // `reserve` would at worst double a small table; expanding many small instances must not.
        if dispatches.command_buffer.capacity() - dispatches.command_buffer.len() < more {
            dispatches.command_buffer.reserve(more);
        }
    }

    /// The interval between two queries.
    #[inline]
    fn interval(&mut self, ticks: &[u64], begin: u32, end: u32) -> Result<(i64, i64), Unknown> {
        let Some(placement) = &mut self.placement else {
            return Err(Unknown::Instance);
        };
        if begin == NO_QUERY || end == NO_QUERY {
            return Err(Unknown::NotTimed);
        }
        let tick = |query: u32| ticks.get(query as usize).copied().unwrap_or(NO_TICKS);
        placement.interval(tick(begin), tick(end))
    }

    /// Counts an unknown time.
    #[inline]
    fn count(
        &mut self,
        work: Work,
        time: Result<(i64, i64), Unknown>,
        wanted: bool,
    ) -> Option<(i64, i64)> {
        match time {
            Ok(interval) => Some(interval),
            Err(unknown) => {
                if wanted {
                    self.state.lost[work as usize][unknown as usize] += 1;
                }
                None
            }
        }
    }

    /// Something inside the command buffer was timed.
    #[inline]
    fn timed(&mut self, interval: Option<(i64, i64)>) {
        let Some((start, duration)) = interval else {
            return;
        };
        if let Some(open) = self.state.open.last_mut() {
            open.hull = Some(join(open.hull, (start, start + duration)));
        }
        for row in self.state.instants.drain(..) {
            self.tables.markers.start_ns[row] = Some(start);
        }
    }

    /// The rows of a recording. `untimed`: it was timed as a whole by what executes it.
    fn steps(&mut self, recording: &Recording, ticks: &[u64], depth: u32, untimed: bool) {
        let mut opaque: Option<(u32, OpaqueWorkKind)> = None;
        let executions = &recording.secondaries;
        // Only a primary one ends labels that others began.
        let base = if depth == 0 { 0 } else { self.state.open.len() };
        for step in &recording.steps {
            match *step {
                Step::Begin { .. } | Step::End { .. } => {}
                Step::Dispatch {
                    query,
                    kernel,
                    bindings,
                    groups,
                } => {
                    let time = self.step_time(ticks, query, untimed);
                    let interval = self.count(Work::Dispatch, time, self.sampled);
                    self.timed(interval);
                    let label = self.state.open.last().map(|o| (o.label, o.text));
                    self.kernels.dispatched(kernel, label.map(|l| l.1));
                    let [x, y, z] = groups.map_or([None; 3], |g| g.map(Some));
                    let rows = &mut self.tables.dispatches;
                    rows.command_buffer.push(Some(self.instance.command_buffer));
                    rows.position.push(self.state.position);
                    rows.queue.push(self.instance.queue);
                    rows.kernel.push(kernel);
                    rows.start_ns.push(interval.map(|i| i.0));
                    rows.duration_ns.push(interval.map(|i| i.1));
                    rows.groups_x.push(x);
                    rows.groups_y.push(y);
                    rows.groups_z.push(z);
                    rows.bindings.push(bindings);
                    rows.label.push(label.map(|l| l.0));
                    rows.submission.push(None);
                    self.state.position += 1;
                    self.state.dispatches += 1;
                }
                Step::Transfer {
                    query,
                    kind,
                    bytes,
                    source,
                    destination,
                } => {
                    let time = self.step_time(ticks, query, untimed);
                    let interval = self.count(Work::Transfer, time, self.sampled);
                    self.timed(interval);
                    let rows = &mut self.tables.transfers;
                    rows.command_buffer.push(Some(self.instance.command_buffer));
                    rows.position.push(self.state.position);
                    rows.queue.push(self.instance.queue);
                    rows.kind.push(tables::TransferKind::of(kind.as_str()));
                    rows.bytes.push(bytes);
                    rows.start_ns.push(interval.map(|i| i.0));
                    rows.duration_ns.push(interval.map(|i| i.1));
                    rows.source.push(source);
                    rows.destination.push(destination);
                    rows.label.push(self.state.open.last().map(|o| o.label));
                    rows.submission.push(None);
                    rows.host_memory.push(None);
                    self.state.position += 1;
                    self.state.transfers += 1;
                }
                Step::Barrier {
                    source_stages,
                    destination_stages,
                } => {
                    self.tables.barriers.push(Barrier {
                        command_buffer: self.instance.command_buffer,
                        position: self.state.position,
                        source_stages,
                        destination_stages,
                    });
                    self.state.position += 1;
                }
                Step::LabelBegin { text } => self.begin_label(text),
                Step::LabelEnd => {
                    if self.state.open.len() > base {
                        self.end_label();
                    }
                }
                Step::LabelInstant { text } => self.instant(text),
                Step::Execute { query, recording } => {
                    // The second execution of an instance overwrites the timestamps of the first.
                    let overwritten = executions.get(&recording).is_some_and(|n| *n > 1);
                    self.execute(ticks, query, recording, depth, untimed, overwritten);
                }
                Step::OpaqueBegin { query, kind } => opaque = Some((query, kind)),
                Step::OpaqueEnd { query } => {
                    if let Some((begin, kind)) = opaque.take() {
                        let time = if untimed {
                            Err(Unknown::Secondary)
                        } else {
                            self.interval(ticks, begin, query)
                        };
                        self.opaque_work(time, kind);
                    }
                }
            }
        }
        while depth > 0 && self.state.open.len() > base {
            self.end_label();
        }
    }

    #[inline]
    fn step_time(
        &mut self,
        ticks: &[u64],
        query: u32,
        untimed: bool,
    ) -> Result<(i64, i64), Unknown> {
        if self.instance.bracket.is_some() {
            return Err(Unknown::Instance);
        }
        if untimed {
            return Err(Unknown::Secondary);
        }
        let end = if query == NO_QUERY {
            NO_QUERY
        } else {
            query + 1
        };
        self.interval(ticks, query, end)
    }

    fn opaque_work(&mut self, time: Result<(i64, i64), Unknown>, kind: OpaqueWorkKind) {
        let interval = self.count(Work::Opaque, time, self.sampled);
        self.timed(interval);
        self.tables.opaque_work.push(OpaqueWorkRow {
            command_buffer: Some(self.instance.command_buffer),
            position: self.state.position,
            queue: self.instance.queue,
            kind: tables::OpaqueWorkKind::of(kind.as_str()),
            start_ns: interval.map(|i| i.0),
            duration_ns: interval.map(|i| i.1),
            label: self.state.open.last().map(|o| o.label),
            submission: None,
        });
        self.state.position += 1;
    }

    /// A secondary recording: its own rows, and one for the whole where that is all that was timed.
    fn execute(
        &mut self,
        ticks: &[u64],
        query: u32,
        recording: hook::Recording,
        depth: u32,
        untimed: bool,
        overwritten: bool,
    ) {
        if query != NO_QUERY && !untimed {
            let time = self.interval(ticks, query, query + 1);
            self.opaque_work(time, OpaqueWorkKind::Other);
        }
        let known = self.recordings.get(&recording).filter(|_| depth < DEEPEST);
        let Some(secondary) = known else {
            let reason = "the record of their commands is missing";
            self.ledger
                .add("secondary command buffers' contents", 1, reason);
            return;
        };
        let instance = self.instance;
        let own = instance.ticks(recording);
        self.steps(
            secondary,
            own,
            depth + 1,
            untimed || overwritten || query != NO_QUERY,
        );
    }

    /// Opens the labels that were open before. Gives the innermost.
    fn inherit(&mut self) -> Option<u32> {
        for id in &self.instance.spanning.inherited {
            if let Some(span) = self.spans.get(*id) {
                self.state.open.push(OpenLabel {
                    label: span.label,
                    text: span.text,
                    hull: None,
                    span: Some(*id),
                });
            }
        }
        self.state.open.last().map(|o| o.label)
    }

    /// Ends the command buffer's share of the labels that are open behind it, and those that nobody ends.
    fn leave_open(&mut self) {
        let left_open = &self.instance.spanning.left_open;
        let own = self.state.open.iter_mut().filter(|o| o.span.is_none());
        for (open, id) in own.zip(left_open) {
            open.span = Some(*id);
        }
        while !self.state.open.is_empty() {
            self.end_label();
        }
    }

    fn begin_label(&mut self, text: u32) {
        let around = self.state.open.last().map(|o| o.label);
        // What is said around the submission is said around all that is in it.
        let parent = around.or(self.instance.label);
        let label = self.labels.label(parent, text);
        if around.is_none() {
            self.state.top_level = match self.state.top_level {
                TopLevel::None => TopLevel::Only(label),
                TopLevel::Only(only) if only == label => TopLevel::Only(label),
                _ => TopLevel::Several,
            };
        }
        self.state.open.push(OpenLabel {
            label,
            text,
            hull: None,
            span: None,
        });
    }

    fn end_label(&mut self) {
        let Some(ended) = self.state.open.pop() else {
            return;
        };
        if let (Some(inner), Some(outer)) = (ended.hull, self.state.open.last_mut()) {
            outer.hull = Some(join(outer.hull, inner));
        }
        match ended.span {
            None => self.marker(ended.label, self.instance.command_buffer, ended.hull),
            Some(id) => {
                if let Some(span) = self.spans.expanded(id, ended.hull) {
                    self.marker(span.label, span.command_buffer, span.hull);
                }
            }
        }
    }

    fn instant(&mut self, text: u32) {
        let parent = self.state.open.last().map(|o| o.label);
        let label = self.labels.label(parent, text);
        let row = self.tables.markers.len();
        self.marker(label, self.instance.command_buffer, None);
        self.tables.markers.duration_ns[row] = Some(0);
        self.state.instants.push(row);
    }

    fn marker(&mut self, label: u32, command_buffer: u64, hull: Option<(i64, i64)>) {
        let (process, queue) = (self.instance.process, self.instance.queue);
        label_marker(process, queue, label, command_buffer, hull, self.tables);
    }
}

/// The row of a label in command buffers.
pub fn label_marker(
    process: u32,
    queue: u32,
    label: u32,
    command_buffer: u64,
    hull: Option<(i64, i64)>,
    tables: &mut Tables,
) {
    tables.markers.push(Marker {
        process,
        scope: MarkerScope::CommandBuffer,
        label,
        queue: Some(queue),
        thread: None,
        command_buffer: Some(command_buffer),
        start_ns: hull.map(|h| h.0),
        duration_ns: hull.map(|h| h.1 - h.0),
        ..Marker::default()
    });
}
