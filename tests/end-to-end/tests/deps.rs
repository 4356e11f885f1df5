//! Tests `gapscope deps` on recordings.

use std::process::Command;

use serde_json::Value;

use crate::product;
use crate::recording::planted;

/// All dispatches of `steady` use one buffer, so that each depends on the dispatch before it.
#[test]
fn a_recording_has_the_chain_of_its_dispatches() {
    let recording = planted("steady --n 6 --iterations 4").recorded();
    let output = Command::new(product::built("gapscope"))
        .args(["deps", "--json"])
        .arg(recording.path())
        .output()
        .expect("gapscope runs");
    assert!(output.status.success(), "{output:?}");
    let found: Value = serde_json::from_slice(&output.stdout).expect("JSON");
    let dispatches = recording.trace().tables.dispatches.queue.len();
    let nodes = found["nodes"].as_array().expect("nodes");
    let of_kernels = nodes
        .iter()
        .filter(|node| node["kind"] == "dispatch")
        .count();
    assert_eq!(of_kernels, dispatches);
    // A recording knows only the bound ranges, and no barriers.
    assert_eq!(found["nodes"][0]["exact"], false);
    assert_eq!(found["unknown"][0]["what"], "hazards");
    let edges = found["edges"].as_array().expect("edges");
    assert!(edges.len() + 1 >= dispatches, "{} edges", edges.len());
    for edge in edges {
        assert!(edge["from"].as_u64() < edge["to"].as_u64(), "{edge}");
    }
}
