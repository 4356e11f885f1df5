//! Which bytes kernels certainly touch, by their code.

use gapscope_spirv::{CertainAccess, KernelAccesses, Module, Specialisation, Sum, Symbol};
use naga::back::spv;
use naga::valid::{Capabilities, ValidationFlags, Validator};

/// Returns the accesses of the entry point `main` of a module in WGSL. With `restricted` indices are kept in bounds.
fn accesses(source: &str, restricted: bool) -> KernelAccesses {
    let module = naga::front::wgsl::parse_str(source)
        .unwrap_or_else(|error| panic!("{}", error.emit_to_string(source)));
    let mut validator = Validator::new(ValidationFlags::all(), Capabilities::all());
    let info = validator.validate(&module).unwrap();
    let policy = match restricted {
        true => naga::proc::BoundsCheckPolicy::Restrict,
        false => naga::proc::BoundsCheckPolicy::Unchecked,
    };
    let options = spv::Options {
        lang_version: (1, 3),
        bounds_check_policies: naga::proc::BoundsCheckPolicies {
            index: policy,
            buffer: policy,
            ..Default::default()
        },
        ..Default::default()
    };
    let words = spv::write_vec(&module, &info, &options, None).unwrap();
    let bytes: Vec<u8> = words.iter().flat_map(|word| word.to_le_bytes()).collect();
    let module = Module::read(&bytes).unwrap();
    KernelAccesses::read(&module, "main", &Specialisation::new()).unwrap()
}

const BUFFERS: &str = "struct Size { n: u32 }
@group(0) @binding(0) var<storage, read> input: array<f32>;
@group(0) @binding(1) var<storage, read_write> output: array<f32>;
@group(0) @binding(2) var<storage, read> indices: array<u32>;
@group(0) @binding(3) var<uniform> size: Size;
@group(0) @binding(4) var<storage, read> vectors: array<vec4f>;
@compute @workgroup_size(64, 2) fn main(@builtin(global_invocation_id) id: vec3u, @builtin(workgroup_id) group: vec3u,
    @builtin(local_invocation_index) local: u32, @builtin(num_workgroups) groups: vec3u) {
    BODY
}
fn two(i: u32) -> u32 { return 2u * i; }";

fn kernel(body: &str, restricted: bool) -> KernelAccesses {
    accesses(&BUFFERS.replace("BODY", body), restricted)
}

/// Each certain access as `r0 4 if 1`: direction, binding, bytes, and the bindings whose length bounds the index.
fn told(accesses: &KernelAccesses) -> Vec<String> {
    let told = |access: &CertainAccess| {
        let direction = if access.writes { "w" } else { "r" };
        let mut text = format!("{direction}{} {}", access.binding, access.bytes);
        for (_, length) in &access.below {
            text += &format!(" if {}", length.binding);
        }
        text
    };
    let mut told: Vec<String> = accesses.certain.iter().map(told).collect();
    told.sort();
    told
}

/// The most bytes by direction and binding.
fn most(accesses: &KernelAccesses) -> Vec<(bool, u32, u32)> {
    let most = accesses.most.iter();
    most.map(|most| (most.writes, most.binding, most.bytes))
        .collect()
}

#[test]
fn elements_of_an_invocation_are_certain() {
    let cases: [(&str, &[&str]); 12] = [
        ("output[id.x] = input[id.x];", &["r0 4", "w1 4"]),
        (
            "let i = id.y * groups.x * 64u + id.x; if i >= arrayLength(&output) { return; } output[i] = input[i];",
            &["r0 4 if 1", "w1 4 if 1"],
        ),
        (
            "if id.x < arrayLength(&output) { output[id.x] = 1.0; }",
            &["w1 4 if 1"],
        ),
        (
            "var i = group.x * 128u + local; output[i] = vectors[i].y + vectors[i].z;",
            &["r4 4", "r4 4", "w1 4"],
        ),
        (
            "let v = vectors[id.x]; output[id.x] = v.x;",
            &["r4 16", "w1 4"],
        ),
        // Both ways lead to the access behind.
        (
            "var x = 0.0; if input[id.x] > 1.0 { x = 2.0; } else { x = 3.0; } output[id.x] = x;",
            &["r0 4", "w1 4"],
        ),
        // An unknown bound, an index that is loaded, a loop, and a function give no certain access.
        (
            "if id.x < size.n { output[id.x] = input[id.x]; }",
            &["r3 4"],
        ),
        ("output[id.x] = input[indices[id.x]];", &["r2 4", "w1 4"]),
        (
            "for (var i = id.x; i < size.n; i += 64u) { output[i] = input[i]; }",
            &[],
        ),
        ("output[two(id.x)] = 1.0;", &[]),
        ("output[id.x - 1u] = 1.0;", &[]),
        (
            "if id.x > arrayLength(&output) { output[id.x] = 1.0; }",
            &[],
        ),
    ];
    for (body, expected) in cases {
        assert_eq!(told(&kernel(body, false)), expected, "{body}");
    }
}

#[test]
fn indices_that_are_kept_in_bounds_are_bounded() {
    let found = kernel("output[id.x] = input[id.x];", true);
    assert_eq!(told(&found), ["r0 4 if 0", "w1 4 if 1"]);
}

#[test]
fn addresses_are_sums_over_workgroup_and_invocation() {
    let found = kernel("output[id.x + 3u + 64u * groups.x * id.y] = 1.0;", false);
    let expected = Sum::from([
        (vec![], 12),
        (vec![Symbol::Local(0)], 4),
        (vec![Symbol::Group(0)], 256),
        (vec![Symbol::Local(1), Symbol::Groups(0)], 256),
        (vec![Symbol::Group(1), Symbol::Groups(0)], 512),
    ]);
    assert_eq!(found.certain[0].address, expected);
    assert_eq!(found.local_size, [64, 2, 1]);
}

#[test]
fn an_invocation_touches_at_most_what_its_code_does_outside_of_loops() {
    let guarded = kernel(
        "if id.x < size.n { output[id.x] = input[id.x] + input[id.x + 1u]; }",
        false,
    );
    assert_eq!(most(&guarded), [(false, 0, 8), (true, 1, 4), (false, 3, 4)]);
    let looped = kernel(
        "let first = input[0]; for (var i = 0u; i < 9u; i++) { output[i] = first; }",
        false,
    );
    assert_eq!(most(&looped), [(false, 0, 4)]);
}
