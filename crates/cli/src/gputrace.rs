//! Runs `gapscope record --gputrace`, which captures GPU commands as a document for Xcode, with Apple's gpucapture:
//! on macOS, and on other systems if `GAPSCOPE_GPUCAPTURE` names a program.

use crate::args::{Boundaries, Record};
use crate::failure::Failure;
use crate::{exit, page, recorded_command};
use gapscope_metal::{Boundary, GpuCapture, GpuWindow, LaunchOutcome, Length};
use gapscope_timeline::quantity as number;
use gapscope_trace::manifest::Exit;
use std::process::ExitCode;

/// Captures a window (from one boundary to a later one) of a command or process, and ends with the command's status.
pub fn run(arguments: &Record) -> Result<ExitCode, Failure> {
    let window = GpuWindow {
        boundary: arguments.gputrace_label.clone().map(Boundary::Label),
        length: match arguments.gputrace_count {
            Some(Boundaries::All) => Length::UntilExit,
            Some(Boundaries::Count(count)) => Length::Count(count),
            None => Length::Count(1),
        },
        output: arguments.gputrace.clone().unwrap_or_default(),
    };
    let tool = GpuCapture::find().map_err(|error| Failure::from(error).of_recording())?;
    let LaunchOutcome { exit, captured } = match arguments.attach {
        Some(pid) => LaunchOutcome {
            exit: Exit::Code(0),
            captured: tool.capture(pid, &window),
        },
        None => tool
            .launch(&arguments.command, &window)
            .map_err(|error| Failure::from(error).of_recording())?,
    };
    let outcome = captured.map_err(Failure::from).map(|bytes| {
        if !arguments.quiet {
            page::note(format!(
                "the capture is in {} ({}); Xcode opens it",
                window.output.display(),
                number::bytes(bytes),
            ));
        }
    });
    Ok(recorded_command::exit_code(exit::status(exit), outcome))
}
