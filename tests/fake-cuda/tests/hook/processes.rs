//! Forks, spawns and several processes.

use crate::stub::Stub;

#[test]
fn a_forked_child_that_does_nothing_leaves_nothing_behind() {
    for step in ["fork:nothing", "fork-exit:nothing"] {
        let outcome = Stub::new().run(&format!("launch:100 sync {step} launch:100 sync"));
        let process = outcome.whole();
        assert_eq!(process.kernels.len(), 200, "{step}");
    }
}

#[test]
fn a_forked_childs_labels_go_to_a_spool_of_its_own() {
    for (step, ended) in [("fork:labels", false), ("fork-exit:labels", true)] {
        let outcome = Stub::new().run(&format!("labels:2 {step} labels:2 sync"));
        assert!(outcome.status.success());
        let [parent, child] = &outcome.processes[..] else {
            panic!("{} processes", outcome.processes.len())
        };
        assert_eq!((parent.labels.len(), child.labels.len()), (8, 10), "{step}");
        assert_eq!(parent.kernels.len(), 4);
        assert!(child.kernels.is_empty());
        let texts: Vec<&str> = child
            .labels
            .iter()
            .map(|l| l.text.as_str())
            .filter(|t| !t.is_empty())
            .collect();
        assert_eq!(
            texts,
            ["step 0", "step 1", "step 2", "step 3", "step 4"],
            "the texts are the child's own"
        );
        assert!(child.labels.iter().all(|l| l.thread == child.pid));
        assert_eq!(child.ended, ended, "{step}");
        parent.assert_undamaged();
        child.assert_undamaged();
    }
}

#[test]
fn a_forked_child_gets_the_drivers_own_error() {
    let outcome = Stub::new().run("launch:10 fork:launch sync");
    assert_eq!(outcome.whole().kernels.len(), 10);
}

#[test]
fn a_child_that_is_forked_before_cuda_is_used_records_its_own_work() {
    let outcome = Stub::new().run("fork-first fork-exit:cuda");
    assert!(outcome.status.success(), "{}", outcome.output);
    let process = outcome.only();
    assert_eq!(process.kernels.len(), 7);
    assert!(process.ended);
}

#[test]
fn a_child_that_is_forked_after_labels_and_before_cuda_records_its_own_work() {
    let outcome = Stub::new().run("fork-first labels:0 fork-exit:cuda");
    assert_eq!(outcome.only().kernels.len(), 7);
}

#[test]
fn spawned_children_have_spools_of_their_own() {
    let outcome = Stub::new().run("launch:10 spawn:launch:20 sync");
    assert!(outcome.status.success());
    let mut kernels: Vec<usize> = outcome.processes.iter().map(|p| p.kernels.len()).collect();
    kernels.sort_unstable();
    assert_eq!(kernels, [10, 20]);
    assert!(
        outcome
            .processes
            .iter()
            .all(|p| p.ended && p.losses.is_empty() && p.hook == "cuda")
    );
}

#[test]
fn a_spawned_child_without_cuda_leaves_nothing_behind() {
    let outcome = Stub::new()
        .without("NVTX_INJECTION64_PATH")
        .run("launch:10 spawn:no-cuda sync");
    assert_eq!(outcome.whole().kernels.len(), 10);
}
