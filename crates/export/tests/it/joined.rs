//! Tests several traces in one file: everything of each is there once, under its name, and is not taken for
//! another's.

use super::perfetto::decoded_bytes;
use super::traces::{CROSSING, MEASURED, SAMPLED};
use gapscope_export::csv::{self, RankColumn};
use gapscope_export::{Joined, JoinedFormat, Scene, chrome, firefox, perfetto, speedscope};
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
        file.add(&format!("rank {rank}"), &mut Scene::new(trace))
            .unwrap();
    }
    file.end().unwrap();
    out
}

/// Counts the results of `of` for the elements of a list.
fn counts<T: Ord>(list: &Value, of: impl Fn(&Value) -> Option<T>) -> BTreeMap<T, usize> {
    let mut counts = BTreeMap::new();
    for thing in list.as_array().unwrap().iter().filter_map(of) {
        *counts.entry(thing).or_default() += 1;
    }
    counts
}

/// Adds up the counts of each trace by itself.
fn of_each<T: Ord>(
    traces: &[Trace],
    counts: impl Fn(&Trace) -> BTreeMap<T, usize>,
) -> BTreeMap<T, usize> {
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
    let read = |bytes: &[u8]| -> Value { serde_json::from_slice(bytes).unwrap() };
    // Times count from the first of all traces.
    let slices = |file: &Value| {
        let origin_us = file["otherData"]["origin_ns"].as_f64().unwrap() / 1e3;
        counts(&file["traceEvents"], |event| {
            let at_us = event["ts"].as_f64()? + origin_us;
            (event["ph"] == "X").then(|| {
                (
                    event["name"].to_string(),
                    format!("{at_us:.3}"),
                    event["dur"].to_string(),
                )
            })
        })
    };
    let all = read(&joined(JoinedFormat::Chrome, &traces));
    let alone = of_each(&traces, |trace| {
        let mut out = Vec::new();
        chrome::write(&Scene::new(trace), &mut out).unwrap();
        slices(&read(&out))
    });
    assert_eq!(slices(&all), alone);
    let names = counts(&all["traceEvents"], |event| {
        let is_name = event["name"] == "process_name";
        is_name.then(|| {
            (
                event["pid"].as_u64().unwrap(),
                event["args"]["name"].as_str().unwrap().to_owned(),
            )
        })
    });
    let pids: BTreeSet<u64> = names.keys().map(|(pid, _)| *pid).collect();
    assert_eq!(pids.len(), names.len(), "{names:?}");
    for rank in 0..traces.len() {
        let own = format!("rank {rank} · ");
        assert!(
            names.keys().any(|(_, name)| name.starts_with(&own)),
            "{names:?}"
        );
    }
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
            Some((
                slice["name"].to_string(),
                slice["category"].to_string(),
                times,
            ))
        })
    };
    // The classes that read the file rely on distinct ids of tracks, stages and counters.
    let Some(all) = decoded_bytes(&joined(JoinedFormat::Perfetto, &traces)) else {
        return;
    };
    let mut gpus = 0;
    let alone = of_each(&traces, |trace| {
        let mut out = Vec::new();
        perfetto::write(&Scene::new(trace), &mut out).unwrap();
        slices(&decoded_bytes(&out).unwrap())
    });
    assert_eq!(slices(&all), alone);
    for slice in all["slices"].as_array().unwrap() {
        gpus = gpus.max(slice["args"]["gpu"].as_u64().map_or(0, |gpu| gpu + 1));
    }
    let named = all["gpus"].as_array().unwrap().len() as u64;
    assert!(named >= gpus && gpus >= 2, "{gpus} of {named}");
    for flow in all["flows"].as_array().unwrap() {
        assert_eq!(flow.as_array().unwrap().len(), 2, "{flow}");
    }
}

#[test]
fn firefox_has_every_marker_and_sample_of_each_trace_in_threads_of_its_own() {
    let traces = traces();
    let read = |bytes: &[u8]| -> Value { serde_json::from_slice(bytes).unwrap() };
    let lists = |file: &Value, key: &str| {
        let threads = file["threads"].as_array().unwrap().iter();
        let lists = threads.flat_map(|thread| thread["markers"][key].as_array().unwrap().clone());
        lists.collect::<Vec<Value>>()
    };
    let markers = |file: &Value| {
        let (kinds, starts, ends) = (
            lists(file, "data"),
            lists(file, "startTime"),
            lists(file, "endTime"),
        );
        let names = (file["threads"].as_array().unwrap().iter()).flat_map(|thread| {
            let of =
                |text: &Value| thread["stringArray"][text.as_u64().unwrap() as usize].to_string();
            let names = thread["markers"]["name"].as_array().unwrap().iter();
            names.map(of).collect::<Vec<String>>()
        });
        let ns = |ms: &Value| (ms.as_f64().unwrap() * 1e6).round() as i64;
        let mut counts: BTreeMap<(String, i64, String), usize> = BTreeMap::new();
        for (((kind, start), end), name) in kinds.iter().zip(&starts).zip(&ends).zip(names) {
            let marker = (kind["type"].to_string(), ns(end) - ns(start), name);
            *counts.entry(marker).or_default() += 1;
        }
        counts
    };
    let samples = |file: &Value| {
        let threads = file["threads"].as_array().unwrap().iter();
        threads
            .map(|thread| thread["samples"]["length"].as_u64().unwrap())
            .sum::<u64>()
    };
    let all = read(&joined(JoinedFormat::Firefox, &traces));
    let alone: Vec<Value> = (traces.iter())
        .map(|trace| {
            let mut out = Vec::new();
            firefox::write(&Scene::new(trace), &mut out).unwrap();
            read(&out)
        })
        .collect();
    let mut expected = BTreeMap::new();
    for file in &alone {
        for (marker, count) in markers(file) {
            *expected.entry(marker).or_default() += count;
        }
    }
    assert_eq!(markers(&all), expected);
    assert!(samples(&all) > 0);
    assert_eq!(samples(&all), alone.iter().map(samples).sum::<u64>());
    let threads = all["threads"].as_array().unwrap();
    let names = counts(&all["threads"], |thread| {
        Some((
            thread["pid"].to_string(),
            thread["processName"].as_str()?.to_owned(),
        ))
    });
    let pids: BTreeSet<&String> = names.keys().map(|(pid, _)| pid).collect();
    assert_eq!(pids.len(), names.len(), "{names:?}");
    for rank in 0..traces.len() {
        let own = format!("rank {rank} · ");
        assert!(
            names.keys().any(|(_, name)| name.starts_with(&own)),
            "{names:?}"
        );
    }
    // Every thread is shown, and counters belong to the same threads as before.
    let visible = all["meta"]["initialVisibleThreads"].as_array().unwrap();
    let visible: BTreeSet<u64> = visible.iter().map(|at| at.as_u64().unwrap()).collect();
    assert_eq!(visible, (0..threads.len() as u64).collect());
    let of_each = alone
        .iter()
        .flat_map(|file| file["counters"].as_array().unwrap());
    let counters = all["counters"].as_array().unwrap();
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
    let categories = all["meta"]["categories"].as_array().unwrap();
    for thread in threads {
        let used = thread["frameTable"]["category"].as_array().unwrap().iter();
        let most = used.filter_map(Value::as_u64).max().unwrap_or(0);
        assert!((most as usize) < categories.len());
    }
}

#[test]
fn speedscope_has_the_profiles_of_each_trace_with_its_names() {
    let traces = traces();
    let read = |bytes: &[u8]| -> Value { serde_json::from_slice(bytes).unwrap() };
    let opened = |file: &Value| {
        let mut found = BTreeMap::new();
        for profile in file["profiles"].as_array().unwrap() {
            let events = profile["events"].as_array().into_iter().flatten();
            let opening = events.filter(|event| event["type"] == "O");
            let opening = opening.map(|event| event["frame"].as_u64().unwrap());
            let stacks = profile["samples"].as_array().into_iter().flatten();
            let stacks = stacks.flat_map(|stack| stack.as_array().unwrap());
            for frame in opening.chain(stacks.map(|frame| frame.as_u64().unwrap())) {
                let name = file["shared"]["frames"][frame as usize]["name"].to_string();
                *found.entry(name).or_default() += 1;
            }
        }
        found
    };
    let all = read(&joined(JoinedFormat::Speedscope, &traces));
    let alone = of_each(&traces, |trace| {
        let mut out = Vec::new();
        speedscope::write(&Scene::new(trace), &mut out).unwrap();
        opened(&read(&out))
    });
    assert_eq!(opened(&all), alone);
    assert!(alone.keys().any(|name| name.contains("unknown code")));
    let names = counts(&all["profiles"], |profile| {
        profile["name"].as_str().map(str::to_owned)
    });
    assert!(
        names.keys().any(|name| name.contains("— rank 3 · ")),
        "{names:?}"
    );
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
        assert!(
            csv::write_pieces(trace, torn, folder.path(), Some(of))
                .unwrap()
                .is_none()
        );
        csv::write_pieces(trace, each, folder.path(), Some(of))
            .unwrap()
            .unwrap();
        for table in csv::independent_tables() {
            table.write(trace, folder.path(), Some(of)).unwrap();
        }
        rows += dispatches.queue.len();
    }
    let text = std::fs::read_to_string(folder.path().join("dispatches.csv")).unwrap();
    let mut lines = text.lines();
    assert!(
        lines
            .next()
            .unwrap()
            .starts_with("rank,command_buffer,position,")
    );
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
