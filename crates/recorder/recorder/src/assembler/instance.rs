//! The state of an instance (a submitted execution of a command recording): its times arrive in parts, until it
//! becomes rows. The hook is gapscope's library in the program, which asks the device for the times; a tick is a time
//! as the device wrote it.

use super::cross_buffer_labels::BufferLabels;
use crate::clock::{Ticks, Unplaced};
use gapscope_spool::event::{NO_TICKS, Outcome};
use gapscope_spool::ids as hook;
use gapscope_trace::ids::{CommandBufferId, LabelId, ProcessId, QueueId, SubmissionId};
use serde::{Deserialize, Serialize};

/// A submitted execution of a command recording.
#[derive(Debug, Serialize, Deserialize)]
pub struct Instance {
    /// The id of the process.
    pub process: ProcessId,
    /// The id of the command buffer in the trace.
    pub command_buffer: CommandBufferId,
    /// The id of the executed recording in the process.
    pub recording: hook::CommandRecording,
    /// The id of the submission in the trace.
    pub submission: SubmissionId,
    /// The id of the queue in the trace.
    pub queue: QueueId,
    /// The start of the call that submitted the instance.
    pub submitted_ns: i64,
    /// The id of the label around the submission; `None` if there is none.
    pub label: Option<LabelId>,
    /// Labels that span this and other command buffers.
    pub spanning: BufferLabels,
    /// The timestamps of the recording and of the recordings that it executes.
    pub timestamps: Vec<Timestamps>,
    /// The ticks before and after the instance, by a bracket (two command buffers of the hook); `None` without one.
    pub bracket: Option<RawInterval>,
    /// The counted values: the queue family, and a value for each of its counters.
    pub counted: Option<(u32, Vec<f64>)>,
    /// The outcome of the timing; `None` before it is known.
    pub outcome: Option<Outcome>,
    /// The time at which the host saw the instance finished; `None` before.
    pub seen_ns: Option<i64>,
    /// The position on the device's clock.
    pub position: ClockPosition,
}

/// An interval of raw ticks.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub struct RawInterval {
    pub start: u64,
    pub end: u64,
}

/// A reading of a device's clock: its raw ticks, and the ticks without the clock's wraps (unwrapped).
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub struct Reading {
    pub raw: u64,
    pub ticks: Ticks,
}

/// The position of an instance on its device's clock.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub enum ClockPosition {
    /// The position is not known yet.
    Pending,
    /// The position is known.
    Known {
        /// The first reading of the instance.
        start: Reading,
        /// The last reading of the instance.
        end: Ticks,
        /// The maximum valid time between two readings of the instance, in ticks.
        longest: i64,
    },
    /// The position cannot become known.
    Unknown(NoPosition),
}

/// The reason why an instance has no position on its device's clock.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub enum NoPosition {
    /// The timing failed; see the outcome.
    NotTimed,
    /// The device wrote none of the timestamps.
    NotDelivered,
    /// The timestamps are zero, or end before they start.
    Invalid,
    /// The clock cannot place the timestamps, for the reason that [`Unplaced`] gives.
    Unplaced(Unplaced),
}

/// The timestamps of one recording in one instance, by query (the index of a timestamp that the hook asked for).
#[derive(Debug, Serialize, Deserialize)]
pub struct Timestamps {
    /// The id of the recording in the process.
    pub recording: hook::CommandRecording,
    /// The raw ticks by query; [`NO_TICKS`] where the device wrote none.
    pub ticks: Vec<u64>,
}

impl Instance {
    /// Adds timestamps, 8 bytes each, from query `first` on. `most` is the number of queries of the recording.
    /// Returns how many timestamps did not fit.
    pub fn add(
        &mut self,
        recording: hook::CommandRecording,
        first: u32,
        bytes: &[u8],
        most: u32,
    ) -> u64 {
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

    /// Returns the timestamps of a recording; empty if there are none.
    pub fn ticks(&self, recording: hook::CommandRecording) -> &[u64] {
        self.timestamps
            .iter()
            .find(|t| t.recording == recording)
            .map_or(&[], |t| t.ticks.as_slice())
    }

    /// Returns the approximate memory of the instance.
    pub fn bytes(&self) -> usize {
        let ticks: usize = self.timestamps.iter().map(|t| t.ticks.capacity()).sum();
        let counted = self.counted.as_ref().map_or(0, |(_, v)| v.capacity());
        size_of::<Instance>() + (ticks + counted) * size_of::<u64>()
    }
}
