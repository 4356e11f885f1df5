//! Tests that counts of what was not recorded are unknown, with a reason, and that all other counts are known.

use gapscope_analysis::{Findings, Options};
use gapscope_trace::Trace;
use serde_json::{Value, json};

/// Returns the counts of a report by their keys, and those that are not known.
fn counts(text: &str) -> (Vec<Value>, Vec<(String, Value)>) {
    let trace = Trace::from_text(text).unwrap();
    let findings = Findings::new(&trace, &Options::default());
    let report = serde_json::to_value(findings).unwrap();
    let keys = [
        "dispatch_count",
        "command_buffer_count",
        "submission_count",
        "transfer_count",
        "transfer_bytes",
    ];
    let unknown = report["unknown_counts"].as_array().cloned();
    let unknown = unknown.unwrap_or_default().into_iter().map(|unknown| {
        assert!(!unknown["because"].as_str().unwrap().is_empty());
        let count = unknown["count"].as_str().unwrap().to_owned();
        (count, unknown["at_least"].clone())
    });
    (
        keys.map(|key| report[key].clone()).into(),
        unknown.collect(),
    )
}

/// A program with a device of an API, whose trace a tool made.
fn program(tool: &str, api: &str, rows: &str) -> String {
    format!(
        "manifest start_ns=0 end_ns=1ms\nprocess id=1 pid=7 hook={tool}\n\
        device id=1 process=1 api={api} name=GPU\nqueue id=1 device=1\nkernel id=1 process=1 name=k\n{rows}"
    )
}

const CALL: &str = "submission id=1 process=1 queue=1 kind=kernel thread=7 start_ns=1us duration_ns=1us function=cudaLaunchKernel\n";
const LAUNCHED: &str =
    "dispatch submission=1 position=0 queue=1 kernel=1 start_ns=10us duration_ns=5us\n";
const ALONE: &str = "dispatch position=0 queue=1 kernel=1 start_ns=10us duration_ns=5us\n";
const UNSIZED: &str = "transfer position=1 queue=1 kind=copy start_ns=20us duration_ns=5us\n";

#[test]
fn counts_of_what_was_not_recorded_are_unknown() {
    let cases = [
        (
            "a recording of CUDA without graphs and copies",
            program("cuda", "cuda", &format!("{CALL}{LAUNCHED}")),
            json!([1, 0, 1, 0, 0]),
            vec![],
        ),
        (
            "a recording without GPU work",
            program("vulkan", "vulkan", ""),
            json!([0, 0, 0, 0, 0]),
            vec![],
        ),
        (
            "a file of launches and kernels",
            program("Kineto", "cuda", &format!("{CALL}{LAUNCHED}")),
            json!([1, 0, 1, 0, 0]),
            vec![],
        ),
        (
            "a file of kernels alone",
            program("Proton", "cuda", ALONE),
            json!([1, null, null, null, null]),
            vec!["transfer_count", "submission_count", "command_buffer_count"],
        ),
        (
            "a file of labels alone",
            program("nsys", "cuda", ""),
            json!([null, null, null, null, null]),
            vec![
                "dispatch_count",
                "command_buffer_count",
                "submission_count",
                "transfer_count",
            ],
        ),
        (
            "launches without kernels",
            program(
                "Kineto",
                "cuda",
                &format!("{CALL}loss what=dispatches count=1 reason=gone\n"),
            ),
            json!([null, 0, 1, 0, 0]),
            vec!["dispatch_count"],
        ),
        (
            "copies of unknown size",
            program("cuda", "cuda", &format!("{CALL}{LAUNCHED}{UNSIZED}")),
            json!([1, 0, 1, 1, null]),
            vec![],
        ),
        (
            "dispatches of Vulkan without command buffers",
            program("Perfetto", "vulkan", &format!("{CALL}{LAUNCHED}")),
            json!([1, null, 1, 0, 0]),
            vec!["command_buffer_count"],
        ),
    ];
    for (name, text, expected, unknown) in cases {
        let (known, listed) = counts(&text);
        assert_eq!(json!(known), expected, "{name}");
        let listed: Vec<_> = listed.iter().map(|(count, _)| count.as_str()).collect();
        assert_eq!(listed, unknown, "{name}");
    }
}

#[test]
fn counts_of_what_was_recorded_in_part_are_lower_bounds() {
    let rows = format!(
        "{CALL}{LAUNCHED}{ALONE}loss what=\"host calls of GPU work\" count=1 reason=gone\n"
    );
    let (known, unknown) = counts(&program("Kineto", "cuda", &rows));
    assert_eq!(known[..3], [json!(2), json!(0), json!(1)]);
    assert_eq!(unknown, [("submission_count".to_owned(), json!(1))]);
}
