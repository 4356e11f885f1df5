//! Runs a capture with given options, repeatedly, and returns times and differences; writes a trace of the runs if
//! one is asked for.

use gapscope_capture::Capture;

use crate::comparison::{self, Comparison};
use crate::error::Error;
use crate::options::{Options, Schedule};
use crate::recording::{CommandRecording, SubmissionTimestamps, TimestampScope};
use crate::result::Replay;
use crate::session::{Observation, RecordingOptions, Session};
use crate::single_submission::SingleSubmission;
use crate::trace;

/// The most differences that are described; further ones are only counted.
pub const MAX_DIFFERENCES: usize = 100;

/// Runs a capture, and compares the memory that it leaves with the program's.
///
/// # Errors
/// The capture cannot be run.
pub fn replay(capture: &Capture, options: &Options) -> Result<Replay, Error> {
    if let Some(number) = options.only {
        return crate::alone::replay(capture, number, options);
    }
    // If the folder exists, this is said before anything runs.
    let writer = options.trace.as_deref().map(trace::begin).transpose()?;
    let mut session = Session::open(capture, options.extent, options)?;
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

/// A program that is recorded and can be run repeatedly: by submission, or all in one.
pub enum Runner<'a> {
    /// A recording for each submission; the host writes and compares memory in between.
    Apart(Vec<(CommandRecording, SubmissionTimestamps)>),
    /// One recording of everything.
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

    /// Runs the program once, as the run of this number, and returns the pieces that differ. The times are appended
    /// to `observed`, and the number of pieces that were compared is added to `compared`.
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

/// Returns the sum of the device times of a run's submissions; `None` if one is not known.
pub fn device_ns(session: &Session<'_>, observed: &[Observation]) -> Option<u64> {
    let each = observed
        .iter()
        .map(|of| Some(session.clock.between_ns(of.pair(of.whole)?)));
    each.sum()
}
