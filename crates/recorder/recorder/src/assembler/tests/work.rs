//! Tests that the commands of submitted command buffers become rows, with times or with the reason why these are
//! unknown.

use super::Program;
use super::program::{Commands, losses};
use crate::made_up;
use gapscope_spool::event::*;
use gapscope_spool::ids as hook;
use gapscope_trace::ids::{
    BufferId, CommandBufferId, DeviceId, KernelId, LabelId, ProcessId, QueueId, SubmissionId,
};
use gapscope_trace::manifest::SamplingMode;
use gapscope_trace::tables::{OpaqueWorkKind, Table, Timing, TransferKind};
use std::borrow::Cow;
use std::sync::Arc;

#[test]
fn a_resubmitted_recording_has_its_own_rows_each_time() {
    let mut program = Program::new();
    program.kernel(1, "square");
    let commands = Commands::begun().dispatch(1).dispatch(1).end();
    program.record(5, &commands);
    let at = 1_001_000;
    program.run(5, &[at, at + 10, at + 20, at + 30, at + 45, at + 50]);
    program.run(
        5,
        &[
            at + 1000,
            at + 1010,
            at + 1020,
            at + 1030,
            at + 1046,
            at + 1050,
        ],
    );
    program.event(VulkanEvent::CommandRecordingEnd {
        recording: hook::CommandRecording(5),
    });
    let (manifest, tables) = program.finish();
    assert_eq!(losses(&manifest), []);
    let rows = &tables.dispatches;
    let at = at as i64;
    assert_eq!(
        rows.command_buffer,
        [0, 0, 1, 1].map(|id| Some(CommandBufferId(id)))
    );
    assert_eq!(rows.position, [0, 1, 0, 1]);
    assert_eq!(rows.start_ns, [10, 30, 1010, 1030].map(|t| Some(at + t)));
    assert_eq!(rows.duration_ns, [10, 15, 10, 16].map(Some));
    assert_eq!(rows.groups_y, [Some(4); 4]);
    let buffers = &tables.command_buffers;
    assert_eq!(buffers.start_ns, [Some(at), Some(at + 1000)]);
    assert_eq!(buffers.duration_ns, [Some(50); 2]);
    assert_eq!(buffers.timing, [Timing::Measured; 2]);
    assert_eq!(buffers.submission, [0, 1].map(SubmissionId));
    assert_eq!(buffers.dispatches, [2, 2]);
    assert_eq!(tables.kernels.name, ["square"].map(Arc::from));
}

#[test]
fn a_recording_that_ends_before_its_instance_is_seen_is_kept_until_then() {
    let mut program = Program::new();
    program.kernel(1, "square");
    program.record(5, &Commands::begun().dispatch(1).end());
    let instance = program.submit(5);
    program.event(VulkanEvent::CommandRecordingEnd {
        recording: hook::CommandRecording(5),
    });
    program.ticks(instance, 5, &[1_001_000, 1_001_001, 1_001_002, 1_001_003]);
    program.end(instance, Outcome::Timed);
    let (manifest, tables) = program.finish();
    assert_eq!(losses(&manifest), []);
    assert_eq!(tables.dispatches.duration_ns, [Some(1)]);
}

#[test]
fn unknown_times_have_a_reason_and_are_never_zero() {
    let missing = NO_TICKS;
    let mut program = Program::new();
    program.kernel(1, "k");
    let commands = Commands::begun()
        .dispatch(1)
        .dispatch(1)
        .dispatch(1)
        .dispatch(1)
        .end();
    program.record(5, &commands);
    let t = 1_001_000;
    // The times are zero, end before begin, not delivered, and right.
    program.run(
        5,
        &[
            t,
            0,
            t + 2,
            t + 9,
            t + 4,
            t + 5,
            missing,
            t + 10,
            t + 12,
            t + 20,
        ],
    );
    for outcome in [
        Outcome::NoTimestamps,
        Outcome::NotSeen,
        Outcome::DeviceLost,
        Outcome::NotInstrumented,
        Outcome::NoQueries,
        Outcome::SuspendedRendering,
    ] {
        let instance = program.submit(5);
        program.end(instance, outcome);
    }
    // The end is not delivered.
    program.run(
        5,
        &[
            t + 100,
            t + 101,
            t + 102,
            t + 103,
            t + 104,
            t + 105,
            t + 106,
            t + 107,
            t + 108,
            missing,
        ],
    );
    let (manifest, tables) = program.finish();
    use Timing::*;
    // A time that stays unknown does not wait for the clock.
    assert_eq!(
        tables.command_buffers.timing,
        [
            NoTimestamps,
            NotSeen,
            DeviceLost,
            NotInstrumented,
            NoQueries,
            NoQueries,
            Measured,
            Unknown
        ]
    );
    assert_eq!(
        tables.command_buffers.duration_ns.to_vec()[6..],
        [Some(20), None]
    );
    assert_eq!(tables.command_buffers.seen_ns.to_vec()[..6], [None; 6]);
    assert_eq!(tables.dispatches.duration_ns.to_vec()[..24], [None; 24]);
    assert_eq!(
        tables.dispatches.duration_ns.to_vec()[24..28],
        [None, None, None, Some(2)]
    );
    assert_eq!(
        tables.dispatches.start_ns.to_vec()[24..28],
        [None, None, None, Some(t as i64 + 10)]
    );
    let not_seen =
        "the program ended, reset or freed the command buffer before it was seen finished";
    let off = "recorded while recording was off";
    let none = "timestamps could not be added to it";
    let suspended = "a rendering is suspended across the start or end of the command buffer, where no timestamp may be";
    assert_eq!(
        losses(&manifest),
        [
            (format!("command-buffer times ({suspended})"), 1),
            (format!("command-buffer times ({off})"), 1),
            ("command-buffer times (the device was lost)".to_owned(), 1),
            (
                "command-buffer times (the device wrote no timestamp)".to_owned(),
                1
            ),
            (format!("command-buffer times ({not_seen})"), 1),
            (
                "command-buffer times (the queue family has no timestamps)".to_owned(),
                1
            ),
            (format!("command-buffer times ({none})"), 1),
            (format!("dispatch times ({suspended})"), 4),
            ("dispatch times (invalid device timestamps)".to_owned(), 2),
            (format!("dispatch times ({off})"), 4),
            ("dispatch times (the device was lost)".to_owned(), 4),
            (
                "dispatch times (the device wrote no timestamp)".to_owned(),
                1
            ),
            (format!("dispatch times ({not_seen})"), 4),
            (
                "dispatch times (the queue family has no timestamps)".to_owned(),
                4
            ),
            (format!("dispatch times ({none})"), 4),
        ]
    );
}

#[test]
fn in_command_buffer_mode_dispatch_times_are_not_lost() {
    let mut program = Program::with(SamplingMode::CommandBuffer, 1.0, 64);
    program.kernel(1, "k");
    let mut commands = Commands::begun();
    commands.push(Op::Dispatch, NO_QUERY, [1, 1, 1, 1]);
    program.record(5, &commands.end());
    program.run(5, &[1_001_000, 1_001_500]);
    let (manifest, tables) = program.finish();
    assert_eq!(losses(&manifest), []);
    assert_eq!(tables.dispatches.start_ns, [None]);
    assert_eq!(tables.command_buffers.duration_ns, [Some(500)]);
}

#[test]
fn a_bracketed_instance_is_timed_as_a_whole() {
    let mut program = Program::new();
    program.kernel(1, "k");
    let mut commands = Commands::default();
    commands.push(Op::Begin, NO_QUERY, [0; 4]);
    commands.push(Op::Dispatch, NO_QUERY, [1, 1, 1, 1]);
    commands.push(Op::End, NO_QUERY, [0; 4]);
    program.record(5, &commands);
    let instances = program.submit_to(1, &[5, 5], &[], &[]);
    for (instance, begin) in instances.into_iter().zip([1_001_000, 1_001_020]) {
        program.event(VulkanEvent::Bracket {
            instance: hook::Instance(instance),
            begin_ticks: begin,
            end_ticks: begin + 40,
        });
        program.now_ns = 1_002_000;
        program.end(instance, Outcome::Timed);
    }
    let (manifest, tables) = program.finish();
    assert_eq!(
        tables.command_buffers.start_ns,
        [Some(1_001_000), Some(1_001_020)]
    );
    assert_eq!(tables.command_buffers.duration_ns, [Some(40); 2]);
    assert_eq!(tables.command_buffers.timing, [Timing::Bracketed; 2]);
    assert_eq!(tables.dispatches.start_ns, [None; 2]);
    assert_eq!(
        losses(&manifest),
        [(
            "dispatch times (the command buffer may run twice at once)".to_owned(),
            2
        )]
    );
}

#[test]
fn a_secondary_recording_has_its_own_times_below_the_label_of_its_execution() {
    let mut program = Program::new();
    program.kernel(1, "inner");
    program.text(1, "outside");
    program.text(2, "inside");
    program.record(6, Commands::default().label(2).dispatch(1).end_label());
    let mut primary = Commands::begun();
    primary
        .label(1)
        .push(Op::Execute, NO_QUERY, [6, 0, 0, 0])
        .end_label();
    program.record(5, &primary.end());
    let instance = program.submit(5);
    // The recording is freed before its instance is seen finished.
    program.event(VulkanEvent::CommandRecordingEnd {
        recording: hook::CommandRecording(6),
    });
    let t = 1_001_000;
    program.ticks(instance, 6, &[t + 5, t + 9]);
    program.ticks(instance, 5, &[t, t + 10]);
    program.end(instance, Outcome::Timed);
    let (manifest, tables) = program.finish();
    assert_eq!(losses(&manifest), []);
    assert_eq!(tables.dispatches.duration_ns, [Some(4)]);
    let label = tables.dispatches.label.at(0).unwrap().0 as usize;
    assert_eq!(tables.labels.text[label], "inside".into());
    let parent = tables.labels.parent.at(label).unwrap().0 as usize;
    assert_eq!(tables.labels.text[parent], "outside".into());
    assert_eq!(tables.command_buffers.label, [Some(LabelId(parent as u32))]);
    assert_eq!(tables.markers.duration_ns, [Some(4), Some(4)]);
    assert_eq!(tables.markers.start_ns, [Some(t as i64 + 5); 2]);
}

#[test]
fn a_secondary_recording_without_times_of_its_own_is_opaque_work() {
    let mut program = Program::new();
    program.kernel(1, "inner");
    program.record(6, Commands::default().dispatch(1));
    let mut primary = Commands::begun();
    let query = primary.query(2);
    primary.push(Op::Execute, query, [6, 0, 0, 0]);
    program.record(5, &primary.end());
    program.run(5, &[1_001_000, 1_001_010, 1_001_050, 1_001_060]);
    let (manifest, tables) = program.finish();
    assert_eq!(tables.opaque_work.kind, [OpaqueWorkKind::Other]);
    assert_eq!(tables.opaque_work.duration_ns, [Some(40)]);
    assert_eq!(tables.dispatches.start_ns, [None]);
    assert_eq!(tables.dispatches.position, [1]);
    let lost = (
        "dispatch times (a secondary command buffer was timed as a whole)".to_owned(),
        1,
    );
    assert_eq!(losses(&manifest), [lost]);
}

#[test]
fn transfers_barriers_and_opaque_work_have_their_positions() {
    let mut program = Program::new();
    for (buffer, bytes) in [(1, 4096), (2, 8192)] {
        program.event(VulkanEvent::Buffer {
            buffer: hook::Buffer(buffer),
            device: hook::Device(1),
            bytes,
            at_ns: 0,
        });
    }
    let mut commands = Commands::begun();
    let query = commands.query(2);
    commands.push(Op::CopyBuffer, query, [4096, 0, 1, 2]);
    commands.push(Op::Barrier, NO_QUERY, [0x800, 1, 0x1000, 0]);
    let (begin, end) = (commands.query(1), commands.query(1));
    commands.push(
        Op::OpaqueBegin,
        begin,
        [
            gapscope_spool::event::OpaqueWorkKind::RenderPass
                .number()
                .into(),
            0,
            0,
            0,
        ],
    );
    commands.push(Op::OpaqueEnd, end, [0; 4]);
    let query = commands.query(2);
    commands.push(Op::CopyImage, query, [u32::MAX, u32::MAX, 0, 0]);
    program.record(5, &commands.end());
    let t = 1_001_000;
    program.run(5, &[t, t + 1, t + 4, t + 5, t + 25, t + 30, t + 37, t + 40]);
    let (manifest, tables) = program.finish();
    assert_eq!(losses(&manifest), []);
    assert_eq!(
        tables.transfers.kind,
        [TransferKind::Copy, TransferKind::CopyImage]
    );
    assert_eq!(tables.transfers.bytes, [Some(4096), None]);
    assert_eq!(tables.transfers.source, [Some(BufferId(0)), None]);
    assert_eq!(tables.transfers.destination, [Some(BufferId(1)), None]);
    assert_eq!(tables.transfers.duration_ns, [Some(3), Some(7)]);
    assert_eq!(tables.transfers.position, [0, 3]);
    assert_eq!(tables.barriers.position, [1]);
    assert_eq!(tables.barriers.source_stages, [0x1_0000_0800]);
    assert_eq!(tables.opaque_work.position, [2]);
    assert_eq!(tables.opaque_work.duration_ns, [Some(20)]);
    assert_eq!(tables.command_buffers.transfers, [2]);
}

#[test]
fn rows_wait_for_the_next_clock_sample_and_are_then_exact() {
    let mut program = Program::new();
    program.kernel(1, "k");
    program.record(5, &Commands::begun().dispatch(1).end());
    // The device's clock runs a thousandth fast from here on.
    let ticks = |ns: u64| 1_000_000 + (ns - 1_000_000) / 1000 * 1001;
    program.event(CommonEvent::ClockSample {
        device: hook::Device(1),
        ticks: ticks(1_000_000),
        host_ns: 1_000_000,
        error_ns: 0,
    });
    let at = [1_001_000u64, 1_002_000, 1_003_000, 1_004_000];
    program.run(5, &at.map(ticks));
    assert_eq!(program.tables.dispatches.len(), 0);
    program.event(CommonEvent::ClockSample {
        device: hook::Device(1),
        ticks: ticks(101_000_000),
        host_ns: 101_000_000,
        error_ns: 0,
    });
    assert_eq!(program.tables.dispatches.start_ns, [Some(1_002_000)]);
    assert_eq!(program.tables.dispatches.duration_ns, [Some(1_000)]);
}

#[test]
fn two_processes_keep_their_ids_apart() {
    let mut program = Program::new();
    program.kernel(1, "first");
    let first = program.process;
    let second = program.assembler.add_process(200, 5);
    program.process = second;
    program.event(CommonEvent::Device {
        device: hook::Device(1),
        api: Api::Vulkan,
        name: Cow::Borrowed("other GPU"),
        driver: Cow::Borrowed("driver 2"),
        uuid: [8; 16],
        nanoseconds_per_tick: 1.0,
        clock: ClockSource::Calibrated,
        heaps: Vec::new(),
    });
    program.event(made_up::queue(1, 1));
    program.sample(0);
    program.kernel(1, "second");
    for process in [first, second] {
        program.process = process;
        program.record(5, &Commands::begun().dispatch(1).end());
        program.run(5, &[1_001_000, 1_001_001, 1_001_005, 1_001_006]);
        program.event(VulkanEvent::CommandRecordingEnd {
            recording: hook::CommandRecording(5),
        });
    }
    let (manifest, tables) = program.finish();
    assert_eq!(tables.kernels.name, ["first", "second"].map(Arc::from));
    assert_eq!(tables.kernels.process, [0, 1].map(ProcessId));
    let mut rows: Vec<_> = (0..2).map(|row| tables.dispatches.row(row)).collect();
    rows.sort_unstable_by_key(|r| r.kernel);
    assert_eq!([rows[0].kernel, rows[1].kernel], [0, 1].map(KernelId));
    assert_eq!([rows[0].queue, rows[1].queue], [0, 2].map(QueueId));
    assert_eq!(manifest.queues[2].device, DeviceId(1));
    assert_eq!(manifest.queues[2].capabilities, ["compute", "transfer"]);
    assert_eq!(manifest.devices[1].name, "other GPU");
}
