//! `gapscope record --gputrace`, where Apple's gpucapture captures: on macOS, and wherever `GAPSCOPE_GPUCAPTURE` names one.

use crate::args::{Boundaries, Record};
use crate::failure::Failure;
use crate::{exit, page};
use gapscope_metal::{Boundary, GpuCapture, GpuWindow, LaunchOutcome, Length};
use gapscope_timeline::quantity as number;
use gapscope_trace::manifest::Exit;
use std::process::ExitCode;

/// Captures a window of a command or a process, and ends as the command did.
pub fn run(arguments: &Record) -> Result<ExitCode, Failure> {
    let cannot = |failure: Failure| match failure.status {
        exit::FAILED => failure.status(exit::CANNOT_RECORD),
        _ => failure,
    };
    let window = GpuWindow {
        boundary: arguments.gputrace_label.clone().map(Boundary::Label),
        length: match arguments.gputrace_count {
            Some(Boundaries::All) => Length::UntilExit,
            Some(Boundaries::Count(count)) => Length::Count(count),
            None => Length::Count(1),
        },
        output: arguments.gputrace.clone().unwrap_or_default(),
    };
    let tool = GpuCapture::find().map_err(|error| cannot(error.into()))?;
    let LaunchOutcome { exit, captured } = match arguments.attach {
        Some(pid) => LaunchOutcome {
            exit: Exit::Code(0),
            captured: tool.capture(pid, &window),
        },
        None => tool
            .launch(&arguments.command, &window)
            .map_err(|error| cannot(error.into()))?,
    };
    let status = exit::status(exit);
    let own = match captured {
        Ok(bytes) => {
            if !arguments.quiet {
                page::say(&format!(
                    "gapscope: the capture is in {} ({}); Xcode opens it\n",
                    window.output.display(),
                    number::bytes(bytes),
                ));
            }
            0
        }
        Err(error) => {
            page::say(&format!("gapscope: {}\n", Failure::from(error)));
            exit::CANNOT_RECORD
        }
    };
    Ok(ExitCode::from(if status != 0 { status } else { own }))
}
