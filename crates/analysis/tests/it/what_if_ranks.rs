//! Tests predictions of ranks that wait for each other, against emulated machines in virtual time: the error is 0.

use crate::emulated::Act::{self, Collective, Host, WaitDevice, WaitQueue};
use crate::emulated::{Machine, RanRanks, SAME, kernel, run_ranks};
use crate::what_if::prologue;
use gapscope_analysis::gaps::GapFinder;
use gapscope_analysis::what_if::{Answer, Change, Extent, RankRun, WhatIf};
use gapscope_timeline::Timeline;
use gapscope_timeline::intervals::Interval;
use proptest::prelude::*;

const CLOCK_ERROR_NS: i64 = 20_000;

/// Asks about the runs of ranks, which are replayed together.
fn asked<R>(ran: &RanRanks, clock_error_ns: i64, ask: impl Fn(&WhatIf) -> R) -> R {
    let timelines: Vec<Timeline> = ran.traces.iter().map(Timeline::new).collect();
    let finders: Vec<GapFinder> = timelines.iter().map(GapFinder::new).collect();
    let runs = finders.iter().zip(&ran.parts).zip(0..);
    let runs = runs.map(|((finder, parts), rank)| RankRun {
        rank,
        finder,
        extent: Extent {
            window: Interval::new(0, ran.end_ns + 1),
            steps: None,
            median_ns: None,
        },
        parts: parts.clone(),
        clock_error_ns,
    });
    let runs: Vec<RankRun> = runs.collect();
    ask(&WhatIf::of_ranks(&runs, Vec::new()))
}

fn read(changes: &[&str]) -> Vec<Change> {
    let changes = changes.iter();
    changes.map(|text| Change::read(text).unwrap()).collect()
}

fn answer(ran: &RanRanks, clock_error_ns: i64, changes: &[&str]) -> Answer {
    let changes = read(changes);
    asked(ran, clock_error_ns, |run| run.answer(&changes).unwrap())
}

/// Asserts that a change of ranks brings in the replay what it brings on their machines.
#[track_caller]
fn assert_predicted(programs: &[Vec<Act>], changes: &[&str], machines: &[Machine]) -> Answer {
    let same: Vec<_> = programs.iter().map(|acts| (acts.clone(), SAME)).collect();
    let ran = run_ranks(&same, 0);
    let changed = programs.iter().cloned().zip(machines.iter().copied());
    let expected_ns = run_ranks(&changed.collect::<Vec<_>>(), 0).end_ns;
    let found = answer(&ran, 0, changes);
    assert_eq!(found.refused, [], "{changes:?}");
    assert_eq!(found.recorded_ns, ran.end_ns, "{changes:?}");
    let times = found.changed_ns.unwrap();
    assert_eq!(times.mid, expected_ns, "{changes:?} of {}", ran.end_ns);
    assert!((times.low..=times.high).contains(&expected_ns), "{times:?}");
    found
}

/// Ranks whose hosts load for so long in each step, compute, and reduce; each waits for the end of the step.
fn waiting(loads: &[i64]) -> Vec<Vec<Act>> {
    let program = |load: &i64| {
        let step = [
            Host(*load),
            kernel(0, 300_000),
            Collective(100_000),
            WaitQueue(0),
        ];
        [prologue(), step.repeat(100), vec![WaitDevice]].concat()
    };
    loads.iter().map(program).collect()
}

const FASTER_HOST: Machine = Machine { host: 0.5, ..SAME };

/// Returns the machines of so many ranks, of which one is another.
fn one_changed(rank: usize, count: usize, machine: Machine) -> Vec<Machine> {
    let mut machines = vec![SAME; count];
    machines[rank] = machine;
    machines
}

#[test]
fn with_nothing_changed_the_ranks_are_as_recorded() {
    let programs = waiting(&[200_000, 800_000, 250_000]);
    let found = assert_predicted(&programs, &[], &[SAME; 3]);
    assert_eq!(found.ranks, [0, 1, 2]);
    // All ranks wait for the loader of one.
    let first = &found.path[0];
    assert_eq!(
        (first.rank, first.what),
        (Some(1), "host-code"),
        "{found:?}"
    );
    let total: i64 = found.path.iter().map(|part| part.total_ns).sum();
    assert_eq!(total, found.recorded_ns, "{found:?}");
}

#[test]
fn only_the_loader_of_the_rank_that_all_wait_for_helps() {
    let programs = waiting(&[200_000, 800_000, 250_000]);
    let found = assert_predicted(
        &programs,
        &["rank:1.host=0.5x"],
        &one_changed(1, 3, FASTER_HOST),
    );
    assert!(found.mid_gain().unwrap() > 0.25, "{found:?}");
    let found = assert_predicted(
        &programs,
        &["rank:0.host=0.5x"],
        &one_changed(0, 3, FASTER_HOST),
    );
    assert_eq!(found.mid_gain(), Some(0.0), "{found:?}");
    assert_predicted(&programs, &["host=0.5x"], &[FASTER_HOST; 3]);
}

#[test]
fn a_rank_that_becomes_the_last_is_what_the_others_then_wait_for() {
    let programs = waiting(&[600_000, 800_000]);
    let machine = Machine { host: 0.1, ..SAME };
    assert_predicted(
        &programs,
        &["rank:1.host=0.1x"],
        &one_changed(1, 2, machine),
    );
    let slower = Machine {
        kernel: 5.0,
        ..SAME
    };
    assert_predicted(
        &programs,
        &["rank:0.kernel:work=5x"],
        &one_changed(0, 2, slower),
    );
}

#[test]
fn collectives_have_a_time_of_their_own_and_waiting_is_none_of_it() {
    let programs = waiting(&[200_000, 800_000, 250_000]);
    let machine = Machine {
        collective: 0.5,
        ..SAME
    };
    assert_predicted(&programs, &["kernel:nccl*=0.5x"], &[machine; 3]);
}

#[test]
fn hosts_that_run_ahead_are_predicted() {
    let program = |ns: i64| {
        let step = [Host(20_000), kernel(0, ns), Collective(50_000)];
        [prologue(), step.repeat(100), vec![WaitDevice]].concat()
    };
    let programs = [program(300_000), program(450_000)];
    let machine = Machine {
        kernel: 0.5,
        ..SAME
    };
    assert_predicted(
        &programs,
        &["rank:1.device=0.5x"],
        &one_changed(1, 2, machine),
    );
}

#[test]
fn the_error_of_the_clocks_joins_the_interval() {
    let same = waiting(&[780_000, 800_000])
        .into_iter()
        .map(|acts| (acts, SAME));
    let ran = run_ranks(&same.collect::<Vec<_>>(), CLOCK_ERROR_NS);
    let certain = answer(&ran, 0, &["rank:1.host=0.5x"]).changed_ns.unwrap();
    let found = answer(&ran, 2 * CLOCK_ERROR_NS, &["rank:1.host=0.5x"]);
    // The other rank is as slow but for the error, so that next to nothing is gained, and it is not known how much.
    let because = found.refused.first().map(|refusal| &refusal.because);
    assert!(
        because.is_some_and(|text| text.contains("The gain lies between")),
        "{found:?}"
    );
    let wide = answer(&ran, CLOCK_ERROR_NS / 10, &["rank:1.host=0.5x"]);
    let times = wide.changed_ns.unwrap();
    assert!(times.low < certain.low, "{times:?} and {certain:?}");
}

#[test]
fn ranks_that_do_not_exist_are_named() {
    let same = waiting(&[200_000, 800_000])
        .into_iter()
        .map(|acts| (acts, SAME));
    let ran = run_ranks(&same.collect::<Vec<_>>(), 0);
    let problem = asked(&ran, 0, |run| {
        run.answer(&read(&["rank:7.host=0"])).unwrap_err()
    });
    assert_eq!(problem, "the run has no rank 7");
    let timeline = Timeline::new(&ran.traces[0]);
    let finder = GapFinder::new(&timeline);
    let extent = Extent {
        window: Interval::new(0, ran.end_ns),
        steps: None,
        median_ns: None,
    };
    let alone = WhatIf::new(&finder, extent);
    let problem = alone.answer(&read(&["rank:0.host=0"])).unwrap_err();
    assert!(problem.contains("the trace is of one process"), "{problem}");
    let refused = alone.answer(&read(&["host=0"])).unwrap().refused;
    assert!(refused[0].because.contains("communicates"), "{refused:?}");
}

#[test]
fn communication_that_was_not_matched_is_refused() {
    let same = waiting(&[200_000, 800_000])
        .into_iter()
        .map(|acts| (acts, SAME));
    let mut ran = run_ranks(&same.collect::<Vec<_>>(), 0);
    for parts in &mut ran.parts {
        parts.truncate(90);
    }
    let refused = answer(&ran, 0, &["host=0.5x"]).refused;
    assert!(
        refused[0].because.contains("could not be matched"),
        "{refused:?}"
    );
}

#[test]
fn collectives_that_wait_for_each_other_in_a_circle_are_refused() {
    let same = waiting(&[200_000, 800_000])
        .into_iter()
        .map(|acts| (acts, SAME));
    let mut ran = run_ranks(&same.collect::<Vec<_>>(), 0);
    let [a, b] = [ran.parts[0][3].collective, ran.parts[0][4].collective];
    (ran.parts[0][3].collective, ran.parts[0][4].collective) = (b, a);
    let refused = answer(&ran, 0, &["host=0.5x"]).refused;
    assert!(refused[0].because.contains("circle"), "{refused:?}");
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(48))]

    /// Whatever ranks do after they have shown their delays, a change of one brings what it brings on the machines.
    #[test]
    fn any_ranks_are_predicted(
        steps in prop::collection::vec([(0i64..400_000, 1_000i64..400_000), (0i64..400_000, 1_000i64..400_000)], 1..40),
        waits in any::<bool>(),
        factor in 0.25f64..3.0,
    ) {
        let program = |rank: usize| {
            let step = |step: &[(i64, i64); 2]| {
                let (host, device) = step[rank];
                let mut acts = vec![Host(host), kernel(0, device), Collective(60_000)];
                acts.extend(waits.then_some(WaitQueue(0)));
                acts
            };
            [prologue(), steps.iter().flat_map(step).collect(), vec![WaitDevice]].concat()
        };
        let programs = [program(0), program(1)];
        let ran = run_ranks(&programs.clone().map(|acts| (acts, SAME)), 0);
        let machine = Machine { kernel: factor, host: factor, ..SAME };
        let [first, second] = programs;
        let expected_ns = run_ranks(&[(first, SAME), (second, machine)], 0).end_ns;
        let changes = [format!("rank:1.kernel:work={factor}x"), format!("rank:1.host={factor}x")];
        let changes = changes.map(|change| Change::read(&change).unwrap());
        let found = asked(&ran, 0, |run| [run.replayed_ns(&[]).unwrap(), run.replayed_ns(&changes).unwrap()]);
        prop_assert_eq!(found[0], ran.end_ns);
        let error = (found[1] - expected_ns).abs() as f64 / expected_ns as f64;
        prop_assert!(error < 1e-4, "{} of {}", found[1], expected_ns);
    }
}
