//! Time and size of each export: `cargo run --release -p gapscope-export --example speed [-- DISPATCHES]`.

use gapscope_export::{chrome, csv, firefox, perfetto, speedscope};
use gapscope_trace::Trace;
use gapscope_trace::manifest::{Device, Queue};
use gapscope_trace::tables::*;
use std::fs::File;
use std::io::{BufWriter, Result, Write};
use std::path::Path;
use std::time::Instant;

/// Command buffers of 50 dispatches, of which some overlap.
fn trace(dispatches: usize) -> Trace {
    let mut trace = Trace::default();
    trace.manifest.devices.push(Device {
        id: 1,
        uuid: "aa".to_owned(),
        ..Device::default()
    });
    trace.manifest.queues.push(Queue {
        id: 1,
        device: 1,
        ..Queue::default()
    });
    let t = &mut trace.tables;
    for id in 0..8 {
        t.kernels.push(Kernel {
            id,
            name: format!("kernel {id}"),
            source: Some("0".repeat(64)),
            local_x: Some(64),
            local_y: Some(1),
            local_z: Some(1),
            ..Kernel::default()
        });
        t.labels.push(Label {
            id,
            text: format!("layer {id}"),
            parent: (id > 0).then_some(0),
        });
    }
    const IN_ONE: usize = 50;
    let mut now_ns = 1_000_000i64;
    for id in 0..(dispatches / IN_ONE) as u64 {
        t.submissions.push(Submission {
            id,
            queue: 1,
            begin_ns: now_ns - 30_000,
            end_ns: now_ns - 20_000,
            command_buffers: 1,
            ..Submission::default()
        });
        t.host_calls.push(HostCall {
            call: HostCallKind::Submit,
            start_ns: now_ns - 30_000,
            duration_ns: 10_000,
            count: 1,
            ..HostCall::default()
        });
        let start_ns = now_ns;
        for position in 0..IN_ONE as u32 {
            let duration_ns = 1_000 + i64::from(position % 7) * 300;
            t.dispatches.push(Dispatch {
                command_buffer: id,
                position,
                queue: 1,
                kernel: position % 8,
                start_ns: Some(now_ns),
                duration_ns: Some(duration_ns),
                groups_x: Some(64),
                groups_y: Some(1),
                groups_z: Some(1),
                label: Some(position % 8),
                ..Dispatch::default()
            });
            // Every fifth overlaps the next.
            now_ns += duration_ns + i64::from(position % 5) * 100 - 100;
        }
        t.command_buffers.push(CommandBuffer {
            id,
            queue: 1,
            submission: id,
            start_ns: Some(start_ns),
            duration_ns: Some(now_ns - start_ns),
            timing: Timing::Measured,
            dispatches: IN_ONE as u32,
            ..CommandBuffer::default()
        });
        now_ns += 50_000;
    }
    trace
}

fn timed(
    name: &str,
    path: &Path,
    write: impl FnOnce(&mut BufWriter<File>) -> Result<()>,
) -> Result<()> {
    let begin = Instant::now();
    let mut out = BufWriter::with_capacity(1 << 20, File::create(path)?);
    write(&mut out)?;
    out.flush()?;
    let seconds = begin.elapsed().as_secs_f64();
    let bytes = path.metadata()?.len();
    println!("{name:<11} {seconds:.2} s, {:.0} MB", bytes as f64 / 1e6);
    Ok(())
}

fn main() -> Result<()> {
    let given = std::env::args().nth(1);
    let dispatches = given
        .and_then(|text| text.parse().ok())
        .unwrap_or(1_000_000);
    let trace = trace(dispatches);
    let folder = tempfile::tempdir()?;
    let path = folder.path().join("export");
    println!("{dispatches} dispatches");
    timed("perfetto", &path, |out| {
        perfetto::write(&trace, out).map(drop)
    })?;
    timed("chrome", &path, |out| chrome::write(&trace, out).map(drop))?;
    timed("firefox", &path, |out| {
        firefox::write(&trace, out).map(drop)
    })?;
    timed("speedscope", &path, |out| {
        speedscope::write(&trace, out).map(drop)
    })?;
    let begin = Instant::now();
    csv::write(&trace, &folder.path().join("csv")).map_err(std::io::Error::other)?;
    println!("csv         {:.2} s", begin.elapsed().as_secs_f64());
    Ok(())
}
