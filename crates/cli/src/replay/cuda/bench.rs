//! `gapscope replay --bench` and `--with`: the time of one launch, and that of another kernel in turns with it.

use super::{answer, document, on_gpu, options, refuse};
use crate::args;
use crate::exit;
use crate::failure::Failure;
use crate::page;
use crate::replay::json::Answer;
use gapscope_capture::cuda::CudaCapture;
use gapscope_cuda_replay::{Bench, Comparison, Other};
use gapscope_report::document::{Block, Text, Tone};
use gapscope_timeline::quantity;
use std::process::ExitCode;

/// Times one launch, and prints the result.
pub fn run(
    arguments: &args::Replay,
    capture: &CudaCapture,
    remarks: &[String],
) -> Result<ExitCode, Failure> {
    let given = [
        (arguments.tight, "--tight"),
        (arguments.until.is_some(), "--until"),
    ];
    refuse(&given, "replays without --bench and --with")?;
    let other = arguments.with.as_ref().map(|file| Other {
        file: file.clone(),
        name: arguments.kernel_name.clone(),
        grid: arguments.grid,
        block: arguments.block,
        shared_bytes: arguments.shared,
    });
    let options = options(arguments);
    let benched = on_gpu("timing", || {
        gapscope_cuda_replay::bench(capture, &options, other.as_ref())
    })?;
    let has_equal_outputs = benched
        .with
        .as_ref()
        .is_none_or(|with| with.outputs.differing == 0);
    let has_passed = benched.replayed.result.different() == 0 && has_equal_outputs;
    let status = match &benched.with {
        // A launch whose results were in memory already changes nothing, and says nothing of another kernel's.
        Some(with) if with.outputs.pieces == 0 && has_passed => exit::after_reading(false),
        _ => exit::passed(has_passed),
    };
    if arguments.json {
        let mut printed = answer(benched.replayed, remarks);
        if let Answer::Ran(ran) = &mut printed {
            ran.bench = Some(benched.bench);
            ran.with = benched.with;
        }
        page::write_json(&printed)?;
        return Ok(status);
    }
    let mut document = document(&benched.replayed, remarks);
    document
        .blocks
        .extend(alone(&benched.bench).map(Block::Sentence));
    if let Some(with) = &benched.with {
        document.blocks.extend(in_turns(with).map(Block::Sentence));
    }
    page::print(&document, &arguments.width)?;
    Ok(status)
}

/// Returns nanoseconds as text.
fn shown(ns: f64) -> String {
    quantity::duration(ns.round() as i64)
}

/// Returns the sentences about the time of a launch.
fn alone(bench: &Bench) -> [Text; 2] {
    let runs = quantity::count(bench.samples);
    let line = |cache: &str, median: f64, low: f64, high: f64| {
        let interval = format!(
            " ({} … {}), median of {runs} launches",
            shown(low),
            shown(high)
        );
        let text = Text::new().and(format!("With a {cache} L2 cache: "));
        text.strong(shown(median)).and(interval)
    };
    let warm = line("warm", bench.warm_ns, bench.low, bench.high);
    let clock = match bench.clock_mhz {
        Some([least, most]) if least == most => format!("; clock {least} MHz."),
        Some([least, most]) => format!("; clock {least} to {most} MHz."),
        None => "; the clock is not known.".to_owned(),
    };
    let cold = line("cold", bench.cold_ns, bench.cold_low, bench.cold_high);
    [cold.and("."), warm.and(clock)]
}

/// Returns the sentences about two kernels.
fn in_turns(with: &Comparison) -> [Text; 2] {
    let percent = |ratio: f64| format!("{:.1}", (ratio - 1.0).abs() * 100.0);
    // The interval in the order of the size of the change.
    let (near, far) = match with.ratio < 1.0 {
        true => (with.high, with.low),
        false => (with.low, with.high),
    };
    let direction = if with.ratio < 1.0 { "faster" } else { "slower" };
    let times = format!(
        ", {} instead of {}, {} turns of two launches each.",
        shown(with.other_kernel_ns),
        shown(with.captured_kernel_ns),
        quantity::count(with.turns)
    );
    let text = Text::new().and(format!("{}: ", with.kernel));
    let time = match with.differs {
        true => {
            let interval = format!(" ({} … {})", percent(near), percent(far));
            let tone = if with.ratio < 1.0 {
                Tone::Good
            } else {
                Tone::Warning
            };
            let change = format!("{} % {direction}", percent(with.ratio));
            text.with(tone, change).and(interval)
        }
        false => {
            let signed = |ratio: f64| format!("{:+.1}", (ratio - 1.0) * 100.0);
            let (low, high) = (signed(with.low), signed(with.high));
            text.and(format!("no difference was found ({low} … {high} %)"))
        }
    };
    let outputs = &with.outputs;
    let pieces = quantity::count_of(outputs.pieces, "piece", "pieces");
    let outputs = match (outputs.pieces, outputs.differing) {
        (0, _) => Text::new().with(
            Tone::Warning,
            "The launch changes no memory (its results were there already, or it has none), so that no outputs were compared: capture an earlier launch.",
        ),
        (_, 0) => Text::new().with(
            Tone::Good,
            format!("Outputs: {pieces} of memory, equal bit for bit."),
        ),
        (_, differing) => {
            let mut text = format!("Outputs: {differing} of {pieces} of memory differ");
            if let Some(bytes) = outputs.differing_bytes {
                text.push_str(&format!(", {}", quantity::count_of(bytes, "byte", "bytes")));
            }
            if let (Some(share), Some(element)) = (outputs.relative, outputs.element) {
                text.push_str(&format!(", by at most {share:.1e} of a value"));
                if let Some(ulps) = outputs.ulps {
                    text.push_str(&format!(" ({ulps} ulp)"));
                }
                text.push_str(&format!(", read as {}", element.name()));
            }
            Text::new().with(Tone::Warning, format!("{text}."))
        }
    };
    [time.and(times), outputs]
}
