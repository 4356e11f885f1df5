//! Prepares a capture on a device (checks it, allocates memory, makes pipelines and descriptor sets), then records
//! and runs its submissions and compares the memory that they leave: [`Session::open`], [`Session::record`],
//! [`Session::run`]. Regions are the parts of memory that the capture touches, pieces those that are compared.

use std::collections::{BTreeMap, BTreeSet};
use std::rc::Rc;

use gapscope_capture::Capture;
use gapscope_capture::model::{Content, PipelineId};

use crate::adapter::Instance;
use crate::check;
use crate::clock::{DeviceClock, host_now_ns};
use crate::comparison::{self, Comparer, Comparison, Piece};
use crate::descriptors::Descriptors;
use crate::error::Error;
use crate::gpu::Gpu;
use crate::memory::Memory;
use crate::options::Options;
use crate::pipelines::Pipelines;
use crate::program::{Extent, Program, ProgramStep};
use crate::recording::{
    CommandRecording, CommandSource, SubmissionTimestamps, TimestampScope, pairs,
};
use crate::regions::{RegionOffset, Regions};
use crate::shader::Shader;

/// A capture with all objects that its replay needs. Fields are dropped in order, and those that are made from the
/// device come before it.
pub struct Session<'a> {
    pub capture: &'a Capture,
    /// The steps of the capture that run.
    pub program: Rc<Program<'a>>,
    pub regions: Regions,
    pub descriptors: Descriptors,
    pub pipelines: Pipelines,
    pub memory: Memory,
    pub gpu: Rc<Gpu>,
    pub clock: DeviceClock,
    pub notes: Vec<String>,
    pub shaders: BTreeMap<PipelineId, Shader>,
    /// The tolerance of values, as in [`Comparer`].
    pub tolerance: Option<f64>,
    /// Barriers that are left out, by their indices among [`Capture::executed`].
    pub left_out: BTreeSet<usize>,
}

/// Options of recording a program.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct RecordingOptions {
    /// Whether a barrier follows each command.
    pub serialised: bool,
    /// The work that gets timestamps.
    pub timed: TimestampScope,
}

/// The times of one run of work that was submitted at once.
#[derive(Debug, Clone)]
pub struct Observation {
    /// Number of the timed run, from 0.
    pub run: u32,
    /// Numbers of the program's submissions, with their pairs of timestamps.
    pub parts: Vec<(usize, SubmissionTimestamps)>,
    /// The pair of timestamps around everything.
    pub whole: u32,
    /// Ticks by query.
    pub ticks: Vec<Option<u64>>,
    /// Monotonic time when the host called.
    pub called_ns: u64,
    /// Monotonic time when the call returned.
    pub returned_ns: u64,
    /// Monotonic time when the host saw the work finished.
    pub seen_ns: u64,
}

impl<'a> Session<'a> {
    /// Checks that the device can run the capture, and makes all objects that the program needs.
    ///
    /// # Errors
    /// There is no such device, it cannot run the capture, or the driver refuses a call.
    pub fn open(
        capture: &'a Capture,
        extent: Extent,
        options: &Options,
    ) -> Result<Session<'a>, Error> {
        let program = Rc::new(Program::new(capture, extent));
        let regions = Regions::new(capture);
        let instance = Instance::for_thread()?;
        let captured = &capture.header.device.name;
        let adapter = instance.adapter(options.device.as_ref(), captured)?;
        // All of the capture is checked, also parts that do not run now.
        let whole = Program::new(capture, Extent::Whole);
        let needs = check::check(capture, &whole, &regions, &adapter, options.robust)?;
        let first = capture.submissions().next();
        let flags = first.map(|submission| capture.queues[&submission.queue].flags);
        let gpu = Gpu::open(&adapter, flags, &needs.features, &needs.extensions)?;
        let memory = Memory::new(&gpu, capture, &regions)?;
        let with_base: BTreeSet<PipelineId> = (whole.dispatched())
            .filter(|(_, dispatch)| dispatch.base != [0; 3])
            .map(|(_, dispatch)| dispatch.pipeline)
            .collect();
        let pipelines = Pipelines::new(&gpu, capture, &needs.shaders, &with_base)?;
        let descriptors = Descriptors::new(&gpu, capture, &whole, &regions, &memory, &pipelines)?;
        let clock = DeviceClock::new(&gpu);
        Ok(Session {
            capture,
            program,
            regions,
            descriptors,
            pipelines,
            memory,
            clock,
            gpu,
            notes: needs.notes,
            shaders: needs.shaders,
            tolerance: options.tolerance,
            left_out: BTreeSet::new(),
        })
    }

    /// Returns everything that commands are recorded from.
    pub fn stage(&self, recording_options: RecordingOptions) -> CommandSource<'_> {
        CommandSource {
            gpu: &self.gpu,
            capture: self.capture,
            regions: &self.regions,
            memory: &self.memory,
            pipelines: &self.pipelines,
            descriptors: &self.descriptors,
            left_out: &self.left_out,
            serialised: recording_options.serialised,
            timed: recording_options.timed,
        }
    }

    /// Records each submission, with a barrier at its end; the result is for [`Self::run`].
    pub fn record(
        &self,
        recording_options: RecordingOptions,
    ) -> Result<Vec<(CommandRecording, SubmissionTimestamps)>, Error> {
        let stage = self.stage(recording_options);
        let recorded = self.program.submissions().map(|submitted| {
            let recording =
                CommandRecording::begin(&self.gpu, pairs(submitted, recording_options.timed))?;
            let marks = stage.submission(&recording, submitted, 0);
            // The next submission may read what this one wrote, and the host may copy it.
            self.gpu.full_barrier(recording.commands);
            self.gpu.end(recording.commands)?;
            Ok((recording, marks))
        });
        recorded.collect()
    }

    /// Records the program and runs it once, for the memory that it leaves.
    pub fn run_once(&mut self) -> Result<(), Error> {
        let recordings = self.record(RecordingOptions::default())?;
        self.run(0, &recordings, &mut Vec::new(), &mut 0)?;
        Ok(())
    }

    /// Clears memory and runs the steps once, as the run of this number, and returns the pieces that differ from the
    /// program's. The times are appended to `observed`, and the number of compared pieces is added to `compared`.
    pub fn run(
        &mut self,
        run: u32,
        recordings: &[(CommandRecording, SubmissionTimestamps)],
        observed: &mut Vec<Observation>,
        compared: &mut u64,
    ) -> Result<Comparison, Error> {
        self.memory.clear()?;
        let mut recordings = recordings.iter().enumerate();
        let mut after = None;
        let mut content: Vec<&Content> = Vec::new();
        let mut pieces: Vec<Piece> = Vec::new();
        let mut found = Comparison::default();
        let program = Rc::clone(&self.program);
        for step in program.steps.iter().map(Some).chain([None]) {
            if !matches!(step, Some(ProgramStep::Outcome(_))) && !pieces.is_empty() {
                *compared += pieces.len() as u64;
                let more = self.compare(&pieces)?;
                found.different.extend(more.different);
                found.within += more.within;
                pieces.clear();
            }
            match step {
                Some(ProgramStep::Content(step)) => content.push(step),
                Some(ProgramStep::Outcome(outcome)) => {
                    pieces.extend(comparison::pieces(outcome, after))
                }
                Some(ProgramStep::Submission(submitted)) => {
                    self.upload(&content)?;
                    content.clear();
                    after = Some(submitted.index);
                    let Some((number, (recording, marks))) = recordings.next() else {
                        break;
                    };
                    let parts = vec![(number, marks.clone())];
                    observed.push(self.observe(run, recording, parts, marks.whole)?);
                }
                None => {}
            }
        }
        Ok(found)
    }

    /// Compares pieces of memory as they are now with the program's.
    pub fn compare(&mut self, pieces: &[Piece]) -> Result<Comparison, Error> {
        let comparer = Comparer {
            capture: self.capture,
            program: &self.program,
            shaders: &self.shaders,
            tolerance: self.tolerance,
        };
        comparison::compare(&mut self.memory, &self.regions, pieces, &comparer)
    }

    /// Submits commands, waits for them, and returns their times, by which the clock's map gets better.
    pub fn observe(
        &mut self,
        run: u32,
        recording: &CommandRecording,
        parts: Vec<(usize, SubmissionTimestamps)>,
        whole: u32,
    ) -> Result<Observation, Error> {
        let called_ns = host_now_ns();
        self.gpu.submit(recording.commands, "running commands")?;
        let returned_ns = host_now_ns();
        self.gpu.wait("running commands")?;
        let seen_ns = host_now_ns();
        let observed = Observation {
            run,
            parts,
            whole,
            ticks: recording.ticks()?,
            called_ns,
            returned_ns,
            seen_ns,
        };
        if let Some(ticks) = observed.pair(whole) {
            self.clock.learn(&self.gpu, ticks, (called_ns, seen_ns));
        }
        Ok(observed)
    }

    /// Writes the program's bytes to memory.
    pub fn upload(&mut self, contents: &[&Content]) -> Result<(), Error> {
        let chunks =
            (contents.iter()).flat_map(|content| chunks(self.capture, &self.regions, content));
        self.memory.upload(chunks)
    }
}

/// Returns the chunks of a content record, each with its place.
pub fn chunks<'a>(
    capture: &'a Capture,
    regions: &'a Regions,
    content: &'a Content,
) -> impl Iterator<Item = Result<(RegionOffset, Vec<u8>), Error>> + use<'a> {
    let mut at = content.offset;
    content.chunks.iter().filter_map(move |hash| {
        let place = regions.place(content.memory, at);
        let bytes = match capture.chunk(*hash) {
            Ok(bytes) => bytes,
            Err(error) => return Some(Err(Error::Content(error))),
        };
        at += bytes.len() as u64;
        Some(Ok((place?, bytes)))
    })
}

impl Observation {
    /// Returns the two ticks of a pair of timestamps; `None` if one is not known.
    pub fn pair(&self, pair: u32) -> Option<(u64, u64)> {
        let of = |query: u32| self.ticks.get(query as usize).copied().flatten();
        Some((of(2 * pair)?, of(2 * pair + 1)?))
    }
}
