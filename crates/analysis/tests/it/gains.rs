//! Tests the ranking of changes against an emulated machine in virtual time: the gains must be those that the machine shows when the
//! program is changed so.

use crate::emulated::Act::{self, Host, WaitQueue};
use crate::emulated::{CALL_NS, GAP_NS, Machine, SAME, kernel, run};
use gapscope_analysis::first_step::{Cost, first_step};
use gapscope_analysis::gaps::{AdviceSubject, Cause, GapFinder};
use gapscope_analysis::what_if::gains::Gains;
use gapscope_analysis::what_if::{Answer, Extent, PathPart, WhatIf};
use gapscope_analysis::{Findings, Options};
use gapscope_timeline::Timeline;
use gapscope_timeline::intervals::Interval;
use gapscope_trace::Trace;

/// Steps that wait for their kernel, with so much of the host's time between them.
fn steps(host_ns: i64, kernel_ns: i64) -> Vec<Act> {
    [Host(host_ns), kernel(0, kernel_ns), WaitQueue(0)].repeat(200)
}

fn gain(gains: &Gains, change: &str) -> Option<f64> {
    let mut all = gains.gains.iter();
    all.find(|gain| gain.change == change).map(|gain| gain.mid)
}

/// Asserts that a gain is what the machine shows, within a thousandth of the time: the ranking replays steps, the machine the run.
#[track_caller]
fn assert_gained(acts: &[Act], found: Option<f64>, machine: Machine) {
    let (_, before_ns) = run(acts, SAME);
    let (_, after_ns) = run(acts, machine);
    let expected = 1.0 - after_ns as f64 / before_ns as f64;
    let found = found.expect("a gain");
    assert!((found - expected).abs() < 1e-3, "{found} of {expected}");
}

#[test]
fn gains_are_those_of_the_machine_the_greatest_first() {
    let acts = steps(300_000, 500_000);
    let findings = Findings::new(&run(&acts, SAME).0, &Options::default());
    let gains = &findings.gains;
    let half = Machine {
        kernel: 0.5,
        ..SAME
    };
    assert_gained(&acts, gain(gains, "kernel:work=0.5x"), half);
    let mids: Vec<f64> = gains.gains.iter().map(|gain| gain.mid).collect();
    assert!(mids.is_sorted_by(|a, b| a >= b), "{mids:?}");
    for gain in &gains.gains {
        assert!(gain.low <= gain.mid && gain.mid <= gain.high, "{gain:?}");
        assert!(gain.mid >= 0.01, "{gain:?}");
    }
}

#[test]
fn the_first_step_has_the_greatest_gain_and_both_together_bring_more() {
    let acts = steps(800_000, 200_000);
    let findings = Findings::new(&run(&acts, SAME).0, &Options::default());
    let first = &findings.gains.gains[0];
    assert_eq!(first.change, "cause:host-late=0");
    assert_eq!(first.cause, Some(AdviceSubject::Idle(Cause::HostLate)));
    let idle = Machine { host: 0.0, ..SAME };
    assert_gained(&acts, Some(first.mid), idle);
    let step = first_step(&findings).expect("a first step");
    assert_eq!(step.gain.map(|gain| &gain.change), Some(&first.change));
    assert!(matches!(step.cost, Cost::Idle(total) if total.cause == Cause::HostLate));
    let joint = findings.gains.joint_gain.as_ref().expect("a joint gain");
    let both = Machine {
        host: 0.0,
        kernel: 0.5,
        ..SAME
    };
    assert_eq!(joint.changes[1], "kernel:work=0.5x");
    assert_gained(&acts, Some(joint.mid), both);
}

#[test]
fn where_the_device_is_never_late_a_faster_host_is_no_gain() {
    // The host is always far ahead: its share of the time is no gain.
    let acts = [kernel(0, 300_000), Host(100_000)].repeat(300);
    let findings = Findings::new(&run(&acts, SAME).0, &Options::default());
    let changes = findings.gains.gains.iter().map(|gain| &*gain.change);
    assert_eq!(changes.collect::<Vec<_>>(), ["kernel:work=0.5x"]);
}

#[test]
fn without_a_replay_the_reason_stands_in_place_of_the_gains() {
    let trace = Trace::from_text(
        "device id=1\nqueue id=1 device=1
        submission id=1 process=1 queue=1 thread=1 start_ns=0 duration_ns=10
        submission id=2 process=1 queue=1 thread=1 start_ns=900 duration_ns=20
        loss what=dispatches count=5 reason=test
        dispatch submission=1 queue=1 kernel=1 start_ns=100 duration_ns=100
        dispatch submission=2 queue=1 kernel=1 start_ns=1000 duration_ns=100",
    );
    let mut trace = trace.unwrap_or_else(|error| panic!("{error}"));
    trace.manifest.end_ns = 1_200;
    let findings = Findings::new(&trace, &Options::default());
    assert_eq!(findings.gains.gains, []);
    let unknown = findings.gains.unknown_because().expect("a reason");
    assert!(unknown.because.contains("lost 5 dispatches"), "{unknown:?}");
    assert_eq!(unknown.change, None);
}

#[test]
fn gains_can_be_left_out() {
    let options = Options::without_gains();
    let findings = Findings::new(&run(&steps(800_000, 200_000), SAME).0, &options);
    assert_eq!(findings.gains, Gains::default());
}

/// The path of a run, without changes.
fn unchanged(acts: &[Act]) -> Answer {
    let (trace, end_ns) = run(acts, SAME);
    let timeline = Timeline::new(&trace);
    let finder = GapFinder::new(&timeline);
    let extent = Extent {
        window: Interval::new(0, end_ns + 1),
        steps: None,
        median_ns: None,
    };
    WhatIf::new(&finder, extent).answer(&[]).unwrap()
}

fn part<'a>(answer: &'a Answer, what: &str) -> &'a PathPart {
    let mut parts = answer.path.iter();
    parts.find(|part| part.what == what).expect("a part")
}

#[test]
fn near_ties_leave_shares_open() {
    // The device needs 302 µs for each kernel, and the host 301 µs: the path runs through either.
    let acts = [Host(296_000), kernel(0, 300_000)].repeat(300);
    let tied = unchanged(&acts);
    let of_kernel = part(&tied, "kernel");
    assert!(of_kernel.share > 0.9, "{of_kernel:?}");
    assert!(of_kernel.low.unwrap() < 0.5, "{of_kernel:?}");
    assert!(of_kernel.high.unwrap() > 0.9, "{of_kernel:?}");
    let of_host = part(&tied, "host-code");
    assert!(of_host.high.unwrap() > 0.5, "{of_host:?}");
    // Where the device alone is the limit, nothing is open.
    let alone = unchanged(&[Host(100_000), kernel(0, 300_000)].repeat(300));
    let of_kernel = part(&alone, "kernel");
    assert!(of_kernel.low.unwrap() > 0.9, "{of_kernel:?}");
    let of_host = part(&alone, "host-code");
    assert!(of_host.high.unwrap() < 0.01, "{of_host:?}");
}

#[test]
fn kernels_have_the_time_until_the_host_comes() {
    // Nothing waits for the kernels: each ends 496 µs before the next is submitted.
    let acts = [Host(796_000), kernel(0, 300_000)].repeat(300);
    let late = unchanged(&acts);
    let [slack] = &late.slack[..] else {
        panic!("{:?}", late.slack)
    };
    assert_eq!((&*slack.kernel, slack.launches), ("work", 300));
    let period_ns = 796_000 + CALL_NS;
    let free_ns = period_ns - 300_000 - GAP_NS;
    assert!(
        (slack.slack_ns - free_ns).abs() < 10_000,
        "{slack:?} of {free_ns}"
    );
    let held = unchanged(&steps(100_000, 300_000));
    assert_eq!(held.slack[0].slack_ns, 0, "{:?}", held.slack);
}
