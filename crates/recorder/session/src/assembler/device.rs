//! Devices and queues, with the instances that wait for their device's clock.

use super::instance::Instance;
use super::spanning::SpanningLabels;
use crate::clock::{Causal, DeviceClock, Ticks};
use gapscope_trace::ids::LabelId;
use gapscope_trace::manifest;
use serde::{Deserialize, Serialize};
use std::collections::VecDeque;

/// A device as one process uses it.
#[derive(Debug, Serialize, Deserialize)]
pub struct Device {
    /// What the manifest says; the clock's part is filled in at the end.
    pub facts: manifest::Device,
    /// Its clock; `None` for a device of which the record is missing.
    pub clock: Option<DeviceClock>,
    /// Finished instances whose times are not settled yet.
    pub waiting: VecDeque<Instance>,
    /// Memory that they hold.
    pub waiting_bytes: usize,
    /// It is gone, and its clock gets no more samples.
    pub ended: bool,
}

/// A queue.
#[derive(Debug, Serialize, Deserialize)]
pub struct Queue {
    /// What the manifest says.
    pub facts: manifest::Queue,
    /// Labels that are open on it, outermost first.
    pub labels: Vec<OpenQueueLabel>,
    /// Labels of command buffers that span several of them.
    pub spanning: SpanningLabels,
    /// When the last command buffer on it started: later ones start no earlier.
    pub last_start: Option<Ticks>,
}

/// A label that is open on a queue.
#[derive(Debug, Clone, Copy, Serialize, Deserialize)]
pub struct OpenQueueLabel {
    /// The label.
    pub label: LabelId,
    /// When it started.
    pub start_ns: i64,
}

impl Device {
    /// Cause and effect between it and its host, where its times come on the host's clock.
    pub fn causal(&mut self) -> Option<&mut Causal> {
        self.clock.as_mut()?.causal()
    }

    /// What the manifest says of it.
    pub fn summary(&self) -> manifest::Device {
        let mut facts = self.facts.clone();
        if let Some(clock) = &self.clock {
            facts.clock = clock.summary();
        }
        facts
    }
}
