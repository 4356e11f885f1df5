//! `gapscope replay` for captures of CUDA.

mod bench;
mod export;
mod recorded;
mod shrink;

use super::json::{Answer, DumpedBuffer, FindNan, Ran};
use super::{MAX_LINES, describe, remarks, time};
use crate::args;
use crate::exit;
use crate::failure::Failure;
use crate::{own_captures, page, progress};
use gapscope_capture::Problem;
use gapscope_capture::cuda::{CudaCapture, CudaStep};
use gapscope_cuda_replay::{Error, Options, Replayed, Unsteady, process};
use gapscope_replay::{DeviceChoice, Extent, Schedule};
use gapscope_report::Document;
use gapscope_report::document::{Block, Text, Tone};
use gapscope_timeline::quantity;
use std::path::Path;
use std::process::ExitCode;

/// Runs a capture and prints the result.
pub fn run(
    arguments: &args::Replay,
    capture: &CudaCapture,
    problem: Option<&Problem>,
) -> Result<ExitCode, Failure> {
    refuse_options_of_vulkan(arguments)?;
    let is_launch = |step: &CudaStep| matches!(step, CudaStep::Launch(_));
    if let Some(problem) = problem.filter(|_| !capture.steps.iter().any(is_launch)) {
        return Err(failure!(
            "{} is damaged, and no launch of it can be read: {problem}",
            arguments.capture.display()
        ));
    }
    if let Some(folder) = &arguments.export {
        // Nothing of the capture runs.
        return export::run(arguments, capture, folder, problem);
    }
    if !arguments.trust && !own_captures::has(&arguments.capture) {
        return Err(Failure::new(format!(
            "{} was not captured here by you, and its code would run on the GPU: give --trust if you trust its source",
            arguments.capture.display()
        )));
    }
    if arguments.output.is_some() || arguments.profile || arguments.instructions {
        return recorded::run(arguments, capture);
    }
    if let Some(folder) = &arguments.shrink {
        return shrink::run(arguments, capture, folder, problem);
    }
    // The driver is not loaded yet, and no thread runs.
    process::with_fixed_addresses();
    if arguments.shrink_runner {
        return shrink::serve(arguments, capture);
    }
    let remarks = remarks(capture.end.as_ref(), problem);
    if let (Some((memory, launch)), Some(to)) = (&arguments.dump, &arguments.to) {
        return dump(arguments, capture, memory, *launch, to, &remarks);
    }
    if arguments.find_nan {
        return find_nan(arguments, capture, &remarks);
    }
    if arguments.bench || arguments.with.is_some() {
        return bench::run(arguments, capture, &remarks);
    }
    let options = options(arguments);
    let replayed = on_gpu("replaying", || {
        gapscope_cuda_replay::replay(capture, &options)
    })?;
    let is_part = arguments.until.is_some() || arguments.dispatch.is_some();
    let is_equal = replayed.result.is_equal();
    let status = match replayed.result.different() {
        0 => exit::after_reading((is_part || is_equal) && problem.is_none()),
        _ => ExitCode::from(exit::FAILED),
    };
    match arguments.json {
        true => page::write_json(&answer(replayed, &remarks))?,
        false => page::print(&document(&replayed, &remarks), &arguments.width)?,
    }
    Ok(status)
}

/// Refuses options that captures of Vulkan alone have.
fn refuse_options_of_vulkan(arguments: &args::Replay) -> Result<(), Failure> {
    let given = [
        (arguments.fuse, "--fuse"),
        (arguments.needed_barriers, "--needed-barriers"),
        (arguments.serialised, "--serialised"),
        (arguments.spirv_val, "--spirv-val"),
        (arguments.robust, "--robust"),
        (arguments.tolerance.is_some(), "--tolerance"),
    ];
    refuse(&given, "captures of Vulkan, and this is one of CUDA")
}

/// Refuses options that captures of CUDA alone have.
pub fn refuse_options_of_cuda(arguments: &args::Replay) -> Result<(), Failure> {
    let given = [
        (arguments.trust, "--trust"),
        (arguments.bench, "--bench"),
        (arguments.with.is_some(), "--with"),
        (arguments.export.is_some(), "--export"),
        (arguments.shrink.is_some(), "--shrink"),
        (arguments.profile, "--profile"),
        (arguments.instructions, "--instructions"),
    ];
    refuse(&given, "captures of CUDA, and this is one of Vulkan")
}

fn refuse(given: &[(bool, &str)], whose: &str) -> Result<(), Failure> {
    match given.iter().find(|(is_given, _)| *is_given) {
        Some((_, option)) => {
            let failure = Failure::new(format!("{option} is an option for {whose}"));
            Err(failure.status(exit::USAGE))
        }
        None => Ok(()),
    }
}

/// Returns the options of the replay that the command line asks for.
fn options(arguments: &args::Replay) -> Options {
    Options {
        device: arguments.device.as_deref().map(DeviceChoice::from_text),
        schedule: match arguments.tight {
            true => Schedule::Tight,
            false => Schedule::AsCaptured,
        },
        extent: arguments.until.map_or(Extent::Whole, Extent::Until),
        only: arguments.dispatch,
        repeat: arguments.runs(),
        warm_up: arguments.runs_before(),
        element: arguments.element,
    }
}

/// Does work with the GPU, and turns its errors into failures. After an address was taken the program may start again.
fn on_gpu<T: Send>(
    what: &str,
    work: impl FnOnce() -> Result<T, Error> + Send,
) -> Result<T, Failure> {
    let done = process::with_stdout_on_stderr(|| progress::while_running(what, work));
    done.map_err(|error| {
        let failure = Failure::new(error.to_string());
        match error {
            Error::Address { .. } => process::after_a_collision(),
            Error::TimeLimit { .. } => {
                // The kernel still runs, and an orderly end would wait for it.
                page::note(&failure);
                process::end_at_once(failure.status);
            }
            _ => {}
        }
        failure
    })
}

/// Returns the JSON of a capture that ran, with the remarks among its notes.
fn answer(replayed: Replayed, remarks: &[String]) -> Answer {
    let mut result = replayed.result;
    let unsteady = replayed.unsteady;
    result
        .notes
        .extend(unsteady.as_ref().map(differs_from_itself));
    result.notes.extend_from_slice(remarks);
    let equal = result.is_equal();
    Answer::Ran(Ran {
        result,
        equal,
        unsteady,
        bench: None,
        with: None,
    })
}

/// Returns the text of a capture that ran: three sentences (work, time, memory), then differences and notes.
fn document(replayed: &Replayed, remarks: &[String]) -> Document {
    let result = &replayed.result;
    let mut blocks = vec![
        Block::Sentence(ran(replayed)),
        Block::Sentence(time(result)),
    ];
    blocks.push(Block::Sentence(memory(replayed)));
    let shown = result.differences.iter().take(MAX_LINES);
    blocks.extend(shown.map(|difference| Block::Item(describe(difference).into())));
    let unsteady = replayed.unsteady.as_ref().map(differs_from_itself);
    let unsteady: Vec<String> = unsteady.into_iter().collect();
    blocks.extend(page::items(
        unsteady.iter().chain(&result.notes).chain(remarks),
    ));
    Document { blocks }
}

/// Returns the sentence about what ran, and where.
fn ran(replayed: &Replayed) -> Text {
    let result = &replayed.result;
    let launches = quantity::count_of(result.dispatch_count, "launch", "launches");
    let how = match result.schedule {
        Schedule::Tight => ", without the host in between",
        Schedule::AsCaptured | Schedule::Serialised => "",
    };
    let text = Text::new().and(format!("Ran {launches}{how} on "));
    let text = text
        .strong(&result.device)
        .and(format!(" ({})", result.driver));
    match result.device == result.captured_device {
        true => text.and("."),
        false => text.and(format!("; captured on {}.", result.captured_device)),
    }
}

/// Returns the sentence about the comparison of memory.
fn memory(replayed: &Replayed) -> Text {
    let result = &replayed.result;
    let pieces = quantity::count_of(result.outputs_compared, "piece", "pieces");
    let changed = match (result.schedule, replayed.changed) {
        (Schedule::Tight, _) => String::new(),
        (_, 0) => ", none of which changed when captured".to_owned(),
        (_, changed) => format!(
            ", {} of which changed when captured",
            quantity::count(changed)
        ),
    };
    match (result.outputs_compared, result.different()) {
        (0, _) => Text::new().with(
            Tone::Warning,
            "No memory was compared: the launches reach none.",
        ),
        (_, 0) => {
            let text =
                format!("{pieces} of memory of at most 64 KiB{changed}: equal, bit for bit.");
            Text::new().with(Tone::Good, text)
        }
        (_, different) => {
            let different = quantity::count(different);
            let text =
                format!("{different} of {pieces} of memory of at most 64 KiB{changed} differ:");
            Text::new().with(Tone::Warning, text)
        }
    }
}

/// Returns the sentence about launches that differ between their own runs.
fn differs_from_itself(unsteady: &Unsteady) -> String {
    let launches: Vec<String> = unsteady
        .launches
        .iter()
        .take(MAX_LINES)
        .map(u64::to_string)
        .collect();
    let who = match launches.as_slice() {
        [one] => format!("Launch {one} differs"),
        _ => format!("Launches {} differ", launches.join(", ")),
    };
    let itself = if launches.len() == 1 {
        "itself"
    } else {
        "themselves"
    };
    let (differing, others) = (unsteady.differing_runs, unsteady.runs - 1);
    let mut text =
        format!("{who} from {itself} in {differing} of {others} runs that followed the first");
    if let (Some(share), Some(element)) = (unsteady.relative_spread, unsteady.element) {
        text.push_str(&format!(", by at most {:.1e} of a value", share));
        if let Some(ulps) = unsteady.ulps {
            text.push_str(&format!(" ({ulps} ulp)"));
        }
        text.push_str(&format!(", read as {}", element.name()));
    }
    text.push('.');
    text
}

/// Runs a capture up to a launch and writes the content of memory to a file.
fn dump(
    arguments: &args::Replay,
    capture: &CudaCapture,
    memory: &str,
    launch: u64,
    to: &Path,
    remarks: &[String],
) -> Result<ExitCode, Failure> {
    let options = options(arguments);
    let dumped = on_gpu("replaying", || {
        gapscope_cuda_replay::dump(capture, memory, launch, to, &options)
    })?;
    if arguments.json {
        page::write_json(&DumpedBuffer {
            dumped,
            notes: remarks.to_vec(),
        })?;
        return Ok(ExitCode::SUCCESS);
    }
    let text = format!(
        "Wrote {} from {memory} on after launch {launch}, as {}, to {}.",
        quantity::bytes(dumped.bytes),
        dumped.element.name(),
        to.display()
    );
    let mut blocks = vec![Block::Sentence(text.into())];
    blocks.extend(page::items(remarks));
    page::print(&Document { blocks }, &arguments.width)?;
    Ok(ExitCode::SUCCESS)
}

/// Runs a capture launch by launch and reports the first NaN or infinite value.
fn find_nan(
    arguments: &args::Replay,
    capture: &CudaCapture,
    remarks: &[String],
) -> Result<ExitCode, Failure> {
    let options = options(arguments);
    let search = on_gpu("replaying launch by launch", || {
        gapscope_cuda_replay::find_odd_value(capture, &options)
    })?;
    let end = exit::passed(search.found.is_none());
    if arguments.json {
        page::write_json(&FindNan {
            search,
            notes: remarks.to_vec(),
        })?;
        return Ok(end);
    }
    let pieces = quantity::count_of(search.ranges, "piece", "pieces");
    let sentence = match &search.found {
        Some(found) => {
            let name = found.name.as_ref().map(|name| format!(" ({name})")).unwrap_or_default();
            Text::new()
                .and("The first was written by ")
                .strong(format!("launch {} ({})", found.dispatch, found.kernel))
                .and(format!(
                    ": {} at byte {} of memory {}{name}, as {}; {} in that piece of at most 64 KiB.",
                    found.value,
                    found.offset,
                    found.buffer,
                    found.element.name(),
                    quantity::count_of(found.count, "such value", "such values"),
                ))
        }
        None => Text::new().and(format!(
            "No launch of {} wrote a NaN or an infinity into a piece of memory that had none; {pieces} of at most 64 KiB changed.",
            quantity::count(search.dispatches),
        )),
    };
    let mut blocks = vec![Block::Sentence(sentence)];
    if search.before > 0 {
        let before = quantity::count_of(search.before, "piece", "pieces");
        let text = format!("{before} had such values before the launch that writes there.");
        blocks.push(Block::Item(text.into()));
    }
    blocks.extend(page::items(remarks));
    page::print(&Document { blocks }, &arguments.width)?;
    Ok(end)
}
