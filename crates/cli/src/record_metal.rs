//! `gapscope record` where Apple's Instruments records: on macOS, and wherever `GAPSCOPE_XCTRACE` names an xctrace.

use crate::args::Record;
use crate::failure::Failure;
use crate::{exit, output, page, report, view};
use gapscope_metal::{Error, Outcome, Recorded, Recording, Stage, Target, Xctrace};
use gapscope_timeline::quantity as number;
use indicatif::{ProgressBar, ProgressDrawTarget, ProgressStyle};
use std::ffi::OsStr;
use std::path::Path;
use std::process::ExitCode;

/// Whether recordings on this system go through Instruments.
pub fn applies() -> bool {
    cfg!(target_os = "macos") || Xctrace::is_chosen()
}

/// Records a command or a process, prints what the recording shows, and ends as the command did.
pub fn run(arguments: &Record) -> Result<ExitCode, Failure> {
    let recorded = record(arguments).map_err(|failure| match failure.status {
        exit::FAILED => failure.status(exit::CANNOT_RECORD),
        _ => failure,
    })?;
    // Without one it was interrupted or at its time limit: xctrace does not say how it ended.
    let status = recorded.exit.map_or(0, exit::status);
    let own = match said(arguments, &recorded) {
        Ok(()) => 0,
        Err(failure) => {
            page::say(&format!("gapscope: {failure}\n"));
            exit::CANNOT_RECORD
        }
    };
    if arguments.view
        && recorded.output.exists()
        && let Some(shown) = view::live(recorded.output)
    {
        view::after_recording(shown);
    }
    Ok(ExitCode::from(if status != 0 { status } else { own }))
}

fn record(arguments: &Record) -> Result<Recorded, Failure> {
    let unfit = [
        (arguments.delay.is_some(), "--delay"),
        (arguments.start_label.is_some(), "--start-label"),
        (arguments.names.is_some(), "--names"),
        (arguments.capture_only, "--capture-only"),
        (arguments.label_modules, "--label-modules"),
        (arguments.label_ops, "--label-ops"),
        (!arguments.profile_kernel.is_empty(), "--profile-kernel"),
        (arguments.counters.is_some(), "--counters"),
        (arguments.instructions.is_some(), "--instructions"),
    ];
    if let Some((_, option)) = unfit.iter().find(|(given, _)| *given) {
        return Err(Failure::new(format!(
            "{option} is not possible here: Instruments records the whole run; leave it out, or shorten the run with --time-limit"
        ))
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
            None => output::for_program(Path::new(""), OsStr::new(&name)),
        },
        time_limit: arguments.time_limit,
        xctrace: Xctrace::find(),
    };
    let line = Line::new(arguments.quiet);
    let recorded = recording.run(|stage| line.show(stage));
    line.bar.finish_and_clear();
    Ok(recorded?)
}

/// One line on stderr, when that is a terminal.
pub struct Line {
    bar: ProgressBar,
}

impl Line {
    /// `quiet`: it is not shown.
    pub fn new(quiet: bool) -> Line {
        let target = match quiet {
            true => ProgressDrawTarget::hidden(),
            false => ProgressDrawTarget::stderr(),
        };
        let bar = ProgressBar::with_draw_target(None, target);
        let style = ProgressStyle::with_template("{wide_msg}");
        bar.set_style(style.expect("the template is constant"));
        Line { bar }
    }

    /// Says what happens.
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

impl Drop for Line {
    fn drop(&mut self) {
        self.bar.finish_and_clear();
    }
}

/// Says on stderr what was recorded.
fn said(arguments: &Record, recorded: &Recorded) -> Result<(), Failure> {
    let path = recorded.output.display();
    if recorded.timed_out && !arguments.quiet {
        page::say("gapscope: the time limit ended the recording\n");
    }
    let (command_buffers, timed_work) = match &recorded.outcome {
        Outcome::NothingRecorded { reason } => {
            return Err(Failure::new(format!("{reason}; no trace was written")));
        }
        Outcome::Recorded {
            command_buffers,
            timed_work,
        } => (*command_buffers, *timed_work),
    };
    if timed_work == 0 {
        let count = number::count_of(command_buffers, "command buffer", "command buffers");
        return Err(Failure::new(format!(
            "{path} has {count} and no time of any: Instruments exported no GPU work of this process; see its losses with `gapscope info {path}`"
        )));
    }
    if arguments.quiet {
        return Ok(());
    }
    if arguments.no_report {
        let count = number::count_of(command_buffers, "command buffer", "command buffers");
        page::say(&format!(
            "gapscope: {count} in {path}; the report says what Instruments does not record\n"
        ));
    } else {
        let report = report::after_recording(&recorded.output, &page::of_stderr())?;
        let again = format!("The trace is in {path}; `gapscope report {path}` says this again.");
        page::say(&format!("\n{report}\n  {again}\n"));
    }
    Ok(())
}

impl From<Error> for Failure {
    fn from(error: Error) -> Failure {
        let status = match &error {
            Error::NoSuchCommand { .. } => exit::NOT_FOUND,
            Error::NotExecutable { .. } => exit::NOT_EXECUTABLE,
            _ => 1,
        };
        Failure::new(crate::failure::without_number(&error.to_string())).status(status)
    }
}
