//! What noise hides: waits for processors, and gates that cannot be judged.

use super::{ADD, GEMM, Loop, SOFTMAX, diff, kernel, looped, sized};
use gapscope_comparison::diff::{GateStatus, Verdict};
use serde_json::Value;

/// A loop on a software GPU, in which tasks waited for a processor for some per cent of the time.
fn software(waited: u32, times: f64) -> Loop {
    Loop {
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
