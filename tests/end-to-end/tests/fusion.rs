//! Tests `gapscope replay --fuse` on a program that runs a chain of operations with one kernel for each.

use std::path::Path;
use std::process::Command;

use serde_json::Value;

use crate::driver::{Driver, Lavapipe};
use crate::product::built;

fn capture(into: &Path, mode: &str) {
    let output = Command::new(built("gapscope"))
        .args(["capture", "--submissions", "6..9", "-o"])
        .arg(into)
        .arg("--")
        .arg(built("fusion"))
        .args(["--n", "20000", "--iterations", "10", "--mode", mode])
        .envs(Lavapipe.variables())
        .output()
        .expect("gapscope starts");
    assert!(
        output.status.success(),
        "{}",
        String::from_utf8_lossy(&output.stderr)
    );
}

fn fused(capture: &Path) -> (bool, Value) {
    let output = Command::new(built("gapscope"))
        .args(["replay", "--fuse", "--json", "--repeat", "2"])
        .arg(capture)
        .envs(Lavapipe.variables())
        .output()
        .expect("gapscope starts");
    let answer: Value = serde_json::from_slice(&output.stdout)
        .unwrap_or_else(|_| panic!("{}", String::from_utf8_lossy(&output.stderr)));
    (output.status.success(), answer["fusion"].clone())
}

#[test]
fn each_evaluation_becomes_one_dispatch_with_the_same_outputs() {
    let folder = tempfile::tempdir().expect("a folder");
    let eager = folder.path().join("eager.gapcapture");
    capture(&eager, "eager");
    let (is_exact, fusion) = fused(&eager);
    assert!(is_exact, "{fusion:#}");
    let chains = fusion["chains"].as_array().expect("chains");
    assert_eq!(chains.len(), 3, "{fusion:#}");
    for chain in chains {
        assert_eq!(
            chain["kernels"],
            serde_json::json!(["sin", "cos", "exp", "log"])
        );
        assert_eq!(chain["bytes_not_loaded"], 3 * 80_000);
        assert_eq!(chain["not_stored"], Value::Null);
        assert_eq!(chain["not_forwarded"], Value::Null);
    }
    // The last intermediate result of the window still exists, and may be read later.
    let not_stored = chains
        .iter()
        .map(|chain| chain["bytes_not_stored"].as_u64());
    let not_stored: Vec<_> = not_stored.flatten().collect();
    assert_eq!(not_stored, [240_000, 240_000, 160_000]);
    assert_eq!(fusion["refused"], serde_json::json!([]));
    assert_eq!(fusion["stored"]["difference"]["different"], 0, "{fusion:#}");
    assert!(
        fusion["stored"]["difference"]["elements"].as_u64() >= Some(40_000),
        "{fusion:#}"
    );
    assert_eq!(
        fusion["stored"]["outputs_compared"],
        fusion["stored"]["outputs_equal"]
    );
    for key in ["captured_ns", "stored_ns", "forwarded_ns", "predicted_ns"] {
        assert!(fusion[key].as_u64() > Some(0), "{key} of {fusion:#}");
    }
}

#[test]
fn one_kernel_alone_is_no_chain() {
    let folder = tempfile::tempdir().expect("a folder");
    let compiled = folder.path().join("compiled.gapcapture");
    capture(&compiled, "compiled");
    let (is_exact, fusion) = fused(&compiled);
    assert!(is_exact, "{fusion:#}");
    assert_eq!(fusion["chains"], serde_json::json!([]));
    assert_eq!(fusion["predicted_ns"], Value::Null);
}
