//! Tests that traces of cuts of real files have the numbers that a script with Python's standard library counts.

use crate::imported::{Rows, import};

use gapscope_trace::Trace;
use gapscope_trace::tables::{HostCallKind, TransferKind};
use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::process::Command;

/// Counts, and sums in nanoseconds and bytes, by name; zeros are left out.
type Sums = BTreeMap<String, i64>;

#[test]
fn counts_and_sums_are_those_of_a_script() {
    let root = Path::new(env!("CARGO_MANIFEST_DIR"));
    let files = ["h100", "v100_ns", "v100_old"];
    let files: Vec<PathBuf> = (files.iter())
        .map(|name| root.join(format!("../../fixtures/kineto/{name}.json")))
        .collect();
    let mut script = Command::new("python3");
    script
        .arg(root.join("tests/it/kineto_truth.py"))
        .args(&files);
    let output = match script.output() {
        Ok(output) => output,
        Err(error) => {
            let required =
                std::env::var_os("GAPSCOPE_REQUIRE_CLIENTS").is_some_and(|value| value == "1");
            assert!(!required, "python3 does not start: {error}");
            return eprintln!("skipped: python3 does not start: {error}");
        }
    };
    assert!(output.status.success(), "{output:?}");
    let text = String::from_utf8(output.stdout).unwrap();
    assert_eq!(text.lines().count(), files.len());
    for (file, line) in files.iter().zip(text.lines()) {
        let mut truth: Sums = serde_json::from_str(line).unwrap();
        truth.retain(|_, value| *value != 0);
        assert_eq!(
            sums(&import(file).unwrap().trace),
            truth,
            "{}",
            file.display()
        );
    }
}

fn sums(trace: &Trace) -> Sums {
    let tables = &trace.tables;
    let mut sums = Sums::new();
    let mut add = |name: String, value: i64| *sums.entry(name).or_default() += value;
    for dispatch in tables.dispatches.iter() {
        add("kernel".to_owned(), 1);
        add("kernel_ns".to_owned(), dispatch.duration_ns.unwrap());
    }
    for transfer in tables.transfers.iter() {
        let kind = match transfer.kind {
            TransferKind::Fill => "fill",
            _ => "copy",
        };
        add(kind.to_owned(), 1);
        add(format!("{kind}_ns"), transfer.duration_ns.unwrap());
        add(format!("{kind}_bytes"), transfer.bytes.unwrap() as i64);
    }
    for marker in tables.markers.iter() {
        let kind = match marker.domain.as_deref() {
            None => "annotation",
            Some(domain @ ("operator" | "python")) => domain,
            Some(_) => continue,
        };
        add(kind.to_owned(), 1);
        add(format!("{kind}_ns"), marker.duration_ns.unwrap());
    }
    for submission in tables.submissions.iter() {
        add("call".to_owned(), 1);
        add("call_ns".to_owned(), submission.duration_ns);
    }
    for call in tables.host_calls.iter() {
        // Calls that copy and wait are submissions, too. The profiler's own activity is no call of the program.
        if !matches!(
            call.call,
            HostCallKind::Recording | HostCallKind::CopyAndWait
        ) {
            add("call".to_owned(), call.count.into());
            add("call_ns".to_owned(), call.busy_ns);
        }
    }
    sums.retain(|_, value| *value != 0);
    sums
}
