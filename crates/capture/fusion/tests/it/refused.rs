//! Checks the reasons why neighbours do not form a chain.

use gapscope_capture::model::{BufferId, BufferRange, Command, Dispatch, Fill, Groups, Pipeline};
use gapscope_dependencies::{Dependencies, Limits};
use gapscope_fusion::{Form, find, merged};
use naga::proc::BoundsCheckPolicy::Unchecked;
use rspirv::dr::{Instruction, Module, Operand};
use rspirv::spirv::{ExecutionMode, MemoryModel, Op, StorageClass};

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

/// Returns a kernel with this code, after the declarations in `more`.
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
    let text = why(&copy, &elementwise("a[999u - i]"));
    assert_eq!(
        text,
        "another index map: byte 69532 of memory 0 is reached by invocation 999 and by invocation 0"
    );
    let text = why(&copy, &elementwise("a[(i + 1u) % 1000u]"));
    assert!(text.starts_with("another index map"), "{text}");
    let text = why(&copy, &elementwise("a[i] + a[0]"));
    assert!(text.starts_with("another index map"), "{text}");
}

#[test]
fn where_it_reads_depends_on_data() {
    let text = why(
        &elementwise("a[i] * 100.0"),
        &elementwise("a[u32(a[i]) % 1000u]"),
    );
    assert!(
        text.contains("where depends on data that the kernel loads"),
        "{text}"
    );
}

#[test]
fn a_barrier_or_shared_memory() {
    let shared = kernel(
        "var<workgroup> w: array<f32, 64>;",
        "w[l] = a[i]; workgroupBarrier(); c[i] = w[63u - l];",
    );
    let text = why(&shared, &elementwise("a[i]"));
    assert!(text.contains("control barrier"), "{text}");
    let private = kernel(
        "var<workgroup> w: f32;",
        "if l == 0u { w = 1.0; } c[i] = a[i];",
    );
    let text = why(&elementwise("a[i]"), &private);
    assert!(
        text.contains("shared memory") || text.contains("barrier"),
        "{text}"
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
    assert_eq!(
        why_changed(Made::new(), |second| second.groups =
            Groups::Direct([17, 1, 1])),
        "their workgroups are not the same: [16, 1, 1] and [17, 1, 1]"
    );
}

#[test]
fn other_local_sizes() {
    let other = elementwise("a[i]").replace("@workgroup_size(64)", "@workgroup_size(32)");
    let text = why(&elementwise("a[i]"), &other);
    assert_eq!(
        text,
        "their local sizes are not the same: [64, 1, 1] and [32, 1, 1]"
    );
}

#[test]
fn the_second_writes_what_another_invocation_of_the_first_reads() {
    let mut made = Made::new();
    let turned = made.kernel(&elementwise("a[999u - i] * 2.0"), 2, 0);
    let sum = made.kernel(&elementwise("a[i] + 1.0"), 2, 0);
    let text = reason(
        made,
        vec![dispatch(turned, &[0, 1]), dispatch(sum, &[1, 0])],
    );
    assert!(text.starts_with("another index map"), "{text}");
}

#[test]
fn kernels_that_share_nothing_are_no_pair() {
    let mut made = Made::new();
    let of = made.kernel(&elementwise("a[i]"), 2, 0);
    let (_folder, capture) = made.run(vec![dispatch(of, &[0, 1]), dispatch(of, &[2, 3])]);
    let found = find(&capture, Limits::default());
    assert!(found.chains.is_empty() && found.refused.is_empty());
}

/// Returns why a plain kernel and one with changed SPIR-V do not form a chain.
fn why_edited(edit: impl FnOnce(&mut Module)) -> String {
    let mut made = Made::new();
    let one = made.kernel(&elementwise("a[i] + 1.0"), 2, 0);
    let two = made.edited_kernel(&elementwise("a[i] * 2.0"), edit);
    reason(made, vec![dispatch(one, &[0, 1]), dispatch(two, &[1, 2])])
}

/// Adds an instruction before the end of the kernel's first block.
fn add(module: &mut Module, instruction: Instruction) {
    let entry = module.entry_points[0].operands[1].unwrap_id_ref();
    let mut functions = module.functions.iter_mut();
    let function = functions.find(|of| of.def_id() == Some(entry)).unwrap();
    function.blocks[0].instructions.insert(0, instruction);
}

#[test]
fn a_memory_barrier() {
    let text = why_edited(|module| {
        let mut constants = module.types_global_values.iter();
        let constant = constants.find(|of| of.class.opcode == Op::Constant);
        let id = constant.unwrap().result_id.unwrap();
        let operands = vec![Operand::IdScope(id), Operand::IdMemorySemantics(id)];
        add(
            module,
            Instruction::new(Op::MemoryBarrier, None, None, operands),
        );
    });
    assert_eq!(text, "a kernel has a memory barrier");
}

#[test]
fn subgroup_operations() {
    let text = why_edited(|module| {
        let mut types = module.types_global_values.iter();
        let boolean = types.find(|of| of.class.opcode == Op::TypeBool).unwrap();
        let (kind, scope) = (boolean.result_id, boolean.result_id.unwrap());
        let bound = module.header.as_ref().unwrap().bound;
        module.header.as_mut().unwrap().bound += 1;
        let operands = vec![Operand::IdScope(scope)];
        let elect = Instruction::new(Op::GroupNonUniformElect, kind, Some(bound), operands);
        add(module, elect);
    });
    assert_eq!(text, "a kernel uses subgroup operations");
}

#[test]
fn images() {
    let draws = kernel(
        "@group(0) @binding(2) var image: texture_storage_2d<rgba8unorm, write>;",
        "c[i] = a[i]; textureStore(image, vec2u(i, 0u), vec4f(a[i]));",
    );
    assert_eq!(why(&elementwise("a[i]"), &draws), "a kernel uses images");
}

#[test]
fn device_addresses() {
    let text = why_edited(|module| {
        let mut types = module.types_global_values.iter();
        let pointer = types.find(|of| of.class.opcode == Op::TypePointer).unwrap();
        let operands = vec![
            Operand::IdRef(pointer.result_id.unwrap()),
            Operand::StorageClass(StorageClass::PhysicalStorageBuffer),
        ];
        let forward = Instruction::new(Op::TypeForwardPointer, None, None, operands);
        module.types_global_values.insert(0, forward);
    });
    assert_eq!(text, "a kernel uses device addresses");
}

#[test]
fn spirv_that_cannot_be_read() {
    let mut made = Made::new();
    let code = compile(&elementwise("a[i]"), Unchecked);
    let one = made.kernel(&elementwise("a[i]"), 2, 0);
    let two = made.kernel_of(&code[..code.len() - 8], 2, 0, |_| {});
    let text = reason(made, vec![dispatch(one, &[0, 1]), dispatch(two, &[1, 2])]);
    assert!(text.starts_with("its SPIR-V cannot be read: "), "{text}");
}

/// Returns why a dispatch and a changed dispatch of the same kernel do not form a chain.
fn why_changed(mut made: Made, change: impl FnOnce(&mut Dispatch)) -> String {
    let kernel = made.kernel(&elementwise("a[i]"), 2, 0);
    let mut second = dispatch(kernel, &[1, 2]);
    if let Command::Dispatch(dispatch) = &mut second {
        change(dispatch);
    }
    reason(made, vec![dispatch(kernel, &[0, 1]), second])
}

#[test]
fn the_device_reads_how_many_workgroups_there_are() {
    let groups = Groups::Indirect(BufferRange::from_start(BufferId(9), 12));
    assert_eq!(
        why_changed(Made::new(), |second| second.groups = groups),
        "how many workgroups it has is read by the device"
    );
}

#[test]
fn another_first_workgroup() {
    assert_eq!(
        why_changed(Made::new(), |second| second.base[0] = 1),
        "their workgroups are not the same: another first one"
    );
}

#[test]
fn an_array_of_descriptors() {
    let mut made = Made::new();
    made.descriptors = 2;
    let reason = why_changed(made, |second| {
        let mut another = second.bindings[1];
        another.element = 1;
        second.bindings.push(another);
    });
    assert_eq!(reason, "a kernel has an array of descriptors");
}

#[test]
fn pipelines_that_were_made_in_another_way() {
    type Change = fn(&mut Pipeline);
    let changes: [(&str, Change); 2] = [
        ("flags", |of| of.stage_flags = 2),
        ("sizes of subgroups", |of| {
            of.required_subgroup_size = Some(8)
        }),
    ];
    for (what, change) in changes {
        let mut made = Made::new();
        let code = compile(&elementwise("a[i]"), Unchecked);
        let (one, two) = (
            made.kernel_of(&code, 2, 0, |_| {}),
            made.kernel_of(&code, 2, 0, change),
        );
        let text = reason(made, vec![dispatch(one, &[0, 1]), dispatch(two, &[1, 2])]);
        assert_eq!(
            text,
            format!("their pipelines were made with different {what}")
        );
    }
}

#[test]
fn a_fill_between_them() {
    let mut made = Made::new();
    let of = made.kernel(&elementwise("a[i]"), 2, 0);
    let fill = Command::Fill(Fill {
        range: BufferRange::from_start(BufferId(9), 64),
        value: 0,
    });
    let text = reason(
        made,
        vec![dispatch(of, &[0, 1]), fill, dispatch(of, &[1, 2])],
    );
    assert_eq!(text, "a fill stands between them");
}

/// Returns why a chain cannot be merged.
fn not_merged(made: Made, commands: Vec<Command>) -> String {
    let (_folder, capture) = made.run(commands);
    let found = find(&capture, Limits::default());
    let [chain] = &found.chains[..] else {
        panic!("{:?}", found.refused)
    };
    let nodes = Dependencies::from_capture(&capture, Limits::default(), &mut |_| ())
        .graph
        .nodes;
    let merged = merged(&capture, &found, chain, Form::Stored, &nodes);
    match merged {
        Ok(_) => panic!("it is merged"),
        Err(refusal) => refusal.to_string(),
    }
}

#[test]
fn modules_that_do_not_fit_together() {
    type Edit = fn(&mut Module);
    let edits: [(&str, Edit); 2] = [
        ("memory models", |module| {
            let of = module.memory_model.as_mut().unwrap();
            of.operands[1] = Operand::MemoryModel(MemoryModel::Vulkan);
        }),
        ("execution modes", |module| {
            let entry = module.entry_points[0].operands[1].clone();
            let mode = Operand::ExecutionMode(ExecutionMode::ContractionOff);
            let operands = vec![entry, mode];
            let of = Instruction::new(Op::ExecutionMode, None, None, operands);
            module.execution_modes.push(of);
        }),
    ];
    for (what, edit) in edits {
        let mut made = Made::new();
        let one = made.kernel(&elementwise("a[i] + 1.0"), 2, 0);
        let two = made.edited_kernel(&elementwise("a[i] * 2.0"), edit);
        let text = not_merged(made, vec![dispatch(one, &[0, 1]), dispatch(two, &[1, 2])]);
        assert_eq!(text, format!("their modules have different {what}"));
    }
}

#[test]
fn more_push_constants_than_are_sure() {
    let mut made = Made::new();
    let pushed = format!(
        "struct P {{ s: array<vec4f, 5> }}
        var<immediate> p: P;
        {}",
        elementwise("a[i] * p.s[4].x")
    );
    let of = made.kernel(&pushed, 2, 80);
    let groups = COUNT.div_ceil(64);
    let commands = [[0, 1], [1, 2]].map(|buffers| dispatch_of(of, &buffers, &[1.0; 20], groups));
    assert_eq!(
        not_merged(made, commands.to_vec()),
        "their push constants have 160 bytes together, and 128 are sure"
    );
}
