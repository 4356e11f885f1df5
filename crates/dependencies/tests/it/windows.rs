//! Hazards, barriers and paths of windows.

use crate::program::{Bound, Program, barrier, compile, dispatch};
use gapscope_capture::model::{Command, PipelineId};
use gapscope_dependencies::{EdgeKind, Need, Order};

const COPY: &str = "
    @group(0) @binding(0) var<storage, read> x: array<f32>;
    @group(0) @binding(1) var<storage, read_write> y: array<f32>;
    @compute @workgroup_size(64) fn main(@builtin(global_invocation_id) id: vec3<u32>) { y[id.x] = x[id.x] + 1.0; }";

/// Buffers of 64 words, and a kernel that goes from one to the other.
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

    fn from_to(&self, from: u32, to: u32) -> Command {
        let bound: [Bound; 2] = [self.program.whole(from), self.program.whole(to)];
        dispatch(self.kernel, [1, 1, 1], &[], &bound)
    }
}

#[test]
fn a_clean_chain_has_no_hazard_and_needs_its_barriers() {
    let mut copies = Copies::new();
    let commands = vec![
        copies.from_to(0, 1),
        barrier(),
        copies.from_to(1, 2),
        barrier(),
        copies.from_to(2, 1),
    ];
    copies.program.submit(0, commands);
    let found = copies.program.dependencies();
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
    let mut copies = Copies::new();
    let commands = vec![copies.from_to(0, 1), copies.from_to(1, 2)];
    copies.program.submit(0, commands);
    let found = copies.program.dependencies();
    assert_eq!(found.hazards, [0]);
    assert_eq!(found.orders, [Order::Nothing]);
}

#[test]
fn a_barrier_between_independent_dispatches_is_needless() {
    let mut copies = Copies::new();
    let commands = vec![
        copies.from_to(0, 1),
        barrier(),
        copies.from_to(2, 3),
        barrier(),
        copies.from_to(1, 4),
        barrier(),
    ];
    copies.program.submit(0, commands);
    let found = copies.program.dependencies();
    let needs: Vec<_> = found.barriers.iter().map(|b| b.need).collect();
    assert_eq!(needs, [Need::Needless, Need::Needed, Need::Outside]);
    let path = found.graph.critical_path().unwrap();
    assert_eq!((path.length, path.work), (2, 3));
}
