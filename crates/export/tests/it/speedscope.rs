//! Tests speedscope's format.

use super::traces::{self, list, text, timed_rows, written};
use gapscope_export::speedscope;
use gapscope_trace::Trace;
use serde_json::{Value, json};

pub fn export(trace: &Trace) -> Value {
    serde_json::from_slice(&written(trace, speedscope::write)).unwrap()
}

#[test]
fn profiles_open_and_close_every_row_as_a_stack() {
    for (name, trace) in traces::all() {
        let file = export(&trace);
        let frames = list(&file["shared"]["frames"]);
        let mut opened = 0;
        for profile in list(&file["profiles"]) {
            let is_gaps = text(&profile["name"]).starts_with("gaps by cause");
            if is_gaps || profile["type"] == "sampled" {
                continue;
            }
            assert_eq!(profile["type"], "evented");
            assert_eq!(profile["unit"], "nanoseconds");
            let (mut stack, mut now) = (Vec::new(), 0);
            for event in list(&profile["events"]) {
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
    let profiles = list(&file["profiles"]).iter();
    let names: Vec<&Value> = profiles.map(|profile| &profile["name"]).collect();
    for name in [
        "worker (101) — program (pid 100)",
        "thread 7 — process 9 (unknown)",
        "compute — GPU 0: Some GPU",
        "compute · lane 3 — GPU 0: Some GPU",
    ] {
        assert!(
            names.iter().any(|other| **other == name),
            "{name} is not in {names:?}"
        );
    }
}

#[test]
fn the_samples_of_each_thread_are_a_profile_of_their_periods() {
    let mut trace = Trace::from_text(traces::SAMPLED).unwrap();
    let file = export(&trace);
    let frames = list(&file["shared"]["frames"]);
    let profiles = list(&file["profiles"]).iter();
    let sampled: Vec<&Value> = profiles.filter(|p| p["type"] == "sampled").collect();
    let names = sampled.iter().map(|profile| text(&profile["name"]));
    let expected = [
        "main (101) · code — python (pid 100)",
        "loader (102) · code — python (pid 100)",
        "thread 200 · code — python (pid 200)",
    ];
    assert!(names.eq(expected));
    let name = |frame: &Value| text(&frames[frame.as_u64().unwrap() as usize]["name"]);
    let stacks = list(&sampled[0]["samples"]).iter();
    let stacks = stacks.map(|stack| {
        let names: Vec<String> = list(stack).iter().map(name).collect();
        names.join(" > ")
    });
    let read = "train.py:42 main > libc.so.6 read";
    assert!(stacks.eq(["", read, read, "unknown code", "", "train.py:41 main"]));
    // Samples come by time, with empty stacks between them.
    let weights = json!([150_000, 100_000, 100_000, 100_000, 100_000, 100_000]);
    assert_eq!(sampled[0]["weights"], weights);
    assert_eq!(sampled[0]["endValue"], 1_000_000);
    let mut frames = frames.iter();
    let line = frames.find(|frame| frame["name"] == "train.py:41 main");
    assert_eq!(line.unwrap()["file"], "/app/train.py");
    assert_eq!(line.unwrap()["line"], 41);
    // Stacks without samples do no harm.
    trace.tables.samples = Default::default();
    let without = export(&trace);
    trace.tables.stacks = Default::default();
    trace.tables.frames = Default::default();
    assert_eq!(without, export(&trace));
}
