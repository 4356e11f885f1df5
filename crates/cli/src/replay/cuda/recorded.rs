//! `gapscope replay` of a capture of CUDA with `-o`, `--profile` or `--instructions`: this program starts itself under its own recorder.
//!
//! A replay is a CUDA program as any other, so that `gapscope record` gives its timeline, the counters of its kernels and their hot
//! lines, and prints its report.

use crate::args;
use crate::failure::Failure;
use crate::{output_path, page};
use gapscope_capture::cuda::{CudaCapture, CudaStep};
use std::collections::BTreeMap;
use std::ffi::OsString;
use std::path::{Path, PathBuf};
use std::process::{Command, ExitCode};

/// The runs of a replay whose instructions are sampled, unless `--repeat` gives another number: one run of a short kernel gives few
/// samples.
const SAMPLED_RUNS: u32 = 100;

/// Runs the replay under the recorder; returns the status of the replay.
pub fn run(arguments: &args::Replay, capture: &CudaCapture) -> Result<ExitCode, Failure> {
    let program = std::env::current_exe()
        .map_err(|error| failure!("gapscope cannot find itself, to record the replay: {error}"))?;
    let output = match &arguments.output {
        Some(output) => output.clone(),
        None => default_output(&arguments.capture),
    };
    let mut command = Command::new(&program);
    command.arg("record").arg("-o").arg(&output);
    if arguments.json {
        // stdout has the JSON of the replay.
        command.arg("--quiet");
    }
    if arguments.profile {
        page::note("the time on the device has the passes in it that the counters take");
        for (kernel, launches) in profiled(arguments, capture) {
            // A name in a capture may begin with a hyphen.
            command.arg(format!("--profile-kernel={kernel}:{launches}"));
        }
    }
    if arguments.instructions {
        command.arg("--instructions");
    }
    command.arg("--").arg(&program).args(replay(arguments));
    let status = command
        .status()
        .map_err(|error| failure!("the recorder of the replay cannot be started: {error}"))?;
    let code = status.code().and_then(|code| u8::try_from(code).ok());
    Ok(code.map_or(ExitCode::FAILURE, ExitCode::from))
}

/// Returns `NAME.gapscope` in the current folder for `NAME.gapcapture`, or the first free name.
fn default_output(capture: &Path) -> PathBuf {
    let name = capture.file_stem().unwrap_or(capture.as_os_str());
    output_path::for_trace(Path::new(""), name)
}

/// Returns the kernels that run, with the number of their launches in one run.
fn profiled<'c>(arguments: &args::Replay, capture: &'c CudaCapture) -> BTreeMap<&'c str, u64> {
    let launches = capture.steps.iter().filter_map(|step| match step {
        CudaStep::Launch(launch) => Some(launch),
        _ => None,
    });
    let mut kernels = BTreeMap::new();
    for (launch, number) in launches.zip(0u64..) {
        let is_beyond = arguments.until.is_some_and(|until| number > until);
        let is_other = arguments.dispatch.is_some_and(|only| number != only);
        if !is_beyond && !is_other {
            *kernels.entry(&*launch.kernel).or_default() += 1;
        }
    }
    kernels
}

/// Returns the arguments of the replay that is recorded.
fn replay(arguments: &args::Replay) -> Vec<OsString> {
    let mut replay: Vec<OsString> = vec!["replay".into()];
    for (flag, is_given) in [
        ("--json", arguments.json),
        ("--tight", arguments.tight),
        ("--trust", arguments.trust),
    ] {
        replay.extend(is_given.then(|| flag.into()));
    }
    let runs = (arguments.repeat).or(arguments.instructions.then_some(SAMPLED_RUNS));
    for (option, value) in [
        ("--device", arguments.device.clone()),
        ("--repeat", runs.map(|runs| runs.to_string())),
        ("--warm-up", arguments.warm_up.map(|runs| runs.to_string())),
        ("--dispatch", arguments.dispatch.map(|at| at.to_string())),
        ("--until", arguments.until.map(|at| at.to_string())),
        (
            "--type",
            arguments.element.map(|element| element.name().to_owned()),
        ),
    ] {
        if let Some(value) = value {
            replay.extend([option.into(), value.into()]);
        }
    }
    replay.extend(["--".into(), arguments.capture.clone().into_os_string()]);
    replay
}
