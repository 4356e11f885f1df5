//! The process that samples hardware counters, beside the program: it does what the session orders over the socket that is its stdin,
//! and says there what it found. Without the session it is nothing, and ends.

mod device;
mod gpm;
mod plan;
mod refusal;

use super::pipe::{self, Order, Said};
use super::set::CounterSet;
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
    let first = pipe::read::<Order>(&mut orders).map_err(|_| wrong.to_owned())?;
    let Order::Prepare {
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
        end_at_once();
    }
    let voice = Voice(Arc::new(Mutex::new(
        orders.try_clone().map_err(|error| error.to_string())?,
    )));
    let mut sampler = Sampler {
        task: Arc::new(Task {
            counters,
            interval_ns,
            executable,
        }),
        voice,
        tools: None,
        refused: None,
        stop: Arc::default(),
        threads: Vec::new(),
        streams: 0,
    };
    sampler.prepare(None);
    sampler.voice.say(&Said::Ready);
    sampler.follow(&mut orders);
    Ok(())
}

/// Whether counters can be sampled in this process, as far as that is known without sampling: what of the usual ones the GPUs have, with
/// the libcupti that says so.
///
/// # Errors
/// They cannot: a sentence without its full stop.
pub fn can_sample_counters() -> Result<String, String> {
    let tools = tools(Path::new(""), None)?;
    let device = tools.devices.first().ok_or("CUDA has no GPU")?;
    let refused = |failure: Failure| refusal::sentence(&failure, &tools.file);
    let (chip, availability) = device.facts.as_ref().map_err(|f| refused(*f))?;
    let asked = CounterSet::default();
    let plan = Plan::new(&tools.cupti, chip, Some(availability), asked.counters());
    let plan = plan.map_err(refused)?;
    let chip = chip.to_string_lossy();
    match plan.counters.is_empty() {
        true => Err(format!("CUPTI knows no counters of the chip {chip}")),
        false => Ok(format!("{} of {chip}", names(&plan.counters))),
    }
}

/// What to sample.
#[derive(Debug)]
struct Task {
    counters: Vec<HardwareCounter>,
    interval_ns: u64,
    executable: PathBuf,
}

/// Ends this process without what libraries do at its end, which may hang; the system gives the counters back.
fn end_at_once() -> ! {
    let _ = kill_process(getpid(), Signal::KILL);
    std::process::exit(1)
}

/// The way to the session, for all threads.
#[derive(Debug, Clone)]
struct Voice(Arc<Mutex<UnixStream>>);

impl Voice {
    /// Waits while the session does not listen. Without one this process ends.
    fn say(&self, said: &Said) {
        let mut stream = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        if pipe::write(&mut *stream, said).is_err() {
            end_at_once();
        }
    }

    fn unmeasured(&self, counters: &[HardwareCounter], gpu: &str, reason: String) {
        let what = format!("hardware counters of {gpu} ({})", names(counters));
        self.say(&Said::Unmeasured(Unmeasured { what, reason }));
    }
}

fn names(counters: &[HardwareCounter]) -> String {
    let names: Vec<&str> = counters.iter().map(|c| c.as_str()).collect();
    names.join(", ")
}

/// The libraries, in use.
#[derive(Debug, Clone)]
struct Tools {
    cupti: Cupti,
    file: PathBuf,
    devices: Vec<Counted>,
    /// Devices are set up one after the other.
    setup: Arc<Mutex<()>>,
}

/// A device of this process, by its number in CUDA.
#[derive(Debug, Clone)]
struct Counted {
    uuid: Uuid,
    /// Asked for before anything is sampled, as CUPTI wants it.
    facts: Result<Facts, Failure>,
}

/// A device's chip, and the image of what counters it has.
type Facts = (CString, Arc<[u8]>);

fn facts(cupti: &Cupti, index: usize) -> Result<Facts, Failure> {
    let availability = PmSampling::availability(cupti, index)?;
    Ok((cupti.chip_name(index)?, availability.into()))
}

struct Sampler {
    task: Arc<Task>,
    voice: Voice,
    tools: Option<Tools>,
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
        match tools(&self.task.executable, process) {
            Ok(tools) => self.tools = Some(tools),
            Err(reason) => self.refused = Some(reason),
        }
    }

    fn follow(&mut self, orders: &mut UnixStream) {
        loop {
            match pipe::read(orders) {
                Ok(Order::Gpu {
                    uuid,
                    name,
                    process,
                }) => self.add(uuid, name, process),
                Ok(Order::Finish) => break,
                Ok(Order::Prepare { .. }) => {}
                // The session is gone, and nobody listens.
                Err(_) => end_at_once(),
            }
        }
        self.stop.store(true, Relaxed);
        for thread in &self.threads {
            thread.thread().unpark();
        }
        for thread in self.threads.drain(..) {
            let _ = thread.join();
        }
        self.voice.say(&Said::Ended);
        if let Some(tools) = &self.tools {
            // Only now, and only once: PyTorch's profiler saw crashes otherwise.
            let _ = tools.cupti.deinitialize();
        }
        end_at_once();
    }

    /// Samples a GPU, in one way or another.
    fn add(&mut self, uuid: String, name: String, process: Option<u32>) {
        if self.tools.is_none() {
            self.prepare(process);
        }
        let gpu = Gpu {
            uuid,
            name,
            stream: self.streams,
        };
        self.streams += 1;
        let (task, voice, stop) = (self.task.clone(), self.voice.clone(), self.stop.clone());
        let tools = match (&self.tools, &self.refused) {
            (Some(tools), _) => Ok(tools.clone()),
            (None, refused) => Err(refused.clone().unwrap_or_default()),
        };
        let thread = std::thread::Builder::new().name("counters".to_owned());
        let run = move || {
            let sampled =
                tools.and_then(|tools| device::sample(&tools, &task, &gpu, &voice, &stop));
            if let Err(reason) = sampled {
                gpm::sample(&task, &gpu, &voice, &stop, reason);
            }
        };
        match thread.spawn(run) {
            Ok(thread) => self.threads.push(thread),
            Err(error) => self.voice.say(&Said::Unmeasured(Unmeasured {
                what: "hardware counters of a GPU".to_owned(),
                reason: format!("no thread could be started for them: {error}"),
            })),
        }
    }
}

/// Waits, unless the end comes first. True then.
fn pause(stop: &AtomicBool, time: Duration) -> bool {
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
fn tools(executable: &Path, process: Option<u32>) -> Result<Tools, String> {
    let driver = Driver::load().map_err(|error| error.to_string())?;
    let (cupti, file) = find(executable, process, &driver)?;
    let devices = driver.devices().map_err(|error| error.to_string())?;
    // Without it, times would be those of the wall clock.
    cupti.set_clock(monotonic).map_err(|f| f.to_string())?;
    cupti
        .initialize()
        .map_err(|f| refusal::sentence(&f, &file))?;
    let counted = |(index, uuid)| Counted {
        uuid,
        facts: facts(&cupti, index),
    };
    Ok(Tools {
        devices: devices.into_iter().enumerate().map(counted).collect(),
        setup: Arc::default(),
        cupti,
        file,
    })
}

/// A libcupti that can sample: of the command's Python or toolkit, or that which a process of it has loaded.
fn find(
    executable: &Path,
    process: Option<u32>,
    driver: &Driver,
) -> Result<(Cupti, PathBuf), String> {
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
