//! Equal work: eager against compiled.

use crate::program::{Program, US, assert_says};
use gapscope_analysis::equal_work::{Basis, Figure, Ratio, WorkComparison, WorkCost, compare};
use gapscope_analysis::launch_sizes::SizeEvidence;
use gapscope_analysis::{Findings, Options};
use gapscope_timeline::Timeline;
use gapscope_timeline::bound_bytes::BindingSets;
use gapscope_trace::Trace;

const N_BYTES: u64 = 4_000_000;

/// Evaluations of a chain of four operations: eager with four dispatches, then compiled with one.
fn fusion(evaluations: i64) -> Program {
    let mut p = Program::from_text(
        "manifest sampling_mode=dispatch
         device id=1 name=GPU uuid=aa
         queue id=1 device=1
         kernel id=1 name=sin local_x=64 local_y=1 local_z=1
         kernel id=2 name=fused local_x=64 local_y=1 local_z=1
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
                    "dispatch command_buffer={id} queue=1 kernel={} label={inner} bindings=1 groups_x=1000 groups_y=1 groups_z=1 start_ns={t}us duration_ns=100us",
                    if dispatches == 4 { 1 } else { 2 }
                ));
                t += 100;
            }
            t += 50;
        }
    }
    p
}

pub fn compared(p: &Program) -> WorkComparison {
    compared_in(&p.trace())
}

pub fn ratio(work: &WorkComparison, figure: Figure) -> &Ratio {
    let mut ratios = work.ratios.iter();
    ratios.find(|ratio| ratio.figure == figure).unwrap()
}

pub fn compared_in(trace: &Trace) -> WorkComparison {
    let options = Options {
        equal_work: Some(("eager".to_owned(), "compiled".to_owned())),
        ..Options::default()
    };
    Findings::new(trace, &options)
        .equal_work
        .expect("both labels have work")
}

#[test]
fn compiled_runs_a_quarter_of_the_dispatches_and_bytes_in_a_quarter_of_the_time() {
    let work = compared(&fusion(10));
    assert!(work.per_evaluation);
    assert_eq!(work.before.evaluations, Some(10));
    assert_eq!(work.before.dispatch_count, Some(40));
    assert_eq!(work.after.dispatch_count, Some(10));
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
            (Figure::Workgroups, Some(4.0)),
            (Figure::Threads, Some(4.0)),
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
        "eager took 4.00 times as much GPU time as compiled: 400 µs an evaluation against 100 µs (95 %: 4.00 to 4.00; 10 evaluations each)",
        "eager took 3.00 times as long as compiled: 450 µs against 150 µs",
        "None of 2 kernels is in both: equal only if the labels mean the same work",
        "compiled needed 1 dispatch instead of 4 for an evaluation.",
        "could reach 7.63 MiB an evaluation",
        "if the labels mean the same work, the empty space after is saved time",
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
    assert_eq!(Findings::new(&fusion(2).trace(), &options).equal_work, None);
}

#[test]
fn other_work_in_between_is_not_part_of_the_wall_time() {
    let mut p = Program::with(
        "label id=1 text=eager
         label id=2 text=compiled",
    );
    // eager 0..10, 20..30; compiled 100..110; eager 200..210
    for (label, start) in [(1, 0), (1, 20), (2, 100), (1, 200)] {
        p.ran(&format!("label={label}"), start, 10);
    }
    let work = compared(&p);
    assert!(!work.per_evaluation);
    assert_eq!(work.before.wall_ns, Some(40 * US));
    assert_eq!(work.before.gpu_busy_ns, Some(30 * US));
    assert_eq!(work.after.wall_ns, Some(10 * US));
}

#[test]
fn labels_of_one_text_in_two_places_are_two_labels_by_their_paths() {
    let mut p = Program::with(
        "label id=1 text=forward
         label id=2 text=backward
         label id=3 text=attention parent=1
         label id=4 text=attention parent=2
         marker label=3 scope=command-buffer command_buffer=9
         marker label=4 scope=command-buffer command_buffer=9
         marker label=4 scope=command-buffer command_buffer=9",
    );
    for (label, start) in [(3, 0), (4, 20), (4, 40)] {
        p.ran(&format!("label={label}"), start, 10);
    }
    let trace = p.trace();
    let timeline = Timeline::new(&trace);
    let bindings = BindingSets::new(&trace);
    let of =
        |path: &str| WorkCost::from_label_path(&timeline, &bindings, path, None, |it| it == path);
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
    let everywhere = WorkCost::from_labels(&timeline, &bindings, &["attention"], None).remove(0);
    assert_eq!(figures(everywhere), (Some(3), Some(3), Some(30 * US)));
}

#[test]
fn dispatches_that_are_not_recorded_are_not_0() {
    // As of an imported Metal trace: passes, and a loss for the dispatches.
    let mut p = Program::from_text(
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
    assert_says(
        &text,
        "Unknown: figures of dispatches, because Instruments records encoders, not dispatches.",
    );
    assert!(
        !text.contains("0 dispatches") && !text.contains("0 B"),
        "{text}"
    );
    assert!(
        text.contains("An evaluation is a command buffer with the label here"),
        "{text}"
    );
}

fn cost(trace: &Trace, name: &str) -> WorkCost {
    WorkCost::from_trace(&Timeline::new(trace), &BindingSets::new(trace), name)
}

#[test]
fn nothing_shows_that_unrelated_programs_do_equal_work() {
    let trace = |kernel: &str| {
        let mut p = Program::with(&format!("kernel id=1 name={kernel}"));
        p.ran("kernel=1", 0, 10);
        p.trace()
    };
    let [one, same, other] = ["gemm", "gemm", "sort"].map(trace);
    let claim = compare(cost(&one, "a"), cost(&same, "b"));
    assert_eq!(claim.basis, Basis::Claim);
    assert_eq!(claim.common_kernels, Some(1));
    assert_eq!(claim.all_kernels, Some(1));
    let unrelated = compare(cost(&one, "a"), cost(&other, "b"));
    assert_eq!(unrelated.basis, Basis::NoCommonKernel);
    let text = unrelated.sentences.join(" ");
    assert!(
        text.contains("Not the same work: a and b ran 2 kernels, and none of them is in both."),
        "{text}"
    );
    assert!(!text.contains("saved") && !text.contains("less"), "{text}");
    let changed: Vec<_> = (unrelated.kernels.iter())
        .map(|row| {
            (
                row.name.as_str(),
                row.before_ns,
                row.after_ns,
                row.after_count,
            )
        })
        .collect();
    let ns = Some(10_000.0);
    assert_eq!(
        changed,
        [
            ("gemm", ns, Some(0.0), Some(0.0)),
            ("sort", Some(0.0), ns, Some(1.0))
        ]
    );
}

/// Evaluations under two labels, each of so many runs of the kernels of its label.
fn labelled(kernels: [&[u32]; 2], copies: [u32; 2]) -> WorkComparison {
    let mut p = Program::with(
        "label id=1 text=eager
         label id=2 text=compiled",
    );
    for kernel in 1..9 {
        p.line(&format!("kernel id={kernel} name=k{kernel}"));
    }
    let mut t = 0;
    for side in 0..2 {
        for _ in 0..8 {
            let (label, id) = (side + 1, p.submit(1, [t - 20, t - 15]));
            p.line(&format!(
                "marker label={label} scope=command-buffer command_buffer={id}"
            ));
            p.line(&format!(
                "command_buffer id={id} queue=1 submission={id} start_ns={t}us duration_ns=100us"
            ));
            let of = format!("command_buffer={id} queue=1 label={label}");
            for kernel in kernels[side] {
                p.line(&format!(
                    "dispatch {of} kernel={kernel} start_ns={t}us duration_ns=10us"
                ));
                t += 10;
            }
            for _ in 0..copies[side] {
                p.line(&format!(
                    "transfer {of} kind=copy bytes=100 start_ns={t}us duration_ns=10us"
                ));
                t += 10;
            }
            t += 100;
        }
    }
    compared(&p)
}

#[test]
fn labels_do_not_make_kernels_and_no_kernels_equal() {
    let text = |work: &WorkComparison| work.sentences.join(" ");
    for (kernels, copies, none) in [
        ([&[1, 2, 3][..], &[]], [0, 2], "compiled"),
        ([&[], &[1, 2, 3][..]], [2, 0], "eager"),
    ] {
        let work = labelled(kernels, copies);
        assert_eq!(work.basis, Basis::NoCommonKernel);
        assert_eq!((work.common_kernels, work.all_kernels), (Some(0), Some(3)));
        let text = text(&work);
        let said = format!("Not the same work: {none} launched no kernel, and ");
        assert!(text.starts_with(&said), "{text}");
        assert!(text.contains(" needed 24 dispatches"), "{text}");
        assert!(!text.contains("saved") && !text.contains("less"), "{text}");
    }
    // Copies against copies are as equal as their labels say.
    let copied = labelled([&[], &[]], [2, 1]);
    assert_eq!(copied.basis, Basis::Labels);
    assert!(text(&copied).contains("2.00 times as much"), "{copied:?}");
}

#[test]
fn what_is_saved_is_said_where_most_kernels_are_in_both() {
    let text = |after: &[u32]| labelled([&[1, 2, 3, 4], after], [0, 0]).sentences.join(" ");
    let (most, few) = (text(&[1, 2]), text(&[1, 5]));
    assert_says(&most, "what each launch and hand-over costs is saved");
    assert!(!most.contains("in both"), "{most}");
    assert!(
        few.starts_with("1 of 5 kernels is in both: equal only if the labels mean the same work"),
        "{few}"
    );
    assert!(
        few.contains("compiled needed 2 dispatches instead of 4 for an evaluation."),
        "{few}"
    );
}

#[test]
fn what_few_kernels_share_is_not_the_same_work() {
    let trace = |kernels: std::ops::Range<u32>| {
        let mut p = Program::with("");
        for kernel in kernels.clone() {
            p.line(&format!("kernel id={kernel} name=k{kernel}"));
        }
        for (at, kernel) in (0..).zip(kernels) {
            p.ran(&format!("kernel={kernel}"), 20 * at, 10);
        }
        p.trace()
    };
    let [all, few, most] = [1..23, 20..41, 5..23].map(trace);
    let unlike = compare(cost(&all, "a"), cost(&few, "b"));
    assert_eq!(unlike.basis, Basis::FewCommonKernels);
    assert_eq!(unlike.common_kernels, Some(3));
    assert_eq!(unlike.all_kernels, Some(40));
    assert!(unlike.basis.is_unlike());
    assert!(unlike.sentences[0].contains("ran 40 kernels, and 3 of them are in both"));
    let like = compare(cost(&all, "a"), cost(&most, "b"));
    assert_eq!(like.basis, Basis::Claim);
    // Idle time by cause: 21 gaps of 10 µs before, 17 after.
    let idle = |of: fn(&gapscope_analysis::equal_work::CauseChange) -> Option<f64>| {
        like.causes.iter().filter_map(of).sum::<f64>()
    };
    assert_eq!(idle(|row| row.before_ns), 210_000.0);
    assert_eq!(idle(|row| row.after_ns), 170_000.0);
}

/// Evaluations of two kernels on CUDA, with so many workgroups of so many threads, and so many microseconds for the first kernel.
fn of_sizes(in_turns: bool, [eager, compiled]: [(u32, u32, i64); 2]) -> WorkComparison {
    let mut p = Program::from_text(
        "manifest sampling_mode=dispatch
         process id=1 pid=10
         device id=1 process=1 api=cuda name=GPU uuid=aa
         queue id=1 device=1
         label id=1 text=eager
         label id=2 text=compiled",
    );
    for (side, (_, threads, _)) in [eager, compiled].into_iter().enumerate() {
        for (kernel, name) in ["gemm", "softmax"].into_iter().enumerate() {
            let id = side * 2 + kernel;
            p.line(&format!(
                "kernel id={id} process=1 name={name} local_x={threads} local_y=1 local_z=1"
            ));
        }
    }
    let mut t = 100;
    for evaluation in 0..20 {
        let side = if in_turns {
            evaluation % 2
        } else {
            evaluation / 10
        };
        let (groups, _, us) = [eager, compiled][side];
        p.line(&format!(
            "marker process=1 label={} scope=thread thread=7 start_ns={}us duration_ns={}us",
            side + 1,
            t - 20,
            us + 60
        ));
        for (kernel, us) in [us, 50].into_iter().enumerate() {
            let id = p.mark(1, "kernel", [t - 15, t - 12]);
            p.line(&format!(
                "dispatch submission={id} queue=1 kernel={} label={} groups_x={groups} groups_y=1 groups_z=1 start_ns={t}us duration_ns={us}us",
                side * 2 + kernel,
                side + 1
            ));
            t += us + 1;
        }
        t += 50;
    }
    compared(&p)
}

#[test]
fn workgroups_and_threads_are_part_of_equal_work() {
    let eager = (1000, 256, 400);
    for (compiled, evidence, text) in [
        (
            (1000, 256, 300),
            SizeEvidence::Equal,
            "compiled took 350 µs an evaluation",
        ),
        (
            (500, 256, 200),
            SizeEvidence::Unequal,
            "Not equal work: compiled did other work than eager",
        ),
        (
            (500, 512, 300),
            SizeEvidence::Equal,
            "Launched in another shape, with as many threads: `gemm` as 500 blocks of 512 threads",
        ),
        (
            (250, 512, 300),
            SizeEvidence::Doubtful,
            "Whether that is other work, or the same work in other threads, is not known.",
        ),
    ] {
        let work = of_sizes(false, [eager, compiled]);
        let said = work.sentences.join(" ");
        assert_eq!(work.launch_sizes, Some(evidence), "{said}");
        let equal = evidence == SizeEvidence::Equal;
        assert_eq!(!said.contains("f both did equal work, "), equal, "{said}");
        let groups = ratio(&work, Figure::Workgroups);
        assert_eq!(groups.after, Some(2.0 * f64::from(compiled.0)));
        let threads = ratio(&work, Figure::Threads);
        assert_eq!(threads.before, Some(2.0 * 256_000.0));
        if evidence != SizeEvidence::Equal || compiled.1 != 256 {
            assert_says(&said, text);
        }
    }
}

#[test]
fn what_is_unknown_in_turns_has_its_reason() {
    let said = of_sizes(true, [(1000, 256, 400); 2]).sentences.join(" ");
    assert_says(
        &said,
        "Unknown: start to start, because the sides take turns: work of the one starts between evaluations of the other; \
         the verdicts of eager and compiled: “Other work runs in between: a verdict would be of that too”; \
         bytes bound, because not all dispatches have recorded bindings.",
    );
    let said = of_sizes(false, [(1000, 256, 400); 2]).sentences.join(" ");
    assert_says(&said, "Unknown: bytes bound");
    assert!(!said.contains("turns"), "{said}");
}

/// Two labels in turns, of which each step copies some sizes.
fn of_copies([eager, compiled]: [&[u64]; 2]) -> WorkComparison {
    let mut p = Program::from_text(
        "manifest sampling_mode=dispatch
         device id=1 name=GPU uuid=aa
         queue id=1 device=1
         kernel id=1 name=gemm
         label id=1 text=eager
         label id=2 text=compiled",
    );
    let mut t = 0;
    for (label, copies) in [(1, eager), (2, compiled)] {
        for _ in 0..8 {
            let id = p.submit(1, [t - 20, t - 15]);
            p.line(&format!(
                "marker label={label} scope=command-buffer command_buffer={id}"
            ));
            let duration = 300 + 10 * copies.len() as i64;
            p.line(&format!(
                "command_buffer id={id} queue=1 submission={id} dispatches=1 start_ns={t}us duration_ns={duration}us"
            ));
            p.line(&format!(
                "dispatch command_buffer={id} queue=1 kernel=1 start_ns={t}us duration_ns=300us label={label}"
            ));
            t += 300;
            for bytes in copies {
                p.line(&format!(
                    "transfer command_buffer={id} queue=1 kind=copy bytes={bytes} start_ns={t}us duration_ns=10us label={label}"
                ));
                t += 10;
            }
            t += 50;
        }
    }
    compared(&p)
}

#[test]
fn sizes_of_single_copies_are_part_of_equal_work() {
    for (compiled, has_condition, is_unequal) in [
        (&[200, 200], false, false),
        (&[100, 300], true, true),
        (&[100, 100], true, false),
        (&[200, 200, 200][..], true, false),
    ] as [(&[u64], bool, bool); 4]
    {
        let said = of_copies([&[200, 200], compiled]).sentences.join(" ");
        let condition = said.contains("f both did equal work, ");
        assert_eq!(condition, has_condition, "{compiled:?}: {said}");
        let unequal = said.contains("as far as the sizes of its transfers tell");
        assert_eq!(unequal, is_unequal, "{compiled:?}: {said}");
    }
}

/// A program with 20 turns of the labels `eager` and `compiled` on thread 7. While `open` is open, thread 8 launches
/// kernels of 100 us with the label `label`, and also at `other` us after the start of each turn.
fn two_threads(open: i64, label: u32, other: Option<i64>) -> WorkComparison {
    let mut p = Program::from_text(
        "manifest sampling_mode=dispatch
         process id=1 pid=10
         device id=1 process=1 api=cuda name=GPU uuid=aa
         queue id=1 device=1
         kernel id=1 process=1 name=gemm
         label id=1 text=eager
         label id=2 text=compiled",
    );
    let mut id = 0;
    for turn in 0..20 {
        let t = turn * 1_000;
        for (label, start) in [(1, t), (2, t + 300)] {
            p.line(&format!(
                "marker process=1 label={label} scope=thread thread=7 start_ns={start}us duration_ns=250us"
            ));
        }
        let own = [(7, 1, t + 10), (7, 2, t + 310)];
        let meanwhile = [(8, label, t + open + 40)];
        let outside = other.map(|other| (8, label, t + other));
        for (thread, label, at) in own.into_iter().chain(meanwhile).chain(outside) {
            id += 1;
            let label = if label > 0 {
                format!("label={label}")
            } else {
                String::new()
            };
            p.line(&format!(
                "submission id={id} process=1 queue=1 thread={thread} start_ns={at}us duration_ns=5us command_buffers=0 kind=kernel
                 dispatch submission={id} queue=1 kernel=1 {label} start_ns={}us duration_ns=20us",
                at + 6
            ));
        }
    }
    compared(&p)
}

#[test]
fn work_that_another_thread_launches_while_a_label_is_open_may_be_the_labels() {
    for (open, other, basis) in [
        (300, None, Basis::OtherThreads),
        (0, None, Basis::OtherThreads),
        // It launches as much at another time.
        (300, Some(600), Basis::Labels),
    ] {
        let work = two_threads(open, 0, other);
        assert_eq!(work.basis, basis, "{open} {other:?}");
        let text = work.sentences.join(" ");
        let label = if open == 0 { "eager" } else { "compiled" };
        let told = format!("400 µs of GPU work while {label} was open");
        assert_eq!(text.contains(&told), basis == Basis::OtherThreads, "{text}");
    }
    // Work with a label belongs to the label, and to the instance that is open on the thread that set it.
    let labelled = two_threads(300, 2, None);
    assert_eq!(labelled.basis, Basis::Labels);
    assert_eq!(labelled.after.counted_evaluations, 20);
    assert_eq!(ratio(&labelled, Figure::Dispatches).after, Some(2.0));
}

#[test]
fn a_label_in_the_other_is_not_compared_with_it() {
    for (around, inner) in [("eager", "compiled"), ("compiled", "eager")] {
        let mut p = Program::with(&format!(
            "kernel id=1 name=gemm\nlabel id=1 text={around}\nlabel id=2 text={inner} parent=1"
        ));
        for turn in 0..20 {
            p.ran("kernel=1 label=1", turn * 100, 20);
            p.ran("kernel=1 label=2", turn * 100 + 30, 40);
        }
        let work = compared(&p);
        assert_eq!(work.basis, Basis::Nested);
        let text = work.sentences.join(" ");
        let told = format!(
            "the label {inner} lies in {around}, whose figures here are without the work of {inner}."
        );
        assert_says(&text, &told);
        assert!(!text.contains("times as"), "{text}");
    }
}
