//! Describes the content of a trace from its manifest and the sizes of its tables, without any analysis.

use crate::document::{Block, Column, Document, Table, Text, Tone};
use crate::section::accuracy::calibrated_by;
use crate::section::or_unknown;
use crate::{command_line, number};
use gapscope_timeline::Vocabulary;
use gapscope_trace::manifest::{Clock, ClockMethod, Device, Exit, Loss, Process, Queue};
use gapscope_trace::{Manifest, TableSize};

/// Returns a document that describes a trace, for `gapscope info`: the recording, processes, devices and queues, the
/// sizes of tables, losses and notes. `found` are losses that the manifest does not list, and `remarks` are sentences about the reading of
/// the trace.
pub fn document(
    trace: &str,
    manifest: &Manifest,
    tables: &[TableSize],
    found: Option<&Loss>,
    remarks: &[String],
) -> Document {
    let aside = format!(
        "format {}, gapscope {}",
        manifest.format_version, manifest.gapscope_version
    );
    let mut blocks = vec![Block::Title(trace.to_owned(), aside)];
    blocks.push(Block::Table(recording(manifest)));
    blocks.extend(processes(manifest));
    blocks.extend(devices(manifest, &Vocabulary::new(manifest)));
    blocks.extend(table_sizes(tables));
    blocks.push(Block::Heading("Losses and notes".into(), String::new()));
    let losses: Vec<&Loss> = manifest.losses.iter().chain(found).collect();
    if losses.is_empty() {
        let text = Text::new().with(Tone::Good, "Nothing was lost.");
        blocks.push(Block::Item(text));
    }
    for loss in losses {
        let text = Text::new().with(Tone::Warning, number::loss(loss));
        blocks.push(Block::Item(text.and(format!(": {}", loss.reason))));
    }
    for unmeasured in &manifest.unmeasured {
        let what = format!("Not measured: {}", unmeasured.what);
        let text = Text::new().faint(what);
        blocks.push(Block::Item(text.and(format!(": {}.", unmeasured.reason))));
    }
    for note in manifest.notes.iter().chain(remarks) {
        blocks.push(Block::Item(note.as_str().into()));
    }
    Document { blocks }
}

/// Returns a table of facts about the recording: command, end, length, mode, and the computer.
fn recording(manifest: &Manifest) -> Table {
    let mut table = Table::new([Column::word(""), Column::text("")]);
    let mut row = |name: &str, value: String| {
        table.row([Text::new().faint(name), value.into()]);
    };
    row("command", command_line(&manifest.command));
    row("ended", ended(manifest));
    row(
        "recorded",
        match manifest.end_ns.checked_sub(manifest.start_ns) {
            Some(ns) if ns > 0 => number::duration(ns),
            _ => "unknown".to_owned(),
        },
    );
    row("sampling", manifest.sampling_mode.as_str().to_owned());
    let host = &manifest.host;
    let known = |text: &str| {
        if text.is_empty() {
            "unknown".to_owned()
        } else {
            text.to_owned()
        }
    };
    row("system", known(&host.system));
    row(
        "processor",
        match host.cores {
            None => known(&host.processor),
            Some(cores) => format!(
                "{}, {}",
                known(&host.processor),
                number::count_of(cores.into(), "core", "cores")
            ),
        },
    );
    table
}

/// Says how the recorded program ended, and whether the trace is complete.
fn ended(manifest: &Manifest) -> String {
    let exit = match manifest.exit {
        Some(Exit::Code(code)) => format!("with exit code {code}"),
        Some(Exit::Signal(signal)) => format!("by signal {signal}"),
        None => match manifest.processes.iter().find_map(Process::other_tool) {
            Some(tool) => return format!("unknown: {tool} does not record it"),
            None => "in a way that is not known".to_owned(),
        },
    };
    if manifest.complete {
        exit
    } else {
        format!("{exit}; the trace is not complete")
    }
}

/// Returns the table of the processes that were recorded.
fn processes(manifest: &Manifest) -> Vec<Block> {
    if manifest.processes.is_empty() {
        return Vec::new();
    }
    let command = |process: &Process| match process.arguments.is_empty() {
        true => process.executable.clone(),
        false => command_line(&process.arguments),
    };
    let threads = |process: &Process| {
        let threads = manifest.threads.iter();
        threads
            .filter(|thread| thread.process == process.id)
            .count() as u64
    };
    Table::with_rows(&manifest.processes)
        .number("process", |process| process.pid.to_string())
        .number("parent", |process| {
            or_unknown(process.parent_pid, |pid| pid.to_string())
        })
        .spare(2)
        .number("threads", |process| number::count(threads(process)))
        .word("hook", |process| process.hook.as_str())
        .word("end", |process| {
            match (process.end_ns, process.other_tool()) {
                (Some(_), _) => "orderly".into(),
                (None, None) => "cut off".into(),
                (None, Some(_)) => Text::new().faint("unknown"),
            }
        })
        .spare(1)
        .name("command", command)
        .under("Processes", "")
}

/// Returns a section for each device, with its queues.
fn devices(manifest: &Manifest, names: &Vocabulary) -> Vec<Block> {
    let mut blocks = Vec::new();
    for device in &manifest.devices {
        let aside = match device.driver.as_str() {
            "" => device.api.to_string(),
            driver => format!("{}, {driver}", device.api),
        };
        let of_device = |process: &&Process| process.id == device.process;
        let process = manifest.processes.iter().find(of_device);
        let tool = process.and_then(Process::other_tool);
        blocks.push(Block::Heading(device.name.clone(), aside));
        blocks.push(Block::Table(device_facts(device, tool, names)));
        let queues = manifest.queues.iter().filter(|q| q.device == device.id);
        let queues: Vec<&Queue> = queues.collect();
        if queues.is_empty() {
            continue;
        }
        let table = Table::with_rows(&queues)
            .name(names.words().queue.one, |queue| names.queue(queue.id))
            .number("id", |queue| queue.id.to_string())
            .number("family", |queue| queue.family.to_string())
            .number("index", |queue| queue.index.to_string())
            .number("timestamp bits", |queue| match queue.timestamp_bits {
                0 => Text::new().with(Tone::Warning, "none"),
                bits => bits.to_string().into(),
            })
            .word("capabilities", |queue| {
                match queue.capabilities.as_slice() {
                    [] => Text::new().faint("unknown"),
                    known => known.join(" ").into(),
                }
            });
        blocks.push(Block::Table(table.build()));
    }
    blocks
}

/// Returns a table of facts about a device; `tool` is the other tool that wrote the file, if one did.
fn device_facts(device: &Device, tool: Option<&str>, names: &Vocabulary) -> Table {
    let mut table = Table::new([Column::word(""), Column::text("")]);
    let mut row = |name: &str, value: Text| {
        table.row([Text::new().faint(name), value]);
    };
    row("clock", clock(&device.clock, tool).into());
    // Imported traces do not say how their clock was mapped.
    if device.clock.method != ClockMethod::None && device.clock.samples > 0 {
        row("", clock_rate(&device.clock).into());
    }
    if !device.heaps.is_empty() {
        let heaps: Vec<_> = device.heaps.iter().map(|b| number::bytes(*b)).collect();
        row("memory heaps", heaps.join(", ").into());
    }
    row("used by", names.process(device.process).into());
    if device.lost {
        row("state", Text::new().with(Tone::Warning, "lost"));
    }
    table
}

/// Says how device times were mapped to the host's clock, and with which error.
fn clock(clock: &Clock, tool: Option<&str>) -> String {
    let method = match clock.method {
        ClockMethod::Calibrated => calibrated_by(tool),
        ClockMethod::Brackets => "bounded by submissions and waits".to_owned(),
        ClockMethod::None => return "not mapped to the host's clock".to_owned(),
    };
    let error = match clock.error_ns {
        Some(ns) => format!("error at most {}", number::duration(ns)),
        None => "error unknown".to_owned(),
    };
    format!("{method}, {error}")
}

/// Says how often the clocks were compared, and how they drift.
fn clock_rate(clock: &Clock) -> String {
    let drift = match clock.drift_ppm {
        Some(ppm) => format!(", drift {ppm:.2} ppm"),
        None => String::new(),
    };
    let samples = number::count_of(clock.samples.into(), "sample", "samples");
    format!("{samples}{drift}, {} ns a tick", clock.nanoseconds_per_tick)
}

/// Returns the table of the trace's tables with their rows and bytes.
fn table_sizes(sizes: &[TableSize]) -> Vec<Block> {
    if sizes.is_empty() {
        return Vec::new();
    }
    let all = sizes.iter().map(|size| size.bytes).sum();
    Table::with_rows(sizes)
        .text("table", |size| size.table)
        .number("rows", |size| match size.rows {
            Some(rows) => number::count(rows).into(),
            None => Text::new().with(Tone::Warning, "unreadable"),
        })
        .number("size", |size| number::bytes(size.bytes))
        .number("a row", |size| match size.rows {
            Some(0) | None => String::new(),
            Some(rows) => format!("{:.1} B", size.bytes as f64 / rows as f64),
        })
        .under("Tables", number::bytes(all))
}
