//! Describes a recording as the user asked for it, and launches its program with environment variables that load the
//! hooks: gapscope's libraries inside the program that record Vulkan (a layer, which Vulkan's loader puts between the
//! program and the driver) and CUDA. Also writes the loader's manifest of the layer into the trace's folder.

use crate::counters::CounterOptions;
use crate::drain;
use crate::label_injection::LabelInjection;
use crate::unhooked_processes::cuda::{CUDA_INJECTION, NVTX_INJECTION, other_tools_library};
use crate::vulkan_loader::{LAYER_NAME, LAYERS};
use crate::{Error, inherited_settings, procfs};
use gapscope_model::kernel_profile::Wanted;
use gapscope_spool::{env, monotonic_ns};
use gapscope_trace::Names;
use gapscope_trace::create_private_folder;
use gapscope_trace::manifest::{Exit, SamplingMode};
use std::ffi::{OsStr, OsString};
use std::os::unix::fs::PermissionsExt;
use std::os::unix::process::ExitStatusExt;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::Duration;

/// The description of a recording: the program, and the user's choices.
#[derive(Debug, Clone)]
pub struct Recording {
    /// The command with its arguments. It inherits this process's environment and standard streams.
    pub command: Vec<OsString>,
    /// The folder of the trace, which must not exist.
    pub output: PathBuf,
    /// Whether the trace gets the arguments of the command and of its processes.
    pub keep_arguments: bool,
    /// The mode of timing: what of the GPU's work gets times.
    pub mode: SamplingMode,
    /// The user's names for kernels.
    pub names: Names,
    /// The moment at which recording starts.
    pub start: Start,
    /// After this time the program is told to end (SIGTERM); it is killed 5 s later.
    pub time_limit: Option<Duration>,
    /// The Vulkan layer's library.
    pub layer: PathBuf,
    /// The library that records CUDA. Without it, CUDA is not recorded.
    pub cuda: Option<PathBuf>,
    /// The labels to set in a program that sets none.
    pub labels: LabelInjection,
    /// The CUDA kernels whose launches are profiled one by one.
    pub profile: Vec<Wanted>,
    /// The text that the names of CUDA kernels must contain for their instructions to be sampled; absent when none
    /// are sampled.
    pub instructions: Option<String>,
    /// The program's stdout goes to this process's stderr.
    pub stdout_to_stderr: bool,
    /// The most bytes of spool that may wait in one process; the hooks' default when absent.
    pub spool_limit_bytes: Option<u64>,
    /// The rate at which the stacks of threads that submit are sampled; absent when they are not.
    pub stack_rate_hz: Option<u32>,
    /// The hardware counters to sample; absent when none are. This program's own executable samples them in another
    /// process: it runs [`crate::counters::sample_counters`] for the command [`crate::counters::SAMPLER_COMMAND`].
    pub counters: Option<CounterOptions>,
    /// The folder that holds the machine's `proc` and `sys`: `/`, or where a container mounts those of its machine.
    pub system_root: PathBuf,
}

/// The moment at which recording starts.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub enum Start {
    /// Recording starts with the program.
    #[default]
    AtOnce,
    /// Recording starts after this time.
    After(Duration),
    /// Recording starts when a debug label begins that contains this text.
    Label(String),
    /// Recording is on while a window is open that the program begins. Every window becomes a trace of its own.
    Windows,
}

impl Recording {
    /// Launches `program` with the hooks in its environment. The recording's folder must exist.
    pub(crate) fn launch(&self, program: &OsStr) -> Result<LaunchedProgram, Error> {
        // The program may run in another working directory.
        let output = self
            .output
            .canonicalize()
            .map_err(Error::io(&self.output))?;
        let mut command = Command::new(program);
        command.args(&self.command[1..]);
        command.env(env::SPOOL, drain::spool_folder(&output));
        command.env(env::MODE, self.mode.as_str());
        command.env(
            env::RECORDING,
            if self.start == Start::AtOnce {
                "1"
            } else {
                "0"
            },
        );
        match procfs::system_call_filters(std::process::id()) {
            Some(filters) => command.env(env::FILTERS, filters.to_string()),
            None => command.env_remove(env::FILTERS),
        };
        match gapscope_spool::describe_clock() {
            Some(clock) => command.env(env::CLOCK, clock),
            None => command.env_remove(env::CLOCK),
        };
        command.env_remove(env::START_LABEL);
        command.env_remove(env::LIMIT);
        match self.stack_rate_hz {
            Some(_) => command.env_remove(env::STACKS),
            None => command.env(env::STACKS, "0"),
        };
        match self.profile.is_empty() {
            true => command.env_remove(env::PROFILE_KERNELS),
            false => command.env(env::PROFILE_KERNELS, Wanted::to_lines(&self.profile)),
        };
        match &self.instructions {
            None => command.env_remove(env::INSTRUCTIONS),
            Some(name) => command.env(env::INSTRUCTIONS, name),
        };
        let counters = self.counters.as_ref();
        match counters.is_some_and(|options| options.set.includes_other_vendors()) {
            true => command.env(env::COUNTERS, "1"),
            false => command.env_remove(env::COUNTERS),
        };
        if let Start::Label(text) = &self.start {
            command.env(env::START_LABEL, text);
        }
        if let Some(limit) = self.spool_limit_bytes {
            command.env(env::LIMIT, limit.to_string());
        }
        let folder = output.join(drain::LAYER_FOLDER);
        add_layer(&mut command, &folder, LAYER_NAME, &self.layer)?;
        if let Some(library) = &self.cuda {
            add_cuda(&mut command, library);
        }
        self.labels.inject(&mut command, &output)?;
        if self.stdout_to_stderr {
            command.stdout(std::io::stderr());
        }
        inherited_settings::pass_to(&mut command);
        let path = Path::new(program);
        let started_ns = monotonic_ns();
        let child = command.spawn().map_err(|source| Error::NotExecutable {
            command: path.to_owned(),
            source,
        })?;
        Ok(LaunchedProgram {
            process: child,
            started_ns,
        })
    }
}

/// The launched program.
#[derive(Debug)]
pub struct LaunchedProgram {
    /// The program's process.
    pub process: std::process::Child,
    /// The time just before the start, on the host's monotonic clock.
    pub started_ns: i64,
}

/// Has the CUDA driver and NVTX load a library into a command.
pub(crate) fn add_cuda(command: &mut Command, library: &Path) {
    for variable in [CUDA_INJECTION, NVTX_INJECTION] {
        // The driver loads one library only, and the user's choice stays.
        if other_tools_library(variable).is_none() {
            command.env(variable, library);
        }
    }
}

/// Returns the way in which a process has ended; `None` while it runs.
pub(crate) fn exit_of(process: &mut std::process::Child) -> Option<Exit> {
    match process.try_wait() {
        Ok(status) => status.map(|status| match (status.code(), status.signal()) {
            (Some(code), _) => Exit::Code(code),
            (None, Some(signal)) => Exit::Signal(signal),
            (None, None) => Exit::Code(1),
        }),
        // Another part of this process has waited for it, so its exit status is not known.
        Err(_) => Some(Exit::Code(1)),
    }
}

/// Makes the loader put a layer into the command, above the layers that the environment names.
/// `folder` gets the layer's manifest.
pub(crate) fn add_layer(
    command: &mut Command,
    folder: &Path,
    name: &str,
    library: &Path,
) -> Result<(), Error> {
    let layers = write_layer_manifest(folder, name, library)?;
    command.env("VK_ADD_LAYER_PATH", prepended(&layers, "VK_ADD_LAYER_PATH"));
    if std::env::var_os("VK_LAYER_PATH").is_some_and(|v| !v.is_empty()) {
        // Where this variable is set, the loader looks nowhere else.
        command.env("VK_LAYER_PATH", prepended(&layers, "VK_LAYER_PATH"));
    }
    command.env(LAYERS, prepended(OsStr::new(name), LAYERS));
    Ok(())
}

/// Writes the loader's manifest of the layer and returns its folder.
fn write_layer_manifest(folder: &Path, name: &str, library: &Path) -> Result<OsString, Error> {
    let library = library.canonicalize().map_err(Error::io(library))?;
    let manifest = serde_json::json!({
        "file_format_version": "1.2.0",
        "layer": {
            "name": name,
            "type": "GLOBAL",
            "library_path": library.to_string_lossy(),
            "api_version": "1.4.0",
            "implementation_version": "1",
            "description": "gapscope",
        },
    });
    create_private_folder(folder).map_err(Error::io(folder))?;
    let path = folder.join("gapscope_layer.json");
    std::fs::write(&path, manifest.to_string()).map_err(Error::io(&path))?;
    Ok(folder.as_os_str().to_owned())
}

/// Returns `first`, followed by `:` and this process's value of the variable, if it has one.
fn prepended(first: &OsStr, variable: &str) -> OsString {
    let mut value = first.to_owned();
    if let Some(rest) = std::env::var_os(variable).filter(|v| !v.is_empty()) {
        value.push(":");
        value.push(rest);
    }
    value
}

/// Checks that a program (a path, or a name on the PATH) exists and can be run, before an output is made for it.
pub(crate) fn check_program(program: &OsStr) -> Result<(), Error> {
    let missing = |reason: &str| Error::NoSuchCommand {
        command: PathBuf::from(program),
        reason: reason.to_owned(),
    };
    let path = Path::new(program);
    if path.components().count() > 1 || path.is_absolute() {
        return match path.metadata() {
            Ok(found) if found.is_file() && found.permissions().mode() & 0o111 != 0 => Ok(()),
            Ok(found) => Err(Error::NotExecutable {
                command: path.to_owned(),
                source: std::io::Error::other(if found.is_file() {
                    "it is not executable; chmod +x it, or name its interpreter before it"
                } else {
                    "it is not a file"
                }),
            }),
            Err(_) => Err(missing("there is no such file; check the path")),
        };
    }
    let folders = std::env::var_os("PATH").unwrap_or_else(|| "/usr/bin:/bin".into());
    let found = std::env::split_paths(&folders)
        .filter_map(|folder| folder.join(path).metadata().ok())
        .any(|found| found.is_file() && found.permissions().mode() & 0o111 != 0);
    if found {
        Ok(())
    } else {
        Err(missing(
            "there is no such command on the PATH; check its name, or give its path",
        ))
    }
}
