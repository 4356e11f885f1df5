//! Runs `gapscope record` with Apple's Instruments: on macOS, and on other systems if `GAPSCOPE_XCTRACE` names a
//! program.

use crate::args::Record;
use crate::failure::Failure;
use crate::{exit, output_path, own_recordings, page, progress, recorded_command, report, view};
use gapscope_metal::{Error, Outcome, Recorded, Recording, Stage, Target, Xctrace};
use gapscope_timeline::quantity as number;
use indicatif::ProgressBar;
use std::ffi::OsStr;
use std::path::Path;
use std::process::ExitCode;

/// Returns true if recordings on this system go through Instruments.
pub fn applies() -> bool {
    cfg!(target_os = "macos") || Xctrace::is_chosen()
}

/// Records a command or a process, prints what the recording shows, and ends with the command's status.
pub fn run(arguments: &Record) -> Result<ExitCode, Failure> {
    let recorded = record(arguments).map_err(Failure::of_recording)?;
    own_recordings::remember(&recorded.output);
    // Without a status, the command was interrupted or reached its time limit, because xctrace does not tell how it
    // ended.
    let status = recorded.exit.map_or(0, exit::status);
    let code = recorded_command::exit_code(status, print_outcome(arguments, &recorded));
    if arguments.view
        && recorded.output.exists()
        && let Some(shown) = view::start_live(recorded.output)
    {
        view::after_recording(shown);
    }
    Ok(code)
}

/// Records a command or a process; options that Instruments cannot serve are errors.
fn record(arguments: &Record) -> Result<Recorded, Failure> {
    let unsupported = [
        (arguments.delay.is_some(), "--delay"),
        (arguments.no_arguments, "--no-arguments"),
        (arguments.start_label.is_some(), "--start-label"),
        (arguments.names.is_some(), "--names"),
        (arguments.capture_only, "--capture-only"),
        (arguments.label_modules, "--label-modules"),
        (arguments.label_ops, "--label-ops"),
        (!arguments.profile_kernel.is_empty(), "--profile-kernel"),
        (arguments.counters.is_some(), "--counters"),
        (arguments.instructions.is_some(), "--instructions"),
    ];
    if let Some((_, option)) = unsupported.iter().find(|(given, _)| *given) {
        return Err(failure!(
            "{option} is not possible here: Instruments records the whole run; leave it out, or shorten the run with --time-limit"
        )
        .status(exit::USAGE));
    }
    let (target, name) = match arguments.attach {
        Some(pid) => (Target::Attach(pid), format!("process-{pid}").into()),
        None => (
            Target::Launch(arguments.command.clone()),
            arguments.command.first().cloned().unwrap_or_default(),
        ),
    };
    let recording = Recording {
        target,
        output: match &arguments.output {
            Some(output) => output.clone(),
            None => output_path::for_trace(Path::new(""), OsStr::new(&name)),
        },
        time_limit: arguments.time_limit,
        xctrace: Xctrace::find(),
    };
    let line = StatusLine::new(arguments.quiet || arguments.no_progress);
    // The line would be drawn into what the command writes. A process that runs already writes elsewhere.
    let is_shown = |stage| arguments.attach.is_some() || stage != Stage::Recording;
    let recorded = recording.run(|stage| {
        if is_shown(stage) {
            line.show(stage);
        }
    });
    line.bar.finish_and_clear();
    Ok(recorded?)
}

/// A line on stderr that shows the current stage, if stderr is a terminal.
pub struct StatusLine {
    bar: ProgressBar,
}

impl StatusLine {
    /// Creates the line, which is hidden when `quiet`.
    pub fn new(quiet: bool) -> StatusLine {
        let bar = match quiet {
            true => ProgressBar::hidden(),
            false => progress::line(),
        };
        StatusLine { bar }
    }

    /// Shows what the recording or import is doing.
    pub fn show(&self, stage: Stage) {
        self.bar.set_message(match stage {
            Stage::Recording => "gapscope  Instruments records; Ctrl-C ends it".to_owned(),
            Stage::Exporting { done, of } => {
                format!(
                    "gapscope  xctrace exports table {} of {of}; this takes a while",
                    done + 1
                )
            }
            Stage::Importing => "gapscope  reading the tables".to_owned(),
        });
        self.bar.tick();
    }
}

impl Drop for StatusLine {
    fn drop(&mut self) {
        self.bar.finish_and_clear();
    }
}

/// Prints on stderr what was recorded; a recording without any times is a failure.
fn print_outcome(arguments: &Record, recorded: &Recorded) -> Result<(), Failure> {
    let path = recorded.output.display();
    if recorded.timed_out && !arguments.quiet {
        page::note("the time limit ended the recording");
    }
    let (command_buffers, timed_work) = match &recorded.outcome {
        Outcome::NothingRecorded { reason } => {
            return Err(failure!("{reason}; no trace was written"));
        }
        Outcome::Recorded {
            command_buffers,
            timed_work,
        } => (*command_buffers, *timed_work),
    };
    if timed_work == 0 {
        let count = number::count_of(command_buffers, "command buffer", "command buffers");
        return Err(failure!(
            "{path} has {count} and no time of any: Instruments exported no GPU work of this process; see its losses with `gapscope info {path}`"
        ));
    }
    if arguments.quiet {
        return Ok(());
    }
    if arguments.no_report {
        let count = number::count_of(command_buffers, "command buffer", "command buffers");
        page::note(format!(
            "{count} in {path}; the report says what Instruments does not record"
        ));
    } else {
        report::say_after_recording(&recorded.output)?;
    }
    Ok(())
}

impl From<Error> for Failure {
    fn from(error: Error) -> Failure {
        let status = match &error {
            Error::NoSuchCommand { .. } => exit::NOT_FOUND,
            Error::NotExecutable { .. } => exit::NOT_EXECUTABLE,
            _ => exit::FAILED,
        };
        Failure::new(crate::failure::without_os_error_numbers(&error.to_string())).status(status)
    }
}
