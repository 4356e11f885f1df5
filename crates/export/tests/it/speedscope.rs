//! speedscope's format.

use super::traces::{self, assert_counted, timed_rows};
use gapscope_export::speedscope;
use gapscope_trace::Trace;
use serde_json::Value;

pub fn export(trace: &Trace) -> Value {
    let mut out = Vec::new();
    assert_counted(&speedscope::write(trace, &mut out).unwrap(), trace);
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
