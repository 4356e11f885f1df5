//! The threads, labels and waits that the collector keeps until all events were read, and the part of a file that it
//! collects.

use super::event::Event;
use crate::offset::Drift;
use crate::profile::{Correlation, Span};
use gapscope_trace::build::TextId;
use gapscope_trace::ids::{ProcessId, QueueId, ThreadId};
use gapscope_trace::manifest::Rank;
use rustc_hash::FxHashMap;
use std::ops::Range;

/// The name of the steps of the profiler's schedule without their number, as in `ProfilerStep#12`. All steps share one
/// label.
pub(super) const STEP: &str = "ProfilerStep";
/// The same of PaddlePaddle's profiler.
const STEP_OF_PADDLE: &str = "ProfileStep";

/// The documents of a file that are taken.
#[derive(Debug, Clone, Copy, Default)]
pub(super) enum DocumentChoice<'a> {
    #[default]
    All,
    /// The only one: a second document ends the attempt.
    Only,
    /// Those with these numbers.
    Numbers(&'a [u64]),
}

/// The part of a file that becomes a trace.
#[derive(Debug, Clone, Copy, Default)]
pub(super) struct TracePart<'a> {
    /// The size of the files that were read before, and of all files.
    pub(super) bytes: (u64, u64),
    /// What is added to all times; where it is `None` the file decides.
    pub(super) shift_ns: Option<i64>,
    /// What the drift of the clocks adds to all times, beside that.
    pub(super) drift: Drift,
    /// The rank of the trace, where the file does not say it.
    pub(super) rank: Option<Rank>,
    /// The beginning of the names of the processes whose events are taken; empty where all are.
    pub(super) prefix: &'a [u8],
    pub(super) documents: DocumentChoice<'a>,
    /// The names of processes and threads, where the file says them too late.
    pub(super) names: Option<&'a Names>,
    /// The times of the trace between the windows in which the process recorded, in order.
    pub(super) not_recorded: &'a [Range<i64>],
}

impl TracePart<'_> {
    /// Returns all of a file.
    pub(super) fn whole(bytes: (u64, u64)) -> TracePart<'static> {
        TracePart {
            bytes,
            ..TracePart::default()
        }
    }
}

/// The names of processes and threads.
#[derive(Debug, Default, Clone)]
pub(super) struct Names {
    /// The names of processes by their pids as the file writes them.
    pub(super) processes: FxHashMap<Box<[u8]>, String>,
    /// The names of threads by pid and tid, with a zero byte between them.
    pub(super) threads: FxHashMap<Box<[u8]>, String>,
}

/// A thread of the host, in which ranges open and close.
#[derive(Debug, Clone)]
pub(super) struct Lane {
    pub(super) process: ProcessId,
    pub(super) thread: ThreadId,
    pub(super) name: Option<Box<str>>,
    /// The thread as the file writes it, where that is no id of a system's thread.
    pub(super) own: Option<Box<str>>,
    /// True where it has operators, functions of Python or calls, so that it cannot be a row of a GPU.
    pub(super) is_host: bool,
    /// The number of its ranges, and the name of the first.
    pub(super) ranges: u64,
    pub(super) first: Option<TextId>,
}

impl Lane {
    /// Returns the thread of the file's row as the user names it: its name where that stands in place of a number.
    pub(super) fn row(&self) -> String {
        match &self.own {
            Some(own) => own.to_string(),
            None => self.thread.0.to_string(),
        }
    }
}

/// The event that began a range which has not ended, or that ends one.
#[derive(Debug, Clone)]
pub(super) struct OpenRange {
    pub(super) category: Box<[u8]>,
    name: Box<[u8]>,
    pid: Box<[u8]>,
    tid: Box<[u8]>,
    pub(super) args: Box<[u8]>,
    pub(super) start_ns: Option<i64>,
}

impl OpenRange {
    pub(super) fn new(event: &Event) -> OpenRange {
        OpenRange {
            category: event.category.into(),
            name: event.name.into(),
            pid: event.pid.into(),
            tid: event.tid.into(),
            args: event.args.into(),
            start_ns: event.start_ns,
        }
    }

    /// Adds the arguments of the event that ends the range. The end of a list of arguments replaces equal ones before it.
    pub(super) fn add_args(&mut self, args: &[u8]) {
        self.args = match (&*self.args, args) {
            ([first @ .., b'}'], [b'{', rest @ ..]) => [first, b",", rest].concat().into(),
            ([], args) => args.into(),
            _ => return,
        };
    }

    /// Returns the event with its start and duration that says the same as the two events of the range.
    pub(super) fn complete(&self, end_ns: Option<i64>) -> Event<'_> {
        let times = self.start_ns.zip(end_ns);
        Event {
            phase: b'X',
            category: &self.category,
            name: &self.name,
            pid: &self.pid,
            tid: &self.tid,
            start_ns: self.start_ns,
            duration_ns: times.and_then(|(start_ns, end_ns)| end_ns.checked_sub(start_ns)),
            written: [b"", b""],
            id: b"",
            args: &self.args,
        }
    }
}

/// A wait of the host or of a stream, as the device's profiler reports it. Streams have their ids in the file.
#[derive(Debug, Clone, Copy)]
pub(super) struct Synchronisation {
    /// The number of the device whose event it is.
    pub(super) source: u32,
    /// The correlation (the number that a call and its work share) of the call that waits.
    pub(super) correlation: Option<Correlation>,
    /// The stream that waits, or that the host waits for; `None` for a wait for a whole context.
    pub(super) stream: Option<QueueId>,
    /// The stream whose event is waited for.
    pub(super) waits_on: Option<QueueId>,
    /// The correlation of the call that recorded the awaited event.
    pub(super) recorded_by: Option<Correlation>,
}

/// Returns the label of an annotation, and the part of its text that distinguishes its instances, such as a step's
/// number.
pub(super) fn label_of(name: &str) -> (&str, Option<&str>) {
    match name.split_once('#') {
        Some((STEP, number)) => (STEP, Some(number)),
        Some((STEP_OF_PADDLE, number)) => (STEP_OF_PADDLE, Some(number)),
        _ => (name, None),
    }
}

/// The begins and ends of ranges that have no counterpart so far.
#[derive(Debug, Default)]
pub(super) struct OpenRanges {
    /// Those of each thread, by pid and tid with a zero byte between them.
    pub(super) of_threads: FxHashMap<Box<[u8]>, Unpaired>,
    /// Asynchronous ones, by category, name and id.
    pub(super) asynchronous: FxHashMap<(TextId, TextId, TextId), Unpaired>,
}

impl OpenRanges {
    pub(super) fn all(&self) -> impl Iterator<Item = &Unpaired> {
        self.of_threads.values().chain(self.asynchronous.values())
    }

    pub(super) fn all_mut(&mut self) -> impl Iterator<Item = &mut Unpaired> {
        let asynchronous = self.asynchronous.values_mut();
        self.of_threads.values_mut().chain(asynchronous)
    }
}

/// The begins and ends of a thread, or of one asynchronous range, that have no counterpart so far.
#[derive(Debug, Default)]
pub(super) struct Unpaired {
    /// The ranges that are open, outermost first.
    pub(super) begins: Vec<OpenRange>,
    /// Ends whose beginning did not stand before them.
    pub(super) ends: Vec<OpenRange>,
}

impl Unpaired {
    /// Opens a range, or returns the one that an event ends.
    pub(super) fn take(&mut self, event: &Event, begins: bool) -> Option<OpenRange> {
        if begins {
            self.begins.push(OpenRange::new(event));
            return None;
        }
        self.end(event)
    }

    /// Returns the range that an event ends: the innermost, unless that begins later. An end without a range is kept, as
    /// its beginning may stand behind it.
    fn end(&mut self, event: &Event) -> Option<OpenRange> {
        let ended = self.begins.pop_if(|open| {
            let times = open.start_ns.zip(event.start_ns);
            // Where events stand in reverse order, the end at the start of a range is that of the one before.
            let is_empty_range = self.ends.is_empty();
            times.is_none_or(|(start_ns, end_ns)| {
                start_ns < end_ns || start_ns == end_ns && is_empty_range
            })
        });
        if ended.is_none() {
            self.ends.push(OpenRange::new(event));
        }
        ended
    }

    /// Takes the ranges whose ends stand before their beginnings out, each with its end: in the order of time, an end is that of
    /// the innermost open range. Of those at the same time, ends come first.
    pub(super) fn pairs_by_time(&mut self) -> Vec<(OpenRange, OpenRange)> {
        if self.ends.is_empty() || self.begins.is_empty() {
            return Vec::new();
        }
        let mut ends = std::mem::take(&mut self.ends);
        ends.sort_by_key(|end| end.start_ns);
        let mut begins = std::mem::take(&mut self.begins);
        begins.sort_by_key(|begin| begin.start_ns);
        let mut begins = begins.into_iter().peekable();
        let mut pairs = Vec::new();
        for end in ends {
            while let Some(begin) = begins.next_if(|begin| begin.start_ns < end.start_ns) {
                self.begins.push(begin);
            }
            match self.begins.pop() {
                Some(begin) => pairs.push((begin, end)),
                None => self.ends.push(end),
            }
        }
        self.begins.extend(begins);
        pairs
    }
}

/// The calls and the work of a file that is joined to the file of another tool, which has them too.
#[derive(Debug, Default, Clone, Copy)]
pub(super) struct LeftOut {
    pub(super) calls: u64,
    pub(super) work: u64,
}

/// The nodes of backward passes and the arrows to them.
#[derive(Debug, Default)]
pub(super) struct Autograd {
    /// When nodes ran, by the index of the thread's lane.
    pub(super) nodes: FxHashMap<u32, Vec<Span>>,
    /// The lane of the first end of each arrow, by the arrow's id, and whether the arrow begins there.
    pub(super) arrows: FxHashMap<Box<[u8]>, (u32, bool)>,
    /// How many arrows go from the first lane to the second.
    pub(super) origins: FxHashMap<(u32, u32), u64>,
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_steps_of_the_schedule_are_one_label() {
        assert_eq!(label_of("ProfilerStep#12"), ("ProfilerStep", Some("12")));
        assert_eq!(label_of("ProfileStep#3"), ("ProfileStep", Some("3")));
        assert_eq!(label_of("forward"), ("forward", None));
        assert_eq!(label_of("forward#3"), ("forward#3", None));
    }
}

/// A scope of a GPU.
#[derive(Debug, Clone, Copy)]
pub(super) struct Scope {
    /// The lane of the file's row.
    pub(super) lane: u32,
    pub(super) device: u32,
    pub(super) span: Span,
    pub(super) name: TextId,
}
