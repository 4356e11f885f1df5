//! Imports Perfetto's protobuf traces, which its tools, Android, rocprofv3 and gapscope itself write.
//!
//! A file is a list of packets. A *sequence* is the packets of one writer, such as a thread; a *track* is a line of
//! a timeline, and its intervals are *slices*; *interned data* are texts that a sequence writes once and then names
//! by a number.
//!
//! A file is read twice, because clocks, tracks, processes and submissions may come after the packets that refer to
//! them.
//!
//! | in the file | in the trace |
//! |---|---|
//! | render stages (`GpuRenderStageEvent`): with a kernel or a launch, or of a compute queue | dispatches |
//! | … with the names that profilers give copies and fills | transfers |
//! | … all others | opaque work with the stage's name as its label |
//! | `command_buffer_handle` with `submission_id` | command buffers, from the first of their work to the last |
//! | `vkQueueSubmit`; calls that `gpu_correlation` or a flow leads from | submissions |
//! | slices of threads: functions of CUDA, HIP and Vulkan | host calls |
//! | slices of threads and processes: all others | markers, in their nesting |
//! | slices of GPUs: by category (`kernel`, `gpu_memcpy`, `kernel_dispatch`, …) or by the track's name | dispatches, transfers |
//! | counters of GPUs and of tracks; memory totals; clocks | counters |
//! | allocations of Vulkan's device memory | memory |
//!
//! **Traps.** Ids are valid in one sequence only, until its state is cleared, and are invalid after packets were
//! lost. The time of a packet may be on any clock, or relative to the packet before. Values of counters apply to the
//! time before them unless stated otherwise. Several sequences may write a track, and their packets are unordered.

mod build;
mod clocks;
mod counters;
mod first_pass;
mod packets;
mod sequence;
mod slices;
mod stages;
mod track_event;
mod work;
mod works;

use crate::error::only_file;
use crate::inventory::Inventory;
use crate::protobuf::{Message, Value};
use crate::{Error, Importer, Options, Output, counted};
use build::Builder;
use clocks::{ClockId, MONOTONIC};
use counters::GpuCounters;
use first_pass::FirstPass;
use gapscope_timeline_builder::rows;
use gapscope_trace::LossKind;
use gapscope_trace::tables::{Marker, MarkerScope};
use packets::Damage;
use sequence::{CLOCK_SNAPSHOT, Header, Sequences};
use slices::Slices;
use stages::OldSpecifications;
use std::io::{BufRead, BufReader, Read};
use std::path::{Path, PathBuf};

/// Imports Perfetto's traces.
pub const IMPORTER: Importer = Importer {
    name: "Perfetto",
    reads: "Perfetto traces (protobuf)",
    recognises,
    read,
    joins_named_ranks: false,
};

/// The number of bytes at the start of a file by which the file is recognised.
const FIRST_BYTES: u64 = 1 << 16;

/// Returns whether the first bytes of a file are packets.
fn recognises(path: &Path) -> bool {
    first_bytes(path).is_some_and(|bytes| packets::recognises(&bytes))
}

/// Returns at most [`FIRST_BYTES`] of the start of a file, decompressed if the whole file is compressed; `None` if
/// the path is no file that can be read.
pub(crate) fn first_bytes(path: &Path) -> Option<Vec<u8>> {
    if !path.is_file() {
        return None;
    }
    let mut file = BufReader::new(std::fs::File::open(path).ok()?);
    let gzip = file.fill_buf().ok()?.starts_with(&crate::GZIP);
    let mut bytes = Vec::new();
    // The readable start of a damaged file may suffice.
    let _ = match gzip {
        true => flate2::bufread::MultiGzDecoder::new(file)
            .take(FIRST_BYTES)
            .read_to_end(&mut bytes),
        false => file.take(FIRST_BYTES).read_to_end(&mut bytes),
    };
    Some(bytes)
}

/// Reads a file twice: first with [`FirstPass`], then with [`Events`], which writes the rows.
fn read(inputs: &[PathBuf], options: &Options, output: &mut Output) -> Result<(), Error> {
    let path = only_file(inputs, "trace of Perfetto")?;
    let size = packets::size(path);
    let mut inventory = Inventory::new("Perfetto");
    let mut first_pass = FirstPass::default();
    let damage = {
        let mut progress = every_mebibyte(|at| output.progress(at / 2, size));
        packets::read(path, &mut progress, &mut |packet| {
            first_pass.add(packet);
            Ok(())
        })?
    };
    first_pass.complete(&mut inventory);
    note_damage(&damage, size, &mut inventory);
    let start = first_pass.clocks.since_1970();
    let clock = first_pass.clocks.trace_clock();
    let trace = output.trace()?;
    let mut events = Events {
        builder: Builder::new(first_pass, inventory, trace, options.pid),
        sequences: Sequences::default(),
        slices: Slices::default(),
        counters: GpuCounters::default(),
        old: OldSpecifications::default(),
        ftrace: 0,
        ignored: 0,
    };
    {
        let mut progress =
            every_mebibyte(|at| output.progress((size / 2).saturating_add(at / 2), size));
        packets::read(path, &mut progress, &mut |packet| {
            events.add(packet);
            events.builder.trace.flush()
        })?;
    }
    let Events {
        mut builder,
        mut slices,
        counters,
        ftrace,
        ignored,
        ..
    } = events;
    slices.complete(&mut builder);
    counters.complete(&mut builder)?;
    let has_work = !builder.works.is_empty();
    builder.complete()?;
    let Builder {
        mut inventory,
        trace,
        ..
    } = builder;
    if inventory.span_ns().is_none() && !has_work {
        let path = path.display();
        return Err(Error::nothing(match options.pid {
            Some(pid) => format!("{path} has no GPU work or track events of process {pid}"),
            None => format!(
                "{path} has no GPU work, track events or counters that gapscope reads: record with a data source that has render stages or with a profiler that writes track events"
            ),
        }));
    }
    inventory.lose(
        "packets of ftrace",
        ftrace,
        "what the kernel traced is not read: its scheduler, its events of GPUs and the call stacks beside them",
    );
    inventory.lose(
        "packets",
        ignored,
        "they are of kinds that are not imported, such as logs and stacks",
    );
    if clock != MONOTONIC {
        inventory.note(format!(
            "Times are of the clock that the file's times are of, {}.",
            clock.name()
        ));
    }
    inventory.note("Perfetto does not say how well times of the GPU agree with those of the host.");
    // The trace's clock is related to Unix time only at the snapshot.
    if let Some((at_ns, unix_ns)) = start {
        inventory.manifest.start_ns = at_ns;
        inventory.manifest.start_unix_ns = Some(unix_ns);
    }
    inventory.finish(trace, options, output)
}

/// Returns a callback for numbers of bytes that calls `say` once per mebibyte.
fn every_mebibyte(mut say: impl FnMut(u64)) -> impl FnMut(u64) {
    let mut next = 0;
    move |at| {
        if at >= next {
            next = at + (1 << 20);
            say(at);
        }
    }
}

/// Adds the damage of the file to losses and notes.
fn note_damage(damage: &Damage, size: u64, inventory: &mut Inventory) {
    if let Some(at) = damage.cut_at {
        let reason = format!(
            "the file is cut or damaged there; {} of it were read",
            counted::share(at, size)
        );
        inventory.losses.add(LossKind::FileRests, 1, reason);
    }
    let reason = "they are longer than any tool writes";
    inventory.lose("packets", damage.too_long, reason);
    let reason = "they cannot be decompressed to their end";
    inventory.lose("bundles of compressed packets", damage.compressed, reason);
    let reason = "they are malformed";
    inventory.lose(LossKind::Records, damage.torn, reason);
}

/// The second pass over the file, which reads the events.
struct Events {
    builder: Builder,
    sequences: Sequences,
    slices: Slices,
    counters: GpuCounters,
    /// The names of stages and queues in old files.
    old: OldSpecifications,
    /// The number of packets of the kernel's tracer (ftrace), which are not imported.
    ftrace: u64,
    /// The number of other packets that are not imported.
    ignored: u64,
}

impl Events {
    /// Reads a packet: its state of the sequence, its time and its events. The numbers are those of TracePacket's
    /// fields.
    fn add(&mut self, packet: Message) {
        let header = self.sequences.advance(packet);
        if header.follows_loss {
            self.builder.inventory.lose(
                "runs of packets",
                1,
                "Perfetto's buffers were full when they were written",
            );
        }
        if header.undecodable {
            self.builder.inventory.lose(
                "packets",
                1,
                "what they refer to was in packets that are lost",
            );
            return;
        }
        // The time is decoded once, because it may be relative to the preceding packet.
        let mut at_ns = None;
        let mut asked = false;
        let is_unknown = self.builder.first_pass.is_unknown_time(header);
        for (number, value) in packet.fields() {
            let Some(message) = value.message() else {
                continue;
            };
            let mut at = |builder: &mut Builder| {
                if !std::mem::replace(&mut asked, true) {
                    at_ns = time(header, builder);
                }
                at_ns
            };
            let builder = &mut self.builder;
            match number {
                CLOCK_SNAPSHOT => {
                    let (readings, _) = first_pass::snapshot(message, header.sequence);
                    builder.first_pass.clocks.restart(&readings);
                }
                11 => {
                    let at_ns = at(builder);
                    let shift_ns = builder.first_pass.clocks.shift_ns();
                    let sequence = self.sequences.entry(header.sequence);
                    match track_event::decode(message, at_ns, shift_ns, sequence) {
                        Some(mut event) => {
                            event.is_timed = !is_unknown || Some(event.at_ns) != at_ns;
                            self.slices.add(event, builder);
                        }
                        None => builder.inventory.lose(
                            "track events",
                            1,
                            "they have no time on the trace's clock",
                        ),
                    }
                }
                44 => {
                    let (pid, tid, _) = first_pass::thread(message);
                    let sequence = self.sequences.entry(header.sequence);
                    sequence.thread = Some((pid, tid));
                    let reference = message.field(6).map_or(0, Value::signed);
                    sequence.reference_us = reference;
                }
                52 => {
                    let at_ns = at(builder);
                    let sequence = self.sequences.entry(header.sequence);
                    let id = header.sequence;
                    self.counters.event(message, at_ns, id, sequence, builder);
                }
                53 => {
                    let at_ns = at(builder);
                    let sequence = self.sequences.entry(header.sequence);
                    let at_ns = at_ns.filter(|_| !is_unknown);
                    builder.render_stage(message, at_ns, sequence, &mut self.old);
                }
                62 => {
                    let at_ns = at(builder);
                    let clock = |builder: &mut Builder, time| absolute(header, time, builder);
                    self.counters.vulkan_memory(message, at_ns, clock, builder);
                }
                63 => {
                    let at_ns = at(builder);
                    builder.gpu_log(message, at_ns);
                }
                65 => {
                    let at_ns = at(builder);
                    builder.vulkan_api(message, at_ns.filter(|_| !is_unknown));
                }
                71 => {
                    let at_ns = at(builder);
                    self.counters.memory_total(message, at_ns, builder);
                }
                129 => {
                    let at_ns = at(builder);
                    self.counters.frequency(message, at_ns, builder);
                }
                1 => self.ftrace += 1,
                _ => self.ignored += u64::from(!is_about_the_trace(number)),
            }
        }
    }
}

/// Returns the time of a packet on the clock of the trace; `None` if it has none or no snapshot relates the clocks.
fn time(header: Header, builder: &mut Builder) -> Option<i64> {
    absolute(header, header.timestamp?, builder)
}

/// Converts a time on a packet's clock to the clock of the trace.
fn absolute(header: Header, time: u64, builder: &mut Builder) -> Option<i64> {
    let clock = header.clock.filter(|clock| *clock != 0);
    let clock = clock.map(|clock| ClockId::new(clock, header.sequence));
    builder.first_pass.clocks.at(clock, time)
}

/// Returns true for packets that describe the trace or are read by the first pass.
fn is_about_the_trace(field: u32) -> bool {
    // In this order: process tree, interned data, configuration, statistics, markers, descriptors, defaults, the
    // service's events, system.
    matches!(
        field,
        2 | 12 | 33 | 35 | 36 | 43 | 45 | 46 | 59 | 60 | 64 | 69 | 88 | 89 | 108 | 109 | 116 | 128
    )
}

impl Builder {
    /// Adds a line of a GPU's log as an instant marker.
    fn gpu_log(&mut self, log: Message, at_ns: Option<i64>) {
        let severities = ["", "verbose", "debug", "info", "warning", "error"];
        let (mut severity, mut tag, mut text) = ("", None, String::new());
        for (number, value) in log.fields() {
            match number {
                1 => {
                    let number = value.number() as usize;
                    severity = severities.get(number).copied().unwrap_or("");
                }
                2 => tag = Some(value.text().into()),
                3 => text = value.text().into_owned(),
                _ => {}
            }
        }
        let (Some(at_ns), Some(process)) = (at_ns, self.process(0)) else {
            return;
        };
        self.inventory.spans(at_ns, at_ns);
        let label = self.inventory.labels.named(None, &text);
        let row = rows::marker_row(process, MarkerScope::Process, label, Some(at_ns), Some(0));
        let row = Marker {
            domain: Some("GPU log".into()),
            category: tag,
            payload: (!severity.is_empty()).then(|| format!("severity={severity}").into()),
            ..row
        };
        rows::marker(self.trace.tables_mut(), row);
    }
}
