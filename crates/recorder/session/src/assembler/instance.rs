//! Instances: submitted executions of recordings, on their way to rows.

use super::spanning::SpannedBuffer;
use crate::clock::{Ticks, Unplaced};
use gapscope_spool::event::{NO_TICKS, Outcome};
use gapscope_spool::ids as hook;
use gapscope_trace::ids::{CommandBufferId, LabelId, ProcessId, QueueId, SubmissionId};
use serde::{Deserialize, Serialize};

/// A submitted execution of a recording.
#[derive(Debug, Serialize, Deserialize)]
pub struct Instance {
    /// Id of its process.
    pub process: ProcessId,
    /// Id of the command buffer in the trace.
    pub command_buffer: CommandBufferId,
    /// What it executes, in the process's ids.
    pub recording: hook::Recording,
    /// Id of its submission in the trace.
    pub submission: SubmissionId,
    /// Id of its queue in the trace.
    pub queue: QueueId,
    /// When the call that submitted it started.
    pub submitted_ns: i64,
    /// The label around its submission.
    pub label: Option<LabelId>,
    /// Labels that span it and others.
    pub spanning: SpannedBuffer,
    /// Timestamps, of its own recording and of those that it executes.
    pub timestamps: Vec<Timestamps>,
    /// Where it was bracketed.
    pub bracket: Option<RawInterval>,
    /// What was counted while it ran: the family, and a value for each of its counters.
    pub counted: Option<(u32, Vec<f64>)>,
    /// How its timing ended.
    pub outcome: Option<Outcome>,
    /// When it was seen finished.
    pub seen_ns: Option<i64>,
    /// Where it lies on its device's clock.
    pub position: ClockPosition,
}

/// Raw ticks before and after something.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub struct RawInterval {
    /// Before it.
    pub start: u64,
    /// After it.
    pub end: u64,
}

/// A raw reading of a device's clock, and where it lies.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub struct Reading {
    /// As the device wrote it.
    pub raw: u64,
    /// Unwrapped.
    pub ticks: Ticks,
}

/// Where an instance lies on its device's clock.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub enum ClockPosition {
    /// Not known yet.
    Pending,
    /// Known.
    Known {
        /// The first reading of the instance.
        start: Reading,
        /// Its last reading.
        end: Ticks,
        /// No time inside it can be longer.
        longest: i64,
    },
    /// Never to be known.
    Unknown(NoPosition),
}

/// Why an instance has no position on its device's clock.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub enum NoPosition {
    /// Its timing ended otherwise: see the outcome.
    NotTimed,
    /// The device wrote none of its timestamps.
    NotDelivered,
    /// Its timestamps are zero, or end before they start.
    Invalid,
    /// See [`Unplaced`].
    Unplaced(Unplaced),
}

/// Timestamps of one recording in one instance, by query.
#[derive(Debug, Serialize, Deserialize)]
pub struct Timestamps {
    /// The recording, in the process's ids.
    pub recording: hook::Recording,
    /// Raw ticks.
    pub ticks: Vec<u64>,
}

impl Instance {
    /// Adds timestamps from query `first` on, of at most `most` that the recording has. Returns how many did not fit.
    pub fn add(&mut self, recording: hook::Recording, first: u32, bytes: &[u8], most: u32) -> u64 {
        let slot = match self
            .timestamps
            .iter()
            .position(|t| t.recording == recording)
        {
            Some(slot) => slot,
            None => {
                self.timestamps.push(Timestamps {
                    recording,
                    ticks: Vec::new(),
                });
                self.timestamps.len() - 1
            }
        };
        let ticks = &mut self.timestamps[slot].ticks;
        let (words, _) = bytes.as_chunks::<8>();
        let (first, most) = (first as usize, most as usize);
        let fits = words.len().min(most.saturating_sub(first));
        if fits > 0 {
            if ticks.capacity() == 0 {
                ticks.reserve_exact(most);
            }
            if ticks.len() < first + fits {
                ticks.resize(first + fits, NO_TICKS);
            }
            for (tick, word) in ticks[first..].iter_mut().zip(words) {
                *tick = u64::from_le_bytes(*word);
            }
        }
        (words.len() - fits) as u64
    }

    /// The timestamps of a recording; empty when there are none.
    pub fn ticks(&self, recording: hook::Recording) -> &[u64] {
        self.timestamps
            .iter()
            .find(|t| t.recording == recording)
            .map_or(&[], |t| t.ticks.as_slice())
    }

    /// Memory that it holds, about.
    pub fn bytes(&self) -> usize {
        let ticks: usize = self.timestamps.iter().map(|t| t.ticks.capacity()).sum();
        let counted = self.counted.as_ref().map_or(0, |(_, v)| v.capacity());
        size_of::<Instance>() + (ticks + counted) * size_of::<u64>()
    }
}
