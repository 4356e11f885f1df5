//! Tests that kernels get the best of the names that events give for them.

use super::Program;
use super::program::Commands;
use crate::Names;
use gapscope_spool::event::{CommonEvent, NO_QUERY, Object, Op};
use gapscope_spool::ids as hook;
use gapscope_trace::tables::NameSource;
use std::sync::Arc;

#[test]
fn a_kernel_has_the_best_name_that_is_known() {
    let mut program = Program::new();
    let hash = |byte| [byte; 16];
    program.kernel_with(1, "main", "", hash(0x11), vec![]);
    program.kernel_with(2, "main", "", hash(0x22), vec![]);
    program.kernel_with(3, "square_main", "", hash(0x33), vec![]);
    program.kernel_with(4, "dawn_entry_point", "", hash(0x44), vec![]);
    program.kernel_with(5, "main", "", hash(0x55), vec![]);
    program.kernel_with(6, "main", "0:40000000", hash(0x66), vec![]);
    program.kernel_with(
        7,
        "main",
        "0:40000000,1:40000000,2:40000000,3:40000000",
        hash(0x66),
        vec![],
    );
    program.kernel_with(8, "main", "0:40000000", hash(0x77), vec![]);
    program.kernel_with(9, "main", "", [0; 16], vec![]);
    for (object, name) in [
        (Object::Kernel(hook::Kernel(1)), "pipeline"),
        (Object::Kernel(hook::Kernel(2)), "matmul"),
        (Object::KernelSource(hook::Kernel(4)), "module"),
        (Object::KernelSource(hook::Kernel(5)), "module of 5"),
    ] {
        program.event(CommonEvent::Name { object, name });
    }
    program.text(1, "softmax");
    let mut commands = Commands::begun();
    commands.label(1).dispatch(4).end_label();
    // A label that changes, or that only some dispatches have, does not name its kernel.
    commands.label(1).dispatch(5).end_label().dispatch(5);
    commands.push(Op::LabelInstant, NO_QUERY, [1, 0, 0, 0]);
    program.record(5, &commands.end());
    let ticks: Vec<u64> = (1_001_000..1_001_008).collect();
    program.run(5, &ticks);
    program.sample(2_000_000);
    let names = Names::parse("11111111 = from the file").unwrap();
    program.assembler.finish(&names, &mut program.tables);
    let kernels = program.tables.kernels;
    assert_eq!(
        kernels.name,
        [
            "from the file",
            "matmul",
            "square_main",
            "softmax",
            "module of 5",
            "spv:66666666[0:40000000]",
            "spv:66666666[#33eecceb]",
            "spv:77777777",
            "unknown kernel",
        ]
        .map(Arc::from)
    );
    use NameSource::*;
    assert_eq!(
        kernels.name_source,
        [
            NamesFile, ObjectName, EntryPoint, Label, SourceName, Hash, Hash, Hash, Unknown
        ]
    );
}

#[test]
fn the_default_names_of_engines_name_no_kernel() {
    let mut program = Program::new();
    for id in 1..=5 {
        program.kernel_with(id, "dawn_entry_point", "", [0x11 * id as u8; 16], vec![]);
    }
    for (object, name) in [
        (
            Object::Kernel(hook::Kernel(1)),
            "DawnDbg=1;Dawn_InternalComputePipeline",
        ),
        (
            Object::Kernel(hook::Kernel(2)),
            "DawnDbg=1;Dawn_ComputePipeline_softmax",
        ),
        (
            Object::Kernel(hook::Kernel(3)),
            "(wgpu internal) indirect validation",
        ),
        (
            Object::KernelSource(hook::Kernel(3)),
            "Dawn_ShaderModule_squares",
        ),
        (Object::Kernel(hook::Kernel(4)), "main"),
        (Object::Kernel(hook::Kernel(5)), ""),
    ] {
        program.event(CommonEvent::Name { object, name });
    }
    program.text(1, "forward");
    let mut commands = Commands::begun();
    commands.label(1).dispatch(5).end_label();
    program.record(5, &commands.end());
    let ticks: Vec<u64> = (1_001_000..1_001_004).collect();
    program.run(5, &ticks);
    let (_, tables) = program.finish();
    assert_eq!(
        tables.kernels.name,
        [
            "spv:11111111",
            "softmax",
            "squares",
            "spv:44444444",
            "forward"
        ]
        .map(Arc::from)
    );
    use NameSource::*;
    assert_eq!(
        tables.kernels.name_source,
        [Hash, ObjectName, SourceName, Hash, Label]
    );
}

#[test]
fn a_label_around_several_kernels_names_them_with_their_hashes() {
    let mut program = Program::new();
    program.kernel_with(1, "main", "", [0x11; 16], vec![]);
    program.kernel_with(2, "main", "", [0x22; 16], vec![]);
    program.text(1, "forward");
    let mut commands = Commands::begun();
    commands.label(1).dispatch(1).dispatch(2).end_label();
    program.record(5, &commands.end());
    let ticks: Vec<u64> = (1_001_000..1_001_006).collect();
    program.run(5, &ticks);
    let (_, tables) = program.finish();
    assert_eq!(
        tables.kernels.name,
        ["forward (spv:11111111)", "forward (spv:22222222)"].map(Arc::from)
    );
}
