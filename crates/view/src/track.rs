//! Defines tracks, the rows of the page's timeline that are drawn together: their ids, the tables behind them, and
//! the track of each row of a trace. A place is a number of 32 bits that holds a table and a row: see [`place`].

use crate::protocol::TrackKind;
use gapscope_timeline::counters::CounterKey;
use gapscope_timeline::intervals::Interval;
use gapscope_timeline::submit_calls::SubmitCalls;
use gapscope_trace::Trace;
use gapscope_trace::ids::{
    CommandBufferId, CounterId, LabelId, ProcessId, QueueId, SubmissionId, ThreadId,
};
use gapscope_trace::manifest::SamplingMode;
use gapscope_trace::optional::Optional;
use gapscope_trace::tables::{HostCallKind, MarkerScope, Timing};
use std::fmt;

/// The id of a track: the kind of its rows, and the queue, GPU or thread that they belong to.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum TrackId {
    /// The work of a queue.
    Work(QueueId),
    /// The command buffers of a queue.
    CommandBuffers(QueueId),
    /// Labels in command buffers.
    Labels(QueueId),
    /// Labels that the host sets on a queue.
    QueueLabels(QueueId),
    /// Gaps of a GPU.
    Gaps(u32),
    /// A quantity over time.
    Counter(CounterKey),
    /// Host calls of a thread, and its submissions that are the only rows of their calls.
    Calls(ThreadKey),
    /// Labels of a thread.
    ThreadLabels(ThreadKey),
    /// Samples of a thread's stack, whose rows are in the answer `code`.
    Samples(ThreadKey),
}

/// A thread of a recorded process.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct ThreadKey {
    pub process: ProcessId,
    /// Absent where the thread is not known.
    pub thread: Option<ThreadId>,
}

impl TrackId {
    pub const fn kind(self) -> TrackKind {
        match self {
            TrackId::Work(_) => TrackKind::Work,
            TrackId::CommandBuffers(_) => TrackKind::CommandBuffers,
            TrackId::Labels(_) => TrackKind::Labels,
            TrackId::QueueLabels(_) => TrackKind::QueueLabels,
            TrackId::Gaps(_) => TrackKind::Gaps,
            TrackId::Counter(_) => TrackKind::Counter,
            TrackId::Calls(..) => TrackKind::Calls,
            TrackId::ThreadLabels(..) => TrackKind::ThreadLabels,
            TrackId::Samples(..) => TrackKind::Samples,
        }
    }

    /// Parses an id that [`fmt::Display`] wrote, such as `q1.work` or `p1.t4711.calls`; `None` for any other text.
    pub fn parse(text: &str) -> Option<TrackId> {
        let (owner, kind) = text.rsplit_once('.')?;
        let number = |text: &str, letter: char| text.strip_prefix(letter)?.parse::<u32>().ok();
        let queue = || number(owner, 'q').map(QueueId);
        let id = match kind {
            "work" => TrackId::Work(queue()?),
            "command-buffers" => TrackId::CommandBuffers(queue()?),
            "queue-labels" => TrackId::QueueLabels(queue()?),
            "depth" => TrackId::Counter(CounterKey::QueueDepth(queue()?)),
            "gaps" => TrackId::Gaps(number(owner, 'g')?),
            "memory" => TrackId::Counter(CounterKey::DeviceMemory(number(owner, 'g')? as usize)),
            "counter" => TrackId::Counter(CounterKey::Recorded(CounterId(number(owner, 'c')?))),
            "labels" | "calls" | "samples" => match (owner.split_once('.'), kind) {
                (None, "labels") => TrackId::Labels(queue()?),
                (None, _) => return None,
                (Some((process, thread)), kind) => {
                    let thread = ThreadKey {
                        process: ProcessId(number(process, 'p')?),
                        thread: match thread {
                            "unknown" => None,
                            thread => Some(ThreadId(number(thread, 't')?)),
                        },
                    };
                    match kind {
                        "calls" => TrackId::Calls(thread),
                        "samples" => TrackId::Samples(thread),
                        _ => TrackId::ThreadLabels(thread),
                    }
                }
            },
            _ => return None,
        };
        Some(id)
    }

    /// Returns the tables of the track's rows: the two highest bits of a place are an index into them.
    pub const fn tables(self) -> &'static [DrawnTable] {
        match self {
            TrackId::Work(_) => &[
                DrawnTable::Dispatch,
                DrawnTable::Transfer,
                DrawnTable::Opaque,
                DrawnTable::CommandBuffer,
            ],
            TrackId::CommandBuffers(_) => &[DrawnTable::CommandBuffer],
            TrackId::Labels(_) | TrackId::QueueLabels(_) | TrackId::ThreadLabels(..) => {
                &[DrawnTable::Marker]
            }
            TrackId::Calls(..) => &[DrawnTable::HostCall, DrawnTable::Submission],
            TrackId::Gaps(_) | TrackId::Counter(_) | TrackId::Samples(_) => &[],
        }
    }
}

impl fmt::Display for TrackId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match *self {
            TrackId::Work(queue) => write!(f, "q{queue}.work"),
            TrackId::CommandBuffers(queue) => write!(f, "q{queue}.command-buffers"),
            TrackId::Labels(queue) => write!(f, "q{queue}.labels"),
            TrackId::QueueLabels(queue) => write!(f, "q{queue}.queue-labels"),
            TrackId::Gaps(gpu) => write!(f, "g{gpu}.gaps"),
            TrackId::Counter(CounterKey::QueueDepth(queue)) => write!(f, "q{queue}.depth"),
            TrackId::Counter(CounterKey::DeviceMemory(gpu)) => write!(f, "g{gpu}.memory"),
            TrackId::Counter(CounterKey::Recorded(counter)) => write!(f, "c{counter}.counter"),
            TrackId::Calls(thread) => write!(f, "{thread}.calls"),
            TrackId::ThreadLabels(thread) => write!(f, "{thread}.labels"),
            TrackId::Samples(thread) => write!(f, "{thread}.samples"),
        }
    }
}

impl fmt::Display for ThreadKey {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.thread {
            Some(thread) => write!(f, "p{}.t{thread}", self.process),
            None => write!(f, "p{}.unknown", self.process),
        }
    }
}

/// A table whose rows are drawn; [`DrawnTable::table`] returns its name in the trace.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum DrawnTable {
    Dispatch,
    Transfer,
    Opaque,
    CommandBuffer,
    HostCall,
    Marker,
    /// Only launches are drawn: submissions that are the only rows of their calls ([`SubmitCalls`]).
    Submission,
}

impl DrawnTable {
    pub const ALL: [DrawnTable; 7] = [
        DrawnTable::Dispatch,
        DrawnTable::Transfer,
        DrawnTable::Opaque,
        DrawnTable::CommandBuffer,
        DrawnTable::HostCall,
        DrawnTable::Marker,
        DrawnTable::Submission,
    ];

    /// Returns the table of a name; `None` where that table is not drawn or does not exist.
    pub fn from_name(name: &str) -> Option<DrawnTable> {
        let mut tables = DrawnTable::ALL.into_iter();
        tables.find(|table| table.table() == name)
    }

    /// Returns the name of the table.
    pub const fn table(self) -> &'static str {
        match self {
            DrawnTable::Dispatch => "dispatches",
            DrawnTable::Transfer => "transfers",
            DrawnTable::Opaque => "opaque_work",
            DrawnTable::CommandBuffer => "command_buffers",
            DrawnTable::HostCall => "host_calls",
            DrawnTable::Marker => "markers",
            DrawnTable::Submission => "submissions",
        }
    }

    pub fn rows(self, trace: &Trace) -> usize {
        let tables = &trace.tables;
        match self {
            // These columns are read even where the others of their table are not.
            DrawnTable::Dispatch => tables.dispatches.queue.len(),
            DrawnTable::Transfer => tables.transfers.queue.len(),
            DrawnTable::Opaque => tables.opaque_work.queue.len(),
            DrawnTable::CommandBuffer => tables.command_buffers.queue.len(),
            DrawnTable::HostCall => tables.host_calls.start_ns.len(),
            DrawnTable::Marker => tables.markers.label.len(),
            DrawnTable::Submission => tables.submissions.start_ns.len(),
        }
    }

    /// Returns the time of a row; `None` when it is not known.
    #[inline]
    pub fn times(self, trace: &Trace, row: usize) -> Option<Interval> {
        macro_rules! times {
            ($table:ident) => {
                (
                    trace.tables.$table.start_ns.at(row),
                    trace.tables.$table.duration_ns.at(row),
                )
            };
        }
        let (start_ns, duration_ns) = match self {
            DrawnTable::Dispatch => times!(dispatches),
            DrawnTable::Transfer => times!(transfers),
            DrawnTable::Opaque => times!(opaque_work),
            DrawnTable::CommandBuffer => times!(command_buffers),
            DrawnTable::Marker => times!(markers),
            DrawnTable::HostCall => {
                let calls = &trace.tables.host_calls;
                (Some(calls.start_ns[row]), Some(calls.duration_ns[row]))
            }
            DrawnTable::Submission => {
                let calls = &trace.tables.submissions;
                (Some(calls.start_ns[row]), Some(calls.duration_ns[row]))
            }
        };
        Interval::from_row(start_ns, duration_ns)
    }

    /// Returns the columns that the tables of work inside of command buffers have in common; `None` for other tables.
    #[inline]
    pub fn work(self, trace: &Trace) -> Option<WorkColumns<'_>> {
        macro_rules! columns {
            ($table:ident) => {
                Some(WorkColumns {
                    queue: &trace.tables.$table.queue,
                    command_buffer: &trace.tables.$table.command_buffer,
                    submission: &trace.tables.$table.submission,
                    label: &trace.tables.$table.label,
                })
            };
        }
        match self {
            DrawnTable::Dispatch => columns!(dispatches),
            DrawnTable::Transfer => columns!(transfers),
            DrawnTable::Opaque => columns!(opaque_work),
            DrawnTable::CommandBuffer
            | DrawnTable::HostCall
            | DrawnTable::Marker
            | DrawnTable::Submission => None,
        }
    }

    /// Returns the kind of a row that is a host call.
    #[inline]
    pub fn call(self, trace: &Trace, row: usize) -> Option<HostCallKind> {
        match self {
            DrawnTable::HostCall => trace.tables.host_calls.call.get(row).copied(),
            DrawnTable::Submission => Some(HostCallKind::Submit),
            _ => None,
        }
    }

    /// Returns false for rows that are not drawn because another row is drawn in their place.
    #[inline]
    pub fn is_drawn(self, trace: &Trace, row: usize, calls: &SubmitCalls) -> bool {
        self != DrawnTable::Submission || calls.is_launch(trace, row)
    }

    /// Returns the track of a row. `whole` has the command buffers that count as work.
    #[inline]
    pub fn track(self, trace: &Trace, row: usize, whole: &WholeCommandBuffers) -> TrackId {
        let tables = &trace.tables;
        match self {
            DrawnTable::Dispatch => TrackId::Work(tables.dispatches.queue[row]),
            DrawnTable::Transfer => TrackId::Work(tables.transfers.queue[row]),
            DrawnTable::Opaque => TrackId::Work(tables.opaque_work.queue[row]),
            DrawnTable::CommandBuffer if whole.contains(row) => {
                TrackId::Work(tables.command_buffers.queue[row])
            }
            DrawnTable::CommandBuffer => TrackId::CommandBuffers(tables.command_buffers.queue[row]),
            DrawnTable::HostCall => TrackId::Calls(ThreadKey {
                process: tables.host_calls.process[row],
                thread: tables.host_calls.thread.at(row),
            }),
            DrawnTable::Submission => TrackId::Calls(ThreadKey {
                process: tables.submissions.process[row],
                thread: tables.submissions.thread.at(row),
            }),
            DrawnTable::Marker => {
                let markers = &tables.markers;
                match (markers.scope[row], markers.queue.at(row)) {
                    (MarkerScope::CommandBuffer, Some(queue)) => TrackId::Labels(queue),
                    (MarkerScope::Queue, Some(queue)) => TrackId::QueueLabels(queue),
                    _ => TrackId::ThreadLabels(ThreadKey {
                        process: markers.process[row],
                        thread: markers.thread.at(row),
                    }),
                }
            }
        }
    }
}

/// The columns of a table of work, by row.
pub struct WorkColumns<'a> {
    pub queue: &'a [QueueId],
    pub command_buffer: &'a Optional<CommandBufferId>,
    /// The submission of work that is in no command buffer.
    pub submission: &'a Optional<SubmissionId>,
    pub label: &'a Optional<LabelId>,
}

/// Command buffers that count as work as a whole, because the work inside has no times: the analyses count them as busy from start to end, so they
/// are drawn as work.
#[derive(Debug, Clone, Default, PartialEq)]
pub enum WholeCommandBuffers {
    /// No command buffer.
    #[default]
    None,
    /// All command buffers: nothing inside of them was timed.
    All,
    /// The command buffers of these rows, in order.
    These(Vec<u32>),
}

impl WholeCommandBuffers {
    /// Finds the command buffers without the analyses; `None` where only the analyses can tell. `untimed` returns true where work inside of command
    /// buffers has no times.
    pub fn quick(trace: &Trace, untimed: impl FnOnce() -> bool) -> Option<WholeCommandBuffers> {
        if trace.manifest.sampling_mode == SamplingMode::CommandBuffer {
            return Some(WholeCommandBuffers::All);
        }
        let timing = &trace.tables.command_buffers.timing;
        let unclear = timing.contains(&Timing::Bracketed) || untimed();
        (!unclear).then_some(WholeCommandBuffers::None)
    }

    /// Returns true where the command buffer of a row counts as work.
    #[inline]
    fn contains(&self, row: usize) -> bool {
        match self {
            WholeCommandBuffers::None => false,
            WholeCommandBuffers::All => true,
            WholeCommandBuffers::These(rows) => rows.binary_search(&(row as u32)).is_ok(),
        }
    }
}

/// Number of the low bits of a place that are the row; the bits above are an index into [`TrackId::tables`].
pub const ROW_BITS: u32 = 30;

/// Returns the table and row of a place on a track.
#[inline]
pub fn place(tables: &[DrawnTable], place: u32) -> (DrawnTable, usize) {
    (
        tables[(place >> ROW_BITS) as usize],
        (place & ((1 << ROW_BITS) - 1)) as usize,
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ids_are_read_back() {
        let thread = |process, thread: Option<u32>| ThreadKey {
            process: ProcessId(process),
            thread: thread.map(ThreadId),
        };
        let ids = [
            TrackId::Work(QueueId(1)),
            TrackId::CommandBuffers(QueueId(4294967295)),
            TrackId::Labels(QueueId(3)),
            TrackId::QueueLabels(QueueId(4)),
            TrackId::Counter(CounterKey::QueueDepth(QueueId(5))),
            TrackId::Counter(CounterKey::Recorded(CounterId(9))),
            TrackId::Gaps(0),
            TrackId::Counter(CounterKey::DeviceMemory(2)),
            TrackId::Calls(thread(1, Some(4711))),
            TrackId::Calls(thread(1, None)),
            TrackId::ThreadLabels(thread(1, Some(4711))),
            TrackId::ThreadLabels(thread(7, None)),
            TrackId::Samples(thread(1, Some(4711))),
        ];
        for id in ids {
            assert_eq!(TrackId::parse(&id.to_string()), Some(id), "{id}");
        }
        for wrong in [
            "",
            "q.work",
            "q1.calls",
            "x1.work",
            "q1.work.",
            "q-1.work",
            "p1.t.calls",
            "p1.labels",
            "p1.x.labels",
            "../q1.work",
        ] {
            assert_eq!(TrackId::parse(wrong), None, "{wrong}");
        }
    }
}
