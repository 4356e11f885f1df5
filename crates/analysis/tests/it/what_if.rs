//! Tests predictions against an emulated machine in virtual time: a program is run on it, its trace is replayed with a change, and
//! the program is run again with that change. Both must agree to the nanosecond.

use crate::emulated::Act::{self, Host, WaitDevice, WaitQueue};
use crate::emulated::{GAP_NS, Machine, SAME, dependent, kernel, run, transfer};
use gapscope_analysis::gaps::GapFinder;
use gapscope_analysis::steps::Step;
use gapscope_analysis::what_if::{Answer, Change, Extent, WhatIf};
use gapscope_timeline::Timeline;
use gapscope_timeline::intervals::Interval;
use gapscope_trace::Trace;
use proptest::prelude::*;

/// A part of a program that shows each delay by itself.
pub fn prologue() -> Vec<Act> {
    let mut acts = Vec::new();
    for _ in 0..12 {
        acts.extend([
            Host(50_000),
            kernel(0, 90_000),
            kernel(0, 90_000),
            WaitDevice,
        ]);
        acts.extend([
            Host(50_000),
            kernel(1, 90_000),
            kernel(1, 90_000),
            WaitDevice,
        ]);
        acts.extend([
            Host(50_000),
            kernel(0, 150_000),
            dependent(1, 40_000),
            WaitDevice,
        ]);
        acts.extend([
            Host(50_000),
            kernel(1, 150_000),
            dependent(0, 40_000),
            WaitDevice,
        ]);
        acts.extend([
            kernel(0, 60_000),
            WaitQueue(0),
            kernel(1, 60_000),
            WaitQueue(1),
        ]);
    }
    acts
}

pub fn answer(trace: &Trace, end_ns: i64, changes: &[&str]) -> Answer {
    let timeline = Timeline::new(trace);
    let extent = Extent {
        window: Interval::new(0, end_ns + 1),
        steps: None,
        median_ns: None,
    };
    let changes: Vec<Change> = changes.iter().map(|c| Change::read(c).unwrap()).collect();
    WhatIf::new(&GapFinder::new(&timeline), extent)
        .answer(&changes)
        .unwrap()
}

/// Asserts that a change brings in the replay what it brings on the machine.
#[track_caller]
fn assert_predicted(acts: &[Act], changes: &[&str], machine: Machine) {
    let (trace, end_ns) = run(acts, SAME);
    let (_, expected_ns) = run(acts, machine);
    let found = answer(&trace, end_ns, changes);
    assert_eq!(found.recorded_ns, end_ns, "{changes:?}");
    assert_eq!(found.refused, [], "{changes:?}");
    let times = found.changed_ns.unwrap();
    assert_eq!(times.mid, expected_ns, "{changes:?} of {end_ns}");
    assert!((times.low..=times.high).contains(&expected_ns), "{times:?}");
}

/// Steps that wait for each kernel.
fn waited() -> Vec<Act> {
    let step = [Host(400_000), kernel(0, 600_000), WaitQueue(0)];
    [prologue(), step.repeat(100)].concat()
}

/// Steps in which the host runs ahead.
fn ahead() -> Vec<Act> {
    let step = [Host(20_000), kernel(0, 300_000)];
    [prologue(), step.repeat(100), vec![WaitDevice]].concat()
}

#[test]
fn with_nothing_changed_a_run_is_as_recorded() {
    for acts in [waited(), ahead()] {
        assert_predicted(&acts, &[], SAME);
    }
}

#[test]
fn a_faster_kernel_helps_where_it_is_waited_for() {
    let machine = Machine {
        kernel: 0.5,
        ..SAME
    };
    assert_predicted(&waited(), &["kernel:work=0.5x"], machine);
    assert_predicted(&ahead(), &["kernel:wor*=0.5x"], machine);
}

#[test]
fn a_faster_host_helps_nobody_who_runs_ahead() {
    let machine = Machine { host: 0.25, ..SAME };
    assert_predicted(&waited(), &["host=0.25x"], machine);
    assert_predicted(&ahead(), &["host=0.25x"], machine);
}

#[test]
fn a_slower_kernel_makes_the_device_the_limit() {
    let step = [Host(500_000), kernel(0, 300_000)];
    let acts = [prologue(), step.repeat(100), vec![WaitDevice]].concat();
    for factor in [0.5, 2.0, 4.0] {
        let machine = Machine {
            kernel: factor,
            ..SAME
        };
        assert_predicted(&acts, &[&format!("device={factor}x")], machine);
    }
}

#[test]
fn waiting_less_often_lets_the_host_run_ahead() {
    let machine = Machine {
        wait_each: 10,
        ..SAME
    };
    assert_predicted(&waited(), &["wait=each10"], machine);
}

#[test]
fn reading_less_often_lets_the_host_run_ahead() {
    let step = [
        Host(100_000),
        kernel(0, 300_000),
        Act::Read {
            queue: 0,
            ns: 4_000,
        },
    ];
    let acts = [prologue(), step.repeat(100)].concat();
    let machine = Machine {
        read_each: 10,
        ..SAME
    };
    assert_predicted(&acts, &["transfer:d2h=each10"], machine);
}

#[test]
fn transfers_of_two_kinds_are_left_out_together() {
    let step = [
        transfer(0, 50_000),
        kernel(0, 300_000),
        Act::Read {
            queue: 0,
            ns: 4_000,
        },
    ];
    let acts = [prologue(), step.repeat(60)].concat();
    let (trace, end_ns) = run(&acts, SAME);
    let left = |changes: &[&str]| answer(&trace, end_ns, changes).changed_ns.unwrap().mid;
    let (one, other) = (
        left(&["transfer:d2h=each10"]),
        left(&["transfer:h2d=each10"]),
    );
    let both = left(&["transfer:d2h=each10", "transfer:h2d=each10"]);
    assert!(both < one.min(other), "{both} of {one} and {other}");
}

#[test]
fn a_faster_kernel_helps_where_the_queue_is_full() {
    let acts = [
        prologue(),
        [kernel(0, 30_000)].repeat(400),
        vec![WaitDevice],
    ]
    .concat();
    let full = Machine {
        queue_size: 50,
        ..SAME
    };
    let (trace, end_ns) = run(&acts, full);
    let half = Machine {
        kernel: 0.5,
        ..full
    };
    let (_, expected_ns) = run(&acts, half);
    let found = answer(&trace, end_ns, &["kernel:work=0.5x"]);
    assert_eq!(found.refused, []);
    assert_eq!(found.changed_ns.unwrap().mid, expected_ns);
}

#[test]
fn calls_take_as_long_as_is_said() {
    let step = [kernel(0, 4_000)];
    let acts = [prologue(), step.repeat(500), vec![WaitDevice]].concat();
    let machine = Machine { call: 0.2, ..SAME };
    assert_predicted(&acts, &["call:launch=1us"], machine);
    assert_predicted(&acts, &["launch=0.2x"], machine);
}

#[test]
fn queues_that_wait_for_each_other_are_told_from_such_that_do_not() {
    let step = [dependent(0, 300_000), dependent(1, 200_000), WaitDevice];
    let acts = [prologue(), step.repeat(60)].concat();
    let machine = Machine {
        kernel: 0.5,
        ..SAME
    };
    assert_predicted(&acts, &["kernel:*=0.5x"], machine);
    let machine = Machine {
        depends: false,
        ..SAME
    };
    // Kernels that share a device are not foreseen, so that the answer is refused; here they do not slow each other.
    let (trace, end_ns) = run(&acts, SAME);
    let (_, expected_ns) = run(&acts, machine);
    let timeline = Timeline::new(&trace);
    let extent = Extent {
        window: Interval::new(0, end_ns + 1),
        steps: None,
        median_ns: None,
    };
    let change = Change::read("queues=independent").unwrap();
    let found_ns = WhatIf::new(&GapFinder::new(&timeline), extent).replayed_ns(&[change]);
    assert_eq!(found_ns, Ok(expected_ns));
}

#[test]
fn transfers_are_changed_by_their_kind() {
    let step = [
        Host(10_000),
        transfer(0, 400_000),
        kernel(0, 100_000),
        WaitQueue(0),
    ];
    let acts = [prologue(), step.repeat(60)].concat();
    let machine = Machine {
        transfer: 0.5,
        ..SAME
    };
    assert_predicted(&acts, &["transfer:h2d=0.5x"], machine);
    let (trace, end_ns) = run(&acts, SAME);
    let timeline = Timeline::new(&trace);
    let extent = Extent {
        window: Interval::new(0, end_ns + 1),
        steps: Some(60),
        median_ns: None,
    };
    let other = Change::read("transfer:d2h=0").unwrap();
    let problem = WhatIf::new(&GapFinder::new(&timeline), extent)
        .answer(&[other])
        .unwrap_err();
    assert_eq!(problem, "nothing in the run is `transfer:d2h=0`");
}

#[test]
fn overlapped_transfers_take_the_longer_of_both() {
    let step = [transfer(0, 400_000), kernel(0, 500_000)];
    let acts = [prologue(), step.repeat(100), vec![WaitDevice]].concat();
    let (trace, end_ns) = run(&acts, SAME);
    let found = answer(&trace, end_ns, &["transfer=overlap"]);
    let saved_ns = found.recorded_ns - found.changed_ns.unwrap().mid;
    // All transfers but the first run beside a kernel.
    let expected_ns = 99 * (400_000 + GAP_NS);
    assert!((saved_ns - expected_ns).abs() < 500_000, "{saved_ns}");
}

fn act() -> impl Strategy<Value = Act> {
    prop_oneof![
        (0i64..400_000).prop_map(Host),
        (0usize..2, 1_000i64..400_000, any::<bool>(), any::<bool>()).prop_map(
            |(queue, ns, transfer, depends)| Act::Submit {
                queue,
                ns,
                transfer,
                depends
            }
        ),
        (0usize..2).prop_map(WaitQueue),
        Just(WaitDevice),
    ]
}

proptest! {
    /// With nothing changed the replay is the recording, and more time never makes a run shorter.
    #[test]
    fn a_replay_is_exact_and_monotone(acts in prop::collection::vec(act(), 1..80), factor in 1.0f64..4.0) {
        let (trace, end_ns) = run(&acts, SAME);
        let timeline = Timeline::new(&trace);
        let extent = Extent { window: Interval::new(0, end_ns + 1), steps: None, median_ns: None };
        let finder = GapFinder::new(&timeline);
        let whole = WhatIf::new(&finder, extent);
        let length = |text: &str| whole.replayed_ns(&[Change::read(text).unwrap()]);
        let unchanged = whole.replayed_ns(&[]).unwrap();
        let submits = acts.iter().any(|act| matches!(act, Act::Submit { .. }));
        if submits {
            prop_assert_eq!(unchanged, end_ns);
        }
        for target in ["device", "host", "launch"] {
            if let Ok(longer) = length(&format!("{target}={factor}x")) {
                prop_assert!(longer >= unchanged, "{}", target);
            }
        }
    }

    /// Whatever a program does after it has shown its delays, a change brings what it brings on the machine.
    #[test]
    fn any_program_is_predicted(
        acts in prop::collection::vec(act(), 1..60),
        kernel in 0.25f64..3.0,
        host in 0.25f64..3.0,
    ) {
        let acts = [prologue(), acts, vec![WaitDevice]].concat();
        let (trace, end_ns) = run(&acts, SAME);
        let machine = Machine { kernel, host, ..SAME };
        let (_, expected_ns) = run(&acts, machine);
        let timeline = Timeline::new(&trace);
        let extent = Extent { window: Interval::new(0, end_ns + 1), steps: None, median_ns: None };
        let changes = [format!("kernel:work={kernel}x"), format!("host={host}x")];
        let changes = changes.map(|change| Change::read(&change).unwrap());
        let found = WhatIf::new(&GapFinder::new(&timeline), extent).replayed_ns(&changes).unwrap();
        let error = (found - expected_ns).abs() as f64 / expected_ns as f64;
        prop_assert!(error < 1e-4, "{} of {}", found, expected_ns);
    }
}

/// Returns the reasons why an answer is refused.
fn refusals(rows: &str, changes: &[&str]) -> Vec<String> {
    let text = format!(
        "manifest sampling_mode=dispatch\n\
         process id=1 pid=10\n\
         thread process=1 thread=7 name=main\n\
         device id=1 process=1 name=GPU uuid=aa clock.error_ns=0\n\
         queue id=1 device=1\n\
         queue id=2 device=1\n\
         kernel id=1 process=1 name=work\n{rows}"
    );
    let trace = Trace::from_text(&text).unwrap();
    let end_ns = Timeline::new(&trace).work_window().unwrap().end_ns;
    let found = answer(&trace, end_ns, changes);
    found
        .refused
        .into_iter()
        .map(|refusal| refusal.because)
        .collect()
}

/// Rows of a kernel with its launch, in microseconds.
fn launched(id: i64, queue: i64, call: [i64; 2], start: i64, duration: i64) -> String {
    format!(
        "submission id={id} process=1 queue={queue} kind=kernel thread=7 start_ns={}us duration_ns={}us function=launch\n\
         dispatch submission={id} queue={queue} kernel=1 start_ns={start}us duration_ns={duration}us\n",
        call[0], call[1]
    )
}

#[test]
fn work_that_the_host_submitted_ahead_belongs_to_its_steps() {
    let mut rows = String::new();
    for id in 1..=100 {
        rows += &launched(id, 1, [id * 100, 5], id * 1_002, 1_000);
        rows += &format!(
            "marker process=1 scope=thread label=1 thread=7 start_ns={}us duration_ns=100us\n",
            id * 100
        );
    }
    let text = format!(
        "manifest sampling_mode=dispatch\nprocess id=1 pid=10\nthread process=1 thread=7 name=main\n\
         device id=1 process=1 name=GPU uuid=aa clock.error_ns=0\nqueue id=1 device=1\nkernel id=1 process=1 name=work\n\
         label id=1 text=step\n{rows}"
    );
    let trace = Trace::from_text(&text).unwrap();
    let timeline = Timeline::new(&trace);
    let extent = Extent::from_label(&timeline, "step").unwrap();
    assert_eq!(extent.steps, Some(100));
    let changes = [Change::read("device=0.5x").unwrap()];
    let found = WhatIf::new(&GapFinder::new(&timeline), extent)
        .answer(&changes)
        .unwrap();
    assert!(
        (1_000_000..1_020_000).contains(&found.recorded_ns),
        "{found:?}"
    );
    let changed_ns = found.changed_ns.unwrap().mid;
    assert!((500_000..520_000).contains(&changed_ns), "{found:?}");
    let on_path: i64 = found.path.iter().map(|part| part.total_ns).sum();
    assert!((on_path - changed_ns).abs() < 1_000, "{found:?}");
}

#[test]
fn copies_back_from_the_device_wait_for_their_kernels() {
    let mut rows = String::new();
    for id in 1..=60 {
        let at = id * 1_000;
        rows += &launched(2 * id, 1, [at, 5], at + 10, 500);
        rows += &format!(
            "submission id={} process=1 queue=1 kind=transfer thread=7 start_ns={}us duration_ns=5us function=copy\n\
             transfer kind=device-to-host submission={} queue=1 start_ns={}us duration_ns=400us\n\
             host_call process=1 thread=7 call=wait-queue-idle queue=1 start_ns={}us duration_ns={}us result=0\n",
            2 * id + 1,
            at + 5,
            2 * id + 1,
            at + 512,
            at + 10,
            910
        );
    }
    let text = format!(
        "manifest sampling_mode=dispatch\nprocess id=1 pid=10\nthread process=1 thread=7 name=main\n\
         device id=1 process=1 name=GPU uuid=aa clock.error_ns=0\nqueue id=1 device=1\nkernel id=1 process=1 name=work\n{rows}"
    );
    let trace = Trace::from_text(&text).unwrap();
    let timeline = Timeline::new(&trace);
    let extent = Extent {
        window: Interval::new(0, 62_000_000),
        steps: None,
        median_ns: None,
    };
    let change = Change::read("transfer=overlap").unwrap();
    let problem = WhatIf::new(&GapFinder::new(&timeline), extent)
        .answer(&[change])
        .unwrap_err();
    assert_eq!(problem, "nothing in the run is `transfer=overlap`");
}

#[test]
fn a_gap_that_is_always_there_has_a_reason_that_the_trace_lacks() {
    let rows: String = (1..=60)
        .map(|id| launched(id, 1, [id, 1], id * 2_000, 1_000))
        .collect();
    let refused = refusals(&rows, &["device=0.5x"]);
    assert!(
        refused.iter().any(|text| text.contains("Queues idled")),
        "{refused:?}"
    );
}

#[test]
fn calls_that_may_have_waited_for_the_device_are_no_time_of_the_host() {
    let rows: String = (1..=60)
        .map(|id| launched(id, 1, [id * 1_000, 950], id * 1_000 + 20, 990))
        .collect();
    let refused = refusals(&rows, &["device=0.5x"]);
    assert!(
        refused.iter().any(|text| text.contains("Long calls")),
        "{refused:?}"
    );
    assert_eq!(refusals(&rows, &["launch=1x"]), [""; 0]);
}

#[test]
fn kernels_that_would_share_a_device_are_not_foreseen() {
    let step = [dependent(0, 300_000), dependent(1, 300_000)];
    let acts = [prologue(), step.repeat(60), vec![WaitDevice]].concat();
    let (trace, end_ns) = run(&acts, SAME);
    let refused = answer(&trace, end_ns, &["queues=independent"]).refused;
    assert!(
        refused[0].because.contains("beside each other"),
        "{refused:?}"
    );
}

#[test]
fn one_time_is_not_changed_twice() {
    let (trace, end_ns) = run(&waited(), SAME);
    let timeline = Timeline::new(&trace);
    let extent = Extent {
        window: Interval::new(0, end_ns + 1),
        steps: None,
        median_ns: None,
    };
    let changes = ["host=0.5x", "code:f=0"].map(|change| Change::read(change).unwrap());
    let problem = WhatIf::new(&GapFinder::new(&timeline), extent)
        .answer(&changes)
        .unwrap_err();
    assert!(problem.contains("the same time"), "{problem}");
}

#[test]
fn a_host_that_may_have_waited_without_a_call_is_not_taken_for_one_that_works() {
    let is_refused = |host_ns: i64| {
        let step = [kernel(0, 600_000), Host(host_ns)];
        let acts = [step.repeat(100), vec![WaitDevice]].concat();
        let (trace, end_ns) = run(&acts, SAME);
        let found = answer(&trace, end_ns, &["kernel:work=0.5x"]);
        (found.refused.iter()).any(|refusal| refusal.because.contains("without a call"))
    };
    // It submits again as soon as the kernel has ended.
    assert!(is_refused(620_000));
    // It submits long after that, or long before.
    assert!(!is_refused(900_000));
    assert!(!is_refused(300_000));
}

#[test]
fn a_first_step_that_was_cut_is_no_step() {
    let step = |at: i64, length_ns: i64| Step {
        start_ns: at,
        duration_ns: length_ns,
        ..Step::default()
    };
    let (trace, _) = run(&waited(), SAME);
    let timeline = Timeline::new(&trace);
    let mut steps: Vec<Step> = (1..10).map(|at| step(at * 1_000, 1_000)).collect();
    let extent = |steps: &[Step]| Extent::from_steps(&timeline, steps, None).unwrap();
    let whole = extent(&steps);
    assert_eq!((whole.steps, whole.median_ns), (Some(9), Some(1_000)));
    steps.insert(0, step(-9_000, 10_000));
    steps.push(step(10_000, 100));
    let cut = extent(&steps);
    assert_eq!((cut.window, cut.steps), (whole.window, Some(9)));
}
