//! `gapscope deps`: prints which commands of a capture (GPU work that can run again) or a trace (times of GPU work)
//! depend on which, and their bytes and times.

mod document;
mod measure;
mod trace_nodes;

use crate::args::{Deps, row_limit};
use crate::failure::Failure;
use crate::{exit, page, progress, trace};
use gapscope_capture::cuda::CudaCapture;
use gapscope_capture::{AnyCapture, Capture};
use gapscope_dependencies::{Dependencies, Limits};
use gapscope_trace::rank_folders;
use std::path::Path;
use std::process::ExitCode;

/// Prints the dependencies of a capture or a trace.
pub fn run(arguments: &Deps) -> Result<ExitCode, Failure> {
    let path = &arguments.path;
    let (found, remarks) = match path.join(gapscope_capture::RECORDS).exists() {
        true => read_capture(arguments)?,
        false if arguments.measure && path.exists() => {
            return Err(failure!(
                "{} is not a capture: --measure runs the captured work, which only a capture has",
                path.display()
            ));
        }
        false => read_trace(path)?,
    };
    let text = match (arguments.json, arguments.dot) {
        (true, _) => page::json(&found.json())?,
        (_, true) => found.dot(),
        _ => {
            let top = row_limit(arguments.top);
            let terminal = page::stdout_terminal(&arguments.width);
            let name = trace::name(path);
            terminal.draw(&document::document(
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
            page::note(gapscope_companion::one_line(remark));
        }
    }
    page::write(&text)?;
    Ok(exit::after_reading(remarks.is_empty()))
}

/// Returns the dependencies of a capture, with measured times if asked for, and remarks on what could not be read.
fn read_capture(arguments: &Deps) -> Result<(Dependencies, Vec<String>), Failure> {
    let path = &arguments.path;
    let (capture, problem) = AnyCapture::open(path).map_err(|error| {
        Failure::new(crate::failure::without_os_error_numbers(&error.to_string()))
    })?;
    let mut remarks: Vec<String> = problem.iter().map(ToString::to_string).collect();
    let capture = match capture {
        AnyCapture::Vulkan(capture) => capture,
        AnyCapture::Cuda(capture) => {
            if problem.is_none() && capture.end.is_none() {
                remarks.push(CUT_OFF.to_owned());
            }
            return of_cuda(arguments, &capture, remarks);
        }
    };
    let found = of_vulkan(arguments, &capture, &mut remarks, problem.is_none())?;
    Ok((found, remarks))
}

const CUT_OFF: &str = "The capture was cut off: it is read as far as it goes.";

/// Returns the dependencies of a capture of CUDA, and remarks.
fn of_cuda(
    arguments: &Deps,
    capture: &CudaCapture,
    mut remarks: Vec<String>,
) -> Result<(Dependencies, Vec<String>), Failure> {
    if arguments.measure {
        return Err(failure!(
            "{} is a capture of CUDA: --measure runs captures of Vulkan alone; for the times of launches that run again, use `gapscope replay --json {}`",
            arguments.path.display(),
            arguments.path.display()
        ));
    }
    let (found, is_all) = Dependencies::from_cuda(capture);
    if !is_all {
        remarks.push(format!(
            "The capture has more launches: these are the first {}.",
            gapscope_timeline::quantity::count(found.graph.nodes.len() as u64)
        ));
    }
    Ok((found, remarks))
}

/// Returns the dependencies of a capture of Vulkan, with measured times if asked for, and adds remarks. `is_valid`: it was read to its
/// last line.
fn of_vulkan(
    arguments: &Deps,
    capture: &Capture,
    remarks: &mut Vec<String>,
    is_valid: bool,
) -> Result<Dependencies, Failure> {
    let count = capture.executed().count();
    let mut found = progress::while_counting("commands", count, |done| {
        Dependencies::from_capture(capture, Limits::default(), &mut |at| done(at))
    });
    if is_valid && capture.end.is_none() {
        remarks.push(CUT_OFF.to_owned());
    }
    if arguments.measure {
        measure::add(arguments, capture, &mut found, remarks)?;
    }
    Ok(found)
}

/// Returns the dependencies of a trace, which must not be of several ranks, and remarks.
fn read_trace(path: &Path) -> Result<(Dependencies, Vec<String>), Failure> {
    if !rank_folders(path).is_empty() {
        return Err(trace::choose_rank(
            path,
            &rank_folders(path),
            "this command",
        ));
    }
    let opened = trace::open(path, &trace_nodes::selection())?;
    let (nodes, is_all) = trace_nodes::nodes(&opened.trace);
    let mut remarks = opened.remarks;
    if !is_all {
        let most = gapscope_timeline::quantity::count(trace_nodes::MAX_COMMANDS as u64);
        remarks.push(format!(
            "The trace has more commands: these are the first {most}."
        ));
    }
    let reason = "a trace has only which ranges of buffers are bound, not what kernels read and write of them, and no memory barriers: capture a window with `gapscope capture`";
    Ok((Dependencies::without_barriers(nodes, reason), remarks))
}
