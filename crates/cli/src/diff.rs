//! `gapscope diff`: compares the runs of two sides, before and after a change, and prints which figures changed.

pub mod inputs;
#[cfg(target_os = "linux")]
mod runs;

use crate::args::{Comparing, Diff as Arguments, Width, row_limit};
use crate::exit;
use crate::failure::Failure;
use crate::{page, view};
use gapscope_comparison::diff::{ChangeKind, Diff, Options};
use gapscope_report::diff::{DiffReport, junit};
use inputs::Inputs;
use std::path::Path;
use std::process::ExitCode;

/// Compares runs, after recording them if commands are given.
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

/// Compares, prints, and shows the page with one run of each side if asked for.
fn print(arguments: &Arguments, inputs: &Inputs) -> Result<ExitCode, Failure> {
    let diff = compare(&arguments.comparing, inputs);
    show(&diff, &arguments.comparing, arguments.top, &arguments.width)?;
    if arguments.view {
        let kernels = diff
            .changes
            .iter()
            .filter(|of| of.kind == ChangeKind::Kernel);
        let changed = kernels.into_iter().find(|of| of.significant);
        let kernel = changed.map(|of| of.name.as_str());
        let shown = inputs.median();
        if inputs.before.len() + inputs.after.len() > 2 {
            let [before, after] = shown.map(|path| path.display());
            page::note(format!(
                "the page shows one run of each side, that of median time from start to end: {before} and {after}"
            ));
        }
        view::compare(&shown.map(Path::to_owned), kernel)?;
    }
    Ok(exit_code(&diff, inputs.whole))
}

/// Compares runs with the options of the command line.
pub fn compare(options: &Comparing, inputs: &Inputs) -> Diff {
    let options = Options {
        level: options.level,
        assumed_spread: options.assume_spread,
        gates: options.gates.clone(),
        allow_unknown: options.allow_unknown,
    };
    Diff::new(&inputs.before, &inputs.after, &options)
}

/// Prints a comparison in the form that the options choose; tables have `top` rows, or all if it is 0.
pub fn show(diff: &Diff, options: &Comparing, top: usize, width: &Width) -> Result<(), Failure> {
    let report = DiffReport {
        diff,
        top: row_limit(top),
    };
    let text = if options.json {
        report.json()?
    } else if options.markdown {
        report.markdown()
    } else if options.junit {
        junit(diff, "gapscope diff")
    } else {
        page::stdout_terminal(width).draw(&report.document())
    };
    page::write(&text)
}

/// Returns the exit status: a failed gate counts first, then a trace that could not be read `whole`.
pub fn exit_code(diff: &Diff, whole: bool) -> ExitCode {
    match diff.fails() {
        true => ExitCode::from(exit::FAILED),
        false => exit::after_reading(whole),
    }
}
