//! Checks the footprints of kernels: the bytes that they are found to read and write.

use std::collections::BTreeSet;

use crate::program::{Bound, Program, compile, dispatch, words};
use gapscope_dependencies::Node;
use proptest::prelude::*;

/// Returns what a dispatch of a kernel reaches, on buffers of so many words.
fn node(wgsl: &str, buffers: &[u64], groups: [u32; 3]) -> Node {
    let sizes: Vec<u64> = buffers.iter().map(|words| words * 4).collect();
    let mut program = Program::new(&sizes);
    let bound: Vec<Bound> = (0..buffers.len() as u32)
        .map(|b| program.whole(b))
        .collect();
    let kernel = program.kernel(&compile(wgsl), &bound, &[], 0);
    program.submit(0, vec![dispatch(kernel, groups, &[], &bound)]);
    let mut found = program.dependencies();
    assert_eq!(found.graph.nodes.len(), 1);
    let node = found.graph.nodes.remove(0);
    assert_eq!(node.beyond, None);
    node
}

const TWO: &str = "
    @group(0) @binding(0) var<storage, read> x: array<f32>;
    @group(0) @binding(1) var<storage, read_write> y: array<f32>;
";

fn two(body: &str) -> String {
    format!(
        "{TWO} @compute @workgroup_size(64) fn main(@builtin(global_invocation_id) id: vec3<u32>) {{ {body} }}"
    )
}

fn range(words: std::ops::Range<u64>) -> Result<Vec<u64>, String> {
    Ok(words.collect())
}

#[test]
fn an_elementwise_kernel_with_a_bounds_check() {
    let node = node(
        &two("let i = id.x; if (i >= arrayLength(&y)) { return; } y[i] = sqrt(x[i]) * 2.0;"),
        &[1000, 777],
        [16, 1, 1],
    );
    assert_eq!(words(&node, 0, false), range(0..777));
    assert_eq!(words(&node, 1, true), range(0..777));
    assert_eq!(words(&node, 1, false), Ok(vec![]));
    assert!(node.is_exact());
    assert_eq!(node.bytes(), (777 * 4, 777 * 4));
}

#[test]
fn strides_and_transposes() {
    let node = node(
        &two("let i = id.x; y[i * 3u + 1u] = x[(i % 8u) * 16u + i / 8u];"),
        &[128, 400],
        [2, 1, 1],
    );
    let read: BTreeSet<u64> = (0..128).map(|i| i % 8 * 16 + i / 8).collect();
    assert_eq!(words(&node, 0, false), Ok(read.into_iter().collect()));
    assert_eq!(
        words(&node, 1, true),
        Ok((0..128).map(|i| i * 3 + 1).collect())
    );
}

#[test]
fn two_dimensions_with_bounds() {
    let wgsl = format!(
        "{TWO} @compute @workgroup_size(8, 4) fn main(@builtin(workgroup_id) g: vec3<u32>, @builtin(local_invocation_id) l: vec3<u32>) {{
            let row = g.y * 4u + l.y;
            let column = g.x * 8u + l.x;
            if (row < 10u && column < 21u) {{ y[row * 32u + column] = x[column * 10u + row]; }}
        }}"
    );
    let node = node(&wgsl, &[400, 400], [3, 3, 1]);
    let all = || (0..10).flat_map(|row| (0..21).map(move |column| (row, column)));
    let read: BTreeSet<u64> = all().map(|(row, column)| column * 10 + row).collect();
    assert_eq!(words(&node, 0, false), Ok(read.into_iter().collect()));
    let written = all().map(|(row, column)| row * 32 + column).collect();
    assert_eq!(words(&node, 1, true), Ok(written));
}

#[test]
fn a_reduction_with_shared_memory() {
    let wgsl = format!(
        "{TWO} var<workgroup> sums: array<f32, 64>;
        @compute @workgroup_size(64) fn main(@builtin(workgroup_id) g: vec3<u32>, @builtin(local_invocation_index) l: u32) {{
            var sum = 0.0;
            for (var i = l; i < 1000u; i += 64u) {{ sum += x[g.x * 1000u + i]; }}
            sums[l] = sum;
            workgroupBarrier();
            for (var s = 32u; s > 0u; s >>= 1u) {{
                if (l < s) {{ sums[l] += sums[l + s]; }}
                workgroupBarrier();
            }}
            if (l == 0u) {{ y[g.x * 2u] = sums[0]; }}
        }}"
    );
    let node = node(&wgsl, &[4000, 8], [3, 1, 1]);
    assert_eq!(words(&node, 0, false), range(0..3000));
    assert_eq!(words(&node, 1, true), Ok(vec![0, 2, 4]));
}

#[test]
fn a_matrix_product() {
    let wgsl = format!(
        "{TWO} @group(0) @binding(2) var<storage, read_write> z: array<f32>;
        @compute @workgroup_size(8, 8) fn main(@builtin(global_invocation_id) id: vec3<u32>) {{
            var sum = 0.0;
            var k = 0u;
            loop {{
                if (k >= 20u) {{ break; }}
                sum += x[id.y * 20u + k] * y[k * 16u + id.x];
                continuing {{ k += 1u; }}
            }}
            z[id.y * 16u + id.x] = sum;
        }}"
    );
    let node = node(&wgsl, &[1000, 1000, 1000], [2, 3, 1]);
    assert_eq!(words(&node, 0, false), range(0..24 * 20));
    assert_eq!(words(&node, 1, false), range(0..20 * 16));
    assert_eq!(words(&node, 2, true), range(0..24 * 16));
}

#[test]
fn what_is_loaded_decides_where() {
    let gather = node(&two("y[id.x] = x[u32(x[id.x])];"), &[128, 64], [1, 1, 1]);
    let reason = words(&gather, 0, false).unwrap_err();
    assert!(reason.contains("data that the kernel loads"), "{reason}");
    assert_eq!(gather.bytes(), (128 * 4, 64 * 4));
    assert_eq!(words(&gather, 1, true), range(0..64));
}

#[test]
fn what_is_loaded_decides_whether() {
    let loops = node(
        &two("var i = id.x; while (x[i] > 0.5) { i += 1u; } y[id.x] = f32(i);"),
        &[128, 64],
        [1, 1, 1],
    );
    assert!(words(&loops, 0, false).is_err());
    assert_eq!(words(&loops, 1, true), range(0..64));
    let masked = node(
        &two("if (x[id.x] > 0.0) { y[id.x] = 1.0; }"),
        &[64, 64],
        [1, 1, 1],
    );
    assert_eq!(words(&masked, 0, false), range(0..64));
    let reason = words(&masked, 1, true).unwrap_err();
    assert!(reason.starts_with("whether"), "{reason}");
    // Data that only decides the written value does not matter.
    let relu = node(
        &two("var v = x[id.x]; if (v < 0.0) { v = 0.0; } y[id.x] = v;"),
        &[64, 64],
        [1, 1, 1],
    );
    assert!(relu.is_exact());
    // Code after a return that depends on data may not be reached.
    let early = node(
        &two("if (x[id.x] > 0.0) { return; } y[id.x] = 1.0;"),
        &[64, 64],
        [1, 1, 1],
    );
    assert!(words(&early, 1, true).is_err());
}

#[test]
fn functions_and_variables() {
    let wgsl = "
        struct Pair { a: vec2<u32>, b: array<vec4<f32>, 3> }
        @group(0) @binding(0) var<storage, read> x: array<Pair>;
        @group(0) @binding(1) var<storage, read_write> y: array<f32>;
        fn place(i: u32, table: ptr<function, array<u32, 4>>) -> u32 {
            if (i % 2u == 0u) { return (*table)[i % 4u]; }
            return i * 2u;
        }
        @compute @workgroup_size(16) fn main(@builtin(global_invocation_id) id: vec3<u32>) {
            var table = array<u32, 4>(5u, 6u, 7u, 8u);
            table[id.x % 2u] = 9u;
            y[place(id.x, &table)] = x[id.x].b[2].y;
        }";
    let node = node(wgsl, &[16 * 16, 64], [1, 1, 1]);
    // A pair has 64 bytes: 8 used, 8 unused, and 3 times 16.
    let read = (0..16).map(|i| i * 16 + 4 + 2 * 4 + 1).collect();
    assert_eq!(words(&node, 0, false), Ok(read));
    let place = |i: u64| match i % 4 {
        0 => 9,
        2 => 7,
        _ => i * 2,
    };
    let written: BTreeSet<u64> = (0..16).map(place).collect();
    assert_eq!(words(&node, 1, true), Ok(written.into_iter().collect()));
}

#[test]
fn beyond_what_is_bound() {
    let node = node(&two("y[id.x] = x[id.x];"), &[64, 60], [1, 1, 1]);
    assert_eq!(words(&node, 0, false), range(0..64));
    assert!(words(&node, 1, true).unwrap_err().contains("beyond"));
}

#[test]
fn uniform_buffers_whose_content_is_known() {
    let wgsl = format!(
        "{TWO} struct Shape {{ offset: u32, stride: u32, counts: vec4<u32> }}
        @group(0) @binding(2) var<uniform> shape: Shape;
        @compute @workgroup_size(4) fn main(@builtin(global_invocation_id) id: vec3<u32>) {{
            if (id.x < shape.counts[2]) {{ y[id.x * shape.stride + shape.offset] = x[shape.counts[id.x % 4u]]; }}
        }}"
    );
    for known in [true, false] {
        let mut program = Program::new(&[64, 256, 32]);
        let bound = [0, 1, 2].map(|buffer| Bound {
            uniform: buffer == 2,
            ..program.whole(buffer)
        });
        if known {
            let words = [3_u32, 5, 0, 0, 9, 1, 3, 7];
            program.content(2, &words.map(u32::to_le_bytes).concat());
        }
        let kernel = program.kernel(&compile(&wgsl), &bound, &[], 0);
        program.submit(0, vec![dispatch(kernel, [1, 1, 1], &[], &bound)]);
        let found = program.dependencies();
        let node = &found.graph.nodes[0];
        match known {
            true => {
                assert_eq!(words(node, 1, true), Ok(vec![3, 8, 13]));
                assert_eq!(words(node, 0, false), Ok(vec![1, 3, 9]));
            }
            false => assert!(words(node, 1, true).is_err()),
        }
    }
}

/// The capture has the indices, and no command of the window writes them.
#[test]
fn a_scatter_by_indices_that_are_known() {
    let wgsl = "
        @group(0) @binding(0) var<storage, read> indices: array<u32>;
        @group(0) @binding(1) var<storage, read_write> y: array<f32>;
        @compute @workgroup_size(4) fn main(@builtin(global_invocation_id) id: vec3<u32>) { y[indices[id.x]] = 1.0; }";
    let mut program = Program::new(&[16, 64]);
    let bound = [0, 1].map(|buffer| Bound {
        read_only: buffer == 0,
        ..program.whole(buffer)
    });
    program.content(0, &[9_u32, 3, 3, 4].map(u32::to_le_bytes).concat());
    let kernel = program.kernel(&compile(wgsl), &bound, &[], 0);
    let swapped = [bound[1], bound[0]].map(|bound| Bound {
        read_only: false,
        ..bound
    });
    let commands = vec![
        dispatch(kernel, [1, 1, 1], &[], &bound),
        // From here on a kernel has written the indices.
        dispatch(kernel, [1, 1, 1], &[], &swapped),
        dispatch(kernel, [1, 1, 1], &[], &bound),
    ];
    program.submit(0, commands);
    let found = program.dependencies();
    assert_eq!(words(&found.graph.nodes[0], 1, true), Ok(vec![3, 4, 9]));
    assert!(words(&found.graph.nodes[1], 1, true).is_err());
    assert!(words(&found.graph.nodes[2], 1, true).is_err());
}

/// ggml computes the index of an element from workgroups of 512 in x, y and z, and divides by multiplying with push
/// constants.
#[test]
fn an_index_as_that_of_ggml() {
    let wgsl = format!(
        "{TWO}
        struct Shape {{ count: u32, n0: u32, n1: u32, s0: u32, s1: u32, s2: u32, m0: u32, l0: u32, m1: u32, l1: u32 }}
        var<immediate> p: Shape;
        fn high(a: u32, b: u32) -> u32 {{
            let low = (a & 0xffffu) * (b & 0xffffu);
            let first = (a >> 16u) * (b & 0xffffu) + (low >> 16u);
            let second = (a & 0xffffu) * (b >> 16u) + (first & 0xffffu);
            return (a >> 16u) * (b >> 16u) + (first >> 16u) + (second >> 16u);
        }}
        fn quotient(n: u32, m: u32, l: u32) -> u32 {{ return (high(n, m) + n) >> l; }}
        @compute @workgroup_size(512) fn main(@builtin(global_invocation_id) id: vec3<u32>) {{
            let i = id.z * 262144u + id.y * 512u + id.x;
            if (i >= p.count) {{ return; }}
            let i2 = quotient(i, p.m1, p.l1);
            let rest = i - i2 * p.n0 * p.n1;
            let i1 = quotient(rest, p.m0, p.l0);
            let i0 = rest - i1 * p.n0;
            y[i] = x[i2 * p.s2 + i1 * p.s1 + i0 * p.s0];
        }}"
    );
    // n / d = (high(n, m) + n) >> l, after “Division by Invariant Integers using Multiplication”.
    let divisor = |d: u64| {
        let l = u64::from(d.next_power_of_two().trailing_zeros());
        let m = ((1 << 32) * ((1 << l) - d)) / d + 1;
        (m as u32, l as u32)
    };
    let (n0, n1, n2) = (60_u64, 7, 5);
    let count = n0 * n1 * n2;
    let (s0, s1, s2) = (2, 130, 1000);
    let ((m0, l0), (m1, l1)) = (divisor(n0), divisor(n0 * n1));
    let push = [
        count as u32,
        n0 as u32,
        n1 as u32,
        s0,
        s1,
        s2,
        m0,
        l0,
        m1,
        l1,
    ];
    let mut program = Program::new(&[4 * 6000, 4 * count]);
    let bound = [0, 1].map(|buffer| program.whole(buffer));
    let kernel = program.kernel(&compile(&wgsl), &bound, &[], 40);
    program.submit(0, vec![dispatch(kernel, [1, 5, 1], &push, &bound)]);
    let found = program.dependencies();
    let node = &found.graph.nodes[0];
    let read: BTreeSet<u64> = (0..count)
        .map(|i| {
            let (i2, i1, i0) = (i / (n0 * n1), i / n0 % n1, i % n0);
            i2 * u64::from(s2) + i1 * u64::from(s1) + i0 * u64::from(s0)
        })
        .collect();
    assert_eq!(words(node, 0, false), Ok(read.into_iter().collect()));
    assert_eq!(words(node, 1, true), range(0..count));
}

/// Turns the constant 77777 of a module into a specialisation constant.
fn specialisable(mut spirv: Vec<u8>, id: u32) -> Vec<u8> {
    let word = |bytes: &[u8], at: usize| u32::from_le_bytes(bytes[at..at + 4].try_into().unwrap());
    let mut at = 20;
    let mut decorations = None;
    while at < spirv.len() {
        let head = word(&spirv, at);
        if head & 0xffff == 71 && decorations.is_none() {
            decorations = Some(at);
        }
        if head & 0xffff == 43 && word(&spirv, at + 12) == 77777 {
            let result = word(&spirv, at + 8);
            spirv[at..at + 4].copy_from_slice(&(4_u32 << 16 | 50).to_le_bytes());
            let decoration = [4_u32 << 16 | 71, result, 1, id]
                .map(u32::to_le_bytes)
                .concat();
            let place = decorations.unwrap();
            spirv.splice(place..place, decoration);
            return spirv;
        }
        at += (head >> 16) as usize * 4;
    }
    panic!("the constant is not there");
}

#[test]
fn specialisation_constants() {
    let spirv = specialisable(
        compile(&two("if (id.x < 77777u) { y[id.x] = x[id.x]; }")),
        3,
    );
    for (constants, count) in [(&[(3, 10)][..], 10), (&[][..], 64)] {
        let mut program = Program::new(&[256, 256]);
        let bound = [0, 1].map(|buffer| program.whole(buffer));
        let kernel = program.kernel(&spirv, &bound, constants, 0);
        program.submit(0, vec![dispatch(kernel, [1, 1, 1], &[], &bound)]);
        let found = program.dependencies();
        assert_eq!(words(&found.graph.nodes[0], 1, true), range(0..count));
    }
}

#[test]
fn atomic_operations_read_and_write() {
    let wgsl = "
        @group(0) @binding(0) var<storage, read_write> x: array<atomic<u32>>;
        @compute @workgroup_size(8) fn main(@builtin(global_invocation_id) id: vec3<u32>) { atomicAdd(&x[id.x / 2u], 1u); }";
    let node = node(wgsl, &[16], [1, 1, 1]);
    assert_eq!(words(&node, 0, false), range(0..4));
    assert_eq!(words(&node, 0, true), range(0..4));
    assert!(node.accesses.iter().all(|access| access.atomic));
}

/// An index as a sum of parts, each of which is a quotient's remainder times a factor.
#[derive(Debug, Clone)]
struct Index {
    parts: Vec<(usize, u32, u32, u32)>,
    offset: u32,
}

impl Index {
    fn wgsl(&self) -> String {
        let mut text = format!("{}u", self.offset);
        for (axis, quotient, remainder, factor) in &self.parts {
            let axis = ["id.x", "id.y", "id.z"][*axis];
            text.push_str(&format!(
                " + {axis} / {quotient}u % {remainder}u * {factor}u"
            ));
        }
        text
    }

    fn at(&self, id: [u32; 3]) -> u64 {
        let parts = self.parts.iter();
        let sum: u32 = parts.map(|(axis, q, r, f)| id[*axis] / q % r * f).sum();
        u64::from(self.offset + sum)
    }
}

fn index() -> impl Strategy<Value = Index> {
    let part = (0..3_usize, 1..9_u32, 1..40_u32, 0..50_u32);
    (prop::collection::vec(part, 0..4), 0..100_u32)
        .prop_map(|(parts, offset)| Index { parts, offset })
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(48))]

    #[test]
    fn indices_are_as_counted(
        read in index(),
        written in index(),
        size in (1..9_u32, 1..5_u32, 1..3_u32),
        groups in (1..7_u32, 1..4_u32, 1..3_u32),
        bound in 1..60_u32,
    ) {
        let (x, y, z) = size;
        let wgsl = format!(
            "{TWO} @compute @workgroup_size({x}, {y}, {z}) fn main(@builtin(global_invocation_id) id: vec3<u32>) {{
                for (var k = 0u; k < id.y + 1u; k++) {{
                    if (id.x + k >= {bound}u) {{ break; }}
                    y[{} + k] = x[{}];
                }}
            }}",
            written.wgsl(), read.wgsl(),
        );
        let node = node(&wgsl, &[8000, 8000], [groups.0, groups.1, groups.2]);
        let mut reads = BTreeSet::new();
        let mut writes = BTreeSet::new();
        for id_z in 0..z * groups.2 {
            for id_y in 0..y * groups.1 {
                for id_x in 0..x * groups.0 {
                    let id = [id_x, id_y, id_z];
                    for k in 0..=id_y {
                        if id_x + k >= bound {
                            break;
                        }
                        reads.insert(read.at(id));
                        writes.insert(written.at(id) + u64::from(k));
                    }
                }
            }
        }
        prop_assert_eq!(words(&node, 0, false), Ok(reads.into_iter().collect()));
        prop_assert_eq!(words(&node, 1, true), Ok(writes.into_iter().collect()));
    }
}
