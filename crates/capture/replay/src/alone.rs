//! Runs one dispatch of a capture repeatedly and alone, to time it: a capture and the dispatch's number go in, the
//! times of the runs come out as a [`Replay`] without comparisons.

use gapscope_capture::Capture;
use gapscope_capture::model::{Command, Dispatch};

use crate::comparison::written;
use crate::error::Error;
use crate::options::Options;
use crate::program::{Extent, Program};
use crate::recording::CommandRecording;
use crate::regions::RegionOffset;
use crate::result::Replay;
use crate::session::{RecordingOptions, Session};

/// Runs everything before a dispatch once, and then the dispatch repeatedly, each time on the memory that it found
/// the first time.
pub fn replay(capture: &Capture, number: u64, options: &Options) -> Result<Replay, Error> {
    let dispatch = find(capture, number)?;
    let mut session = Session::open(capture, Extent::Before(number), options)?;
    session.run_once()?;
    let command = Command::Dispatch(dispatch.clone());
    let ranges: Vec<(RegionOffset, u64)> = (written(&command).into_iter())
        .filter_map(|range| Some((session.regions.buffer_place(capture, range)?, range.bytes)))
        .collect();
    let mut found = Vec::new();
    for (place, bytes) in &ranges {
        found.push((*place, session.memory.read(*place, *bytes)?));
    }
    let recording = CommandRecording::begin(&session.gpu, 1)?;
    let all = ash::vk::PipelineStageFlags2::ALL_COMMANDS;
    session.gpu.full_barrier(recording.commands);
    recording.stamp(0, all);
    let source = session.stage(RecordingOptions::default());
    source.work(recording.commands, &command);
    recording.stamp(1, all);
    session.gpu.full_barrier(recording.commands);
    session.gpu.end(recording.commands)?;
    let mut result = Replay::new(&session, options);
    result.dispatch_count = 1;
    result.submission_count = 1;
    result.captured_ns = None;
    let kernel = &capture.pipelines[&dispatch.pipeline].name;
    result.notes.push(format!(
        "Only dispatch {number} ({kernel}) was timed, after what comes before it; nothing was compared."
    ));
    for run in 0..options.warm_up.saturating_add(options.repeat.max(1)) {
        let restored = found
            .iter()
            .map(|(place, bytes)| Ok((*place, bytes.clone())));
        session.memory.upload(restored)?;
        let observed = session.observe(run, &recording, Vec::new(), 0)?;
        if run >= options.warm_up {
            let pair = observed.pair(0);
            result
                .runs_ns
                .push(pair.map(|pair| session.clock.between_ns(pair)));
        }
    }
    drop(recording);
    result.summarise();
    Ok(result)
}

/// Returns the dispatch with this number in the capture.
pub fn find(capture: &Capture, number: u64) -> Result<&Dispatch, Error> {
    let whole = Program::new(capture, Extent::Whole);
    let count = whole.dispatches;
    let found = whole.dispatched().find(|(known, _)| *known == number);
    found
        .map(|(_, dispatch)| dispatch)
        .ok_or(Error::NoSuchDispatch {
            asked: number,
            count,
        })
}
