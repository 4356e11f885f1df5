//! Tests tracks, their rows in lanes, counters and labels.

use crate::client::Client;
use crate::traces::{Folder, SMALL, read, text, tracks};
use gapscope_timeline::{Timeline, busy};
use gapscope_trace::tables::Table;
use gapscope_view::Options;
use serde_json::{Value, json};

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
                assert_eq!(track["queue"], dispatch.queue.0);
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
fn a_part_of_a_track_has_its_rows_or_slices_where_they_are_too_many() {
    let folder = Folder::new();
    let options = Options {
        page_rows: Some(64 * 100),
        ..Options::default()
    };
    let client = Client::with(&[folder.synthetic(20_000)], options);
    let overview = client.json("overview");
    assert_eq!(overview["page_rows"], 6400);
    // The same holds for gaps, which the analyses find.
    let gaps = client.frame("t/0/track/g0.gaps").rows();
    assert!(gaps > 100);
    let work = tracks(&overview, "work")[0];
    for (id, rows) in [
        (text(&work["id"]), work["rows"].as_u64().unwrap() as usize),
        ("g0.gaps", gaps),
    ] {
        let extent = &overview["traces"][0]["extent"];
        let (from, to) = (extent[0].as_f64().unwrap(), extent[1].as_f64().unwrap());
        let part = |to: f64| client.frame(&format!("t/0/track/{id}?from={from}&to={to}"));
        let slices = part(to);
        assert_eq!(slices.header["part"], json!([from as i64, to as i64]));
        assert_eq!(slices.header["slices"], 4096);
        assert_eq!(slices.rows(), 4096 * (slices.lanes().len() - 1));
        assert!(slices.column("busy").iter().any(|busy| *busy > 0.0), "{id}");

        let whole = client.frame(&format!("t/0/track/{id}"));
        assert_eq!(whole.rows(), rows);
        // The range begins at the start of the fiftieth row of the first lane.
        let end = whole.column("start")[50];
        let few = part(end);
        assert_eq!(few.header["slices"], Value::Null);
        assert_eq!(few.lanes().len(), whole.lanes().len());
        let first = 0..few.lanes()[1];
        assert_eq!(first.end, 50);
        for column in ["start", "duration", "name", "row"] {
            assert_eq!(
                few.column(column)[first.clone()],
                whole.column(column)[first.clone()]
            );
        }
        if id != "g0.gaps" {
            let labels = client.frame(&format!("t/0/track/{id}/label?from={from}&to={end}"));
            let all = client.frame(&format!("t/0/track/{id}/label"));
            assert_eq!(
                labels.column("label")[first.clone()],
                all.column("label")[first]
            );
        }
        let answer = client.key(&format!("t/0/track/{id}?from=5&to=4"));
        assert_eq!(answer.status, 400);
    }
}

#[test]
fn busy_shares_of_the_overview_are_those_of_the_analysis() {
    let folder = Folder::new();
    let path = folder.synthetic(20_000);
    let trace = read(&path);
    let timeline = Timeline::new(&trace);
    let devices = busy::busy(&timeline, None);
    let client = Client::of(&[path]);
    let overview = client.json("overview");
    let extent = &overview["traces"][0]["extent"];
    let bin_ns = (extent[1].as_f64().unwrap() - extent[0].as_f64().unwrap()) / 2048.0;
    for track in tracks(&overview, "work") {
        let queues = devices.iter().flat_map(|device| &device.queues);
        let queue = queues
            .into_iter()
            .find(|queue| track["queue"] == queue.queue_id.0)
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
        // The share of each slice is rounded to a 255th.
        assert!(
            (drawn - exact).abs() <= 2048.0 * bin_ns / 255.0,
            "{drawn} {exact}"
        );
    }
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
