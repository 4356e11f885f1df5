//! A trace that is recorded while it is looked at.

use crate::client::Client;
use crate::traces::Folder;
use gapscope_trace::manifest::{Device, Manifest, Queue};
use gapscope_trace::tables::{Dispatch, Kernel, Table};
use gapscope_trace::{TraceWriter, manifest};
use gapscope_view::Options;
use serde_json::json;

const ORIGIN_NS: i64 = 5_000_000;

fn manifest(complete: bool) -> Manifest {
    Manifest {
        format_version: manifest::FORMAT_VERSION,
        complete,
        start_ns: ORIGIN_NS,
        end_ns: if complete { ORIGIN_NS + 1_000_000 } else { 0 },
        devices: vec![Device {
            id: 1,
            name: "GPU".to_owned(),
            ..Device::default()
        }],
        queues: vec![Queue {
            id: 1,
            device: 1,
            ..Queue::default()
        }],
        ..Manifest::default()
    }
}

fn record(writer: &mut TraceWriter, from: i64, count: i64) {
    for at in from..from + count {
        let tables = writer.tables_mut();
        if at % 10 == 0 {
            tables.kernels.push(Kernel {
                id: (at / 10) as u32,
                name: format!("kernel {}", at / 10),
                ..Kernel::default()
            });
        }
        tables.dispatches.push(Dispatch {
            queue: 1,
            kernel: (at / 10) as u32,
            start_ns: Some(ORIGIN_NS + at * 100),
            duration_ns: Some(150),
            ..Dispatch::default()
        });
    }
    writer.checkpoint().unwrap();
    writer.write_manifest(&manifest(false)).unwrap();
}

#[test]
fn a_live_trace_grows_and_is_completed() {
    let folder = Folder::new();
    let path = folder.path().join("live.gapscope");
    let mut writer = TraceWriter::create(&path).unwrap();
    writer.write_manifest(&manifest(false)).unwrap();
    let client = Client::with(
        &[path],
        Options {
            port: None,
            live: true,
        },
    );
    let overview = client.json("overview");
    assert_eq!(overview["traces"][0]["live"], true);
    assert_eq!(overview["traces"][0]["origin_ns"], ORIGIN_NS.to_string());

    record(&mut writer, 0, 20);
    let first = client.json("t/0/live?generation=1");
    assert_eq!(
        (&first["generation"], &first["reset"]),
        (&json!(2), &json!(false))
    );
    let frame = client.frame("t/0/track/q1.work?after=0");
    assert_eq!((frame.rows(), &frame.header["generation"]), (20, &json!(2)));
    assert_eq!(frame.lanes(), [0, 10, 20]);
    let strings = client.json("t/0/strings?after=0")["strings"]
        .as_array()
        .unwrap()
        .len();
    assert_eq!(client.json("t/0/findings")["dispatch_count"], 20);

    record(&mut writer, 20, 10);
    let second = client.json("t/0/live?generation=2");
    assert_eq!(second["generation"], 3);
    let more = client.frame("t/0/track/q1.work?after=2");
    assert_eq!((more.rows(), more.column("start")[0]), (10, 2000.0));
    let added = client.json(&format!("t/0/strings?after={strings}"));
    assert_eq!(added["strings"], json!(["kernel 2"]));
    assert_eq!(client.frame("t/0/track/q1.work?after=3").rows(), 0);
    assert_eq!(client.frame("t/0/track/q1.work?after=0").rows(), 30);
    let gaps = client.frame("t/0/track/g0.gaps?after=3");
    assert_eq!(gaps.header["whole"], true);

    record(&mut writer, 30, 1);
    writer.finish(&manifest(true)).unwrap();
    let end = client.json("t/0/live?generation=3");
    assert_eq!(
        (&end["live"], &end["complete"], &end["reset"]),
        (&json!(false), &json!(true), &json!(true))
    );
    let overview = client.json("overview");
    assert_eq!(overview["traces"][0]["duration_ns"], 1_000_000);
    assert_eq!(client.frame("t/0/track/q1.work?after=0").rows(), 31);
    assert_eq!(client.json("t/0/findings")["dispatch_count"], 31);
    // Nothing more comes, so nobody waits.
    let begin = std::time::Instant::now();
    let generation = end["generation"].as_u64().unwrap();
    assert_eq!(
        client.json(&format!("t/0/live?generation={generation}"))["reset"],
        false
    );
    assert!(begin.elapsed() < std::time::Duration::from_secs(2));
}
