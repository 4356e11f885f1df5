//! Tests names that a program may give in malice or by accident.

use super::{chrome, firefox, speedscope};
use gapscope_export::Scene;
use gapscope_timeline::vocabulary::KernelNames;
use gapscope_trace::Trace;
use gapscope_trace::ids::{CommandBufferId, KernelId, QueueId};
use gapscope_trace::tables::*;

fn trace(name: &str) -> Trace {
    let mut trace = Trace::from_text(super::traces::CROSSING).unwrap();
    trace.manifest.devices[0].name = name.to_owned();
    trace.manifest.queues[0].name = Some(name.to_owned());
    trace.manifest.threads[0].name = name.to_owned();
    trace.manifest.processes[0].executable = name.to_owned();
    let t = &mut trace.tables;
    t.kernels.name.set(0, name.into());
    t.labels.text.set(0, name.into());
    t.command_buffers.name.set(0, Some(name.into()));
    trace
}

#[test]
fn any_name_gives_json() {
    let all: String = (0..0x300).filter_map(char::from_u32).collect();
    for name in [
        "",
        "\"}]}\\",
        "</script><script>alert(1)</script>",
        "\0\u{1}\u{1b}[31m\r\n\t\u{7f}\u{2028}\u{feff}\u{202e}",
        "💥 ätsch",
        all.as_str(),
    ] {
        let trace = trace(name);
        let file = chrome::export(&trace);
        let found = file["traceEvents"].as_array().unwrap().iter();
        let dispatch = found.clone().find(|e| e["args"]["kernel"] == 1).unwrap();
        let names = KernelNames::new(&trace.tables.kernels);
        assert_eq!(dispatch["name"], names.name(0));
        speedscope::export(&trace);
        firefox::export(&trace);
    }
}

#[test]
fn a_circle_of_stacks_ends() {
    let mut trace = Trace::from_text(super::traces::SAMPLED).unwrap();
    let t = &mut trace.tables;
    t.stacks.parent.set(0, Some(t.stacks.id[3]));
    t.stacks.parent.set(1, Some(t.stacks.id[0]));
    t.samples.time_ns[0] = i64::MAX;
    t.samples.time_ns[1] = i64::MIN;
    t.samples.period_ns.set(2, Some(i64::MAX));
    t.frames.function.set(0, Some("\0\"]}\u{202e}".into()));
    speedscope::export(&trace);
    firefox::export(&trace);
    gapscope_export::perfetto::write(&Scene::new(&trace), &mut Vec::new()).unwrap();
}

#[test]
fn a_name_of_ten_megabytes_is_cut_and_does_not_swell_the_file() {
    let name = "ä\"".repeat(5 << 20);
    let mut trace = trace(&name);
    for position in 0..10_000 {
        trace.tables.dispatches.push(Dispatch {
            kernel: KernelId(1),
            command_buffer: Some(CommandBufferId(1)),
            queue: QueueId(1),
            position,
            start_ns: Some(1_100_000 + i64::from(position)),
            duration_ns: Some(1),
            ..Dispatch::default()
        });
    }
    let mut out = Vec::new();
    gapscope_export::chrome::write(&Scene::new(&trace), &mut out).unwrap();
    assert!(out.len() < 50 << 20, "{} bytes", out.len());
    let file: serde_json::Value = serde_json::from_slice(&out).unwrap();
    let mut events = file["traceEvents"].as_array().unwrap().iter();
    let event = events.find(|event| event["args"]["kernel"] == 1).unwrap();
    let shown = event["name"].as_str().unwrap();
    assert_eq!(shown.chars().count(), 240);
    assert!(shown.contains('…'));
}

#[test]
fn times_that_cannot_be_are_counted_and_not_drawn() {
    let mut trace = Trace::from_text(super::traces::CROSSING).unwrap();
    for (start_ns, duration_ns) in [(i64::MAX, 1), (0, -1), (i64::MIN, i64::MAX)] {
        trace.tables.dispatches.push(Dispatch {
            command_buffer: Some(CommandBufferId(1)),
            queue: QueueId(1),
            start_ns: Some(start_ns),
            duration_ns: Some(duration_ns),
            ..Dispatch::default()
        });
    }
    let exported = gapscope_export::chrome::write(&Scene::new(&trace), &mut Vec::new()).unwrap();
    let mut rows = exported.rows.iter();
    let rows = rows.find(|rows| rows.table == "dispatches").unwrap();
    assert_eq!((rows.written, rows.without_times), (4, 4));
}

#[test]
fn the_end_of_time_is_no_trouble() {
    let mut trace = Trace::from_text(super::traces::CROSSING).unwrap();
    trace.manifest.start_ns = i64::MIN;
    trace.manifest.end_ns = i64::MAX;
    trace.tables.submissions.start_ns[0] = i64::MIN;
    trace.tables.memory.at_ns[1] = i64::MAX;
    chrome::export(&trace);
    speedscope::export(&trace);
    firefox::export(&trace);
}
