//! What stands beside the verdict: contradictions, what the clock leaves open, the scope, and devices.

use crate::program::{Program, assert_says, findings_of};
use gapscope_analysis::Findings;
use gapscope_analysis::headline::HeadlineKind;
use gapscope_analysis::verdict::Bound;

fn sentences(findings: &Findings, kind: HeadlineKind) -> Vec<&str> {
    let notes = findings.headline.iter().filter(|note| note.kind == kind);
    notes.map(|note| note.sentence.as_str()).collect()
}

/// A program of one thread on one device, with this clock error in microseconds.
fn with_error(error_us: i64) -> Program {
    Program::from_text(&format!(
        "manifest sampling_mode=dispatch
         process id=1 pid=10
         thread process=1 thread=7 name=main
         device id=1 process=1 name=GPU uuid=aa clock.error_ns={error_us}us
         queue id=1 device=1
         kernel id=1 process=1 name=work"
    ))
}

/// 200 kernels of `busy` µs every `period` µs, which start `after` µs after their calls began.
fn launches(mut program: Program, busy: i64, period: i64, after: i64) -> Findings {
    for turn in 0..200 {
        let t = turn * period;
        program.launch(1, [t - after, t - after + 2], t, busy);
    }
    program.findings()
}

#[test]
fn work_that_starts_before_its_call_is_told_first_and_leaves_the_cause_open() {
    let findings = launches(with_error(1), 300, 1_000, -500);
    let told = sentences(&findings, HeadlineKind::Contradiction);
    assert_eq!(
        told,
        [
            "Host and device times contradict each other: 200 of 200 submissions seem to start before their calls, by 500 µs in the median; the clock's error is stated as 1.00 µs."
        ]
    );
    assert_eq!(findings.headline[0].kind, HeadlineKind::Contradiction);
    assert_eq!(findings.verdict, Bound::Unknown);
    assert_says(&findings.verdict_evidence.sentence, "contradict");
    // Busy time is of one clock.
    let busy = launches(with_error(1), 900, 1_000, -500);
    assert_eq!(busy.verdict, Bound::DeviceBound);
    assert_eq!(sentences(&busy, HeadlineKind::Contradiction).len(), 1);
    // Within the stated error nothing contradicts anything.
    assert_eq!(
        launches(with_error(600), 300, 1_000, -500).contradictions,
        []
    );
    // A contradiction that is small beside the gaps does not change the verdict.
    let small = launches(with_error(1), 300, 1_000, -3);
    assert_eq!(small.verdict, Bound::HostBound);
    assert_eq!(small.contradictions[0].count, 200);
}

#[test]
fn waits_that_return_before_their_work_ends_are_told() {
    let waits = |call: &str, returned: i64| {
        let mut p = with_error(1);
        for turn in 0..50 {
            let t = turn * 1_000;
            p.launch(1, [t, t + 2], t + 5, 400);
            p.line(&format!(
                "host_call process=1 thread=7 queue=1 call={call} start_ns={}us duration_ns={}us",
                t + 3,
                returned - 3
            ));
        }
        p.findings()
    };
    for call in ["wait-device-idle", "wait-queue-idle"] {
        let findings = waits(call, 211);
        let told = sentences(&findings, HeadlineKind::Contradiction);
        assert_says(told[0], "50 of 50 waits seem to return before");
        assert_says(told[0], "by 194 µs");
        assert_eq!(waits(call, 405).contradictions, []);
        assert_eq!(waits(call, 700).contradictions, []);
    }
    assert_eq!(waits("wait-event", 211).contradictions, []);
}

#[test]
fn a_verdict_within_the_clocks_error_is_unknown_or_says_at_least() {
    // 2 µs of work, 3 µs of gap: the host's call or the start, which no clock with an error of 20 µs can tell.
    let open = launches(with_error(20), 2, 5, 3);
    assert_eq!(open.verdict, Bound::Unknown);
    assert_says(&open.verdict_evidence.sentence, "cannot tell for what");
    assert_says(&open.verdict_evidence.sentence, "20.0 µs");
    // The same gaps with a good clock.
    assert_ne!(launches(with_error(0), 2, 5, 3).verdict, Bound::Unknown);
    // Below half of idle time no error makes a verdict of it, and the split is told.
    let split = launches(with_error(20), 3, 5, 2);
    assert_eq!(split.verdict, Bound::Mixed);
    assert_says(&split.verdict_evidence.sentence, "may split otherwise");
    // Gaps that are far longer than the error have their cause.
    let far = launches(with_error(20), 300, 1_000, 3);
    assert_eq!(far.verdict, Bound::HostBound);
    // Gaps of some times the error have a cause of which a part is certain.
    let part = launches(with_error(20), 20, 100, 3);
    assert_eq!(part.verdict, Bound::HostBound);
    assert_says(&part.verdict_evidence.sentence, "this is at least");
}

#[test]
fn a_verdict_on_a_part_of_the_run_says_of_how_much() {
    let run = |end_s: i64| {
        findings_of(&format!(
            "manifest start_ns=0 end_ns={end_s}s
             device id=1 uuid=aa name=GPU\nqueue id=1 device=1
             submission id=1 process=1 queue=1 start_ns=990ms duration_ns=1us
             dispatch submission=1 queue=1 kernel=1 start_ns=1s duration_ns=1s"
        ))
    };
    let part = run(50);
    assert_eq!(
        sentences(&part, HeadlineKind::Scope),
        [
            "The verdict is on the 1.00 s in which the program used the GPU (2.0 % of the run of 50.0 s), from 1.00 s on; before and after, the GPU had no work."
        ]
    );
    let whole = findings_of(
        "manifest start_ns=1s end_ns=2050ms
         device id=1 uuid=aa name=GPU\nqueue id=1 device=1
         submission id=1 process=1 queue=1 start_ns=990ms duration_ns=1us
         dispatch submission=1 queue=1 kernel=1 start_ns=1s duration_ns=1s",
    );
    assert_eq!(whole.headline, []);
}

#[test]
fn lost_unused_and_hardly_used_devices_are_told() {
    let findings = findings_of(
        "manifest sampling_mode=dispatch
         device id=1 process=1 name=A uuid=aa lost=true\ndevice id=2 process=1 name=B uuid=bb\ndevice id=3 process=1 name=C uuid=cc
         queue id=1 device=1\nqueue id=2 device=2\nqueue id=3 device=3
         submission id=1 process=1 queue=1 start_ns=0 duration_ns=1us
         submission id=3 process=1 queue=3 start_ns=0 duration_ns=1us
         dispatch submission=1 queue=1 kernel=1 start_ns=1ms duration_ns=100ms
         dispatch submission=3 queue=3 kernel=1 start_ns=1ms duration_ns=1ms",
    );
    let lost = sentences(&findings, HeadlineKind::LostDevice);
    assert_says(lost[0], "A: the device was lost; its last work");
    assert_eq!(
        sentences(&findings, HeadlineKind::UnusedDevice),
        [
            "1 of 3 GPUs was never used: B.",
            "1 of 3 GPUs was hardly used: C (1.00 ms); the busiest was busy for 100 ms."
        ]
    );
}

#[test]
fn a_lost_device_says_whether_it_had_work() {
    let run = |devices: &str, rows: &str| {
        let findings = findings_of(&format!(
            "manifest start_ns=0 end_ns=101ms sampling_mode=dispatch
             {devices}
             submission id=1 process=1 queue=1 start_ns=0 duration_ns=1us
             dispatch submission=1 queue=1 kernel=1 start_ns=1ms duration_ns=100ms
             {rows}"
        ));
        let notes = findings.headline.into_iter();
        notes.map(|note| note.sentence).collect::<Vec<_>>()
    };
    let second = "device id=1 process=1 name=A uuid=aa\nqueue id=1 device=1
        device id=2 process=1 name=B uuid=bb lost=true\nqueue id=2 device=2";
    let submission = "submission id=2 process=1 queue=2 start_ns=0 duration_ns=1us";
    assert_eq!(
        run(second, ""),
        ["B: the device was lost; the program had given it no work."]
    );
    assert_eq!(
        run(second, submission),
        ["B: the device was lost; none of its work has known times."]
    );
    let only = "device id=1 process=1 name=A uuid=aa lost=true\nqueue id=1 device=1";
    assert_eq!(
        run(only, ""),
        [
            "A: the device was lost; its last work with known times ended 101 ms after the recording began."
        ]
    );
    let untimed = "submission id=3 process=1 queue=1 start_ns=1us duration_ns=1us
        command_buffer id=3 process=1 queue=1 submission=3 dispatches=1 timing=device-lost";
    assert_eq!(
        run(only, untimed),
        [
            "A: the device was lost; its last work with known times ended 101 ms after the recording began, and 1 of its command buffers has no times."
        ]
    );
    let unused = "device id=1 process=1 name=A uuid=aa lost=true\nqueue id=1 device=1
        device id=2 process=1 name=B uuid=bb";
    let notes = run(unused, "");
    assert_eq!(notes[1], "1 of 2 GPUs was never used: B.");
}

#[test]
fn the_scope_says_when_there_was_no_work() {
    let run = |start_s: i64, end_s: i64, devices: &str| {
        let findings = findings_of(&format!(
            "manifest start_ns=0 end_ns=50s
             device id=1 uuid=aa name=GPU\nqueue id=1 device=1\n{devices}
             submission id=1 process=1 queue=1 start_ns={start_s}s duration_ns=1us
             dispatch submission=1 queue=1 kernel=1 start_ns={start_s}s duration_ns={}s",
            end_s - start_s
        ));
        sentences(&findings, HeadlineKind::Scope)[0].to_owned()
    };
    assert_says(
        &run(0, 10, ""),
        "from 0 ns on; after that, the GPU had no work.",
    );
    assert_says(
        &run(30, 50, ""),
        "from 30.0 s on; before, the GPU had no work.",
    );
    assert_says(&run(10, 30, ""), "; before and after, the GPU had no work.");
    // What stands in a part of a file that could not be read may be of any time.
    let cut = "loss what=\"rests of files\" count=1 reason=\"the file ends in the middle\"";
    assert_says(
        &run(0, 10, cut),
        "from 0 ns on; after that, work that could not be read may have run.",
    );
    let second = "device id=2 uuid=bb name=B\nqueue id=2 device=2
        submission id=2 process=1 queue=2 start_ns=10s duration_ns=1us
        dispatch submission=2 queue=2 kernel=1 start_ns=11s duration_ns=5s";
    assert_says(
        &run(10, 30, second),
        "; before and after, the GPUs had no work.",
    );
}

#[test]
fn a_device_whose_work_has_no_times_is_not_unused() {
    let findings = findings_of(
        "manifest sampling_mode=dispatch
         device id=1 process=1 name=A uuid=aa\ndevice id=2 process=1 name=B uuid=bb
         queue id=1 device=1\nqueue id=2 device=2
         submission id=1 process=1 queue=1 start_ns=0 duration_ns=1us
         submission id=2 process=1 queue=2 start_ns=0 duration_ns=1us
         dispatch submission=1 queue=1 kernel=1 start_ns=1ms duration_ns=100ms
         dispatch submission=2 queue=2 kernel=1",
    );
    assert_eq!(sentences(&findings, HeadlineKind::UnusedDevice).len(), 0);
}

#[test]
fn a_power_limit_is_told_where_it_lowered_the_clocks_and_heat_always() {
    let run = |rows: &str| {
        findings_of(&format!(
            "manifest start_ns=0 end_ns=10s
             device id=1 uuid=aa name=GPU\nqueue id=1 device=1
             submission id=1 process=1 queue=1 start_ns=0s duration_ns=1us
             dispatch submission=1 queue=1 kernel=1 start_ns=100ms duration_ns=9800ms
             counter id=1 name=\"clock limited: power cap\" unit=percent device=1 source=test
             counter id=2 name=\"SM clock\" unit=hertz device=1 source=test
             counter id=3 name=\"clock limited: hardware thermal slowdown\" unit=percent device=1 source=test
             {rows}"
        ))
    };
    let capped = "counter_value counter=1 start_ns=0s value=0\ncounter_value counter=1 start_ns=5s value=100";
    let clocks = |mhz: i64| {
        format!(
            "{capped}\ncounter_value counter=2 start_ns=0s value=1980e6\ncounter_value counter=2 start_ns=5s value={mhz}e6"
        )
    };
    let slowed = run(&clocks(1_200));
    let told = sentences(&slowed, HeadlineKind::Condition);
    assert_says(told[0], "at its power limit for 4.90 s");
    assert_says(told[0], "up to 1.65 times as long");
    assert_eq!(run(&clocks(1_900)).headline, []);
    assert_eq!(run(capped).headline, []);
    let hot = run("counter_value counter=3 start_ns=5s value=100");
    assert_says(
        sentences(&hot, HeadlineKind::Condition)[0],
        "because of heat",
    );
}
