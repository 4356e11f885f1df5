//! Makes the section on the accuracy of a trace: what has times, clocks, drift (of the times of work against those of the
//! command buffers around it), losses.

use crate::document::{Block, Text, Tone};
use crate::number;
use gapscope_analysis::Findings;
use gapscope_timeline::busy::{self, DeviceBusy};
use gapscope_timeline::vocabulary::Words;
use gapscope_trace::manifest::{Api, ClockMethod, Loss, SamplingMode};

/// Says in a few words what has times, and within which error, for the head of every report: `each kernel timed, clock
/// error unknown`.
pub(crate) fn short(findings: &Findings, words: &Words) -> String {
    let timed = match findings.sampling_mode {
        SamplingMode::CommandBuffer => words.command_buffer.one,
        SamplingMode::Pass => words.pass.one,
        SamplingMode::Dispatch | SamplingMode::DispatchSerialised => words.dispatch.one,
    };
    let alone = match findings.sampling_mode {
        SamplingMode::DispatchSerialised => " alone",
        _ => "",
    };
    let error = match findings.clock_error_ns {
        Some(ns) => format!("times ±{}", number::duration(ns)),
        None => "clock error unknown".to_owned(),
    };
    format!("each {timed} timed{alone}, {error}")
}

/// Returns the losses with one for each kind: the reasons stand in the section alone.
fn by_kind(losses: &[Loss]) -> Vec<Loss> {
    let mut kinds: Vec<Loss> = Vec::new();
    for loss in losses {
        match kinds.iter_mut().find(|known| known.kind == loss.kind) {
            Some(known) => known.count = known.count.saturating_add(loss.count),
            None => kinds.push(loss.clone()),
        }
    }
    kinds
}

/// Makes the line for the first screen: what has times, the clock error, and what was lost.
pub(crate) fn first(findings: &Findings, words: &Words, remarks: &[String]) -> Vec<Block> {
    const NAMED: usize = 3;
    let mut text = Text::new().strong("Accuracy: ").and(short(findings, words));
    if findings.losses.is_empty() && findings.unread.is_empty() {
        text = text.and(", nothing lost");
    }
    text.push(Tone::Plain, ".");
    let losses = by_kind(&findings.losses);
    if !losses.is_empty() {
        let named = losses.iter().take(NAMED).map(number::loss);
        let mut named: Vec<String> = named.collect();
        if losses.len() > NAMED {
            named.push(format!("{} more", losses.len() - NAMED));
        }
        text = text
            .with(Tone::Warning, " Lost")
            .and(format!(": {}.", number::listed(&named)));
    }
    if findings.drift.violation_count > 0 {
        text = text
            .and(" ")
            .with(Tone::Warning, findings.drift.sentence.as_str());
    }
    let conditions = findings.conditions.iter().filter(|note| !note.is_usual);
    let notes = findings.notes.len() + conditions.count();
    let count = number::count_of(notes as u64, "note", "notes");
    let more = match (losses.is_empty(), notes) {
        (true, 0) => String::new(),
        // The next line says what prints all.
        (true, _) => format!(" {count}."),
        (false, 0) => " The reasons: --section accuracy.".to_owned(),
        (false, _) => format!(" The reasons and {count}: --section accuracy."),
    };
    text.push(Tone::Faint, more);
    let mut blocks = vec![Block::Apart(text)];
    // Remarks on the reading of a trace are of what is missing or damaged.
    let remarks = remarks
        .iter()
        .map(|remark| Text::new().with(Tone::Warning, remark));
    blocks.extend(remarks.map(Block::Item));
    blocks
}

/// Makes the section, which every report has. `remarks` are sentences about the reading of the trace.
pub(crate) fn blocks(findings: &Findings, words: &Words, remarks: &[String]) -> Vec<Block> {
    let mut blocks = vec![Block::Heading("Accuracy".into(), String::new())];
    let mut item = |text: Text| blocks.push(Block::Item(text));
    item(
        Text::new()
            .strong("Times: ")
            .and(times(findings.sampling_mode, words)),
    );
    for (device, name) in findings.devices.iter().zip(busy::names(&findings.devices)) {
        item(Text::new().strong("Clock: ").and(clock(device, &name)));
        for text in counted(device) {
            item(Text::new().strong("Busy time: ").and(text));
        }
        if device.lost {
            item(Text::new().with(Tone::Warning, format!("{name}: the device was lost.")));
        }
    }
    if !findings.drift.sentence.is_empty() {
        let tone = if findings.drift.violation_count > 0 {
            Tone::Warning
        } else {
            Tone::Plain
        };
        item(
            Text::new()
                .strong("Drift: ")
                .with(tone, findings.drift.sentence.as_str()),
        );
    }
    if findings.losses.is_empty() {
        let text = Text::new().strong("Losses: ");
        item(match findings.unread.is_empty() {
            true => text.with(Tone::Good, "nothing was lost."),
            false => text.and("the recording lost nothing, but not all of it can be read now."),
        });
    }
    for loss in &findings.losses {
        item(
            Text::new()
                .strong("Lost: ")
                .with(Tone::Warning, number::loss(loss))
                .and(format!(": {}", loss.reason)),
        );
    }
    for note in findings.conditions.iter().filter(|note| !note.is_usual) {
        let text = Text::new().strong("Condition: ");
        item(text.with(Tone::Warning, note.sentence.clone()));
    }
    for note in findings.notes.iter().chain(remarks) {
        item(Text::new().strong("Note: ").and(note));
    }
    blocks
}

/// Says what has times in a sampling mode. Programs that use CUDA or HIP have one mode, so that its name says nothing there.
fn times(mode: SamplingMode, words: &Words) -> String {
    let (dispatch, passes) = (words.dispatch, words.pass.many);
    let text = match mode {
        SamplingMode::CommandBuffer => format!(
            "of {}, and of no single {}",
            words.command_buffer.many, dispatch.one
        ),
        SamplingMode::Pass => format!("of {passes}, and of no single {}", dispatch.one),
        SamplingMode::Dispatch if matches!(words.api, Api::Cuda | Api::Hip) => {
            return format!("of each {}.", dispatch.one);
        }
        SamplingMode::Dispatch => format!("of each {}, without added barriers", dispatch.one),
        SamplingMode::DispatchSerialised => format!(
            "of each {}, with a barrier after it: exact for each kernel, an upper bound in sum",
            dispatch.one
        ),
    };
    format!("{text} (mode {}).", mode.as_str())
}

/// Returns a text that names the other tool that mapped the clocks, if one wrote the file, or the driver.
pub(crate) fn calibrated_by(tool: Option<&str>) -> String {
    match tool {
        Some(tool) => format!("mapped by the tool that wrote the file ({tool})"),
        None => "calibrated by the driver".to_owned(),
    }
}

/// Says how a device's times were mapped to the host's clock, and within which error.
fn clock(device: &DeviceBusy, name: &str) -> String {
    let method = match device.clock_method {
        ClockMethod::Calibrated => calibrated_by(device.clock_tool.as_deref()),
        ClockMethod::Brackets => "bounded by submissions and waits".to_owned(),
        ClockMethod::None => {
            return format!("{name}: device times could not be mapped to host times.");
        }
    };
    match device.clock_error_ns {
        Some(ns) => format!(
            "{name}: {method}; device times are within ±{} on the host's clock.",
            number::duration(ns)
        ),
        None => format!("{name}: {method}; error unknown."),
    }
}

/// Says how many command buffers are in the busy time as a whole, and how many not at all.
fn counted(device: &DeviceBusy) -> Vec<String> {
    let mut texts = Vec::new();
    let whole = match device.api {
        Api::Cuda | Api::Hip => ["graph", "graphs"],
        Api::Vulkan | Api::Metal | Api::Unknown => ["command buffer", "command buffers"],
    };
    let command_buffers = |n| number::count_of(n, "command buffer", "command buffers");
    if device.command_buffers_counted_whole > 0 {
        texts.push(format!(
            "counted from start to end, because not all inside has times: {}; an upper bound. Inside of them the device may have idled; times of single dispatches tell.",
            number::count_of(device.command_buffers_counted_whole, whole[0], whole[1])
        ));
    }
    if device.command_buffers_untimed > 0 {
        texts.push(format!(
            "not counted, because no times are known: {}.",
            command_buffers(device.command_buffers_untimed)
        ));
    }
    texts
}

#[cfg(test)]
mod tests {
    use super::*;
    use gapscope_trace::LossKind;

    #[test]
    fn a_kind_that_was_lost_for_several_reasons_is_named_once() {
        let losses = [
            Loss::new(LossKind::StackSamples, 2, "the processors were busy"),
            Loss::new(LossKind::Dispatches, 1, "the buffer was full"),
            Loss::new(LossKind::StackSamples, 36, "the timers came late"),
        ];
        let kinds = by_kind(&losses);
        let counts = kinds.iter().map(|loss| (&loss.kind, loss.count));
        let wanted = [(&LossKind::StackSamples, 38), (&LossKind::Dispatches, 1)];
        assert_eq!(counts.collect::<Vec<_>>(), wanted);
    }
}
