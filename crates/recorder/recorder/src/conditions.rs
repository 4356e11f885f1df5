//! Measures conditions: states of the machine and its GPUs that change how long work takes, such as heat, clocks or
//! want of memory. A thread of the session (the process of `gapscope record`) asks for them at a low rate, beside the
//! program, and reports readings.
//!
//! The session calls [`Conditions::start`] once, [`Conditions::follow`] whenever it finds processes or devices,
//! [`Conditions::take`] for the reports so far, and at the end [`Conditions::finish`] and [`Conditions::unasked`].

mod cgroup;
mod drm;
mod kernel_files;
mod machine;
pub(crate) mod nvml;

use drm::DrmCards;
use gapscope_spool::monotonic_ns;
use gapscope_trace::manifest::{Device, Unmeasured};
use gapscope_trace::tables::Condition;
use machine::MachineSampler;
use nvml::NvmlGpus;
pub use nvml::{NvmlError, NvmlInfo, nvml_info};
use rustix::time::{ClockId, clock_gettime};
use std::collections::HashSet;
use std::path::PathBuf;
use std::sync::Arc;
use std::sync::mpsc::{Receiver, RecvTimeoutError, Sender, channel};
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

/// The least time between two rounds of questions.
const MIN_INTERVAL: Duration = Duration::from_millis(100);
/// The pause between rounds is this many times the cost of the last round, so that the thread takes at most 1 % of a
/// core.
const PAUSE_PER_COST: u32 = 99;
/// The pause is at least this part of the time so far, so that a day has 55,000 rounds instead of 864,000.
const ELAPSED_PER_PAUSE: u32 = 10_000;
/// The longest wait at the end for the thread: a driver that does not answer must not keep the recording from
/// ending.
const FINISH_TIMEOUT: Duration = Duration::from_secs(1);
/// The thread's niceness: the program goes first.
const NICENESS: i32 = 5;
/// The reason for what was never asked for, as reports write it.
const PROGRAM_ENDED: &str = "the program had ended before they were asked for";

/// The subject of a condition.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum ConditionSubject {
    /// The machine, or the program on it.
    Machine,
    /// The GPU with this UUID, as the manifest writes it.
    Gpu(Arc<str>),
}

/// The value of a condition.
#[derive(Debug, Clone, PartialEq)]
pub struct Reading {
    pub of: ConditionSubject,
    pub condition: Condition,
    /// The time from which the value holds: the time of the reading, or, for counts, of the reading before.
    pub from_ns: i64,
    /// The time of the reading.
    pub seen_ns: i64,
    /// The value; absent when it cannot be read any more.
    pub value: Option<f64>,
    /// The file or interface that the value was read from.
    pub source: Arc<str>,
}

/// A report of the thread: a reading, or a condition that cannot be measured, with the reason.
#[derive(Debug, Clone, PartialEq)]
pub enum ConditionUpdate {
    Reading(Reading),
    Unmeasured(Unmeasured),
}

/// A GPU whose conditions are asked for.
#[derive(Debug, Clone, PartialEq, Eq)]
struct Gpu {
    uuid: Arc<str>,
    name: String,
    vendor: Vendor,
}

/// The vendor of a GPU, whose driver is asked for its conditions.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Vendor {
    Nvidia,
    Amd,
    Intel,
    Other,
}

impl Vendor {
    /// Returns the vendor by the names of driver and device, as APIs and Mesa write them.
    fn from_device(device: &Device) -> Vendor {
        let names = |words: &[&str]| {
            let texts = [&device.driver, &device.name];
            let named = |word: &&str| texts.iter().any(|text| text.contains(*word));
            words.iter().any(named)
        };
        match () {
            () if device.api == gapscope_trace::manifest::Api::Cuda => Vendor::Nvidia,
            () if names(&["NVIDIA"]) => Vendor::Nvidia,
            () if names(&["AMD", "RADV", "radv"]) => Vendor::Amd,
            () if names(&["Intel"]) => Vendor::Intel,
            () => Vendor::Other,
        }
    }
}

/// A request of the session to the thread: to ask for conditions of a process, too, or of a GPU.
enum Request {
    Process(u32),
    Gpu(Gpu),
}

/// The thread that measures conditions.
#[derive(Debug)]
pub struct Conditions {
    /// The channel to the thread; absent after [`Conditions::finish`].
    requests: Option<Sender<Request>>,
    updates: Receiver<ConditionUpdate>,
    /// Absent when the thread could not be started or has been ended.
    thread: Option<JoinHandle<()>>,
    /// The processes, and the UUIDs of the GPUs, that the thread has been asked to follow.
    processes: HashSet<u32>,
    gpus: HashSet<Arc<str>>,
}

impl Conditions {
    /// Starts the thread. It asks for nothing before there is a process or a GPU to [`Self::follow`]. `root` is the
    /// folder with `proc` and `sys`.
    pub fn start(root: PathBuf) -> Conditions {
        let (requests, taken) = channel();
        let (sender, updates) = channel();
        let refused = sender.clone();
        let thread = std::thread::Builder::new().name("conditions".to_owned());
        let thread = thread.spawn(move || sample_conditions(root, &taken, &sender));
        if let Err(error) = &thread {
            let _ = refused.send(ConditionUpdate::unmeasured(
                "conditions of machine and GPUs",
                format!("no thread could be started for them: {error}"),
            ));
        }
        Conditions {
            requests: Some(requests),
            updates,
            thread: thread.ok(),
            processes: HashSet::new(),
            gpus: HashSet::new(),
        }
    }

    /// Includes these processes and devices from now on.
    pub fn follow<'a>(
        &mut self,
        processes: impl Iterator<Item = u32>,
        devices: impl Iterator<Item = &'a Device>,
    ) {
        for process in processes {
            if self.processes.insert(process) {
                self.request(Request::Process(process));
            }
        }
        for device in devices {
            // A device that was not announced has no UUID.
            if device.uuid.is_empty() || self.gpus.contains(device.uuid.as_str()) {
                continue;
            }
            let uuid: Arc<str> = device.uuid.as_str().into();
            self.gpus.insert(uuid.clone());
            self.request(Request::Gpu(Gpu {
                uuid,
                name: device.name.clone(),
                vendor: Vendor::from_device(device),
            }));
        }
    }

    /// Returns, for the end of a recording, that conditions are not known: those of each device that was never
    /// followed, and those of the machine when no process was followed.
    pub fn unasked<'a>(&self, devices: impl Iterator<Item = &'a Device>) -> Vec<ConditionUpdate> {
        let unasked = devices.filter(|d| !self.gpus.contains(d.uuid.as_str()));
        let mut updates: Vec<ConditionUpdate> = unasked
            .map(|d| ConditionUpdate::of_gpu(&d.name, PROGRAM_ENDED))
            .collect();
        if self.processes.is_empty() {
            updates.push(ConditionUpdate::unmeasured(
                "stalls and swapping",
                PROGRAM_ENDED,
            ));
        }
        updates
    }

    fn request(&self, request: Request) {
        if let Some(requests) = &self.requests {
            // The thread is gone only when it has reported why.
            let _ = requests.send(request);
        }
    }

    /// Returns the reports since the last call.
    pub fn take(&self) -> Vec<ConditionUpdate> {
        self.updates.try_iter().collect()
    }

    /// Ends the thread after a last round and returns the reports since the last [`Self::take`]. A driver that does
    /// not answer is left behind after [`FINISH_TIMEOUT`].
    pub fn finish(&mut self) -> Vec<ConditionUpdate> {
        drop(self.requests.take());
        let mut updates = Vec::new();
        if let Some(thread) = self.thread.take() {
            let since = Instant::now();
            while !thread.is_finished() && since.elapsed() < FINISH_TIMEOUT {
                std::thread::sleep(Duration::from_millis(2));
            }
            if !thread.is_finished() {
                let what = "conditions of machine and GPUs at the end";
                let reason = "the system or the GPU's driver did not answer within 1 s";
                updates.push(ConditionUpdate::unmeasured(what, reason));
            }
        }
        let mut all = self.take();
        all.append(&mut updates);
        all
    }
}

impl ConditionUpdate {
    /// Creates the reading of a value of the machine that holds since `from_ns` and was read at `seen_ns`.
    fn of_machine(
        condition: Condition,
        [from_ns, seen_ns]: [i64; 2],
        value: Option<f64>,
        source: &Arc<str>,
    ) -> ConditionUpdate {
        ConditionUpdate::Reading(Reading {
            of: ConditionSubject::Machine,
            condition,
            from_ns,
            seen_ns,
            value,
            source: source.clone(),
        })
    }

    /// Creates the report that `what` (names of conditions) is not measured.
    fn unmeasured(what: impl Into<String>, reason: impl ToString) -> ConditionUpdate {
        let (what, reason) = (what.into(), reason.to_string());
        ConditionUpdate::Unmeasured(Unmeasured { what, reason })
    }

    /// Creates the report that no condition of the GPU with this name is measured.
    fn of_gpu(name: &str, reason: impl ToString) -> ConditionUpdate {
        let what = format!("clocks, limits, temperature and power of {name}");
        ConditionUpdate::unmeasured(what, reason)
    }
}

/// Returns true for a device that NVIDIA's libraries know.
pub fn is_of_nvidia(device: &Device) -> bool {
    Vendor::from_device(device) == Vendor::Nvidia
}

/// Measures conditions in rounds until the session drops its end of `requests`, and sends them to `sender`. A round
/// begins after each request and after each pause; the first pause is an hour, because only requests give something
/// to ask for.
fn sample_conditions(
    root: PathBuf,
    requests: &Receiver<Request>,
    sender: &Sender<ConditionUpdate>,
) {
    // If the system refuses, the thread only competes with the program a little more.
    let _ = rustix::process::setpriority_process(None, NICENESS);
    let mut cards = DrmCards::new(root.clone());
    let mut machine = MachineSampler::new(root);
    let mut gpus = NvmlGpus::default();
    let (mut began, mut pause) = (None::<Instant>, Duration::from_secs(3600));
    loop {
        let request = requests.recv_timeout(pause);
        let began = *began.get_or_insert_with(Instant::now);
        let mut updates = Vec::new();
        let mut take = |request| match request {
            Request::Process(pid) => machine.add_process(pid),
            Request::Gpu(gpu) if gpu.vendor == Vendor::Nvidia => gpus.add(gpu, &mut updates),
            Request::Gpu(gpu) => cards.add(&gpu, &mut updates),
        };
        let last = match request {
            Ok(request) => {
                take(request);
                requests.try_iter().for_each(take);
                false
            }
            Err(RecvTimeoutError::Timeout) => false,
            Err(RecvTimeoutError::Disconnected) => true,
        };
        // A new GPU costs its driver's start once, which must not put off the next round.
        let cost_before = thread_cpu_time();
        machine.read(monotonic_ns(), &mut updates);
        // At the end a GPU is idle, which tells nothing about the program.
        // While a GPU is slowed down, rounds stay frequent, so that the slowdown's end is seen soon.
        let is_slowed = !last && gpus.read(monotonic_ns, &mut updates);
        if !last {
            cards.read(monotonic_ns, &mut updates);
        }
        for update in updates {
            if sender.send(update).is_err() {
                return;
            }
        }
        if last {
            return;
        }
        pause = MIN_INTERVAL.max(thread_cpu_time().saturating_sub(cost_before) * PAUSE_PER_COST);
        if !is_slowed {
            pause = pause.max(began.elapsed() / ELAPSED_PER_PAUSE);
        }
    }
}

/// Returns the processor time of this thread so far, without the time that it waited for a processor.
fn thread_cpu_time() -> Duration {
    let time = clock_gettime(ClockId::ThreadCPUTime);
    Duration::new(time.tv_sec.max(0) as u64, time.tv_nsec.max(0) as u32)
}

#[cfg(test)]
mod tests;
