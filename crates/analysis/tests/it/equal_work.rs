//! Equal work: eager against compiled.

use crate::program::{Program, US};
use gapscope_analysis::bound_bytes::BindingSets;
use gapscope_analysis::equal_work::{
    Basis, Figure, LeftOut, Ratio, Reason, WorkComparison, WorkCost, compare,
};
use gapscope_analysis::{Findings, Options, Timeline};
use gapscope_trace::Trace;

const N_BYTES: u64 = 4_000_000;

/// Evaluations of a chain of four operations: eager with four dispatches, then compiled with one.
fn fusion(evaluations: i64) -> Program {
    let mut p = Program::of(
        "manifest sampling_mode=dispatch
         device id=1 name=GPU uuid=aa
         queue id=1 device=1
         kernel id=1 name=sin
         kernel id=2 name=fused
         label id=1 text=eager
         label id=2 text=compiled
         label id=3 text=sin parent=1",
    );
    for (id, access) in [(1, "read"), (2, "write")] {
        p.line(&format!("buffer id={id} device=1 bytes={N_BYTES}"));
        p.line(&format!(
            "binding id=1 binding={id} buffer={id} bytes={N_BYTES} access={access}"
        ));
    }
    let mut t = 0;
    for (label, inner, dispatches) in [(1, 3, 4), (2, 2, 1)] {
        for _ in 0..evaluations {
            let id = p.submit(1, [t - 20, t - 15]);
            p.line(&format!(
                "marker label={label} scope=command-buffer command_buffer={id}"
            ));
            let duration = dispatches * 100;
            p.line(&format!(
                "command_buffer id={id} queue=1 submission={id} dispatches={dispatches} start_ns={t}us duration_ns={duration}us"
            ));
            for _ in 0..dispatches {
                p.line(&format!(
                    "dispatch command_buffer={id} queue=1 kernel={} label={inner} bindings=1 start_ns={t}us duration_ns=100us",
                    if dispatches == 4 { 1 } else { 2 }
                ));
                t += 100;
            }
            t += 50;
        }
    }
    p
}

fn compared(p: &Program) -> WorkComparison {
    compared_in(&p.trace())
}

fn ratio(work: &WorkComparison, figure: Figure) -> &Ratio {
    let mut ratios = work.ratios.iter();
    ratios.find(|ratio| ratio.figure == figure).unwrap()
}

fn compared_in(trace: &Trace) -> WorkComparison {
    let options = Options {
        equal_work: Some(("eager".to_owned(), "compiled".to_owned())),
        ..Options::default()
    };
    Findings::of(trace, &options)
        .equal_work
        .expect("both labels have work")
}

#[test]
fn compiled_runs_a_quarter_of_the_dispatches_and_bytes_in_a_quarter_of_the_time() {
    let work = compared(&fusion(10));
    assert!(work.per_evaluation);
    assert_eq!(work.before.evaluations, Some(10));
    assert_eq!(
        (work.before.dispatch_count, work.after.dispatch_count),
        (Some(40), Some(10))
    );
    assert_eq!(work.before.bound_read_bytes, Some(40 * N_BYTES));
    assert_eq!(work.after.bound_written_bytes, Some(10 * N_BYTES));
    assert_eq!(work.before.gpu_busy_ns, Some(4_000 * US));
    assert_eq!(work.before.wall_ns, Some((4_000 + 9 * 50) * US));
    assert_eq!(work.after.wall_ns, Some((1_000 + 9 * 50) * US));
    let ratios: Vec<_> = work.ratios.iter().map(|r| (r.figure, r.ratio)).collect();
    assert_eq!(
        ratios,
        [
            (Figure::Dispatches, Some(4.0)),
            (Figure::CommandBuffers, Some(1.0)),
            (Figure::Submissions, Some(1.0)),
            (Figure::BoundBytes, Some(4.0)),
            (Figure::TransferBytes, None),
            (Figure::GpuBusy, Some(4.0)),
            (Figure::Wall, Some(4.0)),
            (Figure::Pace, Some(3.0)),
        ]
    );
    let text = work.sentences.join(" ");
    for said in [
        "compiled took 4.00 times less GPU time than eager: 100 µs an evaluation instead of 400 µs (95 %: 4.00 to 4.00; 10 evaluations each)",
        "compiled took 3.00 times less time than eager: 150 µs instead of 450 µs",
        "compiled needed 1 dispatch instead of 4 for an evaluation",
        "could reach 7.63 MiB an evaluation",
        "the empty space after is saved time",
    ] {
        assert!(text.contains(said), "{said}: {text}");
    }
    assert!(
        !text.contains("1.0 dispatch") && !text.contains("not known"),
        "{text}"
    );
}

#[test]
fn a_binding_that_is_not_known_makes_the_bytes_unknown() {
    let mut p = fusion(2);
    p.line("dispatch command_buffer=1 queue=1 kernel=1 label=3 start_ns=0 duration_ns=1us");
    let work = compared(&p);
    assert_eq!(work.before.bound_read_bytes, None);
    assert_eq!(ratio(&work, Figure::BoundBytes).ratio, None);
}

#[test]
fn without_one_of_the_labels_there_is_nothing_to_compare() {
    let options = Options {
        equal_work: Some(("eager".to_owned(), "jit".to_owned())),
        ..Options::default()
    };
    assert_eq!(Findings::of(&fusion(2).trace(), &options).equal_work, None);
}

#[test]
fn other_work_in_between_is_not_part_of_the_wall_time() {
    let mut p = Program::of(
        "manifest sampling_mode=dispatch
         device id=1 uuid=aa
         queue id=1 device=1
         label id=1 text=eager
         label id=2 text=compiled",
    );
    // eager 0..10, 20..30; compiled 100..110; eager 200..210
    for (label, start) in [(1, 0), (1, 20), (2, 100), (1, 200)] {
        p.line(&format!(
            "dispatch command_buffer=9 queue=1 label={label} start_ns={start}us duration_ns=10us"
        ));
    }
    let work = compared(&p);
    assert!(!work.per_evaluation);
    assert_eq!(work.before.wall_ns, Some(40 * US));
    assert_eq!(work.before.gpu_busy_ns, Some(30 * US));
    assert_eq!(work.after.wall_ns, Some(10 * US));
}

#[test]
fn labels_of_one_text_in_two_places_are_two_labels_by_their_paths() {
    let mut p = Program::of(
        "manifest sampling_mode=dispatch
         device id=1 uuid=aa
         queue id=1 device=1
         label id=1 text=forward
         label id=2 text=backward
         label id=3 text=attention parent=1
         label id=4 text=attention parent=2
         marker label=3 scope=command-buffer command_buffer=9
         marker label=4 scope=command-buffer command_buffer=9
         marker label=4 scope=command-buffer command_buffer=9",
    );
    for (label, start) in [(3, 0), (4, 20), (4, 40)] {
        p.line(&format!(
            "dispatch command_buffer=9 queue=1 label={label} start_ns={start}us duration_ns=10us"
        ));
    }
    let trace = p.trace();
    let timeline = Timeline::of(&trace);
    let bindings = BindingSets::of(&trace);
    let of =
        |path: &str| WorkCost::of_label_path(&timeline, &bindings, path, None, |it| it == path);
    let figures = |work: WorkCost| (work.evaluations, work.dispatch_count, work.gpu_busy_ns);
    assert_eq!(
        figures(of("forward / attention")),
        (Some(1), Some(1), Some(10 * US))
    );
    assert_eq!(
        figures(of("backward / attention")),
        (Some(2), Some(2), Some(20 * US))
    );
    assert_eq!(figures(of("backward")), (None, Some(2), Some(20 * US)));
    assert!(of("attention").is_empty());
    let everywhere = WorkCost::of_labels(&timeline, &bindings, &["attention"], None).remove(0);
    assert_eq!(figures(everywhere), (Some(3), Some(3), Some(30 * US)));
}

/// Evaluations that the host labels on its thread, each of one kernel of so many microseconds, 50 us apart; compiled after eager.
fn labelled(eager: &[i64], compiled: &[i64]) -> Program {
    let mut p = Program::of(
        "manifest sampling_mode=dispatch
         process id=1 pid=10
         device id=1 process=1 uuid=aa
         queue id=1 device=1
         kernel id=1 process=1 name=work
         label id=1 text=eager
         label id=2 text=compiled",
    );
    let mut t = 0;
    for (label, durations) in [(1, eager), (2, compiled)] {
        for duration in durations {
            p.line(&format!(
                "marker process=1 label={label} scope=thread thread=7 start_ns={t}us duration_ns=20us"
            ));
            launch(&mut p, label, t + 5, t + 10, *duration);
            t += duration + 50;
        }
    }
    p
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
    p.line(&format!(
        "marker process=1 label=2 scope=thread thread=7 start_ns={t}us duration_ns=500100us"
    ));
    launch(&mut p, 2, t + 5, t + 10, 100);
    p.call("load-module", [t + 110, t + 500_110]);
    launch(&mut p, 2, t + 500_110, t + 500_120, 100);
    // The side begins with it.
    let text = p.trace();
    let work = compared_in(&text);
    assert_eq!(work.after.evaluations, Some(10));
    for figure in [Figure::GpuBusy, Figure::Wall] {
        let ratio = ratio(&work, figure);
        assert_eq!(
            (ratio.before, ratio.after, ratio.within_noise),
            (Some(200e3), Some(200e3), Some(true)),
            "{figure:?}"
        );
    }
}

#[test]
fn the_first_evaluation_is_left_out_when_it_loads_code() {
    let mut p = labelled(&[200; 10], &[]);
    let t = 5_000;
    for turn in 0..8 {
        let t = t + turn * 1_000;
        p.line(&format!(
            "marker process=1 label=2 scope=thread thread=7 start_ns={t}us duration_ns=900us"
        ));
        launch(&mut p, 2, t + 5, t + 10, 100);
        launch(&mut p, 2, t + 700, t + 710, 100);
    }
    let without = compared(&p);
    assert_eq!(without.after.counted_evaluations, 8);
    assert!(without.after.left_out.is_empty());

    p.call("load-module", [t + 120, t + 690]);
    let with = compared(&p);
    assert_eq!(with.after.counted_evaluations, 7);
    let first = LeftOut {
        because: Reason::FirstUse,
        count: 1,
    };
    assert_eq!(with.after.left_out, [first]);
    let text = with.sentences.join(" ");
    let said = "Of 8 evaluations of compiled, some are left out: 1 is the first and compiles or loads code.";
    assert!(text.contains(said), "{text}");

    let options = Options {
        equal_work: Some(("eager".to_owned(), "compiled".to_owned())),
        exclude_warm_up: false,
        ..Options::default()
    };
    let all = Findings::of(&p.trace(), &options).equal_work.unwrap();
    assert_eq!(all.after.counted_evaluations, 8, "--all leaves nothing out");
}

#[test]
fn evaluations_in_the_warm_up_are_left_out() {
    let mut slow = vec![900];
    slow.extend([100; 39]);
    let work = compared(&labelled(&slow, &[100; 10]));
    assert_eq!(work.before.counted_evaluations, 39);
    let warm_up = LeftOut {
        because: Reason::WarmUp,
        count: 1,
    };
    assert_eq!(work.before.left_out, [warm_up]);
    let spread = ratio(&work, Figure::GpuBusy).before_spread.unwrap();
    assert_eq!((spread.count, spread.max), (39, 100e3));
    assert_eq!(
        work.before.gpu_busy_ns,
        Some((900 + 3_900) * US),
        "totals are of all"
    );
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
    let work = compared(&labelled(&[100; 8], &[180; 8]));
    let text = work.sentences.join(" ");
    assert!(
        text.contains("compiled took 1.80 times more GPU time than eager: 180 µs"),
        "{text}"
    );
    let work = compared(&labelled(&[100; 8], &[105; 8]));
    let text = work.sentences.join(" ");
    assert!(
        text.contains("compiled took 5.0 % more GPU time than eager"),
        "{text}"
    );
    for (eager, said) in [(119, "16.0 % less"), (120, "1.20 times less")] {
        let text = compared(&labelled(&[eager; 8], &[100; 8]))
            .sentences
            .join(" ");
        assert!(
            text.contains(&format!("compiled took {said} GPU time")),
            "{text}"
        );
    }
}

#[test]
fn a_side_that_changes_while_it_runs_is_said_to() {
    let said = "GPU time of eager changed while it ran, from 150 µs in the first half of its evaluations to 120 µs in the second";
    let halves = |first: i64, second: i64| [[first; 10], [second; 10]].concat();
    let text = |eager: &[i64]| compared(&labelled(eager, &[100; 10])).sentences.join(" ");
    let unsteady = text(&halves(150, 120));
    assert!(unsteady.contains(said), "{unsteady}");
    // Less than half of the difference.
    let steady = text(&halves(150, 145));
    assert!(!steady.contains("changed while it ran"), "{steady}");
}

#[test]
fn few_evaluations_have_no_interval_and_the_report_says_so() {
    let work = compared(&labelled(&[100; 5], &[50; 6]));
    let busy = ratio(&work, Figure::GpuBusy);
    assert_eq!(
        (busy.ratio, busy.low, busy.within_noise),
        (Some(2.0), None, None)
    );
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
    let timeline = Timeline::of(&trace);
    let bindings = BindingSets::of(&trace);
    let jit = WorkCost::of_labels(&timeline, &bindings, &["jit"], None).remove(0);
    assert_eq!((jit.evaluations, jit.counted_evaluations), (Some(2), 0));
    let unclear = LeftOut {
        because: Reason::Unclear,
        count: 2,
    };
    assert_eq!(jit.left_out, [unclear]);
}

#[test]
fn an_evaluation_of_several_command_buffers_has_them_all() {
    let mut p = Program::of(
        "manifest sampling_mode=dispatch
         process id=1 pid=10
         device id=1 process=1 uuid=aa
         queue id=1 device=1
         kernel id=1 process=1 name=work
         label id=1 text=eager
         label id=2 text=compiled",
    );
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
    let said = "compiled needed 1 dispatch instead of 3 and 1 command buffer instead of 3 for an evaluation: what each launch and hand-over costs is saved.";
    assert!(text.contains(said), "{text}");
}

#[test]
fn dispatches_that_are_not_recorded_are_not_0() {
    // As of an imported Metal trace: passes, and a loss for the dispatches.
    let mut p = Program::of(
        "manifest sampling_mode=pass
         loss what=\"command buffers whose dispatches are not listed\" count=4 reason=\"Instruments records encoders, not dispatches\"
         device id=1 uuid=aa api=metal
         queue id=1 device=1
         label id=1 text=eager
         label id=2 text=compiled
         label id=3 text=Encoding
         label id=4 text=eager parent=3
         marker label=4 scope=thread thread=7 command_buffer=1 start_ns=-90us duration_ns=20us",
    );
    for (id, label, t) in [(1, 1, 0), (2, 1, 300), (3, 2, 600), (4, 2, 900)] {
        p.submit(1, [t - 20, t - 20]);
        p.line(&format!(
            "command_buffer id={id} queue=1 submission={id} label={label} start_ns={t}us duration_ns=200us"
        ));
        p.line(&format!(
            "opaque_work command_buffer={id} queue=1 kind=compute-pass label={label} start_ns={t}us duration_ns=200us"
        ));
    }
    let work = compared(&p);
    for side in [&work.before, &work.after] {
        assert_eq!(side.dispatch_count, None);
        assert_eq!(
            side.dispatches_unknown_because.as_deref(),
            Some("Instruments records encoders, not dispatches")
        );
        assert_eq!(side.bound_read_bytes, None);
        assert_eq!(side.command_buffer_count, Some(2));
        assert_eq!((side.evaluations, side.counted_evaluations), (Some(2), 2));
        assert!(side.left_out.is_empty());
        assert_eq!(side.gpu_busy_ns, Some(400 * US));
    }
    assert_eq!(ratio(&work, Figure::Dispatches).before, None);
    let text = work.sentences.join(" ");
    assert!(
        !text.contains("dispatches") && !text.contains("0 B"),
        "{text}"
    );
    assert!(
        text.contains("An evaluation is a command buffer with the label here"),
        "{text}"
    );
}

#[test]
fn nothing_shows_that_unrelated_programs_do_equal_work() {
    let trace = |kernel: &str| {
        let mut p = Program::of(&format!(
            "manifest sampling_mode=dispatch
             device id=1 uuid=aa
             queue id=1 device=1
             kernel id=1 name={kernel}"
        ));
        p.line("dispatch command_buffer=9 queue=1 kernel=1 start_ns=0 duration_ns=10us");
        p.trace()
    };
    let cost = |trace: &Trace, name: &str| {
        let timeline = Timeline::of(trace);
        WorkCost::of_trace(&timeline, &BindingSets::of(trace), name)
    };
    let [one, same, other] = ["gemm", "gemm", "sort"].map(trace);
    let claim = compare(cost(&one, "a"), cost(&same, "b"));
    assert_eq!(claim.basis, Basis::Claim);
    let unrelated = compare(cost(&one, "a"), cost(&other, "b"));
    assert_eq!(unrelated.basis, Basis::NoCommonKernel);
    let text = unrelated.sentences.join(" ");
    assert!(
        text.contains("Nothing shows that the work is equal: no kernel of a ran in b"),
        "{text}"
    );
    assert!(!text.contains("saved"), "{text}");
}

#[test]
fn each_side_has_its_verdict() {
    use gapscope_analysis::verdict::Bound;
    let program = || {
        let mut p = Program::of(
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
    assert!(
        mixed
            .before
            .verdict_sentence
            .contains("Other work runs in between")
    );
}
