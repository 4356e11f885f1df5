//! Tests the recording of Vulkan work that is neither a dispatch nor a copy, and of kernels that are not pipelines.

use gapscope_trace::tables::{HostCallKind, OpaqueWorkKind, Table, Timing};
use gapscope_trace::{Loss, LossKind, Trace};

use crate::counts;
use crate::driver::{Fake, Lavapipe};
use crate::fake_driver;
use crate::losses;
use crate::recording::{Program, planted};

fn opaque(trace: &Trace, kind: OpaqueWorkKind) -> Vec<Option<i64>> {
    let rows = &trace.tables.opaque_work;
    let of_kind = |row: &usize| rows.kind[*row] == kind;
    (0..rows.len())
        .filter(of_kind)
        .map(|row| rows.duration_ns.at(row))
        .collect()
}

/// Records `planted` on the fake driver, which must see no misuse.
fn on_fake(arguments: &str, settings: &[(&str, &str)]) -> Trace {
    fake_driver::case(arguments, settings).trace
}

#[test]
fn a_command_buffer_with_nothing_but_resolves_is_busy() {
    let recording = planted("resolve --n 4 --iterations 10").recorded();
    let trace = recording.trace();
    counts::compare(&trace.tables, &recording.truth());
    let times = opaque(&trace, OpaqueWorkKind::ClearImage);
    assert_eq!(times.len() as u64, recording.truth().sum("resolves"));
    let measured: i64 = times.iter().map(|time| time.expect("it is timed")).sum();
    assert!(measured > 0);
    let report = recording.report();
    let device = &report["devices"][0];
    let busy = device["busy_ns"].as_i64().expect("known");
    assert!(busy * 10 >= measured * 5, "{busy} of {measured}: {device}");
}

/// The software GPU has neither extension: memory is decompressed, and a rendering is ended by the newer function.
#[test]
fn work_of_extensions_is_recorded_and_ends_what_it_ends() {
    let trace = on_fake("extensions --n 3 --iterations 4", &[]);
    let decompressed = opaque(&trace, OpaqueWorkKind::Decompression);
    let rendered = opaque(&trace, OpaqueWorkKind::RenderPass);
    assert_eq!((decompressed.len(), rendered.len()), (6, 6));
    assert!(decompressed.iter().chain(&rendered).all(Option::is_some));
    let dispatches = &trace.tables.dispatches.duration_ns;
    assert!(losses::all_known(dispatches), "{dispatches:?}");
}

/// `VK_KHR_synchronization2` has its own name for the function of Vulkan 1.3, and the program calls both in turns.
#[test]
fn submissions_and_their_calls_bear_the_names_of_the_functions_that_submitted() {
    let cases = [
        ("steady --n 2 --iterations 2", ["vkQueueSubmit"; 2]),
        (
            "submit2 --n 2 --iterations 2",
            ["vkQueueSubmit2", "vkQueueSubmit2KHR"],
        ),
    ];
    for (arguments, functions) in cases {
        let recording = planted(arguments).recorded();
        let tables = recording.trace().tables;
        let submissions = &tables.submissions.function;
        let of_submissions = (0..submissions.len()).map(|row| submissions[row].as_deref());
        assert_eq!(
            of_submissions.flatten().collect::<Vec<_>>(),
            functions,
            "{arguments}"
        );
        let calls = &tables.host_calls;
        let submits = (0..calls.len()).filter(|row| calls.call[*row] == HostCallKind::Submit);
        let of_calls = submits.map(|row| calls.function[row].as_deref());
        assert_eq!(
            of_calls.flatten().collect::<Vec<_>>(),
            functions,
            "{arguments}"
        );
    }
}

#[test]
fn how_large_a_gpu_is_comes_from_its_vendors_extension() {
    let sizes = [
        ("nv:132:64", Some(132), Some(2048)),
        ("amd:96:32", Some(96), Some(2048)),
        ("arm:10:64", Some(10), None),
    ];
    for (size, multiprocessors, threads) in sizes {
        let trace = on_fake("extensions --n 3 --iterations 1", &[("SIZE", size)]);
        let limits = trace.manifest.devices[0].limits.as_ref().expect(size);
        assert_eq!(limits.multiprocessors, multiprocessors, "{size}");
        assert_eq!(limits.threads_per_multiprocessor, threads, "{size}");
        assert_eq!(limits.registers_per_multiprocessor, None, "{size}");
    }
    let trace = on_fake("extensions --n 3 --iterations 1", &[]);
    let limits = trace.manifest.devices[0].limits.as_ref();
    assert_eq!(limits.and_then(|limits| limits.multiprocessors), None);
}

#[test]
fn kernels_that_leave_most_of_a_vulkan_device_idle_are_named() {
    let settings = [("SIZE", "nv:80:64"), ("DISPATCH_NS", "200000")];
    let fake = Fake::new(&settings);
    let arguments = "steady --n 20 --iterations 10 --groups 8";
    let report = Program::planted(arguments, &fake).recorded().report();
    let fill = &report["fill"][0];
    assert_eq!(fill["multiprocessors"], 80, "{fill}");
    assert_eq!(fill["mean_multiprocessors"], 8.0, "{fill}");
    assert_eq!(fill["kernels"][0]["groups_p50"], 8, "{fill}");
    let kernel = &report["kernels"][0];
    assert_eq!(kernel["limit"], "too-small", "{kernel}");
    assert_eq!(kernel["launches"]["multiprocessors"], 80, "{kernel}");
}

#[test]
fn a_dispatch_of_a_shader_object_is_its_own() {
    let trace = counts::check("shader-objects --n 3 --iterations 2", &Lavapipe);
    let tables = &trace.tables;
    let name = |kernel| {
        let row = tables.kernels.id.iter().position(|id| *id == kernel);
        let row = row.expect("the kernel has a row");
        (
            tables.kernels.entry_point[row]
                .as_deref()
                .unwrap_or_default()
                .to_owned(),
            tables.kernels.source[row].is_some(),
        )
    };
    let kernels: Vec<_> = tables
        .dispatches
        .kernel
        .iter()
        .map(|id| name(*id))
        .collect();
    let in_turn = [("spin".to_owned(), true), ("spin_object".to_owned(), true)];
    for (index, kernel) in kernels.iter().enumerate() {
        assert_eq!(*kernel, in_turn[index % 2], "{kernels:?}");
    }
}

/// Two parts of a rendering in one command buffer are one row. Parts in two command buffers have no times, unless
/// both are secondary command buffers of one primary command buffer, which is timed.
#[test]
fn nothing_is_added_between_a_suspended_rendering_and_the_one_that_resumes_it() {
    for trace in [
        on_fake("suspended --iterations 6", &[]),
        counts::check("suspended --iterations 6", &Lavapipe),
    ] {
        let rendered = opaque(&trace, OpaqueWorkKind::RenderPass);
        let timed = rendered.iter().flatten().count();
        assert_eq!((timed, rendered.len()), (2, 10), "{rendered:?}");
        assert_eq!(losses::counted(&trace, &LossKind::OpaqueWorkTimes), 8);
        let timing = &trace.tables.command_buffers.timing;
        let without = timing.iter().filter(|timing| **timing == Timing::NoQueries);
        assert_eq!(without.count(), 4, "{timing:?}");
        let expected = ["suspended", "timed as a whole", "could not time"];
        let known = |loss: &Loss| expected.iter().any(|part| loss.reason.contains(part));
        let losses = &trace.manifest.losses;
        assert!(losses.iter().all(known), "{losses:?}");
    }
}

#[test]
fn a_protected_submission_gets_no_command_buffers_that_are_not() {
    let trace = on_fake("protected --iterations 4", &[("QUEUES", "GCTP:1")]);
    let timing = &trace.tables.command_buffers.timing;
    assert_eq!(*timing, [Timing::NoQueries; 4]);
}

#[test]
fn sparse_binding_waits_for_work_and_work_for_it() {
    check_turns(&counts::check("sparse --iterations 3 --n 2", &Lavapipe));
}

/// The first submission waits for the value with which the semaphore starts, which is no dependency.
#[test]
fn submissions_wait_in_turn_for_a_counter_that_starts_above_0() {
    check_turns(&counts::check("submit2 --iterations 4", &Lavapipe));
}

/// Checks that each submission but the first waits for the one before, and for nothing else.
fn check_turns(trace: &Trace) {
    let tables = &trace.tables;
    let mut submissions: Vec<_> = (0..tables.submissions.len())
        .map(|row| (tables.submissions.start_ns[row], tables.submissions.id[row]))
        .collect();
    submissions.sort();
    let mut waits: Vec<_> = (0..tables.dependencies.len())
        .map(|row| {
            (
                tables.dependencies.waits_for.at(row),
                tables.dependencies.submission[row],
            )
        })
        .collect();
    waits.sort();
    let in_turn: Vec<_> = submissions
        .windows(2)
        .map(|pair| (Some(pair[0].1), pair[1].1))
        .collect();
    assert_eq!(waits, in_turn);
}

/// Dynamic offsets are given for all dynamic descriptors of a set's layout, whether they were written or not.
#[test]
fn the_offset_of_a_descriptor_is_its_own_when_the_one_before_was_never_written() {
    let recording = planted("partly-written --n 4 --iterations 1").recorded();
    let part = recording.truth().sum("part_bytes");
    let mut offsets = recording.trace().tables.bindings.offset_bytes;
    offsets.sort();
    assert_eq!(offsets, [0, part, 2 * part, 3 * part]);
}
