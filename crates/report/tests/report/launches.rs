//! Tests limits of kernels by the shape of their launches.

use super::{read, terminal, words};
use gapscope_trace::Trace;

/// A trace of a device with 100 multiprocessors, each of which holds 8 workgroups of 256 threads.
fn trace(dispatches: &str) -> Trace {
    let head = "device id=1 api=cuda name=H100 limits.multiprocessors=100 limits.compute_capability=9.0 limits.threads_per_multiprocessor=2048 \
        limits.registers_per_multiprocessor=65536 limits.shared_bytes_per_multiprocessor=233472
queue id=1 device=1
kernel id=1 name=decode local_x=256 local_y=1 local_z=1 registers=32 static_shared_bytes=0 dynamic_shared_bytes=0
kernel id=2 name=gemm local_x=256 local_y=1 local_z=1 registers=64 static_shared_bytes=0 dynamic_shared_bytes=0
kernel id=3 name=scale local_x=256 local_y=1 local_z=1
";
    read(&format!("{head}{dispatches}"))
}

#[test]
fn what_can_be_won_comes_first_and_short_kernels_are_summed_up() {
    let page = terminal(&trace(
        "dispatch queue=1 kernel=1 groups_x=4 groups_y=1 groups_z=1 start_ns=0us duration_ns=105us
         dispatch queue=1 kernel=2 groups_x=500 groups_y=1 groups_z=1 start_ns=200us duration_ns=805us
         dispatch queue=1 kernel=3 groups_x=1 groups_y=1 groups_z=1 start_ns=1100us duration_ns=5us
         dispatch queue=1 kernel=3 groups_x=1 groups_y=1 groups_z=1 start_ns=1110us duration_ns=6us",
    ));
    let limits = &page[page.find("Limits of kernels").unwrap()..];
    let rows: Vec<Vec<&str>> = (limits.lines().skip(1))
        .map(|line| line.split_whitespace().collect())
        .collect();
    assert_eq!(
        rows[1],
        [
            "gemm", "≤", "300", "µs", "tail", "100", "of", "100", "1.2", "50.0", "%"
        ]
    );
    assert_eq!(
        rows[2],
        [
            "decode", "≤", "96.0", "µs", "too", "small", "4", "of", "100", "<", "0.1", "100", "%"
        ]
    );
    assert!(
        words(limits).contains("2 dispatches of 1 kernel, 5.50 µs each on average (11.0 µs in all), take hardly longer than the shortest kernel"),
        "{limits}"
    );
}

#[test]
fn kernels_that_fill_the_gpu_have_no_section() {
    let page = terminal(&trace(
        "dispatch queue=1 kernel=1 groups_x=800 groups_y=1 groups_z=1 start_ns=0us duration_ns=105us",
    ));
    assert!(!page.contains("Limits of kernels"), "{page}");
}
