//! Tests comparisons of equal work.

use crate::client::Client;
use crate::traces::{Folder, SMALL, assert_has, list};
use serde_json::{Value, json};

#[test]
fn two_traces_and_two_ranges_are_compared() {
    let folder = Folder::new();
    let slower = SMALL.replace("duration_ns=1500 bindings", "duration_ns=2000 bindings");
    let client = Client::new(&[
        folder.trace("before", &slower),
        folder.trace("after", SMALL),
    ]);
    assert_eq!(list(&client.json("overview")["traces"]).len(), 2);
    let comparison = client.json("compare?a=0&b=1");
    assert_eq!(comparison["before"]["name"], "before.gapscope");
    let mut ratios = list(&comparison["ratios"]).iter();
    let busy = ratios.find(|ratio| ratio["what"] == "GPU busy ns").unwrap();
    assert_has(busy, json!({"before": 4000.0, "after": 3500.0}));
    let dispatches = |found: &Value| {
        ["before", "after"].map(|side| found[side]["dispatch_count"].as_u64().unwrap())
    };
    let ranges = client.json("compare?a=1&a_from=0&a_to=5000&b=1&b_from=5000&b_to=10000");
    assert_eq!(dispatches(&ranges), [2, 1]);
    let labels = client.json("compare?a=0&a_label=step&b=1&b_label=step%20/%20matmul");
    assert_eq!(dispatches(&labels), [2, 1]);
    assert_eq!(labels["before"]["evaluations"], 1);
    assert_eq!(comparison["basis"], "claim", "the same kernels ran");
    for side in ["before", "after"] {
        assert!(labels[side]["verdict"].is_string(), "{labels}");
        assert!(labels[side]["verdict_sentence"].is_string(), "{labels}");
    }
    // A text that other labels have, too, does not name the label.
    for (key, side) in [
        ("compare?a=0&a_label=none&b=1", "before"),
        ("compare?a=0&a_label=step&b=1&b_label=matmul", "after"),
    ] {
        let refused = client.key(key);
        assert_eq!(refused.status, 400);
        assert!(refused.text().contains(side));
    }
}
