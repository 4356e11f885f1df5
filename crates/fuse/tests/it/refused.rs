//! Neighbours that are no chain, each with its reason.

use gapscope_capture::model::Command;
use gapscope_dependencies::Limits;
use gapscope_fuse::find;

use crate::made::*;

fn why(first: &str, second: &str) -> String {
    let mut made = Made::new();
    let (one, two) = (made.kernel(first, 2, 0), made.kernel(second, 2, 0));
    reason(made, vec![dispatch(one, &[0, 1]), dispatch(two, &[1, 2])])
}

fn reason(made: Made, commands: Vec<Command>) -> String {
    let (_folder, capture) = made.run(commands);
    refusal(&find(&capture, Limits::default()))
}

/// A kernel with code of its own, after the declarations of `more`.
fn kernel(more: &str, code: &str) -> String {
    format!(
        "{more}
        @group(0) @binding(0) var<storage, read> a: array<f32>;
        @group(0) @binding(1) var<storage, read_write> c: array<f32>;
        @compute @workgroup_size(64)
        fn k(@builtin(global_invocation_id) id: vec3u, @builtin(local_invocation_index) l: u32) {{
            let i = min(id.x, {COUNT}u - 1u);
            {code}
        }}"
    )
}

#[test]
fn another_invocation_reads_what_one_wrote() {
    let copy = elementwise("a[i] + 1.0");
    let said = why(&copy, &elementwise("a[999u - i]"));
    assert_eq!(
        said,
        "another index map: byte 69532 of memory 0 is reached by invocation 999 and by invocation 0"
    );
    let said = why(&copy, &elementwise("a[(i + 1u) % 1000u]"));
    assert!(said.starts_with("another index map"), "{said}");
    let said = why(&copy, &elementwise("a[i] + a[0]"));
    assert!(said.starts_with("another index map"), "{said}");
}

#[test]
fn where_it_reads_depends_on_data() {
    let said = why(
        &elementwise("a[i] * 100.0"),
        &elementwise("a[u32(a[i]) % 1000u]"),
    );
    assert!(
        said.contains("where depends on data that the kernel loads"),
        "{said}"
    );
}

#[test]
fn a_barrier_or_shared_memory() {
    let shared = kernel(
        "var<workgroup> w: array<f32, 64>;",
        "w[l] = a[i]; workgroupBarrier(); c[i] = w[63u - l];",
    );
    let said = why(&shared, &elementwise("a[i]"));
    assert!(said.contains("control barrier"), "{said}");
    let private = kernel(
        "var<workgroup> w: f32;",
        "if l == 0u { w = 1.0; } c[i] = a[i];",
    );
    let said = why(&elementwise("a[i]"), &private);
    assert!(
        said.contains("shared memory") || said.contains("barrier"),
        "{said}"
    );
}

#[test]
fn atomic_operations() {
    let counts = "@group(0) @binding(0) var<storage, read> a: array<f32>;
        @group(0) @binding(1) var<storage, read_write> c: array<atomic<u32>>;
        @compute @workgroup_size(64)
        fn k(@builtin(global_invocation_id) id: vec3u) { atomicAdd(&c[id.x % 4u], u32(a[id.x % 1000u])); }";
    assert_eq!(
        why(counts, &elementwise("a[i]")),
        "a kernel uses atomic operations"
    );
}

#[test]
fn other_workgroups() {
    let mut made = Made::new();
    let of = made.kernel(&elementwise("a[i]"), 2, 0);
    let said = reason(
        made,
        vec![dispatch(of, &[0, 1]), dispatch_of(of, &[1, 2], &[], 17)],
    );
    assert_eq!(
        said,
        "their workgroups are not the same: [16, 1, 1] and [17, 1, 1]"
    );
}

#[test]
fn other_local_sizes() {
    let other = elementwise("a[i]").replace("@workgroup_size(64)", "@workgroup_size(32)");
    let said = why(&elementwise("a[i]"), &other);
    assert_eq!(
        said,
        "their local sizes are not the same: [64, 1, 1] and [32, 1, 1]"
    );
}

#[test]
fn the_second_writes_what_another_invocation_of_the_first_reads() {
    let mut made = Made::new();
    let turned = made.kernel(&elementwise("a[999u - i] * 2.0"), 2, 0);
    let sum = made.kernel(&elementwise("a[i] + 1.0"), 2, 0);
    let said = reason(
        made,
        vec![dispatch(turned, &[0, 1]), dispatch(sum, &[1, 0])],
    );
    assert!(said.starts_with("another index map"), "{said}");
}

#[test]
fn kernels_that_share_nothing_are_no_pair() {
    let mut made = Made::new();
    let of = made.kernel(&elementwise("a[i]"), 2, 0);
    let (_folder, capture) = made.run(vec![dispatch(of, &[0, 1]), dispatch(of, &[2, 3])]);
    let found = find(&capture, Limits::default());
    assert!(found.chains.is_empty() && found.refused.is_empty());
}
