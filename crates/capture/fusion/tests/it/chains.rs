//! Merges chains, and checks their results.

use naga::proc::BoundsCheckPolicy;

use crate::made::*;

#[test]
fn a_product_and_a_sum() {
    let mut made = Made::new();
    let mul = made.kernel(&elementwise("a[i] * b[i]"), 3, 0);
    let add = made.kernel(&elementwise("a[i] + b[i]"), 3, 0);
    let (_folder, capture) = made.run(vec![dispatch(mul, &[0, 1, 2]), dispatch(add, &[2, 3, 4])]);
    assert_eq!(check_merged(&capture), [2]);
}

#[test]
fn four_kernels_that_take_turns_with_two_buffers() {
    let mut made = Made::new();
    let kernels = ["sin(a[i])", "cos(a[i])", "exp(a[i])", "a[i] * a[i] + 1.0"];
    let kernels = kernels.map(|of| made.kernel(&elementwise(of), 2, 0));
    let buffers = [[0, 1], [1, 2], [2, 1], [1, 2]];
    let commands = kernels
        .iter()
        .zip(buffers)
        .map(|(kernel, of)| dispatch(*kernel, &of));
    let (_folder, capture) = made.run(commands.collect());
    assert_eq!(check_merged(&capture), [4]);
}

#[test]
fn push_constants_stand_one_after_the_other() {
    let mut made = Made::new();
    let kernel = |of: &str| {
        format!(
            "struct P {{ x: f32, y: f32 }}
            var<immediate> p: P;
            @group(0) @binding(0) var<storage, read> a: array<f32>;
            @group(0) @binding(1) var<storage, read_write> c: array<f32>;
            @compute @workgroup_size(64)
            fn k(@builtin(global_invocation_id) id: vec3u) {{
                if id.x < {COUNT}u {{ c[id.x] = {of}; }}
            }}"
        )
    };
    let one = made.kernel(&kernel("a[id.x] * p.x + p.y"), 2, 8);
    let two = made.kernel(&kernel("a[id.x] - p.y * p.x"), 2, 8);
    let (_folder, capture) = made.run(vec![
        dispatch_of(one, &[0, 1], &[3.0, 0.5], 16),
        dispatch_of(two, &[1, 2], &[7.0, 11.0], 16),
    ]);
    assert_eq!(check_merged(&capture), [2]);
}

#[test]
fn in_place() {
    let mut made = Made::new();
    let kernel = |of: &str| {
        format!(
            "@group(0) @binding(0) var<storage, read_write> a: array<f32>;
            @compute @workgroup_size(64)
            fn k(@builtin(global_invocation_id) id: vec3u) {{
                let i = id.x;
                if i >= {COUNT}u {{ return; }}
                a[i] = {of};
            }}"
        )
    };
    let one = made.kernel(&kernel("max(a[i], 0.5)"), 1, 0);
    let two = made.kernel(&kernel("a[i] * 3.0"), 1, 0);
    let (_folder, capture) = made.run(vec![dispatch(one, &[0]), dispatch(two, &[0])]);
    assert_eq!(check_merged(&capture), [2]);
}

#[test]
fn bounds_are_checked() {
    for policy in [
        BoundsCheckPolicy::Restrict,
        BoundsCheckPolicy::ReadZeroSkipWrite,
    ] {
        let mut made = Made::new();
        let kernel = |of: &str| {
            format!(
                "@group(0) @binding(0) var<storage, read> a: array<f32>;
                @group(0) @binding(1) var<storage, read_write> c: array<f32>;
                @compute @workgroup_size(64)
                fn k(@builtin(global_invocation_id) id: vec3u) {{
                    let i = id.x;
                    if i >= arrayLength(&a) {{ return; }}
                    c[i] = {of};
                }}"
            )
        };
        let one = made.checked_kernel(&kernel("sqrt(a[i])"), 2, 0, policy);
        let two = made.checked_kernel(&kernel("a[i] - 1.5"), 2, 0, policy);
        let (_folder, capture) = made.run(vec![dispatch(one, &[0, 1]), dispatch(two, &[1, 2])]);
        assert_eq!(check_merged(&capture), [2], "{policy:?}");
    }
}

#[test]
fn a_value_is_rounded_where_it_is_stored_as_f16() {
    let mut made = Made::new();
    let one = "enable f16;
        @group(0) @binding(0) var<storage, read> a: array<f32>;
        @group(0) @binding(1) var<storage, read_write> c: array<f16>;
        @compute @workgroup_size(64)
        fn k(@builtin(global_invocation_id) id: vec3u) {
            if id.x < 1000u { c[id.x] = f16(a[id.x] * 1.1); }
        }";
    let two = "enable f16;
        @group(0) @binding(0) var<storage, read> a: array<f16>;
        @group(0) @binding(1) var<storage, read_write> c: array<f32>;
        @compute @workgroup_size(64)
        fn k(@builtin(global_invocation_id) id: vec3u) {
            if id.x < 1000u { c[id.x] = f32(a[id.x]) * 3.0; }
        }";
    let (one, two) = (made.kernel(one, 2, 0), made.kernel(two, 2, 0));
    let (_folder, capture) = made.run(vec![dispatch(one, &[0, 1]), dispatch(two, &[1, 2])]);
    assert_eq!(check_merged(&capture), [2]);
}
