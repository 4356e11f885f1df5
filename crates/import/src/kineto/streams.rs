//! Numbers the streams of the file in the order in which they are first seen.

use gapscope_trace::build::Interner;
use gapscope_trace::ids::QueueId;
use rustc_hash::FxHashSet;

/// The maximum numbers of devices and of streams. A file that names more is not a trace of a program.
const MAX_DEVICES: usize = 1 << 10;
const MAX_STREAMS: usize = 1 << 13;

/// A stream of a device, as far as the file numbers it.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub(super) struct Stream {
    pub(super) device: Option<u32>,
    /// The number of the context; 0 where the API has no contexts.
    pub(super) context: u32,
    pub(super) stream: Option<u32>,
}

/// The streams with their ids in the file, up to a maximum. They have the type of queues' ids, but a stream becomes a
/// queue of each process that uses it, and the process is not known before all events were read.
#[derive(Debug, Default)]
pub(super) struct Streams {
    streams: Interner<Stream, QueueId>,
    /// The devices of the streams; `None` stands for an unknown device.
    devices: FxHashSet<Option<u32>>,
}

impl Streams {
    /// Returns the id of a stream in the file; `None` if there are too many streams.
    pub(super) fn id(&mut self, stream: Stream) -> Option<QueueId> {
        if let Some(known) = self.streams.known(&stream) {
            return Some(known);
        }
        let is_new = !self.devices.contains(&stream.device);
        if self.streams.len() >= MAX_STREAMS || (is_new && self.devices.len() >= MAX_DEVICES) {
            return None;
        }
        self.devices.insert(stream.device);
        Some(self.streams.id(stream))
    }

    /// Returns the stream with an id in the file.
    pub(super) fn get(&self, id: QueueId) -> Option<Stream> {
        self.streams.get(id).copied()
    }
}
