//! Warm-up: what is left out, and what is not.

use crate::program::{Program, US, assert_says};
use gapscope_analysis::{Findings, Options};

/// 40 pieces of work of 100 us, one each 200 us; the first takes `first` us, and `calls` compile for the second.
fn program(first: i64, calls: &[[i64; 2]]) -> Program {
    let mut p = Program::new();
    p.dispatch(1, [-20, -10], 0, first);
    for call in calls {
        p.call("create-pipelines", *call);
    }
    for turn in 0..40 {
        let t = 1_000 + turn * 200;
        p.dispatch(1, [t - 10, t - 5], t, 100);
    }
    p
}

#[test]
fn pipelines_compiled_after_the_first_work_are_left_out() {
    let p = program(100, &[[150, 500], [600, 980]]);
    let findings = Findings::new(&p.trace(), &Options::default());
    let excluded = findings.warm_up.excluded.expect("there is warm-up");
    assert_eq!((excluded.start_ns, excluded.end_ns), (0, 1_000 * US));
    assert_eq!(findings.warm_up.compile_calls, 2);
    assert_eq!(findings.analysed_window.unwrap().start_ns, 1_000 * US);
    assert_eq!(findings.idle_time.gap_count, 39);
    assert_eq!(
        findings.kernels[0].count, 41,
        "tables are of the whole recording"
    );

    let whole = p.findings();
    assert_eq!(whole.idle_time.gap_count, 40);
    assert_eq!(
        whole.warm_up.excluded,
        Some(excluded),
        "it is still reported"
    );
}

#[test]
fn a_slow_first_dispatch_is_left_out_and_a_slightly_slow_one_is_not() {
    let slow = Findings::new(&program(301, &[]).trace(), &Options::default());
    assert_eq!(slow.warm_up.slow_first_dispatches, 1);
    assert_eq!(slow.analysed_window.unwrap().start_ns, 1_000 * US);
    assert_eq!(slow.kernels[0].first_ns, Some(301 * US));
    let quick = Findings::new(&program(300, &[]).trace(), &Options::default());
    assert_eq!(quick.warm_up.excluded, None);
}

#[test]
fn compiling_in_the_middle_is_no_warm_up() {
    let p = program(100, &[[4_000, 4_100]]);
    let findings = Findings::new(&p.trace(), &Options::default());
    assert_eq!(findings.warm_up.excluded, None);
    assert!(findings.warm_up.reason.contains("No warm-up"));
}

#[test]
fn what_would_leave_too_little_is_kept() {
    let mut p = Program::new();
    p.dispatch(1, [-20, -10], 0, 100);
    p.call("create-pipelines", [110, 400]);
    for turn in 0..3 {
        p.dispatch(1, [450, 460], 500 + turn * 1_000, 900);
    }
    let findings = Findings::new(&p.trace(), &Options::default());
    assert_eq!(findings.warm_up.excluded, None);
    assert_says(&findings.warm_up.reason, "too few");
}

#[test]
fn a_given_window_is_taken_as_it_is() {
    let options = Options {
        window: Some(gapscope_timeline::intervals::Interval::new(0, 2_000 * US)),
        ..Options::default()
    };
    let findings = Findings::new(&program(500, &[]).trace(), &options);
    assert_eq!(findings.analysed_window.unwrap().end_ns, 2_000 * US);
    assert_eq!(findings.warm_up.excluded, None);
}

#[test]
fn launches_without_command_buffers_have_a_warm_up_too() {
    let text = |loads: &str| {
        let mut text = format!(
            "manifest sampling_mode=dispatch
             process id=1 pid=10
             device id=1 process=1 api=cuda name=GPU uuid=aa clock.error_ns=0
             queue id=1 device=1
             kernel id=1 process=1 name=work
             {loads}\n"
        );
        for turn in 0..20 {
            let start = if turn == 0 { 0 } else { 1_000 + turn * 200 };
            text += &format!(
                "submission id={turn} process=1 queue=1 thread=7 start_ns={}us duration_ns=5us
                 dispatch queue=1 kernel=1 submission={turn} start_ns={start}us duration_ns=100us\n",
                start - 10
            );
        }
        gapscope_trace::Trace::from_text(&text).unwrap()
    };
    let loads =
        "host_call process=1 thread=7 call=load-module start_ns=150us duration_ns=700us count=1";
    let findings = Findings::new(&text(loads), &Options::default());
    let excluded = findings.warm_up.excluded.expect("there is warm-up");
    assert_eq!((excluded.start_ns, excluded.end_ns), (0, 1_200 * US));
    assert_eq!(findings.warm_up.command_buffer_count, 1);
    assert_eq!(findings.idle_time.gap_count, 18);
    let findings = Findings::new(&text(""), &Options::default());
    assert_eq!(findings.warm_up.excluded, None);
}

#[test]
fn what_could_show_no_warm_up_is_not_passed_off_as_none() {
    let mut trace = program(100, &[]).trace();
    let reason = |trace: &gapscope_trace::Trace| {
        let findings = Findings::new(trace, &Options::default());
        assert_eq!(findings.warm_up.excluded, None);
        findings.warm_up.reason
    };
    assert!(
        reason(&trace).contains("no code is compiled or loaded after the GPU's first work, and")
    );
    trace.tables.host_calls = Default::default();
    let without_calls = reason(&trace);
    assert_says(&without_calls, "is not in the trace");
    trace.tables.dispatches.duration_ns.change(|_| None);
    let unknown = reason(&trace);
    assert!(
        unknown.contains("No GPU work") || unknown.contains("not known"),
        "{unknown}"
    );
}

#[test]
fn what_is_compiled_later_is_not_passed_over() {
    let mut p = program(100, &[]);
    // The work lasts for 100 turns; half of them are over.
    let window = gapscope_timeline::Timeline::new(&p.trace())
        .work_window()
        .unwrap();
    let middle_us = (window.start_ns + window.end_ns) / 2_000;
    p.call("load-module", [middle_us, middle_us + 10]);
    let findings = p.findings();
    assert_eq!(
        findings.warm_up.reason,
        "No warm-up was found: code is compiled, loaded or first run after the GPU's first work (1 time), but not in the first 10.0 % of the time."
    );
}

/// Launches of one kernel of 200 us each; each has a number of workgroups, where it is known, and a duration in us.
fn sized(launches: &[(Option<u32>, i64)]) -> gapscope_trace::Trace {
    let mut text = String::from(
        "manifest sampling_mode=dispatch
         process id=1 pid=10
         device id=1 process=1 api=cuda name=GPU uuid=aa clock.error_ns=0
         queue id=1 device=1
         kernel id=1 process=1 name=work\n",
    );
    let mut start = 0;
    for (turn, (groups, duration)) in launches.iter().enumerate() {
        let size = groups.map_or_else(String::new, |groups| {
            format!("groups_x={groups} groups_y=1 groups_z=1")
        });
        text += &format!(
            "submission id={turn} process=1 queue=1 thread=7 start_ns={}us duration_ns=5us
             dispatch queue=1 kernel=1 submission={turn} {size} start_ns={start}us duration_ns={duration}us\n",
            start - 10
        );
        start += duration + 100;
    }
    gapscope_trace::Trace::from_text(&text).unwrap()
}

#[test]
fn a_first_launch_is_compared_with_launches_of_its_size_only() {
    let many = |groups: Option<u32>, duration: i64| vec![(groups, duration); 60];
    let first = |groups: Option<u32>, duration: i64, then: &[(Option<u32>, i64)]| {
        [&[(groups, duration)], then].concat()
    };
    let small = many(Some(64), 100);
    // Large launches are among the small ones, and as long as the first.
    let mut mixed = small.clone();
    for at in [5, 15, 25, 35, 45] {
        mixed[at] = (Some(4_096), 6_000);
    }
    for (name, launches, excludes) in [
        (
            "a large first launch",
            first(Some(4_096), 6_000, &small),
            false,
        ),
        (
            "large launches later, too",
            first(Some(4_096), 6_000, &mixed),
            false,
        ),
        (
            "a slow launch of the same size",
            first(Some(64), 1_000, &small),
            true,
        ),
        (
            "a slow large launch",
            first(Some(4_096), 20_000, &mixed),
            true,
        ),
        (
            "sizes are not known",
            first(None, 1_000, &many(None, 100)),
            true,
        ),
        (
            "a small first launch that is slow before large ones",
            first(
                Some(64),
                1_000,
                &[many(Some(64), 100), many(Some(4_096), 1_000)].concat(),
            ),
            true,
        ),
    ] {
        let findings = Findings::new(&sized(&launches), &Options::default());
        let warm_up = &findings.warm_up;
        assert_eq!(
            warm_up.excluded.is_some(),
            excludes,
            "{name}: {}",
            warm_up.reason
        );
    }
}
