//! Tests that times which cannot be true are taken for unknown in the files of all tools: times of 0, negative durations, and
//! work that ends after later work of its own stream or after the recording.

use crate::database::database;
use crate::imported::{fixture, import_bytes, loss, noted};
use gapscope_analysis::{Findings, Options};
use gapscope_trace::Trace;

const SECOND_NS: i64 = 1_000_000_000;

/// The times of a kernel as a file has them: its start and its end in microseconds behind the first second.
type Times = (i64, i64);

/// Makes an export of Nsight Systems with kernels of one stream, each with its launch. Times of 0 stay so.
fn nsys(kernels: &[Times], more: &str) -> Trace {
    let at = |us: i64| match us {
        0 => 0,
        us => 2 * SECOND_NS + us * 1000,
    };
    let mut calls = String::new();
    let mut work = String::new();
    for (index, (start, end)) in kernels.iter().enumerate() {
        let call = at(10 + 100 * index as i64);
        calls += &format!("[{call}, {}, {index}, 2, 117440519]\n", call + 5000);
        work += &format!(
            "[{}, {}, 0, 1, 7, {index}, 117440512, 1]\n",
            at(*start),
            at(*end)
        );
    }
    let text = format!(
        "StringIds id value\n[1, \"scale\"]\n[2, \"cudaLaunchKernel_v7000\"]\n\
        CUPTI_ACTIVITY_KIND_RUNTIME start end correlationId nameId globalTid\n{calls}\
        CUPTI_ACTIVITY_KIND_KERNEL start end deviceId contextId streamId correlationId globalPid demangledName\n{work}{more}"
    );
    let import = import_bytes("export.sqlite", &database(&text));
    import.unwrap().trace
}

/// The times of kernels of 50 µs, 100 µs apart.
fn good(count: i64) -> Vec<Times> {
    (0..count)
        .map(|at| (20 + 100 * at, 70 + 100 * at))
        .collect()
}

fn untimed(trace: &Trace) -> usize {
    let starts = trace.tables.dispatches.start_ns.iter();
    starts.filter(|start| start.is_none()).count()
}

#[test]
fn impossible_times_of_nsys_are_unknown_and_told_in_the_head_of_the_report() {
    type Change = fn(&mut Vec<Times>);
    let cases: [(&str, Change, &str, usize); 6] = [
        ("nothing is wrong", |_| {}, "", 0),
        ("both times are 0", |kernels| kernels[3] = (0, 0), "", 1),
        ("the start is 0", |kernels| kernels[3].0 = 0, "", 1),
        (
            "the end is before the start",
            |kernels| kernels[3].1 = 50,
            "",
            1,
        ),
        (
            "work is longer than the next",
            |kernels| kernels[3].1 = 3_000_000,
            "",
            1,
        ),
        (
            "the last work is longer than the recording",
            |kernels| kernels[19].1 = 3_000_000,
            "ANALYSIS_DETAILS duration\n[2500000000]\n",
            1,
        ),
    ];
    for (name, change, more, expected) in cases {
        let mut kernels = good(20);
        change(&mut kernels);
        let trace = nsys(&kernels, more);
        assert_eq!(untimed(&trace), expected, "{name}");
        assert_eq!(trace.tables.dispatches.start_ns.len(), 20, "{name}");
        assert_eq!(loss(&trace, "dispatch time"), expected as u64, "{name}");
        let wall_ns = trace.manifest.end_ns - trace.manifest.start_ns;
        assert!(wall_ns < 3_000_000, "{name}: {wall_ns}");
        let findings = Findings::new(&trace, &Options::default());
        let told = findings.headline.iter();
        let told = told.filter(|note| note.sentence.contains("When 1 dispatch ran is not known"));
        assert_eq!(told.count(), expected, "{name}");
    }
}

#[test]
fn a_stream_that_stands_for_several_is_believed() {
    // Two streams under one number: each kernel runs through the next two.
    let kernels: Vec<Times> = (0..20)
        .map(|at| (20 + 100 * at, if at % 2 == 0 { 320 } else { 60 } + 100 * at))
        .collect();
    assert_eq!(untimed(&nsys(&kernels, "")), 0);
}

#[test]
fn nodes_of_graphs_may_run_side_by_side() {
    let mut text = String::from(
        "StringIds id value\n[1, \"scale\"]\n[2, \"cudaGraphLaunch_v10000\"]\n\
        CUPTI_ACTIVITY_KIND_RUNTIME start end correlationId nameId globalTid\n[2000000000, 2000005000, 9, 2, 117440519]\n\
        CUPTI_ACTIVITY_KIND_KERNEL start end deviceId contextId streamId correlationId globalPid demangledName\n",
    );
    for at in 0..20 {
        let start = 2_000_010_000 + at * 1000;
        let end = if at == 3 {
            start + 900_000
        } else {
            start + 900
        };
        text += &format!("[{start}, {end}, 0, 1, 7, 9, 117440512, 1]\n");
    }
    let trace = import_bytes("export.sqlite", &database(&text))
        .unwrap()
        .trace;
    assert_eq!(untimed(&trace), 0);
}

/// Makes a file of PyTorch's profiler with kernels of one stream, each with its launch, in microseconds.
fn kineto(kernels: &[(String, String)], more: &str) -> Trace {
    let mut events = Vec::new();
    for (at, (start, duration)) in kernels.iter().enumerate() {
        let call = 5_000_010 + 100 * at;
        events.push(format!(
            r#"{{"ph":"X","cat":"cuda_runtime","name":"cudaLaunchKernel","pid":1,"tid":1,"ts":{call},"dur":5,"args":{{"correlation":{}}}}}"#,
            at + 1
        ));
        events.push(format!(
            r#"{{"ph":"X","cat":"kernel","name":"k","pid":0,"tid":7,"ts":{start},"dur":{duration},"args":{{"device":0,"context":1,"stream":7,"correlation":{}}}}}"#,
            at + 1
        ));
    }
    let document = format!(
        r#"{{"schemaVersion":1,"traceEvents":[{}{more}]}}"#,
        events.join(",\n")
    );
    import_bytes("run.pt.trace.json", document.as_bytes())
        .unwrap()
        .trace
}

#[test]
fn work_of_pytorch_without_possible_times_stays_as_work_of_its_call() {
    let cases = [
        ("5000320", "-5"),
        ("5000320", "NaN"),
        ("5000320", "1e300"),
        ("0", "0"),
        ("0", "50"),
        ("-Infinity", "50"),
        ("null", "50"),
        ("5000320", "9000000"),
    ];
    for (start, duration) in cases {
        let mut kernels: Vec<(String, String)> = (0..20)
            .map(|at| ((5_000_020 + 100 * at).to_string(), "50".to_owned()))
            .collect();
        kernels[3] = (start.to_owned(), duration.to_owned());
        let trace = kineto(&kernels, "");
        let name = format!("{start}, {duration}");
        assert_eq!(untimed(&trace), 1, "{name}");
        assert_eq!(loss(&trace, "dispatch time"), 1, "{name}");
        assert_eq!(
            trace.manifest.losses.len(),
            1,
            "{name}: {:?}",
            trace.manifest.losses
        );
        let submissions = trace.tables.dispatches.submission.iter();
        assert!(submissions.into_iter().all(|id| id.is_some()), "{name}");
    }
}

#[test]
fn kernels_of_a_stream_that_start_together_or_take_no_time_have_no_known_times() {
    let each = |start: &dyn Fn(i64) -> i64, length: &dyn Fn(i64) -> f64| -> Vec<(String, String)> {
        (0..40)
            .map(|at| (start(at).to_string(), length(at).to_string()))
            .collect()
    };
    let spaced = |at: i64| 5_000_020 + 100 * at;
    type Case<'c> = (&'c str, Vec<(String, String)>, usize);
    let cases: [Case; 7] = [
        (
            "all at one time",
            each(&|_| 5_000_020, &|at| 50.0 + at as f64),
            40,
        ),
        ("all at zero", each(&|_| 0, &|_| 50.0), 40),
        (
            "ten at one time",
            each(&|at| spaced(at.max(9)), &|_| 50.0),
            10,
        ),
        (
            "by tens of a coarse clock",
            each(&|at| spaced(at / 2 * 2), &|_| 50.0),
            40,
        ),
        // Two kernels that are shorter than what profilers round.
        ("rounded", each(&|at| spaced(at / 2 * 2), &|_| 1.0), 0),
        ("none takes any time", each(&spaced, &|_| 0.0), 40),
        (
            "some take no time",
            each(&spaced, &|at| if at % 4 == 0 { 0.0 } else { 50.0 }),
            0,
        ),
    ];
    for (name, kernels, expected) in cases {
        let trace = kineto(&kernels, "");
        assert_eq!(untimed(&trace), expected, "{name}");
        assert_eq!(loss(&trace, "dispatch time"), expected as u64, "{name}");
    }
}

#[test]
fn events_that_come_twice_count_once_and_are_told_in_the_head_of_the_report() {
    let kernels: Vec<(String, String)> = (0..20)
        .map(|at| ((5_000_020 + 100 * at).to_string(), "50".to_owned()))
        .collect();
    let once = kineto(&kernels, "");
    let again: String = (0..10)
        .map(|at| {
            let (call, start, number) = (5_000_010 + 100 * at, 5_000_020 + 100 * at, at + 1);
            format!(
                r#",{{"ph":"X","cat":"cuda_runtime","name":"cudaLaunchKernel","pid":1,"tid":1,"ts":{call},"dur":5,"args":{{"correlation":{number}}}}}
                ,{{"ph":"X","cat":"kernel","name":"k","pid":0,"tid":7,"ts":{start},"dur":50,"args":{{"device":0,"context":1,"stream":7,"correlation":{number}}}}}"#
            )
        })
        .collect();
    let twice = kineto(&kernels, &again);
    assert_eq!(loss(&once, "repeated event"), 0);
    assert_eq!(loss(&twice, "repeated event"), 20);
    let rows = |trace: &Trace| {
        (
            trace.tables.dispatches.queue.len(),
            trace.tables.submissions.id.len(),
        )
    };
    assert_eq!(rows(&twice), rows(&once));
    let findings = Findings::new(&twice, &Options::default());
    let first = &findings.headline[0].sentence;
    assert_eq!(
        first,
        "20 events of the file are repetitions: each counts once."
    );
}

#[test]
fn work_of_pytorch_that_ends_after_the_recording_has_no_known_times() {
    let kernels: Vec<(String, String)> = (0..20)
        .map(|at| {
            let duration = if at == 19 { 9_000_000 } else { 50 };
            ((5_000_020 + 100 * at).to_string(), duration.to_string())
        })
        .collect();
    assert_eq!(untimed(&kineto(&kernels, "")), 0);
    let end = r#",{"ph":"i","s":"g","name":"Record Window End","pid":"","tid":"","ts":5010000}"#;
    let trace = kineto(&kernels, end);
    assert_eq!(untimed(&trace), 1);
    assert!(noted(
        &trace,
        "1 piece of work ends after the recording did"
    ));
}

#[test]
fn a_range_at_zero_does_not_stretch_the_recording() {
    let kernels: Vec<(String, String)> = (0..5)
        .map(|at| ((5_000_020 + 100 * at).to_string(), "50".to_owned()))
        .collect();
    let range =
        r#",{"ph":"X","cat":"user_annotation","name":"step","pid":1,"tid":1,"ts":0,"dur":5}"#;
    let trace = kineto(&kernels, range);
    assert_eq!(loss(&trace, "label"), 1);
    assert!(trace.manifest.end_ns - trace.manifest.start_ns < 1_000_000);
}

#[test]
fn zero_is_a_time_in_a_file_that_counts_from_its_own_beginning() {
    let kernels: Vec<(String, String)> = (0..5)
        .map(|at| {
            (
                ((5_000_020 + 100 * at) * i64::from(at > 0)).to_string(),
                "50".to_owned(),
            )
        })
        .collect();
    // The calls are seconds later than the first kernel, and a range stands between them.
    let ranges: String = (0..10)
        .map(|at| format!(r#",{{"ph":"X","cat":"user_annotation","name":"r","pid":1,"tid":1,"ts":{},"dur":5}}"#, at * 500_000 + 100))
        .collect();
    assert_eq!(untimed(&kineto(&kernels, &ranges)), 0);
}

/// Adds 5 s to all times of a document of rocprofv3.
fn later(value: &mut serde_json::Value) {
    match value {
        serde_json::Value::Array(elements) => elements.iter_mut().for_each(later),
        serde_json::Value::Object(members) => {
            for (key, value) in members {
                match value.as_i64().filter(|_| key.ends_with("_timestamp")) {
                    Some(time) => *value = (time + 5 * SECOND_NS).into(),
                    None => later(value),
                }
            }
        }
        _ => {}
    }
}

#[test]
fn zeros_of_rocprofv3_are_unknown_and_its_streams_share_queues() {
    let text = std::fs::read_to_string(fixture("rocprofv3.json")).unwrap();
    let mut document: serde_json::Value = serde_json::from_str(&text).unwrap();
    later(&mut document);
    let before = import_bytes("results.json", document.to_string().as_bytes())
        .unwrap()
        .trace;
    assert_eq!(untimed(&before), 0);
    let records = &mut document["rocprofiler-sdk-tool"][0]["buffer_records"]["kernel_dispatch"];
    assert!(records.as_array().unwrap().len() > 1);
    records[0]["start_timestamp"] = 0.into();
    let trace = import_bytes("results.json", document.to_string().as_bytes())
        .unwrap()
        .trace;
    assert_eq!(untimed(&trace), 1);
    assert_eq!(trace.manifest.start_ns, before.manifest.start_ns);
}
