//! Measures what the session costs for each dispatch: `cargo run --release -p gapscope-recorder --example throughput
//! -- 1000000`.
//!
//! The example fills a spool as the Vulkan layer would (command buffers of 64 labelled dispatches with bindings,
//! submitted once), then times the way into a trace.

use gapscope_recorder::{Assembler, Names};
use gapscope_spool::event::{
    self, Api, Binding, ClockSource, Command, CommonEvent, NO_QUERY, Op, Outcome, Span, VulkanEvent,
};
use gapscope_spool::ids as hook;
use gapscope_spool::reader::DrainUntil;
use gapscope_spool::{Event, Spool, SpoolReader};
use gapscope_trace::ids::ProcessId;
use gapscope_trace::manifest::{Manifest, SamplingMode};
use gapscope_trace::tables::Table;
use gapscope_trace::{Tables, TraceWriter};
use std::borrow::Cow;
use std::error::Error;
use std::path::Path;
use std::time::{Duration, Instant};

const IN_COMMAND_BUFFER: u32 = 64;
const KERNELS: u32 = 32;
const CONTENTS: u32 = 200;

fn main() -> Result<(), Box<dyn Error>> {
    let dispatches: u32 = match std::env::args().nth(1) {
        Some(count) => count.parse()?,
        None => 1_000_000,
    };
    let folder = tempfile::tempdir()?;
    let spool = folder.path().join("spool");
    std::fs::create_dir(&spool)?;
    fill(&spool, dispatches / IN_COMMAND_BUFFER)?;

    let assembled = Stopwatch::start();
    let mut assembler = Assembler::new(SamplingMode::Dispatch);
    let mut tables = Tables::default();
    drain(&spool, &mut assembler, |assembler, thread, event| {
        assembler.apply(ProcessId(0), thread, event, &mut tables);
        if tables.dispatches.len() > TraceWriter::BATCH_ROWS {
            tables.dispatches.clear();
            tables.barriers.clear();
            tables.command_buffers.clear();
            tables.submissions.clear();
            tables.markers.clear();
        }
        Ok(())
    })?;
    say("spool and assembler", dispatches, assembled);

    let written = Stopwatch::start();
    let mut assembler = Assembler::new(SamplingMode::Dispatch);
    let mut writer = TraceWriter::create(&folder.path().join("t.gapscope"))?;
    drain(&spool, &mut assembler, |assembler, thread, event| {
        assembler.apply(ProcessId(0), thread, event, writer.tables_mut());
        Ok(writer.flush_full()?)
    })?;
    say("spool, assembler and writer", dispatches, written);

    let finished = Stopwatch::start();
    assembler.finish(&Names::default(), writer.tables_mut());
    let mut manifest = Manifest::default();
    assembler.describe(&mut manifest);
    writer.finish(&manifest)?;
    say("finish", dispatches, finished);
    println!(
        "{} dispatches, losses: {:?}",
        assembler.dispatches(),
        manifest.losses
    );
    Ok(())
}

fn say(what: &str, dispatches: u32, since: Stopwatch) {
    let (wall, processor) = (since.wall.elapsed(), processor_time() - since.processor);
    let each = processor.as_nanos() as f64 / f64::from(dispatches);
    println!(
        "{what}: {:.3} s, {:.3} s on the processor: {each:.0} ns a dispatch",
        wall.as_secs_f64(),
        processor.as_secs_f64()
    );
}

/// Measures processor time too, which on a busy machine is more telling than the wall time.
struct Stopwatch {
    wall: Instant,
    processor: Duration,
}

impl Stopwatch {
    fn start() -> Stopwatch {
        Stopwatch {
            wall: Instant::now(),
            processor: processor_time(),
        }
    }
}

fn processor_time() -> Duration {
    let time = rustix::time::clock_gettime(rustix::time::ClockId::ProcessCPUTime);
    Duration::new(time.tv_sec as u64, time.tv_nsec as u32)
}

fn drain(
    spool: &Path,
    assembler: &mut Assembler,
    mut apply: impl FnMut(&mut Assembler, hook::Thread, Event<'_>) -> Result<(), Box<dyn Error>>,
) -> Result<(), Box<dyn Error>> {
    for mut process in SpoolReader::open(spool).new_processes()? {
        let id = assembler.add_process(process.pid(), process.start_ns());
        let mut failed = None;
        process.drain(DrainUntil::End, |thread, event| {
            if let Err(error) = apply(assembler, thread, event) {
                failed.get_or_insert(error);
            }
        })?;
        if let Some(error) = failed {
            return Err(error);
        }
        assembler.end_process(id, &mut Tables::default());
    }
    Ok(())
}

fn hello() -> CommonEvent<'static> {
    CommonEvent::ProcessEnd { at_ns: 0 }
}

fn fill(root: &Path, command_buffers: u32) -> Result<(), Box<dyn Error>> {
    let spool = Spool::create(root.to_owned(), u64::MAX, true, hello)?;
    spool.write(&CommonEvent::Device {
        device: hook::Device(1),
        api: Api::Vulkan,
        name: "made-up GPU".into(),
        driver: "".into(),
        uuid: [1; 16],
        nanoseconds_per_tick: 1.0,
        clock: ClockSource::Calibrated,
        heaps: vec![],
    });
    spool.write(&CommonEvent::Queue {
        queue: hook::Queue(1),
        device: hook::Device(1),
        family: 0,
        index: 0,
        flags: 2,
        timestamp_bits: 64,
    });
    spool.write(&CommonEvent::Text {
        text: hook::Text(1),
        value: "layer",
    });
    for kernel in 1..=KERNELS {
        spool.write(&CommonEvent::Kernel {
            kernel: hook::Kernel(kernel),
            source: [kernel as u8; 16],
            entry_point: "main".into(),
            specialisation: "".into(),
            source_name: "".into(),
            local_size: [64, 1, 1],
            accesses: vec![],
        });
        spool.write(&VulkanEvent::Buffer {
            buffer: hook::Buffer(kernel),
            device: hook::Device(1),
            bytes: 1 << 20,
            at_ns: 0,
        });
    }
    for content in 1..=CONTENTS {
        let entry = |binding| Binding {
            binding,
            element: 0,
            buffer: hook::Buffer(1 + (content + binding) % KERNELS),
            offset: u64::from(content) * 256,
            bytes: 4096,
            kind: 7,
        };
        let entries = (0..4).map(entry).collect();
        spool.write(&VulkanEvent::Bindings {
            content: hook::BindingContent(content),
            entries: Cow::Owned(entries),
        });
    }
    let mut now = 1_000_000u64;
    let mut commands = Vec::new();
    let mut ticks = Vec::new();
    for recording in 1..=command_buffers {
        if recording % 1000 == 1 {
            spool.write(&CommonEvent::ClockSample {
                device: hook::Device(1),
                ticks: now,
                host_ns: now as i64,
                error_ns: 1,
            });
        }
        commands.clear();
        ticks.clear();
        let begin_ns = now as i64;
        let mut tick = |step: u64| {
            now += step;
            ticks.extend_from_slice(&now.to_le_bytes());
        };
        commands.push(Command::new(Op::Begin, 0, [0; 4]));
        tick(500);
        commands.push(Command::new(Op::LabelBegin, NO_QUERY, [1, 0, 0, 0]));
        for index in 0..IN_COMMAND_BUFFER {
            let number = recording * IN_COMMAND_BUFFER + index;
            commands.push(Command::new(
                Op::BindSet,
                NO_QUERY,
                [0, 1 + number % CONTENTS, 0, 0],
            ));
            let kernel = 1 + number % KERNELS;
            commands.push(Command::new(
                Op::Dispatch,
                1 + 2 * index,
                [number % 7, 1, 1, kernel],
            ));
            commands.push(Command::new(Op::Barrier, NO_QUERY, [0x800, 0, 0x800, 0]));
            tick(700);
            tick(u64::from(3000 + number % 1000));
        }
        commands.push(Command::new(Op::LabelEnd, NO_QUERY, [0; 4]));
        commands.push(Command::new(Op::End, 1 + 2 * IN_COMMAND_BUFFER, [0; 4]));
        tick(200);
        spool.write(&VulkanEvent::Commands {
            recording: hook::CommandRecording(recording),
            commands: bytemuck::cast_slice(&commands),
        });
        let instance = u64::from(recording);
        spool.write(&VulkanEvent::Submit {
            span: Span::between(begin_ns, begin_ns + 100),
            queue: hook::Queue(1),
            instances: Cow::Owned(vec![event::Instance {
                instance: hook::Instance(instance),
                recording: hook::CommandRecording(recording),
            }]),
            waits: Cow::Borrowed(&[]),
            signals: Cow::Borrowed(&[]),
        });
        spool.write(&VulkanEvent::Timestamps {
            instance: hook::Instance(instance),
            recording: hook::CommandRecording(recording),
            first_query: 0,
            ticks: &ticks,
        });
        let seen_ns = now as i64 + 1000;
        spool.write(&VulkanEvent::InstanceEnd {
            instance: hook::Instance(instance),
            outcome: Outcome::Timed,
            seen_ns,
        });
        spool.write(&VulkanEvent::CommandRecordingEnd {
            recording: hook::CommandRecording(recording),
        });
    }
    Ok(())
}
