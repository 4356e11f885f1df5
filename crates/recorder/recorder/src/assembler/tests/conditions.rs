//! Tests that readings of conditions become counters, in which only changes are rows and unknown values are not held.

use super::program::Program;
use crate::conditions::{ConditionSubject, Reading};
use gapscope_trace::tables::{Condition, Table};

fn reading(condition: Condition, from_ns: i64, value: impl Into<Option<f64>>) -> Reading {
    Reading {
        of: ConditionSubject::Machine,
        condition,
        from_ns,
        seen_ns: from_ns + 5,
        value: value.into(),
        source: "test".into(),
    }
}

fn values(program: &Program) -> Vec<(i64, Option<i64>, f64)> {
    let t = &program.tables.counter_values;
    (0..t.len())
        .map(|row| (t.start_ns[row], t.duration_ns.at(row), t.value[row]))
        .collect()
}

#[test]
fn only_changes_are_rows_and_what_never_happened_is_no_counter() {
    let mut program = Program::new();
    let mut read = |condition, from_ns, value: f64| {
        let reading = reading(condition, from_ns, value);
        program.assembler.condition(&reading, &mut program.tables);
    };
    for from_ns in [10, 20, 30] {
        read(Condition::MemoryStall, from_ns, 0.0);
        read(Condition::IoStall, from_ns, 0.0);
        read(Condition::Power, from_ns, 300.0);
    }
    read(Condition::MemoryStall, 40, 25.0);
    read(Condition::MemoryStall, 50, 25.0);
    read(Condition::MemoryStall, 60, 0.0);
    let t = &program.tables;
    assert_eq!(
        t.counters.name,
        ["GPU power", "machine stalled on memory (some)"].map(Into::into)
    );
    assert_eq!(
        values(&program),
        [
            (10, None, 300.0),
            (10, None, 0.0),
            (40, None, 25.0),
            (60, None, 0.0)
        ]
    );
}

#[test]
fn a_value_that_cannot_be_read_any_more_does_not_hold() {
    let mut program = Program::new();
    for (from_ns, value) in [
        (10, Some(300.0)),
        (20, Some(300.0)),
        (30, None),
        (40, None),
        (50, Some(300.0)),
    ] {
        let reading = reading(Condition::Power, from_ns, value);
        program.assembler.condition(&reading, &mut program.tables);
    }
    assert_eq!(
        values(&program),
        [(10, None, 300.0), (25, Some(0), 300.0), (50, None, 300.0)],
        "it was seen last at 25"
    );
}

#[test]
fn a_session_that_was_killed_long_before_the_end_knows_nothing_of_the_rest() {
    let mut program = Program::new();
    program
        .assembler
        .condition(&reading(Condition::Power, 10, 300.0), &mut program.tables);

    program.sample(60_000_000_000);
    program
        .assembler
        .finish(&crate::Names::default(), &mut program.tables);
    assert_eq!(values(&program), [(10, None, 300.0), (15, Some(0), 300.0)]);
}

#[test]
fn a_gpu_that_the_trace_has_not_is_none_of_it() {
    let mut program = Program::new();
    for (uuid, rows) in [("aa", 0), ("07", 1)] {
        let reading = Reading {
            of: ConditionSubject::Gpu(uuid.repeat(16).into()),
            ..reading(Condition::Power, 10, 300.0)
        };
        program.assembler.condition(&reading, &mut program.tables);
        assert_eq!(program.tables.counters.len(), rows);
    }
    assert!(program.tables.counters.device.at(0).is_some());
}
