//! `gapscope replay`.

use crate::args;
use crate::exit;
use crate::failure::Failure;
use crate::page;
use gapscope_analysis::quantity;
use gapscope_capture::model::EndReason;
use gapscope_capture::{Capture, Problem};
use gapscope_replay::{DeviceChoice, Difference, Error, Extent, Options, Replay, Schedule};
use gapscope_report::Document;
use gapscope_report::document::{Block, Text, Tone};
use serde_json::{Value, json};
use std::process::ExitCode;

/// Differences and missing things that a person wants to see.
const MOST_LINES: usize = 10;

/// Runs a capture.
pub fn run(arguments: &args::Replay) -> Result<ExitCode, Failure> {
    let (capture, problem) =
        Capture::open(&arguments.capture).map_err(|error| Failure::new(error.to_string()))?;
    if arguments.fuse {
        return crate::fusion::run(arguments, &capture, &remarks(&capture, problem.as_ref()));
    }
    let result = match gapscope_replay::replay(&capture, &options(arguments)) {
        Ok(result) => result,
        Err(error) => return refused(arguments, error),
    };
    let remarks = remarks(&capture, problem.as_ref());
    match arguments.json {
        true => page::write(&format!("{:#}\n", json_of(&result, &remarks)))?,
        false => page::print(&document(&result, &remarks), &arguments.width)?,
    }
    let is_part = arguments.until.is_some();
    Ok(match result.outputs_equal == result.outputs_compared {
        false => ExitCode::FAILURE,
        true => exit::of_reading((is_part || result.is_equal()) && problem.is_none()),
    })
}

fn options(arguments: &args::Replay) -> Options {
    Options {
        device: arguments.device.as_deref().map(DeviceChoice::of),
        schedule: match arguments.serialised {
            true => Schedule::Serialised,
            false => Schedule::AsCaptured,
        },
        extent: arguments.until.map_or(Extent::Whole, Extent::Until),
        repeat: arguments.repeat,
        warm_up: arguments.warm_up,
        trace: arguments.output.clone(),
        robust: arguments.robust,
    }
}

/// A capture that cannot be run here.
fn refused(arguments: &args::Replay, error: Error) -> Result<ExitCode, Failure> {
    if let (Error::Unfit(missing), true) = (&error, arguments.json) {
        let answer = json!({
            "dispatch_count": 0,
            "outputs_compared": 0,
            "outputs_equal": 0,
            "equal": Value::Null,
            "missing": missing,
        });
        page::write(&format!("{answer:#}\n"))?;
    }
    Err(Failure::new(error.to_string()))
}

/// What the capture itself has to say.
fn remarks(capture: &Capture, problem: Option<&Problem>) -> Vec<String> {
    let mut remarks: Vec<String> = problem
        .map(|problem| format!("{problem}."))
        .into_iter()
        .collect();
    match capture.end.as_ref().map(|end| &end.reason) {
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

fn json_of(result: &Replay, remarks: &[String]) -> Value {
    let mut value = serde_json::to_value(result).unwrap_or_default();
    if let Value::Object(object) = &mut value {
        let notes = [&result.notes, remarks].concat();
        object.insert("equal".to_owned(), json!(result.is_equal()));
        object.insert("notes".to_owned(), json!(notes));
    }
    value
}

fn document(result: &Replay, remarks: &[String]) -> Document {
    let mut blocks = vec![Block::Sentence(ran(result)), Block::Sentence(time(result))];
    blocks.push(Block::Sentence(outputs(result)));
    let shown = result.differences.iter().take(MOST_LINES);
    blocks.extend(shown.map(|difference| Block::Item(describe(difference).into())));
    for note in result.notes.iter().chain(remarks) {
        blocks.push(Block::Item(note.as_str().into()));
    }
    Document { blocks }
}

fn ran(result: &Replay) -> Text {
    let dispatches = quantity::of(result.dispatch_count, "dispatch", "dispatches");
    let submissions = quantity::of(result.submission_count, "submission", "submissions");
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

fn time(result: &Replay) -> Text {
    let shown = |ns: u64| quantity::duration(i64::try_from(ns).unwrap_or(i64::MAX));
    let Some(median) = result.median_ns else {
        return Text::new().and("Time on the device: unknown, for its queue has no timestamps.");
    };
    let mut text = Text::new()
        .and("Time on the device: ")
        .strong(shown(median));
    if let (Some(least), Some(most)) = (result.least_ns, result.most_ns)
        && result.runs_ns.len() > 1
    {
        let runs = result.runs_ns.len();
        text.push(
            Tone::Plain,
            format!(
                " (median of {runs} runs, {} to {})",
                shown(least),
                shown(most)
            ),
        );
    }
    if let Some(captured) = result.captured_ns {
        text.push(Tone::Plain, format!("; when captured {}", shown(captured)));
    }
    text.and(".")
}

fn outputs(result: &Replay) -> Text {
    let (compared, equal) = (result.outputs_compared, result.outputs_equal);
    let pieces = quantity::of(compared, "output", "outputs");
    match () {
        () if compared == 0 => Text::new().with(Tone::Warning, "No output was compared."),
        () if compared == equal => Text::new().with(
            Tone::Good,
            format!("All {pieces} of at most 64 KiB are equal, bit for bit."),
        ),
        () => {
            let different = quantity::count(compared - equal);
            Text::new().with(
                Tone::Warning,
                format!("{different} of {pieces} of at most 64 KiB differ:"),
            )
        }
    }
}

/// Where a piece differs, and what wrote it.
fn describe(difference: &Difference) -> String {
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
            "; element {} is {} and was {}",
            first.element, first.replayed, first.captured
        ));
    }
    text.push('.');
    text
}
