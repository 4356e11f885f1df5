//! `gapscope record`.

use crate::args::Record;
use crate::failure::Failure;
use crate::{exit, layer, names, output, page, progress, report, view};
use gapscope_recorder::counters::{CounterOptions, NOT_SAMPLED};
use gapscope_recorder::{Layers, Outcome, Recorded, Recording, Start};
use gapscope_timeline::quantity as number;
use gapscope_trace::LossKind;
use gapscope_view::Running;
use std::path::{Path, PathBuf};
use std::process::ExitCode;
use std::sync::Arc;

/// Where `proc` and `sys` of the machine are, for a container that has those of its host elsewhere, and for tests.
const SYSTEM_ROOT: &str = "GAPSCOPE_SYSTEM_ROOT";

/// Records a command, prints what the recording shows, and ends as the command did.
pub fn run(arguments: &Record) -> Result<ExitCode, Failure> {
    let (recorded, shown) = record(arguments).map_err(|failure| match failure.status {
        exit::FAILED => failure.status(exit::CANNOT_RECORD),
        _ => failure,
    })?;
    let status = exit::status(recorded.exit);
    let own = match said(arguments, &recorded) {
        Ok(()) => 0,
        Err(failure) => {
            page::say(&format!("gapscope: {failure}\n"));
            exit::CANNOT_RECORD
        }
    };
    if let Some(shown) = shown.filter(|_| recorded.output.exists()) {
        view::after_recording(shown);
    }
    Ok(ExitCode::from(if status != 0 { status } else { own }))
}

/// The hardware counters to sample.
fn counters(arguments: &Record) -> Result<Option<CounterOptions>, Failure> {
    let set = arguments.counters.as_ref().map(|text| text.parse());
    let set = set.transpose().map_err(|wrong: String| {
        Failure::new(format!("--counters: {wrong}")).status(exit::USAGE)
    })?;
    Ok(set.map(|set| CounterOptions {
        set,
        interval: arguments.counter_interval,
    }))
}

/// The folder with the `proc` and `sys` that say how the machine is.
pub fn system_root() -> PathBuf {
    std::env::var_os(SYSTEM_ROOT).map_or_else(|| "/".into(), Into::into)
}

fn record(arguments: &Record) -> Result<(Recorded, Option<Running>), Failure> {
    if arguments.attach.is_some() {
        return Err(Failure::new(
            "--attach is not possible here: a Vulkan or CUDA program must be started by gapscope; give its command behind `--`",
        )
        .status(exit::USAGE));
    }
    let names = names::read(arguments.names.as_deref())?;
    let recording = Recording {
        command: arguments.command.clone(),
        output: match &arguments.output {
            Some(output) => output.clone(),
            None => output::for_program(Path::new(""), &arguments.command[0]),
        },
        mode: arguments.mode.into(),
        names: names.map(Arc::unwrap_or_clone).unwrap_or_default(),
        start: match (&arguments.start_label, arguments.delay) {
            (Some(label), _) => Start::Label(label.clone()),
            (None, Some(delay)) => Start::After(delay),
            (None, None) if arguments.capture_only => Start::Capture,
            (None, None) => Start::AtOnce,
        },
        time_limit: arguments.time_limit,
        layer: layer::find()?,
        cuda: layer::find_cuda()?,
        layers: Layers {
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
    let session = recording.start()?;
    let shown = arguments.view.then(|| view::live(output)).flatten();
    if !arguments.quiet {
        progress::show(&session);
    }
    Ok((session.wait()?, shown))
}

/// Says on stderr what was recorded.
fn said(arguments: &Record, recorded: &Recorded) -> Result<(), Failure> {
    let path = recorded.output.display();
    if recorded.timed_out && !arguments.quiet {
        page::say("gapscope: the time limit ended the command\n");
    }
    for capture in &recorded.captures {
        if let Some(failure) = &capture.failure {
            page::say(&format!("gapscope: a capture was not written: {failure}\n"));
        }
    }
    if let Outcome::NothingRecorded { reason, trace_kept } = &recorded.outcome {
        return Err(nothing(recorded, reason, *trace_kept));
    }
    if arguments.quiet {
        return Ok(());
    }
    for capture in &recorded.captures {
        if let (Some(path), None) = (&capture.path, &capture.failure) {
            page::say(&format!("gapscope: a capture is in {}\n", path.display()));
        }
    }
    if arguments.no_report {
        let lost = match recorded.losses.len() {
            0 => "nothing was lost".to_owned(),
            _ => "not all was recorded; the report lists what was lost".to_owned(),
        };
        let dispatches = number::count_of(recorded.dispatches, "dispatch", "dispatches");
        page::say(&format!("gapscope: {dispatches} in {path}; {lost}\n"));
        for note in recorded.notes.iter().filter(|n| n.starts_with(NOT_SAMPLED)) {
            page::say(&format!("gapscope: {note}\n"));
        }
    } else {
        let report = report::after_recording(&recorded.output, &page::of_stderr())?;
        let again = format!("The trace is in {path}; `gapscope report {path}` says this again.");
        page::say(&format!("\n{report}\n  {again}\n"));
    }
    Ok(())
}

/// Why there is nothing to report on.
fn nothing(recorded: &Recorded, reason: &str, trace_kept: bool) -> Failure {
    let path = recorded.output.display();
    // A process that could not be recorded at all is what the reason is about.
    let lost = recorded
        .losses
        .iter()
        .filter(|l| l.kind != LossKind::CudaWork);
    Failure::new(match lost.max_by_key(|loss| loss.count) {
        // What was lost may be the very work, so it must not be said that there was none.
        Some(loss) => format!(
            "no GPU work was recorded in {path}, and {} {} were lost: {}",
            number::count(loss.count),
            loss.kind,
            loss.reason
        ),
        None if trace_kept => format!("{reason}; the trace {path} has no GPU work"),
        None => format!("{reason}; no trace was written"),
    })
}
