//! Tests the format of Firefox Profiler.

use super::traces::{self, CROSSING, MEASURED, SAMPLED, list, text, timed_rows, written};
use gapscope_export::firefox;
use gapscope_trace::Trace;
use serde_json::{Value, json};
use std::collections::BTreeMap;

pub fn export(trace: &Trace) -> Value {
    serde_json::from_slice(&written(trace, firefox::write)).unwrap()
}

fn markers(file: &Value) -> Vec<(&Value, &Value)> {
    let threads = list(&file["threads"]).iter();
    let markers = threads.flat_map(|thread| {
        let data = list(&thread["markers"]["data"]).iter();
        data.map(move |data| (thread, data))
    });
    markers.collect()
}

#[test]
fn every_row_with_times_is_one_marker() {
    for (name, trace) in traces::all() {
        let file = export(&trace);
        let mut counts: BTreeMap<String, u64> = BTreeMap::new();
        for (_, data) in markers(&file) {
            *counts.entry(text(&data["type"])).or_default() += 1;
        }
        counts.remove("gap");
        assert_eq!(counts, timed_rows(&trace), "{name}");
    }
}

#[test]
fn markers_have_the_facts_of_their_rows_and_null_where_unknown() {
    let file = export(&Trace::from_text(CROSSING).unwrap());
    let found = markers(&file);
    let of = |position: f64| {
        let mut found = found.iter();
        found.find(|(_, data)| data["type"] == "dispatch" && data["position"] == position)
    };
    let (thread, first) = of(0.0).unwrap();
    assert_eq!(first["groups_x"], 16.0);
    assert_eq!(thread["name"], "compute");
    assert!(of(1.0).unwrap().1["groups_x"].is_null());
    let table = &thread["markers"];
    assert_eq!(table["startTime"][0], 0.1);
    assert_eq!(table["endTime"][0], 0.14);
}

#[test]
fn a_date_that_is_not_known_is_said() {
    let mut trace = Trace::from_text(CROSSING).unwrap();
    let file = export(&trace);
    assert_eq!(file["meta"]["product"], "gapscope");
    assert_eq!(file["meta"]["startTime"], 1_790_000_000_000.0);
    trace.manifest.start_unix_ns = None;
    let file = export(&trace);
    assert_eq!(file["meta"]["product"], "gapscope (date not known)");
}

#[test]
fn counters_of_the_trace_are_in_the_profile() {
    let file = export(&Trace::from_text(MEASURED).unwrap());
    let counters = list(&file["counters"]).iter();
    let counters = counters.map(|counter| json!([counter["name"], counter["description"]]));
    let expected = json!([
        ["memory clock", "memory clock, in hertz"],
        ["queue 0.0 · occupancy", "queue 0.0 · occupancy, in percent"],
        ["load", "load, in percent"],
    ]);
    assert_eq!(json!(counters.collect::<Vec<_>>()), expected);
}

/// Returns the stack of a sample, the innermost frame first.
fn stack(file: &Value, thread: &Value, sample: usize) -> Vec<String> {
    let shared = file.get("shared").unwrap_or(thread);
    let strings = shared.get("stringArray").or(thread.get("stringArray"));
    let strings = list(strings.unwrap());
    // Returns the number in a row of a column of a table; `None` where it is null.
    let number = |table: &str, column: &str, row: u64| {
        let table = thread.get(table).or(shared.get(table)).unwrap();
        table[column][row as usize].as_u64()
    };
    let mut at = thread["samples"]["stack"][sample].as_u64();
    let mut names = Vec::new();
    while let Some(stack) = at {
        let frame = number("stackTable", "frame", stack).unwrap();
        let function = number("frameTable", "func", frame).unwrap();
        let name = number("funcTable", "name", function).unwrap();
        names.push(text(&strings[name as usize]));
        at = number("stackTable", "prefix", stack);
    }
    names
}

#[test]
fn samples_are_those_of_their_threads() {
    let trace = Trace::from_text(SAMPLED).unwrap();
    let file = export(&trace);
    assert_eq!(file["meta"]["interval"], 0.1);
    let of = |tid: &str| {
        let mut threads = list(&file["threads"]).iter();
        threads.find(|thread| thread["tid"] == tid).unwrap()
    };
    let main = of("101");
    assert_eq!(main["name"], "main (101)");
    assert!(!list(&main["markers"]["data"]).is_empty());
    assert_eq!(main["samples"]["length"], 4);
    let deltas = list(&main["samples"]["timeDeltas"]).iter();
    let times = deltas.scan(0.0, |sum, delta| {
        *sum += delta.as_f64().unwrap();
        Some((*sum * 1e6_f64).round() / 1e6)
    });
    assert_eq!(times.collect::<Vec<_>>(), [0.2, 0.3, 0.4, 0.6]);
    let first = stack(&file, main, 0);
    assert_eq!(first, ["libc.so.6 read", "train.py:42 main"]);
    assert_eq!(stack(&file, main, 2), ["unknown code"]);
    assert_eq!(stack(&file, main, 3), ["train.py:41 main"]);
    let cpu = &main["samples"]["threadCPUDelta"];
    assert_eq!(*cpu, json!([0, 0, 100, 100]));
    assert_eq!(stack(&file, of("102"), 0)[0], "libexample.so");
    assert_eq!(of("200")["pid"].as_str(), Some("200"));
}
