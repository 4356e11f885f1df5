//! Runs the program on any GPU, which on a machine without one is lavapipe.

use std::process::{Command, Output};

fn fusion(args: &[&str]) -> Output {
    Command::new(env!("CARGO_BIN_EXE_fusion"))
        .args(args)
        .output()
        .expect("fusion starts")
}

/// Runs the program and returns its output; `None` if the machine has no adapter and need not have one.
fn run_on_gpu(args: &[&str]) -> Option<String> {
    let output = fusion(args);
    let errors = String::from_utf8_lossy(&output.stderr);
    let required = std::env::var_os("GAPSCOPE_REQUIRE_GPU").is_some_and(|value| value == "1");
    if errors.contains("no GPU adapter") && !required {
        eprintln!("skipped: {errors}");
        return None;
    }
    assert!(output.status.success(), "{args:?} failed: {errors}");
    Some(String::from_utf8_lossy(&output.stdout).into_owned())
}

#[test]
fn both_modes_agree_with_the_cpu() {
    let Some(output) = run_on_gpu(&["--n", "1000", "--iterations", "2"]) else {
        return;
    };
    let lines: Vec<_> = output.lines().collect();
    assert_eq!(lines[1..3], ["Warming up...", "Running Eager Mode..."]);
    for start in [
        "Adapter: ",
        "Eager Time: ",
        "Compiled Time: ",
        "Speedup: ",
        "Check: max error ",
    ] {
        assert!(
            lines.iter().any(|line| line.starts_with(start)),
            "no {start:?} in:\n{output}"
        );
    }
}

#[test]
fn every_operation_agrees_with_the_cpu() {
    let chain = "sin,mul:x,add:2.5,sqrt,log,neg,exp,pow:x,max:0.25,min:4,square,sub:x,tanh,abs,add:1,reciprocal,sigmoid,\
                 mul:10,floor,div:3,ceil,cos";
    run_on_gpu(&[
        "--n",
        "1000",
        "--iterations",
        "1",
        "--warm-up",
        "0",
        "--chain",
        chain,
    ]);
}

#[test]
fn one_value_and_one_mode_are_enough() {
    let Some(output) = run_on_gpu(&["--n", "1", "--iterations", "1", "--mode", "eager"]) else {
        return;
    };
    assert!(!output.contains("Compiled"), "{output}");
}

#[test]
fn a_wrong_chain_is_refused_in_a_sentence() {
    let output = fusion(&["--chain", "sin,cosh"]);
    assert!(!output.status.success());
    let errors = String::from_utf8_lossy(&output.stderr);
    assert!(
        errors.contains("there is no operation \"cosh\""),
        "{errors}"
    );
}
