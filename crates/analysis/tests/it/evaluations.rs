//! Evaluations of equal work: which are left out, which pieces lie in them, and what their spread says.

use crate::equal_work::{compared, compared_in, ratio};
use crate::program::{Program, US, assert_says};
use gapscope_analysis::equal_work::{Figure, LeftOut, Reason, WorkCost};
use gapscope_analysis::{Findings, Options};
use gapscope_timeline::Timeline;
use gapscope_timeline::bound_bytes::BindingSets;

/// A device, a kernel, and the labels `eager` and `compiled`.
fn two_labels() -> Program {
    Program::from_text(
        "manifest sampling_mode=dispatch
         process id=1 pid=10
         device id=1 process=1 uuid=aa
         queue id=1 device=1
         kernel id=1 process=1 name=work
         label id=1 text=eager
         label id=2 text=compiled",
    )
}

/// Evaluations that the host labels on its thread, each of one kernel of so many microseconds, 50 us apart; compiled after eager.
fn labelled(eager: &[i64], compiled: &[i64]) -> Program {
    let mut p = two_labels();
    let mut t = 0;
    for (label, durations) in [(1, eager), (2, compiled)] {
        for duration in durations {
            mark(&mut p, label, t, 20);
            launch(&mut p, label, t + 5, t + 10, *duration);
            t += duration + 50;
        }
    }
    p
}

/// The evaluation of a side, as the host labels it on its thread.
fn mark(p: &mut Program, label: u32, start: i64, duration: i64) {
    p.line(&format!(
        "marker process=1 label={label} scope=thread thread=7 start_ns={start}us duration_ns={duration}us"
    ));
}

/// What is said of such evaluations.
fn sentences_of(eager: &[i64], compiled: &[i64]) -> String {
    compared(&labelled(eager, compiled)).sentences.join(" ")
}

fn left_out(because: Reason, count: u64) -> [LeftOut; 1] {
    [LeftOut { because, count }]
}

/// A kernel that a call at `call` launches.
fn launch(p: &mut Program, label: u32, call: i64, start: i64, duration: i64) {
    let id = call + 1_000;
    p.line(&format!(
        "submission id={id} process=1 queue=1 kind=kernel thread=7 start_ns={call}us duration_ns=2us"
    ));
    p.call("submit", [call, call + 2]);
    p.line(&format!(
        "dispatch submission={id} queue=1 kernel=1 label={label} start_ns={start}us duration_ns={duration}us"
    ));
}

#[test]
fn one_slow_load_does_not_count() {
    // Review C6: 200 us of work in each evaluation, and a module load of 500 ms in the first of one side.
    let mut p = labelled(&[200; 10], &[200; 9]);
    let t = 5_000;
    mark(&mut p, 2, t, 500_100);
    launch(&mut p, 2, t + 5, t + 10, 100);
    p.call("load-module", [t + 110, t + 500_110]);
    launch(&mut p, 2, t + 500_110, t + 500_120, 100);
    // The side begins with it.
    let text = p.trace();
    let work = compared_in(&text);
    assert_eq!(work.after.evaluations, Some(10));
    for figure in [Figure::GpuBusy, Figure::Wall] {
        let ratio = ratio(&work, figure);
        assert_eq!(ratio.before, Some(200e3), "{figure:?}");
        assert_eq!(ratio.after, Some(200e3), "{figure:?}");
        assert_eq!(ratio.within_noise, Some(true), "{figure:?}");
    }
}

#[test]
fn the_first_evaluation_is_left_out_when_it_loads_code() {
    let mut p = labelled(&[200; 10], &[]);
    let t = 5_000;
    for turn in 0..8 {
        let t = t + turn * 1_000;
        mark(&mut p, 2, t, 900);
        launch(&mut p, 2, t + 5, t + 10, 100);
        launch(&mut p, 2, t + 700, t + 710, 100);
    }
    let without = compared(&p);
    assert_eq!(without.after.counted_evaluations, 8);
    assert!(without.after.left_out.is_empty());

    p.call("load-module", [t + 120, t + 690]);
    let with = compared(&p);
    assert_eq!(with.after.counted_evaluations, 7);
    assert_eq!(with.after.left_out, left_out(Reason::FirstUse, 1));
    let text = with.sentences.join(" ");
    let sentences_of =
        "Left out of 8 evaluations of compiled: 1 is the first and compiles or loads code.";
    assert!(text.contains(sentences_of), "{text}");

    let options = Options {
        equal_work: Some(("eager".to_owned(), "compiled".to_owned())),
        exclude_warm_up: false,
        ..Options::default()
    };
    let all = Findings::new(&p.trace(), &options).equal_work.unwrap();
    assert_eq!(all.after.counted_evaluations, 8, "--all leaves nothing out");
}

#[test]
fn evaluations_in_the_warm_up_are_left_out() {
    let mut slow = vec![900];
    slow.extend([100; 39]);
    let work = compared(&labelled(&slow, &[100; 10]));
    assert_eq!(work.before.counted_evaluations, 39);
    assert_eq!(work.before.left_out, left_out(Reason::WarmUp, 1));
    let spread = ratio(&work, Figure::GpuBusy).before_spread.unwrap();
    assert_eq!((spread.count, spread.max), (39, 100e3));
    let busy_ns = work.before.gpu_busy_ns;
    assert_eq!(busy_ns, Some((900 + 3_900) * US), "totals are of all");
}

#[test]
fn noise_is_called_noise() {
    let eager: Vec<i64> = (0..20).map(|n| 100 + n * 7 % 13).collect();
    let compiled: Vec<i64> = (0..20).map(|n| 100 + n * 5 % 13).collect();
    let work = compared(&labelled(&eager, &compiled));
    let busy = ratio(&work, Figure::GpuBusy);
    assert_eq!(busy.within_noise, Some(true));
    assert!(busy.low < Some(1.0) && busy.high > Some(1.0));
    let text = work.sentences.join(" ");
    assert!(
        text.contains("the difference is within the spread of the evaluations"),
        "{text}"
    );
    assert!(
        !text.contains("saved") && !text.contains(" than "),
        "{text}"
    );
}

#[test]
fn more_is_more() {
    for (eager, compiled, change) in [
        (
            100,
            180,
            "compiled took 1.80 times as much GPU time as eager: 180 µs an evaluation against 100 µs",
        ),
        (100, 105, "compiled took 5.0 % more GPU time than eager"),
        (119, 100, "compiled took 16.0 % less GPU time"),
        (
            120,
            100,
            "eager took 1.20 times as much GPU time as compiled: 120 µs an evaluation against 100 µs",
        ),
    ] {
        let text = sentences_of(&[eager; 8], &[compiled; 8]);
        assert_says(&text, change);
    }
}

#[test]
fn a_side_that_changes_while_it_runs_is_said_to() {
    let change = "GPU time of eager changed while it ran, from 150 µs in the first half of its evaluations to 120 µs in the second";
    let halves = |first: i64, second: i64| [[first; 10], [second; 10]].concat();
    assert_says(&sentences_of(&halves(150, 120), &[100; 10]), change);
    // Less than half of the difference.
    let steady = sentences_of(&halves(150, 145), &[100; 10]);
    assert!(!steady.contains("changed while it ran"), "{steady}");
}

#[test]
fn few_evaluations_have_no_interval_and_the_report_says_so() {
    let work = compared(&labelled(&[100; 5], &[50; 6]));
    let busy = ratio(&work, Figure::GpuBusy);
    assert_eq!(busy.ratio, Some(2.0));
    assert_eq!(busy.low, None);
    assert_eq!(busy.within_noise, None);
    let text = work.sentences.join(" ");
    assert!(
        text.contains(
            "takes 6 evaluations of each; eager has 5 evaluations, compiled has 6 evaluations"
        ),
        "{text}"
    );
    let six = compared(&labelled(&[100; 6], &[50; 6]));
    assert_eq!(ratio(&six, Figure::GpuBusy).within_noise, Some(false));
}

#[test]
fn evaluations_that_share_work_are_no_samples() {
    let mut p = labelled(&[100; 8], &[100; 8]);
    // Two markers of one command buffer without times: which of them its dispatch is in is not known.
    p.line("label id=3 text=jit");
    p.line("command_buffer id=99 queue=1 submission=1");
    for _ in 0..2 {
        p.line("marker label=3 scope=command-buffer command_buffer=99");
    }
    p.line("dispatch command_buffer=99 queue=1 kernel=1 label=3 start_ns=9ms duration_ns=1us");
    let trace = p.trace();
    let timeline = Timeline::new(&trace);
    let bindings = BindingSets::new(&trace);
    let jit = WorkCost::from_labels(&timeline, &bindings, &["jit"], None).remove(0);
    assert_eq!((jit.evaluations, jit.counted_evaluations), (Some(2), 0));
    assert_eq!(jit.left_out, left_out(Reason::Unclear, 2));
}

#[test]
fn an_evaluation_of_several_command_buffers_has_them_all() {
    let mut p = two_labels();
    let mut id = 0;
    for (label, buffers) in [(1, 3), (2, 1)] {
        for turn in 0..7 {
            let t = i64::from(label) * 100_000 + turn * 1_000;
            let submission = p.submit(1, [t - 20, t - 15]);
            for part in 0..buffers {
                id += 1;
                let t = t + part * 200;
                if part == 0 {
                    let length = buffers * 200 - 100;
                    p.line(&format!(
                        "marker label={label} scope=command-buffer queue=1 command_buffer={id} start_ns={t}us duration_ns={length}us"
                    ));
                }
                p.line(&format!(
                    "command_buffer id={id} queue=1 submission={submission} dispatches=1 label={label} start_ns={t}us duration_ns=100us"
                ));
                p.line(&format!(
                    "dispatch command_buffer={id} queue=1 kernel=1 label={label} start_ns={t}us duration_ns=100us"
                ));
            }
        }
    }
    let work = compared(&p);
    assert_eq!(work.before.command_buffer_count, Some(21));
    let figures = |figure| {
        let ratio = ratio(&work, figure);
        (ratio.before, ratio.after)
    };
    assert_eq!(figures(Figure::CommandBuffers), (Some(3.0), Some(1.0)));
    assert_eq!(figures(Figure::Submissions), (Some(1.0), Some(1.0)));
    assert_eq!(figures(Figure::GpuBusy), (Some(300e3), Some(100e3)));
    assert_eq!(figures(Figure::Wall), (Some(500e3), Some(100e3)));
    let text = work.sentences.join(" ");
    let sentences_of = "compiled needed 1 dispatch instead of 3 and 1 command buffer instead of 3 for an evaluation: what each launch and hand-over costs is saved.";
    assert!(text.contains(sentences_of), "{text}");
}

#[test]
fn each_side_has_its_verdict() {
    use gapscope_analysis::verdict::Bound;
    let program = || {
        let mut p = Program::from_text(
            "manifest sampling_mode=dispatch
             process id=1 pid=10
             thread process=1 thread=7 name=main
             device id=1 process=1 uuid=aa clock.error_ns=0
             queue id=1 device=1
             kernel id=1 process=1 name=work
             label id=1 text=eager
             label id=2 text=compiled",
        );
        for turn in 0..10 {
            launch(&mut p, 1, turn * 100 - 50, turn * 100, 100);
            let t = 5_000 + turn * 1_000;
            launch(&mut p, 2, t - 5, t, 100);
        }
        p
    };
    let work = compared(&program());
    assert_eq!(work.before.verdict, Bound::DeviceBound);
    assert_eq!(work.after.verdict, Bound::HostBound);
    assert_eq!(work.after.window.unwrap().start_ns, 5_000 * US);
    // A dispatch of one side between those of the other: of 2,000 us 1,700 are its own, of 3,000 us 2,700.
    let with = |duration: i64| {
        let mut p = program();
        launch(&mut p, 1, 4_990, 7_200, duration);
        compared(&p)
    };
    let own = with(1_700).before.verdict_sentence;
    assert!(!own.contains("Other work"), "{own}");
    let mixed = with(700);
    assert_eq!(mixed.before.verdict, Bound::Unknown);
    let mixed = mixed.before.verdict_sentence;
    assert_says(&mixed, "Other work runs in between");
}

#[test]
fn evaluations_that_do_not_follow_each_other_have_no_pace() {
    let pace = |overlapping: i64| {
        let mut p = labelled(&[100; 8], &[100; 8]);
        // Work without a label between evaluations.
        for turn in 0..overlapping {
            launch(&mut p, 9, turn * 150 + 101, turn * 150 + 111, 10);
        }
        ratio(&compared(&p), Figure::Pace).before
    };
    assert_eq!(pace(0), Some(150e3));
    // Of 8, 4 are still followed by another, and then 3.
    assert_eq!(pace(3), Some(150e3));
    assert_eq!(pace(4), None);
}
