//! The process that samples hardware counters, beside the program: it does what the session orders over the socket that is its stdin,
//! and says there what it found. Without the session it is nothing, and ends.

mod gpm;
mod plan;
mod pm_sampling;
mod refusal;

use super::pipe::{self, SamplerReport, SamplerRequest};
use super::selection::CounterSet;
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

/// Has this process sample hardware counters for the session at the other end of its stdin, until that is done or gone. It does not
/// return before.
///
/// # Errors
/// Stdin is not such a socket: a sentence.
pub fn sample_counters() -> Result<(), String> {
    let wrong = "only `gapscope record --counters` starts this, with a socket as stdin";
    let stdin = std::io::stdin().as_fd().try_clone_to_owned();
    let mut orders = UnixStream::from(stdin.map_err(|_| wrong.to_owned())?);
    let first = pipe::read::<SamplerRequest>(&mut orders).map_err(|_| wrong.to_owned())?;
    let SamplerRequest::Prepare {
        counters,
        interval_ns,
        executable,
        parent,
    } = first
    else {
        return Err(wrong.to_owned());
    };
    // The end of the socket says the same, unless this process is stuck in the driver.
    let _ = set_parent_process_death_signal(Some(Signal::KILL));
    if getppid().is_none_or(|pid| pid.as_raw_nonzero().get() as u32 != parent) {
        kill_self();
    }
    let reporter = Reporter(Arc::new(Mutex::new(
        orders.try_clone().map_err(|error| error.to_string())?,
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
    sampler.follow(&mut orders);
    Ok(())
}

/// Whether counters can be sampled in this process, as far as that is known without sampling: what of the usual ones the GPUs have, with
/// the libcupti that says so.
///
/// # Errors
/// They cannot: a sentence without its full stop.
pub fn can_sample_counters() -> Result<String, String> {
    let libraries = load_libraries(Path::new(""), None)?;
    let device = libraries.devices.first().ok_or("CUDA has no GPU")?;
    let refused = |failure: Failure| refusal::sentence(&failure, &libraries.file);
    let (chip, availability) = device.chip_facts.as_ref().map_err(|f| refused(*f))?;
    let asked = CounterSet::default();
    let plan = Plan::new(&libraries.cupti, chip, Some(availability), asked.counters());
    let plan = plan.map_err(refused)?;
    let chip = chip.to_string_lossy();
    match plan.counters.is_empty() {
        true => Err(format!("CUPTI knows no counters of the chip {chip}")),
        false => Ok(format!("{} of {chip}", names(&plan.counters))),
    }
}

/// What to sample.
#[derive(Debug)]
struct SamplingTask {
    counters: Vec<HardwareCounter>,
    interval_ns: u64,
    executable: PathBuf,
}

/// Ends this process without what libraries do at its end, which may hang; the system gives the counters back.
fn kill_self() -> ! {
    let _ = kill_process(getpid(), Signal::KILL);
    std::process::exit(1)
}

/// The way to the session, for all threads.
#[derive(Debug, Clone)]
struct Reporter(Arc<Mutex<UnixStream>>);

impl Reporter {
    /// Waits while the session does not listen. Without one this process ends.
    fn report(&self, said: &SamplerReport) {
        let mut stream = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        if pipe::write(&mut *stream, said).is_err() {
            kill_self();
        }
    }

    fn unmeasured(&self, counters: &[HardwareCounter], gpu: &str, reason: String) {
        let what = format!("hardware counters of {gpu} ({})", names(counters));
        self.report(&SamplerReport::Unmeasured(Unmeasured { what, reason }));
    }
}

fn names(counters: &[HardwareCounter]) -> String {
    let names: Vec<&str> = counters.iter().map(|c| c.as_str()).collect();
    names.join(", ")
}

/// The libraries, in use.
#[derive(Debug, Clone)]
struct Libraries {
    cupti: Cupti,
    file: PathBuf,
    devices: Vec<CudaDevice>,
    /// Devices are set up one after the other.
    setup: Arc<Mutex<()>>,
}

/// A device of this process, by its number in CUDA.
#[derive(Debug, Clone)]
struct CudaDevice {
    uuid: Uuid,
    /// Asked for before anything is sampled, as CUPTI wants it.
    chip_facts: Result<ChipFacts, Failure>,
}

/// A device's chip, and the image of what counters it has.
type ChipFacts = (CString, Arc<[u8]>);

fn chip_facts(cupti: &Cupti, index: usize) -> Result<ChipFacts, Failure> {
    let availability = PmSampling::availability(cupti, index)?;
    Ok((cupti.chip_name(index)?, availability.into()))
}

struct Sampler {
    task: Arc<SamplingTask>,
    reporter: Reporter,
    libraries: Option<Libraries>,
    /// Why there are none.
    refused: Option<String>,
    stop: Arc<AtomicBool>,
    threads: Vec<JoinHandle<()>>,
    streams: u32,
}

/// A GPU to sample.
#[derive(Debug, Clone)]
struct Gpu {
    uuid: String,
    name: String,
    stream: u32,
}

impl Sampler {
    /// Loads what is needed, if it can be found: beside the command, or in a process that uses a GPU.
    fn prepare(&mut self, process: Option<u32>) {
        match load_libraries(&self.task.executable, process) {
            Ok(libraries) => self.libraries = Some(libraries),
            Err(reason) => self.refused = Some(reason),
        }
    }

    fn follow(&mut self, orders: &mut UnixStream) {
        loop {
            match pipe::read(orders) {
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
            // Only now, and only once: PyTorch's profiler saw crashes otherwise.
            let _ = libraries.cupti.deinitialize();
        }
        kill_self();
    }

    /// Samples a GPU, in one way or another.
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
            (None, refused) => Err(refused.clone().unwrap_or_default()),
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

/// Waits, unless the end comes first. True then.
fn wait_or_stop(stop: &AtomicBool, time: Duration) -> bool {
    if !stop.load(Relaxed) {
        std::thread::park_timeout(time);
    }
    stop.load(Relaxed)
}

/// The clock of the trace.
extern "C" fn monotonic() -> u64 {
    gapscope_spool::monotonic_ns() as u64
}

/// Driver and CUPTI, ready to sample; else a sentence without its full stop.
fn load_libraries(executable: &Path, process: Option<u32>) -> Result<Libraries, String> {
    let driver = Driver::load()?;
    let (cupti, file) = find_cupti(executable, process, &driver)?;
    let devices = driver.devices()?;
    // Without it, times would be those of the wall clock.
    cupti.set_clock(monotonic).map_err(|f| f.to_string())?;
    cupti
        .initialize()
        .map_err(|f| refusal::sentence(&f, &file))?;
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

/// A libcupti that can sample: of the command's Python or toolkit, or that which a process of it has loaded.
fn find_cupti(
    executable: &Path,
    process: Option<u32>,
    driver: &Driver,
) -> Result<(Cupti, PathBuf), String> {
    let mut around = search::Surroundings::of_command(executable.to_owned(), driver.version());
    if let Some(process) = process {
        let maps = std::fs::read_to_string(format!("/proc/{process}/maps")).unwrap_or_default();
        around.mapped = search::mapped(&maps);
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
        let opened = Cupti::open(&path).map_err(|missing| (is_file, missing.to_string()));
        let usable = opened.and_then(|cupti| match Host::chips(&cupti) {
            Ok(_) => Ok(cupti),
            Err(failure) => Err((true, refusal::sentence(&failure, &path))),
        });
        match usable {
            Ok(cupti) => return Ok((cupti, path)),
            // That a name is not found says nothing.
            Err((true, why)) => refused = refused.or(Some(why)),
            Err((false, _)) => {}
        }
    }
    Err(refused.unwrap_or_else(|| {
        format!(
            "libcupti was found neither in the Python packages of the program nor in a CUDA toolkit: install it (`pip install \
             nvidia-cuda-cupti`), or name its file in {}",
            gapscope_spool::env::CUPTI
        )
    }))
}
