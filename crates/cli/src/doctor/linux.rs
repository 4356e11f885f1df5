//! Asks Linux, the drivers and the hooks.

use super::check::Check;
use super::trial::{Hooks, Trial, tell};
use super::{cuda, host, vulkan};
use crate::args::Probe;
use crate::failure::Failure;
use crate::{layer, record};
use gapscope_recorder::counters::{self, CUPTI};
use gapscope_recorder::machine;
use std::io::Read;
use std::path::{Path, PathBuf};
use std::process::{Command, ExitCode, Stdio};

/// All checks but those of what is beside gapscope.
pub fn checks() -> Vec<Check> {
    let root = record::system_root();
    let here = std::env::current_dir();
    let (place, free) = match &here {
        Ok(folder) => (folder.clone(), writable(folder)),
        Err(error) => (PathBuf::from("."), Err(error.to_string())),
    };
    // The hooks are tried also where no trace can be.
    let trials = match free.is_ok() {
        true => place.clone(),
        false => std::env::temp_dir(),
    };
    let library = layer::find_cuda().ok().flatten();
    let found = layer::find();
    let hooks = found.as_ref().ok().map(|layer| Hooks {
        layer: layer.clone(),
        cuda: library.clone(),
    });
    let vulkan_trial: Option<Trial<vulkan::Said>> =
        (hooks.as_ref()).map(|hooks| hooks.attempt(&trials, Probe::Vulkan));
    let cuda_trial: Option<Trial<cuda::Said>> =
        (hooks.as_ref()).map(|hooks| hooks.attempt(&trials, Probe::Cuda));
    let has_driver = matches!(
        &cuda_trial,
        Some(Trial {
            answer: Ok(Ok(_)),
            ..
        })
    );
    let mut checks = vulkan::checks(
        &vulkan::Known {
            layer: found.map_err(|error| error.to_string()),
            manifests: machine::vulkan_manifests(),
        },
        vulkan_trial.as_ref(),
    );
    checks.extend(cuda::checks(
        &cuda::Known {
            library,
            nvml: match has_driver {
                true => machine::nvml(),
                false => Err("there is no driver".to_owned()),
            },
            counters_for_administrators: machine::counters_are_for_administrators(&root),
            is_administrator: machine::is_administrator(),
            counters: match has_driver {
                true => counters_of(cuda_trial.as_ref()),
                false => Err("there is no driver".to_owned()),
            },
        },
        cuda_trial.as_ref(),
    ));
    checks.extend(host::checks(&host::Known {
        place: (place.display().to_string(), free),
        stacks: stacks(),
        container: machine::container(&root),
        filters: machine::filters_system_calls(&root),
    }));
    checks
}

/// The bytes that may be written to a folder, where a folder can be made in it.
fn writable(folder: &Path) -> Result<u64, String> {
    tempfile::Builder::new()
        .prefix(".gapscope-doctor-")
        .tempdir_in(folder)
        .and_then(|made| made.close())
        .and_then(|()| machine::free_bytes(folder))
        .map_err(|error| error.to_string())
}

/// Reads a program that this one starts, as a recording does.
fn stacks() -> Result<machine::StacksAllowed, String> {
    let failed = |error: std::io::Error| format!("no program could be started to read it: {error}");
    let mut child = std::env::current_exe()
        .and_then(|program| {
            Command::new(program)
                .args(["doctor", "--probe", "wait", "--answer", "-"])
                .stdin(Stdio::piped())
                .stdout(Stdio::piped())
                .spawn()
        })
        .map_err(failed)?;
    // It says when it is itself, and no copy of this process any more.
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
        _ => Err("the program that was started to read it ended at once".to_owned()),
    }
}

/// Has a program ask for hardware counters, by the libcupti that the trial found.
fn counters_of(trial: Option<&Trial<cuda::Said>>) -> Result<String, String> {
    let program = std::env::current_exe().map_err(|error| error.to_string())?;
    let mut command = Command::new(program);
    command.args(["doctor", "--probe", "counters", "--answer", "-"]);
    let found = trial.and_then(|trial| trial.answer.as_ref().ok()?.as_ref().ok()?.cupti.as_ref());
    if let Some(cupti) = found
        && std::env::var_os(CUPTI).is_none_or(|path| path.is_empty())
    {
        command.env(CUPTI, &cupti.file);
    }
    for variable in counters::NOT_FOR_SAMPLERS {
        command.env_remove(variable);
    }
    let said = command.stdin(Stdio::null()).stderr(Stdio::null()).output();
    let said = said.map_err(|error| error.to_string())?.stdout;
    serde_json::from_slice(&said)
        .unwrap_or_else(|_| Err("the program that asked for them did not end well".to_owned()))
}

/// The part of a program that is started for its driver's sake.
pub fn probe(probe: Probe, answer: &Path) -> Result<ExitCode, Failure> {
    match probe {
        Probe::Vulkan => tell(&vulkan::say(), answer)?,
        Probe::Cuda => tell(&machine::cuda(), answer)?,
        Probe::Counters => {
            let said = serde_json::to_string(&counters::can_sample_counters());
            gapscope_companion::write(&said.unwrap_or_default())?;
        }
        Probe::Wait => {
            gapscope_companion::write("\n")?;
            // Its end is what is waited for, however it comes.
            let _ = std::io::stdin().read_to_end(&mut Vec::new());
        }
    }
    Ok(ExitCode::SUCCESS)
}
