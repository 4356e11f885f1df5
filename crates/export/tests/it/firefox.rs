//! Tests the format of Firefox Profiler.

use super::traces::{self, CROSSING, MEASURED, SAMPLED, assert_counted, timed_rows};
use gapscope_export::{Scene, firefox};
use gapscope_trace::Trace;
use serde_json::Value;
use std::collections::BTreeMap;

pub fn export(trace: &Trace) -> Value {
    let mut out = Vec::new();
    assert_counted(
        &firefox::write(&Scene::new(trace), &mut out).unwrap(),
        trace,
    );
    serde_json::from_slice(&out).unwrap()
}

fn markers(file: &Value) -> Vec<(&Value, &Value)> {
    let threads = file["threads"].as_array().unwrap().iter();
    threads
        .flat_map(|thread| {
            let data = thread["markers"]["data"].as_array().unwrap();
            data.iter().map(move |data| (thread, data))
        })
        .collect()
}

#[test]
fn every_row_with_times_is_one_marker() {
    for (name, trace) in traces::all() {
        let file = export(&trace);
        let mut counts: BTreeMap<String, u64> = BTreeMap::new();
        for (_, data) in markers(&file) {
            *counts
                .entry(data["type"].as_str().unwrap().to_owned())
                .or_default() += 1;
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
    assert_eq!(
        (&table["startTime"][0], &table["endTime"][0]),
        (&Value::from(0.1), &Value::from(0.14))
    );
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
    let counters = file["counters"].as_array().unwrap().iter();
    let found: Vec<_> = counters
        .map(|counter| {
            (
                counter["name"].as_str().unwrap(),
                counter["description"].as_str().unwrap(),
            )
        })
        .collect();
    assert_eq!(
        found,
        [
            ("memory clock", "memory clock, in hertz"),
            ("queue 0.0 · occupancy", "queue 0.0 · occupancy, in percent"),
            ("load", "load, in percent"),
        ]
    );
}

/// Returns the stack of a sample, the innermost frame first.
fn stack(file: &Value, thread: &Value, sample: usize) -> Vec<String> {
    let shared = file.get("shared").unwrap_or(thread);
    let strings = shared.get("stringArray").or(thread.get("stringArray"));
    let strings = strings.unwrap().as_array().unwrap();
    let table = |name: &str| thread.get(name).or(shared.get(name)).unwrap();
    let mut at = thread["samples"]["stack"][sample].as_u64();
    let mut names = Vec::new();
    while let Some(stack) = at {
        let frame = table("stackTable")["frame"][stack as usize]
            .as_u64()
            .unwrap();
        let function = table("frameTable")["func"][frame as usize]
            .as_u64()
            .unwrap();
        let name = table("funcTable")["name"][function as usize]
            .as_u64()
            .unwrap();
        names.push(strings[name as usize].as_str().unwrap().to_owned());
        at = table("stackTable")["prefix"][stack as usize].as_u64();
    }
    names
}

#[test]
fn samples_are_those_of_their_threads() {
    let trace = Trace::from_text(SAMPLED).unwrap();
    let file = export(&trace);
    assert_eq!(file["meta"]["interval"], 0.1);
    let threads = file["threads"].as_array().unwrap();
    let of = |tid: &str| {
        let mut found = threads.iter();
        found
            .find(|thread| thread["tid"].as_str() == Some(tid))
            .unwrap()
    };
    let main = of("101");
    assert_eq!(main["name"], "main (101)");
    assert!(!main["markers"]["data"].as_array().unwrap().is_empty());
    assert_eq!(main["samples"]["length"], 4);
    let deltas: Vec<f64> = match main["samples"].get("timeDeltas") {
        Some(deltas) => serde_json::from_value(deltas.clone()).unwrap(),
        None => panic!("{}", main["samples"]),
    };
    let times: Vec<f64> = deltas
        .iter()
        .scan(0.0, |sum, delta| {
            *sum += delta;
            Some((*sum * 1e6_f64).round() / 1e6)
        })
        .collect();
    assert_eq!(times, [0.2, 0.3, 0.4, 0.6]);
    assert_eq!(
        stack(&file, main, 0),
        ["libc.so.6 read", "train.py:42 main"]
    );
    assert_eq!(stack(&file, main, 2), ["unknown code"]);
    assert_eq!(stack(&file, main, 3), ["train.py:41 main"]);
    let cpu = &main["samples"]["threadCPUDelta"];
    assert_eq!(*cpu, serde_json::json!([0, 0, 100, 100]));
    assert_eq!(stack(&file, of("102"), 0)[0], "libexample.so");
    assert_eq!(of("200")["pid"].as_str(), Some("200"));
}
