//! Tests `gapscope what-if` on traces that the tests write: the answer, its JSON, and the cases in which it refuses.

use crate::{Workplace, assert_contains, assert_status, text};
use serde_json::Value;
use std::fmt::Write;

/// Writes a trace of fifty steps: the host computes, then waits for a kernel of 600 us.
fn steps(workplace: &Workplace, name: &str, host_us: i64, manifest: &str) {
    let mut rows = format!(
        "manifest {manifest}\n\
         process id=1 pid=10\n\
         thread process=1 thread=7 name=main\n\
         device id=1 process=1 name=GPU uuid=aa clock.error_ns=0\n\
         queue id=1 device=1\n\
         kernel id=1 process=1 name=gemm\n\
         label id=1 text=step\n"
    );
    let mut at = 0;
    for id in 1..=50 {
        let (submit, start) = (at + host_us, at + host_us + 10);
        let (called, end) = (submit + 5, start + 600);
        writeln!(
            rows,
            "submission id={id} process=1 queue=1 kind=kernel thread=7 start_ns={submit}us duration_ns=5us function=launch\n\
             dispatch submission={id} queue=1 kernel=1 start_ns={start}us duration_ns=600us\n\
             host_call process=1 thread=7 call=wait-queue-idle queue=1 start_ns={called}us duration_ns={}us result=0\n\
             marker process=1 scope=thread label=1 thread=7 start_ns={at}us duration_ns={}us",
            end + 8 - called,
            end + 8 - at,
        )
        .unwrap();
        at = end + 8;
    }
    workplace.trace_of(name, &rows);
}

fn json(workplace: &Workplace, arguments: &[&str]) -> Value {
    let command = [&["what-if", "--json"], arguments].concat();
    serde_json::from_slice(&workplace.run(&command).stdout).unwrap()
}

#[test]
fn the_time_of_a_step_is_predicted_and_compared_with_the_changed_program() {
    let workplace = Workplace::new();
    steps(&workplace, "before", 1_000, "sampling_mode=dispatch");
    steps(&workplace, "after", 500, "sampling_mode=dispatch");
    let arguments = [
        "before",
        "--step",
        "step",
        "--set",
        "host=0.5x",
        "--against",
        "after",
    ];
    let found = json(&workplace, &arguments);
    assert_eq!(found["steps"], 50);
    assert_eq!(found["recorded_ns"], 1_618_000);
    assert_eq!(found["changed_ns"]["mid"], 1_118_000);
    assert_eq!(found["against"]["recorded_ns"], 1_118_000);
    assert_eq!(found["against"]["is_inside"], true);
    assert_eq!(found["edges"]["guessed"], 0);
    assert_eq!(found["refused"], Value::Array(Vec::new()));

    let command = [&["what-if"], &arguments[..]].concat();
    let output = workplace.run(&command);
    assert_status(&output, 0);
    let page = on_one_line(&output.stdout);
    assert_contains(
        &page,
        "A step took 1.62 ms and would take 1.12 ms (1.05 ms to 1.19 ms), 30.9 % less",
    );
    assert_contains(&page, "In after it took 1.12 ms");
    assert_contains(&page, "gemm");
}

#[test]
fn a_change_that_costs_time_and_one_that_changes_nothing_are_told_as_such() {
    let workplace = Workplace::new();
    steps(&workplace, "run", 1_000, "sampling_mode=dispatch");
    let page = |change: &str| text(&workplace.run(&["what-if", "run", "--set", change]).stdout);
    assert_contains(page("kernel:gemm=2x"), "% more");
    assert_contains(page("kernel:gemm=600us"), "as long as before.");
    let path = text(&workplace.run(&["what-if", "run"]).stdout);
    assert_contains(&path, "What holds the run");
}

#[test]
fn where_the_trace_cannot_know_the_reasons_are_printed_and_the_status_is_2() {
    let workplace = Workplace::new();
    let lost = "sampling_mode=dispatch\nloss what=dispatches count=3 reason=full";
    for (name, manifest, because) in [
        (
            "whole",
            "sampling_mode=command-buffer",
            "no times of single dispatches",
        ),
        ("lost", lost, "lost 3 dispatches"),
    ] {
        steps(&workplace, name, 1_000, manifest);
        let output = workplace.run(&["what-if", name, "--step", "step", "--set", "host=0"]);
        assert_status(&output, 2);
        assert_contains(text(&output.stdout).replace("\n    ", " "), because);
        let found = json(&workplace, &[name, "--step", "step", "--set", "host=0"]);
        assert_eq!(found["changed_ns"], Value::Null);
        assert_eq!(found["gain"], Value::Null);
        assert!(
            found["refused"]
                .as_array()
                .is_some_and(|all| !all.is_empty())
        );
    }
}

#[test]
fn what_is_not_in_the_run_is_an_error_in_one_sentence() {
    let workplace = Workplace::new();
    steps(&workplace, "run", 1_000, "sampling_mode=dispatch");
    for (arguments, problem) in [
        (
            &["--set", "kernel:nope=0"][..],
            "nothing in the run is `kernel:nope=0`",
        ),
        (&["--step", "epoch"], "no range of it is called \"epoch\""),
        (
            &["--set", "code:train.py:41=0"],
            "no sample of the host's code has train.py:41 in its stack",
        ),
    ] {
        let command = [&["what-if", "run"], arguments].concat();
        let output = workplace.run(&command);
        assert_status(&output, 1);
        assert_contains(text(&output.stderr), problem);
        assert_eq!(text(&output.stdout), "");
    }
}

/// Writes two ranks of a program in a folder: in each of 60 steps the host loads for so many microseconds, a kernel computes, and both ranks
/// reduce and wait. `host` is what the manifests say of the machine of each.
fn write_ranks(workplace: &Workplace, folder: &str, loads: [i64; 2], host: [&str; 2]) {
    let manifest = "manifest ranks=0 ranks=1 end_ns=1ms\nprocess id=1 pid=5 hook=cuda";
    workplace.trace_of(folder, manifest);
    for rank in [0, 1] {
        let mut text = format!(
            "manifest sampling_mode=dispatch start_ns=0 end_ns=200ms start_unix_ns=1700000000000000000 {}\n\
             process id=1 pid={rank} hook=cuda\n\
             thread process=1 thread=7 name=main\n\
             device id=1 process=1 api=cuda name=GPU uuid=a{rank} clock.error_ns=1us\n\
             queue id=1 device=1\n\
             kernel id=1 process=1 name=gemm\n\
             kernel id=2 process=1 name=ncclDevKernel_AllReduce_Sum_f32_RING_LL\n\
             label id=1 text=ncclCommInitRankConfig\n\
             label id=2 text=ncclAllReduce\n\
             marker process=1 scope=thread thread=7 label=1 domain=NCCL start_ns=1us duration_ns=1us \
             payload=\"NCCL communicator ID=77, No. of ranks=2, Rank={rank}, CUDA device=0\"\n",
            host[rank]
        );
        for step in 0..60 {
            let start = 1_000 + step * (loads[0].max(loads[1]) + 430);
            let last = start + loads[0].max(loads[1]) + 312;
            let at = start + loads[rank];
            let [first, second] = [2 * step + 1, 2 * step + 2];
            text += &format!(
                "submission id={first} process=1 queue=1 kind=kernel thread=7 start_ns={at}us duration_ns=5us function=launch\n\
                 dispatch submission={first} queue=1 kernel=1 start_ns={}us duration_ns=300us\n\
                 marker process=1 scope=thread thread=7 label=2 domain=NCCL start_ns={}us duration_ns=5us \
                 payload=\"NCCL communicator ID=77, Message size [bytes]=4096\"\n\
                 submission id={second} process=1 queue=1 kind=kernel thread=7 start_ns={}us duration_ns=4us function=launch\n\
                 dispatch submission={second} queue=1 kernel=2 start_ns={}us duration_ns={}us\n\
                 host_call process=1 thread=7 call=wait-queue-idle queue=1 start_ns={}us duration_ns={}us result=0\n",
                at + 10,
                at + 6,
                at + 7,
                at + 312,
                last + 100 - (at + 312),
                at + 12,
                last + 108 - (at + 12),
            );
        }
        workplace.trace_of(&format!("{folder}/rank={rank}"), &text);
    }
}

fn on_one_line(page: &[u8]) -> String {
    let text = text(page);
    text.split_whitespace().collect::<Vec<_>>().join(" ")
}

#[test]
fn the_ranks_of_a_folder_are_replayed_together() {
    let workplace = Workplace::new();
    write_ranks(
        &workplace,
        "run.gapscope",
        [200, 800],
        ["host.system=one"; 2],
    );
    let output = workplace.run(&["what-if", "run.gapscope", "--set", "rank:1.host=0.5x"]);
    assert_status(&output, 0);
    let page = on_one_line(&output.stdout);
    assert_contains(&page, "of all 2 ranks took");
    assert_contains(&page, "less");
    let json = |changes: &str| -> serde_json::Value {
        let output = workplace.run(&["what-if", "--json", "run.gapscope", "--set", changes]);
        assert_status(&output, 0);
        serde_json::from_slice(&output.stdout).unwrap()
    };
    let gain = |answer: &serde_json::Value| {
        let [low, high] = ["low", "high"].map(|key| answer["gain"][key].as_f64().unwrap());
        assert!(high - low < 0.1, "{low} to {high}");
        (low + high) / 2.0
    };
    let late = json("rank:1.host=0.5x");
    assert_eq!(late["ranks"], serde_json::json!([0, 1]));
    // 400 us of 1,230.
    assert!((gain(&late) - 400.0 / 1_230.0).abs() < 0.02, "{late}");
    assert_eq!(late["path"][0]["rank"], 1, "{late}");
    let early = json("rank:0.host=0.5x");
    assert!(gain(&early).abs() < 0.01, "{early}");
}

#[test]
fn ranks_that_cannot_be_joined_are_refused_by_name() {
    let workplace = Workplace::new();
    let machines = ["host.boot_id=one", "host.boot_id=two"];
    write_ranks(&workplace, "run.gapscope", [200, 800], machines);
    let output = workplace.run(&["what-if", "run.gapscope", "--set", "host=0.5x"]);
    assert_status(&output, 2);
    assert_contains(
        on_one_line(&output.stdout),
        "ranks 0 and 1 were recorded on different machines",
    );
    let one = "run.gapscope/rank=0";
    let output = workplace.run(&["what-if", one, "--set", "host=0.5x"]);
    assert_status(&output, 2);
    assert_contains(on_one_line(&output.stdout), "Ask about the folder");
    let output = workplace.run(&["what-if", one, "--set", "rank:0.host=0.5x"]);
    assert_status(&output, 1);
    assert_contains(text(&output.stderr), "the trace is of one process");
}
