//! The parameters of a generated trace, and the ids that follow from them.

use crate::ids::{DeviceId, ProcessId, QueueId, ThreadId};
use crate::manifest::{Clock, ClockMethod};

/// The id of the only process.
pub(super) const PROCESS: ProcessId = ProcessId(1);
/// The start of the recording.
pub(super) const START_NS: i64 = 1_000_000_000;

/// The note in the manifest of each generated trace.
pub(super) const NOTE: &str = "This trace is made up: no program was recorded.";

/// Returns the clock of a device whose ticks are nanoseconds.
pub(super) fn clock() -> Clock {
    Clock {
        method: ClockMethod::Calibrated,
        error_ns: Some(1_000),
        samples: 2,
        drift_ppm: Some(0.0),
        nanoseconds_per_tick: 1.0,
    }
}

/// Returns the thread that feeds a queue.
pub(super) fn thread_of(queue: QueueId) -> ThreadId {
    ThreadId(4242 + queue.0)
}

/// The parameters of a generated trace.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Synthetic {
    /// Number of dispatches.
    pub dispatches: u64,
    /// Number of queues, shared out evenly among the devices; at least 1.
    pub queues: u32,
    /// Number of GPUs; at least 1.
    pub devices: u32,
    /// Number of kernels; at least 1.
    pub kernels: u32,
    /// Modules of the model, each with a label around the labels of its parts; at least 1.
    pub layers: u32,
    /// The seed: another one gives another trace.
    pub seed: u64,
}

impl Default for Synthetic {
    fn default() -> Synthetic {
        Synthetic {
            dispatches: 1_000_000,
            queues: 8,
            devices: 1,
            kernels: 200,
            layers: 32,
            seed: 1,
        }
    }
}

impl Synthetic {
    pub(super) fn queues(&self) -> impl Iterator<Item = QueueId> {
        (1..=self.queues.max(1)).map(QueueId)
    }

    pub(super) fn device_of(&self, queue: QueueId) -> DeviceId {
        DeviceId((queue.0 - 1) % self.devices.max(1) + 1)
    }
}
