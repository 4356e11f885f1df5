//! The state of devices and queues, and of the instances (submitted executions of command recordings) that wait
//! until their device's clock is settled.

use super::cross_buffer_labels::CrossBufferLabels;
use super::instance::Instance;
use crate::clock::{Causal, DeviceClock, Ticks};
use gapscope_trace::ids::LabelId;
use gapscope_trace::manifest;
use serde::{Deserialize, Serialize};
use std::collections::VecDeque;

/// A device in one process.
#[derive(Debug, Default, Serialize, Deserialize)]
pub struct Device {
    /// The device in the manifest (the trace's description); its clock is filled in at the end.
    pub facts: manifest::Device,
    /// The clock; `None` if the record of the device is missing.
    pub clock: Option<DeviceClock>,
    /// Finished instances whose times are not settled yet.
    pub waiting: VecDeque<Instance>,
    /// The memory that the waiting instances hold.
    pub waiting_bytes: usize,
    /// Whether the device is gone, so that its clock gets no more samples.
    pub ended: bool,
}

#[derive(Debug, Default, Serialize, Deserialize)]
pub struct Queue {
    /// The queue in the manifest.
    pub facts: manifest::Queue,
    /// The labels that are open on the queue, outermost first.
    pub labels: Vec<OpenQueueLabel>,
    /// The labels that span several command buffers of the queue.
    pub spanning: CrossBufferLabels,
    /// The start of the queue's last command buffer: later ones start no earlier.
    pub last_start: Option<Ticks>,
}

/// A label that is open on a queue.
#[derive(Debug, Clone, Copy, Serialize, Deserialize)]
pub struct OpenQueueLabel {
    pub label: LabelId,
    pub start_ns: i64,
}

impl Device {
    /// Returns the bounds that cause and effect set between the clocks of device and host (work starts after its
    /// launch and ends before a wait for it returns), if the device's times are mapped to the host's clock.
    pub fn causal(&mut self) -> Option<&mut Causal> {
        self.clock.as_mut()?.causal()
    }

    /// Returns the device for the manifest.
    pub fn summary(&self) -> manifest::Device {
        let mut facts = self.facts.clone();
        if let Some(clock) = &self.clock {
            facts.clock = clock.summary();
        }
        facts
    }
}
