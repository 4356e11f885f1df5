//! Tests files of other tools as users meet them: they are imported, reported and queried.

use std::path::Path;
use std::process::Command;

use serde_json::{Value, json};

use crate::product;
use crate::recording::{Run, assert_contains};

/// Imports a file, and returns the number and nanoseconds of its kernels, and the number of its transfers.
fn counts_of(file: &str) -> (Value, Value) {
    let folder = tempfile::tempdir().expect("a folder");
    let gapscope = |arguments: &[&str]| -> String {
        let mut command = Command::new(product::built("gapscope"));
        Run::from_command(command.args(arguments).current_dir(folder.path()))
            .ok()
            .stdout
    };
    let file = product::source("../..").join(file);
    let file = file.to_str().expect("a path of text");
    gapscope(&["import", "-o", "run.gapscope", file]);
    assert!(Path::new(&folder.path().join("run.gapscope/trace.json")).exists());
    let report = gapscope(&["report", "--json", "run.gapscope"]);
    let report: Value = serde_json::from_str(&report).expect("JSON");
    let sql = "select (select count(*) from dispatches) as kernels, \
               (select sum(duration_ns) from dispatches) as kernels_ns, \
               (select count(*) from transfers) as transfers";
    let rows = gapscope(&["query", "--format", "json", "run.gapscope", sql]);
    let rows: Value = serde_json::from_str(&rows).expect("JSON");
    let device = report["devices"][0].clone();
    (device, rows[0].clone())
}

#[test]
fn a_file_of_pytorch_is_reported_and_queried() {
    let (device, counts) = counts_of("fixtures/kineto/h100.json");
    assert_eq!(
        counts,
        json!({"kernels": 10, "kernels_ns": 31_360, "transfers": 20})
    );
    assert_eq!(
        (&device["api"], &device["clock_tool"]),
        (&json!("cuda"), &json!("Kineto"))
    );
    assert_eq!(device["clock_error_ns"], Value::Null);
}

#[test]
fn an_export_of_nsight_systems_is_reported_and_queried() {
    let (device, counts) = counts_of("fixtures/imports/nsys-2025.5.2.sqlite");
    // These are the numbers that sqlite3 finds in the file.
    assert_eq!(
        counts,
        json!({"kernels": 3, "kernels_ns": 3840, "transfers": 1})
    );
    assert_eq!(device["api"], "cuda");
    let tool = device["clock_tool"].as_str().expect("a tool");
    assert_contains(tool, "Nsight Systems");
}

#[test]
fn a_file_of_rocprofv3_is_reported_and_queried() {
    let (device, counts) = counts_of("fixtures/imports/rocprofv3.json");
    assert_eq!(
        (&counts["kernels"], &counts["transfers"]),
        (&json!(3), &json!(3))
    );
    assert_eq!(device["api"], "hip");
    let tool = device["clock_tool"].as_str().expect("a tool");
    assert_contains(tool, "rocprofv3");
}
