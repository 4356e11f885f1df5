//! Samples of instructions.

use crate::recorded::Recorded;
use crate::stub::Stub;

const CUBIN: &str = concat!(
    env!("CARGO_MANIFEST_DIR"),
    "/../../crates/recorder/recorder/src/code/testdata/add.cubin"
);
const ADD: &str = "_Z3addPfS_i";

fn sampled(wanted: &str, wrong: &str) -> Stub {
    Stub::new()
        .with("GAPSCOPE_INSTRUCTIONS", wanted)
        .with("FAKE_CUDA_PC", wrong)
}

/// Returns offset, reason and number of the samples of a function.
fn samples_of<'a>(process: &'a Recorded, function: &str) -> Vec<(u64, &'a str, u32)> {
    let samples = process.instructions.samples.iter();
    let of_it = samples.filter(|((_, name, ..), _)| name == function);
    of_it
        .map(|((.., offset, reason), samples)| {
            let reason = reason.strip_prefix("smsp__pcsamp_warps_issue_stalled_");
            (*offset, reason.expect("a reason"), *samples)
        })
        .collect()
}

/// Returns the samples that so many launches leave.
fn left_by(launches: u32) -> Vec<(u64, &'static str, u32)> {
    vec![
        (0x20, "long_scoreboard", 6 * launches),
        (0x20, "selected", launches),
        (0x40, "wait", 3 * launches),
    ]
}

#[test]
fn every_sample_is_written_once_however_it_comes() {
    for wrong in ["", "page", "left", "full", "page,full", "old"] {
        let outcome = sampled("", wrong).run("launch:5 sync flushes:2 launch:6 sync");
        let process = outcome.only();
        assert!(outcome.status.success());
        assert_eq!(samples_of(process, ADD), left_by(11), "{wrong}");
        assert_eq!(process.kernels.len(), 11);
        let period = if wrong == "old" { 0 } else { 1 << 18 };
        assert_eq!(process.instructions.sampling, [(1, period)]);
        let lost = process.losses.iter().map(|(kind, ..)| kind.as_str());
        let full = wrong
            .contains("full")
            .then_some("batches of samples of instructions");
        assert_eq!(lost.collect::<Vec<_>>(), Vec::from_iter(full), "{wrong}");
        assert_eq!(process.notes, [""; 0]);
    }
}

#[test]
fn what_the_hardware_lost_and_what_is_not_the_programs_is_counted() {
    let outcome = sampled("", "dropped,other").run("launch:5 sync");
    let process = outcome.only();
    let mut lost: Vec<_> = process.losses.iter().map(|(_, count, _)| *count).collect();
    lost.sort_unstable();
    assert_eq!(lost, [5, 7], "{:?}", process.losses);
    assert_eq!(samples_of(process, ADD), left_by(5));
}

#[test]
fn a_function_without_a_name_is_sampled_all_the_same() {
    let outcome = sampled("", "unnamed").run("launch:5 sync");
    assert_eq!(samples_of(outcome.whole(), ""), left_by(5));
}

#[test]
fn only_functions_that_are_wanted_are_written() {
    for (wanted, launches) in [("add(float*", 5), ("_Z3add", 5), ("mul", 0)] {
        let outcome = sampled(wanted, "").run("launch:5 sync");
        let found = samples_of(outcome.whole(), ADD);
        let expected = if launches > 0 { left_by(5) } else { Vec::new() };
        assert_eq!(found, expected, "{wanted}");
    }
}

#[test]
fn code_with_lines_is_kept_and_its_samples_name_it() {
    let steps = format!("load:{CUBIN},{CUBIN} launch:1 sync");
    let outcome = sampled("", "").run(&steps);
    let process = outcome.whole();
    let cubins: Vec<_> = process.instructions.cubins.iter().collect();
    let [(crc, bytes)] = &cubins[..] else {
        panic!("{} cubins", cubins.len())
    };
    assert_eq!(**bytes, std::fs::read(CUBIN).expect("the cubin"));
    assert_eq!(samples_of(process, "add"), left_by(2));
    let of_add = process.instructions.samples.keys();
    let mut of_add = of_add.filter(|(_, name, ..)| name == "add");
    assert!(of_add.all(|(cubin, ..)| cubin == *crc));
}

#[test]
fn contexts_are_sampled_until_they_end() {
    let steps = "launch:2 sync device:0 launch:3 sync end-context device:0 launch:4 sync";
    for wrong in ["", "left"] {
        let outcome = sampled("", wrong).run(steps);
        let process = outcome.whole();
        assert_eq!(samples_of(process, ADD), left_by(9), "{wrong}");
        assert_eq!(process.instructions.sampling.len(), 3);
    }
}

#[test]
fn a_refusal_is_a_sentence_and_the_program_goes_on() {
    for (wrong, said) in [
        ("busy", "CUPTI_ERROR_HARDWARE_BUSY"),
        ("privileges", "NVreg_RestrictProfilingToAdminUsers=0"),
    ] {
        let outcome = sampled("", wrong).run("launch:50 sync");
        let process = outcome.whole();
        let [note] = &process.notes[..] else {
            panic!("{:?}", process.notes)
        };
        assert!(
            note.starts_with("Instructions were not sampled: "),
            "{note}"
        );
        assert!(note.contains(said), "{note}");
        assert!(process.instructions.sampling.is_empty());
        assert_eq!(process.calls_of("cuLaunchKernel").len(), 50);
    }
}

#[test]
fn what_breaks_later_is_said_once_and_what_was_sampled_before_is_kept() {
    for wrong in ["broken", "undying", "broken,undying"] {
        let outcome = sampled("", wrong).run("launch:5 sync flushes:2 launch:6 sync flushes:2");
        let process = outcome.whole();
        let said = (process.notes.iter()).filter(|note| note.contains("CUPTI_ERROR_UNKNOWN"));
        assert_eq!(said.count(), 1, "{:?}", process.notes);
        assert!(
            samples_of(process, ADD)
                .iter()
                .all(|(.., samples)| *samples > 0)
        );
        assert_eq!(process.kernels.len(), 11);
    }
}

#[test]
fn nothing_is_sampled_unless_it_is_asked_for() {
    let outcome = Stub::new().run("launch:5 sync");
    let process = outcome.whole();
    assert!(process.instructions.sampling.is_empty());
    assert!(process.instructions.samples.is_empty());
}

#[test]
fn outside_of_the_window_nothing_is_kept() {
    let stub = sampled("", "").with("GAPSCOPE_RECORDING", "0");
    let outcome = stub.run("launch:9 sync flushes:2 capture:launch:4 launch:20 sync");
    let found = samples_of(outcome.only(), ADD);
    assert_eq!(found, left_by(4));
}

#[test]
fn a_forked_child_samples_nothing_and_lives() {
    let outcome = sampled("", "").run("launch:1 fork:launch launch:1 sync");
    assert_eq!(samples_of(outcome.only(), ADD), left_by(2));
}
