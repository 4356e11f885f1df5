//! The threads and the waits that the collector keeps until all events were read.

use crate::profile::Correlation;
use gapscope_trace::build::TextId;
use gapscope_trace::ids::{ProcessId, QueueId, ThreadId};

/// A thread of the host.
#[derive(Debug, Clone)]
pub(super) struct Lane {
    pub(super) process: ProcessId,
    pub(super) thread: ThreadId,
    pub(super) name: Option<Box<str>>,
    /// The ranges that have begun and not ended, outermost first.
    pub(super) open: Vec<OpenRange>,
}

/// A range that has begun and not ended.
#[derive(Debug, Clone, Copy)]
pub(super) struct OpenRange {
    pub(super) name: TextId,
    pub(super) category: Option<TextId>,
    pub(super) start_ns: i64,
}

/// A wait of the host or of a stream, as the device's profiler reports it. Streams have their ids in the file.
#[derive(Debug, Clone, Copy)]
pub(super) struct Synchronisation {
    /// The correlation of the call that waits.
    pub(super) correlation: Option<Correlation>,
    pub(super) stream: Option<QueueId>,
    /// The stream whose event is waited for.
    pub(super) waits_on: Option<QueueId>,
    /// The correlation of the call that recorded the awaited event.
    pub(super) recorded_by: Option<Correlation>,
}
