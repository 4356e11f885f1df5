//! Counters of Vulkan's drivers (`VK_KHR_performance_query`) on the fake driver, whose values are known.

use std::collections::BTreeMap;

use gapscope_trace::tables::{CounterUnit, Table};
use gapscope_trace::{LossKind, Trace};

use crate::counts;
use crate::driver::Fake;
use crate::recording::{Program, Recording, assert_contains};

/// Records `planted` with counters on the fake driver, which must see no misuse.
fn record(arguments: &str, counters: &str, options: &[&str]) -> (Recording, Trace) {
    let fake = Fake::new(&[("COUNTERS", counters)]);
    let program = Program::planted(arguments, &fake).options(options);
    let recording = program.recorded();
    let trace = recording.trace();
    counts::compare(&trace.tables, &recording.truth());
    assert_eq!(fake.misuse(), "", "Vulkan was misused");
    (recording, trace)
}

/// Returns the unit of a counter, and its values by the start of the command buffer to which they belong; `None` if
/// the trace lacks the counter.
fn values(trace: &Trace, name: &str) -> Option<(CounterUnit, BTreeMap<i64, f64>)> {
    let counters = &trace.tables.counters;
    let row = (0..counters.len()).find(|row| &*counters.name[*row] == name)?;
    assert!(counters.source[row].contains("VK_KHR_performance_query"));
    let all = &trace.tables.counter_values;
    let of_it = (0..all.len()).filter(|at| all.counter[*at] == counters.id[row]);
    let values = of_it.map(|at| (all.start_ns[at], all.value[at]));
    Some((counters.unit[row], values.collect()))
}

fn notes(trace: &Trace) -> Vec<&String> {
    let notes = trace.manifest.notes.iter();
    notes
        .filter(|note| note.contains("hardware counters"))
        .collect()
}

#[test]
fn each_command_buffer_has_what_was_counted_while_it_ran() {
    let (_, trace) = record("steady --n 5 --iterations 4", "1", &["--counters"]);
    assert_eq!(notes(&trace), Vec::<&String>::new());
    let (unit, counted) = values(&trace, "dispatches").expect("it is counted");
    assert_eq!(unit, CounterUnit::Unknown);
    let (busy_unit, busy) = values(&trace, "shader busy").expect("it is counted");
    assert_eq!(busy_unit, CounterUnit::Percent);
    let (_, occupancy) = values(&trace, "occupancy").expect("it is counted");
    let (tables, mut seen) = (&trace.tables, 0);
    let buffers = &tables.command_buffers;
    for row in 0..buffers.len() {
        let (Some(start_ns), Some(ns)) = (buffers.start_ns.at(row), buffers.duration_ns.at(row))
        else {
            panic!("a command buffer has no times");
        };
        let of_it = |at: &usize| tables.dispatches.command_buffer.at(*at) == Some(buffers.id[row]);
        let dispatches: Vec<usize> = (0..tables.dispatches.len()).filter(of_it).collect();
        if dispatches.is_empty() {
            continue;
        }
        seen += 1;
        let count = counted[&start_ns] * ns as f64 / 1e9;
        assert!((count - dispatches.len() as f64).abs() < 1e-6, "{count}");
        // Each dispatch takes 10 us on the fake driver.
        let busy_ns = busy[&start_ns] * ns as f64 / 100.0;
        assert!(
            (busy_ns - 10_000.0 * dispatches.len() as f64).abs() < 1.0,
            "{busy_ns}"
        );
        assert_eq!(occupancy[&start_ns], 37.5);
    }
    assert!(seen >= 4, "{seen} command buffers with dispatches");
    // Counters that must cover a whole command buffer, or need a second pass, are left out.
    assert!(values(&trace, "whole buffer").is_none() && values(&trace, "alone").is_none());
    assert_eq!(lost(&trace), 0);
}

#[test]
fn without_the_option_nothing_is_counted_and_nothing_is_said() {
    let (_, trace) = record("steady --n 2", "1", &[]);
    assert!(values(&trace, "dispatches").is_none());
    assert_eq!(notes(&trace), Vec::<&String>::new());
}

#[test]
fn what_a_driver_refuses_is_said_and_the_rest_is_recorded() {
    let (recording, trace) = record("steady --n 2", "locked", &["--counters"]);
    assert!(values(&trace, "dispatches").is_none());
    let words = "hardware counters of gapscope fake GPU: another program has the profiling lock.";
    assert!(notes(&trace)[0].ends_with(words), "{:?}", notes(&trace));
    assert_contains(&recording.run.stderr, words);
    let (_, trace) = record("steady --n 2", "1", &["--counters=DRAM read"]);
    let reasons = trace.manifest.unmeasured.iter().map(|u| u.reason.as_str());
    let named = |reason: &str| reason.contains("names are those of NVIDIA's GPUs");
    assert!(reasons.into_iter().any(named));
}

#[test]
fn times_do_not_wait_for_results_that_never_come() {
    let (_, trace) = record("steady --n 3 --iterations 3", "never", &["--counters"]);
    let times = &trace.tables.dispatches.duration_ns;
    assert!(times.iter().all(|value| value.is_some()), "{times:?}");
    assert_eq!(
        values(&trace, "dispatches")
            .expect("it was to be counted")
            .1,
        BTreeMap::new()
    );
    assert!(lost(&trace) > 0);
}

/// A rendering that is suspended in one command buffer and resumed in another, between which no query may end.
#[test]
fn suspended_renderings_are_left_alone() {
    let (_, trace) = record("suspended --n 3 --iterations 3", "1", &["--counters"]);
    assert!(lost(&trace) > 0);
}

#[test]
fn what_is_not_counted_as_a_whole_is_not_counted() {
    let (_, trace) = record("secondary --n 4 --iterations 3", "1", &["--counters"]);
    assert!(lost(&trace) > 0);
    let losses = trace.manifest.losses.iter();
    let reasons: Vec<&str> = losses.map(|loss| &*loss.reason).collect();
    assert!(
        reasons
            .iter()
            .any(|r| r.contains("a secondary command buffer")),
        "{reasons:?}"
    );
}

fn lost(trace: &Trace) -> u64 {
    let losses = trace.manifest.losses.iter();
    let of_counters = losses.filter(|loss| loss.kind == LossKind::CounterSamples);
    of_counters.map(|loss| loss.count).sum()
}
