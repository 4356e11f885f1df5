//! Time of `Findings::of` at 10^5, 10^6 and 10^7 dispatches. `cargo bench -p gapscope-analysis -- 1000000` for one size.
//!
//! The processor time beside it is of all threads, and tells what a machine that does other work meanwhile would take.

use gapscope_analysis::{Findings, Options};
use gapscope_trace::Trace;
use gapscope_trace::manifest::{Device, Queue};
use gapscope_trace::tables::*;
use std::time::Instant;

/// Command buffers of 50 dispatches, eight kernels, four labels, two host calls a submission.
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
            ..Kernel::default()
        });
        t.bindings.push(Binding {
            id,
            bytes: 1 << 20,
            ..Binding::default()
        });
    }
    for id in 0..4 {
        t.labels.push(Label {
            id,
            text: format!("layer {id}"),
            parent: (id > 0).then_some(0),
        });
    }
    const IN_ONE: usize = 50;
    let mut now_ns = 0i64;
    let mut noise = 1u64;
    for id in 0..(dispatches / IN_ONE) as u64 {
        t.submissions.push(Submission {
            id,
            queue: 1,
            begin_ns: now_ns - 30_000,
            end_ns: now_ns - 20_000,
            command_buffers: 1,
            ..Submission::default()
        });
        for (call, start_ns) in [
            (HostCallKind::Submit, now_ns - 30_000),
            (HostCallKind::WaitFences, now_ns - 15_000),
        ] {
            t.host_calls.push(HostCall {
                call,
                start_ns,
                duration_ns: 10_000,
                count: 1,
                ..HostCall::default()
            });
        }
        let start_ns = now_ns;
        for position in 0..IN_ONE as u32 {
            noise = noise
                .wrapping_mul(6364136223846793005)
                .wrapping_add(1442695040888963407);
            let duration_ns = 1_000 + (noise >> 52) as i64;
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
                bindings: Some(position % 8),
                label: Some(position % 4),
            });
            now_ns += duration_ns + i64::from(position % 5) * 100;
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
        now_ns += 20_000;
    }
    trace
}

fn main() {
    let given: Vec<usize> = std::env::args().filter_map(|a| a.parse().ok()).collect();
    let sizes = match given.is_empty() {
        true => vec![100_000, 1_000_000, 10_000_000],
        false => given,
    };
    for size in sizes {
        let trace = trace(size);
        let mut times: Vec<(f64, Option<f64>)> = (0..5)
            .map(|_| {
                let (begin, cpu) = (Instant::now(), processor_seconds());
                let findings = Findings::of(&trace, &Options::default());
                assert_eq!(findings.dispatch_count, size as u64);
                let used = processor_seconds().zip(cpu).map(|(end, begin)| end - begin);
                (begin.elapsed().as_secs_f64(), used)
            })
            .collect();
        times.sort_by(|a, b| a.0.total_cmp(&b.0));
        let (wall, [first, .., last]) = (times[2].0, times.as_slice()) else {
            unreachable!()
        };
        let cpu: Option<f64> = times.iter().map(|(_, cpu)| *cpu).sum();
        let cpu = cpu.map_or("unknown".to_owned(), |cpu| format!("{:.3} s", cpu / 5.0));
        println!(
            "{size:>9} dispatches: {wall:.3} s (median of 5, {:.3}..{:.3}), processor time {cpu} (mean)",
            first.0, last.0
        );
    }
}

/// Processor time of this process in seconds, to a hundredth.
fn processor_seconds() -> Option<f64> {
    let stat = std::fs::read_to_string("/proc/self/stat").ok()?;
    let mut fields = stat.rsplit_once(") ")?.1.split(' ').skip(11);
    let mut ticks = || fields.next()?.parse::<f64>().ok();
    Some((ticks()? + ticks()?) / 100.0)
}
