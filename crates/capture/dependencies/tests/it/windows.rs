//! Checks the hazards, needless barriers and critical paths that are found in captured windows.

use crate::program::{Bound, Program, barrier, compile, dispatch, memory_barrier};
use gapscope_capture::model::{
    Barrier, BufferId, BufferRange, Command, Copy, Dependency, Fill, PipelineId,
};
use gapscope_dependencies::{Dependencies, EdgeKind, Limits, Need, Order, Refusal};

const COMPUTE: u64 = 0x800;
const TRANSFER: u64 = 0x1000;
const ALL: u64 = 0x1_0000;
const SHADER_READ: u64 = 0x20;
const SHADER_WRITE: u64 = 0x40;
const TRANSFER_READ: u64 = 0x800;
const TRANSFER_WRITE: u64 = 0x1000;
const MEMORY: u64 = 0x1_8000;

const COPY: &str = "
    @group(0) @binding(0) var<storage, read> x: array<f32>;
    @group(0) @binding(1) var<storage, read_write> y: array<f32>;
    @compute @workgroup_size(64) fn main(@builtin(global_invocation_id) id: vec3<u32>) { y[id.x] = x[id.x] + 1.0; }";

/// Buffers of 64 words, and a kernel that copies one to another.
struct Copies {
    program: Program,
    kernel: PipelineId,
}

impl Copies {
    fn new() -> Copies {
        let mut program = Program::new(&[256; 6]);
        let bound = [program.whole(0), program.whole(1)];
        let kernel = program.kernel(&compile(COPY), &bound, &[], 0);
        Copies { program, kernel }
    }

    fn between(&self, from: u32, to: u32) -> Command {
        let bound: [Bound; 2] = [self.program.whole(from), self.program.whole(to)];
        dispatch(self.kernel, [1, 1, 1], &[], &bound)
    }
}

#[test]
fn a_clean_chain_has_no_hazard_and_needs_its_barriers() {
    let found = in_one(|copies| {
        vec![
            copies.between(0, 1),
            barrier(),
            copies.between(1, 2),
            barrier(),
            copies.between(2, 1),
        ]
    });
    let edges: Vec<_> = (found.graph.edges.iter())
        .map(|e| (e.from, e.to, e.kind, e.bytes, e.exact))
        .collect();
    assert_eq!(
        edges,
        [
            (0, 1, EdgeKind::ReadAfterWrite, 256, true),
            (1, 2, EdgeKind::ReadAfterWrite, 256, true),
            (1, 2, EdgeKind::WriteAfterRead, 256, true),
        ]
    );
    assert!(found.orders.iter().all(|order| *order == Order::Barrier));
    assert!(found.hazards.is_empty());
    assert!(found.barriers.iter().all(|b| b.need == Need::Needed));
    let path = found.graph.critical_path().unwrap();
    assert_eq!((path.nodes, path.length, path.work), (vec![0, 1, 2], 3, 3));
}

#[test]
fn a_missing_barrier_is_a_hazard() {
    let found = in_one(|copies| vec![copies.between(0, 1), copies.between(1, 2)]);
    assert_eq!(found.hazards, [0]);
    assert_eq!(found.orders, [Order::Nothing]);
}

#[test]
fn a_barrier_between_independent_dispatches_is_needless() {
    let found = in_one(|copies| {
        vec![
            copies.between(0, 1),
            barrier(),
            copies.between(2, 3),
            barrier(),
            copies.between(1, 4),
            barrier(),
        ]
    });
    let needs: Vec<_> = found.barriers.iter().map(|b| b.need).collect();
    assert_eq!(needs, [Need::Needless, Need::Needed, Need::Outside]);
    let path = found.graph.critical_path().unwrap();
    assert_eq!((path.length, path.work), (2, 3));
}

fn needs(found: &Dependencies) -> Vec<Need> {
    found.barriers.iter().map(|barrier| barrier.need).collect()
}

fn copy(from: u32, to: u32) -> Command {
    Command::Copy(Copy::from_start(BufferId(from), BufferId(to), 256))
}

/// Returns a barrier between kernels for ranges of a buffer, each an offset and a size.
fn buffer_barrier(buffer: u32, ranges: &[(u64, u64)]) -> Command {
    let dependency = Dependency {
        after_stages: COMPUTE,
        after_access: SHADER_WRITE,
        before_stages: COMPUTE,
        before_access: SHADER_READ,
    };
    let range = |(offset, bytes): &(u64, u64)| BufferRange {
        buffer: BufferId(buffer),
        offset: *offset,
        bytes: *bytes,
    };
    Command::Barrier(Barrier {
        buffers: ranges.iter().map(|of| (dependency, range(of))).collect(),
        ..Barrier::default()
    })
}

/// Returns the dependencies of commands in one submission.
fn in_one(commands: impl FnOnce(&Copies) -> Vec<Command>) -> Dependencies {
    let mut copies = Copies::new();
    let commands = commands(&copies);
    copies.program.submit(0, commands);
    copies.program.dependencies()
}

#[test]
fn a_barrier_with_the_wrong_scopes_orders_nothing() {
    // The barrier makes the kernel's writes available to copies.
    let right = memory_barrier(COMPUTE, SHADER_WRITE, TRANSFER, TRANSFER_READ);
    let wrong = [
        memory_barrier(TRANSFER, TRANSFER_WRITE, TRANSFER, TRANSFER_READ),
        memory_barrier(COMPUTE, SHADER_WRITE, COMPUTE, SHADER_READ),
        memory_barrier(COMPUTE, SHADER_READ, TRANSFER, TRANSFER_READ),
        memory_barrier(COMPUTE, 0, TRANSFER, 0),
    ];
    let found = in_one(|copies| vec![copies.between(0, 1), right, copy(1, 2)]);
    assert_eq!(found.orders, [Order::Barrier]);
    for barrier in wrong {
        let found = in_one(|copies| vec![copies.between(0, 1), barrier, copy(1, 2)]);
        assert_eq!(found.hazards, [0]);
    }
    let all = memory_barrier(ALL, MEMORY, ALL, MEMORY);
    let found = in_one(|copies| vec![copies.between(0, 1), all, copy(1, 2)]);
    assert_eq!(found.orders, [Order::Barrier]);
}

#[test]
fn a_write_after_a_read_needs_only_that_the_read_is_over() {
    let execution = memory_barrier(COMPUTE, 0, COMPUTE, 0);
    let found = in_one(|copies| vec![copies.between(0, 1), execution, copies.between(2, 0)]);
    assert_eq!(found.graph.edges[0].kind, EdgeKind::WriteAfterRead);
    assert_eq!(found.orders, [Order::Barrier]);
}

#[test]
fn barriers_go_on_from_each_other() {
    let found = in_one(|copies| {
        vec![
            copies.between(0, 1),
            memory_barrier(COMPUTE, SHADER_WRITE, TRANSFER, TRANSFER_WRITE),
            memory_barrier(TRANSFER, 0, COMPUTE, SHADER_READ),
            copies.between(1, 2),
        ]
    });
    assert_eq!(found.orders, [Order::Barrier]);
    assert_eq!(needs(&found), [Need::Needed, Need::Needed]);
}

#[test]
fn a_barrier_for_a_buffer_covers_its_range() {
    let hazards = |barrier: Command| {
        in_one(|copies| vec![copies.between(0, 1), barrier, copies.between(1, 2)]).hazards
    };
    assert!(hazards(buffer_barrier(1, &[(0, 256)])).is_empty());
    assert!(hazards(buffer_barrier(1, &[(0, 100), (100, 156)])).is_empty());
    assert_eq!(hazards(buffer_barrier(1, &[(0, 252)])), [0]);
    assert_eq!(hazards(buffer_barrier(2, &[(0, 256)])), [0]);
}

#[test]
fn submissions_without_a_barrier_are_unknown_and_semaphores_order() {
    let mut copies = Copies::new();
    let (first, second) = (copies.between(0, 1), copies.between(1, 2));
    copies.program.submit(0, vec![first.clone()]);
    copies.program.submit(0, vec![second.clone()]);
    let found = copies.program.dependencies();
    assert_eq!(found.orders, [Order::Unknown]);
    assert!(found.hazards.is_empty());

    let mut copies = Copies::new();
    copies
        .program
        .submit_with(0, vec![first.clone()], &[], &[7]);
    copies
        .program
        .submit_with(1, vec![second.clone()], &[7], &[]);
    assert_eq!(copies.program.dependencies().orders, [Order::Semaphore]);

    // A barrier of the later submission orders everything that was submitted before on the same queue.
    let mut copies = Copies::new();
    copies.program.submit(0, vec![first]);
    copies.program.submit(0, vec![barrier(), second]);
    let found = copies.program.dependencies();
    assert_eq!(found.orders, [Order::Barrier]);
    assert_eq!(needs(&found), [Need::Needed]);
}

#[test]
fn of_two_barriers_one_is_enough() {
    let found = in_one(|copies| {
        vec![
            copies.between(0, 1),
            barrier(),
            barrier(),
            copies.between(1, 2),
        ]
    });
    let mut found = needs(&found);
    found.sort_by_key(|need| need.as_str());
    assert_eq!(found, [Need::Needed, Need::Needless]);
}

#[test]
fn parts_of_a_buffer_do_not_depend_on_each_other() {
    let fill = |offset: u64| {
        Command::Fill(Fill {
            range: BufferRange {
                buffer: BufferId(1),
                offset,
                bytes: 128,
            },
            value: 0,
        })
    };
    let found = in_one(|copies| vec![fill(0), fill(128), copies.between(1, 2), fill(64)]);
    let edges: Vec<_> = (found.graph.edges.iter())
        .map(|edge| (edge.from, edge.to, edge.kind.as_str(), edge.bytes))
        .collect();
    assert_eq!(
        edges,
        [(0, 2, "RAW", 128), (1, 2, "RAW", 128), (2, 3, "WAR", 128)]
    );
    assert_eq!(found.hazards.len(), 3);
    let json = serde_json::to_value(found.json()).unwrap();
    assert_eq!(json["hazards"][0]["bytes"], 128);
    assert_eq!(json["nodes"][2]["read_bytes"], 256);
    assert_eq!(json["edges"].as_array().unwrap().len(), 3);
    assert!(
        found
            .dot()
            .contains("n0 -> n2 [label=\"RAW 128 B\", color=red]")
    );
}

#[test]
fn a_dispatch_that_is_only_bounded_is_no_certain_hazard() {
    let mut program = Program::new(&[256; 3]);
    let scatter = COPY.replace("y[id.x]", "y[u32(x[id.x])]");
    let bound = [program.whole(0), program.whole(1)];
    let first = program.kernel(&compile(&scatter), &bound, &[], 0);
    let second = program.kernel(&compile(COPY), &bound, &[], 0);
    let next = [program.whole(1), program.whole(2)];
    let commands = vec![
        dispatch(first, [1, 1, 1], &[], &bound),
        dispatch(second, [1, 1, 1], &[], &next),
    ];
    program.submit(0, commands);
    let found = program.dependencies();
    assert!(found.hazards.is_empty());
    assert_eq!(found.possible_hazards, [0]);
}

#[test]
fn a_million_invocations_take_a_few_steps_each() {
    let mut program = Program::new(&[4 << 20, 4 << 20]);
    let bound = [program.whole(0), program.whole(1)];
    let wgsl = COPY.replace("{ y", "{ if (id.x >= arrayLength(&y)) { return; } y");
    let kernel = program.kernel(&compile(&wgsl), &bound, &[], 0);
    program.submit(0, vec![dispatch(kernel, [16384, 1, 1], &[], &bound)]);
    let (capture, _folder) = program.finish();
    let limits = Limits {
        steps: 16 << 20,
        ..Limits::default()
    };
    let found = Dependencies::from_capture(&capture, limits, &mut |_| {});
    assert!(found.graph.nodes[0].is_exact());
    assert_eq!(found.graph.nodes[0].bytes(), (4 << 20, 4 << 20));
}

#[test]
fn elementwise_chains_could_be_one() {
    // Buffer 1 is overwritten after 2 was computed from it; buffer 2 may be a result.
    let found = in_one(|copies| {
        vec![
            copies.between(0, 1),
            barrier(),
            copies.between(1, 2),
            barrier(),
            copies.between(2, 1),
        ]
    });
    let fusions = found.graph.fusions();
    let savings: Vec<_> = (fusions.iter())
        .map(|f| {
            (
                f.first,
                f.second,
                f.saving.map(|s| (s.bytes, s.store_needed)),
            )
        })
        .collect();
    assert_eq!(savings, [(0, 1, Ok((512, false))), (1, 2, Ok((256, true)))]);
}

#[test]
fn dispatches_that_cannot_be_one_say_why() {
    let reversed = "y[63u - id.x] = x[id.x]";
    let half = "y[id.x] = x[id.x / 2u]";
    let gathered = "y[id.x] = x[u32(x[id.x])]";
    for (body, groups, refusal) in [
        (reversed, 1, None),
        (half, 1, Some(Refusal::Part)),
        (gathered, 1, Some(Refusal::NotExact)),
        ("y[id.x % 64u] = x[id.x % 64u]", 2, Some(Refusal::Grid)),
        ("y[id.x] = x[63u - id.x]", 1, Some(Refusal::Map)),
    ] {
        let mut program = Program::new(&[256; 3]);
        let (a, b) = (program.whole(0), program.whole(1));
        let c = program.whole(2);
        let first = program.kernel(&compile(COPY), &[a, b], &[], 0);
        let second = COPY.replace("y[id.x] = x[id.x] + 1.0", body);
        let second = program.kernel(&compile(&second), &[b, c], &[], 0);
        let commands = vec![
            dispatch(first, [1, 1, 1], &[], &[a, b]),
            barrier(),
            dispatch(second, [groups, 1, 1], &[], &[b, c]),
        ];
        program.submit(0, commands);
        let found = program.dependencies();
        assert_eq!(found.graph.fusions()[0].saving.err(), refusal, "{body}");
    }
}

#[test]
fn what_comes_between_keeps_dispatches_apart() {
    // Buffer 1 is computed from 0, 2 from 1, and 3 from 1 and 2: the first and the last cannot be merged, since the
    // second stands between them.
    let sum = "
        @group(0) @binding(0) var<storage, read> x: array<f32>;
        @group(0) @binding(1) var<storage, read> y: array<f32>;
        @group(0) @binding(2) var<storage, read_write> z: array<f32>;
        @compute @workgroup_size(64) fn main(@builtin(global_invocation_id) id: vec3<u32>) { z[id.x] = x[id.x] + y[id.x]; }";
    let mut copies = Copies::new();
    let bound = [1, 2, 3].map(|buffer| copies.program.whole(buffer));
    let kernel = copies.program.kernel(&compile(sum), &bound, &[], 0);
    let commands = vec![
        copies.between(0, 1),
        barrier(),
        copies.between(1, 2),
        barrier(),
        dispatch(kernel, [1, 1, 1], &[], &bound),
    ];
    copies.program.submit(0, commands);
    let found = copies.program.dependencies();
    let refusals: Vec<_> = (found.graph.fusions().iter())
        .map(|fusion| (fusion.first, fusion.second, fusion.saving.err()))
        .collect();
    assert_eq!(
        refusals,
        [(0, 1, None), (0, 2, Some(Refusal::Between)), (1, 2, None)]
    );
}

fn compute() -> Command {
    memory_barrier(COMPUTE, SHADER_WRITE, COMPUTE, SHADER_READ)
}

/// No other dependency needs the barrier, but one whose order is not known may rely on it.
#[test]
fn what_a_dependency_of_unknown_order_may_rely_on_is_unknown() {
    // The copy of the second submission reads what the first wrote. No barrier makes that visible to copies, but one
    // waits for it.
    let mut copies = Copies::new();
    let first = vec![copies.between(0, 1)];
    let second = vec![copies.between(2, 3), compute(), copies.between(4, 5)];
    copies.program.submit(0, first.clone());
    let needless = {
        let mut copies = Copies::new();
        copies.program.submit(0, first);
        copies.program.submit(0, second.clone());
        copies.program.dependencies()
    };
    assert_eq!(needs(&needless), [Need::Needless]);
    copies
        .program
        .submit(0, [second, vec![copy(1, 0)]].concat());
    let found = copies.program.dependencies();
    assert!(found.orders.contains(&Order::Unknown));
    assert_eq!(needs(&found), [Need::Unknown]);
    let reason = found.barriers[0].reason.as_deref().unwrap();
    assert!(reason.contains("between submissions"), "{reason}");
    let json = serde_json::to_value(found.json()).unwrap();
    assert_eq!(json["barriers"][0]["reason"], reason);
    assert_eq!(json["needless_barriers"].as_array().unwrap().len(), 0);
}

#[test]
fn what_covers_a_part_of_a_dependency_is_needed() {
    // Half of the written bytes are made visible. The other half is a hazard, and without the barrier all would be.
    let half = buffer_barrier(1, &[(0, 128)]);
    let found = in_one(|copies| vec![copies.between(0, 1), half.clone(), copies.between(1, 2)]);
    assert_eq!(found.hazards, [0]);
    assert_eq!(needs(&found), [Need::Needed]);
    // The same holds between submissions.
    let mut copies = Copies::new();
    copies.program.submit(0, vec![copies.between(0, 1)]);
    let second = vec![copies.between(3, 4), half, copies.between(1, 2)];
    copies.program.submit(0, second);
    assert_eq!(needs(&copies.program.dependencies()), [Need::Needed]);
}

#[test]
fn what_orders_a_hazard_in_part_is_not_called_needless() {
    let execution = memory_barrier(COMPUTE, 0, COMPUTE, 0);
    let found = in_one(|copies| vec![copies.between(0, 1), execution, copies.between(1, 2)]);
    assert_eq!(found.hazards, [0]);
    assert_eq!(needs(&found), [Need::Unknown]);
}

#[test]
fn what_goes_on_from_a_semaphore_is_not_called_needless() {
    // Only transfers wait for the semaphore, and the barrier carries that on.
    let of = |stages: u64| {
        let mut copies = Copies::new();
        let carry = memory_barrier(TRANSFER, TRANSFER_WRITE, COMPUTE, SHADER_READ);
        let first = vec![copies.between(0, 1)];
        let second = vec![copies.between(2, 3), carry, copies.between(1, 4)];
        copies.program.submit_with(0, first, &[], &[7]);
        copies.program.wait_stages = stages;
        copies.program.submit_with(1, second, &[7], &[]);
        needs(&copies.program.dependencies())
    };
    assert_eq!(of(ALL), [Need::Needless]);
    assert_eq!(of(COMPUTE), [Need::Needless]);
    assert_eq!(of(TRANSFER), [Need::Unknown]);
}

/// A hazard does not make a long window too expensive to judge.
#[test]
fn a_long_window_with_a_hazard_is_judged() {
    const DISPATCHES: usize = 20_000;
    let found = in_one(|copies| {
        let mut commands = vec![copies.between(0, 1), copies.between(1, 2)];
        for number in 0..DISPATCHES as u32 {
            commands.push(barrier());
            commands.push(copies.between(number % 2 + 1, 2 - number % 2));
        }
        // These reach memory outside of the hazard.
        commands.extend([copies.between(3, 4), compute(), copies.between(3, 5)]);
        commands
    });
    assert_eq!(found.hazards.len(), 1);
    assert_eq!(found.unknown, None);
    let count = |need: Need| needs(&found).iter().filter(|of| **of == need).count();
    assert_eq!(count(Need::Needed), DISPATCHES);
    assert_eq!(needs(&found).len(), DISPATCHES + 1);
}
