//! Tests tracks, their rows in lanes, counters and labels.

use crate::client::Client;
use crate::traces::{Folder, assert_has, list, read, text, tracks};
use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use gapscope_timeline::{Timeline, busy};
use gapscope_trace::tables::Table;
use gapscope_view::Options;
use serde_json::{Value, json};

#[test]
fn the_overview_says_what_there_is() {
    let (_folder, client) = Client::small();
    let overview = client.json("overview");
    assert_has(
        &overview,
        json!({"protocol": 1, "file": null, "bins": 2048}),
    );
    let trace = &overview["traces"][0];
    assert_has(
        trace,
        json!({"name": "small.gapscope", "live": false, "complete": true}),
    );
    assert_has(
        trace,
        json!({"origin_ns": "9100000000000001", "start_unix_ns": "1795267092000000007"}),
    );
    assert_has(
        trace,
        json!({"duration_ns": 10_000, "extent": [0, 10_000], "clock_error_ns": 50}),
    );
    assert_eq!(trace["manifest"]["processes"][0]["start_ns"], 0);
    let tracks = list(&trace["tracks"]).iter();
    let tracks = tracks.map(|track| json!([track["id"], track["rows"], track["name"]]));
    let expected = json!([
        ["g0.gaps", null, "gaps by cause"],
        ["q1.work", 4, "queue 0.0"],
        ["q1.command-buffers", 2, "queue 0.0 · command buffers"],
        ["q1.labels", 2, "queue 0.0 · labels"],
        ["q1.depth", null, "queue 0.0 · submissions outstanding"],
        ["g0.memory", null, "device memory allocated"],
        ["p1.t4712.calls", 3, "worker (4712)"],
    ]);
    assert_eq!(tracks.collect::<Vec<_>>(), list(&expected));
    assert_eq!(trace["groups"][0]["name"], "GPU 0: Fast GPU");
    assert_eq!(trace["groups"][1]["name"], "demo (pid 4711)");
}

#[test]
fn every_row_with_times_is_on_one_track_in_one_lane() {
    let folder = Folder::new();
    let path = folder.synthetic(20_000);
    let trace = read(&path);
    let client = Client::new(&[path]);
    let overview = client.json("overview");
    let origin_ns = trace.manifest.start_ns;
    let strings = client.json("t/0/strings");
    let mut dispatches = 0;
    let mut lanes_at_most = 0;
    for track in tracks(&overview, "work") {
        let frame = client.frame(&format!("t/0/track/{}", text(&track["id"])));
        assert_eq!(track["rows"].as_u64().unwrap() as usize, frame.rows());
        let [start, duration, name] = ["start", "duration", "name"].map(|name| frame.column(name));
        let lanes = frame.lanes();
        lanes_at_most = lanes_at_most.max(lanes.len() - 1);
        assert_eq!((lanes[0], *lanes.last().unwrap()), (0, frame.rows()));
        for lane in lanes.windows(2) {
            for at in lane[0] + 1..lane[1] {
                let end = start[at - 1] + duration[at - 1];
                assert!(start[at] >= end, "{at} overlaps in a lane");
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
                let kernels = &trace.tables.kernels;
                let mut ids = kernels.id.iter();
                let kernel = ids.position(|id| *id == dispatch.kernel).unwrap();
                assert_eq!(strings["strings"][name[at] as usize], *kernels.name[kernel]);
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
            let (few, whole) = (few.column(column), whole.column(column));
            assert_eq!(few[first.clone()], whole[first.clone()]);
        }
        if id != "g0.gaps" {
            let labels = |range: &str| {
                let frame = client.frame(&format!("t/0/track/{id}/label{range}"));
                frame.column("label")[first.clone()].to_vec()
            };
            assert_eq!(labels(&format!("?from={from}&to={end}")), labels(""));
        }
        assert_eq!(client.status(&format!("t/0/track/{id}?from=5&to=4")), 400);
    }
}

#[test]
fn busy_shares_of_the_overview_are_those_of_the_analysis() {
    let folder = Folder::new();
    let path = folder.synthetic(20_000);
    let trace = read(&path);
    let timeline = Timeline::new(&trace);
    let devices = busy::busy(&timeline, None);
    let client = Client::new(&[path]);
    let overview = client.json("overview");
    let extent = &overview["traces"][0]["extent"];
    let bin_ns = (extent[1].as_f64().unwrap() - extent[0].as_f64().unwrap()) / 2048.0;
    for track in tracks(&overview, "work") {
        let mut queues = devices.iter().flat_map(|device| &device.queues);
        let queue = queues.find(|queue| track["queue"] == queue.queue_id.0);
        let exact = queue.unwrap().busy_ns.unwrap() as f64;
        let busy = STANDARD.decode(text(&track["busy"])).unwrap();
        let drawn = busy.iter().map(|share| f64::from(*share) / 255.0 * bin_ns);
        let difference = drawn.sum::<f64>() - exact;
        // The share of each slice is rounded to a 255th.
        assert!(difference.abs() <= 2048.0 * bin_ns / 255.0, "{difference}");
    }
}

#[test]
fn counters_labels_and_instances() {
    let (_folder, client) = Client::small();
    let memory = client.frame("t/0/counter/g0.memory");
    assert_eq!(memory.column("at"), [50.0]);
    assert_eq!(memory.column("value"), [4096.0]);
    assert_eq!(memory.header["unit"], "bytes");
    let depth = client.frame("t/0/counter/q1.depth");
    assert_eq!(depth.column("at"), [100.0, 4000.0, 5000.0, 7000.0]);
    assert_eq!(depth.column("value"), [1.0, 0.0, 1.0, 0.0]);
    let strings = client.json("t/0/strings");
    let labels = client.frame("t/0/track/q1.work/label").column("label");
    let track = client.frame("t/0/track/q1.work");
    assert_eq!(labels.len(), track.rows());
    let places = track.places();
    let label_of = |row: usize| {
        let mut places = places.iter();
        let place = places.position(|(table, at)| table == "dispatches" && *at == row);
        labels[place.unwrap()]
    };
    assert_eq!(strings["strings"][label_of(0) as usize], "step / matmul");
    assert_eq!(label_of(2), 4294967295.0);
    let instances = client.json("t/0/instances?label=step%20%2F%20matmul");
    assert_eq!(instances["count"], 1);
    assert_eq!(instances["instances"][0]["start_ns"], 1000);
    assert_eq!(client.json("t/0/instances?label=none")["count"], 0);
    let more = client.json("t/0/strings?after=3");
    assert_eq!(more["from"], 3);
    assert_eq!(list(&more["strings"]), &list(&strings["strings"])[3..]);
}

#[test]
fn a_command_buffer_that_counts_as_busy_is_drawn_as_work() {
    let folder = Folder::new();
    let text = "device id=1\nqueue id=1 device=1\nkernel id=1 name=k
        command_buffer id=1 queue=1 start_ns=100 duration_ns=100 timing=bracketed dispatches=1
        dispatch command_buffer=1 queue=1 kernel=1
        dispatch queue=1 kernel=1 start_ns=300 duration_ns=10";
    let client = Client::new(&[folder.trace("bracketed", text)]);
    let frame = client.frame("t/0/track/q1.work");
    let expected = [("command_buffers", 0), ("dispatches", 1)];
    assert_eq!(
        frame.places(),
        expected.map(|(table, row)| (table.to_owned(), row))
    );
    let overview = client.json("overview");
    assert_eq!(tracks(&overview, "work")[0]["untimed"], 1);
    let modes = "manifest sampling_mode=command-buffer\n".to_owned() + text;
    let client = Client::new(&[folder.trace("modes", &modes)]);
    let places = client.frame("t/0/track/q1.work").places();
    assert_eq!(places[0].0, "command_buffers");
    let untimed = client.json("t/0/rows/dispatches/0");
    assert!(untimed["start_ns"].is_null() && untimed["times_unknown_because"].is_string());
}
