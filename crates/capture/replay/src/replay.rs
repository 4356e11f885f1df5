//! Runs a capture as options say, and sums up the results.

use std::path::PathBuf;

use gapscope_capture::Capture;
use gapscope_capture::model::Submission;
use schemars::JsonSchema;
use serde::Serialize;

use crate::adapter::DeviceChoice;
use crate::comparison::{self, Comparison, Difference};
use crate::error::Error;
use crate::program::Extent;
use crate::recording::{Recording, SubmissionTimestamps, TimestampScope};
use crate::session::{Observation, RecordingOptions, Session};
use crate::single_submission::SingleSubmission;
use crate::trace;

/// The most differences that are described. All are counted.
pub const MAX_DIFFERENCES: usize = 100;

/// Options of a replay.
#[derive(Debug, Clone, Default)]
pub struct Options {
    /// The device; none: the one with the captured device's name, else the first.
    pub device: Option<DeviceChoice>,
    /// Order and overlap of the submissions.
    pub schedule: Schedule,
    /// The part of the capture that runs.
    pub extent: Extent,
    /// Number of runs that are timed; 0 means 1.
    pub repeat: u32,
    /// Number of runs before those.
    pub warm_up: u32,
    /// The folder for a trace of the timed runs.
    pub trace: Option<PathBuf>,
    /// Run only this dispatch, on memory as the work before it leaves it.
    pub only: Option<u64>,
    /// The greatest error of a floating-point value, as a share of the greater of 1 and the captured value. It counts
    /// only where the capture has the bytes of its outputs.
    pub tolerance: Option<f64>,
    /// Keep accesses outside of buffers inside, where the device can.
    pub robust: bool,
}

/// Order and overlap of the work.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum Schedule {
    /// Submission by submission, as captured.
    #[default]
    AsCaptured,
    /// As captured, with a barrier after each dispatch and transfer.
    Serialised,
    /// All work in one submission, without the host in between.
    Tight,
}

/// The results of a replay.
#[derive(Debug, Clone, Serialize, JsonSchema)]
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
}

/// Runs a capture and compares what it leaves in memory.
///
/// # Errors
/// The capture cannot be run.
pub fn replay(capture: &Capture, options: &Options) -> Result<Replay, Error> {
    if let Some(number) = options.only {
        return crate::alone::replay(capture, number, options);
    }
    // If the folder exists, this is said before anything runs.
    let writer = options.trace.as_deref().map(trace::begin).transpose()?;
    let mut session = Session::open(
        capture,
        options.extent,
        options.device.as_ref(),
        options.robust,
    )?;
    session.tolerance = options.tolerance;
    let each = options.trace.is_some() || options.schedule == Schedule::Serialised;
    let recording_options = RecordingOptions {
        serialised: options.schedule == Schedule::Serialised,
        timed: if each {
            TimestampScope::Dispatches
        } else {
            TimestampScope::Submissions
        },
    };
    let mut result = Replay::new(&session, options);
    let runs = options.warm_up.saturating_add(options.repeat.max(1));
    let runner = Runner::new(&session, options.schedule, recording_options)?;
    let mut observed = Vec::new();
    let mut different = Vec::new();
    for run in 0..runs {
        let timed = run.checked_sub(options.warm_up);
        let mut of_run = Vec::new();
        let compared = &mut result.outputs_compared;
        let found = runner.run(&mut session, timed.unwrap_or(0), &mut of_run, compared)?;
        if let (Runner::SingleSubmission(tight), [one], Some(_)) =
            (&runner, of_run.as_slice(), timed)
        {
            result.host_writes_ns = tight.writes_ns(&session, one);
        }
        result.outputs_within += found.within;
        different.extend(found.different);
        if timed.is_some() {
            result.runs_ns.push(device_ns(&session, &of_run));
            observed.extend(of_run);
        }
    }
    drop(runner);
    let others = different.len() as u64 + result.outputs_within;
    result.outputs_equal = result.outputs_compared - others;
    result.differences = (different.iter().take(MAX_DIFFERENCES))
        .map(|found| comparison::describe(capture, &session.program, found))
        .collect();
    result.summarise();
    if let Some(writer) = writer {
        let facts = trace::RunFacts {
            schedule: options.schedule,
            runs: options.repeat.max(1),
        };
        trace::write(writer, &mut session, &observed, &facts)?;
    }
    Ok(result)
}

/// A recorded program.
pub enum Runner<'a> {
    Apart(Vec<(Recording, SubmissionTimestamps)>),
    SingleSubmission(SingleSubmission<'a>),
}

impl<'a> Runner<'a> {
    /// Records a program, without the barriers that the session leaves out.
    pub fn new(
        session: &Session<'a>,
        schedule: Schedule,
        recording_options: RecordingOptions,
    ) -> Result<Runner<'a>, Error> {
        Ok(match schedule {
            Schedule::Tight => {
                Runner::SingleSubmission(SingleSubmission::new(session, recording_options)?)
            }
            Schedule::AsCaptured | Schedule::Serialised => {
                Runner::Apart(session.record(recording_options)?)
            }
        })
    }

    /// Runs the program once, and returns the pieces that differ.
    pub fn run(
        &self,
        session: &mut Session<'a>,
        run: u32,
        observed: &mut Vec<Observation>,
        compared: &mut u64,
    ) -> Result<Comparison, Error> {
        match self {
            Runner::SingleSubmission(tight) => {
                let (one, found) = tight.run(session, run, compared)?;
                observed.push(one);
                Ok(found)
            }
            Runner::Apart(recordings) => session.run(run, recordings, observed, compared),
        }
    }
}

/// Returns the sum of the device times of a run's submissions.
pub fn device_ns(session: &Session<'_>, observed: &[Observation]) -> Option<u64> {
    let each = observed
        .iter()
        .map(|of| Some(session.clock.between_ns(of.pair(of.whole)?)));
    each.sum()
}

impl Replay {
    /// Makes a result of a session in which nothing has run.
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
            submission_count: submissions.len() as u64,
            outputs_compared: 0,
            outputs_equal: 0,
            outputs_within: 0,
            differences: Vec::new(),
            runs_ns: Vec::new(),
            median_ns: None,
            least_ns: None,
            most_ns: None,
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
            host_writes_ns: None,
            notes: session.notes.clone(),
        }
    }

    /// Sums up the timed runs.
    pub(crate) fn summarise(&mut self) {
        let mut known: Vec<u64> = self.runs_ns.iter().copied().flatten().collect();
        known.sort_unstable();
        self.least_ns = known.first().copied();
        self.most_ns = known.last().copied();
        self.median_ns = median(&known);
    }
}

/// Returns the median of sorted values.
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

/// Returns the device time of a submission of the program. A submission of fences or semaphores alone takes none.
fn recorded_ns(submission: &Submission) -> Option<u64> {
    let is_empty = submission
        .batches
        .iter()
        .all(|batch| batch.commands.is_empty());
    submission.device_ns.or(is_empty.then_some(0))
}
