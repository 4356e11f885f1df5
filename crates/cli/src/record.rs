//! `gapscope record`: runs a command under the recorder, and prints the trace's path and its report.

use crate::args::Record;
use crate::failure::Failure;
use crate::{
    exit, hook_libraries, kernel_names, output_path, own_recordings, page, progress,
    recorded_command, report, view,
};
use gapscope_recorder::counters::{CounterOptions, NOT_SAMPLED, UnknownCounter};
use gapscope_recorder::{LabelInjection, Outcome, Recorded, Recording, Start, UNUSED_OPTION};
use gapscope_timeline::quantity as number;
use gapscope_trace::{LossKind, read_manifest};
use gapscope_view::Running;
use std::path::{Path, PathBuf};
use std::process::ExitCode;
use std::sync::Arc;

/// The variable that names the folder with the machine's `proc` and `sys`, for tests and for containers that have
/// them in other places.
const SYSTEM_ROOT: &str = "GAPSCOPE_SYSTEM_ROOT";

/// The command that says what a machine lacks for recordings.
const DOCTOR: &str = "gapscope doctor";

/// Records a command, prints what the recording shows, and ends with the command's status.
pub fn run(arguments: &Record) -> Result<ExitCode, Failure> {
    let (recorded, shown) = record(arguments).map_err(Failure::of_recording)?;
    let windows = recorded
        .windows
        .iter()
        .filter_map(|window| window.path.as_deref());
    windows
        .chain([&*recorded.output])
        .for_each(own_recordings::remember);
    let status = exit::status(recorded.exit);
    let code = recorded_command::exit_code(status, print_outcome(arguments, &recorded));
    if let Some(shown) = shown.filter(|_| recorded.output.exists()) {
        view::after_recording(shown);
    }
    Ok(code)
}

/// Returns the hardware counters to sample; `None` if the user asked for none.
fn counters(arguments: &Record) -> Result<Option<CounterOptions>, Failure> {
    let set = arguments.counters.as_ref().map(|text| text.parse());
    let set = set
        .transpose()
        .map_err(|error: UnknownCounter| failure!("--counters: {error}").status(exit::USAGE))?;
    Ok(set.map(|set| CounterOptions {
        set,
        interval: arguments.counter_interval,
    }))
}

/// Returns the folder with the machine's `proc` and `sys`, which is `/` unless the variable names another.
pub fn system_root() -> PathBuf {
    std::env::var_os(SYSTEM_ROOT).map_or_else(|| "/".into(), Into::into)
}

/// Records the command, and returns what was recorded, with the server of the timeline if `--view` was given.
fn record(arguments: &Record) -> Result<(Recorded, Option<Running>), Failure> {
    if arguments.attach.is_some() {
        return Err(Failure::new(
            "--attach is not possible here: a Vulkan or CUDA program must be started by gapscope; give its command",
        )
        .status(exit::USAGE));
    }
    let names = kernel_names::read(arguments.names.as_deref())?;
    let recording = Recording {
        command: arguments.command.clone(),
        output: match &arguments.output {
            Some(output) => output.clone(),
            None => output_path::for_trace(Path::new(""), &arguments.command[0]),
        },
        keep_arguments: !arguments.no_arguments,
        mode: arguments.mode.into(),
        names: names.map(Arc::unwrap_or_clone).unwrap_or_default(),
        start: match (&arguments.start_label, arguments.delay) {
            (Some(label), _) => Start::Label(label.clone()),
            (None, Some(delay)) => Start::After(delay),
            (None, None) if arguments.capture_only => Start::Windows,
            (None, None) => Start::AtOnce,
        },
        time_limit: arguments.time_limit,
        layer: hook_libraries::find_layer()?,
        cuda: hook_libraries::find_cuda()?,
        labels: LabelInjection {
            modules: arguments.label_modules,
            operators: arguments.label_ops,
        },
        profile: arguments.profile_kernel.clone(),
        instructions: arguments.instructions.clone(),
        stdout_to_stderr: false,
        spool_limit_bytes: None,
        stack_rate_hz: (!arguments.no_stacks).then_some(arguments.stack_rate),
        counters: counters(arguments)?,
        system_root: system_root(),
    };
    let output = recording.output.clone();
    let line = (arguments.progress).then(progress::line_of_recording);
    let session = recording.start().map_err(output_path::or_elsewhere)?;
    let live = || view::start_live(output.clone());
    let shown = arguments.view.then(live).flatten();
    if let Some(line) = line.flatten() {
        progress::show(&session, line);
    }
    let recorded = session.wait();
    let recorded = recorded.map_err(|error| with_recovery(error.into(), &output))?;
    Ok((recorded, shown))
}

/// Adds to a failure how what was recorded before can be read, where anything was.
fn with_recovery(failure: Failure, output: &Path) -> Failure {
    if read_manifest(output).is_err() {
        return failure;
    }
    let sentence = format!(
        "{failure}; then `gapscope recover {}` completes the trace of what was recorded before",
        output.display()
    );
    Failure {
        sentence,
        ..failure
    }
}

/// Prints on stderr what was recorded: its report, or a line without one; the failure says why there is nothing.
fn print_outcome(arguments: &Record, recorded: &Recorded) -> Result<(), Failure> {
    let path = recorded.output.display();
    if recorded.timed_out && !arguments.quiet {
        page::note("the time limit ended the command");
    }
    for window in &recorded.windows {
        if let Some(failure) = &window.failure {
            page::note(format!("a capture was not written: {failure}"));
        }
    }
    match &recorded.outcome {
        Outcome::Recorded => {}
        Outcome::RecordedInside {
            reason, trace_kept, ..
        } => {
            let left = match trace_kept {
                true => format!("the trace {path} has no GPU work"),
                false => "no other trace was written".to_owned(),
            };
            page::note(format!("{reason}; {left}"));
            return Ok(());
        }
        Outcome::NothingRecorded { reason, trace_kept } => {
            let failure = nothing_recorded(recorded, reason, *trace_kept);
            let is_chosen = arguments.start_label.is_some()
                || arguments.delay.is_some()
                || arguments.capture_only;
            return Err(match is_chosen || failure.sentence.contains(DOCTOR) {
                true => failure,
                false => Failure {
                    sentence: format!(
                        "{failure} (`{DOCTOR}` says what can be recorded on this machine)"
                    ),
                    ..failure
                },
            });
        }
    }
    if arguments.quiet {
        return Ok(());
    }
    for window in &recorded.windows {
        if let (Some(path), None) = (&window.path, &window.failure) {
            page::note(format!("a capture is in {}", path.display()));
        }
    }
    if arguments.no_report {
        let lost = match recorded.losses.len() {
            0 => "nothing was lost".to_owned(),
            _ => "not all was recorded; the report lists what was lost".to_owned(),
        };
        let dispatches = number::count_of(recorded.dispatches, "dispatch", "dispatches");
        page::note(format!("{dispatches} in {path}; {lost}"));
    } else {
        report::say_after_recording(&recorded.output)?;
    }
    let asked_in_vain =
        |note: &&String| note.starts_with(NOT_SAMPLED) || note.contains(UNUSED_OPTION);
    recorded
        .notes
        .iter()
        .filter(asked_in_vain)
        .for_each(page::note);
    Ok(())
}

/// Returns the failure of a recording without GPU work.
fn nothing_recorded(recorded: &Recorded, reason: &str, trace_kept: bool) -> Failure {
    let path = recorded.output.display();
    // The reason already covers a process that could not be recorded at all.
    let lost = recorded
        .losses
        .iter()
        .filter(|l| l.kind != LossKind::CudaWork);
    Failure::new(match lost.max_by_key(|loss| loss.count) {
        // The losses may include all of the work, so that the sentence must not claim that there was none.
        Some(loss) => format!(
            "no GPU work was recorded in {path}; lost: {}: {}",
            number::loss(loss),
            loss.reason
        ),
        None if trace_kept => format!("{reason}; the trace {path} has no GPU work"),
        None => format!("{reason}; no trace was written"),
    })
}
