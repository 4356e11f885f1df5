//! What the page gets is what the trace and the analyses say.

use crate::client::Client;
use crate::traces::{Folder, SMALL};
use gapscope_analysis::bound_bytes::BindingSets;
use gapscope_analysis::gaps::{GapTeller, each_gap, idle_time};
use gapscope_analysis::intervals::Interval;
use gapscope_analysis::{Findings, Options, Timeline, busy, kernels, transfers, verdict};
use gapscope_trace::tables::Table;
use gapscope_trace::{Selection, Trace};
use serde_json::{Value, json};
use std::path::Path;

fn read(path: &Path) -> Trace {
    gapscope_trace::read(path, &Selection::all()).unwrap().0
}

fn tracks<'v>(overview: &'v Value, kind: &str) -> Vec<&'v Value> {
    let tracks = overview["traces"][0]["tracks"].as_array().unwrap().iter();
    tracks.filter(|track| track["kind"] == kind).collect()
}

fn text(value: &Value) -> &str {
    value.as_str().unwrap()
}

#[test]
fn the_overview_says_what_there_is() {
    let folder = Folder::new();
    let client = Client::of(&[folder.trace("small", SMALL)]);
    let overview = client.json("overview");
    assert_eq!(
        (&overview["protocol"], &overview["file"], &overview["bins"]),
        (&json!(1), &Value::Null, &json!(2048))
    );
    let trace = &overview["traces"][0];
    assert_eq!(trace["name"], "small.gapscope");
    assert_eq!(trace["origin_ns"], "9100000000000001");
    assert_eq!(trace["start_unix_ns"], "1795267092000000007");
    assert_eq!(trace["duration_ns"], 10_000);
    assert_eq!(trace["extent"], json!([0, 10_000]));
    assert_eq!(trace["clock_error_ns"], 50);
    assert_eq!(
        (&trace["live"], &trace["complete"]),
        (&json!(false), &json!(true))
    );
    assert_eq!(trace["manifest"]["processes"][0]["start_ns"], 0);
    let ids: Vec<_> = trace["tracks"]
        .as_array()
        .unwrap()
        .iter()
        .map(|track| {
            (
                text(&track["id"]),
                track["rows"].as_u64(),
                text(&track["name"]),
            )
        })
        .collect();
    assert_eq!(
        ids,
        [
            ("g0.gaps", None, "gaps by cause"),
            ("q1.work", Some(4), "queue 0.0"),
            ("q1.command-buffers", Some(2), "queue 0.0 · command buffers"),
            ("q1.labels", Some(2), "queue 0.0 · labels"),
            ("q1.depth", None, "queue 0.0 · submissions outstanding"),
            ("g0.memory", None, "device memory allocated"),
            ("p1.t4712.calls", Some(3), "worker (4712)"),
        ]
    );
    assert_eq!(trace["groups"][0]["name"], "GPU 1: Fast GPU");
    assert_eq!(trace["groups"][1]["name"], "demo (pid 4711)");
}

#[test]
fn every_row_with_times_is_on_one_track_in_one_lane() {
    let folder = Folder::new();
    let path = folder.synthetic(20_000);
    let trace = read(&path);
    let client = Client::of(&[path]);
    let overview = client.json("overview");
    let origin_ns = trace.manifest.start_ns;
    let strings = client.json("t/0/strings");
    let mut dispatches = 0;
    let mut lanes_at_most = 0;
    for track in tracks(&overview, "work") {
        let frame = client.frame(&format!("t/0/track/{}", text(&track["id"])));
        assert_eq!(track["rows"].as_u64().unwrap() as usize, frame.rows());
        let (start, duration, name) = (
            frame.column("start"),
            frame.column("duration"),
            frame.column("name"),
        );
        let lanes = frame.lanes();
        lanes_at_most = lanes_at_most.max(lanes.len() - 1);
        assert_eq!((lanes[0], *lanes.last().unwrap()), (0, frame.rows()));
        for lane in lanes.windows(2) {
            for at in lane[0] + 1..lane[1] {
                assert!(
                    start[at] >= start[at - 1] + duration[at - 1],
                    "{} overlaps in a lane",
                    at
                );
            }
        }
        let mut seen = std::collections::HashSet::new();
        for (at, (table, row)) in frame.places().into_iter().enumerate() {
            assert!(seen.insert((table.clone(), row)), "{table} {row} twice");
            if table == "dispatches" {
                let dispatch = trace.tables.dispatches.row(row);
                dispatches += 1;
                assert_eq!(dispatch.start_ns.unwrap() - origin_ns, start[at] as i64);
                assert_eq!(dispatch.duration_ns.unwrap(), duration[at] as i64);
                assert_eq!(dispatch.queue, track["queue"].as_u64().unwrap() as u32);
                let kernel = trace
                    .tables
                    .kernels
                    .id
                    .iter()
                    .position(|id| *id == dispatch.kernel)
                    .unwrap();
                assert_eq!(
                    strings["strings"][name[at] as usize],
                    *trace.tables.kernels.name[kernel]
                );
            }
        }
    }
    assert_eq!(dispatches, trace.tables.dispatches.len());
    assert!(lanes_at_most > 1, "the trace has work that overlaps");
}

#[test]
fn busy_shares_of_the_overview_are_those_of_the_analysis() {
    let folder = Folder::new();
    let path = folder.synthetic(20_000);
    let trace = read(&path);
    let timeline = Timeline::of(&trace);
    let devices = busy::busy(&timeline, None);
    let client = Client::of(&[path]);
    let overview = client.json("overview");
    let extent = &overview["traces"][0]["extent"];
    let bin_ns = (extent[1].as_f64().unwrap() - extent[0].as_f64().unwrap()) / 2048.0;
    for track in tracks(&overview, "work") {
        let queues = devices.iter().flat_map(|device| &device.queues);
        let queue = queues
            .into_iter()
            .find(|queue| track["queue"] == queue.queue_id)
            .unwrap();
        use base64::Engine;
        let busy = base64::engine::general_purpose::STANDARD
            .decode(text(&track["busy"]))
            .unwrap();
        let drawn: f64 = busy
            .iter()
            .map(|share| f64::from(*share) / 255.0 * bin_ns)
            .sum();
        let exact = queue.busy_ns.unwrap() as f64;
        // Each slice is rounded to a 255th.
        assert!(
            (drawn - exact).abs() <= 2048.0 * bin_ns / 255.0,
            "{drawn} {exact}"
        );
    }
}

#[test]
fn findings_are_those_of_the_report() {
    let folder = Folder::new();
    let path = folder.synthetic(5_000);
    let trace = read(&path);
    let findings = Findings::of(&trace, &Options::default());
    let client = Client::of(&[path]);
    let answer = client.json("t/0/findings");
    assert_eq!(answer["verdict"], json!(findings.verdict));
    assert_eq!(
        answer["verdict_sentence"],
        findings.verdict_evidence.sentence
    );
    assert_eq!(answer["gpu_busy_ns"], json!(findings.gpu_busy_ns));
    assert_eq!(
        answer["gaps"].as_array().unwrap().len(),
        findings.gaps.len()
    );
    for (told, gap) in answer["gaps"]
        .as_array()
        .unwrap()
        .iter()
        .zip(&findings.gaps)
    {
        assert_eq!(
            (&told["cause"], &told["total_ns"], &told["count"]),
            (&json!(gap.cause), &json!(gap.total_ns), &json!(gap.count))
        );
    }
    assert_eq!(
        answer["kernels"].as_array().unwrap().len(),
        findings.kernels.len()
    );
    for (told, kernel) in answer["kernels"]
        .as_array()
        .unwrap()
        .iter()
        .zip(&findings.kernels)
    {
        assert_eq!(
            (&told["name"], &told["count"], &told["busy_ns"]),
            (
                &json!(kernel.name),
                &json!(kernel.count),
                &json!(kernel.busy_ns)
            )
        );
    }
    // Times count from the origin.
    let window = findings.work_window.unwrap();
    assert_eq!(
        answer["work_window"]["start_ns"],
        window.start_ns - trace.manifest.start_ns
    );
    let strings = client.json("t/0/strings");
    for (row, kernel) in answer["kernel_rows"]
        .as_array()
        .unwrap()
        .iter()
        .zip(&findings.kernels)
    {
        assert_eq!(
            strings["strings"][row["name"].as_u64().unwrap() as usize],
            kernel.name
        );
        assert!(!row["kernels"].as_array().unwrap().is_empty());
    }
    for (name, label) in answer["label_names"]
        .as_array()
        .unwrap()
        .iter()
        .zip(&findings.labels)
    {
        assert_eq!(
            strings["strings"][name.as_u64().unwrap() as usize],
            label.path
        );
    }
    let causes = answer["causes"].as_array().unwrap();
    assert_eq!(causes.len(), gapscope_analysis::gaps::Cause::ALL.len());
}

#[test]
fn gaps_on_the_track_are_those_of_the_analysis() {
    let folder = Folder::new();
    let path = folder.synthetic(5_000);
    let trace = read(&path);
    let timeline = Timeline::of(&trace);
    let client = Client::of(&[path]);
    let strings = client.json("t/0/strings");
    let origin_ns = trace.manifest.start_ns;
    let teller = GapTeller::of(&timeline);
    for gpu in 0..2 {
        let mut expected = Vec::new();
        each_gap(&timeline, gpu, |_, parts| {
            expected.extend(
                parts
                    .iter()
                    .map(|part| (part.start_ns - origin_ns, part.duration_ns, part.cause)),
            );
        });
        assert!(expected.len() > 10);
        let frame = client.frame(&format!("t/0/track/g{gpu}.gaps"));
        let (start, duration, name, row) = (
            frame.column("start"),
            frame.column("duration"),
            frame.column("name"),
            frame.column("row"),
        );
        assert_eq!(frame.rows(), expected.len());
        for (at, (start_ns, duration_ns, cause)) in expected.iter().enumerate() {
            assert_eq!(
                (start[at] as i64, duration[at] as i64),
                (*start_ns, *duration_ns)
            );
            assert_eq!(strings["strings"][name[at] as usize], cause.as_str());
        }
        let at = expected.len() / 2;
        let details = client.json(&format!("t/0/rows/gaps/{}", row[at]));
        assert_eq!(details["title"], expected[at].2.as_str());
        assert_eq!(details["explanation"], expected[at].2.explanation());
        assert_eq!(details["start_ns"], expected[at].0);
        let gap = teller
            .at(
                gpu,
                details["gap"]["start_ns"].as_i64().unwrap() + origin_ns,
            )
            .unwrap();
        assert_eq!(details["gap"]["duration_ns"], gap.duration_ns);
        assert_eq!(details["gap"]["after"]["name"], gap.after.name);
    }
}

#[test]
fn gaps_that_meet_at_work_without_length_are_two() {
    let folder = Folder::new();
    let text = "device id=1\nqueue id=1 device=1\nkernel id=1 name=k
        dispatch queue=1 kernel=1 start_ns=0 duration_ns=10
        dispatch queue=1 kernel=1 start_ns=20 duration_ns=0
        dispatch queue=1 kernel=1 start_ns=50 duration_ns=10";
    let client = Client::of(&[folder.trace("instant", text)]);
    assert_eq!(client.frame("t/0/track/g0.gaps").rows(), 2);
    let second = client.json("t/0/rows/gaps/1");
    assert_eq!(
        (&second["gap"]["start_ns"], &second["gap"]["duration_ns"]),
        (&json!(20), &json!(30))
    );
}

#[test]
fn figures_of_a_range_are_those_of_the_analysis() {
    let folder = Folder::new();
    let path = folder.synthetic(5_000);
    let trace = read(&path);
    let timeline = Timeline::of(&trace);
    let origin_ns = trace.manifest.start_ns;
    let whole = timeline.work_window().unwrap();
    let client = Client::of(&[path]);
    let third = whole.length_ns() / 3;
    for window in [
        whole,
        Interval::new(whole.start_ns + third, whole.start_ns + 2 * third),
        Interval::new(whole.end_ns + 5, whole.end_ns + 10),
    ] {
        let (from, to) = (window.start_ns - origin_ns, window.end_ns - origin_ns);
        let answer = client.json(&format!("t/0/range?from={from}&to={to}"));
        let devices = busy::busy(&timeline, Some(window));
        let idle = idle_time(&timeline, window, 0, 10);
        let (bound, evidence) = verdict::verdict(&devices, &idle);
        assert_eq!(answer["verdict"], json!(bound));
        assert_eq!(answer["verdict_sentence"], evidence.sentence);
        for (told, device) in answer["devices"].as_array().unwrap().iter().zip(&devices) {
            let share = device.analysed;
            assert_eq!(
                told["analysed"]["busy_ns"],
                json!(share.map(|share| share.busy_ns))
            );
            assert_eq!(
                told["analysed"]["window_ns"],
                json!(share.map(|share| share.window_ns))
            );
        }
        assert_eq!(answer["gaps"], json!(idle.causes));
        let kernels = kernels::kernels(&timeline, &BindingSets::of(&trace), Some(window), None);
        assert_eq!(answer["kernels"].as_array().unwrap().len(), kernels.len());
        for (told, kernel) in answer["kernels"].as_array().unwrap().iter().zip(&kernels) {
            assert_eq!(
                (&told["name"], &told["count"], &told["busy_ns"]),
                (
                    &json!(kernel.name),
                    &json!(kernel.count),
                    &json!(kernel.busy_ns)
                )
            );
        }
        let bytes: u64 = transfers::transfers_in(&timeline, Some(window))
            .iter()
            .map(|row| row.bytes)
            .sum();
        assert_eq!(text(&answer["transfer_bytes"]), bytes.to_string());
        assert_eq!(
            answer["dispatch_count"],
            kernels.iter().map(|kernel| kernel.count).sum::<u64>()
        );
    }
}

#[test]
fn a_row_has_its_fields_and_what_it_belongs_to() {
    let folder = Folder::new();
    let client = Client::of(&[folder.trace("small", SMALL)]);
    let row = client.json("t/0/rows/dispatches/0");
    assert_eq!(
        (&row["title"], &row["start_ns"], &row["duration_ns"]),
        (&json!("produce"), &json!(1000), &json!(1000))
    );
    assert_eq!(
        (&row["track"], &row["queue"], &row["device"]),
        (&json!("q1.work"), &json!("queue 0.0"), &json!("Fast GPU"))
    );
    assert_eq!(row["label"]["path"], json!(["step", "matmul"]));
    assert_eq!(row["kernel"]["has_source"], true);
    let field = |name: &str| {
        let fields = row["fields"].as_array().unwrap();
        fields.iter().find(|field| field["name"] == name).unwrap()["value"].clone()
    };
    assert_eq!(
        (field("groups_x"), field("groups_y")),
        (json!("4"), Value::Null)
    );
    assert_eq!(row["bindings"][0]["buffer"], "x");
    let call = &row["links"][0];
    assert_eq!(
        (
            &call["relation"],
            &call["table"],
            &call["row"],
            &call["track"]
        ),
        (
            &json!("submitted-by"),
            &json!("host_calls"),
            &json!(0),
            &json!("p1.t4712.calls")
        )
    );
    // The label of its command buffer, where it has none of its own.
    assert_eq!(
        client.json("t/0/rows/dispatches/1")["label"]["path"],
        json!(["step"])
    );
    let call = client.json("t/0/rows/host_calls/2");
    let runs: Vec<_> = call["links"]
        .as_array()
        .unwrap()
        .iter()
        .filter(|link| link["relation"] == "runs")
        .collect();
    assert_eq!(
        (&runs[0]["table"], &runs[0]["row"], &runs[0]["start_ns"]),
        (&json!("dispatches"), &json!(2), &json!(6000))
    );
    for table in [
        "transfers",
        "command_buffers",
        "submissions",
        "markers",
        "kernels",
        "labels",
        "buffers",
        "memory",
    ] {
        assert!(
            !client.json(&format!("t/0/rows/{table}/0"))["title"]
                .as_str()
                .unwrap()
                .is_empty(),
            "{table}"
        );
        assert_eq!(
            client.key(&format!("t/0/rows/{table}/99")).status,
            404,
            "{table}"
        );
    }
}

#[test]
fn dependencies_follow_the_buffers() {
    let folder = Folder::new();
    let client = Client::of(&[folder.trace("small", SMALL)]);
    let reader = client.json("t/0/dependencies/dispatches/1");
    let before = &reader["predecessors"][0];
    assert_eq!(
        (
            &before["row"],
            &before["kind"],
            &before["buffers"],
            &before["bytes"]
        ),
        (
            &json!(0),
            &json!("read-after-write"),
            &json!(["x"]),
            &json!("64")
        )
    );
    assert_eq!(
        (&before["track"], &before["start_ns"]),
        (&json!("q1.work"), &json!(1000))
    );
    let graph = client.json("t/0/graph");
    assert_eq!(graph["nodes"][0]["name"], "produce");
    assert!(graph["edges"].as_array().unwrap().len() >= 2);
    let nothing = client.json("t/0/graph?from=9000&to=9500");
    assert!(nothing["missing"].is_string());
    let bare = Client::of(&[folder.synthetic(100)]);
    let graph = bare.json("t/0/graph");
    assert!(graph["missing"].is_string() || graph["nodes"].is_array());
}

#[test]
fn counters_labels_and_instances() {
    let folder = Folder::new();
    let client = Client::of(&[folder.trace("small", SMALL)]);
    let memory = client.frame("t/0/counter/g0.memory");
    assert_eq!(
        (memory.column("at"), memory.column("value")),
        (vec![50.0], vec![4096.0])
    );
    assert_eq!(memory.header["unit"], "bytes");
    let depth = client.frame("t/0/counter/q1.depth");
    assert_eq!(
        (depth.column("at"), depth.column("value")),
        (
            vec![100.0, 4000.0, 5000.0, 7000.0],
            vec![1.0, 0.0, 1.0, 0.0]
        )
    );
    let strings = client.json("t/0/strings");
    let labels = client.frame("t/0/track/q1.work/label").column("label");
    let track = client.frame("t/0/track/q1.work");
    assert_eq!(labels.len(), track.rows());
    let first = track
        .places()
        .iter()
        .position(|place| *place == ("dispatches".to_owned(), 0))
        .unwrap();
    assert_eq!(strings["strings"][labels[first] as usize], "step / matmul");
    let last = track
        .places()
        .iter()
        .position(|place| *place == ("dispatches".to_owned(), 2))
        .unwrap();
    assert_eq!(labels[last], 4294967295.0);
    let instances = client.json("t/0/instances?label=step%20%2F%20matmul");
    assert_eq!(
        (&instances["count"], &instances["instances"][0]["start_ns"]),
        (&json!(1), &json!(1000))
    );
    assert_eq!(client.json("t/0/instances?label=none")["count"], 0);
    let more = client.json("t/0/strings?after=3");
    assert_eq!(
        (
            more["from"].as_u64(),
            more["strings"].as_array().unwrap().len()
        ),
        (Some(3), strings["strings"].as_array().unwrap().len() - 3)
    );
}

#[test]
fn two_traces_and_two_ranges_are_compared() {
    let folder = Folder::new();
    let slower = SMALL.replace("duration_ns=1500 bindings", "duration_ns=2000 bindings");
    let client = Client::of(&[
        folder.trace("before", &slower),
        folder.trace("after", SMALL),
    ]);
    assert_eq!(
        client.json("overview")["traces"].as_array().unwrap().len(),
        2
    );
    let comparison = client.json("compare?a=0&b=1");
    assert_eq!(comparison["before"]["name"], "before.gapscope");
    let busy = comparison["ratios"]
        .as_array()
        .unwrap()
        .iter()
        .find(|ratio| ratio["what"] == "GPU busy ns")
        .unwrap();
    assert_eq!(
        (busy["before"].as_f64(), busy["after"].as_f64()),
        (Some(4000.0), Some(3500.0))
    );
    let ranges = client.json("compare?a=1&a_from=0&a_to=5000&b=1&b_from=5000&b_to=10000");
    assert_eq!(
        (
            &ranges["before"]["dispatch_count"],
            &ranges["after"]["dispatch_count"]
        ),
        (&json!(2), &json!(1))
    );
    let labels = client.json("compare?a=0&a_label=step&b=1&b_label=step%20/%20matmul");
    assert_eq!(
        (
            &labels["before"]["dispatch_count"],
            &labels["after"]["dispatch_count"]
        ),
        (&json!(2), &json!(1))
    );
    assert_eq!(labels["before"]["evaluations"], 1);
    let nothing = client.key("compare?a=0&a_label=none&b=1");
    assert_eq!(nothing.status, 400);
    assert!(String::from_utf8_lossy(&nothing.body).contains("before"));
    // A text that labels elsewhere have too is not the label itself.
    let inner = client.key("compare?a=0&a_label=step&b=1&b_label=matmul");
    assert_eq!(inner.status, 400);
    assert!(String::from_utf8_lossy(&inner.body).contains("after"));
}

#[test]
fn a_command_buffer_that_counts_as_busy_is_drawn_as_work() {
    let folder = Folder::new();
    let text = "device id=1\nqueue id=1 device=1\nkernel id=1 name=k
        command_buffer id=1 queue=1 start_ns=100 duration_ns=100 timing=bracketed dispatches=1
        dispatch command_buffer=1 queue=1 kernel=1
        dispatch queue=1 kernel=1 start_ns=300 duration_ns=10";
    let client = Client::of(&[folder.trace("bracketed", text)]);
    let frame = client.frame("t/0/track/q1.work");
    assert_eq!(
        frame.places(),
        [
            ("command_buffers".to_owned(), 0),
            ("dispatches".to_owned(), 1)
        ]
    );
    let overview = client.json("overview");
    assert_eq!(tracks(&overview, "work")[0]["untimed"], 1);
    let modes = "manifest sampling_mode=command-buffer\n".to_owned() + text;
    let client = Client::of(&[folder.trace("modes", &modes)]);
    assert_eq!(
        client.frame("t/0/track/q1.work").places()[0].0,
        "command_buffers"
    );
    let untimed = client.json("t/0/rows/dispatches/0");
    assert!(untimed["start_ns"].is_null() && untimed["times_unknown_because"].is_string());
}
