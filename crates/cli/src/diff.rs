//! `gapscope diff`.

mod inputs;
#[cfg(target_os = "linux")]
mod runs;

use crate::args::Diff as Arguments;
use crate::exit;
use crate::failure::Failure;
use crate::{page, view};
use gapscope_analysis::diff::{ChangeKind, Diff, Options};
use gapscope_report::diff::{DiffReport, junit};
use inputs::Inputs;
use std::process::ExitCode;

/// Compares runs, and records them first where commands are given.
pub fn run(arguments: &Arguments) -> Result<ExitCode, Failure> {
    match arguments.runs {
        #[cfg(target_os = "linux")]
        Some(count) => {
            let recorded = runs::record(arguments, count)?;
            print(arguments, &recorded.inputs()?)
        }
        #[cfg(not(target_os = "linux"))]
        Some(_) => Err(Failure::new(
            "diff --runs records on Linux, not here: give it traces",
        )),
        None => print(arguments, &Inputs::open(arguments)?),
    }
}

fn print(arguments: &Arguments, inputs: &Inputs) -> Result<ExitCode, Failure> {
    let options = Options {
        level: arguments.level,
        assumed_spread: arguments.assume_spread,
        gates: arguments.gates.clone(),
        allow_unknown: arguments.allow_unknown,
    };
    let diff = Diff::of(&inputs.before, &inputs.after, &options);
    let report = DiffReport {
        diff: &diff,
        top: match arguments.top {
            0 => usize::MAX,
            top => top,
        },
    };
    let text = if arguments.json {
        let text = report.json();
        text.map_err(|error| Failure::new(format!("cannot write JSON: {error}")))?
    } else if arguments.markdown {
        report.markdown()
    } else if arguments.junit {
        junit(&diff, "gapscope diff")
    } else {
        page::of_stdout(&arguments.width).draw(&report.document())
    };
    page::write(&text)?;
    if arguments.view {
        let kernels = diff
            .changes
            .iter()
            .filter(|of| of.kind == ChangeKind::Kernel);
        let changed = kernels.into_iter().find(|of| of.significant);
        let kernel = changed.map(|of| of.name.as_str());
        view::compared(&inputs::first(arguments)?, kernel)?;
    }
    Ok(match diff.fails() {
        true => ExitCode::from(1),
        false => exit::of_reading(inputs.whole),
    })
}
