//! Expands a finished instance (a submitted execution of a command recording) into rows: each command of the
//! recording becomes a row with the times that the instance's timestamps give. A query is the index of a timestamp
//! that the hook (gapscope's library in the program) asked the device for.

use super::cross_buffer_labels::{CrossBufferLabelId, CrossBufferLabels};
use super::instance::{Instance, RawInterval};
use super::kernels::Kernels;
use super::markers::{command_buffer_marker, label_marker};
use super::placement::{Placement, REASONS, REASONS_IN_ORDER, UnknownTime};
use super::recording::{QueryPair, Recording, Step};
use gapscope_model::{Ledger, LossKind};
use gapscope_spool::event::{NO_QUERY, NO_TICKS, OpaqueWorkKind, Span};
use gapscope_spool::ids as hook;
use gapscope_timeline_builder::rows::{self, TransferFacts};
use gapscope_timeline_builder::{CoveringSpan, WorkPlace};
use gapscope_trace::build::{Labels, TextId};
use gapscope_trace::ids::LabelId;
use gapscope_trace::tables::{Barrier, CommandBuffer, Marker, MarkerScope, Table, Tables, Timing};
use rustc_hash::FxHashMap;

/// The id of a command buffer that was recorded by the program while gapscope was not recording.
const NOT_RECORDED: hook::CommandRecording = hook::CommandRecording::NONE;

/// The maximum depth of secondary recordings (those that another recording executes); a deeper one means a damaged
/// spool.
const MAX_SECONDARY_DEPTH: u32 = 8;

/// The expansion of one instance.
pub struct Expansion<'a> {
    pub instance: &'a Instance,
    /// The recordings of the process.
    pub recordings: &'a FxHashMap<hook::CommandRecording, Recording>,
    /// The map of the instance's ticks to the host's clock; `None` where the instance has no times.
    pub placement: Option<Placement<'a>>,
    /// The reason why the instance has no times, if it has none.
    pub reason: &'static str,
    pub timing: Timing,
    /// Whether times inside the command buffer are wanted, as in all modes but `command-buffer`.
    pub sampled: bool,
    pub kernels: &'a mut Kernels,
    pub labels: &'a mut Labels,
    /// The labels of the queue that span several command buffers.
    pub spanning: &'a mut CrossBufferLabels,
    pub ledger: &'a mut Ledger,
    pub tables: &'a mut Tables,
    pub state: State,
}

/// The state of an expansion that changes from command to command.
#[derive(Default)]
pub struct State {
    /// The number of the next command in the command buffer.
    position: u32,
    dispatches: u32,
    transfers: u32,
    /// The open labels, outermost first.
    open: Vec<OpenLabel>,
    top_level: TopLevel,
    /// The indices of rows of instants that wait for the next timed command.
    instants: Vec<usize>,
    /// The number of unknown times by kind of work and reason.
    lost: [[u64; REASONS]; LOSSES.len()],
}

/// A label that is open in the command buffer, with the span of the timed work inside the label.
struct OpenLabel {
    label: LabelId,
    text: TextId,
    /// The span of the timed work inside so far.
    covered: CoveringSpan,
    /// The id of the label if it spans several command buffers.
    spanning: Option<CrossBufferLabelId>,
}

/// The labels of the outermost level.
#[derive(Default, Clone, Copy)]
enum TopLevel {
    #[default]
    None,
    Only(LabelId),
    Several,
}

/// A kind of work whose time may be lost.
#[derive(Clone, Copy)]
#[repr(usize)]
enum TimedWork {
    CommandBuffer,
    Dispatch,
    Transfer,
    Opaque,
}

/// The losses of [`TimedWork`], by number.
const LOSSES: [LossKind; 4] = [
    LossKind::CommandBufferTimes,
    LossKind::DispatchTimes,
    LossKind::TransferTimes,
    LossKind::OpaqueWorkTimes,
];

impl Expansion<'_> {
    /// Appends all rows of the instance and returns the number of dispatches.
    pub fn run(mut self) -> u32 {
        let recording = self.recordings.get(&self.instance.recording);
        let around = self.inherit();
        let own = match recording {
            Some(recording) => {
                let whole = self.whole(recording);
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
                    UnknownTime::NotRecorded.reason("")
                };
                self.ledger.add(LossKind::CommandBufferContents, 1, reason);
                let unknown = if never {
                    UnknownTime::Instance
                } else {
                    UnknownTime::NotRecorded
                };
                self.bracketed().unwrap_or(Err(unknown))
            }
        };
        self.leave_open();
        let span = self.count(TimedWork::CommandBuffer, own, true);
        if span.is_none() && self.timing == Timing::Measured {
            self.timing = Timing::Unknown;
        }
        let only_label = match self.state.top_level {
            TopLevel::Only(label) => Some(label),
            _ => None,
        };
        let row = CommandBuffer {
            id: self.instance.command_buffer,
            process: self.instance.process,
            queue: self.instance.queue,
            submission: self.instance.submission,
            start_ns: span.map(|span| span.start_ns),
            duration_ns: span.map(|span| span.duration_ns),
            seen_ns: self.instance.seen_ns,
            timing: self.timing,
            dispatches: self.state.dispatches,
            transfers: self.state.transfers,
            label: self.instance.label.or(around).or(only_label),
            name: recording.and_then(|r| r.name.clone()).map(Into::into),
            host_functions: None,
        };
        rows::command_buffer(self.tables, row);
        for (kind, reasons) in LOSSES.iter().zip(self.state.lost) {
            for (unknown, count) in REASONS_IN_ORDER.iter().zip(reasons) {
                self.ledger
                    .add(kind.clone(), count, unknown.reason(self.reason));
            }
        }
        self.state.dispatches
    }

    /// Returns the span of the bracket (the ticks that the hook wrote around the command buffer); `None` without one.
    fn bracketed(&mut self) -> Option<Result<Span, UnknownTime>> {
        let bracket = self.instance.bracket?;
        self.placement.as_mut().map(|p| p.span(bracket))
    }

    /// Returns the span of the whole command buffer.
    fn whole(&mut self, recording: &Recording) -> Result<Span, UnknownTime> {
        if let Some(whole) = self.bracketed() {
            return whole;
        }
        let ticks = self.instance.ticks(self.instance.recording);
        self.between(ticks, recording.ends())
    }

    /// Returns the span between the timestamps of two queries.
    #[inline]
    fn between(&mut self, ticks: &[u64], queries: QueryPair) -> Result<Span, UnknownTime> {
        let Some(placement) = &mut self.placement else {
            return Err(UnknownTime::Instance);
        };
        if queries.start == NO_QUERY || queries.end == NO_QUERY {
            return Err(UnknownTime::NotTimed);
        }
        let tick = |query: u32| ticks.get(query as usize).copied().unwrap_or(NO_TICKS);
        placement.span(RawInterval {
            start: tick(queries.start),
            end: tick(queries.end),
        })
    }

    /// Returns the span of work; `None` for an unknown time, which is counted as lost if it is `wanted`.
    #[inline]
    fn count(
        &mut self,
        work: TimedWork,
        time: Result<Span, UnknownTime>,
        wanted: bool,
    ) -> Option<Span> {
        match time {
            Ok(span) => Some(span),
            Err(unknown) => {
                if wanted {
                    self.state.lost[work as usize][unknown as usize] += 1;
                }
                None
            }
        }
    }

    /// Extends the open labels and instants by a timed interval.
    #[inline]
    fn timed(&mut self, span: Option<Span>) {
        let Some(span) = span else {
            return;
        };
        if let Some(open) = self.state.open.last_mut() {
            open.covered.add(span);
        }
        for row in self.state.instants.drain(..) {
            self.tables.markers.start_ns.set(row, Some(span.start_ns));
        }
    }

    /// Appends the rows of a recording; `ticks` are its timestamps by query, `depth` is 0 for the command buffer's
    /// own. `untimed` means that only the whole was timed, or that another execution overwrote the timestamps.
    fn steps(&mut self, recording: &Recording, ticks: &[u64], depth: u32, untimed: bool) {
        let mut opaque: Option<(u32, OpaqueWorkKind)> = None;
        let executions = &recording.secondaries;
        // Only a primary recording ends labels that others began.
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
                    let span = self.count(TimedWork::Dispatch, time, self.sampled);
                    self.timed(span);
                    let open = self.state.open.last();
                    self.kernels.dispatched(kernel, open.map(|open| open.text));
                    let place = self.place(span);
                    let groups = groups.map_or([None; 3], |groups| groups.map(Some));
                    rows::dispatch(self.tables, place, kernel, groups, bindings);
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
                    let span = self.count(TimedWork::Transfer, time, self.sampled);
                    self.timed(span);
                    let place = self.place(span);
                    let facts = TransferFacts {
                        kind,
                        bytes,
                        source,
                        destination,
                        host_memory: None,
                    };
                    rows::transfer(self.tables, place, facts);
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
                Step::LabelBegin { text } => self.start_label(text),
                Step::LabelEnd => {
                    if self.state.open.len() > base {
                        self.end_label();
                    }
                }
                Step::LabelInstant { text } => self.instant(text),
                Step::Execute { query, recording } => {
                    // The second execution in an instance overwrites the timestamps of the first.
                    let overwritten = executions.get(&recording).is_some_and(|n| *n > 1);
                    self.execute(ticks, query, recording, depth, untimed, overwritten);
                }
                Step::OpaqueBegin { query, kind } => opaque = Some((query, kind)),
                Step::OpaqueEnd { query } => {
                    if let Some((start, kind)) = opaque.take() {
                        let time = if untimed {
                            Err(UnknownTime::Secondary)
                        } else {
                            self.between(ticks, QueryPair { start, end: query })
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

    /// Returns the span of a command, between `query` and the next one.
    #[inline]
    fn step_time(&mut self, ticks: &[u64], query: u32, untimed: bool) -> Result<Span, UnknownTime> {
        if self.instance.bracket.is_some() {
            return Err(UnknownTime::Instance);
        }
        if untimed {
            return Err(UnknownTime::Secondary);
        }
        self.between(ticks, QueryPair::from(query))
    }

    /// Appends the row of work that was timed as a whole.
    fn opaque_work(&mut self, time: Result<Span, UnknownTime>, kind: OpaqueWorkKind) {
        let span = self.count(TimedWork::Opaque, time, self.sampled);
        self.timed(span);
        let place = self.place(span);
        rows::opaque_work(self.tables, place, kind);
    }

    /// Returns the place of the next command, which ran in `span`.
    #[inline]
    fn place(&mut self, span: Option<Span>) -> WorkPlace {
        let position = self.state.position;
        self.state.position += 1;
        WorkPlace {
            command_buffer: Some(self.instance.command_buffer),
            position,
            label: self.state.open.last().map(|open| open.label),
            ..WorkPlace::new(self.instance.queue, span)
        }
    }

    /// Expands a secondary recording into its own rows. If only the whole was timed, these have no times, and a row
    /// of opaque work before them has that of the whole.
    fn execute(
        &mut self,
        ticks: &[u64],
        query: u32,
        recording: hook::CommandRecording,
        depth: u32,
        untimed: bool,
        overwritten: bool,
    ) {
        if query != NO_QUERY && !untimed {
            let time = self.between(ticks, QueryPair::from(query));
            self.opaque_work(time, OpaqueWorkKind::Other);
        }
        let known = self
            .recordings
            .get(&recording)
            .filter(|_| depth < MAX_SECONDARY_DEPTH);
        let Some(secondary) = known else {
            let reason = "the record of their commands is missing";
            self.ledger.add(LossKind::SecondaryContents, 1, reason);
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

    /// Opens the labels that were open before the command buffer, and returns the innermost.
    fn inherit(&mut self) -> Option<LabelId> {
        for id in &self.instance.spanning.inherited {
            if let Some(known) = self.spanning.get(*id) {
                self.state.open.push(OpenLabel {
                    label: known.label,
                    text: known.text,
                    covered: CoveringSpan::default(),
                    spanning: Some(*id),
                });
            }
        }
        self.state.open.last().map(|o| o.label)
    }

    /// Ends the command buffer's part of labels that stay open behind it, and labels that nothing ends.
    fn leave_open(&mut self) {
        let left_open = &self.instance.spanning.left_open;
        let own = self.state.open.iter_mut().filter(|o| o.spanning.is_none());
        for (open, id) in own.zip(left_open) {
            open.spanning = Some(*id);
        }
        while !self.state.open.is_empty() {
            self.end_label();
        }
    }

    fn start_label(&mut self, text: TextId) {
        let around = self.state.open.last().map(|o| o.label);
        // Labels around the submission also apply to the commands inside it.
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
            covered: CoveringSpan::default(),
            spanning: None,
        });
    }

    /// Ends the innermost label, and writes its row unless other command buffers follow in it.
    fn end_label(&mut self) {
        let Some(ended) = self.state.open.pop() else {
            return;
        };
        if let Some(outer) = self.state.open.last_mut() {
            outer.covered.join(ended.covered);
        }
        let (process, queue) = (self.instance.process, self.instance.queue);
        match ended.spanning {
            None => command_buffer_marker(
                process,
                queue,
                ended.label,
                self.instance.command_buffer,
                ended.covered.span(),
                self.tables,
            ),
            Some(id) => {
                if let Some(known) = self.spanning.expanded(id, ended.covered) {
                    label_marker(process, queue, &known, self.tables);
                }
            }
        }
    }

    /// Writes the row of a label without duration; its start is set by the next timed command.
    fn instant(&mut self, text: TextId) {
        let parent = self.state.open.last().map(|o| o.label);
        let label = self.labels.label(parent, text);
        let scope = MarkerScope::CommandBuffer;
        let row = rows::marker_row(self.instance.process, scope, label, None, Some(0));
        let row = rows::marker(
            self.tables,
            Marker {
                queue: Some(self.instance.queue),
                command_buffer: Some(self.instance.command_buffer),
                ..row
            },
        );
        self.state.instants.push(row);
    }
}
