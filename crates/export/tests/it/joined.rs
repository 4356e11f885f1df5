//! Tests several traces in one file: everything of each is there once, under its name, and is not taken for
//! another's.

use super::perfetto::decoded_bytes;
use super::traces::{CROSSING, MEASURED, SAMPLED, counts, list, text, written};
use gapscope_export::csv::{self, RankColumn};
use gapscope_export::{Joined, JoinedFormat, Scene, perfetto};
use gapscope_trace::Trace;
use serde_json::Value;
use std::collections::{BTreeMap, BTreeSet};

/// Returns the same trace twice, and two others.
fn traces() -> [Trace; 4] {
    [CROSSING, CROSSING, MEASURED, SAMPLED].map(|text| Trace::from_text(text).unwrap())
}

fn origin_ns(traces: &[Trace]) -> i64 {
    let starts = traces.iter().map(|trace| trace.manifest.start_ns);
    starts.min().unwrap()
}

fn joined(format: JoinedFormat, traces: &[Trace]) -> Vec<u8> {
    let mut out = Vec::new();
    let mut file = Joined::begin(format, origin_ns(traces), 0, &mut out).unwrap();
    for (rank, trace) in traces.iter().enumerate() {
        let added = file.add(&format!("rank {rank}"), &mut Scene::new(trace));
        added.unwrap();
    }
    file.end().unwrap();
    out
}

/// Writes several traces in a format, and reads the file.
fn read_joined(format: JoinedFormat, traces: &[Trace]) -> Value {
    serde_json::from_slice(&joined(format, traces)).unwrap()
}

/// Checks that the names of processes in a joined file begin with the ranks of their traces, and that no two
/// processes have one pid. `processes` are pairs of pid and name.
fn assert_processes<T: Ord + std::fmt::Debug>(processes: &BTreeMap<(T, String), u64>) {
    let pids: BTreeSet<&T> = processes.keys().map(|(pid, _)| pid).collect();
    assert_eq!(pids.len(), processes.len(), "{processes:?}");
    for rank in 0..traces().len() {
        let own = format!("rank {rank} · ");
        let mut names = processes.keys().map(|(_, name)| name);
        assert!(names.any(|name| name.starts_with(&own)), "{processes:?}");
    }
}

/// Adds up the counts of each trace by itself.
fn of_each<T: Ord>(
    traces: &[Trace],
    counts: impl Fn(&Trace) -> BTreeMap<T, u64>,
) -> BTreeMap<T, u64> {
    let mut all = BTreeMap::new();
    for trace in traces {
        for (thing, count) in counts(trace) {
            *all.entry(thing).or_default() += count;
        }
    }
    all
}

#[test]
fn chrome_has_every_event_of_each_trace_in_processes_of_its_own() {
    let traces = traces();
    // Times count from the first of all traces.
    let slices = |file: &Value| {
        let origin_us = file["otherData"]["origin_ns"].as_f64().unwrap() / 1e3;
        counts(&file["traceEvents"], |event| {
            let at_us = event["ts"].as_f64()? + origin_us;
            let (name, length) = (event["name"].to_string(), event["dur"].to_string());
            (event["ph"] == "X").then(|| (name, format!("{at_us:.3}"), length))
        })
    };
    let all = read_joined(JoinedFormat::Chrome, &traces);
    let alone = of_each(&traces, |trace| slices(&super::chrome::export(trace)));
    assert_eq!(slices(&all), alone);
    assert_processes(&counts(&all["traceEvents"], |event| {
        let is_name = event["name"] == "process_name";
        is_name.then(|| (event["pid"].as_u64(), text(&event["args"]["name"])))
    }));
    // Every arrow begins and ends once, in one trace.
    let flows = |phase: &'static str| {
        counts(&all["traceEvents"], move |event| {
            (event["ph"] == phase).then(|| event["id"].as_u64().unwrap())
        })
    };
    assert!(!flows("s").is_empty());
    assert_eq!(flows("s"), flows("f"));
    assert!(flows("s").values().all(|count| *count == 1));
}

#[test]
fn perfetto_has_every_slice_of_each_trace() {
    let traces = traces();
    let slices = |file: &Value| {
        counts(&file["slices"], |slice| {
            let times = (slice["start_ns"].as_i64(), slice["duration_ns"].as_i64());
            Some((text(&slice["name"]), text(&slice["category"]), times))
        })
    };
    // The classes that read the file rely on distinct ids of tracks, stages and counters.
    let Some(all) = decoded_bytes(&joined(JoinedFormat::Perfetto, &traces)) else {
        return;
    };
    let mut gpus = 0;
    let alone = of_each(&traces, |trace| {
        slices(&decoded_bytes(&written(trace, perfetto::write)).unwrap())
    });
    assert_eq!(slices(&all), alone);
    for slice in list(&all["slices"]) {
        gpus = gpus.max(slice["args"]["gpu"].as_u64().map_or(0, |gpu| gpu + 1));
    }
    let named = list(&all["gpus"]).len() as u64;
    assert!(named >= gpus && gpus >= 2, "{gpus} of {named}");
    for flow in list(&all["flows"]) {
        assert_eq!(list(flow).len(), 2, "{flow}");
    }
}

#[test]
fn firefox_has_every_marker_and_sample_of_each_trace_in_threads_of_its_own() {
    let traces = traces();
    let markers = |file: &Value| {
        let mut counts: BTreeMap<(String, i64, String), u64> = BTreeMap::new();
        for thread in list(&file["threads"]) {
            let markers = &thread["markers"];
            let ns = |key: &str, at: usize| (markers[key][at].as_f64().unwrap() * 1e6).round();
            for (at, data) in list(&markers["data"]).iter().enumerate() {
                let length_ns = (ns("endTime", at) - ns("startTime", at)) as i64;
                let name = markers["name"][at].as_u64().unwrap() as usize;
                let name = text(&thread["stringArray"][name]);
                let marker = (text(&data["type"]), length_ns, name);
                *counts.entry(marker).or_default() += 1;
            }
        }
        counts
    };
    let samples = |file: &Value| -> u64 {
        let threads = list(&file["threads"]).iter();
        let counts = threads.map(|thread| thread["samples"]["length"].as_u64().unwrap());
        counts.sum()
    };
    let all = read_joined(JoinedFormat::Firefox, &traces);
    let alone: Vec<Value> = traces.iter().map(super::firefox::export).collect();
    let expected = of_each(&traces, |trace| markers(&super::firefox::export(trace)));
    assert_eq!(markers(&all), expected);
    assert!(samples(&all) > 0);
    assert_eq!(samples(&all), alone.iter().map(samples).sum::<u64>());
    let threads = list(&all["threads"]);
    assert_processes(&counts(&all["threads"], |thread| {
        Some((thread["pid"].to_string(), text(&thread["processName"])))
    }));
    // Every thread is shown, and counters belong to the same threads as before.
    let visible = list(&all["meta"]["initialVisibleThreads"]);
    let visible: BTreeSet<u64> = visible.iter().map(|at| at.as_u64().unwrap()).collect();
    assert_eq!(visible, (0..threads.len() as u64).collect());
    let of_each = alone.iter().flat_map(|file| list(&file["counters"]));
    let counters = list(&all["counters"]);
    assert_eq!(counters.len(), of_each.count());
    let of_processes_with_threads = counters.iter().filter(|counter| {
        let mut pids = threads.iter().map(|thread| &thread["pid"]);
        pids.any(|pid| *pid == counter["pid"])
    });
    let mut checked = 0;
    for counter in of_processes_with_threads {
        let main = &threads[counter["mainThreadIndex"].as_u64().unwrap() as usize];
        assert_eq!(main["pid"], counter["pid"]);
        checked += 1;
    }
    assert!(checked > 0);
    let categories = list(&all["meta"]["categories"]);
    for thread in threads {
        let used = list(&thread["frameTable"]["category"]).iter();
        let most = used.filter_map(Value::as_u64).max().unwrap_or(0);
        assert!((most as usize) < categories.len());
    }
}

#[test]
fn speedscope_has_the_profiles_of_each_trace_with_its_names() {
    let traces = traces();
    let opened = |file: &Value| {
        let mut found = BTreeMap::new();
        for profile in list(&file["profiles"]) {
            let events = profile["events"].as_array().into_iter().flatten();
            let opening = events.filter(|event| event["type"] == "O");
            let opening = opening.map(|event| event["frame"].as_u64().unwrap());
            let stacks = profile["samples"].as_array().into_iter().flatten();
            let stacks = stacks.flat_map(list);
            for frame in opening.chain(stacks.map(|frame| frame.as_u64().unwrap())) {
                let name = file["shared"]["frames"][frame as usize]["name"].to_string();
                *found.entry(name).or_default() += 1;
            }
        }
        found
    };
    let all = read_joined(JoinedFormat::Speedscope, &traces);
    let alone = of_each(&traces, |trace| opened(&super::speedscope::export(trace)));
    assert_eq!(opened(&all), alone);
    assert!(alone.keys().any(|name| name.contains("unknown code")));
    let mut profiles = list(&all["profiles"]).iter();
    assert!(profiles.any(|profile| text(&profile["name"]).contains("— rank 3 · ")));
}

#[test]
fn csv_has_the_rank_before_each_row() {
    let folder = tempfile::tempdir().unwrap();
    let traces = traces();
    let mut rows = 0;
    for (at, trace) in traces.iter().enumerate() {
        let dispatches = &trace.tables.dispatches;
        let each = |take: &mut (dyn FnMut(&_) + Send)| {
            take(dispatches);
            Some(())
        };
        let of = RankColumn {
            rank: (at > 0).then_some(at as u32 + 6),
            first: at == 0,
        };
        // Pieces that end too early leave nothing.
        let torn = |take: &mut (dyn FnMut(&_) + Send)| {
            take(dispatches);
            None::<()>
        };
        let written = csv::write_pieces(trace, torn, folder.path(), Some(of));
        assert!(written.unwrap().is_none());
        let written = csv::write_pieces(trace, each, folder.path(), Some(of));
        assert!(written.unwrap().is_some());
        for table in csv::independent_tables() {
            table.write(trace, folder.path(), Some(of)).unwrap();
        }
        rows += dispatches.queue.len();
    }
    let text = std::fs::read_to_string(folder.path().join("dispatches.csv")).unwrap();
    let mut lines = text.lines();
    let head = lines.next().unwrap();
    assert!(head.starts_with("rank,command_buffer,position,"));
    let ranks: Vec<&str> = lines.map(|line| line.split(',').next().unwrap()).collect();
    assert_eq!(ranks.len(), rows);
    assert_eq!(ranks[0], "");
    assert!(ranks.contains(&"7") && ranks.contains(&"8"));
    let markers = std::fs::read_to_string(folder.path().join("markers.csv")).unwrap();
    assert!(markers.starts_with("rank,process,"), "{markers}");
    for manifest in ["trace.json", "trace.rank=7.json", "trace.rank=9.json"] {
        assert!(folder.path().join(manifest).is_file(), "{manifest}");
    }
}

/// Returns a trace of which nothing can be drawn.
fn empty() -> Trace {
    Trace::from_text("manifest start_ns=0 end_ns=1ms\n").unwrap()
}

#[test]
fn files_in_which_nothing_is_drawn_are_json() {
    let formats = [
        JoinedFormat::Chrome,
        JoinedFormat::Firefox,
        JoinedFormat::Speedscope,
    ];
    let crossing = || Trace::from_text(CROSSING).unwrap();
    for format in formats {
        for traces in [
            vec![],
            vec![empty()],
            vec![empty(), empty()],
            vec![empty(), crossing(), empty(), crossing()],
        ] {
            let mut out = Vec::new();
            let mut file = Joined::begin(format, 0, 0, &mut out).unwrap();
            for trace in &traces {
                file.add("rank", &mut Scene::new(trace)).unwrap();
            }
            file.end().unwrap();
            let read = serde_json::from_slice::<Value>(&out);
            assert!(read.is_ok(), "{format:?}, {}: {read:?}", traces.len());
        }
    }
    for write in [
        gapscope_export::chrome::write,
        gapscope_export::firefox::write,
        gapscope_export::speedscope::write,
    ] {
        serde_json::from_slice::<Value>(&written(&empty(), write)).unwrap();
    }
}

#[test]
fn traces_in_which_nothing_is_drawn_are_embedded_in_json() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("empty");
    let trace = empty();
    let writer = gapscope_trace::TraceWriter::create(&path).unwrap();
    writer.finish(&trace.manifest).unwrap();
    let mut scene = Scene::new(&trace);
    scene.embed(&path);
    let mut alone = Vec::new();
    gapscope_export::chrome::write(&scene, &mut alone).unwrap();
    let mut joined = Vec::new();
    let mut file = Joined::begin(JoinedFormat::Chrome, 0, 0, &mut joined).unwrap();
    file.embed(&path).unwrap();
    file.add("rank", &mut Scene::new(&trace)).unwrap();
    file.end().unwrap();
    for out in [alone, joined] {
        let read: Value = serde_json::from_slice(&out).unwrap();
        let events = list(&read["traceEvents"]);
        assert!(events.iter().all(|event| event["name"] == "gapscope trace"));
        assert!(events.len() > 1);
    }
}
