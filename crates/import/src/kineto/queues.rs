//! Devices and queues, as processes use them.

use super::facts::Stream;
use gapscope_trace::ids::{DeviceId, ProcessId, QueueId};
use rustc_hash::FxHashMap;

/// Devices and queues so far.
#[derive(Debug, Default)]
pub(super) struct Queues {
    by_stream: FxHashMap<(ProcessId, u32), QueueId>,
    /// In order of their ids, with the stream as the file numbers it.
    pub(super) queues: Vec<(DeviceId, Stream)>,
    by_number: FxHashMap<(ProcessId, Option<u32>), DeviceId>,
    /// In order of their ids, with their numbers, where they are known.
    pub(super) devices: Vec<(ProcessId, Option<u32>)>,
}

impl Queues {
    /// The queue that a stream is to a process.
    #[inline]
    pub(super) fn of(&mut self, process: ProcessId, stream: u32, streams: &[Stream]) -> QueueId {
        if let Some(id) = self.by_stream.get(&(process, stream)) {
            return *id;
        }
        let facts = streams[stream as usize];
        let device = self.device(process, facts.device);
        self.queues.push((device, facts));
        let id = QueueId(self.queues.len() as u32);
        self.by_stream.insert((process, stream), id);
        id
    }

    fn device(&mut self, process: ProcessId, number: Option<u32>) -> DeviceId {
        let next = DeviceId(self.devices.len() as u32 + 1);
        *self.by_number.entry((process, number)).or_insert_with(|| {
            self.devices.push((process, number));
            next
        })
    }

    /// The device with a number, as the process uses it.
    pub(super) fn device_of(&self, process: ProcessId, number: u32) -> Option<DeviceId> {
        self.by_number.get(&(process, Some(number))).copied()
    }
}
