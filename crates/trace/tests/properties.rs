//! Any trace survives a round trip; after any damage, nothing panics and the damage is reported.

use gapscope_trace::manifest::{Device, Exit, Loss, Manifest, Queue, Unmeasured};
use gapscope_trace::tables::*;
use gapscope_trace::{Selection, Tables, Trace, TraceWriter, for_each_table, read};
use proptest::prelude::*;
use std::fs;
use std::path::Path;

/// Texts of which each column takes those that are valid for it.
const VALUES: [&str; 24] = [
    "0",
    "1",
    "2",
    "7",
    "-1",
    "255",
    "4294967295",
    "4294967296",
    "18446744073709551615",
    "9223372036854775807",
    "-9223372036854775808",
    "-2147483648",
    "",
    "sin",
    "a b",
    "\"",
    "\\",
    "#",
    "a=b",
    "line\nline\r\n",
    "\u{0}\u{7f}\u{2028}",
    "ö 日本",
    "submit",
    "measured",
];

/// Builds a row whose columns are chosen by `choices`, one a column.
fn row<T: Table>(choices: &[u8]) -> T::Row {
    let mut row = T::blank();
    for (column, choice) in T::COLUMNS.iter().zip(choices.iter().cycle()) {
        // A quarter of the columns keep the default.
        let value = VALUES.get(*choice as usize % (VALUES.len() * 4 / 3));
        // Thread 0 does not occur, because it once stood for an unknown thread.
        if let Some(value) = value.filter(|value| (*column, **value) != ("thread", "0")) {
            T::set_from_text(&mut row, column, value);
        }
    }
    row
}

/// A step of a recording.
#[derive(Debug, Clone)]
enum Step {
    /// A row is pushed to the table with this number.
    Push(usize, Vec<u8>),
    Checkpoint,
    /// The session dies after its checkpoint and is resumed; the rows pushed since are lost.
    Die,
}

fn steps() -> impl Strategy<Value = Vec<Step>> {
    let push = (0..14usize, prop::collection::vec(any::<u8>(), 1..13));
    let step = prop_oneof![
        20 => push.prop_map(|(table, choices)| Step::Push(table, choices)),
        2 => Just(Step::Checkpoint),
        1 => Just(Step::Die),
    ];
    prop::collection::vec(step, 0..60)
}

fn push(tables: &mut Tables, table: usize, choices: &[u8]) {
    let mut number = 0;
    macro_rules! push {
        ($($field:ident: $table:ty,)+) => {$(
            if number == table { tables.$field.push(row::<$table>(choices)); }
            number += 1;
        )+};
    }
    for_each_table!(push);
    assert!(table < number);
}

fn manifest() -> impl Strategy<Value = Manifest> {
    let text = prop::sample::select(VALUES.as_slice()).prop_map(str::to_owned);
    (
        text.clone(),
        text.clone(),
        any::<i64>(),
        any::<f64>(),
        any::<u64>(),
        any::<i32>(),
    )
        .prop_map(|(a, b, time, rate, count, code)| {
            let mut device = Device {
                name: a.clone(),
                heaps: vec![count, 0],
                ..Device::default()
            };
            device.clock.error_ns = Some(time);
            // JSON has no infinity.
            device.clock.drift_ppm = Some(rate).filter(|rate| rate.is_finite());
            Manifest {
                format_version: gapscope_trace::manifest::FORMAT_VERSION,
                complete: true,
                command: vec![a.clone(), b.clone()],
                exit: Some(Exit::Code(code)),
                start_ns: time,
                devices: vec![device, Device::default()],
                queues: vec![Queue {
                    name: Some(b.clone()),
                    ..Queue::default()
                }],
                unmeasured: vec![Unmeasured {
                    what: a.clone(),
                    reason: b.clone(),
                }],
                losses: vec![Loss::new(a.clone(), count, b)],
                notes: vec![a],
                ..Manifest::default()
            }
        })
}

/// Writes a recording and returns the rows that it must hold.
fn record(folder: &Path, steps: &[Step], manifest: &Manifest) -> Trace {
    let mut writer = TraceWriter::create(folder).expect("create");
    let mut tables = Tables::default();
    for step in steps {
        match step {
            Step::Push(table, choices) => {
                push(writer.tables_mut(), *table, choices);
                push(&mut tables, *table, choices);
            }
            Step::Checkpoint => {
                writer.checkpoint().expect("checkpoint");
            }
            Step::Die => {
                let parts = writer.checkpoint().expect("checkpoint");
                push(writer.tables_mut(), 0, &[1]);
                push(writer.tables_mut(), 5, &[1]);
                writer.checkpoint().expect("checkpoint");
                push(writer.tables_mut(), 5, &[1]);
                drop(writer);
                writer = TraceWriter::resume(folder, &parts).expect("resume");
            }
        }
    }
    writer.finish(manifest).expect("finish");
    Trace {
        manifest: manifest.clone(),
        tables,
        unread: Vec::new(),
    }
}

/// Damages a random file of a trace and opens it.
fn damage_and_read(
    steps: &[Step],
    file: prop::sample::Index,
    damage: impl Fn(&mut Vec<u8>),
) -> (Trace, bool, Option<(Trace, usize)>) {
    let temporary = tempfile::tempdir().expect("a folder");
    let folder = temporary.path().join("a.gapscope");
    let whole = record(&folder, steps, &Manifest::default());
    let (_, before) = read(&folder, &Selection::all()).expect("it opens");
    let mut files: Vec<_> = fs::read_dir(&folder)
        .expect("readable")
        .map(|entry| entry.expect("readable").path())
        .filter(|path| path.is_file())
        .collect();
    files.sort();
    let path = file.get(&files);
    let mut bytes = fs::read(path).expect("readable");
    let undamaged = bytes.clone();
    damage(&mut bytes);
    fs::write(path, &bytes).expect("writable");
    let found = read(&folder, &Selection::all()).ok();
    let found = found.map(|(trace, diagnostics)| {
        let new = diagnostics.iter().filter(|d| !before.contains(d)).count();
        (trace, new)
    });
    (whole, bytes != undamaged, found)
}

/// Checks that tables are intact: columns of one length, rows that can be read and printed.
fn use_everything(trace: &Trace) {
    assert!(Trace::from_text(&trace.to_text()).is_ok());
    macro_rules! batches {
        ($($field:ident: $table:ty,)+) => {$(trace.tables.$field.to_batch();)+};
    }
    for_each_table!(batches);
    let paths = gapscope_trace::lookup::LabelPaths::new(&trace.tables.labels);
    for label in &trace.tables.labels.id {
        assert!(paths.get(*label).is_some());
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(24))]

    #[test]
    fn a_recording_with_deaths_and_checkpoints_comes_back(steps in steps(), manifest in manifest()) {
        let temporary = tempfile::tempdir().expect("a folder");
        let folder = temporary.path().join("a.gapscope");
        let written = record(&folder, &steps, &manifest);
        let (found, _) = read(&folder, &Selection::all()).expect("it opens");
        prop_assert_eq!(found, written);
    }

    #[test]
    fn a_trace_cut_off_anywhere_says_so(
        steps in steps(),
        file in any::<prop::sample::Index>(),
        keep in any::<prop::sample::Index>(),
    ) {
        let cut = |bytes: &mut Vec<u8>| bytes.truncate(keep.index(bytes.len()));
        let (_, changed, found) = damage_and_read(&steps, file, cut);
        prop_assert!(changed);
        if let Some((trace, diagnostics)) = found {
            prop_assert!(diagnostics > 0);
            use_everything(&trace);
        }
    }

    #[test]
    fn changed_bytes_never_panic(
        steps in steps(),
        file in any::<prop::sample::Index>(),
        flips in prop::collection::vec((any::<prop::sample::Index>(), any::<u8>()), 1..8),
    ) {
        let flip = |bytes: &mut Vec<u8>| for (place, value) in &flips {
            let place = place.index(bytes.len());
            bytes[place] = *value;
        };
        let (_, _, found) = damage_and_read(&steps, file, flip);
        if let Some((trace, _)) = found {
            use_everything(&trace);
        }
    }
}

proptest! {
    #[test]
    fn any_trace_comes_back_from_its_text(steps in steps(), manifest in manifest()) {
        let mut trace = Trace { manifest, ..Trace::default() };
        for step in &steps {
            if let Step::Push(table, choices) = step {
                push(&mut trace.tables, *table, choices);
            }
        }
        prop_assert_eq!(Trace::from_text(&trace.to_text()), Ok(trace));
    }

    #[test]
    fn any_text_is_a_trace_or_an_error(text in any::<String>()) {
        let _ = Trace::from_text(&text);
    }

    #[test]
    fn almost_right_text_is_a_trace_or_an_error(
        words in prop::collection::vec(prop::sample::select(vec![
            "dispatch", "manifest", "device", "queue", "label", " ", "\n", "=", "\"", "\\u{", "}", "#", "id", "start_ns",
            "clock.error_ns", "clock", "exit", "exit.code", ".", "heaps", "1", "-", "1.5us", "ns", "99999999999999999999s",
        ]), 0..40)
    ) {
        if let Ok(trace) = Trace::from_text(&words.concat()) {
            prop_assert_eq!(Trace::from_text(&trace.to_text()), Ok(trace));
        }
    }
}
