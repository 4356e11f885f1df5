//! The types of the findings on the code behind idle time. `code.rs` makes them; report and page show them.
//! A hook is gapscope's library in a program; a worker is a process that works for a recorded one, as a data loader.

use super::MIN_SAMPLES_FOR_SHARES;
use crate::gaps::Cause;
use crate::stacks::{CodeFrame, own};
use crate::waited_for::WaitedFor;
use gapscope_timeline::quantity::ratio;
use gapscope_timeline::thresholds::{self, MOST_OF_CALLS_SHARE};
use gapscope_trace::ids::{ProcessId, ThreadId};
use gapscope_trace::tables::SampleSource;
use schemars::JsonSchema;
use serde::Serialize;
use std::collections::BTreeMap;

/// So many samples are enough to say that a thread waited where all of them found it blocked.
const MIN_SAMPLES_ALL_BLOCKED: u64 = 4;

/// What tells the code of a cause.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum CodeSource {
    /// Samples of the stacks of the submitting threads: times are estimates.
    #[default]
    Samples,
    /// The ranges that the submitting threads were in (functions, operators, annotations and labels): times are exact.
    /// Ranges with less than 5 % of a cause's time are told under those around them.
    Ranges,
}

/// The code behind idle time.
#[derive(Debug, Clone, Default, PartialEq, Serialize, JsonSchema)]
pub struct Code {
    /// Samples of submitting threads in gaps.
    pub samples: u64,
    /// Samples of all threads that were taken in the whole recording at regular times.
    pub taken_samples: u64,
    /// Samples that are missing in the whole recording: they were not taken in time, or their stacks could not be read.
    pub missing_samples: u64,
    /// The code by cause, without causes that belong to no thread.
    pub causes: Vec<CauseCode>,
    /// For each of the longest gaps, in their order: its code, the greatest first.
    pub longest: Vec<Vec<CodeTime>>,
    /// The code of worker processes while a submitting thread waited for them.
    pub workers: Option<Workers>,
    /// The threads that had the interpreter's lock (GIL) while a submitting thread waited for it.
    pub gil: Vec<LockHolder>,
    /// The other threads of its process that ran while a submitting thread was blocked, as far as they were sampled.
    pub ran_meanwhile: Vec<RanMeanwhile>,
}

/// What a blocked thread waited for.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, JsonSchema)]
pub struct Sleep {
    /// What it waited for.
    pub waited_for: WaitedFor,
    /// The system call in which it was blocked, where that is known.
    pub system_call: Option<String>,
    /// Samples that found it so.
    pub samples: u64,
}

impl Sleep {
    /// Returns what was waited for with the system call, as the end of a sentence.
    pub fn words(&self) -> String {
        let words = self.waited_for.words();
        match &self.system_call {
            Some(call) => format!("{words}, in {call}"),
            None => words.to_owned(),
        }
    }
}

/// A thread that ran while a submitting thread of its process was blocked.
#[derive(Debug, Clone, PartialEq, Serialize, JsonSchema)]
pub struct RanMeanwhile {
    /// Id of the process.
    pub process_id: ProcessId,
    /// The system's id of the thread.
    pub thread: ThreadId,
    /// Its name, where it is known.
    pub thread_name: Option<String>,
    /// Samples in which it ran then.
    pub samples: u64,
    /// The stack that it mostly had then, the innermost frame first; empty where no stack could be read.
    pub frames: Vec<CodeFrame>,
}

impl CauseCode {
    /// Returns true where shares of the cause's time are known: by ranges, or by enough samples.
    pub fn has_shares(&self) -> bool {
        self.source == CodeSource::Ranges || self.samples >= MIN_SAMPLES_FOR_SHARES
    }

    /// Returns how many samples found the thread blocked.
    pub fn blocked(&self) -> u64 {
        self.sleeps.iter().map(|sleep| sleep.samples).sum()
    }

    /// Returns what the thread mostly waited for, where at least half of enough samples found it blocked, or where it was in ranges that
    /// are waits by their names for most of the time.
    pub fn mostly_slept_for(&self) -> Option<Sleep> {
        if self.source == CodeSource::Ranges {
            return self.mostly_in_waits();
        }
        let blocked = self.blocked();
        let is_enough = self.samples >= MIN_SAMPLES_FOR_SHARES
            || (self.samples >= MIN_SAMPLES_ALL_BLOCKED && blocked == self.samples);
        let is_asleep = is_enough && blocked * 2 >= self.samples;
        self.sleeps.first().filter(|_| is_asleep).cloned()
    }

    /// Returns what the thread waited for in those ranges that are waits, where these have most of the time.
    fn mostly_in_waits(&self) -> Option<Sleep> {
        let mut waits: BTreeMap<WaitedFor, i64> = BTreeMap::new();
        for time in &self.code {
            if let Some(waited_for) = WaitedFor::by_name(&time.frames) {
                let sum = waits.entry(waited_for).or_default();
                *sum = sum.saturating_add(time.total_ns);
            }
        }
        let all_ns = waits.values().copied().fold(0, i64::saturating_add);
        let (waited_for, _) = waits.into_iter().max_by_key(|(_, ns)| *ns)?;
        (ratio(all_ns, self.total_ns) >= MOST_OF_CALLS_SHARE).then_some(Sleep {
            waited_for,
            system_call: None,
            samples: 0,
        })
    }
}

/// The code of a cause.
#[derive(Debug, Clone, PartialEq, Serialize, JsonSchema)]
pub struct CauseCode {
    /// The cause.
    pub cause: Cause,
    /// What tells the code.
    pub source: CodeSource,
    /// Its idle time that belongs to a submitting thread.
    pub total_ns: i64,
    /// The part of it for which no samples stand, or in which the thread was in no range.
    pub without_samples_ns: i64,
    /// Samples in it; 0 where ranges tell the code.
    pub samples: u64,
    /// By stack, the greatest first; with `without_samples_ns` they sum to `total_ns`. In JSON they are `code`.
    #[serde(skip)]
    pub code: Vec<CodeTime>,
    /// Lines that hooks saw at the end of waits and at submissions, the most frequent first.
    pub exact: Vec<ExactLine>,
    /// What the thread waited for in the samples that found it blocked, the most frequent first.
    pub sleeps: Vec<Sleep>,
}

impl Code {
    /// Returns true where so many samples are missing that their number has to be said.
    pub fn misses_many(&self) -> bool {
        let wanted = self.taken_samples.saturating_add(self.missing_samples);
        self.missing_samples as f64 >= thresholds::MISSING_SAMPLES * wanted as f64 && wanted > 0
    }

    /// Returns the code of a cause, where a submitting thread has idle time of that cause.
    pub fn of_cause(&self, cause: Cause) -> Option<&CauseCode> {
        self.causes.iter().find(|code| code.cause == cause)
    }

    /// Returns the code by cause without that of the longest gap.
    pub fn outside_of_longest(&self) -> Code {
        let gap = self.longest.first().map_or(&[][..], Vec::as_slice);
        let causes = self.causes.iter().map(|cause| cause.without(gap));
        Code {
            causes: causes.collect(),
            ..self.clone()
        }
    }

    /// Returns true where ranges tell the code, and not samples.
    pub fn is_of_ranges(&self) -> bool {
        (self.causes.iter()).any(|cause| cause.source == CodeSource::Ranges)
    }

    /// Returns the frame that represents each sampled stack ([`own`]), so that the caller can set the text of its
    /// source line. The files of ranges are those of the machine of the file that was imported.
    pub fn own_frames(&mut self) -> impl Iterator<Item = &mut CodeFrame> {
        let sampled = (self.causes.iter_mut()).filter(|cause| cause.source == CodeSource::Samples);
        let times = sampled.flat_map(|cause| &mut cause.code);
        times.filter_map(|time| {
            let own = own(&time.frames)?;
            time.frames.get_mut(own)
        })
    }
}

/// The time of a group of stacks: they have the same own frame with the same callers, and call the same function from it.
#[derive(Debug, Clone, PartialEq, Serialize, JsonSchema)]
pub struct CodeTime {
    /// The cause.
    pub cause: Cause,
    /// Idle time: an estimate from the samples, or exact where ranges tell the code.
    pub total_ns: i64,
    /// The samples that the time is estimated from; 0 where ranges tell the code.
    pub samples: u64,
    /// How many of them found the thread blocked in a system call.
    pub blocked: u64,
    /// The stack that most of these samples have, the innermost frame first. Empty: the stack could not be read.
    pub frames: Vec<CodeFrame>,
    /// It is an event loop that waits for work.
    pub is_idle_event_loop: bool,
}

/// A line that a hook saw.
#[derive(Debug, Clone, PartialEq, Serialize, JsonSchema)]
pub struct ExactLine {
    /// `after-wait` or `at-submission`.
    #[schemars(with = "String")]
    pub source: SampleSource,
    /// How often it was seen.
    pub count: u64,
    /// A stack with it, the innermost frame first.
    pub frames: Vec<CodeFrame>,
}

/// The code of worker processes while a submitting thread waited for them.
#[derive(Debug, Clone, PartialEq, Serialize, JsonSchema)]
pub struct Workers {
    /// How many processes there are.
    pub processes: u64,
    /// Samples of them.
    pub samples: u64,
    /// By stack, the most frequent first: samples, and a stack, the innermost frame first.
    pub code: Vec<WorkerCode>,
}

/// Code of workers.
#[derive(Debug, Clone, PartialEq, Serialize, JsonSchema)]
pub struct WorkerCode {
    /// Samples in it.
    pub samples: u64,
    /// A stack, the innermost frame first.
    pub frames: Vec<CodeFrame>,
}

/// A thread that had the interpreter's lock.
#[derive(Debug, Clone, PartialEq, Serialize, JsonSchema)]
pub struct LockHolder {
    /// Id of the process.
    pub process_id: ProcessId,
    /// The system's id of the thread.
    pub thread: ThreadId,
    /// Its name, where it is known.
    pub thread_name: Option<String>,
    /// Samples in which a submitting thread waited for it in a gap.
    pub samples: u64,
    /// The stack that it mostly had then, the innermost frame first; empty where that was not sampled.
    pub frames: Vec<CodeFrame>,
}
