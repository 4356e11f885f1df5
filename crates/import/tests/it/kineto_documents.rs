//! Tests Chrome's JSON as people's files hold it: several documents in a file, documents in an array, events without a
//! document, text in front, names behind events, and a GPU that several processes share.

use crate::imported::{import_bytes, loss, noted};
use gapscope_import::Options;
use gapscope_trace::tables::Table;
use gapscope_trace::{Selection, Trace, read};
use std::collections::BTreeSet;

/// Launches of a process with their kernels on a device, each 100 µs after the one before.
fn events(pid: u32, device: u32, name: &str, [start, length]: [u32; 2]) -> Vec<String> {
    let pair = |at: u32| {
        let (call, correlation) = (start + at * 100, at + 1);
        let work = call + 10;
        [
            format!(
                r#"{{"ph":"X","cat":"cuda_runtime","name":"cudaLaunchKernel","pid":{pid},"tid":1,"ts":{call},"dur":5,"args":{{"correlation":{correlation}}}}}"#
            ),
            format!(
                r#"{{"ph":"X","cat":"kernel","name":"{name}","pid":{device},"tid":7,"ts":{work},"dur":{length},"args":{{"device":{device},"context":1,"stream":7,"correlation":{correlation},"grid":[1,1,1],"block":[32,1,1]}}}}"#
            ),
        ]
    };
    (0..10).flat_map(pair).collect()
}

fn document(members: &str, events: &[String]) -> String {
    format!(
        r#"{{"schemaVersion":1,{members}"traceEvents":[{}]}}"#,
        events.join(",\n")
    )
}

fn of_rank(rank: u32) -> String {
    format!(r#""distributedInfo":{{"rank":{rank},"world_size":2}},"#)
}

/// Imports a file, and returns the trace without a rank and those of its ranks.
fn import(text: &str) -> (Trace, Vec<Trace>) {
    let folder = tempfile::tempdir().unwrap();
    let [path, output] = ["run.json", "out.gapscope"].map(|name| folder.path().join(name));
    std::fs::write(&path, text).unwrap();
    gapscope_import::import(&[path], &output, &Options::default(), &|_, _| ()).unwrap();
    let all = read(&output, &Selection::all()).unwrap().0;
    let ranks = all.manifest.ranks.iter();
    let ranks = ranks.map(|rank| {
        let folder = output.join(format!("rank={rank}"));
        read(&folder, &Selection::all()).unwrap().0
    });
    let ranks = ranks.collect();
    (all, ranks)
}

/// The names of the kernels of a trace, and how many dispatches have a submission.
fn kernels(trace: &Trace) -> (Vec<String>, usize) {
    let tables = &trace.tables;
    let names = tables.kernels.name.iter().map(|name| name.to_string());
    let launched = tables.dispatches.submission.iter().flatten().count();
    (names.collect(), launched)
}

#[test]
fn documents_of_different_processes_are_ranks() {
    let first = events(1000, 0, "a", [100, 50]);
    let second = events(1000, 0, "b", [130, 70]);
    let of_ranks = [
        document(&of_rank(0), &first),
        document(&of_rank(1), &second),
    ];
    let unnamed = [document("", &first), document("", &second)];
    for (text, note) in [
        (of_ranks.join("\n"), "documents of 2 ranks"),
        (of_ranks.concat(), "documents of 2 ranks"),
        (format!("[{}]", of_ranks.join(", ")), "documents of 2 ranks"),
        (unnamed.join("\n"), "numbered in their order"),
    ] {
        let (all, ranks) = import(&text);
        assert_eq!(all.manifest.ranks, [0, 1], "{note}");
        assert!(noted(&all, note), "{:?}", all.manifest.notes);
        for (trace, name) in ranks.iter().zip(["a", "b"]) {
            assert_eq!(kernels(trace), (vec![name.to_owned()], 10));
            assert_eq!(trace.manifest.losses, []);
        }
    }
}

#[test]
fn documents_of_one_process_are_one_trace() {
    let first = document("", &events(1000, 0, "a", [100, 50]));
    let later = document("", &events(1000, 0, "b", [5000, 50]));
    let (trace, ranks) = import(&[first.clone(), later].join("\n"));
    assert_eq!(ranks.len(), 0);
    assert_eq!(kernels(&trace), (vec!["a".to_owned(), "b".to_owned()], 20));
    assert_eq!(trace.manifest.devices.len(), 1);
    let (trace, ranks) = import(&[first.clone(), first].join("\n"));
    assert_eq!((ranks.len(), kernels(&trace).1), (0, 10));
    assert!(noted(&trace, "same events"), "{:?}", trace.manifest.notes);
}

#[test]
fn events_without_a_document_and_documents_behind_text_are_read() {
    let events = events(1000, 0, "a", [100, 50]);
    let lines = events.join("\n");
    let whole = document("", &events);
    let wanted = import_bytes("run.json", whole.as_bytes()).unwrap().trace;
    let log = "[INFO] 2026-11-27 step {3}\nWARNING: x=[1]\n";
    let shipped = events.iter().map(|event| format!("worker-1  | {event}\n"));
    for (text, lost_parts) in [
        (lines.clone(), 0),
        (format!("\u{feff}{lines}\n"), 0),
        (format!("{log}{whole}"), 1),
        (format!("{log}{lines}"), 1),
        (format!("{whole}\n[INFO] done\n"), 1),
        (shipped.collect(), 0),
        // JavaScript and Python allow these.
        (whole.replace("}}]}", "}},],}"), 0),
        (
            whole.replacen("\"dur\":5,", "\"dur\":5,\"x\":NaN,\"y\":-Infinity,", 3),
            0,
        ),
    ] {
        let import = import_bytes("run.json", text.as_bytes()).unwrap();
        let tables = &import.trace.tables;
        assert_eq!(tables.dispatches, wanted.tables.dispatches, "{text}");
        assert_eq!(tables.submissions, wanted.tables.submissions, "{text}");
        let parts = import.trace.manifest.losses.iter();
        let parts = parts.filter(|loss| loss.to_string().contains("not JSON"));
        let parts: u64 = parts.map(|loss| loss.count).sum();
        assert_eq!(
            parts, lost_parts,
            "{text}: {:?}",
            import.trace.manifest.losses
        );
    }
}

#[test]
fn names_behind_the_events_that_they_name_count() {
    let work = |tid: u32, name: &str, at: u32| {
        format!(r#"{{"ph":"X","name":"{name}","pid":1,"tid":{tid},"ts":{at},"dur":90}}"#)
    };
    let mut events: Vec<String> = (0..5)
        .flat_map(|at| [work(10, "fusion", at * 100), work(11, "jit_step", at * 100)])
        .collect();
    let names = [
        r#"{"ph":"M","name":"process_name","pid":1,"args":{"name":"/device:GPU:0"}}"#,
        r#"{"ph":"M","name":"thread_name","pid":1,"tid":10,"args":{"name":"Stream #10(Compute)"}}"#,
        r#"{"ph":"M","name":"thread_name","pid":1,"tid":11,"args":{"name":"XLA Modules"}}"#,
    ];
    let names = names.map(str::to_owned);
    let text = |events: &[String]| format!("{{\"traceEvents\":[{}]}}", events.join(","));
    let first = import(&text(&[&names[..], &events].concat())).0;
    events.extend(names);
    let last = import(&text(&events)).0;
    assert_eq!(first.tables.dispatches.len(), 5);
    assert_eq!(last.tables, first.tables);
}

#[test]
fn a_device_whose_processes_take_turns_is_one_gpu() {
    let cases = [
        // They take turns.
        ("", [100, 40], [150, 40], 1, "took turns"),
        // They run at the same time.
        ("", [100, 40], [110, 40], 2, "at the same time"),
        // Each rank has a GPU of its own.
        (
            r#""distributedInfo":{"rank":0,"world_size":2},"#,
            [100, 40],
            [150, 40],
            2,
            "",
        ),
    ];
    for (members, first, second, gpus, note) in cases {
        let mut all = events(1000, 0, "a", first);
        let other = events(2000, 0, "b", second);
        let renumbered = other
            .iter()
            .map(|event| event.replace("\"correlation\":", "\"correlation\":1"));
        all.extend(renumbered);
        let trace = import(&document(members, &all)).0;
        assert_eq!(kernels(&trace).1, 20);
        let uuids: BTreeSet<&str> = (trace.manifest.devices.iter())
            .map(|device| device.uuid.as_str())
            .filter(|uuid| !uuid.is_empty())
            .collect();
        assert_eq!(trace.manifest.devices.len(), 2);
        assert_eq!(uuids.len(), 2 - gpus, "{note}");
        assert!(
            note.is_empty() || noted(&trace, note),
            "{:?}",
            trace.manifest.notes
        );
        assert_eq!(loss(&trace, ""), 0);
    }
}
