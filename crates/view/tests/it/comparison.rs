//! Tests comparisons of equal work.

use crate::client::Client;
use crate::traces::{Folder, SMALL};
use serde_json::json;

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
    assert_eq!(comparison["basis"], "claim", "the same kernels ran");
    for side in ["before", "after"] {
        assert!(labels[side]["verdict"].is_string(), "{labels}");
        assert!(labels[side]["verdict_sentence"].is_string(), "{labels}");
    }
    let nothing = client.key("compare?a=0&a_label=none&b=1");
    assert_eq!(nothing.status, 400);
    assert!(String::from_utf8_lossy(&nothing.body).contains("before"));
    // A text that other labels have, too, does not name the label.
    let inner = client.key("compare?a=0&a_label=step&b=1&b_label=matmul");
    assert_eq!(inner.status, 400);
    assert!(String::from_utf8_lossy(&inner.body).contains("after"));
}
