//! Tracks the semaphores by which submissions wait for each other, to find the submission that another one waits
//! for.

use gapscope_spool::event::SemaphoreValue;
use gapscope_spool::ids as hook;
use gapscope_timeline_builder::rows;
use gapscope_trace::ids::SubmissionId;
use gapscope_trace::tables::Tables;
use rustc_hash::FxHashMap;
use serde::{Deserialize, Serialize};
use std::collections::VecDeque;

/// The number of signals that are kept for each timeline semaphore. A wait for an older signal was met long ago.
const MAX_SIGNALS: usize = 256;

/// The semaphores of one process.
#[derive(Debug, Default, Serialize, Deserialize)]
pub struct Semaphores {
    /// The submission that last signalled each binary semaphore.
    binary: FxHashMap<hook::Semaphore, SubmissionId>,
    /// The timeline semaphores: those whose values in events are not 0.
    timelines: FxHashMap<hook::Semaphore, Timeline>,
}

/// A timeline semaphore, whose state is a growing number: pairs of value and signal, and of value and waiting
/// submission.
#[derive(Debug, Default, Serialize, Deserialize)]
struct Timeline {
    /// The last signals, each with the value that it set.
    signals: VecDeque<(u64, Signal)>,
    /// Values that were waited for before they were signalled.
    waits: Vec<(u64, SubmissionId)>,
}

/// The origin of a signal: a submission, or the host at a time.
#[derive(Debug, Clone, Copy, Serialize, Deserialize)]
enum Signal {
    Submission(SubmissionId),
    Host(i64),
}

impl Semaphores {
    /// Adds a submission that waits for semaphores and then signals others; value 0 stands for a binary semaphore.
    /// Waits whose signal is known become rows.
    pub fn submit(
        &mut self,
        submission: SubmissionId,
        waits: &[SemaphoreValue],
        signals: &[SemaphoreValue],
        tables: &mut Tables,
    ) {
        for wait in waits {
            if wait.value == 0 {
                // A wait consumes the signal of a binary semaphore.
                let signal = self.binary.remove(&wait.semaphore).map(Signal::Submission);
                write(submission, signal, tables);
                continue;
            }
            let timeline = self.timelines.entry(wait.semaphore).or_default();
            match timeline.signal(wait.value) {
                Some(signal) => write(submission, Some(signal), tables),
                None => timeline.waits.push((wait.value, submission)),
            }
        }
        for signal in signals {
            if signal.value == 0 {
                self.binary.insert(signal.semaphore, submission);
            } else {
                self.signal(*signal, Signal::Submission(submission), tables);
            }
        }
    }

    /// Records that the host signals a timeline semaphore.
    pub fn host_signal(&mut self, semaphore: SemaphoreValue, at_ns: i64, tables: &mut Tables) {
        self.signal(semaphore, Signal::Host(at_ns), tables);
    }

    /// Keeps a signal, and writes the waits that it meets.
    fn signal(&mut self, semaphore: SemaphoreValue, signal: Signal, tables: &mut Tables) {
        let timeline = self.timelines.entry(semaphore.semaphore).or_default();
        if timeline.signals.len() == MAX_SIGNALS {
            timeline.signals.pop_front();
        }
        timeline.signals.push_back((semaphore.value, signal));
        timeline.waits.retain(|(value, submission)| {
            // A submission signals after its own waits, so that it cannot meet them.
            let is_own = matches!(signal, Signal::Submission(id) if id == *submission);
            let met = *value <= semaphore.value && !is_own;
            if met {
                write(*submission, Some(signal), tables);
            }
            !met
        });
    }

    /// Forgets a destroyed semaphore, so that memory stays bounded for programs that create many.
    pub fn end(&mut self, semaphore: hook::Semaphore, tables: &mut Tables) {
        self.binary.remove(&semaphore);
        for (_, submission) in self.timelines.remove(&semaphore).unwrap_or_default().waits {
            write(submission, None, tables);
        }
    }

    /// Ends the remaining waits, whose signals are unknown.
    pub fn finish(&mut self, tables: &mut Tables) {
        let mut open: Vec<SubmissionId> = self
            .timelines
            .values_mut()
            .flat_map(|t| t.waits.drain(..))
            .map(|(_, submission)| submission)
            .collect();
        open.sort_unstable();
        for submission in open {
            write(submission, None, tables);
        }
    }
}

impl Timeline {
    /// Returns the first signal that reaches `value`.
    fn signal(&self, value: u64) -> Option<Signal> {
        self.signals
            .iter()
            .find(|(signalled, _)| *signalled >= value)
            .map(|(_, signal)| *signal)
    }
}

/// Writes the row of a wait; `signal` is `None` where nobody is known to have signalled.
fn write(submission: SubmissionId, signal: Option<Signal>, tables: &mut Tables) {
    let (waits_for, host_signal_ns) = match signal {
        Some(Signal::Submission(id)) => (Some(id), None),
        Some(Signal::Host(at_ns)) => (None, Some(at_ns)),
        None => (None, None),
    };
    rows::dependency(tables, submission, waits_for, host_signal_ns);
}
