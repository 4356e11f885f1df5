//! Tests what is done first where several devices share the work of a program.

use crate::program::findings_of;
use gapscope_analysis::Findings;
use gapscope_analysis::first_step::{Cost, first_step};

/// A program that gives each of its GPUs the work `busy`, in microseconds from the begin of a turn of 1 ms, a hundred times.
fn gpus(busy: &[(i64, i64)]) -> Findings {
    let mut text = String::from(
        "manifest sampling_mode=dispatch
         process id=1 pid=10 hook=cuda executable=/usr/bin/app
         kernel id=1 process=1 name=gemm\n",
    );
    for (gpu, _) in (1..).zip(busy) {
        text += &format!(
            "device id={gpu} process=1 api=cuda name=GPU uuid=aa{gpu} clock.error_ns=0
             queue id={gpu} device={gpu}\n"
        );
    }
    let mut id = 0;
    for turn in 0..100 {
        for (gpu, (start, length)) in (1..).zip(busy) {
            id += 1;
            let start = 1_000 * turn + start;
            text += &format!(
                "submission id={id} process=1 queue={gpu} thread=7 start_ns={}us duration_ns=2us kind=kernel function=cuLaunchKernel
                 dispatch queue={gpu} kernel=1 submission={id} start_ns={start}us duration_ns={length}us groups_x=200 groups_y=1 groups_z=1\n",
                start - 8,
            );
        }
    }
    findings_of(&text)
}

#[test]
fn the_gpu_with_most_of_the_work_comes_first() {
    let findings = gpus(&[(10, 240), (12, 950)]);
    let first = first_step(&findings).unwrap();
    let Cost::Uneven(uneven) = first.cost else {
        panic!("{first:?}");
    };
    assert_eq!((uneven.most.index, uneven.least.index), (1, 0));
    assert!((0.94..0.96).contains(&uneven.most_share), "{uneven:?}");
    // Split evenly, the time is as long as the mean busy time.
    let saves = first.saves_ns.unwrap() as f64 / first.costs_of.length_ns as f64;
    assert!((0.35..0.36).contains(&saves), "{saves}");
}

#[test]
fn gpus_that_take_turns_are_told_and_those_that_work_at_once_are_not() {
    let turns = gpus(&[(10, 480), (500, 490)]);
    let first = first_step(&turns).unwrap();
    assert!(matches!(first.cost, Cost::Turns(_)), "{first:?}");
    for others in [[(10, 980), (12, 970)], [(10, 300), (12, 300)]] {
        let findings = gpus(&others);
        let first = first_step(&findings);
        let is_of_devices =
            first.is_some_and(|first| matches!(first.cost, Cost::Uneven(_) | Cost::Turns(_)));
        assert!(!is_of_devices, "{others:?}");
    }
}
