//! Measures whether a long recording stays flat: `cargo run --release -p gapscope-recorder --example long_run --
//! 100000 1000000`.
//!
//! The process has the first number of short threads, which make a few calls each, and uses the second number of
//! semaphores, one after the other. Draining reads the events of the spool (the log that hooks write) into a trace; a
//! checkpoint saves the state of that. Each line is a tenth of the run: the time of draining, the time of a
//! checkpoint, and its size. Lines that grow are a fault.

use gapscope_recorder::Assembler;
use gapscope_spool::event::{
    CommonEvent, HostCallKind, SemaphoreValue, Span, SubmitFunction, VulkanEvent,
};
use gapscope_spool::ids as hook;
use gapscope_spool::reader::{DrainUntil, ProcessSpool};
use gapscope_spool::{Spool, SpoolReader};
use gapscope_trace::TraceWriter;
use gapscope_trace::ids::ProcessId;
use gapscope_trace::manifest::{Manifest, SamplingMode};
use std::borrow::Cow;
use std::error::Error;
use std::time::Duration;

/// The number of lines.
const TENTHS: u32 = 10;
/// The number of threads between two drains.
const THREADS_A_DRAIN: u32 = 100;
/// The number of drains between two checkpoints.
const DRAINS_A_CHECKPOINT: u32 = 20;
/// The number of host calls of each thread.
const CALLS_OF_A_THREAD: u32 = 4;

fn main() -> Result<(), Box<dyn Error>> {
    let mut arguments = std::env::args().skip(1);
    let mut count = |default| arguments.next().map_or(Ok(default), |text| text.parse());
    let (threads, semaphores): (u32, u32) = (count(100_000)?, count(1_000_000)?);
    let folder = tempfile::tempdir()?;
    let root = folder.path().join("spool");
    std::fs::create_dir(&root)?;
    let spool = Spool::create(root.clone(), u64::MAX, true, || CommonEvent::ProcessEnd {
        at_ns: 0,
    })?;
    let found = SpoolReader::open(root).new_processes()?;
    let process = found.into_iter().next().ok_or("the spool has no process")?;
    let mut session = Session::start(
        process,
        TraceWriter::create(&folder.path().join("t.gapscope"))?,
    );

    let drains = threads.div_ceil(THREADS_A_DRAIN);
    let mut program = Program {
        spool: &spool,
        semaphore: 0,
    };
    println!("threads | draining, ms | a checkpoint, ms | its state, KiB | resident, MiB");
    for tenth in 1..=TENTHS {
        let (mut draining, mut checkpoints) = (Duration::ZERO, Vec::new());
        for drain in drains * (tenth - 1) / TENTHS..drains * tenth / TENTHS {
            program.run_threads();
            program.use_semaphores(semaphores / drains);
            draining += timed(|| session.drain())?;
            if drain % DRAINS_A_CHECKPOINT == 0 {
                checkpoints.push(timed(|| session.checkpoint())?);
            }
        }
        println!(
            "{:7} | {:12.1} | {:16.2} | {:14} | {:13}",
            threads / TENTHS * tenth,
            draining.as_secs_f64() * 1e3,
            checkpoints
                .last()
                .map_or(0.0, |last| last.as_secs_f64() * 1e3),
            session.state_bytes >> 10,
            resident_mib()?,
        );
    }
    Ok(())
}

/// Writes events as the hook does.
struct Program<'a> {
    spool: &'a Spool,
    /// The id of the last semaphore.
    semaphore: u32,
}

impl Program<'_> {
    /// Runs threads one after the other, each of which writes a few host calls.
    fn run_threads(&self) {
        for _ in 0..THREADS_A_DRAIN {
            std::thread::scope(|scope| {
                scope.spawn(|| {
                    for call in 0..CALLS_OF_A_THREAD {
                        self.spool.write(&VulkanEvent::HostCall {
                            function: None,
                            call: HostCallKind::WaitFences,
                            span: Span::between(i64::from(call), i64::from(call) + 1),
                            count: 1,
                            busy_ns: 1,
                            queue: None,
                            bytes: None,
                            result: 0,
                            waits_for: None,
                        });
                    }
                });
            });
        }
    }

    /// Signals each semaphore by a submission, for which only a fence waits.
    fn use_semaphores(&mut self, count: u32) {
        for _ in 0..count {
            self.semaphore += 1;
            let semaphore = hook::Semaphore(self.semaphore);
            let value = u64::from(self.semaphore % 2);
            self.spool.write(&VulkanEvent::Submit {
                submission: hook::Submission::NONE,
                function: SubmitFunction::QueueSubmit,
                queue: hook::Queue(1),
                span: Span::between(0, 1),
                instances: Cow::Borrowed(&[]),
                waits: Cow::Borrowed(&[]),
                signals: Cow::Borrowed(&[SemaphoreValue { semaphore, value }]),
            });
            self.spool.write(&VulkanEvent::SemaphoreEnd { semaphore });
        }
    }
}

/// Drains events as the session (the process of `gapscope record`) does.
struct Session {
    process: ProcessSpool,
    id: ProcessId,
    assembler: Assembler,
    writer: TraceWriter,
    /// The size of the assembler's state at the last checkpoint.
    state_bytes: usize,
}

impl Session {
    fn start(process: ProcessSpool, writer: TraceWriter) -> Session {
        let mut assembler = Assembler::new(SamplingMode::Dispatch);
        let id = assembler.add_process(process.pid(), process.start_ns());
        Session {
            process,
            id,
            assembler,
            writer,
            state_bytes: 0,
        }
    }

    /// Converts all events so far to rows.
    fn drain(&mut self) -> Result<(), Box<dyn Error>> {
        let Session {
            process,
            id,
            assembler,
            writer,
            ..
        } = self;
        let mut refused = None;
        process.drain(DrainUntil::Committed, |thread, event| {
            assembler.apply(*id, thread, event, writer.tables_mut());
            if let Err(error) = writer.flush_full() {
                refused.get_or_insert(error);
            }
        })?;
        refused.map_or(Ok(()), |error| Err(error.into()))
    }

    /// Writes the rows and the state, and deletes the events that are no longer needed.
    fn checkpoint(&mut self) -> Result<(), Box<dyn Error>> {
        self.writer.checkpoint()?;
        let mut manifest = Manifest::default();
        self.assembler.describe(&mut manifest);
        self.writer.write_manifest(&manifest)?;
        self.state_bytes = postcard::to_allocvec(&self.assembler)?.len();
        self.process.delete_consumed();
        Ok(())
    }
}

/// Returns the processor time of `work`, which on a busy machine is more telling than the wall time.
fn timed(work: impl FnOnce() -> Result<(), Box<dyn Error>>) -> Result<Duration, Box<dyn Error>> {
    let before = processor_time();
    work()?;
    Ok(processor_time() - before)
}

fn processor_time() -> Duration {
    let time = rustix::time::clock_gettime(rustix::time::ClockId::ThreadCPUTime);
    Duration::new(time.tv_sec as u64, time.tv_nsec as u32)
}

/// Returns the memory that the process has in RAM, in MiB.
fn resident_mib() -> Result<u64, Box<dyn Error>> {
    let status = std::fs::read_to_string("/proc/self/status")?;
    let line = status.lines().find_map(|line| line.strip_prefix("VmRSS:"));
    let kib = line
        .and_then(|line| line.split_whitespace().next())
        .ok_or("no VmRSS")?;
    Ok(kib.parse::<u64>()? >> 10)
}
