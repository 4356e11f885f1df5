//! CUDA: activities in any order to rows.

mod clock;

use crate::Names;
use crate::assembler::Assembler;
use gapscope_spool::Event;
use gapscope_spool::event::*;
use gapscope_trace::Tables;
use gapscope_trace::manifest::{ClockMethod, Manifest, SamplingMode};
use gapscope_trace::tables::{HostCallKind, MarkerScope, OpaqueWorkKind, Table};
use proptest::prelude::*;
use std::borrow::Cow;

const FUNCTIONS: [&str; 10] = [
    "cudaLaunchKernel",
    "cudaMemcpyAsync",
    "cudaMemcpy",
    "cudaGraphLaunch",
    "cudaStreamSynchronize",
    "cudaEventQuery",
    "cudaMalloc",
    "cudaStreamWaitEvent",
    "cudaStreamBeginCapture",
    "cudaStreamEndCapture",
];
const LAUNCH: u32 = 1;
const COPY_ASYNC: u32 = 2;
const COPY: u32 = 3;
const GRAPH_LAUNCH: u32 = 4;
const SYNCHRONIZE: u32 = 5;
const QUERY: u32 = 6;
const MALLOC: u32 = 7;
const WAIT_EVENT: u32 = 8;
const BEGIN_CAPTURE: u32 = 9;
const END_CAPTURE: u32 = 10;

/// A process with one device, two streams and two kernels.
struct Cuda {
    assembler: Assembler,
    tables: Tables,
    process: u32,
    written: u64,
}

impl Cuda {
    fn new() -> Cuda {
        let mut assembler = Assembler::new(SamplingMode::Dispatch);
        let process = assembler.add_process(100, 0);
        let mut cuda = Cuda {
            assembler,
            tables: Tables::default(),
            process,
            written: 0,
        };
        cuda.event(Event::Device {
            device: 1,
            api: Cow::Borrowed("cuda"),
            name: Cow::Borrowed("made-up GPU"),
            driver: Cow::Borrowed("580"),
            uuid: [7; 16],
            nanoseconds_per_tick: 1.0,
            clock: ClockSource::Host,
            heaps: vec![1 << 30],
        });
        for queue in [1, 2] {
            cuda.event(Event::Queue {
                queue,
                device: 1,
                family: 1,
                index: queue + 6,
                flags: 6,
                timestamp_bits: 64,
            });
        }
        for (at, name) in FUNCTIONS.iter().enumerate() {
            cuda.event(Event::Function {
                function: at as u32 + 1,
                interface: Cow::Borrowed("cuda-runtime"),
                name: Cow::Borrowed(name),
            });
        }
        for (kernel, entry_point) in [(1, "_Z6vecAddPKfS0_Pfi"), (2, "triton_poi_fused_0")] {
            cuda.event(Event::Kernel {
                kernel,
                device: 0,
                source: [0; 16],
                entry_point: Cow::Borrowed(entry_point),
                specialisation: Cow::Borrowed(""),
                source_name: Cow::Borrowed(""),
                local_size: [0; 3],
                accesses: Vec::new(),
            });
        }
        // Kernel 1 on both streams, kernel 2 in two sizes on the first.
        for (launch, kernel, queue, threads) in [
            (1, 1, 1, 128),
            (2, 1, 2, 128),
            (3, 2, 1, 64),
            (4, 2, 1, 256),
        ] {
            cuda.event(Event::Launch {
                launch,
                shape: LaunchShape {
                    kernel,
                    queue,
                    groups: [8, 2, 1],
                    local_size: [threads, 1, 1],
                    cluster: [0; 3],
                    static_shared_bytes: 16,
                    dynamic_shared_bytes: 1024,
                    local_bytes: 0,
                    registers: 40,
                    cooperative: false,
                    from_device: false,
                },
            });
        }
        cuda.event(Event::Route {
            route: 1,
            queue: 1,
            kind: TransferKind::HostToDevice,
            source: MemoryPlace::Pageable,
            destination: MemoryPlace::Device,
            devices: None,
        });
        cuda
    }

    fn event(&mut self, event: Event<'_>) {
        self.assembler
            .apply(self.process, 10, event, &mut self.tables);
    }

    fn batch(&mut self, activities: &[Activity]) {
        let mut packer = Packer::new(1 << 16);
        for activity in activities {
            packer.push(activity);
        }
        self.event(Event::Activities {
            first: self.written,
            count: activities.len() as u32,
            bytes: packer.bytes(),
        });
        self.written += activities.len() as u64;
    }

    fn end(&mut self, at_ns: i64) {
        self.event(Event::ProcessEnd { at_ns });
    }

    fn finish(mut self) -> (Manifest, Tables) {
        self.assembler.finish(&Names::default(), &mut self.tables);
        let mut manifest = Manifest::default();
        self.assembler.describe(&mut manifest);
        (manifest, self.tables)
    }
}

fn span(start_ns: i64, end_ns: i64) -> Option<Span> {
    Some(Span {
        start_ns,
        duration_ns: end_ns - start_ns,
    })
}

fn call(function: u32, correlation: u32, start_ns: i64, end_ns: i64) -> Activity {
    Activity::Call {
        function,
        thread: 10,
        span: span(start_ns, end_ns),
        correlation,
        result: 0,
    }
}

fn kernel(launch: u32, correlation: u32, start_ns: i64, end_ns: i64) -> Activity {
    Activity::Kernel {
        launch,
        span: span(start_ns, end_ns),
        correlation,
        node: None,
    }
}

fn node(launch: u32, correlation: u32, start_ns: i64, end_ns: i64) -> Activity {
    Activity::Kernel {
        launch,
        span: span(start_ns, end_ns),
        correlation,
        node: Some(GraphNode {
            graph: 3,
            node: start_ns as u64,
        }),
    }
}

#[test]
fn a_launch_and_its_kernel_find_each_other_whichever_comes_first() {
    let mut cuda = Cuda::new();
    cuda.batch(&[call(LAUNCH, 1, 1000, 1005), kernel(3, 2, 1030, 1040)]);
    cuda.batch(&[kernel(1, 1, 1010, 1020), call(LAUNCH, 2, 1006, 1011)]);
    cuda.end(2000);
    let (manifest, tables) = cuda.finish();
    let d = &tables.dispatches;
    assert_eq!(d.command_buffer, [None, None]);
    assert_eq!(d.submission, [Some(0), Some(1)]);
    assert_eq!(d.start_ns, [Some(1010), Some(1030)]);
    assert_eq!(d.duration_ns, [Some(10), Some(10)]);
    assert_eq!(d.groups_x, [Some(8), Some(8)]);
    let s = &tables.submissions;
    assert_eq!(
        (s.begin_ns.as_slice(), s.end_ns.as_slice()),
        ([1000, 1006].as_slice(), [1005, 1011].as_slice())
    );
    assert_eq!(s.function[0].as_deref(), Some("cudaLaunchKernel"));
    assert_eq!(s.command_buffers, [0, 0], "a launch is no command buffer");
    assert!(tables.command_buffers.is_empty() && tables.host_calls.is_empty());
    assert_eq!(manifest.losses, []);
}

#[test]
fn kernels_are_named_and_have_a_row_for_each_size() {
    let mut cuda = Cuda::new();
    for (at, launch) in [1, 2, 3, 4].into_iter().enumerate() {
        let (correlation, begin) = (at as u32 + 1, 1000 + at as i64 * 100);
        cuda.batch(&[
            call(LAUNCH, correlation, begin, begin + 5),
            kernel(launch, correlation, begin + 10, begin + 20),
        ]);
    }
    let (_, tables) = cuda.finish();
    let k = &tables.kernels;
    assert_eq!(
        k.name,
        ["vecAdd", "triton_poi_fused_0", "triton_poi_fused_0"]
    );
    assert_eq!(
        k.full_name[0].as_deref(),
        Some("vecAdd(float const*, float const*, float*, int)")
    );
    assert_eq!(k.full_name[1], None);
    assert_eq!(k.entry_point[0].as_deref(), Some("_Z6vecAddPKfS0_Pfi"));
    assert_eq!(k.local_x, [128, 64, 256].map(Some));
    assert_eq!(k.registers, [Some(40); 3]);
    assert_eq!(k.static_shared_bytes, [Some(16); 3]);
    assert_eq!(k.dynamic_shared_bytes, [Some(1024); 3]);
    assert_eq!(tables.dispatches.kernel, [0, 0, 1, 2]);
    assert_eq!(tables.dispatches.queue, [0, 1, 0, 0]);
}

#[test]
fn a_graph_launch_is_a_command_buffer_of_its_nodes() {
    let mut cuda = Cuda::new();
    cuda.batch(&[node(1, 9, 1010, 1020), call(GRAPH_LAUNCH, 9, 1000, 1008)]);
    cuda.batch(&[node(2, 9, 1015, 1040), node(3, 9, 1050, 1060)]);
    cuda.batch(&[
        call(GRAPH_LAUNCH, 10, 1100, 1108),
        Activity::GraphRun {
            graph: 3,
            queue: 1,
            span: span(1110, 1160),
            correlation: 10,
        },
    ]);
    cuda.end(2000);
    let (manifest, tables) = cuda.finish();
    let c = &tables.command_buffers;
    assert_eq!(c.id, [0, 1]);
    assert_eq!(c.start_ns, [Some(1010), Some(1110)]);
    assert_eq!(c.duration_ns, [Some(50), Some(50)]);
    assert_eq!(c.dispatches, [3, 0]);
    assert_eq!(c.submission, [0, 1]);
    assert_eq!(tables.submissions.command_buffers, [1, 1]);
    let d = &tables.dispatches;
    assert_eq!(d.command_buffer, [Some(0); 3]);
    assert_eq!(d.submission, [None; 3]);
    assert_eq!(d.position, [0, 1, 2]);
    assert_eq!(tables.opaque_work.kind, [OpaqueWorkKind::Graph]);
    assert_eq!(manifest.losses, []);
}

#[test]
fn copies_have_their_direction_and_a_synchronous_one_is_a_wait_too() {
    let mut cuda = Cuda::new();
    let copy = |correlation, start_ns, end_ns| Activity::Transfer {
        route: 1,
        bytes: 4096,
        span: span(start_ns, end_ns),
        correlation,
        node: None,
    };
    cuda.batch(&[call(COPY_ASYNC, 1, 1000, 1005), copy(1, 1010, 1020)]);
    cuda.batch(&[call(COPY, 2, 1100, 1130), copy(2, 1110, 1120)]);
    cuda.end(2000);
    let (manifest, tables) = cuda.finish();
    let t = &tables.transfers;
    assert_eq!(
        t.kind,
        [gapscope_trace::tables::TransferKind::HostToDevice; 2]
    );
    assert_eq!(t.bytes, [Some(4096); 2]);
    assert_eq!(t.host_memory[0].as_deref(), Some("pageable"));
    let h = &tables.host_calls;
    assert_eq!(
        (h.call.as_slice(), h.queue[0]),
        ([HostCallKind::CopyAndWait].as_slice(), Some(0))
    );
    assert_eq!(manifest.losses, []);
}

#[test]
fn other_calls_are_host_calls_and_polls_are_folded() {
    let mut cuda = Cuda::new();
    let waited = |correlation, start_ns, end_ns| Activity::Wait {
        kind: WaitKind::HostForQueue,
        queue: 2,
        event: 0,
        occurrence: 0,
        span: span(start_ns, end_ns),
        correlation,
    };
    cuda.batch(&[
        call(MALLOC, 1, 1000, 1500),
        call(QUERY, 2, 1600, 1601),
        call(QUERY, 3, 1700, 1702),
    ]);
    cuda.batch(&[call(SYNCHRONIZE, 4, 2000, 2500), waited(4, 2001, 2499)]);
    cuda.batch(&[
        waited(5, 3001, 3499),
        call(SYNCHRONIZE, 5, 3000, 3500),
        call(SYNCHRONIZE, 6, 4000, 4500),
    ]);
    cuda.end(9000);
    let (_, tables) = cuda.finish();
    let h = &tables.host_calls;
    use HostCallKind::*;
    assert_eq!(
        h.call,
        [
            AllocateMemory,
            PollEvent,
            WaitQueueIdle,
            WaitQueueIdle,
            WaitQueueIdle
        ]
    );
    assert_eq!(h.queue, [None, None, Some(1), Some(1), None]);
    assert_eq!(
        (h.count[1], h.start_ns[1], h.duration_ns[1], h.busy_ns[1]),
        (2, 1600, 102, 3)
    );
    assert_eq!(h.function[0].as_deref(), Some("cudaMalloc"));
}

#[test]
fn a_kernel_has_the_label_around_its_call_however_late_it_is_told_of() {
    let mut cuda = Cuda::new();
    for (text, value) in [(1, "step"), (2, "forward"), (3, "library")] {
        cuda.event(Event::Text { text, value });
    }
    let mut label = |scope, edge, text, at_ns| {
        cuda.event(Event::Label {
            scope,
            edge,
            text,
            at_ns,
        });
    };
    use LabelEdge::*;
    label(LabelScope::Thread, Begin, 1, 900);
    label(LabelScope::Thread, Begin, 2, 950);
    label(LabelScope::Domain(4), Begin, 3, 980);
    label(LabelScope::Domain(4), End, 0, 1100);
    label(LabelScope::Thread, End, 0, 1200);
    label(LabelScope::Thread, End, 0, 1300);
    label(
        LabelScope::Range {
            domain: 4,
            range: 77,
        },
        Begin,
        3,
        1350,
    );
    cuda.event(Event::LabelDetail {
        category: 0,
        color: None,
        payload: Some(Payload::Signed(-5)),
    });
    label_end(&mut cuda, 77, 1400);
    cuda.event(Event::Label {
        scope: LabelScope::Thread,
        edge: Instant,
        text: 2,
        at_ns: 1450,
    });
    cuda.event(Event::LabelPayload {
        text: "bytes=4096, root=0",
    });
    for (correlation, begin) in [(1, 800), (2, 1000), (3, 1150), (4, 1250), (5, 1500)] {
        cuda.batch(&[
            call(LAUNCH, correlation, begin, begin + 5),
            kernel(1, correlation, begin + 10, begin + 20),
        ]);
    }
    cuda.end(2000);
    let (_, tables) = cuda.finish();
    let texts: Vec<Option<&str>> = tables
        .dispatches
        .label
        .iter()
        .map(|id| id.map(|id| tables.labels.text[id as usize].as_str()))
        .collect();
    assert_eq!(
        texts,
        [None, Some("library"), Some("forward"), Some("step"), None]
    );
    let m = &tables.markers;
    assert_eq!(m.scope[3], MarkerScope::Process);
    assert_eq!((m.start_ns[3], m.duration_ns[3]), (Some(1350), Some(50)));
    assert_eq!(m.payload[3].as_deref(), Some("-5"));
    assert_eq!((m.start_ns[4], m.duration_ns[4]), (Some(1450), Some(0)));
    assert_eq!(m.payload[4].as_deref(), Some("bytes=4096, root=0"));
    let parents: Vec<_> = tables.labels.parent.clone();
    assert_eq!(
        parents,
        [None, Some(0), None, None],
        "a domain nests for itself"
    );
}

fn label_end(cuda: &mut Cuda, range: u64, at_ns: i64) {
    cuda.event(Event::Label {
        scope: LabelScope::Range { domain: 4, range },
        edge: LabelEdge::End,
        text: 0,
        at_ns,
    });
}

#[test]
fn a_stream_that_waits_for_an_event_depends_on_the_work_before_it() {
    let mut cuda = Cuda::new();
    cuda.batch(&[
        call(LAUNCH, 1, 1000, 1005),
        Activity::EventRecord {
            event: 6,
            occurrence: 1,
            queue: 1,
            correlation: 2,
        },
        call(WAIT_EVENT, 3, 1010, 1011),
        Activity::Wait {
            kind: WaitKind::QueueForEvent,
            queue: 2,
            event: 6,
            occurrence: 1,
            span: span(1010, 1010),
            correlation: 3,
        },
        call(LAUNCH, 4, 1020, 1025),
        kernel(1, 1, 1010, 1100),
        kernel(2, 4, 1101, 1200),
    ]);
    cuda.end(2000);
    let (_, tables) = cuda.finish();
    assert_eq!(tables.dependencies.submission, [1]);
    assert_eq!(tables.dependencies.waits_for, [Some(0)]);
}

#[test]
fn what_has_no_other_half_is_counted() {
    let mut cuda = Cuda::new();
    cuda.batch(&[call(LAUNCH, 1, 1000, 1005), kernel(1, 1, 1010, 1020)]);
    // Captured into a graph: it launched nothing.
    cuda.batch(&[
        call(BEGIN_CAPTURE, 5, 890, 895),
        call(LAUNCH, 2, 900, 905),
        call(END_CAPTURE, 6, 910, 915),
    ]);
    // Its kernel was still running when the process was killed.
    cuda.batch(&[call(LAUNCH, 3, 1100, 1105)]);
    // Its call was lost, and so were its times.
    cuda.batch(&[Activity::Kernel {
        launch: 1,
        span: None,
        correlation: 4,
        node: None,
    }]);
    // A batch of five was lost.
    cuda.written += 5;
    cuda.batch(&[]);
    let (manifest, tables) = cuda.finish();
    assert_eq!(tables.dispatches.start_ns, [Some(1010), None]);
    assert_eq!(tables.dispatches.submission, [Some(0), None]);
    let launches = tables
        .host_calls
        .call
        .iter()
        .filter(|c| **c == HostCallKind::Launch);
    assert_eq!(launches.count(), 2);
    let losses: Vec<_> = manifest
        .losses
        .iter()
        .map(|l| (l.what.as_str(), l.count))
        .collect();
    assert_eq!(
        losses,
        [
            ("CUDA activities", 5),
            ("dispatch times", 1),
            ("dispatches", 1),
            ("host calls of GPU work", 1)
        ]
    );
}

#[test]
fn launches_whose_work_never_came_are_counted_when_a_process_is_gone() {
    let mut cuda = Cuda::new();
    cuda.batch(&[
        // A kernel that still ran on another stream; its record comes when it has ended.
        call(LAUNCH, 1, 1000, 1005),
        // Captured into a graph, by this thread or another: it does not run.
        call(BEGIN_CAPTURE, 2, 1100, 1105),
        call(LAUNCH, 3, 1110, 1115),
        call(END_CAPTURE, 4, 1120, 1125),
        // A copy of nothing leaves no record.
        call(COPY_ASYNC, 5, 1200, 1205),
        call(LAUNCH, 6, 1300, 1305),
        kernel(1, 6, 1310, 1320),
        // The last ones.
        call(LAUNCH, 7, 1400, 1405),
        call(COPY_ASYNC, 8, 1410, 1415),
        call(GRAPH_LAUNCH, 9, 1420, 1425),
    ]);
    let (manifest, tables) = cuda.finish();
    assert_eq!(tables.dispatches.len(), 1);
    let lost: Vec<(&str, u64)> = (manifest.losses.iter())
        .filter(|loss| loss.reason.contains("was gone before"))
        .map(|loss| (loss.what.as_str(), loss.count))
        .collect();
    assert_eq!(
        lost,
        [("command buffers", 1), ("dispatches", 2), ("transfers", 1)]
    );
}

#[test]
fn polls_that_come_folded_go_on_where_the_last_ones_ended() {
    let mut cuda = Cuda::new();
    let polls = |start_ns, end_ns, count| Activity::Polls {
        function: QUERY,
        thread: 10,
        span: span(start_ns, end_ns),
        count,
        busy_ns: u64::from(count),
        result: 600,
    };
    cuda.batch(&[polls(1_000, 90_000, 40), polls(150_000, 190_000, 20)]);
    // Much later; then another call.
    cuda.batch(&[
        polls(900_000, 910_000, 1),
        call(MALLOC, 9, 920_000, 921_000),
    ]);
    cuda.end(2_000_000);
    let (_, tables) = cuda.finish();
    let h = &tables.host_calls;
    assert_eq!(h.count, [60, 1, 1]);
    assert_eq!(h.start_ns, [1_000, 900_000, 920_000]);
    assert_eq!(h.duration_ns[0], 189_000);
    assert_eq!((h.busy_ns[0], h.result[0]), (60, 600));
}

#[test]
fn time_that_no_thread_is_named_for_is_of_an_unknown_one() {
    let mut cuda = Cuda::new();
    let overhead = |thread, start_ns| Activity::Overhead {
        kind: OverheadKind::BufferFlush,
        thread,
        span: span(start_ns, start_ns + 100),
        correlation: 0,
    };
    cuda.batch(&[overhead(0, 1_000), overhead(10, 2_000)]);
    cuda.end(9_000);
    let (_, tables) = cuda.finish();
    assert_eq!(tables.host_calls.thread, [None, Some(10)]);
}

#[test]
fn memory_stays_bounded_when_no_call_comes_with_its_work() {
    let mut cuda = Cuda::new();
    let most = super::super::cuda::MOST_WAITING as u32;
    for first in (1..2 * most).step_by(1000) {
        let batch: Vec<_> = (first..first + 1000)
            .map(|c| kernel(1, c, i64::from(c) + 1, i64::from(c) + 2))
            .collect();
        let mut packer = Packer::new(1 << 20);
        for activity in &batch {
            packer.push(activity);
        }
        cuda.event(Event::Activities {
            first: cuda.written,
            count: 1000,
            bytes: packer.bytes(),
        });
        cuda.written += 1000;
        cuda.tables.dispatches.clear();
    }
    let waiting = cuda.assembler.processes[0].cuda.waiting();
    assert!(waiting <= most as usize + 8192, "{waiting}");
}

#[test]
fn a_pool_is_device_memory_of_its_size() {
    let mut cuda = Cuda::new();
    for (edge, bytes, at_ns) in [
        (PoolEdge::Begin, 100, 1),
        (PoolEdge::Change, 300, 2),
        (PoolEdge::Change, 300, 3),
        // Its time was not delivered; the next event says how large the pool is.
        (PoolEdge::Change, 500, 0),
        (PoolEdge::End, 0, 4),
    ] {
        cuda.event(Event::Pool {
            pool: 1,
            device: 1,
            edge,
            bytes,
            used_bytes: 0,
            at_ns,
        });
    }
    let (manifest, tables) = cuda.finish();
    assert_eq!(tables.memory.bytes, [100, 100, 300, 300]);
    assert_eq!(tables.memory.at_ns, [1, 2, 2, 4]);
    let lost = manifest.losses.iter().find(|l| l.what == "memory events");
    assert_eq!(lost.map(|l| l.count), Some(1));
}

fn activity() -> impl Strategy<Value = Activity> {
    let id = || 0..5u32;
    let time = || {
        let known = (
            prop_oneof![9 => 1..5_000i64, 1 => any::<i64>()],
            prop_oneof![9 => 0..500i64, 1 => 0..i64::MAX],
        );
        proptest::option::weighted(
            0.9,
            known.prop_map(|(start_ns, duration_ns)| Span {
                start_ns,
                duration_ns,
            }),
        )
    };
    let node = || {
        proptest::option::of(
            (id(), any::<u64>()).prop_map(|(graph, node)| GraphNode { graph, node }),
        )
    };
    prop_oneof![
        (id(), time(), id(), node()).prop_map(|(launch, span, correlation, node)| {
            Activity::Kernel {
                launch,
                span,
                correlation,
                node,
            }
        }),
        (id(), any::<u64>(), time(), id(), node()).prop_map(
            |(route, bytes, span, correlation, node)| {
                Activity::Transfer {
                    route,
                    bytes,
                    span,
                    correlation,
                    node,
                }
            }
        ),
        (0..10u32, id(), time(), id(), 0..2u32).prop_map(
            |(function, thread, span, correlation, result)| {
                Activity::Call {
                    function,
                    thread,
                    span,
                    correlation,
                    result,
                }
            }
        ),
        (id(), id(), time(), id()).prop_map(|(graph, queue, span, correlation)| {
            Activity::GraphRun {
                graph,
                queue,
                span,
                correlation,
            }
        }),
        (0..4usize, id(), id(), 0..3u64, time(), id()).prop_map(
            |(kind, queue, event, occurrence, span, correlation)| {
                Activity::Wait {
                    kind: WaitKind::ALL[kind],
                    queue,
                    event,
                    occurrence,
                    span,
                    correlation,
                }
            }
        ),
        (id(), 0..3u64, id(), id()).prop_map(|(event, occurrence, queue, correlation)| {
            Activity::EventRecord {
                event,
                occurrence,
                queue,
                correlation,
            }
        }),
        (0..9usize, id(), time(), id()).prop_map(|(kind, thread, span, correlation)| {
            Activity::Overhead {
                kind: OverheadKind::ALL[kind],
                thread,
                span,
                correlation,
            }
        }),
    ]
}

proptest! {
    /// Whatever comes in whatever order: nothing panics, each piece of work has one row, and a session that goes on
    /// from a checkpoint makes the same rows.
    #[test]
    fn any_activities_are_survived_and_resumed(
        batches in proptest::collection::vec(proptest::collection::vec(activity(), 0..12), 0..12),
        torn in 0..40usize,
        at in 0..12usize,
    ) {
        let works = |a: &Activity| matches!(a, Activity::Kernel { .. });
        let expected = batches.iter().flatten().filter(|a| works(a)).count();
        let (mut whole, mut resumed) = (Cuda::new(), Cuda::new());
        for (index, batch) in batches.iter().enumerate() {
            if index == at {
                let state = postcard::to_stdvec(&resumed.assembler).unwrap();
                resumed.assembler = postcard::from_bytes(&state).unwrap();
            }
            whole.batch(batch);
            resumed.batch(batch);
        }
        for cuda in [&mut whole, &mut resumed] {
            // A batch whose end is torn off.
            let mut packer = Packer::new(1 << 12);
            for launch in 0..4 {
                packer.push(&kernel(launch, 7, 100, 200));
            }
            let bytes = &packer.bytes()[..packer.bytes().len().min(torn)];
            cuda.event(Event::Activities { first: cuda.written, count: 4, bytes });
        }
        let mut packer = Packer::new(1 << 12);
        for launch in 0..4 {
            packer.push(&kernel(launch, 7, 100, 200));
        }
        let bytes = &packer.bytes()[..packer.bytes().len().min(torn)];
        let whole_ones = unpack(bytes).take(4).filter(Result::is_ok).count();
        let (_, tables) = whole.finish();
        let (_, again) = resumed.finish();
        prop_assert_eq!(&tables, &again);
        prop_assert_eq!(tables.dispatches.len(), expected + whole_ones);
        super::hostile::check(&tables);
    }
}
