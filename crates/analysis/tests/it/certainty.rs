//! What the clock's error leaves uncertain.

use crate::program::{Program, US, assert_says, causes};
use gapscope_analysis::Findings;
use gapscope_analysis::gaps::Cause::{self, *};
use gapscope_analysis::gaps::{Side, SideRange};
use gapscope_analysis::verdict::Bound;
use proptest::prelude::*;
use std::collections::BTreeMap;

/// A device whose times are within `error` us.
fn program(error: &str) -> Program {
    Program::from_text(&format!(
        "manifest sampling_mode=dispatch
         process id=1 pid=10
         device id=1 process=1 name=GPU uuid=aa {error}
         queue id=1 device=1
         kernel id=1 process=1 name=work"
    ))
}

fn within(error: i64) -> Program {
    program(&format!("clock.error_ns={error}us"))
}

fn uncertain(findings: &Findings, cause: Cause) -> Option<i64> {
    let mut totals = findings.idle_time.causes.iter();
    let total = totals.find(|total| total.cause == cause).unwrap();
    total.uncertain_ns.map(|ns| ns / US)
}

fn side(findings: &Findings, side: Side) -> [Option<i64>; 2] {
    let range =
        |range: &SideRange| [range.at_least_ns, range.at_most_ns].map(|ns| ns.map(|ns| ns / US));
    let mut sides = findings.idle_time.sides.iter();
    sides
        .find(|range| range.side == side)
        .map_or([Some(0); 2], range)
}

#[test]
fn only_time_within_the_error_of_an_edge_is_uncertain() {
    let mut p = within(4);
    p.dispatch(1, [-20, -10], 0, 100);
    p.dispatch(1, [150, 170], 200, 100);
    let found = p.findings();
    assert_eq!(
        causes(&found.gaps),
        [(HostLate, 50), (LaunchLatency, 30), (SubmitCall, 20)]
    );
    assert_eq!(uncertain(&found, HostLate), Some(4));
    assert_eq!(uncertain(&found, LaunchLatency), Some(4));
    // Between two times of the host.
    assert_eq!(uncertain(&found, SubmitCall), Some(0));
    // What one loses the other wins.
    assert_eq!(found.idle_time.uncertain_ns, Some(4 * US));
    assert_eq!(side(&found, Side::Host), [Some(66), Some(74)]);
    assert_eq!(side(&found, Side::Launch), [Some(26), Some(34)]);
    assert_eq!(found.idle_time.sides.len(), 2);
}

#[test]
fn a_gap_that_one_cause_explains_wherever_it_lies_is_certain() {
    // Submitted long before.
    let mut p = within(4);
    p.dispatch(1, [-20, -10], 0, 100);
    p.dispatch(1, [-9, -5], 200, 100);
    let found = p.findings();
    assert_eq!(uncertain(&found, LaunchLatency), Some(0));
    assert_eq!(found.idle_time.uncertain_ns, Some(0));
    // Inside a submission call of which both ends are far.
    let mut p = within(4);
    p.dispatch(1, [-20, -10], 0, 100);
    p.dispatch(1, [95, 120], 110, 100);
    assert_eq!(uncertain(&p.findings(), SubmitCall), Some(0));
}

#[test]
fn within_a_command_buffer_the_host_has_no_part() {
    let mut p = program("");
    let id = p.dispatch(1, [-20, -10], 0, 100);
    p.line(&format!(
        "dispatch command_buffer={id} queue=1 kernel=1 position=1 start_ns=130us duration_ns=20us"
    ));
    let found = p.findings();
    assert_eq!(causes(&found.gaps), [(WithinCommandBuffer, 30)]);
    assert_eq!(uncertain(&found, WithinCommandBuffer), Some(0));
    assert_eq!(found.idle_time.uncertain_ns, Some(0));
}

#[test]
fn without_a_known_error_nothing_that_the_host_explains_is_certain() {
    let mut p = program("");
    p.dispatch(1, [-20, -10], 0, 100);
    p.dispatch(1, [150, 170], 200, 100);
    let found = p.findings();
    assert_eq!(uncertain(&found, HostLate), None);
    assert_eq!(found.idle_time.uncertain_ns, None);
    assert_eq!(side(&found, Side::Host), [None, None]);
}

#[test]
fn a_launch_bound_loop_knows_its_side_though_hardly_its_causes() {
    // Each turn: 5 us idle, of which 1 us late, 3 us in the call and 1 us until the start; the bound is 9 us. The thread is
    // always late or in a call around that time.
    let mut p = within(9);
    for turn in 0..100 {
        let t = turn * 30;
        p.dispatch(1, [t + 26, t + 29], t + 30, 25);
    }
    let found = p.findings();
    assert_eq!(
        causes(&found.gaps),
        [(SubmitCall, 297), (HostLate, 99), (LaunchLatency, 99)]
    );
    // The start of the call, 4 us before the work, is the earliest that the gap may end: then it is all late.
    for cause in [SubmitCall, HostLate, LaunchLatency] {
        let total = found
            .idle_time
            .causes
            .iter()
            .find(|total| total.cause == cause)
            .unwrap();
        assert_eq!(total.uncertain_ns, Some(total.total_ns), "{cause}");
    }
    assert_eq!(side(&found, Side::Launch), [Some(0), Some(495)]);
    // Of a loop whose host is late for longer than the bound, its side is certain for most of the time.
    let mut p = within(9);
    for turn in 0..100 {
        let t = turn * 100;
        p.dispatch(1, [t + 96, t + 99], t + 100, 25);
    }
    let found = p.findings();
    assert_eq!(uncertain(&found, SubmitCall), Some(99 * 3));
    assert_eq!(side(&found, Side::Host), [Some(99 * 65), Some(99 * 75)]);
    assert_eq!(side(&found, Side::Launch), [Some(0), Some(99 * 10)]);
}

#[test]
fn several_gaps_add_up() {
    let mut p = within(4);
    for turn in 0..4 {
        let t = turn * 300;
        p.dispatch(1, [t + 150, t + 170], t + 200, 100);
    }
    let found = p.findings();
    assert_eq!(uncertain(&found, HostLate), Some(3 * 4));
    assert_eq!(found.idle_time.uncertain_ns, Some(3 * 4 * US));
    let device = &found.idle_time.devices[0];
    assert_eq!(device.causes, found.idle_time.causes);
}

/// What the host does before a submission: calls with their start and end.
#[derive(Debug, Clone)]
struct Host {
    calls: Vec<(&'static str, i64, i64)>,
    submit: [i64; 2],
    gap: [i64; 2],
    error: i64,
}

impl Host {
    /// Its causes where the device's times are later by `shift` us and have this error.
    fn findings(&self, shift: i64, error: i64) -> Findings {
        let mut p = within(error);
        let [start, end] = self.gap.map(|us| us + shift);
        p.dispatch(1, [-1000, -990], -500 + shift, start + 500 - shift);
        for (call, from, to) in &self.calls {
            p.call(call, [*from, *to]);
        }
        p.dispatch(1, self.submit, end, 10);
        p.findings()
    }
}

fn host() -> impl Strategy<Value = Host> {
    let calls = proptest::collection::vec(
        (
            prop_oneof![
                Just("allocate-memory"),
                Just("create-pipelines"),
                Just("present")
            ],
            1i64..9,
            1i64..9,
        ),
        0..8,
    );
    (calls, 0i64..8, 1i64..20, 60i64..110, 1i64..30, 0i64..20).prop_map(
        |(calls, rest, call, start, length, error)| {
            let mut at = 70;
            let mut placed = Vec::new();
            for (name, before, took) in calls {
                placed.push((name, at + before, at + before + took));
                at += before + took;
            }
            let submit = [at + rest, at + rest + call];
            let end = (start + length).max(submit[0]);
            Host {
                calls: placed,
                submit,
                gap: [start, end],
                error,
            }
        },
    )
}

proptest! {
    // Each case analyses up to forty traces.
    #![proptest_config(ProptestConfig::with_cases(50))]
    #[test]
    fn it_is_what_moving_the_device_changes(host in host()) {
        let found = host.findings(0, host.error);
        let totals = |findings: &Findings| -> BTreeMap<Cause, i64> {
            findings.gaps.iter().map(|total| (total.cause, total.total_ns / US)).collect()
        };
        let now = totals(&found);
        let earliest = (-host.error).max(host.submit[0] - host.gap[1]);
        let moved: Vec<_> = (earliest..=host.error).map(|shift| totals(&host.findings(shift, 0))).collect();
        for total in &found.idle_time.causes {
            let least = moved.iter().map(|causes| causes.get(&total.cause).copied().unwrap_or(0)).min();
            prop_assert_eq!(total.uncertain_ns.map(|ns| ns / US), least.map(|least| now[&total.cause] - least), "{}", total.cause);
        }
        let other = |causes: &BTreeMap<Cause, i64>| -> i64 {
            now.iter().map(|(cause, us)| (us - causes.get(cause).copied().unwrap_or(0)).max(0)).sum()
        };
        prop_assert_eq!(found.idle_time.uncertain_ns.map(|ns| ns / US), moved.iter().map(other).max());
        for of in [Side::Host, Side::Launch] {
            let sum = |causes: &BTreeMap<Cause, i64>| -> i64 {
                causes.iter().filter(|(cause, _)| cause.side() == of).map(|(_, us)| us).sum()
            };
            let sums = || moved.iter().map(sum);
            prop_assert_eq!(side(&found, of), [sums().min(), sums().max()], "{:?}", of);
        }
    }
}

/// Turns of 500 us: a kernel of `busy` us, and behind it a function of the host and a kernel of 50 us at the end.
fn behind_functions(busy: i64, is_timed: bool) -> Findings {
    let mut p = Program::new();
    for turn in 0..20 {
        let t = turn * 500;
        p.launch(1, [t - 20, t - 15], t, busy);
        p.mark(1, "host-function", [t - 15, t - 12]);
        p.launch(1, [t - 12, t - 8], t + 440, 50);
        if is_timed {
            p.line(&format!(
                "host_call process=1 call=host-function queue=1 start_ns={}us duration_ns={}us",
                t + busy + 5,
                430 - busy
            ));
        }
    }
    p.findings()
}

#[test]
fn functions_of_the_host_without_times_took_at_most_the_time_behind_them() {
    let timed = behind_functions(50, true);
    assert_eq!(timed.verdict, Bound::HostBound);
    assert!(!timed.verdict_evidence.sentence.contains("at most"));
    let untimed = behind_functions(50, false);
    assert_eq!(untimed.verdict, Bound::Unknown);
    let evidence = &untimed.verdict_evidence;
    assert_says(&evidence.sentence, "waited for the host for at most 7");
    assert_says(
        &evidence.sentence,
        "functions of the host whose times are not recorded",
    );
    assert_says(&evidence.parts[0].sentence, "for at most ");
    assert_says(untimed.advice_on(Cause::HostFunction).unwrap(), "at most");
    assert_eq!(
        untimed.idle_time.devices[0].untimed_host_function_ns,
        untimed.idle_time.untimed_host_function_ns
    );
    // Where little of the time lies behind such functions, nothing changes.
    assert_eq!(behind_functions(420, false).verdict, Bound::DeviceBound);
}

#[test]
fn advice_on_a_cause_that_the_clocks_error_leaves_open_has_a_reserve() {
    let launches = |error_us: i64| {
        let mut p = Program::from_text(&format!(
            "manifest sampling_mode=dispatch
             process id=1 pid=10
             thread process=1 thread=7 name=main
             device id=1 process=1 name=GPU uuid=aa clock.error_ns={error_us}us
             queue id=1 device=1
             kernel id=1 process=1 name=work"
        ));
        for turn in 0..200 {
            let t = turn * 140;
            p.launch(1, [t, t + 5], t + 15, 80);
        }
        p.findings()
    };
    let has_reserve = |findings: &Findings| {
        let advice = findings.advice.iter();
        let reserved = advice.map(|advice| advice.text.starts_with("if this is the cause, "));
        reserved.collect::<Vec<_>>()
    };
    assert_eq!(has_reserve(&launches(50)), [true; 3]);
    assert_eq!(has_reserve(&launches(1)), [false; 3]);
}
