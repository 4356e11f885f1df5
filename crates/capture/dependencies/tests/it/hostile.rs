//! Evaluates damaged and malicious modules: whatever they hold, this ends soon and does not panic.

use crate::program::{Program, compile, dispatch};
use gapscope_dependencies::{Dependencies, Limits};
use proptest::prelude::*;
use rustix::time::{ClockId, clock_gettime};

const KERNEL: &str = "
    struct Pair { a: vec2<u32>, b: array<vec4<f32>, 3> }
    @group(0) @binding(0) var<storage, read> x: array<Pair>;
    @group(0) @binding(1) var<storage, read_write> y: array<f32>;
    fn place(i: u32, table: ptr<function, array<u32, 4>>) -> u32 {
        switch (i) {
            case 0u: { return (*table)[i % 4u]; }
            case 5u, 6u: { return 3u; }
            default: { return i * 2u; }
        }
    }
    @compute @workgroup_size(16) fn main(@builtin(global_invocation_id) id: vec3<u32>) {
        var table = array<u32, 4>(5u, 6u, 7u, 8u);
        table[id.x % 2u] = 9u;
        for (var i = 0u; i < 10u; i++) { y[place(id.x + i, &table)] = x[id.x].b[2].y; }
    }";

/// Evaluates a module with limits that a test can wait for.
fn look(spirv: &[u8], groups: [u32; 3]) -> Dependencies {
    let mut program = Program::new(&[4096, 4096]);
    let bound = [0, 1].map(|buffer| program.whole(buffer));
    let kernel = program.kernel(spirv, &bound, &[(0, 7)], 16);
    program.submit(0, vec![dispatch(kernel, groups, &[1, 2, 3, 4], &bound)]);
    let (capture, _folder) = program.finish();
    let limits = Limits {
        steps: 5_000_000,
        threads: 1,
        ..Limits::default()
    };
    // Other programs may keep the processor busy, so that only this thread's time counts.
    let cpu_seconds = || clock_gettime(ClockId::ThreadCPUTime).tv_sec;
    let started = cpu_seconds();
    let found = Dependencies::from_capture(&capture, limits, &mut |_| {});
    assert!(cpu_seconds() - started < 20);
    found
}

fn mutated() -> impl Strategy<Value = Vec<u8>> {
    let changes =
        prop::collection::vec((any::<prop::sample::Index>(), any::<u32>(), 0..4_u8), 1..6);
    changes.prop_map(|changes| {
        let mut bytes = compile(KERNEL);
        for (at, value, kind) in changes {
            let words = bytes.len() / 4;
            let at = at.index(words.max(1)) * 4;
            if at + 4 > bytes.len() {
                continue;
            }
            let old = u32::from_le_bytes(bytes[at..at + 4].try_into().unwrap());
            match kind {
                // An id, a length or a number that is nearly valid.
                0 => bytes[at..at + 4].copy_from_slice(&(value % 200).to_le_bytes()),
                1 => bytes[at..at + 4].copy_from_slice(&value.to_le_bytes()),
                2 => bytes[at..at + 4].copy_from_slice(&(old ^ 1 << (value % 32)).to_le_bytes()),
                // The reader of captures refuses modules without a header.
                _ => bytes.truncate(at.max(20)),
            }
        }
        bytes
    })
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(200))]

    #[test]
    fn changed_modules(spirv in mutated()) {
        look(&spirv, [4, 1, 1]);
    }

    #[test]
    fn any_bytes(mut tail in prop::collection::vec(any::<u32>(), 0..200), small in any::<bool>()) {
        let mut words = vec![0x0723_0203, 0x10300, 0, 100, 0];
        if small {
            tail.iter_mut().for_each(|word| *word = (*word % 60) | ((*word >> 8 & 7) << 16));
        }
        words.extend(tail);
        let bytes: Vec<u8> = words.iter().flat_map(|word| word.to_le_bytes()).collect();
        look(&bytes, [4, 1, 1]);
    }
}

#[test]
fn a_loop_without_end() {
    let found = look(
        &compile(
            "@group(0) @binding(1) var<storage, read_write> y: array<f32>;
            @compute @workgroup_size(16) fn main(@builtin(global_invocation_id) id: vec3<u32>) {
                var i = 1u;
                while (i > 0u) { y[i] = 1.0; i = i * 3u; }
            }",
        ),
        [1, 1, 1],
    );
    let access = &found.graph.nodes[0].accesses[0];
    assert!(access.bound.as_ref().unwrap().contains("steps"));
    assert_eq!(access.set.bytes(), 4096);
}

#[test]
fn more_invocations_than_can_be_run() {
    let groups = [u32::MAX; 3];
    let found = look(&compile(KERNEL), groups);
    assert!(!found.graph.nodes[0].is_exact());
}
