//! Records with chosen fields: they say what whole records say.

use crate::recorded::Recorded;
use crate::stub::{Outcome, Stub};

const STEPS: &str = "launch:50 runtime:20 noise:20 threads:2:10 grids:5 copies peer read waits memory pool managed \
                     graph:7:3 polls:3 labels:3 sync";

fn run(version: &str, records: &str, more: &[(&str, &str)]) -> Outcome {
    let stub = Stub::new()
        .with("FAKE_CUDA_API_VERSION", version)
        .with("FAKE_CUDA_DEVICES", "2")
        .with("GAPSCOPE_CUDA_RECORDS", records);
    let stub = more
        .iter()
        .fold(stub, |stub, (name, value)| stub.with(name, value));
    stub.run(&format!("{STEPS} attribute:11"))
}

fn is_on(outcome: &Outcome) -> bool {
    outcome.output.contains("attribute 11: 1")
}

/// What was recorded, without what differs between any two runs.
fn told(process: &Recorded) -> impl PartialEq + std::fmt::Debug {
    let mut kernels: Vec<_> = process
        .kernels
        .iter()
        .map(|k| {
            format!(
                "{} {:?} {:?} {}",
                k.name, k.shape, k.of_graph, k.correlation
            )
        })
        .collect();
    kernels.sort();
    let mut transfers: Vec<_> = process
        .transfers
        .iter()
        .map(|t| format!("{:?} {} {}", t.kind, t.bytes, t.queue))
        .collect();
    transfers.sort();
    let mut waits: Vec<_> = process
        .waits
        .iter()
        .map(|w| format!("{:?}", w.kind))
        .collect();
    waits.sort();
    let mut calls: Vec<_> = process
        .calls
        .iter()
        .map(|c| format!("{} {}", c.name, c.result))
        .collect();
    calls.sort();
    let memory: Vec<_> = process
        .allocations
        .values()
        .map(|(heap, bytes, _)| (*heap, *bytes))
        .collect();
    (
        (kernels, transfers, waits, calls),
        (memory, process.frees.len(), process.pools.clone()),
        (
            process.devices.clone(),
            process.capabilities.clone(),
            process.uuids.clone(),
        ),
        (
            process.event_records.len(),
            process.overheads.len(),
            process.streams.len(),
        ),
    )
}

#[test]
fn chosen_fields_say_the_same_as_whole_records() {
    let whole = run("130301", "whole", &[]);
    let chosen = run("130301", "chosen", &[]);
    assert!(is_on(&chosen) && !is_on(&whole));
    let process = chosen.whole();
    let counts = |p: &Recorded| {
        (
            [
                p.kernels.len(),
                p.transfers.len(),
                p.waits.len(),
                p.calls.len(),
            ],
            [
                p.allocations.len(),
                p.frees.len(),
                p.labels.len(),
                p.streams.len(),
            ],
        )
    };
    assert_eq!(counts(process), counts(whole.whole()));
    let truth = chosen.truth_of("kernel");
    for kernel in &process.kernels {
        let span = kernel.span.expect("known times");
        let ran = truth
            .iter()
            .any(|t| (t.start_ns, t.end_ns) == (span.start_ns, span.end_ns()));
        assert!(ran, "{span:?}");
    }
    assert!(
        process
            .calls
            .iter()
            .all(|c| process.threads.contains_key(&c.thread))
    );
}

#[test]
fn without_threads_they_are_equal() {
    let steps =
        "launch:50 runtime:20 grids:5 copies peer read waits memory pool managed graph:7:3 sync";
    let outcome = |records: &str| {
        Stub::new()
            .with("FAKE_CUDA_API_VERSION", "130500")
            .with("FAKE_CUDA_DEVICES", "2")
            .with("GAPSCOPE_CUDA_RECORDS", records)
            .run(steps)
    };
    let (whole, chosen) = (outcome("whole"), outcome("chosen"));
    assert_eq!(told(chosen.whole()), told(whole.whole()));
}

#[test]
fn windows_and_whole_graphs_work_with_chosen_fields() {
    let stub = Stub::new()
        .with("FAKE_CUDA_API_VERSION", "130500")
        .with("GAPSCOPE_CUDA_RECORDS", "chosen")
        .with("GAPSCOPE_CUDA_GRAPHS", "graph")
        .with("GAPSCOPE_RECORDING", "0");
    let outcome = stub.run("launch:10 sync capture:graph:10:3 sync launch:5 sync attribute:11");
    assert!(is_on(&outcome));
    let process = outcome.whole();
    assert_eq!((process.kernels.len(), process.graph_runs.len()), (0, 3));
}

#[test]
fn a_cupti_that_has_none_or_refuses_gives_whole_records() {
    let older = run("130202", "chosen", &[]);
    let refused = run("130301", "chosen", &[("FAKE_CUDA_CHOSEN_REFUSED", "11")]);
    // Without the host's clock the times would be of another one.
    let no_clock = run("130301", "chosen", &[("FAKE_CUDA_CHOSEN_REFUSED", "22")]);
    for outcome in [older, refused, no_clock] {
        assert!(outcome.whole().kernels.len() > 100);
    }
}

#[test]
fn records_that_lack_a_field_are_counted_and_the_others_are_read() {
    // Kernels without their begin.
    let outcome = run("130301", "chosen", &[("FAKE_CUDA_CHOSEN_LACKS", "10:7")]);
    let process = outcome.only();
    let lost = process.lost(
        "CUDA activities",
        "CUPTI does not say where their fields are",
    );
    assert_eq!(lost, outcome.truth_of("kernel").len() as u64);
    assert!(process.kernels.is_empty() && process.transfers.len() == 6);
}
