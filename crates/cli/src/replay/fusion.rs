//! `gapscope replay --fuse`: merges chains of dispatches (the second works on what the first wrote, element by
//! element) of a capture into single kernels, runs all forms and prints their times.

use super::json::Fused;
use crate::args;
use crate::exit;
use crate::failure::Failure;
use crate::{page, progress};
use gapscope_capture::Capture;
use gapscope_device_peaks::Copier;
use gapscope_fusion::{ChainReport, Difference, FormReport, FuseOptions, Fusion, fuse};
use gapscope_replay::DeviceChoice;
use gapscope_report::Document;
use gapscope_report::document::{Block, Text};
use gapscope_timeline::quantity;
use std::process::ExitCode;

/// The maximum number of chains, and of refusals, that are listed; the others are counted.
const MAX_LINES: usize = 10;

/// Merges chains of a capture and times them.
pub fn run(
    arguments: &args::Replay,
    capture: &Capture,
    remarks: &[String],
) -> Result<ExitCode, Failure> {
    let options = FuseOptions {
        device: arguments.device.as_deref().map(DeviceChoice::from_text),
        robust: arguments.robust,
        repeat: arguments.runs(),
    };
    let bar = progress::line();
    let result = fuse(capture, &options, &mut |doing| {
        bar.set_message(format!("{doing} …"))
    });
    bar.finish_and_clear();
    let mut fusion = result.map_err(|error| Failure::new(error.to_string()))?;
    fusion.notes.extend(remarks.iter().cloned());
    let status = exit::passed(fusion.is_exact());
    match arguments.json {
        true => page::write_json(&Fused { fusion })?,
        false => page::print(&document(&fusion), &arguments.width)?,
    }
    Ok(status)
}

/// Returns the text of the result: the chains (dispatches that can be one), the pairs that cannot, and the times of
/// the window in its three forms.
fn document(fusion: &Fusion) -> Document {
    let mut blocks = vec![Block::Sentence(heading(fusion))];
    for chain in fusion.chains.iter().take(MAX_LINES) {
        blocks.push(Block::Item(describe_chain(chain).into()));
    }
    push_rest(&mut blocks, fusion.chains.len(), "chain", "chains");
    if !fusion.refused.is_empty() {
        let pairs = quantity::count_of(fusion.refused.len() as u64, "pair", "pairs");
        let text = format!("{pairs} of neighbours stay apart:");
        blocks.push(Block::Sentence(Text::new().and(text)));
    }
    for refused in fusion.refused.iter().take(MAX_LINES) {
        let ([a, b], [from, to]) = (refused.dispatches, &refused.kernels);
        let text = format!("dispatch {a} ({from}) and {b} ({to}): {}.", refused.reason);
        blocks.push(Block::Item(text.into()));
    }
    push_rest(&mut blocks, fusion.refused.len(), "pair", "pairs");
    if fusion.chains.is_empty() {
        return Document { blocks };
    }
    blocks.push(Block::Sentence(
        Text::new().and("Time of the window on the device:"),
    ));
    let forms = [
        ("as captured", Some(&fusion.captured)),
        ("merged, intermediates stored", fusion.stored.as_ref()),
        ("merged, values in registers", fusion.forwarded.as_ref()),
    ];
    for (name, form) in forms {
        if let Some(form) = form {
            blocks.push(Block::Item(
                format!("{name}: {}.", describe_form(form)).into(),
            ));
        }
    }
    if let Some(predicted) = fusion.predicted_ns {
        let text = Text::new().and("Predicted for the shortest run with values in registers: ");
        blocks.push(Block::Item(
            text.strong(duration(predicted as f64)).and("."),
        ));
    }
    for of in &fusion.bandwidth {
        let text = format!(
            "{} {} a second, read and written, from one buffer of {} to another.",
            match of.by {
                Copier::Command => "Copies move",
                Copier::Kernel => "A copying kernel moves",
            },
            quantity::bytes(of.bytes_per_s as u64),
            quantity::bytes(of.buffer_bytes)
        );
        blocks.push(Block::Item(text.into()));
    }
    blocks.extend(page::items(&fusion.notes));
    Document { blocks }
}

fn heading(fusion: &Fusion) -> Text {
    let chains = quantity::count_of(fusion.chains.len() as u64, "chain", "chains");
    Text::new()
        .and(format!("Found {chains} that can be merged, on "))
        .strong(&fusion.device)
        .and(format!(" ({}).", fusion.driver))
}

/// Appends how many of `all` items are not listed, if any.
fn push_rest(blocks: &mut Vec<Block>, all: usize, one: &str, many: &str) {
    if let Some(more @ 1..) = all.checked_sub(MAX_LINES) {
        let text = format!("and {}.", quantity::count_of(more as u64, one, many));
        blocks.push(Block::Item(text.into()));
    }
}

/// Returns a sentence about a chain: its dispatches, the bytes between them, and what merging them saves.
fn describe_chain(chain: &ChainReport) -> String {
    let numbers: Vec<String> = chain.dispatches.iter().map(ToString::to_string).collect();
    let mut text = format!(
        "dispatches {} ({}): {} between them",
        numbers.join(", "),
        chain.kernels.join(", "),
        quantity::bytes(chain.intermediate_bytes)
    );
    let saved = chain.bytes_not_stored + chain.bytes_not_loaded;
    match (&chain.not_stored, &chain.not_forwarded) {
        (Some(refusal), _) => text.push_str(&format!("; not merged: {refusal}")),
        (None, Some(refusal)) => text.push_str(&format!("; values are not forwarded: {refusal}")),
        (None, None) => text.push_str(&format!("; {} saved", quantity::bytes(saved))),
    }
    if let Some(costs) = &chain.costs {
        text.push_str(&format!(
            "; {} apart, {} predicted",
            duration(costs.apart_ns),
            duration(costs.predicted_ns)
        ));
        if let Some(merged) = costs.merged_ns {
            text.push_str(&format!(", {} measured", duration(merged)));
        }
    }
    text.push('.');
    text
}

/// Returns the time of a form of the window, and how many of its outputs equal the program's.
fn describe_form(form: &FormReport) -> String {
    let mut text = match form.median_ns {
        Some(median) => duration(median as f64),
        None => "unknown, because its queue has no timestamps".to_owned(),
    };
    if let (Some(least), Some(most)) = (form.least_ns, form.most_ns)
        && form.runs_ns.len() > 1
    {
        let runs = form.runs_ns.len();
        let (least, most) = (duration(least as f64), duration(most as f64));
        text.push_str(&format!(" (median of {runs} runs, {least} to {most})"));
    }
    let (compared, equal) = (form.outputs_compared, form.outputs_equal);
    text.push_str(&match equal == compared {
        true => format!(
            "; all {} equal the program's",
            quantity::count_of(compared, "output", "outputs")
        ),
        false => format!("; {equal} of {compared} outputs equal the program's"),
    });
    if form.outputs_left_out > 0 {
        text.push_str(&format!(
            ", {} not stored and not compared",
            form.outputs_left_out
        ));
    }
    if let Some(difference) = form.difference.filter(|of| of.different > 0) {
        text.push_str(&format!(", {}", describe_difference(&difference)));
    }
    text
}

/// Returns the text for numbers that differ; an ulp is the distance of neighbouring floating-point numbers.
fn describe_difference(difference: &Difference) -> String {
    let Difference {
        elements,
        different,
        absolute,
        ulp,
        not_finite,
    } = difference;
    let mut text = format!(
        "{different} of {elements} numbers differ, as f32 by at most {absolute:.3e} and {ulp} ulp"
    );
    if *not_finite > 0 {
        text.push_str(&format!(", {not_finite} not finite"));
    }
    text
}

fn duration(ns: f64) -> String {
    quantity::duration(ns as i64)
}
