//! Kernels that compute: recording changes no result, and each way to launch gives the kernel what it was given.

use crate::stub::Stub;

const STEPS: &str = "compute:scale:2 compute:saxpy:3 compute:saxpy:3:packed compute:saxpy:3:library compute:walk_list:2 \
    compute:table:1 compute:count:2 compute:nan:1 compute:through_global:2 compute-graph:saxpy:3:1 same-names:1 pipeline:2 \
    host-memory managed-memory global-address spin:20 spin-for-kernel device-malloc collective";

fn lines(stub: &Stub, steps: &str) -> Vec<String> {
    let outcome = stub.run(steps);
    assert!(outcome.status.success(), "{}", outcome.status);
    outcome.output.lines().map(str::to_owned).collect()
}

#[test]
fn results_are_the_same_with_and_without_recording() {
    let alone = Stub::new().without("CUDA_INJECTION64_PATH");
    let expected = lines(&alone, STEPS);
    assert_eq!(lines(&Stub::new(), STEPS), expected);
    assert_eq!(
        lines(&Stub::new().with("FAKE_CUDA_LAZY", "1"), STEPS),
        expected
    );
    let saxpy: Vec<&String> = expected
        .iter()
        .filter(|line| line.starts_with("saxpy"))
        .collect();
    assert_eq!(saxpy.len(), 4);
    assert!(saxpy.iter().all(|line| *line == saxpy[0]), "{saxpy:?}");
    let same: Vec<&String> = expected
        .iter()
        .filter(|line| line.starts_with("same"))
        .collect();
    assert_ne!(
        same[0], same[1],
        "the kernels of one name do different things"
    );
}

#[test]
fn a_kernel_sees_the_attributes_of_its_launch() {
    let ways = ["plain", "cooperative", "cluster", "shared"];
    let of = |way: &&str| lines(&Stub::new(), &format!("compute:attributes:1:{way}"));
    let mut seen: Vec<_> = ways.iter().map(of).collect();
    seen.sort();
    seen.dedup();
    assert_eq!(seen.len(), ways.len());
}

#[test]
fn a_kernel_that_differs_from_itself_does_so_and_a_fault_stays() {
    let stub = Stub::new();
    assert_ne!(
        lines(&stub, "compute:noise:1"),
        lines(&stub, "compute:noise:1")
    );
    assert_eq!(lines(&Stub::new(), "fault"), ["CUDA says 700"]);
}
