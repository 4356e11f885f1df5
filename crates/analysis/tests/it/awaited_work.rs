//! Ends of work that come after the host knew of them: waits, copies that wait, and command buffers that were seen to have
//! finished.

use crate::program::{US, assert_says, causes, findings_of};
use gapscope_analysis::Findings;
use gapscope_analysis::contradictions::ContradictionKind::{self, *};
use gapscope_analysis::gaps::Cause::{self, *};
use gapscope_analysis::gaps::UnknownReason;
use gapscope_analysis::headline::HeadlineKind;
use gapscope_analysis::verdict::Bound;

const HEAD: &str = "manifest sampling_mode=dispatch
     process id=1 pid=10 hook=API start_ns=0
     thread process=1 thread=7 name=main
     device id=1 process=1 api=API name=GPU uuid=aa clock.error_ns=1us
     queue id=1 device=1\nqueue id=2 device=1
     kernel id=1 process=1 name=work\n";

fn trace(api: &str, rows: &str) -> Findings {
    findings_of(&(HEAD.replace("API", api) + rows))
}

/// Rows of a kernel that is launched by itself, by a call of 5 us.
fn launch(id: i64, call: i64, [start, length]: [i64; 2]) -> String {
    format!(
        "submission id={id} process=1 queue=1 thread=7 start_ns={call}us duration_ns=5us kind=kernel
         dispatch submission={id} queue=1 kernel=1 start_ns={start}us duration_ns={length}us\n"
    )
}

fn gaps(findings: &Findings) -> Vec<(Cause, i64)> {
    causes(&findings.gaps)
}

fn contradictions(findings: &Findings) -> Vec<(ContradictionKind, u64)> {
    let all = findings.contradictions.iter();
    all.map(|row| (row.kind, row.count)).collect()
}

/// Turns of a kernel, a wait for it and 60 us of host code; device times are late by `late` us. The waits have `columns`, in which `TURN` is
/// the id of the kernel's submission.
fn turns(columns: &str, late: i64, also: &str) -> Findings {
    let mut rows = also.to_owned();
    for turn in 0..20 {
        let at = turn * 175;
        rows += &launch(turn + 1, at, [at + 10 + late, 100]);
        rows += &format!(
            "host_call process=1 thread=7 {} start_ns={}us duration_ns=109us\n",
            columns.replace("TURN", &(turn + 1).to_string()),
            at + 6
        );
    }
    trace("cuda", &rows)
}

#[test]
fn a_wait_that_returns_before_its_work_ends_leaves_the_start_of_the_next_unknown() {
    for call in ["wait-queue-idle", "wait-device-idle"] {
        let wait = format!("call={call} count=1");
        let right = turns(&wait, 0, "");
        let causes: Vec<_> = gaps(&right).into_iter().map(|(cause, _)| cause).collect();
        assert_eq!(causes, [AfterHostWait, SubmitCall, LaunchLatency]);
        let off = turns(&wait, 194, "");
        assert_eq!(gaps(&off), [(Unknown, 19 * 75)], "{call}");
        let reasons = &off.idle_time.unknown_reasons;
        assert_eq!(reasons[0].reason, UnknownReason::Contradiction);
        assert_eq!(reasons[0].total_ns, 19 * 75 * US);
        assert_says(off.unknown_because().unwrap(), "contradict each other");
        // By less than the gap, what the host did is known, and what came after is not.
        let some = turns(&wait, 30, "");
        assert_eq!(
            gaps(&some),
            [
                (AfterHostWait, 19 * 35),
                (Unknown, 19 * 35),
                (SubmitCall, 19 * 5)
            ]
        );
    }
}

#[test]
fn verdict_and_headline_believe_the_same_waits() {
    let other_device = "device id=2 process=1 api=cuda name=GPU uuid=bb clock.error_ns=1us\n";
    let other_queue = "queue id=3 device=1\n".to_owned()
        + "submission id=99 process=1 queue=2 thread=7 start_ns=-90us duration_ns=5us kind=kernel
           dispatch submission=99 queue=2 kernel=1 start_ns=-80us duration_ns=5us\n";
    let other_context = "queue id=3 device=1 family=5\n";
    for (columns, also, is_awaited) in [
        ("call=wait-queue-idle queue=1", "", true),
        ("call=wait-queue-idle queue=1 result=-2147483648", "", true),
        ("call=wait-queue-idle queue=1 count=3", "", true),
        ("call=wait-queue-idle queue=1 result=2", "", false),
        // Of an unknown queue, where there is one to wait for, and where there are two.
        ("call=wait-queue-idle", "", true),
        ("call=wait-queue-idle", &other_queue, false),
        // Of another queue, which has no work.
        ("call=wait-queue-idle queue=2", "", false),
        ("call=wait-queue-idle queue=77", "", false),
        ("call=wait-device-idle", "", true),
        ("call=wait-device-idle", &other_queue, true),
        ("call=wait-device-idle", other_device, false),
        ("call=wait-device-idle", other_context, false),
        // It is not known when the event was recorded, or which submission signals the fence.
        ("call=wait-event queue=1", "", false),
        ("call=wait-fences", "", false),
        ("call=wait-semaphores queue=1", "", false),
        // The trace names the work.
        ("call=wait-event waits_for=TURN", "", true),
        ("call=wait-fences waits_for=TURN", &other_queue, true),
        ("call=wait-event waits_for=TURN result=2", "", false),
        ("call=wait-event waits_for=99", &other_queue, false),
    ] {
        let findings = turns(columns, 194, also);
        let expected = if is_awaited {
            vec![(EndsAfterWait, 20)]
        } else {
            vec![]
        };
        assert_eq!(contradictions(&findings), expected, "{columns} {also}");
        let reasons = findings.idle_time.unknown_reasons.iter();
        let mut reasons = reasons.map(|total| total.reason);
        let is_unknown = reasons.any(|reason| reason == UnknownReason::Contradiction);
        assert_eq!(is_unknown, is_awaited, "{columns} {also}");
    }
}

/// Turns of a copy, which ends `late` us after the call that makes it has returned.
fn copies(kind: &str, memory: &str, call: &str, late: i64) -> Findings {
    let mut rows = String::new();
    for turn in 0..20 {
        let (id, at) = (turn + 1, turn * 1_000);
        rows += &format!(
            "submission id={id} process=1 queue=1 thread=7 start_ns={at}us duration_ns=100us kind=transfer
             host_call process=1 thread=7 call={call} queue=1 start_ns={at}us duration_ns=100us
             transfer submission={id} queue=1 kind={kind} host_memory={memory} start_ns={}us duration_ns=50us\n",
            at + 50 + late
        );
    }
    trace("cuda", &rows)
}

#[test]
fn a_copy_that_waits_ends_before_its_call_returns() {
    let early = [(EndsAfterWait, 20)].as_slice();
    for (kind, memory, call, late, expected) in [
        (
            "device-to-host",
            "pageable",
            "copy-and-wait",
            0,
            [].as_slice(),
        ),
        ("device-to-host", "pageable", "copy-and-wait", 90, early),
        ("device-to-host", "pinned", "copy-and-wait", 90, early),
        ("host-to-device", "pinned", "copy-and-wait", 90, early),
        // The call has copied the data to a buffer of the driver.
        ("host-to-device", "pageable", "copy-and-wait", 90, &[]),
        ("copy", "device", "copy-and-wait", 90, &[]),
        // An asynchronous copy.
        ("device-to-host", "pinned", "other-call", 90, &[]),
    ] {
        let findings = copies(kind, memory, call, late);
        assert_eq!(
            contradictions(&findings),
            expected,
            "{kind} {memory} {call} {late}"
        );
    }
}

/// Turns of a command buffer from 30 to 430 us, which was seen to have finished at `seen`, and 600 us of host code.
fn seen_at(seen: i64) -> Findings {
    let mut rows = String::new();
    for turn in 0..50 {
        let (id, at) = (turn + 1, turn * 1_000);
        let [start, seen] = [30, seen].map(|time| at + time);
        rows += &format!(
            "submission id={id} process=1 queue=1 thread=7 start_ns={at}us duration_ns=20us command_buffers=1 kind=command-buffers
             command_buffer id={id} process=1 queue=1 submission={id} dispatches=1 timing=measured seen_ns={seen}us start_ns={start}us duration_ns=400us
             dispatch command_buffer={id} queue=1 kernel=1 start_ns={start}us duration_ns=400us
             host_call process=1 thread=7 call=wait-fences start_ns={}us duration_ns={}us\n",
            at + 21,
            seen - at - 21
        );
    }
    trace("vulkan", &rows)
}

#[test]
fn a_command_buffer_that_was_seen_to_have_finished_had_ended() {
    // As after a wait for its fence.
    assert_eq!(contradictions(&seen_at(431)), []);
    assert_eq!(contradictions(&seen_at(430)), []);
    let off = seen_at(236);
    assert_eq!(contradictions(&off), [(EndsAfterSeen, 50)]);
    assert_says(
        &off.headline[0].sentence,
        "50 of 50 command buffers seem to end after they were seen to have finished, by 194 µs in the median",
    );
    let reasons = &off.idle_time.unknown_reasons;
    assert_eq!(reasons[0].reason, UnknownReason::Contradiction);
}

/// Ten kernels every 400 us, of which `misplaced` have device times that are off by `off` us, without a stated clock error.
fn misplaced(misplaced: i64, off: i64) -> Findings {
    let mut rows = String::new();
    for turn in 0..10 {
        let at = turn * 400;
        let off = if turn < misplaced { off } else { 0 };
        rows += &launch(turn + 1, at, [at + 10 + off, 80]);
    }
    findings_of(
        &(HEAD
            .replace("API", "cuda")
            .replace(" clock.error_ns=1us", "")
            + &rows),
    )
}

#[test]
fn contradictions_above_what_the_verdict_rests_on_leave_it_unknown() {
    let right = misplaced(0, 0);
    assert_eq!(right.verdict, Bound::HostBound);
    assert!(!right.advice[0].text.starts_with("if "));
    // Times of 0 among times since an epoch.
    for wrong in [misplaced(2, -6_543_210_000), misplaced(1, -2_000_000)] {
        assert_eq!(wrong.verdict, Bound::Unknown);
        assert_eq!(wrong.headline[0].kind, HeadlineKind::Contradiction);
        assert_says(&wrong.verdict_evidence.sentence, "contradict each other");
        assert_says(&wrong.advice[0].text, "if this is the cause");
    }
}
