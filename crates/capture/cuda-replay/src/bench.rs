//! Times one launch with a cold and with a warm L2 cache, and another form of its kernel in turns with it.

use std::path::PathBuf;
use std::time::{Duration, Instant};

use gapscope_capture::cuda::CudaCapture;
use gapscope_capture::model::MemoryId;
use gapscope_replay::Element;
use schemars::JsonSchema;
use serde::Serialize;

use crate::clock::GpuClock;
use crate::error::Error;
use crate::launch::ReadyLaunch;
use crate::options::Options;
use crate::other_code::OtherCode;
use crate::replay::{self, Replayed, Runner};
use crate::session::{Run, Session};
use crate::stash::Stash;
use crate::statistics;
use crate::transfer::Range;
use crate::unsteady;

/// The time for a launch alone, and for two in turns.
const ALONE_FOR: Duration = Duration::from_secs(3);
const IN_TURNS_FOR: Duration = Duration::from_secs(8);
/// The fewest and the most samples of each kind.
const SAMPLES: std::ops::Range<usize> = 20..2000;
const TURNS: std::ops::Range<usize> = 8..4096;
/// The size of the cache where the driver does not say it; no GPU has a larger one.
const MAX_L2_BYTES: u64 = 256 << 20;
/// The most bytes of outputs that are compared by their values.
const MAX_COMPARED_BYTES: u64 = 1 << 30;

/// The time of one launch on the GPU.
#[derive(Debug, Clone, PartialEq, Serialize, JsonSchema)]
pub struct Bench {
    /// Number of the launch.
    pub launch: u64,
    /// Median with a cold L2 cache: twice its size is written before each launch.
    pub cold_ns: f64,
    /// Median with a warm L2 cache: the same launch has run before.
    pub warm_ns: f64,
    /// The 95 % interval of the warm median, in nanoseconds.
    pub low: f64,
    /// Its upper end.
    pub high: f64,
    /// The 95 % interval of the cold median, in nanoseconds.
    pub cold_low: f64,
    /// Its upper end.
    pub cold_high: f64,
    /// Number of launches of each kind.
    pub samples: u64,
    /// The least and the greatest clock of the multiprocessors meanwhile; `None`: not known.
    pub clock_mhz: Option<[u32; 2]>,
}

/// Another kernel in the place of the captured one.
#[derive(Debug, Clone, Default)]
pub struct Other {
    /// A .cubin, .ptx or .cu.
    pub file: PathBuf,
    /// The kernel's name in the file.
    pub name: Option<String>,
    /// The grid, the block and the shared memory, where they are others.
    pub grid: Option<[u32; 3]>,
    /// Number of threads in a block.
    pub block: Option<[u32; 3]>,
    /// Shared memory of a block.
    pub shared_bytes: Option<u32>,
}

/// Two kernels that ran in turns: ABBA, with a warm cache.
#[derive(Debug, Clone, PartialEq, Serialize, JsonSchema)]
pub struct Comparison {
    /// Name of the other kernel.
    pub kernel: String,
    /// The time of the other kernel as a multiple of the captured kernel's.
    pub ratio: f64,
    /// The 99 % interval of the ratio.
    pub low: f64,
    /// Its upper end.
    pub high: f64,
    /// The interval does not have 1 in it.
    pub differs: bool,
    /// Medians of the two kernels' times.
    pub captured_kernel_ns: f64,
    /// The other kernel's.
    pub other_kernel_ns: f64,
    /// Number of turns, with two launches of each kernel.
    pub turns: u64,
    /// The outputs of both.
    pub outputs: OutputComparison,
}

/// The outputs of two kernels on the same inputs.
#[derive(Debug, Clone, Default, PartialEq, Serialize, JsonSchema)]
pub struct OutputComparison {
    /// Pieces of memory, of at most 64 KiB, that were compared.
    pub pieces: u64,
    /// Pieces that differ.
    pub differing: u64,
    /// Bytes that differ; `None`: there are too many outputs to compare them byte by byte.
    pub differing_bytes: Option<u64>,
    /// The greatest difference of an element, as a share of the greater value; `None` if bytes are no such numbers.
    pub relative: Option<f64>,
    /// The greatest difference in units in the last place, for floats.
    pub ulps: Option<u64>,
    /// The type of the elements.
    pub element: Option<Element>,
}

/// The results of a bench.
#[derive(Debug)]
pub struct Benched {
    /// The runs of the launch before the bench, whose memory was compared.
    pub replayed: Replayed,
    /// The launch's times.
    pub bench: Bench,
    /// The comparison with another kernel, if one is given.
    pub with: Option<Comparison>,
}

/// Times one launch of a capture, and compares it with another kernel. The launch is the only one, or the one that the options
/// name.
///
/// # Errors
/// The capture cannot be run, or the other kernel cannot be loaded or takes other parameters.
pub fn bench(
    capture: &CudaCapture,
    options: &Options,
    other: Option<&Other>,
) -> Result<Benched, Error> {
    let mut session = Session::open(capture, options.device.as_ref())?;
    let count = session.plan.stages.len();
    let launch = match (options.only, count) {
        (Some(launch), _) => launch,
        (None, 1) => 0,
        (None, count) => {
            return Err(Error::Unsupported(format!(
                "the bench times one launch, and the capture has {count}: choose one by --dispatch N"
            )));
        }
    };
    let options = Options {
        only: Some(launch),
        ..options.clone()
    };
    let (replayed, mut runner) = replay::replay_open(&mut session, &options)?;
    let stage = session.plan.index(launch)?;
    runner.make_clean(&mut session)?;
    let Some(stash) = Stash::of_changes(&session, stage..stage + 1)? else {
        return Err(Error::Unsupported(
            "the bench needs room on the GPU for a copy of the bytes that the launch changes, none of them in the host's memory"
                .to_owned(),
        ));
    };
    let bench = alone(&session, &stash, stage)?;
    let with = match other {
        Some(other) => {
            stash.restore(&mut session)?;
            Some(compare(
                &mut session,
                &mut runner,
                &stash,
                stage,
                other,
                &options,
            )?)
        }
        None => None,
    };
    Ok(Benched {
        replayed,
        bench,
        with,
    })
}

/// Times a launch with a cold and a warm cache in turns.
fn alone(session: &Session<'_>, stash: &Stash, stage: usize) -> Result<Bench, Error> {
    let driver = &session.gpu.driver;
    let clock = GpuClock::open(driver, session.gpu.device);
    let flushed_bytes = 2 * session.gpu.l2_bytes.unwrap_or(MAX_L2_BYTES).max(1 << 20);
    let flushed = driver.allocate(flushed_bytes)?;
    let ready = &session.ready[stage];
    let (mut cold, mut warm, mut clocks) = (Vec::new(), Vec::new(), Vec::new());
    let since = Instant::now();
    while cold.len() < SAMPLES.start || (cold.len() < SAMPLES.end && since.elapsed() < ALONE_FOR) {
        stash.put(driver, &session.placed)?;
        driver.fill(flushed, 0, flushed_bytes)?;
        cold.push(timed(session, ready)?);
        warm.push(warm_ns(session, stash, ready)?);
        clocks.extend(clock.as_ref().and_then(GpuClock::mhz));
    }
    driver.free(flushed);
    let [cold_low, cold_ns, cold_high] = statistics::median_with_interval(&mut cold);
    let [low, warm_ns, high] = statistics::median_with_interval(&mut warm);
    Ok(Bench {
        launch: session.stage(stage).number,
        cold_ns,
        warm_ns,
        low,
        high,
        cold_low,
        cold_high,
        samples: cold.len() as u64,
        clock_mhz: clocks
            .iter()
            .min()
            .zip(clocks.iter().max())
            .map(|(a, b)| [*a, *b]),
    })
}

/// Returns the time of a launch whose code and data the caches have: the same launch runs before it, on the same bytes.
fn warm_ns(session: &Session<'_>, stash: &Stash, ready: &ReadyLaunch) -> Result<f64, Error> {
    let driver = &session.gpu.driver;
    session.keep_busy()?;
    stash.put(driver, &session.placed)?;
    ready.start(driver)?;
    stash.put(driver, &session.placed)?;
    timed(session, ready)
}

/// Launches, waits, and returns the time between the events around the launch.
fn timed(session: &Session<'_>, ready: &ReadyLaunch) -> Result<f64, Error> {
    let driver = &session.gpu.driver;
    let [start, end] = session.events;
    driver.record(start)?;
    ready.start(driver)?;
    driver.record(end)?;
    ready.wait(driver, session.time_limit)?;
    driver.elapsed_ns(start, end)
}

/// Runs another kernel in turns with the captured one.
fn compare(
    session: &mut Session<'_>,
    runner: &mut Runner,
    stash: &Stash,
    stage: usize,
    other: &Other,
    options: &Options,
) -> Result<Comparison, Error> {
    let launch = session.stage(stage).launch;
    let capability = session.capture.header.device.compute_capability;
    let driver = session.gpu.driver;
    let name = other.name.as_deref();
    let code = OtherCode::load(&driver, &other.file, name, &launch.kernel, capability)?;
    let own = session.modules.kernel(launch)?.parameters.clone();
    if let (Some(own), Some(others)) = (&own, &code.kernel.parameters)
        && own != others
    {
        let sizes = |all: &[(u64, u64)]| {
            let each: Vec<String> = all.iter().map(|(_, bytes)| bytes.to_string()).collect();
            each.join(", ")
        };
        return Err(Error::Unsupported(format!(
            "kernel {} takes parameters of {} bytes, and the captured one of {}",
            code.name,
            sizes(others),
            sizes(own)
        )));
    }
    let shared_bytes = other.shared_bytes.unwrap_or(launch.shared_bytes);
    code.kernel
        .prepare(&driver, &launch.function, shared_bytes)?;
    let globals = globals(session, &code, stage)?;
    let ready = session.ready[stage].with(
        code.kernel.clone(),
        other.grid,
        other.block,
        other.shared_bytes,
    );
    let outputs = outputs(session, runner, stage, &ready, &globals, options)?;
    runner.make_clean(session)?;
    let put_globals = || -> Result<(), Error> {
        globals
            .iter()
            .try_for_each(|(to, from, bytes)| driver.copy(*to, *from, *bytes))
    };
    let captured = &session.ready[stage];
    let (mut a, mut b) = (Vec::new(), Vec::new());
    let since = Instant::now();
    while a.len() < TURNS.start || (a.len() < TURNS.end && since.elapsed() < IN_TURNS_FOR) {
        let mut turn = [0.0, 0.0];
        for is_other in [false, true, true, false] {
            put_globals()?;
            let which = if is_other { &ready } else { captured };
            turn[usize::from(is_other)] += warm_ns(session, stash, which)? / 2.0;
        }
        a.push(turn[0]);
        b.push(turn[1]);
    }
    let [low, ratio, high] = statistics::ratio_with_interval(&a, &b);
    let turns = a.len() as u64;
    let captured_kernel_ns = statistics::median_with_interval(&mut a)[1];
    let other_kernel_ns = statistics::median_with_interval(&mut b)[1];
    Ok(Comparison {
        kernel: code.name,
        ratio,
        low,
        high,
        differs: !(low..=high).contains(&1.0),
        captured_kernel_ns,
        other_kernel_ns,
        turns,
        outputs,
    })
}

/// Returns the other module's variables that have the name and size of captured ones: address there, here, and size.
fn globals(
    session: &Session<'_>,
    code: &OtherCode,
    stage: usize,
) -> Result<Vec<(u64, u64, u64)>, Error> {
    let module = session.stage(stage).launch.module;
    let mut all = Vec::new();
    for (memory, name) in session.capture.globals(module) {
        let Ok((there, bytes)) = session.gpu.driver.global(code.module, name) else {
            continue;
        };
        if let crate::memory::MemoryAddress::Device(here) = session.placed.place(memory.id)?
            && bytes == memory.bytes
        {
            all.push((there, here, bytes));
        }
    }
    Ok(all)
}

/// Runs both kernels on the same bytes, and compares what they leave.
fn outputs(
    session: &mut Session<'_>,
    runner: &mut Runner,
    stage: usize,
    other: &ReadyLaunch,
    globals: &[(u64, u64, u64)],
    options: &Options,
) -> Result<OutputComparison, Error> {
    let is_global = |session: &Session<'_>, id: MemoryId| {
        let memory = session.capture.memories.get(&id);
        memory.is_some_and(|one| {
            matches!(
                one.place,
                gapscope_capture::cuda::MemoryPlace::Global { .. }
            )
        })
    };
    runner.make_clean(session)?;
    let mut run = Run::default();
    session.run_stage(stage, &mut run)?;
    let changed: Vec<_> = (run.outputs.iter())
        .filter(|(_, range, _)| !is_global(session, range.memory))
        .map(|(_, range, hash)| (*range, *hash))
        .collect();
    let ranges: Vec<Range> = changed.iter().map(|(range, _)| *range).collect();
    let total: u64 = ranges.iter().map(|range| range.bytes).sum();
    let is_compared = total <= MAX_COMPARED_BYTES;
    let compared: &[Range] = if is_compared { &ranges } else { &[] };
    let first = session
        .stager
        .bytes(&session.gpu.driver, &session.placed, compared)?;
    runner.is_clean = false;
    runner.make_clean(session)?;
    for (to, from, bytes) in globals {
        session.gpu.driver.copy(*to, *from, *bytes)?;
    }
    let mut run = Run::default();
    session.run_other(stage, other, &mut run)?;
    runner.is_clean = false;
    let second = session
        .stager
        .bytes(&session.gpu.driver, &session.placed, compared)?;
    let strays = run
        .different
        .iter()
        .filter(|found| found.cell.changed.is_none());
    let stray_count = strays
        .filter(|found| !is_global(session, found.cell.range.memory))
        .count();
    if stray_count > 0 {
        runner.forget_stash(session);
    }
    let after = run
        .outputs
        .iter()
        .filter(|(_, range, _)| !is_global(session, range.memory));
    let differing = changed
        .iter()
        .zip(after)
        .filter(|((_, a), (_, _, b))| a != b)
        .count();
    let mut comparison = OutputComparison {
        pieces: changed.len() as u64 + stray_count as u64,
        differing: differing as u64 + stray_count as u64,
        differing_bytes: is_compared.then_some(0),
        ..OutputComparison::default()
    };
    let element = options.element.unwrap_or(Element::F32);
    let mut greatest = Some((0.0_f64, Some(0_u64)));
    for (a, b) in first.iter().zip(&second) {
        if a == b {
            continue;
        }
        let bytes = a.iter().zip(b).filter(|(a, b)| a != b).count() as u64;
        comparison.differing_bytes = comparison.differing_bytes.map(|sum| sum + bytes);
        let here = unsteady::between(a, b, element);
        greatest = greatest
            .zip(here)
            .map(|(all, one)| (all.0.max(one.0), all.1.max(one.1)));
    }
    if let (true, Some((share, ulps))) = (is_compared && stray_count == 0, greatest) {
        comparison.relative = Some(share);
        comparison.ulps = ulps.filter(|_| element.is_float());
        comparison.element = Some(element);
    }
    Ok(comparison)
}
