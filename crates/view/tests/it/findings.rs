//! Tests findings on a whole trace, on its gaps and on a range.

use crate::client::Client;
use crate::traces::{Folder, assert_has, list, read, text, tracks};
use gapscope_analysis::gaps::GapFinder;
use gapscope_analysis::kernels::Kernel;
use gapscope_analysis::verdict::Judgement;
use gapscope_analysis::{Findings, Options, kernels, transfers};
use gapscope_timeline::Timeline;
use gapscope_timeline::bound_bytes::BindingSets;
use gapscope_timeline::intervals::Interval;
use serde_json::{Value, json};

#[test]
fn what_rests_on_a_table_that_cannot_be_read_is_unknown_in_every_answer() {
    let folder = Folder::new();
    let path = folder.synthetic(500);
    let file = path.join("dispatches.parquet");
    let bytes = std::fs::read(&file).unwrap();
    std::fs::write(&file, &bytes[..bytes.len() / 2]).unwrap();
    let client = Client::new(&[path]);
    let overview = client.json("overview");
    let unread = &overview["traces"][0]["unread"][0];
    assert_eq!(unread["table"], "dispatches");
    assert_eq!(unread["reason"], "its end is missing");
    let because = "dispatches.parquet cannot be read (its end is missing)";
    let findings = client.json("t/0/findings");
    assert_eq!(findings["verdict"], "unknown");
    for key in ["gaps", "idle_time", "kernels", "dispatch_count", "activity"] {
        assert!(findings[key].is_null(), "{key}: {}", findings[key]);
    }
    let unknown = format!("Unknown, because {because}.");
    for key in ["t/0/range?from=0&to=1000000", "t/0/graph"] {
        assert_eq!(client.json(key)["missing"], unknown, "{key}");
    }
    let gaps = client.key("t/0/track/g0.gaps");
    assert_eq!(gaps.status, 422);
    assert_eq!(gaps.text(), json!({ "error": unknown }).to_string());
}

#[test]
fn findings_are_those_of_the_report() {
    let folder = Folder::new();
    let path = folder.synthetic(5_000);
    let trace = read(&path);
    let findings = Findings::new(&trace, &Options::default());
    let client = Client::new(&[path]);
    let answer = client.json("t/0/findings");
    assert_eq!(answer["verdict"], json!(findings.verdict));
    assert_eq!(
        answer["verdict_sentence"],
        findings.verdict_evidence.sentence
    );
    assert_eq!(answer["gpu_busy_ns"], json!(findings.gpu_busy_ns));
    let gaps = list(&answer["gaps"]);
    assert_eq!(gaps.len(), findings.gaps.len());
    for (answered, gap) in gaps.iter().zip(&findings.gaps) {
        let expected = json!({"cause": gap.cause, "total_ns": gap.total_ns, "count": gap.count});
        assert_has(answered, expected);
    }
    assert_kernels(&answer, &findings.kernels);
    // Times count from the origin.
    let window = findings.work_window.unwrap();
    assert_eq!(
        answer["work_window"]["start_ns"],
        window.start_ns - trace.manifest.start_ns
    );
    let strings = client.json("t/0/strings");
    let string = |number: &Value| &strings["strings"][number.as_u64().unwrap() as usize];
    for (row, kernel) in list(&answer["kernel_rows"]).iter().zip(&findings.kernels) {
        assert_eq!(*string(&row["name"]), kernel.name);
        assert!(!list(&row["kernels"]).is_empty());
    }
    for (name, label) in list(&answer["label_names"]).iter().zip(&findings.labels) {
        assert_eq!(*string(name), label.path);
    }
}

fn assert_kernels(answer: &Value, kernels: &[Kernel]) {
    let answered = list(&answer["kernels"]);
    assert_eq!(answered.len(), kernels.len());
    for (
        answered,
        Kernel {
            name,
            count,
            busy_ns,
            ..
        },
    ) in answered.iter().zip(kernels)
    {
        assert_has(
            answered,
            json!({"name": name, "count": count, "busy_ns": busy_ns}),
        );
    }
}

#[test]
fn answers_stay_the_same_once_all_columns_have_been_read() {
    let folder = Folder::new();
    let client = Client::new(&[folder.synthetic(5_000)]);
    let overview = client.json("overview");
    let counters = tracks(&overview, "counter").into_iter();
    let counters = counters.map(|track| format!("t/0/counter/{}", text(&track["id"])));
    let mut keys: Vec<String> = counters.collect();
    assert!(keys.len() > 2);
    let others = [
        "t/0/findings",
        "t/0/track/g0.gaps",
        "t/0/rows/gaps/3",
        "t/0/range?from=1000000&to=9000000",
    ];
    keys.extend(others.map(str::to_owned));
    let answers = || -> Vec<Vec<u8>> { keys.iter().map(|key| client.key(key).body).collect() };
    let before = answers();
    // Dependencies need all columns, and so do the details of a row.
    assert!(!list(&client.json("t/0/graph")["nodes"]).is_empty());
    client.json("t/0/rows/dispatches/7");
    assert!(before == answers());
}

#[test]
fn gaps_on_the_track_are_those_of_the_analysis() {
    let folder = Folder::new();
    let path = folder.synthetic(5_000);
    let trace = read(&path);
    let timeline = Timeline::new(&trace);
    let client = Client::new(&[path]);
    let strings = client.json("t/0/strings");
    let origin_ns = trace.manifest.start_ns;
    let finder = GapFinder::new(&timeline);
    for gpu in 0..2 {
        let mut expected = Vec::new();
        finder.each(gpu, |_, parts| {
            let parts = parts.iter();
            expected.extend(
                parts.map(|part| (part.start_ns - origin_ns, part.duration_ns, part.cause)),
            );
        });
        assert!(expected.len() > 10);
        let frame = client.frame(&format!("t/0/track/g{gpu}.gaps"));
        let [start, duration, name, row] =
            ["start", "duration", "name", "row"].map(|name| frame.column(name));
        assert_eq!(frame.rows(), expected.len());
        for (at, (start_ns, duration_ns, cause)) in expected.iter().enumerate() {
            let times = (start[at] as i64, duration[at] as i64);
            assert_eq!(times, (*start_ns, *duration_ns));
            assert_eq!(strings["strings"][name[at] as usize], cause.as_str());
        }
        let at = expected.len() / 2;
        let details = client.json(&format!("t/0/rows/gaps/{}", row[at]));
        assert_eq!(details["title"], expected[at].2.as_str());
        assert_eq!(details["start_ns"], expected[at].0);
        let start_ns = details["gap"]["start_ns"].as_i64().unwrap() + origin_ns;
        let gap = finder.at(gpu, start_ns).unwrap();
        assert_eq!(details["gap"]["duration_ns"], gap.duration_ns);
        assert_eq!(details["gap"]["after"]["name"], gap.after.name);
    }
}

#[test]
fn gaps_that_meet_at_work_without_length_are_two() {
    let folder = Folder::new();
    let text = "device id=1\nqueue id=1 device=1\nkernel id=1 name=k
        dispatch queue=1 kernel=1 start_ns=0 duration_ns=10
        dispatch queue=1 kernel=1 start_ns=20 duration_ns=0
        dispatch queue=1 kernel=1 start_ns=50 duration_ns=10";
    let client = Client::new(&[folder.trace("instant", text)]);
    assert_eq!(client.frame("t/0/track/g0.gaps").rows(), 2);
    let second = client.json("t/0/rows/gaps/1");
    assert_has(&second["gap"], json!({"start_ns": 20, "duration_ns": 30}));
}

#[test]
fn figures_of_a_range_are_those_of_the_analysis() {
    let folder = Folder::new();
    let path = folder.synthetic(5_000);
    let trace = read(&path);
    let timeline = Timeline::new(&trace);
    let origin_ns = trace.manifest.start_ns;
    let whole = timeline.work_window().unwrap();
    let client = Client::new(&[path]);
    let third = whole.length_ns() / 3;
    for window in [
        whole,
        Interval::new(whole.start_ns + third, whole.start_ns + 2 * third),
        Interval::new(whole.end_ns + 5, whole.end_ns + 10),
    ] {
        let (from, to) = (window.start_ns - origin_ns, window.end_ns - origin_ns);
        let answer = client.json(&format!("t/0/range?from={from}&to={to}"));
        let judged = Judgement::new(&GapFinder::new(&timeline), Some(window), 0, 10, None);
        assert_eq!(answer["verdict"], json!(judged.bound));
        assert_eq!(answer["verdict_sentence"], judged.evidence.sentence);
        for (answered, device) in list(&answer["devices"]).iter().zip(&judged.devices) {
            let (answered, share) = (&answered["analysed"], device.analysed);
            let busy_ns = share.map(|share| share.busy_ns);
            let window_ns = share.map(|share| share.window_ns);
            assert_eq!(answered["busy_ns"], json!(busy_ns));
            assert_eq!(answered["window_ns"], json!(window_ns));
        }
        assert_eq!(answer["gaps"], json!(judged.idle_time.causes));
        let kernels = kernels::kernels(&timeline, &BindingSets::new(&trace), Some(window), None);
        assert_kernels(&answer, &kernels);
        let transfers = transfers::transfers_in(&timeline, Some(window));
        let bytes: u64 = transfers.iter().filter_map(|row| row.bytes).sum();
        assert_eq!(text(&answer["transfer_bytes"]), bytes.to_string());
        let dispatches: u64 = kernels.iter().map(|kernel| kernel.count).sum();
        assert_eq!(answer["dispatch_count"], dispatches);
    }
}
