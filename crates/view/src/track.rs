//! Tracks: what rows are drawn together.

use gapscope_timeline::counters::CounterKey;
use gapscope_timeline::intervals::Interval;
use gapscope_trace::Trace;
use gapscope_trace::ids::{CounterId, ProcessId, QueueId, ThreadId};
use gapscope_trace::manifest::SamplingMode;
use gapscope_trace::tables::{HostCallKind, MarkerScope, Timing};
use std::fmt;

/// A track with rows of its own.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum TrackId {
    /// What a queue runs.
    Work(QueueId),
    /// The command buffers of a queue.
    CommandBuffers(QueueId),
    /// Labels in command buffers.
    Labels(QueueId),
    /// Labels set on a queue by the host.
    QueueLabels(QueueId),
    /// Gaps of a GPU.
    Gaps(u32),
    /// A quantity over time.
    Counter(CounterKey),
    /// Host calls of a thread.
    Calls(ThreadKey),
    /// Labels of a thread.
    ThreadLabels(ThreadKey),
    /// Samples of a thread's stack. Their rows are in the answer `code`.
    Samples(ThreadKey),
}

/// A thread of a recorded process.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct ThreadKey {
    pub process: ProcessId,
    /// Absent where it is not known which.
    pub thread: Option<ThreadId>,
}

impl TrackId {
    /// Its kind, as in `PROTOCOL.md`.
    pub const fn kind(self) -> &'static str {
        match self {
            TrackId::Work(_) => "work",
            TrackId::CommandBuffers(_) => "command-buffers",
            TrackId::Labels(_) => "labels",
            TrackId::QueueLabels(_) => "queue-labels",
            TrackId::Gaps(_) => "gaps",
            TrackId::Counter(_) => "counter",
            TrackId::Calls(..) => "calls",
            TrackId::ThreadLabels(..) => "thread-labels",
            TrackId::Samples(..) => "samples",
        }
    }

    /// The id of [`fmt::Display`], read back.
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
                    let of = ThreadKey {
                        process: ProcessId(number(process, 'p')?),
                        thread: match thread {
                            "unknown" => None,
                            thread => Some(ThreadId(number(thread, 't')?)),
                        },
                    };
                    match kind {
                        "calls" => TrackId::Calls(of),
                        "samples" => TrackId::Samples(of),
                        _ => TrackId::ThreadLabels(of),
                    }
                }
            },
            _ => return None,
        };
        Some(id)
    }

    /// The tables of its rows: the two highest bits of a place are an index into these.
    pub const fn tables(self) -> &'static [Source] {
        match self {
            TrackId::Work(_) => &[
                Source::Dispatch,
                Source::Transfer,
                Source::Opaque,
                Source::CommandBuffer,
            ],
            TrackId::CommandBuffers(_) => &[Source::CommandBuffer],
            TrackId::Labels(_) | TrackId::QueueLabels(_) | TrackId::ThreadLabels(..) => {
                &[Source::Marker]
            }
            TrackId::Calls(..) => &[Source::HostCall],
            TrackId::Gaps(_) | TrackId::Counter(_) | TrackId::Samples(_) => &[],
        }
    }
}

impl fmt::Display for TrackId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match *self {
            TrackId::Work(queue)
            | TrackId::CommandBuffers(queue)
            | TrackId::Labels(queue)
            | TrackId::QueueLabels(queue) => write!(f, "q{queue}.{}", self.kind()),
            TrackId::Gaps(gpu) => write!(f, "g{gpu}.gaps"),
            TrackId::Counter(CounterKey::QueueDepth(queue)) => write!(f, "q{queue}.depth"),
            TrackId::Counter(CounterKey::DeviceMemory(gpu)) => write!(f, "g{gpu}.memory"),
            TrackId::Counter(CounterKey::Recorded(counter)) => write!(f, "c{counter}.counter"),
            TrackId::Calls(of) => write!(f, "{of}.calls"),
            TrackId::ThreadLabels(of) => write!(f, "{of}.labels"),
            TrackId::Samples(of) => write!(f, "{of}.samples"),
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

/// A table whose rows are drawn.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Source {
    Dispatch,
    Transfer,
    Opaque,
    CommandBuffer,
    HostCall,
    Marker,
}

impl Source {
    pub const ALL: [Source; 6] = [
        Source::Dispatch,
        Source::Transfer,
        Source::Opaque,
        Source::CommandBuffer,
        Source::HostCall,
        Source::Marker,
    ];

    /// The name of the table.
    pub const fn table(self) -> &'static str {
        match self {
            Source::Dispatch => "dispatches",
            Source::Transfer => "transfers",
            Source::Opaque => "opaque_work",
            Source::CommandBuffer => "command_buffers",
            Source::HostCall => "host_calls",
            Source::Marker => "markers",
        }
    }

    /// Rows of the table.
    pub fn rows(self, trace: &Trace) -> usize {
        let tables = &trace.tables;
        match self {
            // Of a table that is read in part, these columns always are.
            Source::Dispatch => tables.dispatches.queue.len(),
            Source::Transfer => tables.transfers.queue.len(),
            Source::Opaque => tables.opaque_work.queue.len(),
            Source::CommandBuffer => tables.command_buffers.queue.len(),
            Source::HostCall => tables.host_calls.start_ns.len(),
            Source::Marker => tables.markers.label.len(),
        }
    }

    /// When a row ran; `None` when that is not known.
    #[inline]
    pub fn times(self, trace: &Trace, row: usize) -> Option<Interval> {
        let tables = &trace.tables;
        let (start_ns, duration_ns) = match self {
            Source::Dispatch => (
                tables.dispatches.start_ns.at(row),
                tables.dispatches.duration_ns.at(row),
            ),
            Source::Transfer => (
                tables.transfers.start_ns.at(row),
                tables.transfers.duration_ns.at(row),
            ),
            Source::Opaque => (
                tables.opaque_work.start_ns.at(row),
                tables.opaque_work.duration_ns.at(row),
            ),
            Source::CommandBuffer => (
                tables.command_buffers.start_ns.at(row),
                tables.command_buffers.duration_ns.at(row),
            ),
            Source::HostCall => (
                Some(tables.host_calls.start_ns[row]),
                Some(tables.host_calls.duration_ns[row]),
            ),
            Source::Marker => (
                tables.markers.start_ns.at(row),
                tables.markers.duration_ns.at(row),
            ),
        };
        Interval::from_row(start_ns, duration_ns)
    }

    /// The kind of a row that is a host call.
    #[inline]
    pub fn call(self, trace: &Trace, row: usize) -> Option<HostCallKind> {
        match self {
            Source::HostCall => trace.tables.host_calls.call.get(row).copied(),
            _ => None,
        }
    }

    /// The track of a row. `whole` says of command buffers whether they count as work.
    #[inline]
    pub fn track(self, trace: &Trace, row: usize, whole: &Whole) -> TrackId {
        let tables = &trace.tables;
        match self {
            Source::Dispatch => TrackId::Work(tables.dispatches.queue[row]),
            Source::Transfer => TrackId::Work(tables.transfers.queue[row]),
            Source::Opaque => TrackId::Work(tables.opaque_work.queue[row]),
            Source::CommandBuffer if whole.contains(row) => {
                TrackId::Work(tables.command_buffers.queue[row])
            }
            Source::CommandBuffer => TrackId::CommandBuffers(tables.command_buffers.queue[row]),
            Source::HostCall => TrackId::Calls(ThreadKey {
                process: tables.host_calls.process[row],
                thread: tables.host_calls.thread.at(row),
            }),
            Source::Marker => {
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

/// Command buffers that are work as a whole, because what is inside has no times: the analyses count them as busy from
/// start to end, so they are drawn where work is.
#[derive(Debug, Clone, Default, PartialEq)]
pub enum Whole {
    /// None is.
    #[default]
    None,
    /// All are: nothing inside command buffers was timed.
    All,
    /// These rows, in order.
    These(Vec<u32>),
}

impl Whole {
    /// What can be said without the analyses; `None` when that takes them. `untimed` tells whether work inside command
    /// buffers has no times.
    pub fn quick(trace: &Trace, untimed: impl FnOnce() -> bool) -> Option<Whole> {
        match trace.manifest.sampling_mode {
            SamplingMode::CommandBuffer => Some(Whole::All),
            _ if trace
                .tables
                .command_buffers
                .timing
                .contains(&Timing::Bracketed)
                || untimed() =>
            {
                None
            }
            _ => Some(Whole::None),
        }
    }

    #[inline]
    fn contains(&self, row: usize) -> bool {
        match self {
            Whole::None => false,
            Whole::All => true,
            Whole::These(rows) => rows.binary_search(&(row as u32)).is_ok(),
        }
    }
}

/// Bits of a place that are the row; those above are an index into [`TrackId::tables`].
pub const ROW_BITS: u32 = 30;

/// The table and row of a place on a track.
#[inline]
pub fn place(tables: &[Source], place: u32) -> (Source, usize) {
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
