//! Tests samples of stacks: their tracks, all samples, and those in gaps.

use crate::client::{Client, Frame};
use crate::files::answers;
use crate::traces::{Folder, SMALL, assert_has, list, text, tracks, write_file};
use serde_json::{Value, json};
use std::collections::BTreeMap;

/// 30 ms in which the host is late, sampled every 2 ms: two in three find `load_batch`, one in three `crop`. The recording
/// starts at 1 s.
fn sampled(file: &str) -> String {
    let samples: Vec<String> = (0..15)
        .map(|n| {
            let stack = if n % 3 == 2 { 4 } else { 3 };
            let at_ms = 1012 + 2 * n;
            let more = match n {
                0 => "state=blocked system_call=futex gil_holder=70",
                _ => "state=running",
            };
            format!("sample time_ns={at_ms}ms process=1 thread=7 stack={stack} source=sampled period_ns=2ms {more}")
        })
        .collect();
    format!(
        "manifest sampling_mode=dispatch start_ns=1s end_ns=1100ms stack_rate_hz=500 start_unix_ns=4000000000000000000
        process id=1 pid=7 hook=cuda
        process id=2 pid=8 hook=sampled
        thread process=1 thread=7 name=main
        device id=1 process=1
        queue id=1 device=1
        label id=1 text=step
        kernel id=1 process=1 name=sin
        submission id=1 process=1 queue=1 thread=7 start_ns=1009ms duration_ns=100us
        submission id=2 process=1 queue=1 thread=7 start_ns=1041ms duration_ns=1ms
        command_buffer id=1 process=1 queue=1 submission=1 dispatches=1
        command_buffer id=2 process=1 queue=1 submission=2 dispatches=1
        dispatch command_buffer=1 queue=1 kernel=1 start_ns=1010ms duration_ns=1ms
        dispatch command_buffer=2 queue=1 kernel=1 start_ns=1043ms duration_ns=1ms label=1
        frame id=10 kind=python function=main file={file} line=1
        frame id=11 kind=python function=load_batch file={file} line=2
        frame id=12 kind=python function=resize file=/v/lib/python3.12/site-packages/PIL/Image.py line=9
        frame id=13 kind=python function=crop file={file} line=99
        stack id=1 frame=10
        stack id=2 parent=1 frame=11
        stack id=3 parent=2 frame=12
        stack id=4 parent=1 frame=13
        sample time_ns=1042ms process=1 thread=7 stack=3 state=running source=at-submission
        sample time_ns=1020ms process=2 thread=8 stack=4 state=running source=sampled period_ns=4ms
        {}",
        samples.join("\n")
    )
}

#[test]
fn samples_have_a_track_their_stacks_and_their_part_of_idle_time() {
    let folder = Folder::new();
    let file = folder.path().join("train.py");
    std::fs::write(&file, "main()\n    batch = load_batch()\n").unwrap();
    let trace = folder.trace("sampled", &sampled(&file.display().to_string()));
    let options = gapscope_view::Options {
        sources: file.parent().map(Into::into),
        ..Default::default()
    };
    let client = Client::with(&[trace], options);
    let overview = client.json("overview");
    let sampled = tracks(&overview, "samples").into_iter();
    let sampled = sampled.map(|track| json!([track["id"], track["rows"]]));
    let expected = [json!(["p1.t7.samples", 16]), json!(["p2.t8.samples", 1])];
    assert_eq!(sampled.collect::<Vec<_>>(), expected);

    let samples = client.frame("t/0/code");
    assert_eq!(samples.rows(), 17);
    let header = &samples.header;
    assert_eq!(header["rate_hz"], 500);
    let at = samples.column("at");
    // Times count from the recording's start.
    let first = at.iter().position(|ns| *ns == 12_000_000.0).unwrap();
    let text_of = |column: &str, list: &str| {
        let at = samples.column(column)[first] as usize;
        text(&header[list][at]).to_owned()
    };
    assert_eq!(text_of("state", "states"), "blocked");
    assert_eq!(text_of("source", "sources"), "sampled");
    assert_eq!(text_of("call", "calls"), "futex");
    assert_eq!(samples.column("gil")[first], 70.0);
    let stack = samples.column("stack")[first] as usize;
    let line = header["stacks"]["line"][stack].as_u64().unwrap() as usize;
    let line = &header["lines"][line];
    assert_eq!(line["text"], "train.py:2 load_batch > resize");
    let frame = &header["frames"][line["frame"].as_u64().unwrap() as usize];
    assert_eq!(frame["source"], "batch = load_batch()");
    assert_has(frame, json!({"own": true, "kind": "python"}));
    let threads = list(&header["threads"]).iter();
    let workers = threads.filter(|thread| thread["worker"] == true);
    assert_eq!(workers.count(), 1);

    let idle = client.frame("t/0/code/idle");
    assert_shares(&samples, &idle);
    let strings = client.json("t/0/strings?after=0");
    let label = idle.column("label")[0] as usize;
    assert_eq!(strings["strings"][label], "step");
    let gaps = client.frame("t/0/track/g0.gaps");
    assert!(gaps.column("name").contains(&idle.column("cause")[0]));
    // A sample that a hook took has no share of time.
    let parts = idle.column("part").into_iter().zip(idle.column("weight"));
    let exact: Vec<_> = parts.filter(|(part, _)| *part == 1.0).collect();
    assert!(!exact.is_empty() && exact.iter().all(|(_, weight)| *weight == 0.0));
}

/// Two thirds of the time for which samples stand belong to one line, as planted.
fn assert_shares(samples: &Frame, idle: &Frame) {
    let mut by_line: BTreeMap<String, f64> = BTreeMap::new();
    for (sample, weight_ns) in idle.column("sample").into_iter().zip(idle.column("weight")) {
        let stack = samples.column("stack")[sample as usize] as usize;
        let line = samples.header["stacks"]["line"][stack].as_u64().unwrap();
        let line = text(&samples.header["lines"][line as usize]["text"]);
        *by_line.entry(line.to_owned()).or_default() += weight_ns;
    }
    let total_ns: f64 = by_line.values().sum();
    let covered = |cause: &Value| {
        cause["total_ns"].as_f64().unwrap() - cause["without_samples_ns"].as_f64().unwrap()
    };
    let covered_ns: f64 = list(&idle.header["causes"]).iter().map(covered).sum();
    assert!((total_ns - covered_ns).abs() < 1.0);
    let share = by_line["train.py:2 load_batch > resize"] / total_ns;
    assert!((share - 2.0 / 3.0).abs() < 0.04, "{by_line:?}");
}

#[test]
fn a_file_has_the_samples_and_a_trace_without_any_has_none_of_it() {
    let folder = Folder::new();
    let trace = folder.trace("sampled", &sampled("/home/a/train.py"));
    let page = folder.path().join("sampled.html");
    write_file(&trace, &page).unwrap();
    let found = answers(&page);
    assert_shares(
        &Frame::from_bytes(found["t/0/code"].clone()),
        &Frame::from_bytes(found["t/0/code/idle"].clone()),
    );

    let trace = folder.trace("small", SMALL);
    let page = folder.path().join("small.html");
    write_file(&trace, &page).unwrap();
    assert!(!answers(&page).keys().any(|key| key.starts_with("t/0/code")));
    let client = Client::new(&[trace]);
    assert!(tracks(&client.json("overview"), "samples").is_empty());
    assert_eq!(client.status("t/0/code"), 404);
    assert_eq!(client.status("t/0/code/idle"), 404);
}

#[test]
fn stacks_that_go_in_circles_or_name_what_is_not_there_are_answered() {
    let folder = Folder::new();
    let trace = folder.trace(
        "circle",
        "manifest sampling_mode=dispatch start_ns=0 end_ns=100ms
        process id=1 pid=7 hook=cuda
        frame id=1 kind=python function=a file=/a.py line=1
        stack id=1 parent=2 frame=1
        stack id=2 parent=1 frame=9
        stack id=3 parent=77 frame=1
        sample time_ns=1ms process=1 thread=7 stack=1 state=running source=sampled period_ns=2ms
        sample time_ns=2ms process=9 thread=7 stack=88 state=running source=sampled
        sample time_ns=3ms process=1 thread=7 stack=3 state=running source=sampled period_ns=-5ms",
    );
    let client = Client::new(&[trace]);
    assert_eq!(client.frame("t/0/code").rows(), 3);
    assert_eq!(client.frame("t/0/code/idle").rows(), 0);
}

/// 30 ms in which the host is late: the submitting thread is 28 ms in `load_batch`, of which 20 ms in what it calls.
const RANGES: &str = "manifest sampling_mode=dispatch start_ns=1s end_ns=1100ms
    process id=1 pid=7 hook=Kineto
    thread process=1 thread=7 name=main
    device id=1 process=1
    queue id=1 device=1
    label id=1 text=\"train.py(41): load_batch\"
    label id=2 text=\"<built-in function zoom_shift>\"
    label id=3 text=\"another.py(1): thread\"
    kernel id=1 process=1 name=sin
    marker process=1 thread=7 scope=thread label=1 start_ns=1012ms duration_ns=28ms
    marker process=1 thread=7 scope=thread label=2 start_ns=1015ms duration_ns=20ms
    marker process=1 thread=8 scope=thread label=3 start_ns=1011ms duration_ns=30ms
    submission id=1 process=1 queue=1 thread=7 start_ns=1009ms duration_ns=100us
    submission id=2 process=1 queue=1 thread=7 start_ns=1041ms duration_ns=1ms
    command_buffer id=1 process=1 queue=1 submission=1 dispatches=1
    command_buffer id=2 process=1 queue=1 submission=2 dispatches=1
    dispatch command_buffer=1 queue=1 kernel=1 start_ns=1010ms duration_ns=1ms
    dispatch command_buffer=2 queue=1 kernel=1 start_ns=1043ms duration_ns=1ms";

#[test]
fn without_samples_ranges_of_the_submitting_thread_tell_the_code() {
    let folder = Folder::new();
    let trace = folder.trace("ranges", RANGES);
    let client = Client::new(std::slice::from_ref(&trace));
    let overview = client.json("overview");
    assert_eq!(overview["traces"][0]["code"], "ranges");
    assert!(tracks(&overview, "samples").is_empty());
    let code = client.frame("t/0/code");
    assert_eq!(code.header["told_by"], "ranges");
    // The outer range before the inner one, the inner one, and the outer one again.
    assert_eq!(code.column("at"), [12e6, 15e6, 35e6]);
    assert_eq!(code.column("period"), [3e6, 20e6, 5e6]);
    let line = &code.header["lines"][0];
    assert_eq!(line["text"], "train.py:41 load_batch > zoom_shift");
    let frame = &code.header["frames"][line["frame"].as_u64().unwrap() as usize];
    assert_has(
        frame,
        json!({"text": "train.py:41 load_batch", "own": true}),
    );
    let parents = list(&code.header["stacks"]["parent"]);
    assert!(parents.contains(&Value::Null) && parents.contains(&json!(0)));
    let idle = client.frame("t/0/code/idle");
    assert_eq!(idle.column("weight"), [3e6, 20e6, 5e6]);
    let causes = list(&idle.header["causes"]).iter();
    let covered = causes.map(|cause| {
        cause["total_ns"].as_i64().unwrap() - cause["without_samples_ns"].as_i64().unwrap()
    });
    assert_eq!(covered.sum::<i64>(), 28_000_000);
    let page = folder.path().join("ranges.html");
    write_file(&trace, &page).unwrap();
    let answers = answers(&page);
    assert!(answers.contains_key("t/0/code") && answers.contains_key("t/0/code/idle"));
}
