//! Tests what reports and explanations say with the verdict.

use super::{assert_says, read, terminal, words};
use gapscope_analysis::{Findings, Options};
use gapscope_report::explanation::Explanation;
use gapscope_timeline::Timeline;
use gapscope_trace::Trace;

/// Work that starts before its call on a lost device, in a small part of a run that failed, beside a device that is not used.
fn trace() -> Trace {
    let mut text = "manifest start_ns=0 end_ns=10s exit.code=3 sampling_mode=dispatch
        process id=1 pid=10
        thread process=1 thread=7 name=main
        device id=1 process=1 name=A uuid=aa lost=true clock.error_ns=1000
        device id=2 process=1 name=B uuid=bb clock.error_ns=1000
        queue id=1 device=1\nqueue id=2 device=2
        label id=1 text=train\nlabel id=2 text=eval
        kernel id=1 process=1 name=work\n"
        .to_owned();
    for turn in 0..100 {
        let (label, busy) = if turn < 50 { (1, 9) } else { (2, 1) };
        let start = 1_000 + turn * 10;
        text += &format!(
            "submission id={turn} process=1 queue=1 thread=7 start_ns={start}ms duration_ns=1us
             dispatch submission={turn} queue=1 kernel=1 label={label} start_ns={start}ms duration_ns={busy}ms\n"
        );
    }
    // A submission of fifty seems to start too late for its work.
    for turn in 100..102 {
        let start = 1_000 + turn * 10;
        text += &format!(
            "submission id={turn} process=1 queue=1 thread=7 start_ns={}us duration_ns=1us
             dispatch submission={turn} queue=1 kernel=1 label=2 start_ns={start}ms duration_ns=1ms\n",
            start * 1_000 + 5
        );
    }
    read(&text)
}

#[test]
fn the_report_says_contradictions_before_the_verdict_and_the_rest_behind() {
    let page = words(&terminal(&trace()));
    let at = |part: &str| {
        page.find(part)
            .unwrap_or_else(|| panic!("{part} is not in: {page}"))
    };
    let verdict = at("HOST-BOUND The device waited");
    assert!(at("contradict each other: 2 of 102 submissions") < verdict);
    let first_part = at("\u{2022} ");
    for behind in [
        "of the run of 10.0 s",
        "Under train, ",
        "Under eval, ",
        "A: the device was lost",
        "1 of 2 GPUs was never used: B.",
    ] {
        assert!((verdict..first_part).contains(&at(behind)), "{behind}");
    }
}

#[test]
fn the_explanation_says_all_that_the_report_says_with_the_verdict() {
    let trace = trace();
    let timeline = Timeline::new(&trace);
    let findings = Findings::from_timeline(&timeline, &Options::default());
    assert_eq!(findings.headline.len(), 6, "{:?}", findings.headline);
    let claims = Explanation::new("t", &timeline, &findings, &[]).claims;
    let claims: Vec<String> = claims.into_iter().map(|claim| claim.text).collect();
    for note in &findings.headline {
        assert!(claims.contains(&note.sentence), "{}", note.sentence);
    }
    let all = claims.join("\n");
    assert_says(&all, "exit code 3");
    assert_says(&all, &findings.warm_up.reason);
    for part in &findings.verdict_evidence.parts {
        assert_says(&all, &part.sentence);
    }
}

#[test]
fn the_explanation_has_the_joint_verdict_of_several_devices_with_its_paths() {
    let mut text = "manifest sampling_mode=dispatch
        process id=1 pid=10 hook=cuda
        thread process=1 thread=7 name=main
        device id=1 process=1 api=cuda name=GPU uuid=aa clock.error_ns=1000
        device id=2 process=1 api=cuda name=GPU uuid=bb clock.error_ns=1000
        queue id=1 device=1 index=1\nqueue id=2 device=2 index=2
        kernel id=1 process=1 name=work\n"
        .to_owned();
    for turn in 0..50 {
        let (start, copy) = (turn * 4, turn * 2);
        let kernel = copy + 1;
        text += &format!(
            "submission id={copy} process=1 queue=1 thread=7 start_ns=-1ms duration_ns=1us kind=transfer
             transfer submission={copy} queue=1 start_ns={start}ms duration_ns=3990us kind=peer-to-peer bytes=1
             submission id={kernel} process=1 queue=2 thread=7 start_ns=-1ms duration_ns=1us kind=kernel
             dispatch submission={kernel} queue=2 kernel=1 start_ns={}us duration_ns=2ms
             dependency submission={kernel} waits_for={copy}\n",
            start * 1_000 + 3_996
        );
    }
    let trace = read(&text);
    let page = words(&terminal(&trace));
    assert_says(
        &page,
        "TRANSFER-BOUND Computing waits for transfers on stream 1 of GPU 0",
    );
    assert_says(&page, "GPU 1: transfer-bound.");
    let timeline = Timeline::new(&trace);
    let findings = Findings::from_timeline(&timeline, &Options::default());
    let claims = Explanation::new("t", &timeline, &findings, &[]).claims;
    let said: Vec<&str> = claims.iter().map(|claim| claim.text.as_str()).collect();
    let said = said.join("\n");
    let sentence = findings.verdict_evidence.sentence.trim_end_matches('.');
    assert_says(&said, sentence);
    for device in &findings.idle_time.devices {
        assert_says(&said, &device.verdict_sentence);
    }
    let figures = claims.iter().flat_map(|claim| &claim.figures);
    let pointers: Vec<&str> = figures
        .filter_map(|figure| figure.report.as_deref())
        .collect();
    assert!(
        pointers.contains(&"/joint_critical_paths/0/path_ns"),
        "{pointers:?}"
    );
}
