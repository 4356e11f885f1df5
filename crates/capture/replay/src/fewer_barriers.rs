//! Runs a capture in turn with all of its barriers and without chosen ones: the places of these barriers go in, the
//! times and the differences of both forms come out.

use std::collections::BTreeSet;

use gapscope_capture::Capture;
use gapscope_capture::model::Command;
use serde::Serialize;

use crate::comparison::{self, Difference};
use crate::error::Error;
use crate::options::{Options, Schedule};
use crate::program::Extent;
use crate::replay::{MAX_DIFFERENCES, Runner, device_ns};
use crate::result::{Replay, spread};
use crate::session::{RecordingOptions, Session};

/// The results of runs with all barriers and with fewer.
#[derive(Debug, Clone, Serialize)]
pub struct FewerBarriers {
    /// The device that all runs were made on.
    pub device: String,
    /// The device's driver.
    pub driver: String,
    /// Whether the captured device and this one have the same driver, which compiles the same code for both.
    pub same_device: bool,
    /// Order and overlap of the submissions.
    pub schedule: Schedule,
    /// Dispatches that ran, in one run.
    pub dispatch_count: u64,
    /// Submissions of the program that ran, in one run.
    pub submission_count: u64,
    /// Barriers of the window.
    pub barrier_count: u64,
    /// Barriers that were left out.
    pub left_out_count: u64,
    /// Runs with all barriers.
    pub all: BarrierRuns,
    /// Runs without the barriers that were left out.
    pub fewer: BarrierRuns,
    /// Notes for readers.
    pub notes: Vec<String>,
}

/// Runs with the same barriers.
#[derive(Debug, Clone, Default, Serialize)]
pub struct BarrierRuns {
    /// Device time of each timed run in nanoseconds, from the first command of each submission to its last; `None` if
    /// it is not known.
    pub runs_ns: Vec<Option<u64>>,
    /// Median of the runs.
    pub median_ns: Option<u64>,
    /// The shortest run.
    pub least_ns: Option<u64>,
    /// The longest run.
    pub most_ns: Option<u64>,
    /// Pieces of memory, of at most 64 KiB, that were compared with what the program had, in all runs, warm-up included.
    pub outputs_compared: u64,
    /// Pieces that are equal to what the program had.
    pub outputs_equal: u64,
    /// Pieces that differ only within the tolerance.
    pub outputs_within: u64,
    /// The first pieces that differ.
    pub differences: Vec<Difference>,
}

impl FewerBarriers {
    /// Returns whether something was compared, and all of it was equal, or within the tolerance where one was given.
    pub fn is_equal(&self) -> bool {
        let equal = |of: &BarrierRuns| of.outputs_compared > 0 && of.different() == 0;
        equal(&self.all) && equal(&self.fewer)
    }
}

impl BarrierRuns {
    /// Returns the number of outputs that differ.
    pub fn different(&self) -> u64 {
        self.outputs_compared - self.outputs_equal - self.outputs_within
    }

    /// Computes the least time, the median and the greatest one from the runs.
    fn summarise(&mut self) {
        [self.least_ns, self.median_ns, self.most_ns] = spread(self.runs_ns.iter().flatten());
    }
}

/// Runs a capture in turn with all of its barriers and without some, which are given by their places among
/// [`Capture::executed`]. Each form is run [`Options::repeat`] times, after [`Options::warm_up`] runs that are not
/// timed. Places of other commands are ignored, and so are the options for an extent, a single dispatch and a trace.
///
/// # Errors
/// The capture cannot be run.
pub fn replay_without(
    capture: &Capture,
    left_out: &BTreeSet<usize>,
    options: &Options,
) -> Result<FewerBarriers, Error> {
    let mut session = Session::open(capture, Extent::Whole, options)?;
    let recording_options = RecordingOptions::default();
    let all = Runner::new(&session, options.schedule, recording_options)?;
    session.left_out.clone_from(left_out);
    let fewer = Runner::new(&session, options.schedule, recording_options)?;
    let mut forms = [
        (all, BarrierRuns::default()),
        (fewer, BarrierRuns::default()),
    ];
    let runs = options.warm_up.saturating_add(options.repeat.max(1));
    for run in 0..runs {
        // The form that runs second finds the machine as the first left it, so that the forms take turns in being
        // first.
        for turn in [0, 1] {
            let (runner, of) = &mut forms[(turn + run as usize) % 2];
            let mut observed = Vec::new();
            let before = of.outputs_compared;
            let found = runner.run(&mut session, run, &mut observed, &mut of.outputs_compared)?;
            let others = found.within + found.different.len() as u64;
            of.outputs_within += found.within;
            of.outputs_equal += of.outputs_compared - before - others;
            let room = MAX_DIFFERENCES.saturating_sub(of.differences.len());
            let described = (found.different.iter().take(room))
                .map(|one| comparison::describe(capture, &session.program, one));
            of.differences.extend(described);
            if run >= options.warm_up {
                of.runs_ns.push(device_ns(&session, &observed));
            }
        }
    }
    let [all, fewer] = forms.map(|(_, mut of)| {
        of.summarise();
        of
    });
    let ran = Replay::new(&session, options);
    let barriers = capture.executed().enumerate();
    let barriers = barriers.filter(|(_, command)| matches!(command, Command::Barrier(_)));
    let (mut barrier_count, mut left_out_count) = (0, 0);
    for (place, _) in barriers {
        barrier_count += 1;
        left_out_count += u64::from(left_out.contains(&place));
    }
    Ok(FewerBarriers {
        device: ran.device,
        driver: ran.driver,
        same_device: ran.same_device,
        schedule: options.schedule,
        dispatch_count: ran.dispatch_count,
        submission_count: ran.submission_count,
        barrier_count,
        left_out_count,
        all,
        fewer,
        notes: ran.notes,
    })
}
