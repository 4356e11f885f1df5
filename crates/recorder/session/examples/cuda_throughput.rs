//! Measures what the session costs for each CUDA launch, and what a launch takes on disk: `cargo run --release -p
//! gapscope-recorder --example cuda_throughput -- 1000000`.
//!
//! The example fills a spool as the CUDA library would: launches of 40 kernels in 25 sizes on two streams, with
//! jitter, a wait at each 500th launch, calls and kernels in batches of their own, the kernels half a batch later
//! than their calls. Then it times the way into a trace. Everything is there before the session begins, so the time
//! is that after the program's end.

use gapscope_recorder::{Assembler, Names};
use gapscope_spool::event::{
    Activity, Api, ClockSource, CommonEvent, CudaEvent, LaunchShape, Packer, Span, WaitKind,
};
use gapscope_spool::ids as hook;
use gapscope_spool::model::cuda::FunctionClass;
use gapscope_spool::reader::DrainUntil;
use gapscope_spool::{Spool, SpoolReader};
use gapscope_trace::TraceWriter;
use gapscope_trace::manifest::{Manifest, SamplingMode};
use std::error::Error;
use std::path::Path;
use std::time::Instant;

const KERNELS: u32 = 40;
const SHAPES: u32 = 50;
const BATCH: u32 = 4096;
const LAUNCH: u32 = 1;
const SYNCHRONIZE: u32 = 2;

fn main() -> Result<(), Box<dyn Error>> {
    let launches: u32 = match std::env::args().nth(1) {
        Some(count) => count.parse()?,
        None => 1_000_000,
    };
    let folder = tempfile::tempdir()?;
    let spool = folder.path().join("spool");
    std::fs::create_dir(&spool)?;
    let entries = fill(&spool, launches)?;
    let spooled = bytes_in(&spool)?;

    let begun = Instant::now();
    let output = folder.path().join("t.gapscope");
    let mut assembler = Assembler::new(SamplingMode::Dispatch);
    let mut writer = TraceWriter::create(&output)?;
    for mut process in SpoolReader::open(&spool).new_processes()? {
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
    let drained = begun.elapsed();
    assembler.finish(&Names::default(), writer.tables_mut());
    let mut manifest = Manifest::default();
    assembler.describe(&mut manifest);
    writer.finish(&manifest)?;
    let finished = begun.elapsed();

    let on_disk = bytes_in(&output)?;
    let each = |bytes: u64, of: u64| bytes as f64 / of as f64;
    println!(
        "{} dispatches of {launches} launches, losses: {:?}",
        assembler.dispatches(),
        manifest.losses
    );
    println!(
        "from spool to complete trace: {:.3} s, of which {:.3} s to drain: {:.0} ns a launch",
        finished.as_secs_f64(),
        drained.as_secs_f64(),
        finished.as_nanos() as f64 / f64::from(launches)
    );
    println!(
        "spool: {:.1} B a launch; trace: {:.1} B a launch, {:.1} B an event (call, kernel, wait)",
        each(spooled, launches.into()),
        each(on_disk, launches.into()),
        each(on_disk, entries)
    );
    println!("clock: {:?}", manifest.devices.first().map(|d| &d.clock));
    Ok(())
}

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

fn hello() -> CommonEvent<'static> {
    CommonEvent::Process {
        pid: 1,
        parent: 0,
        executable: "made-up".into(),
        arguments: vec![],
        hook: "cuda".into(),
    }
}

/// Writes activities into the spool in batches.
struct Batches<'a> {
    spool: &'a Spool,
    packer: Packer,
    written: u64,
}

impl Batches<'_> {
    fn push(&mut self, activity: &Activity) {
        self.packer.push(activity);
        if self.packer.count() >= BATCH {
            self.write();
        }
    }

    fn write(&mut self) {
        let (first, count) = (self.written, self.packer.count());
        self.spool.write(&CudaEvent::Activities {
            first,
            count,
            bytes: self.packer.bytes(),
        });
        self.written += u64::from(count);
        self.packer.clear();
    }
}

/// Returns the number of entries.
fn fill(root: &Path, launches: u32) -> Result<u64, Box<dyn Error>> {
    let spool = Spool::create(root.to_owned(), u64::MAX, true, hello)?;
    spool.write(&CommonEvent::Device {
        device: hook::Device(1),
        api: Api::Cuda,
        name: "made-up GPU".into(),
        driver: "".into(),
        uuid: [1; 16],
        nanoseconds_per_tick: 1.0,
        clock: ClockSource::Host,
        heaps: vec![],
    });
    for queue in [1, 2] {
        spool.write(&CommonEvent::Queue {
            queue: hook::Queue(queue),
            device: hook::Device(1),
            family: 1,
            index: queue,
            flags: 6,
            timestamp_bits: 64,
        });
    }
    for (function, name) in [
        (LAUNCH, "cudaLaunchKernel"),
        (SYNCHRONIZE, "cudaStreamSynchronize"),
    ] {
        spool.write(&CudaEvent::Function {
            function: hook::Function(function),
            class: FunctionClass::from_function(name).unwrap_or_default(),
            name: name.into(),
        });
    }
    for kernel in 1..=KERNELS {
        spool.write(&CommonEvent::Kernel {
            kernel: hook::Kernel(kernel),
            source: [0; 16],
            entry_point: format!("_ZN2at6native{}kernel_{kernel:02}Ei", 9).into(),
            specialisation: "".into(),
            source_name: "".into(),
            local_size: [0; 3],
            accesses: vec![],
        });
    }
    for launch in 1..=SHAPES {
        spool.write(&CudaEvent::Launch {
            launch: hook::Launch(launch),
            shape: LaunchShape {
                kernel: hook::Kernel(1 + launch % KERNELS),
                queue: hook::Queue(1 + launch % 2),
                groups: [64 * launch, 1, 1],
                local_size: [128, 1, 1],
                static_shared_bytes: 0,
                dynamic_shared_bytes: 1024 * (launch % 3),
                local_bytes: 0,
                registers: 32,
            },
        });
    }
    let mut noise = 1u64;
    let mut jitter = move |below: i64| {
        noise = noise
            .wrapping_mul(6_364_136_223_846_793_005)
            .wrapping_add(1_442_695_040_888_963_407);
        (noise >> 40) as i64 % below
    };
    let mut batches = Batches {
        spool: &spool,
        packer: Packer::new(1 << 17),
        written: 0,
    };
    let (mut host_ns, mut device_ns, mut calls) = (1_000_000_000i64, 0i64, 0);
    let mut call = |function, correlation, start_ns, duration_ns| {
        calls += 1;
        spool.write(&CudaEvent::Called {
            function: hook::Function(function),
            span: Span {
                start_ns,
                duration_ns,
            },
            correlation: hook::Correlation(correlation),
            result: 0,
        });
    };
    for launch in 1..=launches {
        let (took, correlation) = (2_000 + jitter(700), launch * 2);
        call(LAUNCH, correlation, host_ns, took);
        let start_ns = device_ns.max(host_ns + 4_000 + jitter(300));
        let duration_ns = 1_500 + jitter(3_000);
        device_ns = start_ns + duration_ns;
        batches.push(&Activity::Kernel {
            launch: hook::Launch(1 + (launch * 7) % SHAPES),
            span: Some(Span {
                start_ns,
                duration_ns,
            }),
            correlation: hook::Correlation(correlation),
            of_graph: false,
        });
        host_ns += took + 1_000 + jitter(400);
        if launch % 500 == 0 {
            let (start_ns, duration_ns) = (host_ns, device_ns.max(host_ns) + 3_000 - host_ns);
            call(SYNCHRONIZE, correlation + 1, start_ns, duration_ns);
            batches.push(&Activity::Wait {
                kind: WaitKind::HostForQueue,
                queue: hook::Queue(1),
                event: hook::CudaEvent::NONE,
                occurrence: 0,
                span: Some(Span {
                    start_ns,
                    duration_ns,
                }),
                correlation: hook::Correlation(correlation + 1),
            });
            host_ns = start_ns + duration_ns + 2_000;
        }
    }
    batches.write();
    spool.write(&CommonEvent::ProcessEnd { at_ns: host_ns });
    Ok(batches.written + calls)
}
