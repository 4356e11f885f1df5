//! Times each dispatch and transfer of a capture on a device, by running the capture repeatedly, and returns the
//! medians.

use std::collections::BTreeMap;

use gapscope_capture::Capture;

use crate::error::Error;
use crate::options::Options;
use crate::program::Extent;
use crate::recording::TimestampScope;
use crate::result::{Replay, median};
use crate::session::{RecordingOptions, Session};

/// Times of the dispatches and transfers of a window (the captured stretch of a run), which run one after the other.
#[derive(Debug, Clone)]
pub struct CommandTimes {
    /// The device that the commands ran on.
    pub device: String,
    /// The device's driver.
    pub driver: String,
    /// Median of the runs in nanoseconds, by the place of the command among [`Capture::executed`]. Commands whose
    /// time is not known are left out.
    pub median_ns: BTreeMap<usize, u64>,
    /// Number of runs that were timed.
    pub runs: u32,
    /// Number of pieces of outputs that were compared with the program's, in all runs.
    pub outputs_compared: u64,
    /// Number of pieces that differ.
    pub outputs_different: u64,
    /// Notes for readers.
    pub notes: Vec<String>,
}

/// Times each command of a capture with a barrier after it, in [`Options::repeat`] runs after [`Options::warm_up`]
/// untimed ones. The options for schedule, extent, a single dispatch and a trace are ignored.
///
/// # Errors
/// The capture cannot be run.
pub fn command_times(capture: &Capture, options: &Options) -> Result<CommandTimes, Error> {
    let mut session = Session::open(capture, Extent::Whole, options)?;
    let recordings = session.record(RecordingOptions {
        serialised: true,
        timed: TimestampScope::Dispatches,
    })?;
    let mut runs_ns: BTreeMap<usize, Vec<u64>> = BTreeMap::new();
    let (mut outputs_compared, mut outputs_different) = (0, 0);
    let runs = options.repeat.max(1);
    for run in 0..options.warm_up.saturating_add(runs) {
        let mut observed = Vec::new();
        let found = session.run(run, &recordings, &mut observed, &mut outputs_compared)?;
        outputs_different += found.different.len() as u64;
        if run < options.warm_up {
            continue;
        }
        for of in &observed {
            for (number, marks) in &of.parts {
                let Some(submitted) = session.program.submissions().nth(*number) else {
                    continue;
                };
                for (buffer, (_, work)) in submitted.buffers.iter().zip(&marks.buffers) {
                    for (position, pair) in work {
                        if let Some(pair) = of.pair(*pair) {
                            let command = runs_ns.entry(buffer.first_command + position);
                            command.or_default().push(session.clock.between_ns(pair));
                        }
                    }
                }
            }
        }
    }
    drop(recordings);
    let ran = Replay::new(&session, options);
    let medians = runs_ns.into_iter().filter_map(|(command, mut ns)| {
        ns.sort_unstable();
        Some((command, median(&ns)?))
    });
    Ok(CommandTimes {
        device: ran.device,
        driver: ran.driver,
        median_ns: medians.collect(),
        runs,
        outputs_compared,
        outputs_different,
        notes: ran.notes,
    })
}
