//! Records all work of a capture as one submission and runs it, to time the device without waits for the host. Copies
//! on the device stand for the host's writes in between. Memory is compared only at the end.

use std::collections::BTreeMap;

use gapscope_capture::model::Content;

use crate::comparison;
use crate::error::Error;
use crate::memory::Staging;
use crate::program::ProgramStep;
use crate::recording::{CommandRecording, SubmissionTimestamps, TimestampPair, pairs};
use crate::regions::{TouchedRanges, ranges};
use crate::session::{Observation, RecordingOptions, Session, chunks};

/// A program that is recorded as one submission.
pub struct SingleSubmission<'a> {
    /// Contents that memory has before the submission.
    first: Vec<&'a Content>,
    recording: CommandRecording,
    /// Numbers of the program's submissions, with their timestamps.
    parts: Vec<(usize, SubmissionTimestamps)>,
    /// Timestamps around the copies that stand for the host's writes.
    writes: Vec<TimestampPair>,
    /// The bytes of the host's writes. They are dropped after the recording that copies from them.
    _staging: Option<Staging>,
    /// The pieces of memory whose hashes at the end are known.
    pieces: Vec<comparison::Piece>,
}

/// The pair of timestamps around everything.
const WHOLE: TimestampPair = 0;

impl<'a> SingleSubmission<'a> {
    /// Records a program as one submission.
    pub fn new(
        session: &Session<'a>,
        recording_options: RecordingOptions,
    ) -> Result<SingleSubmission<'a>, Error> {
        let plan = ContentPlan::new(session);
        let staging = match plan.bytes {
            0 => None,
            bytes => Some(Staging::new(&session.gpu, bytes)?),
        };
        let submitted: Vec<_> = session.program.submissions().collect();
        let of_work: usize = submitted
            .iter()
            .map(|one| pairs(one, recording_options.timed))
            .sum();
        let recording = CommandRecording::begin(&session.gpu, 1 + submitted.len() + of_work)?;
        let mut tight = SingleSubmission {
            first: plan.first,
            recording,
            parts: Vec::new(),
            writes: Vec::new(),
            _staging: None,
            pieces: comparison::last(session.capture, &session.program),
        };
        let all = ash::vk::PipelineStageFlags2::ALL_COMMANDS;
        let mut staging = staging;
        let mut at = 0;
        let mut next = WHOLE + 1;
        tight.recording.stamp(2 * WHOLE, all);
        let stage = session.stage(recording_options);
        for (number, one) in submitted.iter().enumerate() {
            if let (Some(contents), Some(staging)) = (plan.between.get(&number), &mut staging) {
                tight.recording.stamp(2 * next, all);
                for content in contents {
                    for chunk in chunks(session.capture, &session.regions, content) {
                        let (place, bytes) = chunk?;
                        staging.write(at, &bytes);
                        let size = bytes.len() as u64;
                        session.memory.copy_from(
                            tight.recording.commands,
                            staging,
                            at,
                            place,
                            size,
                        );
                        at += size;
                    }
                    // Contents of the same place must stay in order.
                    session.gpu.full_barrier(tight.recording.commands);
                }
                tight.recording.stamp(2 * next + 1, all);
                tight.writes.push(next);
                next += 1;
            }
            let marks = stage.submission(&tight.recording, one, next);
            next = marks.next;
            tight.parts.push((number, marks));
            session.gpu.full_barrier(tight.recording.commands);
        }
        tight.recording.stamp(2 * WHOLE + 1, all);
        session.gpu.end(tight.recording.commands)?;
        tight._staging = staging;
        Ok(tight)
    }

    /// Runs the program once, and returns its times and the pieces that differ.
    pub fn run(
        &self,
        session: &mut Session<'a>,
        run: u32,
        compared: &mut u64,
    ) -> Result<(Observation, comparison::Comparison), Error> {
        session.memory.clear()?;
        session.upload(&self.first)?;
        let observed = session.observe(run, &self.recording, self.parts.clone(), WHOLE)?;
        *compared += self.pieces.len() as u64;
        let found = session.compare(&self.pieces)?;
        Ok((observed, found))
    }

    /// Returns the sum of the times of the copies that stand for the host's writes; `None` if one is not known.
    pub fn writes_ns(&self, session: &Session<'_>, observed: &Observation) -> Option<u64> {
        let each = self
            .writes
            .iter()
            .map(|pair| Some(session.clock.between_ns(observed.pair(*pair)?)));
        each.sum()
    }
}

/// The contents that memory has before the submission (nothing earlier touches their place), and those that are
/// copied within it.
struct ContentPlan<'a> {
    first: Vec<&'a Content>,
    /// Contents by the number of the program's submission that they precede.
    between: BTreeMap<usize, Vec<&'a Content>>,
    /// The size of the contents in `between`.
    bytes: u64,
}

impl<'a> ContentPlan<'a> {
    /// Splits the contents: those whose place earlier work or an earlier copied content touches are copied.
    fn new(session: &Session<'a>) -> ContentPlan<'a> {
        let mut plan = ContentPlan {
            first: Vec::new(),
            between: BTreeMap::new(),
            bytes: 0,
        };
        let mut touched = TouchedRanges::default();
        let mut number = 0;
        for step in &session.program.steps {
            match step {
                ProgramStep::Content(content) => {
                    let bytes = session.capture.content_bytes(content);
                    if touched.overlaps(content.memory, content.offset, bytes) {
                        plan.between.entry(number).or_default().push(content);
                        plan.bytes = plan.bytes.saturating_add(bytes);
                        // Later contents of the same place must not overtake these.
                        touched.add(content.memory, content.offset, bytes);
                    } else {
                        plan.first.push(content);
                    }
                }
                ProgramStep::Submission(submitted) => {
                    number += 1;
                    for command in submitted.buffers.iter().flat_map(|buffer| buffer.commands) {
                        for range in ranges(command) {
                            let (memory, offset) = session.capture.place(range);
                            touched.add(memory, offset, range.bytes);
                        }
                    }
                }
                ProgramStep::Outcome(_) => {}
            }
        }
        plan
    }
}
