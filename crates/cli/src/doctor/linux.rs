//! Finds the facts about Linux, the drivers and the hooks (the libraries that record inside a program), and returns
//! the checks of these facts.

use super::check::Check;
use super::trial::{Hooks, Reason, Trial, write_answer};
use super::{cuda, machine as machine_checks, vulkan};
use crate::args::Probe;
use crate::failure::Failure;
use crate::{hook_libraries, record};
use gapscope_recorder::counters::{self, CUPTI};
use gapscope_recorder::machine;
use std::io::Read;
use std::path::{Path, PathBuf};
use std::process::{Command, ExitCode, Stdio};

/// Returns all checks of drivers, hooks and the machine. For them probes are recorded (gapscope itself as a program
/// that opens a driver) in a folder that is removed.
pub fn checks() -> Vec<Check> {
    let root = record::system_root();
    let here = std::env::current_dir();
    let (place, free) = match &here {
        Ok(folder) => (folder.clone(), writable(folder)),
        Err(error) => (PathBuf::from("."), Err(Reason::new(error))),
    };
    // The hooks are tried even if no trace can be written.
    let trials = match free.is_ok() {
        true => place.clone(),
        false => std::env::temp_dir(),
    };
    let library = hook_libraries::find_cuda().ok().flatten();
    let found = hook_libraries::find_layer();
    let hooks = found.as_ref().ok().map(|layer| Hooks {
        layer: layer.clone(),
        cuda: library.clone(),
    });
    let vulkan_trial: Option<Trial<vulkan::VulkanAnswer>> =
        (hooks.as_ref()).map(|hooks| hooks.attempt(&trials, Probe::Vulkan));
    let cuda_trial: Option<Trial<cuda::CudaAnswer>> =
        (hooks.as_ref()).map(|hooks| hooks.attempt(&trials, Probe::Cuda));
    let has_driver = matches!(
        &cuda_trial,
        Some(Trial {
            answer: Ok(Ok(_)),
            ..
        })
    );
    let mut checks = vulkan::checks(
        &vulkan::VulkanFacts {
            layer: found.map_err(Reason::new),
            manifests: machine::vulkan_manifests(),
        },
        vulkan_trial.as_ref(),
    );
    checks.extend(cuda::checks(
        &cuda::CudaFacts {
            library,
            nvml: match has_driver {
                true => machine::nvml().map_err(Reason::new),
                false => Err("there is no driver".into()),
            },
            counters_for_administrators: machine::counters_are_for_administrators(&root),
            is_administrator: machine::is_administrator(),
            counters: match has_driver {
                true => counters_of(cuda_trial.as_ref()),
                false => Err("there is no driver".into()),
            },
        },
        cuda_trial.as_ref(),
    ));
    checks.extend(machine_checks::checks(&machine_checks::MachineFacts {
        place: (place.display().to_string(), free),
        stacks: stacks(),
        container: machine::container(&root),
        filters: machine::filters_system_calls(&root),
    }));
    checks
}

/// Makes a folder in `folder` and returns how many bytes may be written there; an error if the folder cannot be
/// made.
fn writable(folder: &Path) -> Result<u64, Reason> {
    tempfile::Builder::new()
        .prefix(".gapscope-doctor-")
        .tempdir_in(folder)
        .and_then(|made| made.close())
        .and_then(|()| machine::free_bytes(folder))
        .map_err(Reason::new)
}

/// Tries to read the stacks of a program that this one starts, as a recording does.
fn stacks() -> Result<machine::StacksAllowed, Reason> {
    let failed =
        |error: std::io::Error| Reason(format!("no program could be started to read it: {error}"));
    let mut child = std::env::current_exe()
        .and_then(|program| {
            Command::new(program)
                .args(["doctor", "--probe", "wait", "--answer", "-"])
                .stdin(Stdio::piped())
                .stdout(Stdio::piped())
                .spawn()
        })
        .map_err(failed)?;
    // The child writes a byte when it has become the program and is no longer a copy of this process.
    let mut ready = [0];
    let said = child
        .stdout
        .as_mut()
        .map(|stdout| stdout.read_exact(&mut ready));
    let allowed = machine::stacks_allowed(child.id(), Path::new("/"));
    drop(child.stdin.take());
    child.wait().map_err(failed)?;
    match said {
        Some(Ok(())) => Ok(allowed),
        _ => Err("the program that was started to read it ended at once".into()),
    }
}

/// Starts a program that asks for hardware counters, with the libcupti that the trial found, and returns its
/// answer.
fn counters_of(trial: Option<&Trial<cuda::CudaAnswer>>) -> Result<String, Reason> {
    let program = std::env::current_exe().map_err(Reason::new)?;
    let mut command = Command::new(program);
    command.args(["doctor", "--probe", "counters", "--answer", "-"]);
    let found = trial.and_then(|trial| trial.answer.as_ref().ok()?.as_ref().ok()?.cupti.as_ref());
    if let Some(cupti) = found
        && std::env::var_os(CUPTI).is_none_or(|path| path.is_empty())
    {
        command.env(CUPTI, &cupti.file);
    }
    for variable in counters::REMOVED_VARIABLES {
        command.env_remove(variable);
    }
    let said = command.stdin(Stdio::null()).stderr(Stdio::null()).output();
    let said = said.map_err(Reason::new)?.stdout;
    serde_json::from_slice(&said)
        .unwrap_or_else(|_| Err("the program that asked for them did not end well".into()))
}

/// Runs a probe: gapscope itself as a recorded program, which opens a driver and writes what it learnt to `answer`.
/// The probes `Counters` and `Wait`, which are not recorded, write to stdout.
pub fn probe(probe: Probe, answer: &Path) -> Result<ExitCode, Failure> {
    match probe {
        Probe::Vulkan => write_answer(&vulkan::probe(), answer)?,
        Probe::Cuda => write_answer(&machine::cuda().map_err(Reason::new), answer)?,
        Probe::Counters => {
            let said = counters::can_sample_counters().map_err(Reason::new);
            let said = serde_json::to_string(&said);
            gapscope_companion::write(&said.unwrap_or_default())?;
        }
        Probe::Wait => {
            gapscope_companion::write("\n")?;
            // The program waits for the end of its stdin, whatever ends it.
            let _ = std::io::stdin().read_to_end(&mut Vec::new());
        }
    }
    Ok(ExitCode::SUCCESS)
}
