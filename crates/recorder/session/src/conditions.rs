//! Conditions of the machine and its GPUs: a thread of the session asks for them at a low rate, beside the program.

mod drm;
mod group;
mod host;
pub(crate) mod nvml;

use drm::Cards;
use gapscope_spool::monotonic_ns;
use gapscope_trace::manifest::{Device, Unmeasured};
use gapscope_trace::tables::Condition;
use host::Host;
use nvml::Gpus;
pub use nvml::{Found as NvmlFound, found as nvml_found};
use rustix::time::{ClockId, clock_gettime};
use std::collections::HashSet;
use std::path::PathBuf;
use std::sync::Arc;
use std::sync::mpsc::{Receiver, RecvTimeoutError, Sender, channel};
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

/// Between two rounds of questions, at least.
const INTERVAL: Duration = Duration::from_millis(100);
/// A round comes after so many times what the last one cost: the thread takes at most 1 % of a core.
const PAUSE_PER_WORK: u32 = 99;
/// It comes after this part of the time so far: a day has 55,000 rounds instead of 864,000.
const PART_OF_TIME: u32 = 10_000;
/// A driver that does not answer must not keep the recording from ending.
const PATIENCE: Duration = Duration::from_secs(1);
const NICENESS: i32 = 5;
const ENDED: &str = "the program had ended before they were asked for";

/// What a condition is of.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Of {
    /// The machine, or the program on it.
    Machine,
    /// The GPU with this UUID, as the manifest writes it.
    Gpu(Arc<str>),
}

/// The value of a condition.
#[derive(Debug, Clone, PartialEq)]
pub struct Reading {
    pub of: Of,
    pub condition: Condition,
    /// From when it holds: when it was read, or, of what is counted, since the reading before.
    pub from_ns: i64,
    /// When it was read.
    pub seen_ns: i64,
    /// Absent: it cannot be read any more.
    pub value: Option<f64>,
    /// The file or interface that it was read from.
    pub source: Arc<str>,
}

/// What the thread says.
#[derive(Debug, Clone, PartialEq)]
pub enum Heard {
    Reading(Reading),
    Unmeasured(Unmeasured),
}

/// A GPU to ask for.
#[derive(Debug, Clone, PartialEq, Eq)]
struct Gpu {
    uuid: Arc<str>,
    name: String,
    vendor: Vendor,
}

/// Who made a GPU, and so who is asked for it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Vendor {
    Nvidia,
    Amd,
    Intel,
    Other,
}

impl Vendor {
    /// By the names of driver and device, as APIs and Mesa write them.
    fn of(device: &Device) -> Vendor {
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

enum Order {
    Process(u32),
    Gpu(Gpu),
}

/// The thread that asks.
#[derive(Debug)]
pub struct Conditions {
    orders: Option<Sender<Order>>,
    heard: Receiver<Heard>,
    thread: Option<JoinHandle<()>>,
    processes: HashSet<u32>,
    gpus: HashSet<Arc<str>>,
}

impl Conditions {
    /// Starts it. It asks for nothing before there is a process or a GPU to [`Self::follow`]. `root` is the folder with `proc` and
    /// `sys`.
    pub fn start(root: PathBuf) -> Conditions {
        let (orders, taken) = channel();
        let (say, heard) = channel();
        let refused = say.clone();
        let thread = std::thread::Builder::new().name("conditions".to_owned());
        let thread = thread.spawn(move || ask(root, &taken, &say));
        if let Err(error) = &thread {
            let _ = refused.send(Heard::unmeasured(
                "conditions of machine and GPUs",
                format!("no thread could be started for them: {error}"),
            ));
        }
        Conditions {
            orders: Some(orders),
            heard,
            thread: thread.ok(),
            processes: HashSet::new(),
            gpus: HashSet::new(),
        }
    }

    /// Looks at these processes and devices too, from now on.
    pub fn follow<'a>(
        &mut self,
        processes: impl Iterator<Item = u32>,
        devices: impl Iterator<Item = &'a Device>,
    ) {
        for process in processes {
            if self.processes.insert(process) {
                self.order(Order::Process(process));
            }
        }
        for device in devices {
            // One that was not announced has no UUID.
            if device.uuid.is_empty() || self.gpus.contains(device.uuid.as_str()) {
                continue;
            }
            let uuid: Arc<str> = device.uuid.as_str().into();
            self.gpus.insert(uuid.clone());
            self.order(Order::Gpu(Gpu {
                uuid,
                name: device.name.clone(),
                vendor: Vendor::of(device),
            }));
        }
    }

    /// After [`Self::finish`]: what of these devices is not known.
    pub fn unasked<'a>(&self, devices: impl Iterator<Item = &'a Device>) -> Vec<Heard> {
        let unasked = devices.filter(|d| !self.gpus.contains(d.uuid.as_str()));
        let mut heard: Vec<Heard> = unasked.map(|d| Heard::of_gpu(&d.name, ENDED)).collect();
        if self.processes.is_empty() {
            heard.push(Heard::unmeasured("stalls and swapping", ENDED));
        }
        heard
    }

    fn order(&self, order: Order) {
        if let Some(orders) = &self.orders {
            // The thread is gone only where it has said why.
            let _ = orders.send(order);
        }
    }

    /// What it has said since the last call.
    pub fn take(&self) -> Vec<Heard> {
        self.heard.try_iter().collect()
    }

    /// Ends it after a last look. What does not answer is left behind, and what comes to be known only now was not asked for.
    pub fn finish(&mut self) -> Vec<Heard> {
        drop(self.orders.take());
        let mut heard = Vec::new();
        if let Some(thread) = self.thread.take() {
            let since = Instant::now();
            while !thread.is_finished() && since.elapsed() < PATIENCE {
                std::thread::sleep(Duration::from_millis(2));
            }
            if !thread.is_finished() {
                let what = "conditions of machine and GPUs at the end";
                let reason = "the system or the GPU's driver did not answer within 1 s";
                heard.push(Heard::unmeasured(what, reason));
            }
        }
        let mut all = self.take();
        all.append(&mut heard);
        all
    }
}

impl Heard {
    fn unmeasured(what: impl Into<String>, reason: impl Into<String>) -> Heard {
        let (what, reason) = (what.into(), reason.into());
        Heard::Unmeasured(Unmeasured { what, reason })
    }

    fn of_gpu(name: &str, reason: impl Into<String>) -> Heard {
        let what = format!("clocks, limits, temperature and power of {name}");
        Heard::unmeasured(what, reason)
    }
}

/// True of a device that NVIDIA's libraries know.
pub fn is_of_nvidia(device: &Device) -> bool {
    Vendor::of(device) == Vendor::Nvidia
}

/// The thread: follows orders, and asks until nobody gives any more.
fn ask(root: PathBuf, orders: &Receiver<Order>, say: &Sender<Heard>) {
    // It only costs comfort when the system refuses.
    let _ = rustix::process::setpriority_process(None, NICENESS);
    let mut cards = Cards::new(root.clone());
    let mut host = Host::new(root);
    let mut gpus = Gpus::default();
    let (mut began, mut pause) = (None::<Instant>, Duration::from_secs(3600));
    loop {
        let order = orders.recv_timeout(pause);
        let began = *began.get_or_insert_with(Instant::now);
        let mut heard = Vec::new();
        let mut take = |order| match order {
            Order::Process(pid) => host.add_process(pid),
            Order::Gpu(gpu) if gpu.vendor == Vendor::Nvidia => gpus.add(gpu, &mut heard),
            Order::Gpu(gpu) => cards.add(&gpu, &mut heard),
        };
        let last = match order {
            Ok(order) => {
                take(order);
                orders.try_iter().for_each(take);
                false
            }
            Err(RecvTimeoutError::Timeout) => false,
            Err(RecvTimeoutError::Disconnected) => true,
        };
        // What a new GPU costs, such as the start of its driver, comes once and puts off no round.
        let worked = worked();
        host.read(monotonic_ns(), &mut heard);
        // At its end a GPU is idle, which says nothing of the program.
        let is_slowed = !last && gpus.read(monotonic_ns, &mut heard);
        if !last {
            cards.read(monotonic_ns, &mut heard);
        }
        for said in heard {
            if say.send(said).is_err() {
                return;
            }
        }
        if last {
            return;
        }
        pause = INTERVAL.max(self::worked().saturating_sub(worked) * PAUSE_PER_WORK);
        if !is_slowed {
            pause = pause.max(began.elapsed() / PART_OF_TIME);
        }
    }
}

/// Processor time of this thread so far. Waiting for a processor is not part of it.
fn worked() -> Duration {
    let time = clock_gettime(ClockId::ThreadCPUTime);
    Duration::new(time.tv_sec.max(0) as u64, time.tv_nsec.max(0) as u32)
}

#[cfg(test)]
mod tests;
