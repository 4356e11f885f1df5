//! Instances: submitted executions of recordings, on their way to rows.

use super::spans::Spanning;
use crate::clock::{Ticks, Unplaced};
use gapscope_spool::event::{NO_TICKS, Outcome};
use gapscope_spool::ids as hook;
use serde::{Deserialize, Serialize};

/// A submitted execution of a recording.
#[derive(Debug, Serialize, Deserialize)]
pub struct Instance {
    /// Id of its process.
    pub process: u32,
    /// Id of the command buffer in the trace.
    pub command_buffer: u64,
    /// What it executes, in the process's ids.
    pub recording: hook::Recording,
    /// Id of its submission in the trace.
    pub submission: u64,
    /// Id of its queue in the trace.
    pub queue: u32,
    /// When the call that submitted it began.
    pub submitted_ns: i64,
    /// The label around its submission.
    pub label: Option<u32>,
    /// Labels that span it and others.
    pub spanning: Spanning,
    /// Timestamps, of its own recording and of those that it executes.
    pub timestamps: Vec<Timestamps>,
    /// Raw ticks before and after it, where it was bracketed.
    pub bracket: Option<(u64, u64)>,
    /// How its timing ended.
    pub outcome: Option<Outcome>,
    /// When it was seen finished.
    pub seen_ns: Option<i64>,
    /// Where it lies on its device's clock.
    pub place: Place,
}

/// Where an instance lies on its device's clock.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub enum Place {
    /// Not known yet.
    Open,
    /// Known.
    At {
        /// A raw reading of the instance, unwrapped.
        base: (u64, Ticks),
        /// Its last reading.
        end: Ticks,
        /// No time inside it can be longer.
        longest: i64,
    },
    /// Never to be known.
    Nowhere(Why),
}

/// Why an instance has no place on its device's clock.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub enum Why {
    /// Its timing ended otherwise: see the outcome.
    NotTimed,
    /// The device wrote none of its timestamps.
    NotDelivered,
    /// Its timestamps are zero, or end before they begin.
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
        size_of::<Instance>() + ticks * size_of::<u64>()
    }
}
