//! Tests every way to submit work to the GPU: the trace has exactly the counts that the program states, and the
//! program's results are the same bit for bit as without the recorder.

use std::collections::BTreeSet;

use gapscope_trace::tables::{Table, Timing, TransferKind};
use gapscope_trace::{Tables, Trace};

use crate::driver::{Driver, Lavapipe};
use crate::losses;
use crate::recording::{Program, planted};
use crate::truth::Truth;

/// Records `planted` and compares counts and results. Returns the trace for further checks.
pub fn check(arguments: &str, driver: &dyn Driver) -> Trace {
    let program = Program::planted(arguments, driver);
    let alone = program.run().ok();
    let recording = program.recorded();
    let trace = recording.trace();
    let truth = recording.truth();
    compare(&trace.tables, &truth);
    losses::assert_exact(&trace);
    assert_eq!(
        alone.truth().results(),
        truth.results(),
        "results without and with the recorder"
    );
    trace
}

/// Compares the numbers of rows with the counts that the program states.
pub fn compare(tables: &Tables, truth: &Truth) {
    let dispatches = tables.dispatches.len() as u64;
    for (name, rows) in [
        ("submits", submit_calls(tables)),
        ("command_buffers", tables.command_buffers.len() as u64),
        ("dispatches", dispatches),
        ("transfers", tables.transfers.len() as u64),
    ] {
        assert_eq!(rows, truth.sum(name), "{name}");
    }
    assert_transfer_bytes(tables, truth);
    let counts = tables.command_buffers.dispatches.iter();
    let in_buffers: u64 = counts.map(|&count| u64::from(count)).sum();
    assert_eq!(in_buffers, dispatches, "dispatches by command buffer");
}

/// The number of bytes of a copy from or to an image depends on its format, and is unknown.
fn assert_transfer_bytes(tables: &Tables, truth: &Truth) {
    let rows = &tables.transfers;
    let unknown: Vec<_> = rows
        .kind
        .iter()
        .zip(&rows.bytes)
        .filter(|(_, bytes)| bytes.is_none())
        .collect();
    assert!(
        unknown
            .iter()
            .all(|(kind, _)| **kind == TransferKind::CopyImage),
        "{unknown:?}"
    );
    let known: u64 = rows.bytes.iter().flatten().sum();
    if unknown.is_empty() {
        assert_eq!(known, truth.sum("transfer_bytes"), "bytes of transfers");
    } else {
        assert!(known < truth.sum("transfer_bytes"), "bytes of transfers");
    }
}

/// Returns the number of calls that submitted work; the submissions of one call have the same times.
fn submit_calls(tables: &Tables) -> u64 {
    let rows = &tables.submissions;
    let calls: BTreeSet<_> = (0..rows.len())
        .map(|row| (rows.process[row], rows.thread.at(row), rows.start_ns[row]))
        .collect();
    calls.len() as u64
}

macro_rules! counts {
    ($($name:ident: $arguments:literal;)+) => {$(
        #[test]
        fn $name() {
            check($arguments, &Lavapipe);
        }
    )+};
}

counts! {
    counts_of_one_command_buffer_a_submit: "steady --n 20 --iterations 10";
    counts_of_a_command_buffer_submitted_again: "resubmit";
    counts_of_secondary_command_buffers: "secondary";
    counts_of_handles_that_come_again: "host-pool-reset";
    counts_of_indirect_dispatches: "indirect";
    counts_of_base_dispatches: "base";
    counts_of_specialised_kernels: "specialise";
    counts_of_push_descriptors: "push-descriptors";
    counts_of_updated_descriptor_sets: "updated-sets";
    counts_of_dynamic_offsets: "dynamic-offsets";
    counts_of_submit2: "submit2";
    counts_of_threads_that_share_a_queue: "threads --count 4";
    counts_of_several_devices: "devices";
    counts_of_transfers_alone: "transfers";
    counts_of_transfers_between_dispatches: "transfer-stall";
    counts_of_render_passes_between_dispatches: "render-pass";
    counts_of_pipelines_made_in_the_loop: "pipelines-in-loop";
    counts_of_a_polling_program: "polling";
    counts_of_instances_that_come_and_go: "churn";
}

/// Each instance of a command buffer that is submitted again while it may still run has its own times.
#[test]
fn simultaneous_instances_are_timed_apart() {
    let trace = check("simultaneous", &Lavapipe);
    let buffers = &trace.tables.command_buffers;
    let mut spans: Vec<_> = (0..buffers.len())
        .map(|row| {
            buffers
                .start_ns
                .at(row)
                .zip(buffers.duration_ns.at(row))
                .expect("each instance has times")
        })
        .collect();
    spans.sort();
    for pair in spans.windows(2) {
        let [(start, duration), (next, _)] = pair else {
            unreachable!()
        };
        assert!(
            start + duration <= *next,
            "the software GPU runs one command buffer at a time: {spans:?}"
        );
    }
}

/// The work inside such a command buffer is known for the instance that runs alone, which is the last.
#[test]
fn a_lone_instance_of_a_simultaneous_command_buffer_is_timed_inside() {
    let trace = check("simultaneous --n 20", &Lavapipe);
    let tables = &trace.tables;
    let timing = &tables.command_buffers.timing;
    let (last, others) = timing.split_last().expect("several instances");
    assert_eq!(*last, Timing::Measured);
    assert!(others.contains(&Timing::Bracketed), "{others:?}");
    let alone = tables.command_buffers.id[timing.len() - 1];
    for (row, command_buffer) in tables.dispatches.command_buffer.iter().enumerate() {
        if command_buffer == Some(alone) {
            assert!(tables.dispatches.start_ns.at(row).is_some());
        }
    }
}

#[test]
fn every_dispatch_has_its_own_time() {
    let trace = check("steady --n 50 --iterations 4", &Lavapipe);
    let dispatches = &trace.tables.dispatches;
    assert!(dispatches.start_ns.iter().all(|value| value.is_some()));
    assert!(
        dispatches
            .duration_ns
            .iter()
            .all(|duration| duration.is_some_and(|ns| ns > 0))
    );
    assert_eq!(trace.manifest.losses, []);
}

#[test]
fn all_sampling_modes_count_the_same() {
    for mode in ["command-buffer", "dispatch", "dispatch-serialised"] {
        let recording = planted("steady --n 20 --iterations 5")
            .options(&["--mode", mode])
            .recorded();
        let trace = recording.trace();
        compare(&trace.tables, &recording.truth());
        assert_eq!(trace.manifest.sampling_mode.as_str(), mode);
        let timed = trace.tables.dispatches.duration_ns.iter().flatten().count();
        assert_eq!(
            timed > 0,
            mode != "command-buffer",
            "{mode} times {timed} dispatches"
        );
        assert!(
            losses::all_known(&trace.tables.command_buffers.duration_ns),
            "{mode} times command buffers"
        );
    }
}

#[test]
fn a_kernel_is_one_for_each_specialisation_and_keeps_its_code() {
    let trace = check("specialise", &Lavapipe);
    let kernels = &trace.tables.kernels;
    let of_module = |row: &usize| kernels.entry_point[*row].as_deref() == Some("specialised_spin");
    let rows: Vec<_> = (0..kernels.len()).filter(of_module).collect();
    let mut specialisations: Vec<_> = rows
        .iter()
        .map(|&row| &kernels.specialisation[row])
        .collect();
    specialisations.sort();
    specialisations.dedup();
    assert!(specialisations.len() > 1, "{kernels:?}");
    assert_eq!(specialisations.len(), rows.len(), "{kernels:?}");
    let source = &kernels.source[rows[0]];
    assert!(
        source.is_some() && rows.iter().all(|&row| kernels.source[row] == *source),
        "{kernels:?}"
    );
}

#[test]
fn the_memory_timeline_has_the_peak_of_the_program() {
    let recording = planted("memory --count 3").recorded();
    let truth = recording.truth();
    let report = recording.report();
    let memory = report["memory"].as_array().expect("a list");
    // The row without a heap is about the whole device.
    let device = memory
        .iter()
        .find(|row| row["heap"].is_null())
        .expect("the device's row");
    // The recorder's own memory is not counted as the program's.
    assert_eq!(
        device["peak_bytes"],
        truth.sum("memory_peak_bytes"),
        "{memory:?}"
    );
}

#[test]
fn labels_and_names_are_those_of_the_program() {
    let recording = planted("labels").recorded();
    compare(&recording.trace().tables, &recording.truth());
    let report = recording.report();
    assert!(
        !report["labels"].as_array().expect("a list").is_empty(),
        "{report}"
    );
}
