//! Tests launches of CUDA graphs in profiles of JAX, of planes that the test writes.

use crate::imported::{Import, import_bytes};
use gapscope_model::SubmissionKind;

/// The names of facts; the id of each is its place, from 1 on.
const FACTS: [&str; 4] = [
    "correlation_id",
    "kernel_details",
    "cuda_graph_id",
    "cuda_graph_exec_id",
];

fn varint(mut number: u64, to: &mut Vec<u8>) {
    while number >= 0x80 {
        to.push(number as u8 | 0x80);
        number >>= 7;
    }
    to.push(number as u8);
}

fn number(field: u64, value: u64) -> Vec<u8> {
    let mut bytes = Vec::new();
    varint(field << 3, &mut bytes);
    varint(value, &mut bytes);
    bytes
}

fn bytes(field: u64, value: impl AsRef<[u8]>) -> Vec<u8> {
    let mut bytes = Vec::new();
    varint(field << 3 | 2, &mut bytes);
    varint(value.as_ref().len() as u64, &mut bytes);
    bytes.extend_from_slice(value.as_ref());
    bytes
}

/// An event: its name, start and duration in microseconds, and facts.
type Event = (&'static str, u64, u64, Vec<(&'static str, u64)>);

/// Writes a plane with one line.
fn plane(name: &str, line: &str, events: &[Event]) -> Vec<u8> {
    let named = |id: u64, name: &str| {
        let message = [number(1, id), bytes(2, name)].concat();
        [number(1, id), bytes(2, message)].concat()
    };
    let mut rows = [number(1, 1), bytes(2, line)].concat();
    let mut names = Vec::new();
    for (id, (name, start_us, duration_us, facts)) in (1..).zip(events) {
        let mut event = [
            number(1, id),
            number(2, start_us * 1_000_000),
            number(3, duration_us * 1_000_000),
        ]
        .concat();
        for (fact, value) in facts {
            let place = FACTS.iter().position(|name| name == fact).unwrap() as u64 + 1;
            let value = match *fact {
                "kernel_details" => bytes(5, "regs:32 grid:16,1,1 block:512,1,1"),
                _ => number(3, *value),
            };
            event.extend(bytes(4, [number(1, place), value].concat()));
        }
        rows.extend(bytes(4, event));
        names.extend(bytes(4, named(id, name)));
    }
    let facts = (1..).zip(FACTS).map(|(id, name)| bytes(5, named(id, name)));
    [
        bytes(2, name),
        bytes(3, rows),
        names,
        facts.flatten().collect(),
    ]
    .concat()
}

/// Imports a profile with these calls and this work.
fn import(calls: &[Event], work: &[Event]) -> Import {
    let host = plane("/host:CPU", "python3", calls);
    let device = plane("/device:GPU:0", "Stream #20(Compute)", work);
    let profile = [bytes(1, host), bytes(1, device)].concat();
    import_bytes("a.xplane.pb", &profile).unwrap()
}

#[test]
fn kernels_of_a_graph_belong_to_its_launch() {
    let kernels: [Event; 2] = [
        (
            "gemm",
            20,
            10,
            vec![("correlation_id", 7), ("kernel_details", 0)],
        ),
        (
            "relu",
            40,
            10,
            vec![("correlation_id", 7), ("kernel_details", 0)],
        ),
    ];
    // The profiler may write text behind the name of the function.
    for name in ["cuGraphLaunch", "cudaGraphLaunch", "cuGraphLaunch:5"] {
        let import = import(&[(name, 1, 5, vec![("correlation_id", 7)])], &kernels);
        let tables = &import.trace.tables;
        assert_eq!(tables.submissions.kind, [SubmissionKind::Graph], "{name}");
        assert_eq!(tables.command_buffers.id.len(), 1, "{name}");
        assert_eq!(tables.dispatches.kernel.len(), 2, "{name}");
    }
    // Without the call, the graph's number tells that the kernels are of one launch.
    let of_graph = kernels.map(|(name, start, duration, mut facts)| {
        facts.push(("cuda_graph_id", 5));
        (name, start, duration, facts)
    });
    let tables = import(&[], &of_graph).trace.tables;
    assert_eq!(tables.command_buffers.id.len(), 1);
}

#[test]
fn a_graph_that_was_timed_as_a_whole_is_no_kernel() {
    let calls: [Event; 1] = [("cuGraphLaunch", 1, 5, vec![("correlation_id", 7)])];
    let facts = vec![("correlation_id", 7), ("cuda_graph_exec_id", 3)];
    let import = import(&calls, &[("CudaGraphExec:3", 20, 100, facts)]);
    let tables = &import.trace.tables;
    assert_eq!(tables.dispatches.kernel.len(), 0);
    assert_eq!(tables.opaque_work.duration_ns.get(0), Some(100_000));
    assert_eq!(tables.submissions.kind, [SubmissionKind::Graph]);
}
