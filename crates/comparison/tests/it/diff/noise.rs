//! What noise hides: waits for processors, and gates that cannot be judged.

use super::{ADD, GEMM, Loop, SOFTMAX, diff, kernel, looped, sized};
use gapscope_comparison::diff::{GateStatus, Verdict};
use serde_json::Value;

/// A loop on a software GPU, in which tasks waited for a processor for some per cent of the time.
fn software(waited: u32, times: f64) -> Loop {
    Loop {
        clock: None,
        device: "llvmpipe (LLVM 15.0.6, 256 bits)",
        waited: Some(waited),
        ..sized(1000, 256, times)
    }
}

#[test]
fn waits_for_processors_widen_intervals_and_leave_great_changes() {
    for (waited, times, verdict) in [
        (0, 1.0, Verdict::NoDifference),
        (0, 1.5, Verdict::Slower),
        (20, 2.0, Verdict::Slower),
        (99, 2.0, Verdict::NoDifference),
        (99, 4.0, Verdict::NoDifference),
        (99, 0.25, Verdict::NoDifference),
        (99, 20.0, Verdict::Slower),
    ] {
        let diff = diff(&software(waited, 1.0), &software(waited, times), &[]);
        let what = format!("{waited} % {times} ×: {}", diff.sentence);
        assert_eq!(diff.verdict, verdict, "{what}");
        let said = &diff.method.sentence;
        assert_eq!(
            said.contains("tasks waited for a processor"),
            waited >= 20,
            "{said}"
        );
    }
    // Where one side waited, its times are uncertain.
    let diff = diff(&software(0, 1.0), &software(99, 3.0), &[]);
    assert_eq!(diff.verdict, Verdict::NoDifference, "{}", diff.sentence);
}

#[test]
fn waits_for_processors_leave_the_times_of_a_gpu() {
    let gpu = |times: f64| Loop {
        device: "NVIDIA H100",
        ..software(99, times)
    };
    let diff = diff(&gpu(1.0), &gpu(1.2), &[]);
    assert_eq!(diff.verdict, Verdict::Slower, "{}", diff.sentence);
}

#[test]
fn a_gate_that_cannot_be_judged_fails_by_name() {
    let base = sized(1000, 256, 1.0);
    for (after, gate, status, text) in [
        (base.clone(), "gpu_time > 10%", GateStatus::Held, ""),
        (
            base.clone(),
            "gpu_time > 1%",
            GateStatus::Undecided,
            "Not judged: these runs could show only changes above 3.",
        ),
        (
            sized(1000, 256, 1.02),
            "gpu_time > 1%",
            GateStatus::Noise,
            "Not judged: these runs could show only changes above 3.",
        ),
        (
            sized(1000, 256, 1.2),
            "gpu_time > 1%",
            GateStatus::Broken,
            "",
        ),
        (sized(1000, 256, 0.8), "gpu_time > 1%", GateStatus::Held, ""),
        (base.clone(), "dispatches > 0", GateStatus::Held, ""),
        (
            sized(2000, 256, 1.0),
            "workgroups > 0",
            GateStatus::Broken,
            "3,000 → 6,000",
        ),
        (
            base.clone(),
            "kernel(\"nothing\") > 3%",
            GateStatus::Unknown,
            "no kernel is called `nothing`",
        ),
        (
            base.clone(),
            "bound_bytes > 3%",
            GateStatus::Unknown,
            "bound_bytes is not known on either side",
        ),
        (
            looped(&[GEMM, SOFTMAX]),
            "kernel(\"add\") > 3%",
            GateStatus::Held,
            "gone",
        ),
        (
            looped(&[GEMM, SOFTMAX, ADD, kernel("other", 10.0)]),
            "kernel(\"other\") > 3%",
            GateStatus::Broken,
            "from nothing",
        ),
        (
            Loop {
                pause_ns: 21_000,
                ..base.clone()
            },
            "idle_time(host-late) > 1000%",
            GateStatus::Undecided,
            "Not judged: how much this varies from run to run is not known",
        ),
    ] {
        let diff = diff(&base, &after, &[gate]);
        let result = &diff.gates[0];
        assert_eq!(result.status, status, "{gate}: {}", result.sentence);
        assert!(
            result.sentence.contains(text),
            "{gate}: {}",
            result.sentence
        );
        assert_eq!(diff.fails(), status != GateStatus::Held, "{gate}");
    }
    let loaded = diff(&software(99, 1.0), &software(99, 3.0), &["gpu_time > 5%"]);
    assert_eq!(loaded.gates[0].status, GateStatus::Noise);
    let sentence = &loaded.gates[0].sentence;
    assert!(
        sentence.contains("could show only changes above 6."),
        "{sentence}"
    );
    let json = serde_json::to_value(&loaded.gates[0]).unwrap();
    assert!(
        matches!(&json["least_ratio_told"], Value::Number(ratio) if ratio.as_f64() > Some(6.0))
    );
}

#[test]
fn a_change_of_one_kernel_throughout_the_run_leaves_the_others_as_certain() {
    let base = [("gemm", 400.0), ("softmax", 100.0), ("add", 50.0)];
    let slower = base.map(|(name, us)| kernel(name, if name == "gemm" { 1.5 * us } else { us }));
    let diff = diff(
        &looped(&base.map(|(name, us)| kernel(name, us))),
        &looped(&slower),
        &["kernel(gemm) > 5%", "kernel(add) > 10%"],
    );
    let statuses: Vec<GateStatus> = diff.gates.iter().map(|gate| gate.status).collect();
    assert_eq!(
        statuses,
        [GateStatus::Broken, GateStatus::Held],
        "{:?}",
        diff.gates
    );
}

/// A loop on a GPU whose clock was not recorded.
fn unclocked(times: f64) -> Loop {
    Loop {
        clock: None,
        ..sized(1000, 256, times)
    }
}

#[test]
fn a_gpu_that_gets_hot_is_no_slower_program_where_its_clock_was_not_recorded() {
    let hot = |start: f64, end: f64, times: f64| Loop {
        heat: [start, end],
        ..unclocked(times)
    };
    for (before, after, verdict) in [
        // A step between the runs.
        (
            hot(0.0, 0.0, 1.0),
            hot(0.06, 0.06, 1.0),
            Verdict::NoDifference,
        ),
        // Each run gets slower, and the second goes on where the first ended.
        (
            hot(0.0, 0.06, 1.0),
            hot(0.06, 0.12, 1.0),
            Verdict::NoDifference,
        ),
        (
            hot(0.0, 0.02, 1.0),
            hot(0.03, 0.05, 1.0),
            Verdict::NoDifference,
        ),
        (unclocked(1.0), unclocked(1.2), Verdict::Slower),
        (unclocked(1.0), unclocked(1.0 / 1.2), Verdict::Faster),
        (hot(0.0, 0.06, 1.0), hot(0.06, 0.12, 1.5), Verdict::Slower),
    ] {
        let diff = diff(&before, &after, &[]);
        assert_eq!(
            diff.verdict, verdict,
            "{:?} {:?}: {}",
            before.heat, after.heat, diff.sentence
        );
    }
}

#[test]
fn one_kernel_that_changed_shows_although_no_clock_was_recorded() {
    let unclocked = |softmax_us: f64| Loop {
        clock: None,
        ..looped(&[GEMM, kernel("softmax", softmax_us), ADD])
    };
    let diff = diff(&unclocked(100.0), &unclocked(110.0), &[]);
    let told = diff.changes.iter().filter(|change| change.significant);
    let names: Vec<&str> = told.map(|change| change.name.as_str()).collect();
    assert_eq!(names, ["softmax"], "{}", diff.sentence);
}

#[test]
fn the_basis_says_what_makes_the_interval_wide() {
    let hot = Loop {
        heat: [0.0, 0.2],
        ..unclocked(1.0)
    };
    for (one, text) in [
        (
            sized(1000, 256, 1.0),
            "what else differs from run to run (assumed: 1.0 % a run)",
        ),
        (
            unclocked(1.0),
            "because of: clocks of the GPU, which were not recorded (assumed: 2.",
        ),
        (
            hot,
            "because of: kernels that got slower or faster in the course of a run (1",
        ),
        (
            software(99, 1.0),
            "because of: how long tasks waited for a processor or for memory (99.0 % of the time: 50.0 % a run)",
        ),
    ] {
        let diff = diff(&one, &one, &[]);
        assert!(
            diff.method.sentence.contains(text),
            "{}",
            diff.method.sentence
        );
    }
}

#[test]
fn runs_that_could_show_no_change_say_so_without_a_number() {
    let few = Loop {
        steps: 7,
        ..software(100, 1.0)
    };
    let diff = diff(&few, &few, &["gpu_time > 5%", "idle_time > 5%"]);
    let texts = [diff.sentence.clone()].into_iter();
    let texts = texts.chain(diff.gates.iter().map(|gate| gate.sentence.clone()));
    let texts: Vec<String> = texts.collect();
    for text in &texts {
        let numbers = text.split("changes above ").skip(1);
        for number in numbers {
            let number = number.split(' ').next().unwrap().replace(',', "");
            assert!(
                number.parse::<f64>().unwrap() < 10.0 || !text.contains('×'),
                "{text}"
            );
        }
    }
    assert!(
        texts
            .iter()
            .any(|text| text.contains("these runs could show no change of this figure")),
        "{texts:?}"
    );
}
