//! Runs a capture with given options, repeatedly, and returns times and differences.

use gapscope_capture::cuda::CudaCapture;
use gapscope_replay::{
    BufferPart, Difference, Differing, Element, Extent, Replay, Schedule, Writer,
};

use crate::error::Error;
use crate::known::KnownHashes;
use crate::options::Options;
use crate::session::{Different, Run, Session, forget_ended};
use crate::stash::Stash;
use crate::unsteady::{self, Unsteady};

/// The most differences that are described; further ones are only counted.
const MAX_DIFFERENCES: usize = 100;
/// The number of runs that tell whether a kernel differs from itself.
const RUNS_TO_JUDGE: u32 = 6;

/// The results of a replay of a capture of CUDA.
#[derive(Debug, Default)]
pub struct Replayed {
    /// The results, with the words of captures of Vulkan: a launch is a dispatch and a submission.
    pub result: Replay,
    /// Pieces of memory that launches changed when they were captured, in all runs.
    pub changed: u64,
    /// How the launches differ between their own runs; `None`: no difference was seen.
    pub unsteady: Option<Unsteady>,
}

/// Runs a capture, and compares the memory that each launch leaves with the program's.
///
/// # Errors
/// The capture cannot be run.
pub fn replay(capture: &CudaCapture, options: &Options) -> Result<Replayed, Error> {
    let mut session = Session::open(capture, options.device.as_ref())?;
    Ok(replay_open(&mut session, options)?.0)
}

/// Runs a capture on a GPU that is open, and returns the runner for further runs.
pub fn replay_open(
    session: &mut Session<'_>,
    options: &Options,
) -> Result<(Replayed, Runner), Error> {
    let (before, timed) = part(session, options)?;
    let mut replayed = Replayed {
        result: describe_session(session, options, timed.clone()),
        ..Replayed::default()
    };
    let mut runner = Runner::new(session, before, timed.clone(), options)?;
    let runs = options.warm_up.saturating_add(options.repeat.max(1));
    let mut all: Vec<Run> = Vec::new();
    for number in 0..runs {
        let run = runner.run(session, number + 1 < runs)?;
        if number >= options.warm_up {
            replayed.result.runs_ns.push(Some(run.ns.round() as u64));
        }
        replayed.add(&run);
        all.push(run);
    }
    // A kernel whose output is another one may have another one each time: that takes some runs more to see.
    let is_different = all.iter().any(|run| !run.different.is_empty());
    if is_different {
        let more = RUNS_TO_JUDGE.saturating_sub(runs);
        for number in 0..more {
            let run = runner.run(session, number + 1 < more)?;
            all.push(run);
        }
    }
    replayed.unsteady = unsteady::unsteady(&all, options.element);
    let different = all
        .iter()
        .take(runs as usize)
        .flat_map(|run| &run.different);
    replayed.result.differences = (different.take(MAX_DIFFERENCES))
        .map(|found| describe(session, found, options.element))
        .collect();
    let [least, median, most] = gapscope_replay::spread(replayed.result.runs_ns.iter().flatten());
    replayed.result.least_ns = least;
    replayed.result.median_ns = median;
    replayed.result.most_ns = most;
    Ok((replayed, runner))
}

impl Replayed {
    fn add(&mut self, run: &Run) {
        self.result.outputs_compared += run.compared;
        self.result.outputs_equal += run.compared - run.different.len() as u64;
        self.changed += run.changed;
    }
}

/// Returns the stages that go before, and those that are timed.
pub fn part(
    session: &Session<'_>,
    options: &Options,
) -> Result<(std::ops::Range<usize>, std::ops::Range<usize>), Error> {
    let count = session.plan.stages.len();
    if let Some(only) = options.only {
        let index = session.plan.index(only)?;
        return Ok((0..index, index..index + 1));
    }
    let end = match options.extent {
        Extent::Until(last) => session.plan.index(last)? + 1,
        _ => count,
    };
    Ok((0..0, 0..end))
}

/// Runs the same stages repeatedly, each time with memory as it was before them.
pub struct Runner {
    before: std::ops::Range<usize>,
    timed: std::ops::Range<usize>,
    /// The bytes that the stages change, before them.
    stash: Option<Stash>,
    /// Memory is as before the stages.
    pub is_clean: bool,
    /// For a tight run: the content before each stage, and the hashes after the last.
    tight: Option<(Vec<Option<Stash>>, KnownHashes)>,
}

impl Runner {
    /// Gives memory its content, and runs what goes before the timed stages.
    pub fn new(
        session: &mut Session<'_>,
        before: std::ops::Range<usize>,
        timed: std::ops::Range<usize>,
        options: &Options,
    ) -> Result<Runner, Error> {
        let mut runner = Runner {
            before,
            timed,
            stash: None,
            is_clean: false,
            tight: None,
        };
        if options.schedule == Schedule::Tight {
            let mut contents = Vec::new();
            for stage in runner.timed.clone() {
                let of_stage = session.plan.stages[stage].contents.clone();
                contents.push(match of_stage.is_empty() {
                    true => None,
                    false => Some(Stash::of_contents(session, &of_stage)?.ok_or_else(|| {
                        Error::Unsupported(
                            "--tight needs room on the GPU for the content between launches, and none in the host's memory"
                                .to_owned(),
                        )
                    })?),
                });
            }
            runner.tight = Some((contents, KnownHashes::default()));
        }
        runner.begin(session)?;
        runner.stash = Stash::of_changes(session, runner.timed.clone())?;
        if let Some((_, expected)) = &mut runner.tight {
            *expected = after(session, runner.timed.clone());
        }
        Ok(runner)
    }

    /// Makes memory as it is before the timed stages, from the capture.
    fn begin(&mut self, session: &mut Session<'_>) -> Result<(), Error> {
        session.reset()?;
        session.run(self.before.clone())?;
        self.is_clean = true;
        Ok(())
    }

    /// Runs the stages once. With `is_followed`, memory is made ready for the next run.
    pub fn run(&mut self, session: &mut Session<'_>, is_followed: bool) -> Result<Run, Error> {
        self.make_clean(session)?;
        self.is_clean = false;
        let mut run = match &self.tight {
            None => session.run(self.timed.clone())?,
            Some(_) => Run::default(),
        };
        if let Some((contents, expected)) = &self.tight {
            let first = self.timed.start;
            run.ns = session.run_tight(self.timed.clone(), |session, stage| {
                match contents.get(stage - first).and_then(Option::as_ref) {
                    Some(stash) => stash.put(&session.gpu.driver, &session.placed),
                    None => Ok(()),
                }
            })?;
            session.compare_with(expected, self.timed.end - 1, &mut run)?;
        }
        if run.has_stray_writes() || (self.tight.is_some() && !run.different.is_empty()) {
            self.forget_stash(session);
        }
        if is_followed && self.stash.is_some() {
            self.make_clean(session)?;
        }
        Ok(run)
    }

    /// Forgets the copies, as launches changed bytes of which there is none.
    pub fn forget_stash(&mut self, session: &Session<'_>) {
        if let Some(stash) = self.stash.take() {
            stash.free(&session.gpu.driver);
        }
    }

    /// Makes memory as it is before the timed stages.
    pub fn make_clean(&mut self, session: &mut Session<'_>) -> Result<(), Error> {
        if self.is_clean {
            return Ok(());
        }
        match &self.stash {
            Some(stash) => stash.restore(session)?,
            None => self.begin(session)?,
        }
        self.is_clean = true;
        Ok(())
    }
}

/// Returns the hashes that memory has after stages, from those before and the capture's.
fn after(session: &Session<'_>, stages: std::ops::Range<usize>) -> KnownHashes {
    let mut known = session.known.clone();
    for stage in &session.plan.stages[stages] {
        forget_ended(session.capture, &stage.contents, &mut known);
        for content in &stage.contents {
            let mut offset = content.offset;
            for hash in &content.chunks {
                let bytes = session.capture.chunk_bytes(*hash).map_or(0, u64::from);
                known.insert(content.memory, offset, bytes, *hash);
                offset += bytes;
            }
        }
        for outcome in &stage.outcomes {
            let pieces = gapscope_capture::pieces(outcome.offset, outcome.bytes);
            for ((offset, bytes), hash) in pieces.zip(&outcome.hashes) {
                known.insert(outcome.memory, offset, bytes, *hash);
            }
        }
    }
    known
}

/// Makes the result before the first run.
pub fn describe_session(
    session: &Session<'_>,
    options: &Options,
    timed: std::ops::Range<usize>,
) -> Replay {
    let captured = &session.capture.header.device;
    let gpu = &session.gpu;
    let stages = &session.plan.stages[timed];
    let is_same_driver =
        gpu.driver_version.is_some() && gpu.driver_version == captured.driver_version;
    let is_same_gpu = gpu.name == captured.name;
    let mut notes = Vec::new();
    if !is_same_gpu {
        notes.push(format!(
            "{} has the same architecture as {}; results may differ where a kernel depends on the number of multiprocessors.",
            gpu.name, captured.name
        ));
    }
    if session.placed.moved_to_device > 0 {
        notes.push(
            "Memory of the host is memory of the GPU here, because its address is taken: times of kernels that use it are others."
                .to_owned(),
        );
    }
    let called = || stages.iter().map(|stage| stage.launch.called_ns);
    Replay {
        device: gpu.name.clone(),
        driver: match gpu.driver_version {
            Some(version) => format!("CUDA {}.{}", version / 1000, version % 1000 / 10),
            None => "CUDA".to_owned(),
        },
        captured_device: captured.name.clone(),
        same_device: is_same_gpu && is_same_driver,
        schedule: options.schedule,
        dispatch_count: stages.len() as u64,
        submission_count: stages.len() as u64,
        captured_ns: stages.iter().map(|stage| stage.launch.device_ns).sum(),
        captured_calls_ns: called()
            .min()
            .zip(called().max())
            .map(|(first, last)| last - first),
        notes,
        ..Replay::default()
    }
}

/// Describes a difference: the memory, the parameters that lead there, the kernel, and the first element that differs.
fn describe(session: &Session<'_>, found: &Different, element: Option<Element>) -> Difference {
    let stage = session.stage(found.stage);
    let range = found.cell.range;
    let first = found.cell.changed.and_then(|hash| {
        session.capture.chunk_bytes(hash)?;
        let captured = session.capture.chunk(hash).ok()?;
        let replayed = found.bytes.as_deref()?;
        first_difference(element.unwrap_or(Element::U8), &captured, replayed)
    });
    Difference {
        memory: range.memory.0,
        offset: range.offset,
        bytes: range.bytes,
        submission: Some(found.stage),
        buffers: crate::parameters::leading_to(session, found.stage, range.memory, range.offset)
            .into_iter()
            .map(|(name, offset)| BufferPart {
                buffer: range.memory.0,
                name: Some(name),
                offset,
            })
            .collect(),
        writers: vec![Writer {
            dispatch: Some(stage.number),
            what: stage.launch.kernel.clone(),
        }],
        first,
    }
}

/// Returns the first element that differs.
fn first_difference(element: Element, captured: &[u8], replayed: &[u8]) -> Option<Differing> {
    let size = element.bytes() as usize;
    let pairs = captured.chunks_exact(size).zip(replayed.chunks_exact(size));
    let (index, (a, b)) = pairs.enumerate().find(|(_, (a, b))| a != b)?;
    Some(Differing {
        element: index as u64,
        kind: element,
        captured: element.text(a),
        replayed: element.text(b),
    })
}
