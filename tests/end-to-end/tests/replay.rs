//! Tests `gapscope replay` on captures made by hand: its output, and that validation layers report nothing.

use std::path::Path;
use std::process::{Command, Output};

use serde_json::Value;

use crate::captured::{Made, barrier, dispatch, everything};
use crate::driver::{Driver, Lavapipe};
use crate::product;
use crate::recording::{Program, assert_contains};
use gapscope_capture::model::*;
use gapscope_trace::tables::Table;

const KERNELS: &str = "
struct Parameters { by: f32 }
var<immediate> parameters: Parameters;
@group(0) @binding(0) var<storage, read_write> data: array<f32>;
@compute @workgroup_size(64)
fn divide(@builtin(global_invocation_id) id: vec3u) { data[id.x] = data[id.x] / parameters.by; }";

/// Makes a capture that divides 64 numbers by 2, lets the host write half of them anew, and divides by `last`.
fn capture(last: f32, planted: bool) -> (tempfile::TempDir, std::path::PathBuf) {
    let mut made = Made::new();
    let divide = made.kernel(KERNELS, "divide", 1, 4);
    let buffer = made.buffer("quotients", 256, 256);
    let by = |by: f32| dispatch(divide, 1, &[(buffer, 256)], &[by.to_bits()]);
    made.content(256, &[12.0_f32.to_bits(); 64], ContentCause::FirstUse);
    made.submit(vec![by(2.0), barrier(), by(3.0), everything()]);
    made.outcome(256, &[2.0_f32.to_bits(); 64]);
    made.content(256, &[8.0_f32.to_bits(); 32], ContentCause::HostWrite);
    made.submit(vec![by(last)]);
    let mut after = [(8.0_f32 / last).to_bits(); 64];
    after[32..].fill((2.0_f32 / last).to_bits());
    after[40] ^= u32::from(planted);
    made.outcome(256, &after);
    let (folder, path, _) = made.end();
    (folder, path)
}

fn replay(path: &Path, options: &[&str], variables: &[(&str, &str)]) -> Output {
    Command::new(product::built("gapscope"))
        .arg("replay")
        .args(options)
        .arg(path)
        .envs(Lavapipe.variables())
        .envs(variables.iter().copied())
        .output()
        .expect("gapscope starts")
}

fn json(output: &Output) -> Value {
    serde_json::from_slice(&output.stdout)
        .unwrap_or_else(|_| panic!("{}", String::from_utf8_lossy(&output.stderr)))
}

fn text(bytes: &[u8]) -> String {
    String::from_utf8_lossy(bytes).into_owned()
}

#[test]
fn equal_outputs_end_with_0_and_others_with_1() {
    let (_folder, path) = capture(4.0, false);
    for options in [
        &["--json"][..],
        &["--json", "--tight"],
        &["--json", "--serialised", "--repeat", "2"],
    ] {
        let output = replay(&path, options, &[]);
        let answer = json(&output);
        assert!(output.status.success(), "{answer:#}");
        assert_eq!(answer["dispatch_count"], 3);
        assert!(answer["outputs_compared"].as_u64() > Some(0), "{answer:#}");
        assert_eq!(answer["outputs_compared"], answer["outputs_equal"]);
        assert_eq!(answer["equal"], true);
    }
    let (_folder, path) = capture(4.0, true);
    for options in [&["--json"][..], &["--json", "--tight"]] {
        let output = replay(&path, options, &[]);
        let answer = json(&output);
        assert_eq!(output.status.code(), Some(1), "{answer:#}");
        assert_eq!(answer["differences"][0]["buffers"][0]["name"], "quotients");
        assert_eq!(answer["differences"][0]["writers"][0]["dispatch"], 2);
    }
    let output = replay(&path, &[], &[]);
    let said = text(&output.stdout)
        .split_whitespace()
        .collect::<Vec<_>>()
        .join(" ");
    assert_contains(&said, "Ran 3 dispatches in 2 submissions on llvmpipe");
    assert_contains(&said, "1 of 2 outputs of at most 64 KiB differ");
    assert_contains(&said, "(quotients)");
    assert_contains(&said, "dispatch 2 (divide)");
}

const COPY: &str = "
@group(0) @binding(0) var<storage, read_write> source: array<u32>;
@group(0) @binding(1) var<storage, read_write> result: array<u32>;
@compute @workgroup_size(64)
fn copy(@builtin(global_invocation_id) id: vec3u) { result[id.x] = source[id.x] + 1; }";

/// Makes a capture of a chain from one buffer to the next. With `needless`, it also has two barriers between two
/// dispatches, of which one suffices, and an independent dispatch with a barrier after it that nothing needs: of 5
/// barriers, 3 are needed.
fn barriers(needless: bool, planted: bool) -> (tempfile::TempDir, std::path::PathBuf) {
    let mut made = Made::new();
    let copy = made.kernel(COPY, "copy", 2, 0);
    let buffers: Vec<BufferId> = (1..7)
        .map(|number| made.buffer(&format!("b{number}"), 4096 * number, 256))
        .collect();
    let of = |from: usize, to: usize| {
        dispatch(copy, 1, &[(buffers[from], 256), (buffers[to], 256)], &[])
    };
    made.content(4096, &[0; 64], ContentCause::FirstUse);
    made.content(4096 * 5, &[0; 64], ContentCause::FirstUse);
    let chain = [
        of(0, 1),
        barrier(),
        of(1, 2),
        barrier(),
        of(2, 3),
        barrier(),
        of(3, 0),
    ];
    let mut commands = chain.to_vec();
    if needless {
        commands.insert(2, barrier());
        commands.splice(0..0, [of(4, 5), barrier()]);
    }
    made.submit(commands);
    made.outcome(4096, &[4 + u32::from(planted); 64]);
    made.outcome(4096 * 4, &[3; 64]);
    let (folder, path, _) = made.end();
    (folder, path)
}

#[test]
fn what_nothing_needs_is_left_out() {
    for (needless, all, left_out) in [(true, 5, 2), (false, 3, 0)] {
        let (_folder, path) = barriers(needless, false);
        let output = replay(&path, &["--needed-barriers", "--json"], &[]);
        let answer = json(&output);
        assert!(output.status.success(), "{answer:#}");
        assert_eq!(answer["equal"], true);
        assert_eq!(answer["outputs_compared"], answer["outputs_equal"]);
        let found = &answer["needed_barriers"];
        assert_eq!(found["barrier_count"], all, "{answer:#}");
        assert_eq!(found["left_out_count"], left_out, "{answer:#}");
        assert_eq!(found["stay"]["needed"], 3, "{answer:#}");
        for form in ["all", "needed"] {
            // The run before the timed runs is compared, too.
            assert_eq!(found[form]["outputs_compared"], 22, "{answer:#}");
            assert_eq!(found[form]["runs_ns"].as_array().unwrap().len(), 10);
            assert!(found[form]["median_ns"].as_u64() > Some(0));
        }
        let said = text(&replay(&path, &["--needed-barriers"], &[]).stdout);
        let said = said.split_whitespace().collect::<Vec<_>>().join(" ");
        let expected = match needless {
            true => "Left out 2 of 5 barriers",
            false => "None of 3 barriers was left out",
        };
        assert_contains(&said, expected);
        assert_contains(&said, "3 stay: needed");
    }
    let (_folder, path) = barriers(true, true);
    let output = replay(&path, &["--needed-barriers", "--json"], &[]);
    let answer = json(&output);
    assert_eq!(output.status.code(), Some(1), "{answer:#}");
    assert_eq!(answer["equal"], false);
}

#[test]
fn bytes_are_held_against_the_bandwidth_that_is_measured() {
    let (_folder, path) = barriers(true, false);
    let deps = |options: &[&str]| {
        Command::new(product::built("gapscope"))
            .arg("deps")
            .args(options)
            .arg(&path)
            .envs(Lavapipe.variables())
            .output()
            .expect("gapscope starts")
    };
    let output = deps(&["--measure", "--json", "--repeat", "3"]);
    let answer = json(&output);
    assert!(output.status.success(), "{}", text(&output.stderr));
    let speed = answer["bandwidth"]["bytes_per_s"].as_f64().expect("known");
    // The bandwidth of a CPU's memory is between 0.1 GB/s and 1,000 GB/s.
    assert!((1e8..1e12).contains(&speed), "{speed}");
    let nodes = answer["nodes"].as_array().expect("nodes");
    assert_eq!(nodes.len(), 5);
    for node in nodes {
        // The command reads 64 words and writes 64.
        assert_eq!(node["least_bytes"], 512, "{node:#}");
        let least = node["least_time_ns"].as_f64().expect("known");
        assert!((least - 512.0 / speed * 1e9).abs() < 1e-6 * least);
        let took = node["duration_ns"].as_f64().expect("it is timed");
        let share = node["bandwidth_share"].as_f64().expect("known");
        assert!(took > 0.0 && (share - least / took).abs() < 1e-6 * share);
    }
    assert_eq!(answer["critical_path"]["unit"], "ns");
    // Nothing is measured unless the user asks for it.
    let answer = json(&deps(&["--json"]));
    assert_eq!(answer["bandwidth"], Value::Null);
    let node = &answer["nodes"][0];
    assert_eq!(
        (&node["least_bytes"], &node["bandwidth_share"]),
        (&Value::from(512), &Value::Null)
    );
    let unknown = answer["unknown"].to_string();
    assert_contains(&unknown, "bandwidth_share");
    assert!(text(&deps(&[]).stdout).contains("gapscope deps --measure"));
}

/// The recorder counts the commands that reach the driver.
#[test]
fn what_is_left_out_does_not_reach_the_driver() {
    let (_folder, path) = barriers(true, false);
    let recorded = |options: &[&str]| {
        let gapscope = product::built("gapscope");
        let words = [gapscope.as_os_str(), "replay".as_ref()].into_iter();
        let words = words.chain(options.iter().map(AsRef::as_ref));
        let recording = Program::new(words.chain([path.as_os_str()]), &Lavapipe);
        recording.recorded().trace().tables.barriers.len()
    };
    let as_often = recorded(&["--repeat", "4"]);
    let in_turn = recorded(&["--needed-barriers", "--repeat", "2", "--warm-up", "0"]);
    assert_eq!(as_often - in_turn, 2 * 2, "{as_often} and {in_turn}");
}

#[test]
fn validation_layers_have_nothing_to_say() {
    let (folder, path) = capture(4.0, false);
    let (_other_folder, redundant) = barriers(true, false);
    let variables = [
        ("VK_INSTANCE_LAYERS", "VK_LAYER_KHRONOS_validation"),
        (
            "VK_LAYER_ENABLES",
            "VK_VALIDATION_FEATURE_ENABLE_SYNCHRONIZATION_VALIDATION_EXT",
        ),
        ("VK_LOADER_DEBUG", "layer"),
    ];
    let trace = folder.path().join("replay.gapscope");
    let dumped = folder.path().join("quotients.npy");
    let ways: [&[&str]; 6] = [
        &["--repeat", "2"],
        &["--tight"],
        &["--serialised", "-o", trace.to_str().unwrap()],
        &["--dispatch", "1"],
        &["--dump", "quotients@1", "--to", dumped.to_str().unwrap()],
        &["--find-nan"],
    ];
    let ways = ways.map(|options| (&path, options));
    for (path, options) in ways
        .into_iter()
        .chain([(&redundant, &["--needed-barriers"][..])])
    {
        let output = replay(path, options, &variables);
        let said = text(&output.stdout) + &text(&output.stderr);
        assert!(output.status.success(), "{options:?}: {said}");
        assert!(
            said.contains("VK_LAYER_KHRONOS_validation"),
            "it is not there: {said}"
        );
        for word in ["VUID-", "UNASSIGNED-", "SYNC-HAZARD"] {
            assert!(!said.contains(word), "{options:?}: {said}");
        }
    }
}

#[test]
fn a_report_is_made_of_a_replay() {
    let (folder, path) = capture(4.0, false);
    let trace = folder.path().join("replay.gapscope");
    let output = replay(&path, &["-o", trace.to_str().unwrap()], &[]);
    assert!(output.status.success(), "{}", text(&output.stderr));
    let report = Command::new(product::built("gapscope"))
        .args(["report", "--json"])
        .arg(&trace)
        .output()
        .unwrap();
    let answer = json(&report);
    assert!(report.status.success(), "{answer:#}");
    let kernels = answer["kernels"].as_array().expect("kernels");
    assert_eq!(kernels[0]["name"], "divide", "{answer:#}");
    // The folder exists now.
    let again = replay(&path, &["-o", trace.to_str().unwrap()], &[]);
    assert_eq!(again.status.code(), Some(1));
    assert!(
        text(&again.stderr).contains("exists"),
        "{}",
        text(&again.stderr)
    );
}

#[test]
fn the_dispatch_that_divided_by_nothing_is_named() {
    let (_folder, path) = capture(0.0, false);
    let output = replay(&path, &["--find-nan", "--json"], &[]);
    let answer = json(&output);
    assert_eq!(output.status.code(), Some(1));
    assert_eq!(answer["found"]["dispatch"], 2);
    assert_eq!(answer["found"]["kernel"], "divide");
    let (_folder, path) = capture(4.0, false);
    let output = replay(&path, &["--find-nan"], &[]);
    assert!(output.status.success());
    assert!(
        text(&output.stdout).contains("No dispatch of 3 wrote a NaN"),
        "{}",
        text(&output.stdout)
    );
}

#[test]
fn what_is_no_capture_or_a_damaged_one_is_one_sentence() {
    let (folder, path) = capture(4.0, false);
    let none = replay(folder.path(), &[], &[]);
    assert_eq!(none.status.code(), Some(1));
    assert_eq!(
        text(&none.stderr).lines().count(),
        1,
        "{}",
        text(&none.stderr)
    );
    // Some bytes of the content are changed.
    let content = path.join(gapscope_capture::CONTENT);
    let bytes = std::fs::read(&content).unwrap();
    std::fs::write(&content, vec![7; bytes.len()]).unwrap();
    let damaged = replay(&path, &[], &[]);
    let said = text(&damaged.stderr);
    assert_eq!(
        (damaged.status.code(), said.lines().count()),
        (Some(1), 1),
        "{said}"
    );
    assert_contains(&said, "damaged");
    // The capture is cut off before its last outcome. The readable part runs, and the output says so.
    std::fs::write(&content, bytes).unwrap();
    let records = path.join(gapscope_capture::RECORDS);
    let lines = std::fs::read_to_string(&records).unwrap();
    std::fs::write(&records, &lines[..lines.len() - 120]).unwrap();
    let cut = replay(&path, &["--json"], &[]);
    let answer = json(&cut);
    assert_eq!(cut.status.code(), Some(3), "{answer:#}");
    assert!(
        answer["notes"]
            .to_string()
            .contains("is read as far as here"),
        "{answer:#}"
    );
}

#[test]
fn a_shader_that_spirv_val_finds_wrong_does_not_run() {
    use std::os::unix::fs::PermissionsExt;
    let (folder, path) = capture(4.0, false);
    let tool = folder.path().join("spirv-val");
    for (script, status) in [
        ("cat > /dev/null", 0),
        ("cat > /dev/null; echo 'error: 7' >&2; exit 1", 1),
    ] {
        std::fs::write(&tool, format!("#!/bin/sh\n{script}\n")).unwrap();
        std::fs::set_permissions(&tool, std::fs::Permissions::from_mode(0o755)).unwrap();
        let inherited = std::env::var("PATH").unwrap_or_default();
        let search = format!("{}:{inherited}", folder.path().display());
        let output = replay(&path, &["--spirv-val"], &[("PATH", &search)]);
        let said = text(&output.stderr);
        assert_eq!(output.status.code(), Some(status), "{said}");
        assert_eq!(
            said.contains("kernel divide: spirv-val says: error: 7"),
            status == 1,
            "{said}"
        );
    }
    let output = replay(&path, &["--spirv-val"], &[("PATH", "")]);
    assert!(
        text(&output.stderr).contains("install SPIRV-Tools"),
        "{}",
        text(&output.stderr)
    );
}
