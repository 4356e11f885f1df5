//! Measures what the session (gapscope's process that writes the trace) costs for each dispatch or launch, and what
//! they take on disk: `cargo run --release -p gapscope-recorder --example throughput -- vulkan 1000000`, or `cuda`
//! for a spool of the CUDA library.
//!
//! The example fills a spool (the log of events) as the hook (gapscope's library in a recorded program) would, then
//! times the way into a trace. Everything is there before the session begins, so the time is that after the program's
//! end.

mod cuda;
#[path = "../../src/made_up.rs"]
#[allow(dead_code, reason = "tests use the rest")]
mod made_up;
mod vulkan;

use gapscope_recorder::{Assembler, Names};
use gapscope_spool::event::CommonEvent;
use gapscope_spool::reader::DrainUntil;
use gapscope_spool::{Spool, SpoolReader};
use gapscope_trace::TraceWriter;
use gapscope_trace::manifest::{Manifest, SamplingMode};
use std::error::Error;
use std::path::Path;
use std::time::{Duration, Instant};

fn main() -> Result<(), Box<dyn Error>> {
    let mut arguments = std::env::args().skip(1);
    let hook = arguments.next().ok_or("vulkan or cuda?")?;
    let count: u32 = arguments
        .next()
        .map_or(Ok(1_000_000), |count| count.parse())?;
    let folder = tempfile::tempdir()?;
    let root = folder.path().join("spool");
    std::fs::create_dir(&root)?;
    let hello: fn() -> CommonEvent<'static> = match hook.as_str() {
        "vulkan" => || made_up::process("vulkan"),
        "cuda" => || made_up::process("cuda"),
        _ => return Err("vulkan or cuda?".into()),
    };
    let spool = Spool::create(root.clone(), u64::MAX, true, hello)?;
    let events = match hook.as_str() {
        "vulkan" => vulkan::fill(&spool, count),
        _ => cuda::fill(&spool, count),
    };
    let spooled = bytes_in(&root)?;

    let watch = Stopwatch::start();
    let output = folder.path().join("t.gapscope");
    let mut assembler = Assembler::new(SamplingMode::Dispatch);
    let mut writer = TraceWriter::create(&output)?;
    for mut process in SpoolReader::open(&root).new_processes()? {
        let id = assembler.add_process(process.pid(), process.start_ns());
        let mut failed = None;
        process.drain(DrainUntil::End, |thread, event| {
            assembler.apply(id, thread, event, writer.tables_mut());
            if let Err(error) = writer.flush_full() {
                failed.get_or_insert(error);
            }
        })?;
        if let Some(error) = failed {
            return Err(error.into());
        }
        assembler.end_process(id, writer.tables_mut());
    }
    watch.say("drained", count);
    assembler.finish(&Names::default(), writer.tables_mut());
    let mut manifest = Manifest::default();
    assembler.describe(&mut manifest);
    writer.finish(&manifest)?;
    watch.say("complete", count);

    let on_disk = bytes_in(&output)?;
    println!(
        "{} dispatches of {count}, losses: {:?}",
        assembler.dispatches(),
        manifest.losses
    );
    println!(
        "spool: {:.1} B a dispatch; trace: {:.1} B a dispatch, {:.1} B an event",
        spooled as f64 / f64::from(count),
        on_disk as f64 / f64::from(count),
        on_disk as f64 / events as f64
    );
    println!("clock: {:?}", manifest.devices.first().map(|d| &d.clock));
    Ok(())
}

/// Returns the bytes of all files in a folder and its subfolders.
fn bytes_in(folder: &Path) -> std::io::Result<u64> {
    let mut sum = 0;
    for entry in std::fs::read_dir(folder)? {
        let entry = entry?;
        sum += match entry.metadata()?.is_dir() {
            true => bytes_in(&entry.path())?,
            false => entry.metadata()?.len(),
        };
    }
    Ok(sum)
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

    /// Prints the time since the start, and the processor time for each dispatch.
    fn say(&self, what: &str, dispatches: u32) {
        let processor = processor_time() - self.processor;
        let each = processor.as_nanos() as f64 / f64::from(dispatches);
        println!(
            "{what} after {:.3} s, {:.3} s on the processor: {each:.0} ns a dispatch",
            self.wall.elapsed().as_secs_f64(),
            processor.as_secs_f64()
        );
    }
}

fn processor_time() -> Duration {
    let time = rustix::time::clock_gettime(rustix::time::ClockId::ProcessCPUTime);
    Duration::new(time.tv_sec as u64, time.tv_nsec as u32)
}
