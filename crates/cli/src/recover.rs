//! `gapscope recover`: completes the trace of a recording that was cut off, from the events that were already
//! written.

use crate::args::Recover;
use crate::failure::Failure;
use crate::page;
use gapscope_recorder::{Recovered, recover};
use gapscope_timeline::quantity as number;
use std::process::ExitCode;

/// Completes a trace and prints its losses.
pub fn run(arguments: &Recover) -> Result<ExitCode, Failure> {
    let path = arguments.trace.display();
    let text = match recover(&arguments.trace, arguments.force)? {
        Recovered::AlreadyComplete => format!("{path} is complete already; nothing was changed.\n"),
        Recovered::Completed {
            dispatches,
            losses,
            ran_on,
        } => {
            let dispatches = number::count_of(dispatches, "dispatch", "dispatches");
            let mut text = format!("{path} is complete now: {dispatches}.\n");
            for loss in losses {
                text.push_str(&format!(
                    "Lost: {}: {}.\n",
                    number::loss(&loss),
                    loss.reason
                ));
            }
            ran_on.iter().for_each(|sentence| {
                text.push_str(&format!("{sentence}\n"));
            });
            text
        }
    };
    page::write(&text)?;
    Ok(ExitCode::SUCCESS)
}
