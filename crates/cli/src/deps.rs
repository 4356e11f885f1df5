//! `gapscope deps`.

mod measure;
mod text;
mod work;

use crate::failure::Failure;
use crate::{exit, page, progress, trace};
use clap::{Args, ValueHint};
use gapscope_capture::Capture;
use gapscope_dependencies::{Dependencies, Limits};
use gapscope_trace::rank_folders;
use std::path::{Path, PathBuf};
use std::process::ExitCode;

/// Say what depends on what in a capture or a trace
///
/// Of a capture: which bytes each dispatch reads and writes, by evaluating its kernel's address arithmetic; which command must
/// come after which; dependencies that no barrier covers, barriers that nothing needs, and the longest chain. Of a trace only the
/// ranges that are bound are known, and no barriers.
#[derive(Debug, Args)]
#[command(after_help = "\
Exit status:
  3  some of it cannot be read: what it says is of the rest

Examples:
  gapscope deps run.gapcapture
  gapscope deps --json run.gapcapture | jq '.hazards[]'
  gapscope deps --measure run.gapcapture       times, against the device's bandwidth
  gapscope deps --dot run.gapcapture | dot -Tsvg > run.svg
  gapscope deps run.gapscope")]
pub struct Deps {
    /// Print JSON; its keys are stable
    #[arg(long, conflicts_with = "dot")]
    pub json: bool,

    /// Print a graph for graphviz
    #[arg(long)]
    pub dot: bool,

    /// Run the window of a capture on a device, one command after the other, and say how near each comes to the device's
    /// bandwidth, which is measured too
    #[arg(long, conflicts_with = "dot")]
    pub measure: bool,

    /// With --measure: the device, by its number, from 0, or a part of its name [default: the one with the captured
    /// device's name, else the first]
    #[arg(long, value_name = "N|NAME", requires = "measure")]
    pub device: Option<String>,

    /// With --measure: timed runs, after one that is not; the median of each command counts [default: 5]
    #[arg(long, value_name = "N", requires = "measure", value_parser = clap::value_parser!(u32).range(1..))]
    pub repeat: Option<u32>,

    #[command(flatten)]
    pub width: crate::args::Width,

    /// Rows in each table; 0 for all of them (JSON always has all)
    #[arg(long, value_name = "N", default_value_t = 10)]
    pub top: usize,

    /// The capture or trace
    #[arg(value_name = "CAPTURE|TRACE", value_hint = ValueHint::DirPath)]
    pub path: PathBuf,
}

/// Prints what depends on what.
pub fn run(arguments: &Deps) -> Result<ExitCode, Failure> {
    let path = &arguments.path;
    let (found, remarks) = match path.join(gapscope_capture::RECORDS).exists() {
        true => of_capture(arguments)?,
        false if arguments.measure && path.exists() => {
            return Err(Failure::new(format!(
                "{} is not a capture: --measure runs the window, and only a capture can be run",
                path.display()
            )));
        }
        false => of_trace(path)?,
    };
    let text = match (arguments.json, arguments.dot) {
        (true, _) => json(&found)?,
        (_, true) => found.dot(),
        _ => {
            let top = match arguments.top {
                0 => usize::MAX,
                top => top,
            };
            let terminal = page::of_stdout(&arguments.width);
            let name = trace::name(path);
            terminal.draw(&text::document(
                &name,
                &found,
                &remarks,
                top,
                terminal.columns,
            ))
        }
    };
    if arguments.json || arguments.dot {
        for remark in &remarks {
            page::say(&format!(
                "gapscope: {}\n",
                gapscope_command::one_line(remark)
            ));
        }
    }
    page::write(&text)?;
    Ok(exit::of_reading(remarks.is_empty()))
}

fn of_capture(arguments: &Deps) -> Result<(Dependencies, Vec<String>), Failure> {
    let path = &arguments.path;
    let (capture, problem) = Capture::open(path)
        .map_err(|error| Failure::new(crate::failure::without_number(&error.to_string())))?;
    let count = capture.executed().count();
    let mut found = progress::while_counting("commands", count, |done| {
        Dependencies::of_capture(&capture, Limits::default(), &mut |at| done.set(at))
    });
    let mut remarks: Vec<String> = problem.iter().map(ToString::to_string).collect();
    if problem.is_none() && capture.end.is_none() {
        remarks.push("The capture was cut off: it is read as far as it goes.".to_owned());
    }
    if arguments.measure {
        measure::add(arguments, &capture, &mut found, &mut remarks)?;
    }
    Ok((found, remarks))
}

fn of_trace(path: &Path) -> Result<(Dependencies, Vec<String>), Failure> {
    if !rank_folders(path).is_empty() {
        return Err(crate::ranks::choose(
            path,
            &rank_folders(path),
            "this command",
        ));
    }
    let opened = trace::open(path, &work::selection())?;
    let (nodes, is_all) = work::nodes(&opened.trace);
    let mut remarks = opened.remarks;
    if !is_all {
        let most = gapscope_timeline::quantity::count(work::COMMANDS_AT_MOST as u64);
        remarks.push(format!(
            "The trace has more commands: this is of the first {most}."
        ));
    }
    let reason = "a trace has only the ranges that are bound, and no memory barriers: capture a window with `gapscope capture`";
    Ok((Dependencies::without_barriers(nodes, reason), remarks))
}

fn json(found: &Dependencies) -> Result<String, Failure> {
    let text = serde_json::to_string_pretty(&found.json());
    let text = text.map_err(|error| Failure::new(format!("cannot write JSON: {error}")))?;
    Ok(text + "\n")
}
