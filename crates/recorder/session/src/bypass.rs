//! Notices processes that use a Vulkan driver without our layer, as programs do that open the driver themselves
//! instead of asking the Vulkan loader.

pub mod cuda;
mod no_spool;

use crate::procfs;
use crate::vulkan_drivers::{VARIABLES, libraries, unversioned};
use cuda::CudaBypass;
use no_spool::NoSpool;
use std::collections::{BTreeMap, HashSet};
use std::ffi::OsString;
use std::path::{Path, PathBuf};
use std::sync::atomic::AtomicBool;
use std::sync::atomic::Ordering::{Acquire, Release};
use std::sync::{Arc, Mutex, PoisonError};
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

/// A process is looked at this often when it is new, and less and less often afterwards.
const SHORTEST: Duration = Duration::from_millis(50);
const LONGEST: Duration = Duration::from_millis(500);

/// A process of which an API's work could not be recorded.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Bypass {
    /// It used a Vulkan driver without our layer.
    Vulkan(VulkanBypass),
    /// It loaded the CUDA driver without our library.
    Cuda(CudaBypass),
    /// It loaded our layer, which cannot write to the spool.
    NoSpool(NoSpool),
}

impl Bypass {
    /// A sentence for the user.
    pub fn sentence(&self) -> String {
        match self {
            Bypass::Vulkan(bypass) => bypass.sentence(),
            Bypass::Cuda(bypass) => bypass.sentence(),
            Bypass::NoSpool(bypass) => bypass.sentence(),
        }
    }
}

/// A process that used a driver without our layer.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct VulkanBypass {
    /// The process.
    pub pid: u32,
    /// Its short name.
    pub name: String,
    /// The driver's library.
    pub library: PathBuf,
    /// The Vulkan loader was there too, and did not load the layer.
    pub loader: bool,
    /// The variable that is likely to have told it to.
    pub variable: Option<&'static str>,
}

impl VulkanBypass {
    /// A sentence for the user.
    pub fn sentence(&self) -> String {
        let VulkanBypass {
            pid, name, library, ..
        } = self;
        let library = library.file_name().unwrap_or_default().display();
        if self.loader {
            return format!(
                "{name} (process {pid}) used the Vulkan driver {library}, but its Vulkan loader did not load the \
                 recording layer: it ignores VK_INSTANCE_LAYERS for programs with raised privileges, or the program \
                 was started with another environment"
            );
        }
        let remedy = match self.variable {
            Some(variable) => {
                format!("; {variable} is set, and without it the program may go through the loader")
            }
            None => String::new(),
        };
        format!(
            "{name} (process {pid}) opened the Vulkan driver {library} directly, past the Vulkan loader, so that its \
             work could not be recorded{remedy}"
        )
    }
}

/// Looks at the processes of the recorded program until it is stopped.
#[derive(Debug)]
pub struct Watcher {
    stop: Arc<AtomicBool>,
    found: Arc<Mutex<BTreeMap<u32, Sighting>>>,
    thread: Option<JoinHandle<()>>,
}

/// What was seen of one process.
#[derive(Debug, Clone)]
struct Sighting {
    next: Instant,
    pause: Duration,
    /// Times that a driver was mapped and our layer was not.
    times: u32,
    bypass: Option<VulkanBypass>,
    recorded: bool,
    /// It has our layer, and cannot write to the spool.
    no_spool: Option<NoSpool>,
    cuda: Option<CudaBypass>,
}

impl Watcher {
    /// Watches a process and all that descend from it. `layer` and `cuda` are our libraries, `spool` is the folder of the spool.
    pub fn start(root: u32, layer: &Path, cuda: Option<&Path>, spool: PathBuf) -> Watcher {
        let stop = Arc::new(AtomicBool::new(false));
        let found = Arc::new(Mutex::new(BTreeMap::new()));
        let layer = layer.file_name().unwrap_or_default().to_owned();
        let cuda = cuda.map(Path::to_owned);
        let thread = std::thread::Builder::new()
            .name("gapscope-watch".to_owned())
            .spawn({
                let (stop, found) = (stop.clone(), found.clone());
                move || {
                    let drivers = libraries();
                    while !stop.load(Acquire) {
                        for pid in procfs::descendants(root) {
                            look(
                                pid,
                                &layer,
                                cuda.as_deref(),
                                &spool,
                                &drivers,
                                &mut found.lock().unwrap_or_else(PoisonError::into_inner),
                            );
                        }
                        std::thread::park_timeout(SHORTEST);
                    }
                }
            });
        Watcher {
            stop,
            found,
            thread: thread.ok(),
        }
    }

    /// Stops watching. Returns the processes that went round our libraries; `recorded` says of a process whether a hook
    /// (`vulkan`, `cuda`) recorded it.
    pub fn finish(mut self, recorded: impl Fn(u32, &str) -> bool) -> Vec<Bypass> {
        self.stop.store(true, Release);
        if let Some(thread) = self.thread.take() {
            thread.thread().unpark();
            let _ = thread.join();
        }
        let found = self.found.lock().unwrap_or_else(PoisonError::into_inner);
        let vulkan = found
            .iter()
            .filter(|(pid, sighting)| !sighting.recorded && !recorded(**pid, "vulkan"))
            .filter_map(|(_, sighting)| {
                // A loader maps drivers for a moment before it loads layers, and to ask them for their extensions.
                let bypass = sighting.bypass.as_ref()?;
                (!bypass.loader || sighting.times > 1).then(|| Bypass::Vulkan(bypass.clone()))
            });
        let cuda = found
            .iter()
            .filter(|(pid, _)| !recorded(**pid, "cuda"))
            .filter_map(|(_, sighting)| Some(Bypass::Cuda(sighting.cuda.clone()?)));
        let no_spool = found
            .iter()
            .filter(|(pid, _)| !recorded(**pid, "vulkan"))
            .filter_map(|(_, sighting)| Some(Bypass::NoSpool(sighting.no_spool.clone()?)));
        vulkan.chain(cuda).chain(no_spool).collect()
    }
}

fn look(
    pid: u32,
    layer: &OsString,
    cuda: Option<&Path>,
    spool: &Path,
    drivers: &HashSet<OsString>,
    found: &mut BTreeMap<u32, Sighting>,
) {
    let now = Instant::now();
    let sighting = found.entry(pid).or_insert(Sighting {
        next: now,
        pause: SHORTEST,
        times: 0,
        bypass: None,
        recorded: false,
        no_spool: None,
        cuda: None,
    });
    if sighting.recorded || now < sighting.next {
        return;
    }
    sighting.next = now + sighting.pause;
    sighting.pause = (sighting.pause * 5 / 4).min(LONGEST);
    let files = procfs::mapped_files(pid);
    sighting.cuda = cuda::look(pid, &files, cuda).or(sighting.cuda.take());
    let named = |name: &OsString| files.iter().find(|file| file.file_name() == Some(name));
    if named(layer).is_some() {
        sighting.recorded = true;
        sighting.bypass = None;
        sighting.no_spool = NoSpool::of(pid, spool);
        return;
    }
    let mapped = |part: &str| {
        files.iter().any(|f| {
            f.file_name()
                .is_some_and(|n| n.to_string_lossy().contains(part))
        })
    };
    let driver = files
        .iter()
        .filter(|file| {
            file.file_name()
                .is_some_and(|name| drivers.contains(&unversioned(name)))
        })
        // NVIDIA's Vulkan driver is its OpenGL library too; only for Vulkan it compiles SPIR-V.
        .find(|file| !is_opengl(file) || mapped("glvkspirv"));
    if let Some(driver) = driver {
        sighting.times += 1;
        sighting.bypass = Some(VulkanBypass {
            pid,
            name: procfs::name(pid).unwrap_or_else(|| "a process".to_owned()),
            library: driver.clone(),
            loader: mapped("libvulkan.so"),
            variable: VARIABLES
                .into_iter()
                .find(|variable| procfs::environment(pid, variable).is_some_and(|v| !v.is_empty())),
        });
    }
}

fn is_opengl(file: &Path) -> bool {
    let name = file.file_name().unwrap_or_default().to_string_lossy();
    name.starts_with("libGLX_") || name.starts_with("libEGL_")
}

#[cfg(test)]
mod tests {
    use super::*;

    /// What is seen of this process when its own executable counts as a driver.
    fn seen(layer: &str) -> Sighting {
        let executable = std::env::current_exe().unwrap();
        let name = executable.file_name().unwrap().to_owned();
        let layer = OsString::from(if layer.is_empty() {
            name.to_str().unwrap()
        } else {
            layer
        });
        let mut found = BTreeMap::new();
        look(
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
        let bypass = seen("libgapscope_vulkan.so").bypass.unwrap();
        assert!(!bypass.loader);
        let sentence = bypass.sentence();
        assert!(sentence.contains("past the Vulkan loader"), "{sentence}");
        assert!(
            sentence.contains(&std::process::id().to_string()),
            "{sentence}"
        );
    }

    #[test]
    fn a_process_with_the_layer_is_recorded() {
        let sighting = seen("");
        assert!(sighting.recorded);
        assert_eq!(sighting.bypass, None);
        assert_eq!(sighting.no_spool, None);
    }
}
