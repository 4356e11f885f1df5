//! Tests speedscope's format.

use super::traces::{self, assert_counted, timed_rows};
use gapscope_export::{Scene, speedscope};
use gapscope_trace::Trace;
use serde_json::Value;

pub fn export(trace: &Trace) -> Value {
    let mut out = Vec::new();
    assert_counted(
        &speedscope::write(&Scene::new(trace), &mut out).unwrap(),
        trace,
    );
    serde_json::from_slice(&out).unwrap()
}

#[test]
fn profiles_open_and_close_every_row_as_a_stack() {
    for (name, trace) in traces::all() {
        let file = export(&trace);
        let frames = file["shared"]["frames"].as_array().unwrap();
        let mut opened = 0;
        for profile in file["profiles"].as_array().unwrap() {
            if profile["name"]
                .as_str()
                .unwrap()
                .starts_with("gaps by cause")
            {
                continue;
            }
            if profile["type"] == "sampled" {
                continue;
            }
            assert_eq!(profile["type"], "evented");
            assert_eq!(profile["unit"], "nanoseconds");
            let (mut stack, mut now) = (Vec::new(), 0);
            for event in profile["events"].as_array().unwrap() {
                let at = event["at"].as_u64().unwrap();
                assert!(at >= now, "{name}: back in time");
                now = at;
                let frame = event["frame"].as_u64().unwrap();
                assert!((frame as usize) < frames.len());
                if event["type"] == "O" {
                    opened += 1;
                    stack.push(frame);
                } else {
                    assert_eq!(stack.pop(), Some(frame), "{name}");
                }
            }
            assert!(stack.is_empty() && now <= profile["endValue"].as_u64().unwrap());
        }
        assert_eq!(opened, timed_rows(&trace).values().sum::<u64>(), "{name}");
    }
}

#[test]
fn every_queue_lane_and_thread_has_a_profile() {
    let trace = Trace::from_text(traces::CROSSING).unwrap();
    let file = export(&trace);
    let profiles = file["profiles"].as_array().unwrap();
    let names: Vec<&str> = profiles
        .iter()
        .map(|p| p["name"].as_str().unwrap())
        .collect();
    for name in [
        "worker (101) — program (pid 100)",
        "thread 7 — process 9 (unknown)",
        "compute — GPU 1: Some GPU",
        "compute · lane 3 — GPU 1: Some GPU",
    ] {
        assert!(names.contains(&name), "{name} is not in {names:?}");
    }
}

#[test]
fn the_samples_of_each_thread_are_a_profile_of_their_periods() {
    let mut trace = Trace::from_text(traces::SAMPLED).unwrap();
    let file = export(&trace);
    let frames = file["shared"]["frames"].as_array().unwrap();
    let profiles = file["profiles"].as_array().unwrap().iter();
    let sampled: Vec<&Value> = profiles.filter(|p| p["type"] == "sampled").collect();
    let names: Vec<&str> = sampled
        .iter()
        .map(|profile| profile["name"].as_str().unwrap())
        .collect();
    assert_eq!(
        names,
        [
            "main (101) · code — python (pid 100)",
            "loader (102) · code — python (pid 100)",
            "thread 200 · code — python (pid 200)",
        ]
    );
    let name = |frame: &Value| frames[frame.as_u64().unwrap() as usize]["name"].clone();
    let stacks = sampled[0]["samples"].as_array().unwrap().iter();
    let stacks: Vec<String> = stacks
        .map(|stack| {
            let names = stack.as_array().unwrap().iter().map(name);
            let names = names.map(|name| name.as_str().unwrap().to_owned());
            names.collect::<Vec<_>>().join(" > ")
        })
        .collect();
    let read = "train.py:42 main > libc.so.6 read";
    assert_eq!(
        stacks,
        ["", read, read, "unknown code", "", "train.py:41 main"]
    );
    // Samples come by time, with empty stacks between them.
    assert_eq!(
        sampled[0]["weights"],
        serde_json::json!([150_000, 100_000, 100_000, 100_000, 100_000, 100_000])
    );
    assert_eq!(sampled[0]["endValue"], 1_000_000);
    let line = frames
        .iter()
        .find(|frame| frame["name"] == "train.py:41 main");
    assert_eq!(line.unwrap()["file"], "/app/train.py");
    assert_eq!(line.unwrap()["line"], 41);
    // Stacks without samples do no harm.
    trace.tables.samples = Default::default();
    let without = export(&trace);
    trace.tables.stacks = Default::default();
    trace.tables.frames = Default::default();
    assert_eq!(without, export(&trace));
}
