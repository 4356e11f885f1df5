//! Tests labels of modules and operators on a Python program with a fake of PyTorch and the stub of CUDA. The part
//! `labels` of `tests/cuda-programs` tests the real PyTorch.

use super::Stub;
use crate::product;
use crate::recording::{Program, Recording};
use serde_json::Value;
use std::collections::BTreeMap;

const BOTH: [&str; 2] = ["--label-modules", "--label-ops"];

fn program(stub: &Stub, python: &[&str]) -> Program {
    let script = product::source("fake-torch/train.py");
    let script = script.display().to_string();
    let site = script.replace("train.py", "site");
    let words = ["python3"].into_iter().chain(python.iter().copied());
    Program::new(words.chain([script.as_str()]), stub).variable("PYTHONPATH", site)
}

/// Returns the number of dispatches by the path of their label.
fn work(recording: &Recording) -> BTreeMap<String, usize> {
    let trace = recording.trace();
    let tables = &trace.tables;
    let paths = gapscope_trace::lookup::LabelPaths::new(&tables.labels);
    let mut work = BTreeMap::new();
    for label in &tables.dispatches.label {
        let path = label.map_or(String::new(), |label| {
            paths.get(label).unwrap_or("unknown").to_owned()
        });
        *work.entry(path).or_default() += 1;
    }
    work
}

fn said(recording: &Recording) -> Value {
    serde_json::from_str(recording.run.stdout.trim()).expect("JSON")
}

#[test]
fn modules_label_work_forward_and_backward_and_layers_fold() {
    let stub = Stub::new(&[]);
    let alone = program(&stub, &[]).recorded();
    assert_eq!(work(&alone).keys().collect::<Vec<_>>(), ["", "step"]);
    let recording = program(&stub, &[]).options(&BOTH[..1]).recorded();
    assert_eq!(said(&recording), said(&alone), "the program sees the same");
    assert_eq!(
        recording.run.stderr.lines().count(),
        1,
        "{}",
        recording.run.stderr
    );
    let mut expected = BTreeMap::from([(String::new(), 1), ("step".to_owned(), 3)]);
    for block in ["blocks.0", "blocks.1"] {
        let around = format!("Model / {block}");
        for (forward, label) in [
            (2, String::new()),
            (3, format!(" / {block}.attn")),
            (1, format!(" / {block}.mlp")),
        ] {
            expected.insert(format!("step / {around}{label}"), 3 * forward);
            // Two kernels of each node: of the block's own two, and of one of each module inside.
            let nodes = if label.is_empty() { 2 } else { 1 };
            expected.insert(format!("backward / {around}{label}"), 3 * 2 * nodes);
        }
    }
    // The node that made the model's input is in no module.
    expected.insert("backward".to_owned(), 3 * 2);
    assert_eq!(work(&recording), expected);

    let report = recording.report();
    let folded = report["folded_labels"].as_array().expect("labels");
    let row = folded
        .iter()
        .find(|row| row["path"] == "step / Model / blocks.* / blocks.*.attn");
    let row = row.expect("a folded label");
    assert_eq!(
        (&row["layer_count"], &row["instances"]),
        (&2.into(), &6.into()),
        "{row}"
    );
    assert_eq!(row["inclusive"]["dispatch_count"], 18);
    assert!(
        recording.text().contains("blocks.*.attn"),
        "{}",
        recording.text()
    );
}

#[test]
fn operators_are_counted_with_their_work_and_change_no_label() {
    let stub = Stub::new(&[]);
    let modules = program(&stub, &[]).options(&BOTH[..1]).recorded();
    let both = program(&stub, &[]).options(&BOTH).recorded();
    assert_eq!(said(&both), said(&modules));
    let rows = |recording: &Recording| {
        let report = recording.report();
        let rows = report["labels"].as_array().expect("labels").clone();
        let row = |row: &Value| {
            let work = &row["inclusive"];
            (
                row["path"].clone(),
                row["instances"].clone(),
                work["dispatch_count"].clone(),
            )
        };
        let mut rows: Vec<String> = rows.iter().map(|one| format!("{:?}", row(one))).collect();
        rows.sort();
        rows
    };
    assert_eq!(rows(&both), rows(&modules));
    let report = both.report();
    let operators = report["operators"].as_array().expect("operators");
    let of = |name: &str| {
        let row = operators
            .iter()
            .find(|row| row["name"] == name)
            .expect(name);
        (
            row["call_count"].clone(),
            row["own"]["timed_count"].clone(),
            row["inclusive"]["timed_count"].clone(),
        )
    };
    // Each of three steps has one call before the model, four in each block, and one at the end. The backward pass
    // has one call less.
    let (forward, nodes) = (3 * 9 + 1, 3 * 9);
    let forward_work = 3 * (1 + 2 * 6) + 1;
    assert_eq!(
        of("aten::linear"),
        (forward.into(), 0.into(), forward_work.into())
    );
    let all = forward_work + nodes * 2;
    assert_eq!(
        of("aten::mm"),
        ((forward + nodes).into(), all.into(), all.into())
    );
    let engine = "autograd::engine::evaluate_function: MmBackward0";
    assert_eq!(of(engine), (nodes.into(), 0.into(), (nodes * 2).into()));
    assert!(both.text().contains("Operators"), "{}", both.text());
}

#[test]
fn where_no_python_takes_the_labels_it_is_said_and_nothing_else_changes() {
    let stub = Stub::new(&[]);
    let path = product::source("fake-torch");
    let recording = program(&stub, &["-E"]).options(&BOTH).recorded();
    let notes = recording.trace().manifest.notes;
    assert!(
        notes
            .iter()
            .any(|note| note.contains("no Python ran that takes them")),
        "{notes:?}"
    );
    assert_eq!(work(&recording).keys().collect::<Vec<_>>(), ["", "step"]);
    assert!(
        !recording.path().join("labels").exists(),
        "nothing is left behind"
    );

    let recording = stub.program("labels:3 sync");
    let recording = recording
        .variable("PYTHONPATH", path.display().to_string())
        .options(&BOTH)
        .recorded();
    assert_eq!(recording.trace().tables.dispatches.label.len(), 3);
}
