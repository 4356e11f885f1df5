//! Tests the buffers that dispatches reach through their bindings.

use super::Program;
use super::program::{Commands, losses};
use gapscope_spool::event::*;
use gapscope_spool::ids as hook;
use gapscope_trace::ids::BindingSetId;
use gapscope_trace::tables::{Access, Table};
use std::borrow::Cow;

#[test]
fn a_dispatch_reaches_what_is_bound_and_declared() {
    let mut program = Program::new();
    for (buffer, bytes) in [(1, 4096), (2, 8192), (3, 64)] {
        program.event(VulkanEvent::Buffer {
            buffer: hook::Buffer(buffer),
            device: hook::Device(1),
            bytes,
            at_ns: 0,
        });
    }
    let declared = |set, binding, reads, writes| BindingAccess {
        set,
        binding,
        reads,
        writes,
    };
    let accesses = vec![
        declared(0, 0, true, false),
        declared(0, 2, false, true),
        declared(1, 0, true, true),
    ];
    program.kernel_with(1, "declares", "", [1; 16], accesses);
    program.kernel(2, "says nothing");
    let entry = |binding, buffer, offset, bytes, kind| Binding {
        binding,
        element: 0,
        buffer: hook::Buffer(buffer),
        offset,
        bytes,
        kind,
    };
    // Type 7 is a storage buffer, and 9 a dynamic storage buffer. Buffer 0 is a null descriptor, and takes a dynamic
    // offset, too.
    let entries = [
        entry(2, 2, 256, u64::MAX, 9),
        entry(0, 1, 0, 1024, 7),
        entry(1, 0, 0, 4, 9),
        entry(3, 3, 0, 64, 7),
    ];
    program.event(VulkanEvent::Bindings {
        content: hook::BindingContent(1),
        entries: Cow::Borrowed(&entries),
    });
    let entries = [entry(0, 99, 0, 4, 7)];
    program.event(VulkanEvent::Bindings {
        content: hook::BindingContent(2),
        entries: Cow::Borrowed(&entries),
    });
    // The content is the same, with another id.
    let entries = [entry(0, 1, 0, 64, 7)];
    program.event(VulkanEvent::Bindings {
        content: hook::BindingContent(3),
        entries: Cow::Borrowed(&entries),
    });
    program.event(VulkanEvent::Bindings {
        content: hook::BindingContent(4),
        entries: Cow::Borrowed(&entries),
    });
    let mut commands = Commands::begun();
    commands.dispatch(1);
    commands.push(Op::BindSet, NO_QUERY, [0, 1, 0, 0]);
    commands.push(Op::DynamicOffset, NO_QUERY, [0, 0, 16, 0]);
    commands.push(Op::DynamicOffset, NO_QUERY, [0, 1, 512, 0]);
    commands.push(Op::BindSet, NO_QUERY, [1, 2, 0, 0]);
    commands.dispatch(1).dispatch(1).dispatch(2);
    commands
        .push(Op::BindSet, NO_QUERY, [0, 3, 0, 0])
        .dispatch(1);
    commands
        .push(Op::BindSet, NO_QUERY, [0, 4, 0, 0])
        .dispatch(1);
    let commands = commands.end();
    program.record(5, &commands);
    let ticks: Vec<u64> = (0..14).map(|i| 1_001_000 + i).collect();
    program.run(5, &ticks);
    // The end of a buffer does not change earlier recordings.
    program.event(VulkanEvent::BufferEnd {
        buffer: hook::Buffer(1),
        at_ns: 5_000_000,
    });
    program.run(5, &ticks.iter().map(|t| t + 1000).collect::<Vec<_>>());
    let (manifest, tables) = program.finish();
    let expected =
        [None, Some(0), Some(0), Some(1), Some(2), Some(2)].map(|id| id.map(BindingSetId));
    assert_eq!(tables.dispatches.bindings.to_vec()[..6], expected);
    assert_eq!(tables.dispatches.bindings.to_vec()[6..], expected);
    let rows: Vec<_> = (0..tables.bindings.len())
        .map(|row| tables.bindings.row(row))
        .map(|b| {
            (
                b.id.0,
                b.set,
                b.binding,
                b.buffer.0,
                b.offset_bytes,
                b.bytes,
                b.access,
            )
        })
        .collect();
    assert_eq!(
        rows,
        [
            (0, 0, 0, 0, 0, 1024, Access::Read),
            (0, 0, 2, 1, 768, 7424, Access::Write),
            (1, 0, 0, 0, 0, 1024, Access::Unknown),
            (1, 0, 2, 1, 768, 7424, Access::Unknown),
            (1, 0, 3, 2, 0, 64, Access::Unknown),
            (2, 0, 0, 0, 0, 64, Access::Read),
        ]
    );
    assert_eq!(
        losses(&manifest),
        [("bindings (their buffer is not known)".to_owned(), 1)]
    );
    assert_eq!(tables.buffers.id.len(), 3);
}

/// Tests that the buffers of a kernel are unknown if it uses a descriptor buffer or a heap, and that earlier sets do
/// not count.
#[test]
fn what_is_bound_in_other_ways_than_sets_is_counted_as_not_known() {
    let mut program = Program::new();
    program.kernel(1, "k");
    program.event(VulkanEvent::Buffer {
        buffer: hook::Buffer(1),
        device: hook::Device(1),
        bytes: 1024,
        at_ns: 0,
    });
    let whole = Binding {
        binding: 0,
        element: 0,
        buffer: hook::Buffer(1),
        offset: 0,
        bytes: 64,
        kind: 7,
    };
    program.event(VulkanEvent::Bindings {
        content: hook::BindingContent(1),
        entries: Cow::Borrowed(&[whole]),
    });
    let mut commands = Commands::begun();
    commands.push(Op::BindSet, NO_QUERY, [0, 1, 0, 0]);
    commands.dispatch(1);
    commands.push(Op::BindSet, NO_QUERY, [0, 0, 1, 0]);
    commands.dispatch(1);
    program.record(5, &commands.end());
    let ticks: Vec<u64> = (0..6).map(|i| 1_001_000 + i).collect();
    program.run(5, &ticks);
    let (manifest, tables) = program.finish();
    assert_eq!(tables.dispatches.bindings, [Some(BindingSetId(0)), None]);
    let reason = "what descriptor buffers and heaps hold is not recorded";
    let lost = manifest.losses.iter().find(|loss| loss.reason == reason);
    assert_eq!(
        lost.map(|loss| loss.count),
        Some(1),
        "{:?}",
        manifest.losses
    );
}
