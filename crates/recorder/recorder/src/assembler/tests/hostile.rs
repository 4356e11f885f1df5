//! Tests that damaged and incomplete streams of events cause no panic and no invented time.

use super::Program;
use super::program::{Commands, losses};
use crate::Names;
use crate::assembler::Assembler;
use crate::made_up;
use gapscope_spool::Event;
use gapscope_spool::event::*;
use gapscope_spool::ids as hook;
use gapscope_trace::ids::ProcessId;
use gapscope_trace::manifest::SamplingMode;
use gapscope_trace::tables::{Table, Timing};
use gapscope_trace::{Tables, TraceWriter};
use proptest::prelude::*;
use std::borrow::Cow;
use std::sync::Arc;

#[test]
fn a_killed_process_keeps_what_was_timed() {
    let mut program = Program::new();
    program.kernel(1, "k");
    program.record(5, &Commands::begun().dispatch(1).end());
    let timed = program.submit(5);
    program.submit(5);
    // The process is killed between the timestamps and the end of the instance.
    program.ticks(timed, 5, &[1_001_000, 1_001_001, 1_001_004, 1_001_005]);
    let (manifest, tables) = program.finish();
    assert_eq!(tables.command_buffers.len(), 2);
    let times: Vec<_> = tables.dispatches.duration_ns.iter().flatten().collect();
    assert_eq!(times, [3]);
    assert!(tables.command_buffers.timing.contains(&Timing::NotSeen));
    assert_eq!(
        losses(&manifest)
            .iter()
            .map(|(_, count)| count)
            .sum::<u64>(),
        2
    );
}

#[test]
fn what_a_clock_sample_settles_becomes_rows_piece_by_piece() {
    const INSTANCES: usize = 1000;
    let mut program = Program::new();
    program.kernel(1, "k");
    let mut commands = Commands::begun();
    // The tables fill at different rates.
    (0..100).for_each(|index| {
        commands.dispatch(1);
        if index % 50 != 0 {
            commands.push(Op::Barrier, NO_QUERY, [1, 0, 1, 0]);
            commands.push(Op::FillBuffer, NO_QUERY, [64, 0, 0, 0]);
        }
    });
    program.record(5, &commands.end());
    let (mut rows, mut most, mut writes) = (0, 0, 0);
    // The writer also takes only full tables.
    let mut write = |tables: &mut Tables| {
        most = most.max(tables.dispatches.len());
        if tables.dispatches.len() >= TraceWriter::BATCH_ROWS {
            rows += tables.dispatches.len();
            tables.dispatches.clear();
        }
        if tables.barriers.len() >= TraceWriter::BATCH_ROWS {
            tables.barriers.clear();
        }
        if tables.transfers.len() >= TraceWriter::BATCH_ROWS {
            tables.transfers.clear();
        }
        writes += 1;
        assert!(writes < 2 * INSTANCES, "it gets nowhere");
    };
    for _ in 0..INSTANCES {
        let begin = program.now_ns as u64 + 1000;
        let ticks: Vec<u64> = (begin..begin + 202).collect();
        program.run(5, &ticks);
        write(&mut program.tables);
    }
    program.sample(program.now_ns + 1_000_000);
    write(&mut program.tables);
    while program
        .assembler
        .settle_some(program.process, &mut program.tables)
    {
        write(&mut program.tables);
    }
    assert_eq!(rows + program.tables.dispatches.len(), 100 * INSTANCES);
    assert!(most < 20_000, "{most} rows at once");
}

#[test]
fn what_refers_to_missing_records_is_counted() {
    let mut program = Program::new();
    program.run(7, &[1_001_000, 1_001_010]);
    program.event(VulkanEvent::Timestamps {
        instance: hook::Instance(999),
        recording: hook::CommandRecording(7),
        first_query: 0,
        ticks: &[0; 16],
    });
    program.event(CommonEvent::Free {
        memory: hook::Allocation(3),
        at_ns: 5,
    });
    let mut commands = Commands::begun();
    commands
        .dispatch(44)
        .push(Op::Execute, NO_QUERY, [66, 0, 0, 0]);
    program.record(8, &commands.end());
    program.run(8, &[1_002_000, 1_002_001, 1_002_002, 1_002_010]);
    let (manifest, tables) = program.finish();
    assert_eq!(tables.kernels.name, ["unknown kernel"].map(Arc::from));
    assert_eq!(tables.dispatches.duration_ns, [Some(1)]);
    let missing = "the record of their";
    assert_eq!(
        losses(&manifest),
        [
            (
                "command buffers' contents (the record of the commands is missing)".to_owned(),
                1
            ),
            (
                "command-buffer times (the record of the commands is missing)".to_owned(),
                1
            ),
            (format!("memory frees ({missing} allocation is missing)"), 1),
            (
                format!("secondary command buffers' contents ({missing} commands is missing)"),
                1
            ),
            (format!("timestamps ({missing} command is missing)"), 4),
        ]
    );
}

#[test]
fn a_device_without_samples_has_no_times() {
    let mut program = Program::new();
    program.event(made_up::device(2, Api::Vulkan, 1.0));
    program.event(made_up::queue(3, 2));
    program.record(5, &Commands::begun().end());
    let instance = program.submit_to(3, &[5], &[], &[])[0];
    program.ticks(instance, 5, &[1_001_000, 1_001_010]);
    program.end(instance, Outcome::Timed);
    let (manifest, tables) = program.finish();
    assert_eq!(tables.command_buffers.start_ns, [None]);
    let lost = "command-buffer times (the device's clock could not be mapped to the host's)";
    assert_eq!(losses(&manifest), [(lost.to_owned(), 1)]);
    assert_eq!(manifest.devices[1].clock.error_ns, None);
}

#[test]
fn a_recording_is_forgotten_when_nobody_can_use_it() {
    let mut program = Program::new();
    for recording in 0..100 {
        program.record(recording, &Commands::begun().end());
        program.run(recording, &[1_001_000, 1_001_010]);
        program.event(VulkanEvent::CommandRecordingEnd {
            recording: hook::CommandRecording(recording),
        });
    }
    program.sample(3_000_000);
    let state = postcard::to_stdvec(&program.assembler).unwrap();
    assert!(state.len() < 2_000, "{}", state.len());
}

/// Generates small ids, so that events refer to one another.
fn id() -> impl Strategy<Value = u32> {
    0..4u32
}

fn event() -> impl Strategy<Value = Event<'static>> {
    let time = || prop_oneof![0..10_000_000i64, any::<i64>()];
    let tick = || prop_oneof![0..10_000_000u64, Just(NO_TICKS), any::<u64>()];
    let command = (
        0..20u32,
        prop_oneof![0..8u32, Just(NO_QUERY), any::<u32>()],
        id(),
        id(),
        id(),
        id(),
    );
    let commands = proptest::collection::vec(command, 0..12).prop_map(|commands| {
        let words = commands
            .into_iter()
            .flat_map(|(op, q, a, b, c, d)| [op, q, a, b, c, d]);
        let bytes: Vec<u8> = words.flat_map(u32::to_le_bytes).collect();
        &*bytes.leak()
    });
    let semaphores = || {
        proptest::collection::vec((id(), 0..3u64), 0..3).prop_map(|all| {
            let all = all.into_iter().map(|(semaphore, value)| SemaphoreValue {
                semaphore: hook::Semaphore(semaphore),
                value,
            });
            Cow::Owned(all.collect())
        })
    };
    let outcome = prop_oneof![
        4 => Just(Outcome::Timed),
        1 => Just(Outcome::NotSeen),
        1 => Just(Outcome::DeviceLost),
    ];
    prop_oneof![
        (id(), any::<f64>(), any::<bool>())
            .prop_map(|(device, rate, calibrated)| {
                CommonEvent::Device {
                    device: hook::Device(device),
                    api: Api::Vulkan,
                    name: "".into(),
                    driver: "".into(),
                    uuid: [0; 16],
                    nanoseconds_per_tick: rate,
                    clock: if calibrated {
                        ClockSource::Calibrated
                    } else {
                        ClockSource::Brackets
                    },
                    heaps: vec![],
                }
            })
            .prop_map(Event::from),
        (id(), any::<bool>(), time())
            .prop_map(|(device, lost, at_ns)| CommonEvent::DeviceEnd {
                device: hook::Device(device),
                lost,
                at_ns,
            })
            .prop_map(Event::from),
        (id(), id(), prop_oneof![Just(64u32), Just(36), any::<u32>()])
            .prop_map(|(queue, device, timestamp_bits)| {
                CommonEvent::Queue {
                    queue: hook::Queue(queue),
                    device: hook::Device(device),
                    family: 0,
                    index: 0,
                    flags: 7,
                    timestamp_bits,
                }
            })
            .prop_map(Event::from),
        (id(), tick(), time(), any::<u32>())
            .prop_map(|(device, ticks, host_ns, error_ns)| {
                CommonEvent::ClockSample {
                    device: hook::Device(device),
                    ticks,
                    host_ns,
                    error_ns,
                }
            })
            .prop_map(Event::from),
        id().prop_map(|kernel| CommonEvent::Kernel {
            kernel: hook::Kernel(kernel),
            source: [1; 16],
            entry_point: "main".into(),
            specialisation: "".into(),
            source_name: "".into(),
            local_size: [1; 3],
            accesses: vec![],
        })
        .prop_map(Event::from),
        (id(), id(), any::<u64>(), time())
            .prop_map(|(buffer, device, bytes, at_ns)| {
                VulkanEvent::Buffer {
                    buffer: hook::Buffer(buffer),
                    device: hook::Device(device),
                    bytes,
                    at_ns,
                }
            })
            .prop_map(Event::from),
        (id(), id(), any::<u64>())
            .prop_map(|(buffer, memory, offset)| VulkanEvent::BufferMemory {
                buffer: hook::Buffer(buffer),
                memory: hook::Allocation(memory),
                offset,
            })
            .prop_map(Event::from),
        (id(), time())
            .prop_map(|(buffer, at_ns)| VulkanEvent::BufferEnd {
                buffer: hook::Buffer(buffer),
                at_ns,
            })
            .prop_map(Event::from),
        (id(), id(), any::<u64>(), any::<u64>(), 7..10u32)
            .prop_map(|(content, buffer, offset, bytes, kind)| {
                let entries = vec![Binding {
                    binding: 0,
                    element: 0,
                    buffer: hook::Buffer(buffer),
                    offset,
                    bytes,
                    kind,
                }];
                VulkanEvent::Bindings {
                    content: hook::BindingContent(content),
                    entries: Cow::Owned(entries),
                }
            })
            .prop_map(Event::from),
        (id(), commands)
            .prop_map(|(recording, commands)| VulkanEvent::Commands {
                recording: hook::CommandRecording(recording),
                commands,
            })
            .prop_map(Event::from),
        id().prop_map(|recording| VulkanEvent::CommandRecordingEnd {
            recording: hook::CommandRecording(recording),
        })
        .prop_map(Event::from),
        (
            id(),
            time(),
            time(),
            proptest::collection::vec((0..6u64, id()), 0..3),
            semaphores(),
            semaphores()
        )
            .prop_map(|(queue, begin_ns, end_ns, instances, waits, signals)| {
                let instances = instances.into_iter().map(|(instance, recording)| Instance {
                    instance: hook::Instance(instance),
                    recording: hook::CommandRecording(recording),
                });
                let instances = Cow::Owned(instances.collect());
                VulkanEvent::Submit {
                    submission: hook::Submission(begin_ns as u64),
                    function: SubmitFunction::QueueSubmit,
                    span: Span::between(begin_ns, end_ns),
                    queue: hook::Queue(queue),
                    instances,
                    waits,
                    signals,
                }
            })
            .prop_map(Event::from),
        (
            0..6u64,
            id(),
            prop_oneof![0..4u32, any::<u32>()],
            proptest::collection::vec(tick(), 0..8)
        )
            .prop_map(|(instance, recording, first_query, ticks)| {
                let bytes: Vec<u8> = ticks.into_iter().flat_map(u64::to_le_bytes).collect();
                VulkanEvent::Timestamps {
                    instance: hook::Instance(instance),
                    recording: hook::CommandRecording(recording),
                    first_query,
                    ticks: bytes.leak(),
                }
            })
            .prop_map(Event::from),
        (0..6u64, tick(), tick())
            .prop_map(|(instance, begin_ticks, end_ticks)| {
                VulkanEvent::Bracket {
                    instance: hook::Instance(instance),
                    begin_ticks,
                    end_ticks,
                }
            })
            .prop_map(Event::from),
        (0..6u64, outcome, time())
            .prop_map(|(instance, outcome, seen_ns)| {
                VulkanEvent::InstanceEnd {
                    instance: hook::Instance(instance),
                    outcome,
                    seen_ns,
                }
            })
            .prop_map(Event::from),
        (id(), 0..3u8, id(), time())
            .prop_map(|(queue, edge, text, at_ns)| CommonEvent::Label {
                scope: if queue == 0 {
                    LabelScope::Thread
                } else {
                    LabelScope::Queue(hook::Queue(queue))
                },
                edge: [LabelEdge::Begin, LabelEdge::End, LabelEdge::Instant][usize::from(edge)],
                text: hook::Text(text),
                at_ns,
            })
            .prop_map(Event::from),
        (id(), any::<u64>(), time())
            .prop_map(|(semaphore, value, at_ns)| {
                VulkanEvent::HostSignal {
                    semaphore: SemaphoreValue {
                        semaphore: hook::Semaphore(semaphore),
                        value,
                    },
                    at_ns,
                }
            })
            .prop_map(Event::from),
        id().prop_map(|semaphore| VulkanEvent::SemaphoreEnd {
            semaphore: hook::Semaphore(semaphore),
        })
        .prop_map(Event::from),
        (id(), 0..3u32, 0..4usize)
            .prop_map(|(device, family, count)| {
                let counter = PerformanceCounter {
                    name: "counter".to_owned(),
                    category: "any".to_owned(),
                    unit: PerformanceUnit::Nanoseconds,
                };
                VulkanEvent::CounterSet {
                    device: hook::Device(device),
                    family,
                    counters: Cow::Owned(vec![counter; count]),
                }
            })
            .prop_map(Event::from),
        (id(), 0..3u32, prop::collection::vec(any::<f64>(), 0..5))
            .prop_map(|(instance, family, values)| VulkanEvent::Counted {
                instance: hook::Instance(u64::from(instance)),
                family,
                values: Cow::Owned(values),
            })
            .prop_map(Event::from),
    ]
}

/// Checks that all columns of a table have one length.
pub fn check(tables: &Tables) {
    macro_rules! check {
        ($($field:ident: $table:ty,)+) => {$( let _ = tables.$field.to_batch(); )+};
    }
    gapscope_trace::for_each_table!(check);
    for (start, duration) in tables
        .dispatches
        .start_ns
        .iter()
        .zip(&tables.dispatches.duration_ns)
    {
        assert_eq!(start.is_some(), duration.is_some());
        assert!(duration.is_none_or(|d| d >= 0));
    }
}

proptest! {
    #[test]
    fn any_stream_of_events_is_survived(events in proptest::collection::vec(((0..2u32).prop_map(ProcessId), event()), 0..120)) {
        let mut assembler = Assembler::new(SamplingMode::Dispatch);
        let mut tables = Tables::default();
        for pid in [1, 2] {
            assembler.add_process(pid, 0);
        }
        for (process, event) in events {
            assembler.apply(process, hook::Thread(1), event, &mut tables);
        }
        assembler.finish(&Names::default(), &mut tables);
        check(&tables);
        let submitted: u32 = tables.submissions.command_buffers.iter().sum();
        prop_assert!(tables.command_buffers.len() as u32 <= submitted);
    }

    #[test]
    fn a_resumed_assembler_makes_the_same_rows(
        events in proptest::collection::vec(((0..2u32).prop_map(ProcessId), event()), 0..80),
        at in 0..80usize,
    ) {
        let new = || {
            let mut assembler = Assembler::new(SamplingMode::Dispatch);
            for pid in [1, 2] {
                assembler.add_process(pid, 0);
            }
            assembler
        };
        let (mut whole, mut resumed) = (new(), new());
        let (mut expected, mut tables) = (Tables::default(), Tables::default());
        for (index, (process, event)) in events.into_iter().enumerate() {
            if index == at {
                let state = postcard::to_stdvec(&resumed).unwrap();
                resumed = postcard::from_bytes(&state).unwrap();
            }
            whole.apply(process, hook::Thread(1), event.clone(), &mut expected);
            resumed.apply(process, hook::Thread(1), event, &mut tables);
        }
        whole.finish(&Names::default(), &mut expected);
        resumed.finish(&Names::default(), &mut tables);
        prop_assert_eq!(expected, tables);
    }
}
