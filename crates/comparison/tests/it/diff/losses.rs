//! Runs of which a part was not recorded: counts that are lower bounds are not compared.

use super::{ADD, GEMM, Kernel, Loop, SOFTMAX, diff, kernel, looped, said};
use gapscope_comparison::diff::{Change, Diff, GateStatus, Verdict};

/// A loop on CUDA, some of whose kernels were lost.
fn lossy(kernels: &[Kernel]) -> Loop {
    Loop {
        api: "cuda",
        losses: "loss what=\"CUDA activities\" count=1 reason=\"buffers were full\"",
        ..looped(kernels)
    }
}

fn whole(kernels: &[Kernel]) -> Loop {
    Loop {
        losses: "",
        ..lossy(kernels)
    }
}

fn change<'a>(diff: &'a Diff, name: &str) -> &'a Change {
    let mut changes = diff.changes.iter();
    changes.find(|change| change.name == name).unwrap()
}

#[test]
fn a_kernel_that_one_side_may_have_lost_is_neither_new_nor_gone() {
    let all = [GEMM, SOFTMAX, ADD];
    for (before, after, side) in [
        (lossy(&all[..2]), whole(&all), 0),
        (whole(&all), lossy(&all[..2]), 1),
    ] {
        let diff = diff(
            &before,
            &after,
            &["dispatches > 0", "kernel(add) > 5%", "kernel(gemm) > 30%"],
        );
        let add = change(&diff, "add");
        assert!(!add.significant && add.ratio.is_none(), "{add:?}");
        assert_eq!([add.before, add.after][side], None);
        assert!(add.at_least[side] && !add.at_least[1 - side]);
        let count = change(&diff, "dispatches");
        assert!(!count.significant && count.at_least[side], "{count:?}");
        assert_eq!(diff.equal_work.equal, None);
        let text = said(&diff);
        assert!(
            text.contains("was not recorded: counts that it touches are lower bounds"),
            "{text}"
        );
        assert!(
            !text.contains("new") && !text.contains("gone") && !text.contains("as before"),
            "{text}"
        );
        let statuses: Vec<GateStatus> = diff.gates.iter().map(|gate| gate.status).collect();
        assert_eq!(
            statuses,
            [GateStatus::Unknown, GateStatus::Unknown, GateStatus::Held]
        );
        let gate = &diff.gates[0].sentence;
        let unknown = ["before", "after"][side];
        assert_eq!(
            *gate,
            format!("dispatches is not known {unknown}, as some of the work was not recorded.")
        );
    }
}

#[test]
fn kernels_that_ran_as_often_are_compared_although_others_were_lost() {
    let diff = diff(
        &lossy(&[GEMM, SOFTMAX]),
        &whole(&[GEMM, kernel("softmax", 150.0)]),
        &[],
    );
    assert!(change(&diff, "softmax").significant, "{}", diff.sentence);
}

#[test]
fn many_lost_kernels_make_times_unknown() {
    let lossy = Loop {
        losses: "loss what=\"CUDA activities\" count=50 reason=\"buffers were full\"",
        ..lossy(&[GEMM, SOFTMAX])
    };
    let diff = diff(&lossy, &whole(&[GEMM, SOFTMAX, ADD]), &["gpu_time > 5%"]);
    assert_eq!(diff.verdict, Verdict::Unknown);
    assert_eq!(diff.gates[0].status, GateStatus::Unknown);
    assert!(
        diff.sentence
            .starts_with("Times of GPU work are not known before"),
        "{}",
        diff.sentence
    );
}

#[test]
fn figures_have_the_words_of_the_api() {
    let sized = |groups| [GEMM.sized(groups, 256), SOFTMAX.sized(groups, 256)];
    for (api, words, other) in [
        ("cuda", ["kernels", "blocks", "launches"], "dispatch"),
        (
            "vulkan",
            ["dispatches", "workgroups", "submissions"],
            "blocks",
        ),
    ] {
        let of = |groups| Loop {
            api,
            ..looped(&sized(groups))
        };
        let diff = diff(&of(1000), &of(500), &[]);
        for (name, word) in ["dispatches", "workgroups", "submissions"]
            .into_iter()
            .zip(words)
        {
            assert_eq!(change(&diff, name).what, word);
        }
        let text = said(&diff);
        assert!(text.contains(words[1]) && !text.contains(other), "{text}");
    }
}
