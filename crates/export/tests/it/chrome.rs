//! Tests Chrome's format.

use super::traces::{self, CROSSING, counts, list, text, timed_rows, written};
use gapscope_analysis::{Findings, Options};
use gapscope_export::chrome;
use gapscope_trace::Trace;
use serde_json::Value;
use std::collections::BTreeMap;

pub fn export(trace: &Trace) -> Value {
    serde_json::from_slice(&written(trace, chrome::write)).unwrap()
}

fn events<'a>(file: &'a Value, phase: &str) -> Vec<&'a Value> {
    let events = list(&file["traceEvents"]).iter();
    events.filter(|event| event["ph"] == phase).collect()
}

/// Returns a time in nanoseconds.
fn ns(value: &Value) -> i64 {
    (value.as_f64().unwrap() * 1000.0).round() as i64
}

#[test]
fn every_row_with_times_is_one_event() {
    for (name, trace) in traces::all() {
        let file = export(&trace);
        let mut counts = counts(&file["traceEvents"], |event| {
            (event["ph"] == "X").then(|| text(&event["cat"]))
        });
        counts.remove("gap");
        assert_eq!(counts, timed_rows(&trace), "{name}");
    }
}

#[test]
fn events_of_one_tid_are_apart_or_nested() {
    for (name, trace) in traces::all() {
        let file = export(&trace);
        let mut tids: BTreeMap<(u64, u64), Vec<(i64, i64)>> = BTreeMap::new();
        for event in events(&file, "X") {
            let [pid, tid] = ["pid", "tid"].map(|key| event[key].as_u64().unwrap());
            let start = ns(&event["ts"]);
            let times = tids.entry((pid, tid)).or_default();
            times.push((start, start + ns(&event["dur"])));
        }
        for times in tids.values() {
            for (index, a) in times.iter().enumerate() {
                for b in &times[index + 1..] {
                    let apart = a.1 <= b.0;
                    let inside = a.0 <= b.0 && b.1 <= a.1;
                    assert!(apart || inside, "{name}: {a:?} {b:?}");
                }
            }
        }
    }
}

#[test]
fn tids_and_processes_have_names() {
    for (_, trace) in traces::all() {
        let file = export(&trace);
        let named = |what: &str, key: &str| -> Vec<u64> {
            let metas = events(&file, "M");
            let metas = metas.into_iter().filter(|event| event["name"] == what);
            metas.map(|event| event[key].as_u64().unwrap()).collect()
        };
        let (pids, tids) = (named("process_name", "pid"), named("thread_name", "tid"));
        for event in events(&file, "X") {
            assert!(pids.contains(&event["pid"].as_u64().unwrap()));
            assert!(tids.contains(&event["tid"].as_u64().unwrap()));
        }
    }
}

#[test]
fn an_event_has_the_times_and_facts_of_its_row() {
    let trace = Trace::from_text(CROSSING).unwrap();
    let file = export(&trace);
    let mut dispatches = events(&file, "X").into_iter();
    let event = dispatches.find(|e| e["cat"] == "dispatch" && e["args"]["position"] == 0);
    let event = event.unwrap();
    assert_eq!(event["name"], "matmul");
    assert_eq!((ns(&event["ts"]), ns(&event["dur"])), (100_000, 40_000));
    let args = &event["args"];
    assert_eq!(args["label"], "step / attention");
    assert_eq!(args["groups_x"], 16);
    assert_eq!(args["local_size"], "64 × 1 × 1");
    let mut dispatches = events(&file, "X").into_iter();
    let unknown = dispatches.find(|event| event["args"]["kernel"] == 77);
    let unknown = unknown.unwrap();
    assert_eq!(unknown["name"], "unknown kernel");
    // Unknown values are left out.
    assert!(unknown["args"].get("groups_x").is_none());
    assert_eq!(file["otherData"]["origin_ns"], 1_000_000);
}

#[test]
fn arrows_lead_from_a_submit_to_the_first_work_of_each_command_buffer() {
    let trace = Trace::from_text(CROSSING).unwrap();
    let file = export(&trace);
    let (starts, ends) = (events(&file, "s"), events(&file, "f"));
    let ids = |events: &[&Value]| -> Vec<u64> {
        let mut ids: Vec<u64> = events.iter().map(|e| e["id"].as_u64().unwrap()).collect();
        ids.sort_unstable();
        ids
    };
    // Command buffer 3 has no times, so nothing leads to it.
    assert_eq!(ids(&starts), [1, 2]);
    assert_eq!(ids(&ends), [1, 2]);
    assert!(starts.iter().all(|event| ns(&event["ts"]) == 10_000));
    let mut at: Vec<i64> = ends.iter().map(|event| ns(&event["ts"])).collect();
    at.sort_unstable();
    assert_eq!(at, [100_000, 180_000]);
}

#[test]
fn calls_and_launches_have_the_names_of_their_functions_and_nest_on_their_thread() {
    let trace = Trace::from_text(traces::LAUNCHES).unwrap();
    let file = export(&trace);
    let calls: Vec<_> = events(&file, "X")
        .into_iter()
        .filter(|event| {
            ["host call", "launch"]
                .map(Some)
                .contains(&event["cat"].as_str())
        })
        .map(|event| {
            (
                text(&event["name"]),
                ns(&event["ts"]),
                event["tid"].as_u64(),
            )
        })
        .collect();
    let call = |name: &str, at| (name.to_owned(), at, Some(7));
    let expected = [
        call("cublasGemmEx", 95_000),
        call("cudaLaunchKernel", 100_000),
        call("cudaMemsetAsync", 115_000),
        call("cudaMemcpy", 130_000),
    ];
    assert_eq!(calls, expected);
    // An arrow leads from each launch, and from the copy that waits, to the work.
    let times = |phase| -> BTreeMap<u64, i64> {
        let events = events(&file, phase).into_iter();
        events
            .map(|event| (event["id"].as_u64().unwrap(), ns(&event["ts"])))
            .collect()
    };
    let (starts, ends) = (times("s"), times("f"));
    let mut arrows: Vec<_> = starts.iter().map(|(id, at)| (*at, ends[id])).collect();
    arrows.sort_unstable();
    assert_eq!(
        arrows,
        [(100_000, 120_000), (115_000, 126_000), (130_000, 140_000)]
    );
}

#[test]
fn counters_follow_memory_and_submissions() {
    let trace = Trace::from_text(CROSSING).unwrap();
    let file = export(&trace);
    let samples = |unit: &str| -> Vec<(i64, u64)> {
        let counters = events(&file, "C");
        let of_unit = counters.iter().filter_map(|event| {
            let value = event["args"].get(unit)?.as_u64()?;
            Some((ns(&event["ts"]), value))
        });
        of_unit.collect()
    };
    assert_eq!(samples("bytes"), [(1_000, 65_536), (900_000, 0)]);
    assert_eq!(samples("count"), [(10_000, 2), (200_000, 1), (250_000, 0)]);
}

#[test]
fn counters_of_the_trace_have_their_names_units_and_groups() {
    let trace = Trace::from_text(traces::MEASURED).unwrap();
    let file = export(&trace);
    let groups: BTreeMap<u64, String> = events(&file, "M")
        .iter()
        .filter(|event| event["name"] == "process_name")
        .map(|event| (event["pid"].as_u64().unwrap(), text(&event["args"]["name"])))
        .collect();
    let mut found: Vec<_> = events(&file, "C")
        .iter()
        .map(|event| {
            let group = &groups[&event["pid"].as_u64().unwrap()];
            serde_json::json!([group, event["name"], ns(&event["ts"]), event["args"]])
        })
        .collect();
    found.sort_by_key(ToString::to_string);
    let expected = serde_json::json!([
        ["GPU 0: GPU", "memory clock", 100_000, {"hertz": 1_500_000_000}],
        ["GPU 0: GPU", "memory clock", 300_000, {"hertz": 900_000_000.5}],
        ["GPU 0: GPU", "queue 0.0 · occupancy", 20_000, {"percent": 12.5}],
        ["GPU 0: GPU", "queue 0.0 · occupancy", 50_000, {"percent": 50}],
        ["host", "load", 0, {"percent": 75}],
        ["host", "load", 500_000, {"percent": 25}],
    ]);
    assert_eq!(serde_json::json!(found), expected);
}

#[test]
fn gaps_are_drawn_by_cause_and_fill_the_idle_time() {
    for (name, trace) in traces::all() {
        let options = Options {
            exclude_warm_up: false,
            ..Options::default()
        };
        let findings = Findings::new(&trace, &options);
        let file = export(&trace);
        let mut drawn: BTreeMap<String, i64> = BTreeMap::new();
        for event in events(&file, "X") {
            if event["cat"] == "gap" {
                *drawn.entry(text(&event["name"])).or_default() += ns(&event["dur"]);
            }
        }
        let found = findings.gaps.iter();
        let found = found.map(|gap| (gap.cause.to_string(), gap.total_ns));
        let found: BTreeMap<String, i64> = found.filter(|(_, ns)| *ns > 0).collect();
        assert_eq!(drawn, found, "{name}");
    }
}
