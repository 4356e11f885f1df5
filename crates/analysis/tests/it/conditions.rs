//! Conditions of machine and GPUs: what is told, and what is not.

use crate::program::assert_says;
use gapscope_analysis::conditions::{ConditionKind, ConditionNote, conditions};
use gapscope_analysis::{Findings, Options};
use gapscope_timeline::Timeline;
use gapscope_timeline::counters::recorded;
use gapscope_trace::Trace;

/// Ten seconds, of which a GPU works from 1 s to 9 s.
fn notes_of(rows: &str) -> Vec<ConditionNote> {
    let trace = Trace::from_text(&format!(
        "manifest start_ns=0 end_ns=10s\ndevice id=1 name=Example\nqueue id=4 device=1\n
        submission id=1 process=1 queue=4 start_ns=900ms duration_ns=1us
        dispatch submission=1 queue=4 kernel=1 start_ns=1s duration_ns=8s\n{rows}"
    ))
    .expect("a trace");
    let timeline = Timeline::new(&trace);
    conditions(&timeline, &recorded(&timeline))
}

/// A counter with its values: `1s 100, 3s 0`.
fn counter(id: u32, name: &str, unit: &str, device: &str, values: &str) -> String {
    let rows = values.split(", ").map(|value| {
        let (at, value) = value.split_once(' ').expect("a time and a value");
        format!("counter_value counter={id} start_ns={at} value={value}\n")
    });
    let rows: String = rows.collect();
    format!("counter id={id} name=\"{name}\" unit={unit} {device} source=test\n{rows}")
}

fn on_gpu(id: u32, name: &str, unit: &str, values: &str) -> String {
    counter(id, name, unit, "device=1", values)
}

fn kinds(notes: &[ConditionNote]) -> Vec<ConditionKind> {
    notes.iter().map(|note| note.kind).collect()
}

#[test]
fn heat_is_told_with_how_long_from_when_and_how_hot() {
    let rows = on_gpu(
        1,
        "clock limited: hardware thermal slowdown",
        "percent",
        "0s 0, 2s 100, 5200ms 0",
    ) + &on_gpu(2, "GPU temperature", "celsius", "0s 60, 2s 88, 3s 91, 5s 70, 6s 99")
        // The general bit comes with it, and is no second cause.
        + &on_gpu(3, "clock limited: hardware slowdown", "percent", "0s 0, 2s 100, 5200ms 0");
    let notes = notes_of(&rows);
    assert_eq!(kinds(&notes), [ConditionKind::Heat]);
    assert_eq!(
        notes[0].sentence,
        "Example ran below its clock because of heat (hardware thermal slowdown) for 3.20 s, from 2.00 s on, at up to 91 °C: \
         kernel times of then are not comparable with others."
    );
    assert_eq!(notes[0].start_ns, 2_000_000_000);
    assert_eq!(notes[0].held_ns, 3_200_000_000);
    assert_eq!((notes[0].device, notes[0].is_usual), (Some(0), false));
}

#[test]
fn what_is_too_short_or_while_nothing_ran_is_not_told() {
    let slowdown = "clock limited: hardware slowdown";
    let short = on_gpu(1, slowdown, "percent", "0s 0, 2s 100, 2100ms 0");
    assert_eq!(notes_of(&short), []);
    let idle = on_gpu(1, slowdown, "percent", "0s 100, 900ms 0, 9s 100");
    assert_eq!(notes_of(&idle), []);
    let told = on_gpu(1, slowdown, "percent", "0s 0, 2s 100, 2300ms 0");
    assert_eq!(kinds(&notes_of(&told)), [ConditionKind::Slowdown]);
}

#[test]
fn a_power_cap_is_usual_and_no_heat_and_idle_or_set_clocks_are_nothing() {
    let rows = on_gpu(1, "clock limited: power cap", "percent", "0s 100")
        + &on_gpu(2, "SM clock", "hertz", "0s 1980e6, 3s 1208e6")
        + &on_gpu(3, "clock lowered: GPU idle", "percent", "0s 100")
        + &on_gpu(4, "clock limited: setting", "percent", "0s 100");
    let notes = notes_of(&rows);
    assert_eq!(kinds(&notes), [ConditionKind::PowerCap]);
    assert!(notes[0].is_usual);
    let sentence = &notes[0].sentence;
    assert_says(sentence, "for 8.00 s, from 1.00 s on");
    assert!(sentence.contains("from 1208 to 1980 MHz"), "{sentence}");
}

#[test]
fn heat_that_only_the_driver_counted_is_told() {
    let rows = on_gpu(
        1,
        "clock below request: heat",
        "percent",
        "0s 0, 2s 10, 5s 0",
    );
    let notes = notes_of(&rows);
    assert_eq!(kinds(&notes), [ConditionKind::Heat]);
    assert_eq!(notes[0].held_ns, 300_000_000);
}

#[test]
fn a_value_that_is_not_known_any_more_counts_for_nothing() {
    let name = "clock limited: hardware thermal slowdown";
    let rows = on_gpu(1, name, "percent", "0s 0, 2s 100")
        + "counter_value counter=1 start_ns=2100ms duration_ns=0 value=100";
    assert_eq!(notes_of(&rows), []);
}

#[test]
fn a_stall_on_memory_is_told_with_what_was_lost_of_how_long() {
    let machine = |values| counter(1, "machine stalled on memory (some)", "percent", "", values);
    let notes = notes_of(&machine("0s 0, 3s 13, 8s 0"));
    assert_eq!(kinds(&notes), [ConditionKind::MemoryStall]);
    assert_eq!(
        notes[0].sentence,
        "The machine stalled on memory for 650 ms of 5.00 s (a task or more waited for it), from 3.00 s on: calls, copies and gaps of \
         then may be longer for it."
    );
    assert_eq!(
        notes_of(&machine("0s 0, 3s 9, 8s 0")),
        [],
        "some stall now and then"
    );
    assert_eq!(notes_of(&machine("0s 0, 3s 90, 3200ms 0")), [], "180 ms");
    let both = machine("0s 0, 3s 50")
        + &counter(
            2,
            "cgroup stalled on memory (some)",
            "percent",
            "",
            "0s 0, 3s 50",
        );
    let notes = notes_of(&both);
    assert_eq!(notes.len(), 1);
    let sentence = &notes[0].sentence;
    assert!(
        sentence.starts_with("The program's cgroup stalled"),
        "{sentence}"
    );
}

#[test]
fn swapping_limits_and_killed_processes_are_told() {
    let rows = counter(
        1,
        "machine swaps in",
        "bytes/s",
        "",
        "0s 0, 2s 104857600, 4s 0",
    ) + &counter(2, "cgroup at memory.max", "count", "", "0s 0, 3s 2, 5s 12")
        + &counter(
            3,
            "cgroup processes killed for memory",
            "count",
            "",
            "0s 0, 6s 1",
        );
    let notes = notes_of(&rows);
    let limit = ConditionKind::MemoryLimit;
    assert_eq!(
        kinds(&notes),
        [limit, ConditionKind::KilledForMemory, ConditionKind::Swap]
    );
    // Without a stall it may be files that were read.
    assert!(notes[0].is_usual);
    assert_says(&notes[0].sentence, "12 times, first at 3.00 s");
    assert_says(&notes[1].sentence, "1 time, first at 6.00 s");
    let swapped = "read 200 MiB back from swap and wrote 0 B to it, for 2.00 s, from 2.00 s on";
    assert_says(&notes[2].sentence, swapped);
    let little = counter(
        1,
        "machine swaps in",
        "bytes/s",
        "",
        "0s 0, 2s 1048576, 4s 0",
    );
    assert_eq!(notes_of(&little), []);
}

#[test]
fn an_imported_thermal_state_is_told_at_the_same_place() {
    let rows = "counter id=1 name=\"thermal state: Serious\" unit=percent source=Instruments\n
        counter_value counter=1 start_ns=2s duration_ns=3s value=100";
    let notes = notes_of(rows);
    assert_eq!(kinds(&notes), [ConditionKind::ThermalState]);
    let state = "was Serious for 3.00 s, from 2.00 s on";
    assert_says(&notes[0].sentence, state);
}

#[test]
fn findings_have_the_notes() {
    let trace = Trace::from_text(
        "manifest start_ns=0 end_ns=10s\ncounter id=1 name=\"machine stalled on memory (some)\" unit=percent source=test
        counter_value counter=1 start_ns=0 value=50",
    )
    .expect("a trace");
    assert_eq!(
        Findings::new(&trace, &Options::default()).conditions.len(),
        1
    );
}
