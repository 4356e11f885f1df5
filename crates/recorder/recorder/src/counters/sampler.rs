//! Runs the process that samples hardware counters beside the program. It takes the requests of the session (the
//! process of `gapscope record`) from the socket that is its stdin, and sends reports back there. Without the session
//! it ends. Each GPU is sampled by a thread of its own, with CUPTI (NVIDIA's profiling library, module `pm_sampling`)
//! or else with NVML (module `gpm`).

mod error;
mod gpm;
mod plan;
mod pm_sampling;

use super::pipe::{self, SamplerReport, SamplerRequest};
use super::selection::CounterSet;
pub use error::SamplerError;
use gapscope_cupti::{Cupti, Driver, Failure, Host, PmSampling, Uuid, search};
use gapscope_model::HardwareCounter;
use gapscope_trace::manifest::Unmeasured;
use plan::Plan;
use rustix::process::{Signal, getpid, getppid, kill_process, set_parent_process_death_signal};
use std::ffi::CString;
use std::os::fd::AsFd;
use std::os::unix::net::UnixStream;
use std::path::{Path, PathBuf};
use std::sync::atomic::AtomicBool;
use std::sync::atomic::Ordering::Relaxed;
use std::sync::{Arc, Mutex, PoisonError};
use std::thread::JoinHandle;
use std::time::Duration;

/// Makes this process sample hardware counters for the session at the other end of its stdin, until the session has
/// finished or is gone; then the process ends. The function returns only with an error.
///
/// # Errors
/// Stdin is not such a socket.
pub fn sample_counters() -> Result<(), SamplerError> {
    let stdin = std::io::stdin().as_fd().try_clone_to_owned();
    let mut requests = UnixStream::from(stdin.map_err(|_| SamplerError::NoSession)?);
    let first = pipe::read::<SamplerRequest>(&mut requests).map_err(|_| SamplerError::NoSession)?;
    let SamplerRequest::Prepare {
        counters,
        interval_ns,
        executable,
        parent,
    } = first
    else {
        return Err(SamplerError::NoSession);
    };
    // The end of the socket has the same effect, unless this process is stuck in the driver.
    let _ = set_parent_process_death_signal(Some(Signal::KILL));
    if getppid().is_none_or(|pid| pid.as_raw_nonzero().get() as u32 != parent) {
        kill_self();
    }
    let reporter = Reporter(Arc::new(Mutex::new(
        requests.try_clone().map_err(|_| SamplerError::NoSession)?,
    )));
    let mut sampler = Sampler {
        task: Arc::new(SamplingTask {
            counters,
            interval_ns,
            executable,
        }),
        reporter,
        libraries: None,
        refused: None,
        stop: Arc::default(),
        threads: Vec::new(),
        streams: 0,
    };
    sampler.prepare(None);
    sampler.reporter.report(&SamplerReport::Ready);
    sampler.follow(&mut requests);
    Ok(())
}

/// Checks whether counters can be sampled in this process, as far as that is known without sampling. Returns the
/// usual counters that the GPU has, by its chip.
///
/// # Errors
/// The counters cannot be sampled.
pub fn can_sample_counters() -> Result<String, SamplerError> {
    let libraries = load_libraries(Path::new(""), None)?;
    let device = libraries.devices.first().ok_or(SamplerError::NoGpu)?;
    let refused = |failure| SamplerError::Cupti(failure, libraries.file.clone());
    let (chip, availability) = device.chip_facts.as_ref().map_err(|f| refused(*f))?;
    let asked = CounterSet::default();
    let plan = Plan::new(&libraries.cupti, chip, Some(availability), asked.counters());
    let plan = plan.map_err(refused)?;
    let chip = chip.to_string_lossy();
    match plan.counters.is_empty() {
        true => Err(SamplerError::UnknownChip(chip.into_owned())),
        false => Ok(format!("{} of {chip}", names(&plan.counters))),
    }
}

/// The session's first request: the counters, the time between samples, and the file that the command runs.
#[derive(Debug)]
struct SamplingTask {
    counters: Vec<HardwareCounter>,
    interval_ns: u64,
    executable: PathBuf,
}

/// Ends this process without the exit handlers of libraries, which may hang. The system gives the counters back.
fn kill_self() -> ! {
    let _ = kill_process(getpid(), Signal::KILL);
    std::process::exit(1)
}

/// Sends reports to the session, for all threads.
#[derive(Debug, Clone)]
struct Reporter(Arc<Mutex<UnixStream>>);

impl Reporter {
    /// Sends a report and waits while the session does not listen. Without a session this process ends.
    fn report(&self, report: &SamplerReport) {
        let mut stream = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        if pipe::write(&mut *stream, report).is_err() {
            kill_self();
        }
    }

    /// Reports that counters of the GPU named `gpu` are not sampled.
    fn unmeasured(&self, counters: &[HardwareCounter], gpu: &str, reason: String) {
        let what = format!("hardware counters of {gpu} ({})", names(counters));
        self.report(&SamplerReport::Unmeasured(Unmeasured { what, reason }));
    }
}

/// Returns the names of counters, with commas between.
fn names(counters: &[HardwareCounter]) -> String {
    let names: Vec<&str> = counters.iter().map(|c| c.as_str()).collect();
    names.join(", ")
}

/// The libraries, ready for use.
#[derive(Debug, Clone)]
struct Libraries {
    cupti: Cupti,
    /// The file, or the bare name, that CUPTI was loaded from.
    file: PathBuf,
    devices: Vec<CudaDevice>,
    /// Held while a device is set up, so that devices are set up one after the other.
    setup: Arc<Mutex<()>>,
}

/// A device of this process, by its number in CUDA.
#[derive(Debug, Clone)]
struct CudaDevice {
    uuid: Uuid,
    /// The facts of the chip, which are asked for before anything is sampled, as CUPTI demands.
    chip_facts: Result<ChipFacts, Failure>,
}

/// A device's chip, and the image of the counters that it has.
type ChipFacts = (CString, Arc<[u8]>);

/// Asks CUPTI for the facts of the device with this number.
fn chip_facts(cupti: &Cupti, index: usize) -> Result<ChipFacts, Failure> {
    let availability = PmSampling::availability(cupti, index)?;
    Ok((cupti.chip_name(index)?, availability.into()))
}

/// The state of the process that samples.
struct Sampler {
    task: Arc<SamplingTask>,
    reporter: Reporter,
    /// Absent while none were found; they are searched again for each GPU.
    libraries: Option<Libraries>,
    /// The reason why there are no libraries.
    refused: Option<SamplerError>,
    /// Set at the end of sampling, for the threads, one for each GPU.
    stop: Arc<AtomicBool>,
    threads: Vec<JoinHandle<()>>,
    /// The number of GPUs so far, which is the next stream's number.
    streams: u32,
}

/// A GPU to sample.
#[derive(Debug, Clone)]
struct Gpu {
    uuid: String,
    name: String,
    /// The number of the GPU's samples in reports.
    stream: u32,
}

impl Sampler {
    /// Loads the libraries, if they are found beside the command or in `process`, which uses a GPU; otherwise keeps
    /// the reason.
    fn prepare(&mut self, process: Option<u32>) {
        match load_libraries(&self.task.executable, process) {
            Ok(libraries) => self.libraries = Some(libraries),
            Err(reason) => self.refused = Some(reason),
        }
    }

    /// Samples the GPUs that the session names, until it ends the sampling; then ends this process.
    fn follow(&mut self, requests: &mut UnixStream) {
        loop {
            match pipe::read(requests) {
                Ok(SamplerRequest::Gpu {
                    uuid,
                    name,
                    process,
                }) => self.add(uuid, name, process),
                Ok(SamplerRequest::Finish) => break,
                Ok(SamplerRequest::Prepare { .. }) => {}
                // The session is gone, and nobody listens.
                Err(_) => kill_self(),
            }
        }
        self.stop.store(true, Relaxed);
        for thread in &self.threads {
            thread.thread().unpark();
        }
        for thread in self.threads.drain(..) {
            let _ = thread.join();
        }
        self.reporter.report(&SamplerReport::Ended);
        if let Some(libraries) = &self.libraries {
            // This comes last, and only once: PyTorch's profiler saw crashes otherwise.
            let _ = libraries.cupti.deinitialize();
        }
        kill_self();
    }

    /// Starts a thread that samples a GPU with CUPTI, or else with NVML.
    fn add(&mut self, uuid: String, name: String, process: Option<u32>) {
        if self.libraries.is_none() {
            self.prepare(process);
        }
        let gpu = Gpu {
            uuid,
            name,
            stream: self.streams,
        };
        self.streams += 1;
        let (task, reporter, stop) = (self.task.clone(), self.reporter.clone(), self.stop.clone());
        let libraries = match (&self.libraries, &self.refused) {
            (Some(libraries), _) => Ok(libraries.clone()),
            (None, refused) => Err(refused.clone().unwrap_or(SamplerError::NoCupti)),
        };
        let thread = std::thread::Builder::new().name("counters".to_owned());
        let run = move || {
            let sampled = libraries.and_then(|libraries| {
                pm_sampling::sample(&libraries, &task, &gpu, &reporter, &stop)
            });
            if let Err(reason) = sampled {
                gpm::sample(&task, &gpu, &reporter, &stop, reason);
            }
        };
        match thread.spawn(run) {
            Ok(thread) => self.threads.push(thread),
            Err(error) => self.reporter.report(&SamplerReport::Unmeasured(Unmeasured {
                what: "hardware counters of a GPU".to_owned(),
                reason: format!("no thread could be started for them: {error}"),
            })),
        }
    }
}

/// Waits for `time` or for the end of sampling, and sometimes less. Returns true at the end.
fn wait_or_stop(stop: &AtomicBool, time: Duration) -> bool {
    if !stop.load(Relaxed) {
        std::thread::park_timeout(time);
    }
    stop.load(Relaxed)
}

/// Returns the time on the clock of the trace.
extern "C" fn monotonic() -> u64 {
    gapscope_spool::monotonic_ns() as u64
}

/// Loads the driver and CUPTI, ready to sample.
fn load_libraries(executable: &Path, process: Option<u32>) -> Result<Libraries, SamplerError> {
    let driver = Driver::load().map_err(|error| SamplerError::Driver(error.to_string()))?;
    let (cupti, file) = find_cupti(executable, process, &driver)?;
    let devices = driver.devices();
    let devices = devices.map_err(|error| SamplerError::Driver(error.to_string()))?;
    // Without this, times would be those of the wall clock.
    cupti.set_clock(monotonic).map_err(SamplerError::Clock)?;
    cupti
        .initialize()
        .map_err(|failure| SamplerError::Cupti(failure, file.clone()))?;
    let device = |(index, uuid)| CudaDevice {
        uuid,
        chip_facts: chip_facts(&cupti, index),
    };
    Ok(Libraries {
        devices: devices.into_iter().enumerate().map(device).collect(),
        setup: Arc::default(),
        cupti,
        file,
    })
}

/// Finds a libcupti that can sample, and the file that it was loaded from: the one that
/// [`CUPTI`](gapscope_spool::env::CUPTI) names, otherwise the first usable one of the command's Python or toolkit, or
/// that `process` has loaded. Fails with the first reason why one that was found could not be used.
fn find_cupti(
    executable: &Path,
    process: Option<u32>,
    driver: &Driver,
) -> Result<(Cupti, PathBuf), SamplerError> {
    let mut around = search::SearchContext::for_command(executable.to_owned(), driver.version());
    if let Some(process) = process {
        let maps = std::fs::read(format!("/proc/{process}/maps")).unwrap_or_default();
        around.mapped = search::mapped_files(&maps);
    }
    let forced = std::env::var_os(gapscope_spool::env::CUPTI).filter(|path| !path.is_empty());
    let candidates = match forced {
        Some(path) => vec![search::Candidate::File(path.into())],
        None => search::candidates(&around),
    };
    let mut refused = None;
    for candidate in candidates {
        let (path, is_file) = match candidate {
            search::Candidate::Loaded(path) | search::Candidate::File(path) => (path, true),
            search::Candidate::Name(name) => (name.into(), false),
        };
        let opened = Cupti::open(&path)
            .map_err(|missing| (is_file, SamplerError::UnusableCupti(missing.to_string())));
        let usable = opened.and_then(|cupti| match Host::chips(&cupti) {
            Ok(_) => Ok(cupti),
            Err(failure) => Err((true, SamplerError::Cupti(failure, path.clone()))),
        });
        match usable {
            Ok(cupti) => return Ok((cupti, path)),
            // A bare name that is not found is no reason to report.
            Err((true, why)) => refused = refused.or(Some(why)),
            Err((false, _)) => {}
        }
    }
    Err(refused.unwrap_or(SamplerError::NoCupti))
}
