//! Makes the events of a hook (gapscope's library inside a program) for a made-up GPU, for tests and examples of what
//! the session makes of such events.

use gapscope_spool::Spool;
use gapscope_spool::event::{
    Api, ClockSource, Command, CommonEvent, Instance, Outcome, Span, SubmitFunction, VulkanEvent,
};
use gapscope_spool::ids as hook;
use std::borrow::Cow;

/// Returns the start of a process with this hook.
pub fn process(hook: &'static str) -> CommonEvent<'static> {
    CommonEvent::Process {
        pid: std::process::id(),
        parent: 0,
        executable: "program".into(),
        arguments: vec![],
        hook: hook.into(),
    }
}

/// Returns a device whose clock has a tick of `rate` nanoseconds.
pub fn device(number: u32, api: Api, rate: f64) -> CommonEvent<'static> {
    CommonEvent::Device {
        device: hook::Device(number),
        api,
        name: "made-up GPU".into(),
        driver: "driver 1".into(),
        uuid: [6 + number as u8; 16],
        nanoseconds_per_tick: rate,
        clock: match api {
            Api::Cuda => ClockSource::Host,
            _ => ClockSource::Calibrated,
        },
        heaps: vec![1 << 30],
    }
}

/// Returns a queue of a device, for computing and copying.
pub fn queue(number: u32, device: u32) -> CommonEvent<'static> {
    CommonEvent::Queue {
        queue: hook::Queue(number),
        device: hook::Device(device),
        family: 1,
        index: number + 6,
        flags: 6,
        timestamp_bits: 64,
    }
}

/// Returns a sample of the first device's clock, which is the host's.
pub fn clock_sample(at_ns: i64) -> CommonEvent<'static> {
    CommonEvent::ClockSample {
        device: hook::Device(1),
        ticks: at_ns as u64,
        host_ns: at_ns,
        error_ns: 1,
    }
}

/// Returns a kernel in which nothing but its entry point is known.
pub fn kernel(number: u32, entry_point: &str) -> CommonEvent<'_> {
    CommonEvent::Kernel {
        kernel: hook::Kernel(number),
        source: [0; 16],
        entry_point: entry_point.into(),
        specialisation: "".into(),
        source_name: "".into(),
        local_size: [0; 3],
        accesses: vec![],
    }
}

/// Writes a command buffer that is recorded, submitted once (at `begin_ns`), timed, seen finished (at `seen_ns`) and
/// freed. Times of the device are its `ticks`.
pub fn run_command_buffer(
    spool: &Spool,
    number: u32,
    commands: &[Command],
    (begin_ns, seen_ns): (i64, i64),
    ticks: &[u64],
) {
    let recording = hook::CommandRecording(number);
    let instance = hook::Instance(u64::from(number));
    spool.write(&VulkanEvent::Commands {
        recording,
        commands: bytemuck::cast_slice(commands),
    });
    spool.write(&VulkanEvent::Submit {
        submission: hook::Submission::NONE,
        function: SubmitFunction::QueueSubmit,
        span: Span::between(begin_ns, begin_ns),
        queue: hook::Queue(1),
        instances: Cow::Borrowed(&[Instance {
            instance,
            recording,
        }]),
        waits: Cow::Borrowed(&[]),
        signals: Cow::Borrowed(&[]),
    });
    let ticks: Vec<u8> = ticks.iter().flat_map(|tick| tick.to_le_bytes()).collect();
    spool.write(&VulkanEvent::Timestamps {
        instance,
        recording,
        first_query: 0,
        ticks: &ticks,
    });
    spool.write(&VulkanEvent::InstanceEnd {
        instance,
        outcome: Outcome::Timed,
        seen_ns,
    });
    spool.write(&VulkanEvent::CommandRecordingEnd { recording });
}
