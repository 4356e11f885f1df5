//! Defines [`Replay`], the result of a replay, and computes its sums from the runs.

use gapscope_capture::model::Submission;
use schemars::JsonSchema;
use serde::Serialize;

use crate::comparison::Difference;
use crate::options::{Options, Schedule};
use crate::program::Extent;
use crate::session::Session;

/// The results of a replay.
#[derive(Debug, Clone, Default, Serialize, JsonSchema)]
pub struct Replay {
    /// The device that the capture ran on.
    pub device: String,
    /// The device's driver.
    pub driver: String,
    /// The device that was captured.
    pub captured_device: String,
    /// The captured device and this one have the same driver, which compiles the same code for both, so that results
    /// should be equal bit for bit.
    pub same_device: bool,
    /// Order and overlap of the submissions.
    pub schedule: Schedule,
    /// Dispatches that ran, in one run.
    pub dispatch_count: u64,
    /// Submissions of the program that ran, in one run.
    pub submission_count: u64,
    /// Pieces of memory, of at most 64 KiB, that were compared in all runs.
    pub outputs_compared: u64,
    /// Pieces that are equal to what the program had.
    pub outputs_equal: u64,
    /// Pieces that differ only within the tolerance.
    pub outputs_within: u64,
    /// The first pieces that differ.
    pub differences: Vec<Difference>,
    /// Device time of each timed run in nanoseconds, from the first command of each submission to its last; none: not known.
    pub runs_ns: Vec<Option<u64>>,
    /// Median of the runs.
    pub median_ns: Option<u64>,
    /// The shortest run.
    pub least_ns: Option<u64>,
    /// The longest run.
    pub most_ns: Option<u64>,
    /// Device time of the program's submissions in nanoseconds, each alone, when they were captured; none: not known.
    pub captured_ns: Option<u64>,
    /// Nanoseconds from the first submission's call to the last one's when they were captured. The time that
    /// capturing took is included.
    pub captured_calls_ns: Option<u64>,
    /// Nanoseconds that copies took in the median run of a tight replay, which stand for the host's writes.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub host_writes_ns: Option<u64>,
    /// Notes for readers.
    pub notes: Vec<String>,
}

impl Replay {
    /// Returns whether something was compared, and all of it was equal, or within the tolerance where one was given.
    pub fn is_equal(&self) -> bool {
        self.outputs_compared > 0 && self.different() == 0
    }

    /// Returns the number of outputs that differ.
    pub fn different(&self) -> u64 {
        self.outputs_compared - self.outputs_equal - self.outputs_within
    }

    /// Makes the result of a session (a capture on an open device) before its first run.
    pub(crate) fn new(session: &Session<'_>, options: &Options) -> Replay {
        let properties = &session.gpu.properties;
        let header = &session.capture.header;
        let device = &header.device;
        let submissions: Vec<_> = session.program.submissions().collect();
        Replay {
            device: properties.name.clone(),
            driver: properties.driver.clone(),
            captured_device: device.name.clone(),
            same_device: device.pipeline_cache_uuid == properties.pipeline_cache_uuid
                && device.name == properties.name,
            schedule: options.schedule,
            dispatch_count: session.program.dispatches,
            submission_count: submissions
                .iter()
                .map(|called| called.submission.batches.len() as u64)
                .sum(),
            captured_ns: match options.extent {
                Extent::Whole => submissions.iter().map(|s| recorded_ns(s.submission)).sum(),
                // The program's time of a part of the window is not known.
                _ => None,
            },
            captured_calls_ns: {
                let called: Vec<u64> = submissions.iter().map(|s| s.submission.called_ns).collect();
                let ends = called.iter().min().zip(called.iter().max());
                ends.map(|(first, last)| last - first)
            },
            notes: session.notes.clone(),
            ..Replay::default()
        }
    }

    /// Sets median, shortest and longest run from the timed runs.
    pub(crate) fn summarise(&mut self) {
        [self.least_ns, self.median_ns, self.most_ns] = spread(self.runs_ns.iter().flatten());
    }
}

/// Returns the least value, the median and the greatest value; `None` if there are no values.
pub fn spread<'a>(values: impl IntoIterator<Item = &'a u64>) -> [Option<u64>; 3] {
    let mut sorted: Vec<u64> = values.into_iter().copied().collect();
    sorted.sort_unstable();
    let (least, most) = (sorted.first(), sorted.last());
    [least.copied(), median(&sorted), most.copied()]
}

/// Returns the median of sorted values; `None` if there are none.
pub fn median(sorted: &[u64]) -> Option<u64> {
    let middle = sorted.len() / 2;
    match sorted.len() % 2 {
        1 => sorted.get(middle).copied(),
        _ => Some(
            sorted
                .get(middle.checked_sub(1)?)?
                .midpoint(*sorted.get(middle)?),
        ),
    }
}

/// Returns the device time of a captured submission. A submission of fences or semaphores alone takes 0.
fn recorded_ns(submission: &Submission) -> Option<u64> {
    let is_empty = submission
        .batches
        .iter()
        .all(|batch| batch.commands.is_empty());
    submission.device_ns.or(is_empty.then_some(0))
}
