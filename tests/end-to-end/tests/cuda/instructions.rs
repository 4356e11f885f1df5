//! Tests hot instructions: samples of a kernel's running instructions, from the stub's PC sampling to the report.
//! The part `pc-sampling` of `tests/cuda-programs` tests real GPUs.

use super::{Stub, assert_report_has};
use crate::recording::assert_contains;
use gapscope_trace::tables::{NoLine, Table};
use std::path::Path;

/// Returns a program for the stub whose kernel `add` was compiled with source lines.
fn cubin() -> String {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("../..");
    let path = folder.join("crates/recorder/recorder/src/code/testdata/add.cubin");
    path.display().to_string()
}

#[test]
fn samples_of_a_kernel_name_its_lines_and_what_its_warps_waited_for() {
    let stub = Stub::new(&[("PC", "page,dropped")]);
    let steps = format!("load:{} launch:3 sync sleep:250 launch:2 sync", cubin());
    let recording = stub.program(&steps).options(&["--instructions"]).recorded();
    let trace = recording.trace();
    let t = &trace.tables.pc_samples;
    let of = |kernel: &str| -> Vec<usize> {
        let name = |row: &usize| t.function[*row].as_deref() == Some(kernel);
        (0..t.len()).filter(name).collect()
    };
    let (with, without) = (of("add"), of("_Z3addPfS_i"));
    assert_eq!((with.len(), without.len()), (3, 3));
    let sum = |rows: &[usize]| rows.iter().map(|row| t.samples[*row]).sum::<u64>();
    assert_eq!((sum(&with), sum(&without)), (10, 50));
    for row in with {
        assert_eq!(t.file[row].as_deref(), Some("/tmp/kernels/add.cu"));
        assert!(t.line.at(row).is_some() && t.no_line[row].is_none());
        let source = t.source[row].as_deref().expect("the cubin is kept");
        let kept = recording.path().join(format!("sources/{source}.cubin"));
        assert_eq!(std::fs::read(kept).ok(), std::fs::read(cubin()).ok());
    }
    for row in without {
        assert_eq!(t.no_line[row], Some(NoLine::NotCompiledIn));
        assert!(t.kernel.at(row).is_some(), "its launches are recorded");
    }
    let lost: Vec<_> = (trace.manifest.losses.iter())
        .map(|loss| (loss.kind.as_str(), loss.count))
        .collect();
    assert_eq!(lost, [("samples of instructions", 7)]);

    let report = recording.report();
    let kernels = report["sampled_kernels"].as_array().expect("kernels");
    assert_eq!(kernels.len(), 2);
    assert_eq!(kernels[0]["samples"], 50);
    assert_eq!(kernels[0]["period_cycles"], 1 << 18);
    assert_eq!(kernels[0]["stalls"][0]["reason"], "long_scoreboard");
    let parts = [
        "Instructions of add",
        "add.cu:",
        "+0x20",
        "long scoreboard 60.0 %",
        "no line information: compile with -lineinfo",
    ];
    assert_report_has(&recording, &parts);
}

#[test]
fn only_kernels_of_the_name_are_reported() {
    let stub = Stub::new(&[]);
    let steps = format!("load:{} launch:3 sync", cubin());
    let recording = stub
        .program(&steps)
        .options(&["--instructions=_Z3add"])
        .recorded();
    let t = recording.trace().tables.pc_samples;
    assert!(!t.is_empty());
    let all = t.function.iter();
    assert!(
        all.into_iter()
            .all(|name| name.as_deref() == Some("_Z3addPfS_i"))
    );
}

#[test]
fn a_gpu_that_does_not_say_its_size_is_sampled_as_a_large_one() {
    let stub = Stub::new(&[("ATTRIBUTES", "refuse")]);
    let program = stub.program("launch:3 sync");
    let trace = program.options(&["--instructions"]).recorded().trace();
    let t = &trace.tables.pc_samples;
    assert!(!t.is_empty());
    // The device has 160 multiprocessors at 2 GHz, and at most a million samples a second are taken.
    assert!(t.period_cycles.iter().all(|cycles| cycles == Some(1 << 19)));
}

#[test]
fn a_refusal_is_said_and_the_program_goes_on() {
    for (wrong, said) in [
        ("busy", "another profiler has the GPU's counters"),
        ("privileges", "administrators only"),
    ] {
        let stub = Stub::new(&[("PC", wrong)]);
        let program = stub.program("launch:3 sync");
        let recording = program.options(&["--instructions"]).recorded();
        let trace = recording.trace();
        assert_eq!(trace.tables.dispatches.len(), 3);
        assert!(!recording.path().join("pc_samples.parquet").exists());
        let notes = trace.manifest.notes.join("\n");
        assert_contains(&notes, "Instructions were not sampled: ");
        assert_contains(&notes, said);
    }
}
