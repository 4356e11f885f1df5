//! Notices processes whose GPU work the hooks (gapscope's libraries inside the program) cannot record, such as
//! programs that open a Vulkan driver without the Vulkan loader. [`Watcher::start`] begins to watch;
//! [`Watcher::finish`] returns a sentence for the user on each such process.

pub mod cuda;
mod unwritable_spool;
mod used_driver;
mod why_no_layer;

use crate::procfs;
use crate::vulkan_drivers::{VARIABLES, libraries, unversioned};
use gapscope_spool::env;
use std::collections::{BTreeMap, HashSet};
use std::ffi::OsString;
use std::path::{Path, PathBuf};
use std::sync::atomic::AtomicBool;
use std::sync::atomic::Ordering::{Acquire, Release};
use std::sync::{Arc, Mutex, PoisonError};
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

/// The least and the greatest time between two observations of a process: a new process is observed often, and then
/// less and less often.
const MIN_PAUSE: Duration = Duration::from_millis(50);
const MAX_PAUSE: Duration = Duration::from_millis(500);

/// A process that used a Vulkan driver without the layer.
#[derive(Debug, Clone, PartialEq, Eq)]
struct VulkanWithoutLayer {
    pid: u32,
    name: String,
    /// The libraries of the drivers on which the process may run; one where that can be told.
    drivers: Vec<PathBuf>,
    /// The reason why the process's Vulkan loader did not load the layer; absent when it has no loader.
    why_no_layer: Option<String>,
    /// The variable that probably told the process to open the driver.
    variable: Option<&'static str>,
}

impl VulkanWithoutLayer {
    /// Returns what happened, and what the user can do, as a sentence without its full stop.
    fn sentence(&self) -> String {
        let VulkanWithoutLayer { pid, name, .. } = self;
        let file_name = |driver: &PathBuf| {
            let name = driver.file_name().unwrap_or_default();
            name.to_string_lossy().into_owned()
        };
        let names: Vec<String> = self.drivers.iter().map(file_name).collect();
        let driver = match names.as_slice() {
            [name] => format!("the Vulkan driver {name}"),
            names => format!("one of the Vulkan drivers {}", names.join(", ")),
        };
        if let Some(reason) = &self.why_no_layer {
            return format!(
                "{name} (process {pid}) used {driver}, but its Vulkan loader did not load the recording layer: {reason}"
            );
        }
        let remedy = match self.variable {
            Some(variable) => {
                format!("; {variable} is set, and without it the program may go through the loader")
            }
            None => String::new(),
        };
        format!(
            "{name} (process {pid}) opened {driver} directly, past the Vulkan loader, so that its \
             work could not be recorded{remedy}"
        )
    }
}

/// A thread that observes the processes of the recorded program until it is stopped.
#[derive(Debug)]
pub struct Watcher {
    stop: Arc<AtomicBool>,
    /// The observations of each process so far, by its id.
    observations: Arc<Mutex<BTreeMap<u32, Observation>>>,
    thread: Option<JoinHandle<()>>,
}

/// The observations of one process.
#[derive(Debug, Clone)]
struct Observation {
    /// The time of the next observation, and the pause after that.
    next: Instant,
    pause: Duration,
    /// The number of times at which a driver was mapped and the layer was not.
    sightings: u32,
    /// What was seen last of a Vulkan driver without the layer; absent when nothing was.
    vulkan: Option<VulkanWithoutLayer>,
    /// Whether the layer has been seen in the process, which ends its observation.
    recorded: bool,
    /// The sentence on a process that has a hook and cannot write to the spool (the folder of its events).
    unwritable_spool: Option<String>,
    /// The sentence about CUDA work that no hook records; absent when there is none.
    cuda: Option<String>,
}

impl Observation {
    /// Returns the observation of a process of which nothing was seen.
    fn new(now: Instant) -> Observation {
        Observation {
            next: now,
            pause: MIN_PAUSE,
            sightings: 0,
            vulkan: None,
            recorded: false,
            unwritable_spool: None,
            cuda: None,
        }
    }
}

impl Watcher {
    /// Watches a process and all that descend from it. `layer` and `cuda` are the hooks' libraries; `spool` is the
    /// folder of the spool. Processes of a recording inside this one are left to that.
    pub fn start(root: u32, layer: &Path, cuda: Option<&Path>, spool: PathBuf) -> Watcher {
        let stop = Arc::new(AtomicBool::new(false));
        let observations = Arc::new(Mutex::new(BTreeMap::new()));
        let layer = layer.file_name().unwrap_or_default().to_owned();
        let cuda = cuda.map(Path::to_owned);
        // The processes may have other working directories.
        let spool = spool.canonicalize().unwrap_or(spool);
        let thread = std::thread::Builder::new()
            .name("gapscope-watch".to_owned())
            .spawn({
                let (stop, observations) = (stop.clone(), observations.clone());
                move || {
                    let drivers = libraries();
                    while !stop.load(Acquire) {
                        for pid in procfs::descendants(root) {
                            observe(
                                pid,
                                &layer,
                                cuda.as_deref(),
                                &spool,
                                &drivers,
                                &mut observations.lock().unwrap_or_else(PoisonError::into_inner),
                            );
                        }
                        std::thread::park_timeout(MIN_PAUSE);
                    }
                }
            });
        Watcher {
            stop,
            observations,
            thread: thread.ok(),
        }
    }

    /// Stops watching and returns a sentence on each process that was not hooked. `recorded` tells whether a hook (`vulkan` or
    /// `cuda`) recorded a process.
    pub fn finish(mut self, recorded: impl Fn(u32, &str) -> bool) -> Vec<String> {
        self.stop.store(true, Release);
        if let Some(thread) = self.thread.take() {
            thread.thread().unpark();
            let _ = thread.join();
        }
        let observations = &self.observations;
        let observations = observations.lock().unwrap_or_else(PoisonError::into_inner);
        let recorded = &recorded;
        let without = |hook: &'static str| {
            let processes = observations.iter();
            processes.filter(move |(pid, _)| !recorded(**pid, hook))
        };
        let vulkan = without("vulkan").filter_map(|(_, observation)| {
            // A loader maps drivers for a moment before it loads layers, to ask for their extensions.
            let vulkan = observation.vulkan.as_ref()?;
            let is_direct = vulkan.why_no_layer.is_none() || observation.sightings > 1;
            (is_direct && !observation.recorded).then(|| vulkan.sentence())
        });
        let cuda = without("cuda").filter_map(|(_, observation)| observation.cuda.clone());
        let unwritable_spool = observations
            .iter()
            .filter(|(pid, _)| !recorded(**pid, "vulkan") && !recorded(**pid, "cuda"))
            .filter_map(|(_, observation)| observation.unwritable_spool.clone());
        vulkan.chain(cuda).chain(unwritable_spool).collect()
    }
}

/// Observes one process by the files that it has mapped, when its time has come. `layer` is the name of the layer's
/// file, `drivers` the names of the installed Vulkan drivers.
fn observe(
    pid: u32,
    layer: &OsString,
    cuda: Option<&Path>,
    spool: &Path,
    drivers: &HashSet<OsString>,
    observations: &mut BTreeMap<u32, Observation>,
) {
    let now = Instant::now();
    let observation = observations.entry(pid).or_insert(Observation::new(now));
    if observation.recorded || now < observation.next {
        return;
    }
    observation.next = now + observation.pause;
    observation.pause = (observation.pause * 5 / 4).min(MAX_PAUSE);
    let told = procfs::environment(pid, env::SPOOL);
    if told.is_some_and(|other| !other.is_empty() && Path::new(&other) != spool) {
        // A recording inside this one records the process.
        *observation = Observation {
            recorded: true,
            ..Observation::new(now)
        };
        return;
    }
    let files = procfs::mapped_files(pid);
    observation.cuda = cuda::find_unhooked(pid, &files, cuda).or(observation.cuda.take());
    if files.iter().any(|file| cuda::is_ours(file)) {
        let obstacle = unwritable_spool::find_obstacle(pid, spool, "library that records CUDA");
        observation.unwritable_spool = obstacle;
    }
    if files.iter().any(|file| file.file_name() == Some(layer)) {
        observation.recorded = true;
        observation.vulkan = None;
        let obstacle = unwritable_spool::find_obstacle(pid, spool, "recording layer");
        observation.unwritable_spool = obstacle;
        return;
    }
    let mapped = |part: &str| {
        files.iter().any(|f| {
            f.file_name()
                .is_some_and(|n| n.to_string_lossy().contains(part))
        })
    };
    let mut mapped_drivers: Vec<PathBuf> = files
        .iter()
        .filter(|file| {
            file.file_name()
                .is_some_and(|name| drivers.contains(&unversioned(name)))
        })
        // NVIDIA's Vulkan driver is its OpenGL library too; only for Vulkan does it compile SPIR-V.
        .filter(|file| !is_opengl(file) || mapped("glvkspirv"))
        .cloned()
        .collect();
    mapped_drivers.sort();
    mapped_drivers.dedup();
    if !mapped_drivers.is_empty() {
        observation.sightings += 1;
        observation.vulkan = Some(VulkanWithoutLayer {
            pid,
            name: procfs::name_for_user(pid),
            drivers: used_driver::candidates(pid, mapped_drivers),
            why_no_layer: mapped("libvulkan.so").then(|| why_no_layer::reason(pid, spool)),
            variable: VARIABLES
                .into_iter()
                .find(|variable| procfs::environment(pid, variable).is_some_and(|v| !v.is_empty())),
        });
    }
}

/// Returns true for an OpenGL library, by its name.
fn is_opengl(file: &Path) -> bool {
    let name = file.file_name().unwrap_or_default().to_string_lossy();
    name.starts_with("libGLX_") || name.starts_with("libEGL_")
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Observes this process, with its own executable as a driver. `layer` is the name of the layer's file; the empty
    /// name stands for the executable's, so that the layer counts as loaded.
    fn seen(layer: &str) -> Observation {
        let executable = std::env::current_exe().unwrap();
        let name = executable.file_name().unwrap().to_owned();
        let layer = OsString::from(if layer.is_empty() {
            name.to_str().unwrap()
        } else {
            layer
        });
        let mut found = BTreeMap::new();
        observe(
            std::process::id(),
            &layer,
            None,
            &std::env::temp_dir(),
            &HashSet::from([name]),
            &mut found,
        );
        found.remove(&std::process::id()).unwrap()
    }

    #[test]
    fn a_driver_without_the_layer_and_the_loader_is_a_bypass() {
        let vulkan = seen("libgapscope_vulkan.so").vulkan.unwrap();
        assert_eq!(vulkan.why_no_layer, None);
        let sentence = vulkan.sentence();
        assert!(sentence.contains("past the Vulkan loader"), "{sentence}");
        assert!(
            sentence.contains(&std::process::id().to_string()),
            "{sentence}"
        );
    }

    #[test]
    fn a_process_with_the_layer_is_recorded() {
        let observation = seen("");
        assert!(observation.recorded);
        assert_eq!(observation.vulkan, None);
        assert_eq!(observation.unwritable_spool, None);
    }
}
