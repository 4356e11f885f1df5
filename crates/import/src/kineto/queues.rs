//! Gives each stream of the file a queue of the process that uses it, and each device of the file a device of the
//! process.

use super::facts::Stream;
use gapscope_trace::ids::{DeviceId, ProcessId, QueueId};
use rustc_hash::FxHashMap;

/// The devices and queues so far.
#[derive(Debug, Default)]
pub(super) struct Queues {
    /// Queues by process and by the number of the file's stream.
    by_stream: FxHashMap<(ProcessId, u32), QueueId>,
    /// The queues in the order of their ids, with the file's streams.
    pub(super) queues: Vec<(DeviceId, Stream)>,
    /// Devices by process and by the file's number of the device, if it has one.
    by_number: FxHashMap<(ProcessId, Option<u32>), DeviceId>,
    /// The devices in the order of their ids, each as its process and its number; `None` if the number is unknown.
    pub(super) devices: Vec<(ProcessId, Option<u32>)>,
}

impl Queues {
    /// Returns the id of the queue that stands for a stream in a process.
    #[inline]
    pub(super) fn id(&mut self, process: ProcessId, stream: u32, streams: &[Stream]) -> QueueId {
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

    /// Returns the id of the device of a process with a number; `None` if no work used it.
    pub(super) fn device_of(&self, process: ProcessId, number: u32) -> Option<DeviceId> {
        self.by_number.get(&(process, Some(number))).copied()
    }
}
