//! Tests counters: device memory, queue depth, and measured ones.

use crate::client::Client;
use crate::traces::{Folder, SMALL, assert_has, list, tracks};
use gapscope_analysis::gaps::Cause;
use serde_json::{Value, json};

const MEASURED: &str = "
    counter id=1 name=\"memory clock\" unit=hertz device=1 source=\"the driver\"
    counter id=2 name=occupancy unit=percent queue=1 source=sampler
    counter id=3 name=load unit=percent source=system
    counter_value counter=1 start_ns=9100000000000101 value=1500000000
    counter_value counter=1 start_ns=9100000000000301 value=900000000
    counter_value counter=2 start_ns=9100000000000001 duration_ns=100 value=12.5
    counter_value counter=2 start_ns=9100000000000201 duration_ns=100 value=50";

fn client(folder: &Folder) -> Client {
    Client::new(&[folder.trace("measured", &format!("{SMALL}\n{MEASURED}"))])
}

#[test]
fn every_counter_is_a_track_with_its_unit_and_source() {
    let folder = Folder::new();
    let overview = client(&folder).json("overview");
    let found: Vec<Value> = tracks(&overview, "counter")
        .iter()
        .map(|track| json!([track["id"], track["group"], track["name"], track["counter"]]))
        .collect();
    let depth =
        json!({"name": "submissions outstanding", "unit": "count", "source": "submissions"});
    let occupancy = json!({"name": "occupancy", "unit": "percent", "source": "sampler"});
    let memory =
        json!({"name": "device memory allocated", "unit": "bytes", "source": "allocations"});
    let clock = json!({"name": "memory clock", "unit": "hertz", "source": "the driver"});
    let load = json!({"name": "load", "unit": "percent", "source": "system"});
    assert_eq!(
        found,
        [
            json!([
                "q1.depth",
                "g0",
                "queue 0.0 · submissions outstanding",
                depth
            ]),
            json!(["c2.counter", "g0", "queue 0.0 · occupancy", occupancy]),
            json!(["g0.memory", "g0", "device memory allocated", memory]),
            json!(["c1.counter", "g0", "memory clock", clock]),
            json!(["c3.counter", "host", "load", load]),
        ]
    );
    let host = json!({"id": "host", "kind": "host", "name": "host"});
    assert_eq!(list(&overview["traces"][0]["groups"]).last(), Some(&host));
}

#[test]
fn the_value_is_not_known_between_measurements() {
    let folder = Folder::new();
    let client = client(&folder);
    let clock = client.frame("t/0/counter/c1.counter");
    assert_eq!(clock.header["unit"], "hertz");
    assert_eq!(clock.column("at"), [100.0, 300.0]);
    assert_eq!(clock.column("value"), [1.5e9, 9e8]);
    let occupancy = client.frame("t/0/counter/c2.counter");
    assert_eq!(occupancy.column("at"), [0.0, 100.0, 200.0, 300.0]);
    let values = occupancy.column("value");
    assert_eq!((values[0], values[2]), (12.5, 50.0));
    assert!(values[1].is_nan() && values[3].is_nan());
    // The counter is in the trace and has no values.
    assert_eq!(client.frame("t/0/counter/c3.counter").rows(), 0);
    assert_eq!(client.status("t/0/counter/c4.counter"), 404);
}

#[test]
fn the_overview_has_every_cause_and_what_host_calls_explain() {
    let folder = Folder::new();
    let overview = client(&folder).json("overview");
    let causes = list(&overview["traces"][0]["causes"]);
    let names = causes.iter().map(|cause| &cause["cause"]);
    assert!(names.eq(Cause::ALL.map(|cause| json!(cause)).iter()));
    for cause in causes {
        for fact in ["side", "letter", "colour", "name", "sentence"] {
            assert!(!cause[fact].as_str().unwrap().is_empty(), "{cause}");
        }
        // Nothing helps against the rhythm of a display, or against what is not known.
        let has_advice = !cause["advice"].as_str().unwrap().is_empty();
        let is_helpless = ["display", "unknown"].contains(&cause["cause"].as_str().unwrap());
        assert_eq!(has_advice, !is_helpless, "{cause}");
    }
    let calls = list(&overview["traces"][0]["calls"]);
    let call = |name: &str| calls.iter().find(|call| call["call"] == name).unwrap();
    assert_eq!(call("submit")["cause"], "submit-call");
    assert_eq!(call("wait-fences")["cause"], "after-host-wait");
    assert_has(call("poll-fence"), json!({"cause": null, "waits": true}));
    let present = json!({"cause": "host-call", "waits": false});
    assert_has(call("present"), present);
}
