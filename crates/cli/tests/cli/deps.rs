//! Tests `gapscope deps` on captures and traces that the tests write.

use crate::{Workplace, assert_contains, assert_status, text};
use gapscope_capture::Writer;
use gapscope_capture::model::*;
use std::path::Path;

/// Writes a capture of fills and copies: buffer 0 is filled, then copied to buffer 1 after a barrier, then to buffer
/// 2 without one.
fn capture(folder: &Path, name: &str, complete: bool) {
    let device = Device {
        name: "test".to_owned(),
        vendor_id: 0,
        device_id: 0,
        driver: String::new(),
        driver_version: 0,
        api_version: 0,
        pipeline_cache_uuid: "0".repeat(32),
        subgroup_size: 8,
        extensions: Vec::new(),
        features: Vec::new(),
    };
    let header = Header {
        format: gapscope_capture::VULKAN_FORMAT,
        api: gapscope_capture::model::CapturedApi::Vulkan,
        gapscope: "0".to_owned(),
        command: Vec::new(),
        pid: 1,
        started_unix_ns: 0,
        window: String::new(),
        device,
    };
    let mut writer = Writer::create(folder, header).unwrap();
    let mut records = Vec::new();
    for id in 0..3 {
        records.push(Record::Memory(Memory {
            id: MemoryId(id),
            bytes: 4096,
            properties: 1,
        }));
        records.push(Record::Buffer(Buffer {
            id: BufferId(id),
            name: Some(format!("{name} {id}")),
            bytes: 4096,
            usage: 0,
            flags: 0,
            memory: MemoryId(id),
            offset: 0,
        }));
    }
    records.push(Record::Queue(Queue {
        id: QueueId(0),
        family: 0,
        index: 0,
        flags: 2,
    }));
    let fill = Command::Fill(Fill {
        range: BufferRange {
            buffer: BufferId(0),
            offset: 0,
            bytes: 4096,
        },
        value: 1,
    });
    let copy = |from, to| {
        Command::Copy(Copy {
            from: BufferId(from),
            to: BufferId(to),
            regions: vec![CopyRegion {
                from: 0,
                to: 0,
                bytes: 1000,
            }],
        })
    };
    let barrier = Command::Barrier(Barrier {
        flags: 0,
        memory: vec![Dependency {
            after_stages: 0x1000,
            after_access: 0x1000,
            before_stages: 0x1000,
            before_access: 0x1800,
        }],
        buffers: Vec::new(),
    });
    records.push(Record::Commands(Commands {
        id: CommandsId(0),
        commands: vec![fill, barrier, copy(0, 1), copy(1, 2)],
    }));
    records.push(Record::Submission(Submission {
        queue: QueueId(0),
        called_ns: 0,
        device_ns: None,
        batches: vec![Batch {
            waits: Vec::new(),
            commands: vec![CommandsId(0)],
            signals: Vec::new(),
        }],
    }));
    if complete {
        records.push(Record::End(End {
            reason: EndReason::Complete,
            after_ns: 0,
        }));
    }
    for record in &records {
        writer.record(record).unwrap();
    }
}

#[test]
fn a_capture_has_edges_hazards_and_its_barriers() {
    let workplace = Workplace::new();
    capture(&workplace.path("run.gapcapture"), "b", true);
    let output = workplace.run(&["deps", "--json", "run.gapcapture"]);
    assert_status(&output, 0);
    let json: serde_json::Value = serde_json::from_slice(&output.stdout).unwrap();
    let edges: Vec<_> = (json["edges"].as_array().unwrap().iter())
        .map(|edge| (&edge["from"], &edge["to"], &edge["kind"], &edge["bytes"]))
        .map(|(from, to, kind, bytes)| format!("{from} {to} {kind} {bytes}"))
        .collect();
    assert_eq!(edges, ["0 1 \"RAW\" 1000", "1 2 \"RAW\" 1000"]);
    assert_eq!(json["hazards"].as_array().unwrap().len(), 1);
    assert_eq!(json["hazards"][0]["from"], 1);
    assert_eq!(json["needless_barriers"], serde_json::json!([]));
    assert_eq!(json["nodes"][0]["kind"], "fill");
    let page = text(&workplace.run(&["deps", "run.gapcapture"]).stdout);
    insta::assert_snapshot!(page);
    let dot = text(&workplace.run(&["deps", "--dot", "run.gapcapture"]).stdout);
    assert_contains(&dot, "n1 -> n2 [label=\"RAW 1000 B\", color=red]");
}

#[test]
fn names_steer_no_terminal_and_lines_fit() {
    let workplace = Workplace::new();
    let name = format!("\x1b[2J\u{202e}{}", "long ".repeat(40));
    capture(&workplace.path("run.gapcapture"), &name, true);
    let page = text(&workplace.run(&["deps", "run.gapcapture"]).stdout);
    assert!(
        !page.contains('\x1b') && !page.contains('\u{202e}'),
        "{page}"
    );
    assert!(
        page.lines().all(|line| line.chars().count() <= 80),
        "{page}"
    );
}

#[test]
fn a_capture_that_was_cut_off_is_read_as_far_as_it_goes() {
    let workplace = Workplace::new();
    capture(&workplace.path("run.gapcapture"), "b", false);
    let output = workplace.run(&["deps", "run.gapcapture"]);
    assert_status(&output, 3);
    assert_contains(text(&output.stdout), "cut off");
}

#[test]
fn of_a_trace_barriers_are_unknown() {
    let workplace = Workplace::new();
    let trace = "
        process id=1
        device id=1 process=1
        queue id=1 device=1
        kernel id=1 process=1 name=double
        buffer id=1 process=1 device=1 bytes=100
        buffer id=2 process=1 device=1 bytes=100
        binding id=1 binding=0 buffer=1 bytes=100 access=read
        binding id=1 binding=1 buffer=2 bytes=100 access=write
        binding id=2 binding=0 buffer=2 offset_bytes=50 bytes=50 access=read
        dispatch queue=1 kernel=1 start_ns=120 duration_ns=30 bindings=2
        dispatch queue=1 kernel=1 start_ns=100 duration_ns=10 bindings=1";
    workplace.trace_of("run.gapscope", trace);
    let output = workplace.run(&["deps", "--json", "run.gapscope"]);
    assert_status(&output, 0);
    let json: serde_json::Value = serde_json::from_slice(&output.stdout).unwrap();
    assert_eq!(json["edges"].as_array().unwrap().len(), 1);
    assert_eq!(json["edges"][0]["bytes"], 50);
    assert_eq!(json["edges"][0]["exact"], false);
    assert_eq!(json["critical_path"]["length"], 40);
    assert_eq!(json["unknown"][0]["what"], "hazards");
    let page = text(&workplace.run(&["deps", "run.gapscope"]).stdout);
    assert_contains(&page, "Unknown: a trace has only");
}

#[test]
fn what_is_neither_is_one_sentence() {
    let workplace = Workplace::new();
    let output = workplace.run(&["deps", "nothing"]);
    assert_status(&output, 1);
    assert_eq!(text(&output.stderr).lines().count(), 1);
}

#[test]
fn what_is_no_capture_is_not_measured() {
    let workplace = Workplace::new();
    std::fs::create_dir(workplace.path("other")).unwrap();
    let output = workplace.run(&["deps", "--measure", "other"]);
    assert_status(&output, 1);
    let said = text(&output.stderr);
    assert_contains(&said, "other is not a capture");
    assert_eq!(said.lines().count(), 1, "{said}");
}
