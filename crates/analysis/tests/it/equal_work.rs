//! Equal work: eager against compiled.

use crate::program::{Program, US};
use gapscope_analysis::bound_bytes::BindingSets;
use gapscope_analysis::equal_work::{Figure, WorkCost};
use gapscope_analysis::{Findings, Options, Timeline};

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

fn compared(p: &Program) -> gapscope_analysis::equal_work::WorkComparison {
    let options = Options {
        equal_work: Some(("eager".to_owned(), "compiled".to_owned())),
        ..Options::default()
    };
    Findings::of(&p.trace(), &options)
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
        (40, 10)
    );
    assert_eq!(work.before.bound_read_bytes, Some(40 * N_BYTES));
    assert_eq!(work.after.bound_written_bytes, Some(10 * N_BYTES));
    assert_eq!(work.before.gpu_busy_ns, Some(4_000 * US));
    assert_eq!(work.before.wall_ns, Some((4_000 + 9 * 50) * US));
    assert_eq!(work.after.wall_ns, Some((1_000 + 9 * 50) * US));
    let ratios: Vec<_> = work.ratios.iter().map(|r| (r.figure, r.ratio)).collect();
    assert_eq!(
        ratios[..4],
        [
            (Figure::Dispatches, Some(4.0)),
            (Figure::BoundBytes, Some(4.0)),
            (Figure::TransferBytes, None),
            (Figure::GpuBusy, Some(4.0)),
        ]
    );
    let text = work.sentences.join(" ");
    assert!(
        text.contains("compiled ran 1.0 dispatches where eager ran 4.0"),
        "{text}"
    );
    assert!(text.contains("300 µs saved"), "{text}");
    assert!(
        text.contains("the empty space after is saved time"),
        "{text}"
    );
}

#[test]
fn a_binding_that_is_not_known_makes_the_bytes_unknown() {
    let mut p = fusion(2);
    p.line("dispatch command_buffer=1 queue=1 kernel=1 label=3 start_ns=0 duration_ns=1us");
    let work = compared(&p);
    assert_eq!(work.before.bound_read_bytes, None);
    assert_eq!(work.ratios[1].ratio, None);
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
    let of = |path: &str| WorkCost::of_label_path(&timeline, &bindings, path, |it| it == path);
    let figures = |work: WorkCost| (work.evaluations, work.dispatch_count, work.gpu_busy_ns);
    assert_eq!(
        figures(of("forward / attention")),
        (Some(1), 1, Some(10 * US))
    );
    assert_eq!(
        figures(of("backward / attention")),
        (Some(2), 2, Some(20 * US))
    );
    assert_eq!(figures(of("backward")), (None, 2, Some(20 * US)));
    assert!(of("attention").is_empty());
    let everywhere = WorkCost::of_labels(&timeline, &bindings, &["attention"]).remove(0);
    assert_eq!(figures(everywhere), (Some(3), 3, Some(30 * US)));
}
