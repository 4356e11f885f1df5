//! `gapscope replay`: runs a capture on a device and compares its outputs with the program's, or runs another form
//! of it.

mod cuda;
mod fusion;
pub mod json;
mod needed_barriers;

use crate::args;
use crate::exit;
use crate::failure::Failure;
use crate::{page, progress, spirv_val};
use gapscope_capture::model::{End, EndReason};
use gapscope_capture::{AnyCapture, Capture, Problem};
use gapscope_replay::{DeviceChoice, Difference, Error, Extent, Options, Replay, Schedule};
use gapscope_report::Document;
use gapscope_report::document::{Block, Text, Tone};
use gapscope_timeline::quantity;
use json::{Answer, CannotRun, DumpedBuffer, FindNan, Ran};
use std::path::Path;
use std::process::ExitCode;

/// The maximum number of differences, and of missing features, that are listed; the others are counted.
pub const MAX_LINES: usize = 10;

/// Runs a capture and prints the result.
pub fn run(arguments: &args::Replay) -> Result<ExitCode, Failure> {
    let opened = AnyCapture::open(&arguments.capture);
    let (capture, problem) = opened.map_err(|error| Failure::new(error.to_string()))?;
    match capture {
        AnyCapture::Vulkan(capture) => run_vulkan(arguments, &capture, problem.as_ref()),
        AnyCapture::Cuda(capture) => cuda::run(arguments, &capture, problem.as_ref()),
    }
}

/// Runs a capture of Vulkan and prints the result.
fn run_vulkan(
    arguments: &args::Replay,
    capture: &Capture,
    problem: Option<&Problem>,
) -> Result<ExitCode, Failure> {
    cuda::refuse_options_of_cuda(arguments)?;
    let remarks = remarks(capture.end.as_ref(), problem);
    if arguments.spirv_val {
        spirv_val::check(capture)?;
    }
    if let (Some((buffer, dispatch)), Some(to)) = (&arguments.dump, &arguments.to) {
        return dump(arguments, capture, buffer, *dispatch, to, &remarks);
    }
    if arguments.find_nan {
        return find_nan(arguments, capture, &remarks);
    }
    if arguments.fuse {
        return fusion::run(arguments, capture, &remarks);
    }
    if arguments.needed_barriers {
        let is_whole = problem.is_none();
        return needed_barriers::run(arguments, capture, &remarks, is_whole);
    }
    let options = options(arguments);
    let result =
        match progress::while_running("replaying", || gapscope_replay::replay(capture, &options)) {
            Ok(result) => result,
            Err(error) => return refused(arguments, error),
        };
    let is_part = arguments.until.is_some() || arguments.dispatch.is_some();
    let status = match result.different() {
        0 => exit::after_reading((is_part || result.is_equal()) && problem.is_none()),
        _ => ExitCode::from(exit::FAILED),
    };
    match arguments.json {
        true => page::write_json(&answer(result, &remarks))?,
        false => page::print(&document(&result, &remarks), &arguments.width)?,
    }
    Ok(status)
}

/// Returns the options of the replay that the command line asks for.
pub fn options(arguments: &args::Replay) -> Options {
    Options {
        device: arguments.device.as_deref().map(DeviceChoice::from_text),
        schedule: match (arguments.serialised, arguments.tight) {
            (true, _) => Schedule::Serialised,
            (false, true) => Schedule::Tight,
            (false, false) => Schedule::AsCaptured,
        },
        extent: arguments.until.map_or(Extent::Whole, Extent::Until),
        repeat: arguments.runs(),
        warm_up: arguments.runs_before(),
        trace: arguments.output.clone(),
        only: arguments.dispatch,
        tolerance: arguments.tolerance,
        robust: arguments.robust,
    }
}

/// Runs a capture up to a dispatch and writes the content of a buffer to a file.
fn dump(
    arguments: &args::Replay,
    capture: &Capture,
    buffer: &str,
    dispatch: u64,
    to: &Path,
    remarks: &[String],
) -> Result<ExitCode, Failure> {
    let options = options(arguments);
    let dumped = progress::while_running("replaying", || {
        gapscope_replay::dump(capture, buffer, dispatch, arguments.element, to, &options)
    });
    let dumped = dumped.map_err(|error| Failure::new(error.to_string()))?;
    if arguments.json {
        page::write_json(&DumpedBuffer {
            dumped,
            notes: remarks.to_vec(),
        })?;
        return Ok(ExitCode::SUCCESS);
    }
    let untouched = dumped.bytes - dumped.touched_bytes;
    let mut text = format!(
        "Wrote {} of buffer {} after dispatch {dispatch}, as {}, to {}",
        quantity::bytes(dumped.bytes),
        dumped.buffer,
        dumped.element.name(),
        to.display()
    );
    if untouched > 0 {
        let untouched = quantity::bytes(untouched);
        text.push_str(&format!(
            "; {untouched} of it is not in the capture and is zero in the file"
        ));
    }
    let mut blocks = vec![Block::Sentence(format!("{text}.").into())];
    blocks.extend(page::items(remarks));
    page::print(&Document { blocks }, &arguments.width)?;
    Ok(ExitCode::SUCCESS)
}

/// Runs a capture dispatch by dispatch and reports the first NaN or infinite value.
fn find_nan(
    arguments: &args::Replay,
    capture: &Capture,
    remarks: &[String],
) -> Result<ExitCode, Failure> {
    let options = options(arguments);
    let search = progress::while_running("replaying dispatch by dispatch", || {
        gapscope_replay::find_odd_value(capture, arguments.element, &options)
    });
    let search = search.map_err(|error| Failure::new(error.to_string()))?;
    let end = exit::passed(search.found.is_none());
    if arguments.json {
        page::write_json(&FindNan {
            search,
            notes: remarks.to_vec(),
        })?;
        return Ok(end);
    }
    let sentence = match &search.found {
        Some(found) => {
            let name = found.name.as_ref().map(|name| format!(" ({name})")).unwrap_or_default();
            Text::new()
                .and("The first was written by ")
                .strong(format!("dispatch {} ({})", found.dispatch, found.kernel))
                .and(format!(
                    ": {} at byte {} of buffer {}{name} (set {}, binding {}), as {}; {} in that range.",
                    found.value,
                    found.offset,
                    found.buffer,
                    found.set,
                    found.binding,
                    found.element.name(),
                    quantity::count_of(found.count, "such value", "such values"),
                ))
        }
        None => Text::new().and(format!(
            "No dispatch of {} wrote a NaN or an infinity into a range that had none; {} looked at.",
            quantity::count(search.dispatches),
            quantity::count_of(search.ranges, "range was", "ranges were"),
        )),
    };
    let mut blocks = vec![Block::Sentence(sentence)];
    if search.unexamined > 0 {
        let ranges = quantity::count_of(search.unexamined, "range was", "ranges were");
        blocks.push(Block::Item(
            format!("{ranges} not looked at: the kernel declares no array of numbers there; --type tells what they are.").into(),
        ));
    }
    if search.before > 0 {
        let ranges = quantity::count_of(search.before, "range", "ranges");
        blocks.push(Block::Item(
            format!("{ranges} had such values before the dispatch that writes there.").into(),
        ));
    }
    blocks.extend(page::items(remarks));
    page::print(&Document { blocks }, &arguments.width)?;
    Ok(end)
}

/// Returns the failure of a capture that cannot be run here. With `--json`, the missing features are printed first.
pub fn refused(arguments: &args::Replay, error: Error) -> Result<ExitCode, Failure> {
    if let (Error::Unfit(missing), true) = (&error, arguments.json) {
        page::write_json(&Answer::Unfit(CannotRun {
            missing: missing.clone(),
            ..CannotRun::default()
        }))?;
    }
    Err(Failure::new(error.to_string()))
}

/// Returns sentences about the way in which the capture ended; none if its window is complete.
fn remarks(end: Option<&End>, problem: Option<&Problem>) -> Vec<String> {
    let mut remarks: Vec<String> = problem
        .map(|problem| format!("{problem}."))
        .into_iter()
        .collect();
    match end.map(|end| &end.reason) {
        None if problem.is_none() => {
            remarks.push("The capture was cut off: it has no end.".to_owned())
        }
        None | Some(EndReason::Complete) => {}
        Some(EndReason::ProgramEnded) => {
            remarks.push("The program ended before the window did.".to_owned())
        }
        Some(EndReason::Refused(reason)) => {
            remarks.push(format!("The window ended early: {reason}."))
        }
        Some(EndReason::Failed(reason)) => remarks.push(format!("Capturing failed: {reason}.")),
    }
    remarks
}

/// Returns the JSON of a capture that ran, with the remarks among its notes.
fn answer(mut result: Replay, remarks: &[String]) -> Answer {
    result.notes.extend_from_slice(remarks);
    let equal = result.is_equal();
    Answer::Ran(Ran {
        result,
        equal,
        unsteady: None,
        bench: None,
        with: None,
    })
}

/// Returns the text of a capture that ran: three sentences (work, time, outputs), then differences and notes.
fn document(result: &Replay, remarks: &[String]) -> Document {
    let mut blocks = vec![Block::Sentence(ran(result)), Block::Sentence(time(result))];
    blocks.push(Block::Sentence(outputs(result)));
    let shown = result.differences.iter().take(MAX_LINES);
    blocks.extend(shown.map(|difference| Block::Item(describe(difference).into())));
    blocks.extend(page::items(result.notes.iter().chain(remarks)));
    Document { blocks }
}

/// Returns the sentence about what ran, and where.
fn ran(result: &Replay) -> Text {
    let dispatches = quantity::count_of(result.dispatch_count, "dispatch", "dispatches");
    let submissions = quantity::count_of(result.submission_count, "submission", "submissions");
    let how = match result.schedule {
        Schedule::AsCaptured => "",
        Schedule::Serialised => ", a barrier after each",
        Schedule::Tight => ", without the host in between",
    };
    let text = Text::new().and(format!("Ran {dispatches} in {submissions}{how} on "));
    let text = text
        .strong(&result.device)
        .and(format!(" ({})", result.driver));
    match result.same_device {
        true => text.and("."),
        false => text.and(format!("; captured on {}.", result.captured_device)),
    }
}

/// Returns the sentence about the time on the device.
fn time(result: &Replay) -> Text {
    let shown = |ns: u64| quantity::duration(i64::try_from(ns).unwrap_or(i64::MAX));
    let Some(median) = result.median_ns else {
        return Text::new()
            .and("Time on the device: unknown, because its queue has no timestamps.");
    };
    let mut text = Text::new()
        .and("Time on the device: ")
        .strong(shown(median));
    if let (Some(least), Some(most)) = (result.least_ns, result.most_ns)
        && result.runs_ns.len() > 1
    {
        let runs = result.runs_ns.len();
        let (least, most) = (shown(least), shown(most));
        text = text.and(format!(" (median of {runs} runs, {least} to {most})"));
    }
    if let Some(captured) = result.captured_ns {
        text = text.and(format!("; when captured {}", shown(captured)));
    }
    if let Some(calls) = result.captured_calls_ns
        && result.schedule == Schedule::Tight
    {
        let calls = shown(calls);
        text = text.and(format!(
            " on the device, and {calls} from the first call to the last, capturing included"
        ));
    }
    text = text.and(".");
    if let Some(writes) = result.host_writes_ns.filter(|ns| *ns > 0) {
        let writes = shown(writes);
        text = text.and(format!(
            " {writes} of it went to copies that replace the host's writes."
        ));
    }
    text
}

/// Returns the sentence about the comparison of outputs.
fn outputs(result: &Replay) -> Text {
    let pieces = quantity::count_of(result.outputs_compared, "output", "outputs");
    let within = match result.outputs_within {
        0 => String::new(),
        within => format!(", {} of them within the tolerance", quantity::count(within)),
    };
    match (result.outputs_compared, result.different()) {
        (0, _) => Text::new().with(Tone::Warning, "No output was compared."),
        (_, 0) => {
            let how = if within.is_empty() {
                ", bit for bit"
            } else {
                &within
            };
            let text = format!("{pieces} of at most 64 KiB: equal{how}.");
            Text::new().with(Tone::Good, text)
        }
        (_, different) => {
            let different = quantity::count(different);
            let text = format!("{different} of {pieces} of at most 64 KiB differ{within}:");
            Text::new().with(Tone::Warning, text)
        }
    }
}

/// Returns a sentence about the place at which a piece of memory differs, and the command that wrote it.
pub fn describe(difference: &Difference) -> String {
    let Difference {
        offset,
        bytes,
        memory,
        ..
    } = difference;
    let mut text = match difference.buffers.as_slice() {
        [] => format!("memory {memory}, {bytes} bytes from byte {offset} on"),
        buffers => {
            let each = buffers.iter().map(|part| {
                let name = part
                    .name
                    .as_ref()
                    .map(|name| format!(" ({name})"))
                    .unwrap_or_default();
                format!(
                    "buffer {}{name}, {bytes} bytes from byte {} on",
                    part.buffer, part.offset
                )
            });
            each.collect::<Vec<_>>().join(", which is ")
        }
    };
    if let Some(submission) = difference.submission {
        text.push_str(&format!(", after submission {submission}"));
    }
    let writers = difference
        .writers
        .iter()
        .map(|writer| match writer.dispatch {
            Some(number) => format!("dispatch {number} ({})", writer.what),
            None => format!("a {}", writer.what),
        });
    let writers: Vec<_> = writers.collect();
    if !writers.is_empty() {
        text.push_str(&format!("; written by {}", writers.join(", ")));
    }
    if let Some(first) = &difference.first {
        text.push_str(&format!(
            "; {} {} is {} and was {}",
            first.kind.name(),
            first.element,
            first.replayed,
            first.captured
        ));
    }
    text.push('.');
    text
}
