//! Reads dispatches piece by piece and at once, with the same result.

use gapscope_trace::ids::{KernelId, SubmissionId};
use gapscope_trace::synthetic::Synthetic;
use gapscope_trace::tables::{Dispatches, Table};
use gapscope_trace::{DispatchPieces, Selection, Trace, TraceWriter, read};
use std::fs;
use std::path::{Path, PathBuf};
use tempfile::TempDir;

/// More than two pieces, the last of them not full.
const DISPATCHES: u64 = 150_001;

/// Writes a changed made-up trace. Returns its folder, in a folder that is removed at the end of a test.
fn written(change: impl FnOnce(&mut Trace)) -> (TempDir, PathBuf) {
    let temporary = tempfile::tempdir().expect("a folder");
    let folder = temporary.path().join("a.gapscope");
    let mut trace = Synthetic {
        dispatches: DISPATCHES,
        ..Synthetic::default()
    }
    .trace();
    change(&mut trace);
    let mut writer = TraceWriter::create(&folder).expect("create");
    *writer.tables_mut() = trace.tables;
    writer.finish(&trace.manifest).expect("finish");
    (temporary, folder)
}

/// Returns the dispatches of all pieces, the number of pieces, and the diagnostics about ids.
fn pieces(folder: &Path, selection: &Selection) -> Option<(Dispatches, usize, Vec<String>)> {
    let others = selection.clone().without::<Dispatches>();
    let (trace, said) = read(folder, &others).expect("it opens");
    assert_eq!(said, []);
    let pieces = DispatchPieces::open(folder, selection)?;
    let (mut all, mut count) = (Dispatches::default(), 0);
    let said = pieces.each(&trace, &mut |piece| {
        all.append(&mut piece.clone());
        count += 1;
    })?;
    assert_eq!(pieces.rows(), all.queue.len());
    Some((all, count, said.iter().map(ToString::to_string).collect()))
}

#[test]
fn pieces_are_the_table() {
    let (_temporary, folder) = written(|trace| {
        let rows = &mut trace.tables.dispatches;
        // Columns without any value, and with few values.
        rows.label.change(|_| None);
        rows.start_ns.set(77_777, None);
        rows.submission.set(140_000, Some(SubmissionId(1)));
        // Unknown ids in two pieces.
        rows.kernel[5] = KernelId(4_000_000);
        rows.kernel[DISPATCHES as usize - 1] = KernelId(4_000_001);
    });
    let some = [
        "command_buffer",
        "queue",
        "kernel",
        "bindings",
        "label",
        "submission",
    ];
    for selection in [
        Selection::all(),
        (Selection::all().without::<Dispatches>()).columns::<Dispatches>(&some),
    ] {
        let (whole, said) = read(&folder, &selection).expect("it opens");
        let said: Vec<String> = said.iter().map(ToString::to_string).collect();
        let read = pieces(&folder, &selection);
        let (all, count, unknown) = read.unwrap_or_else(|| panic!("{selection:?}"));
        assert!(all == whole.tables.dispatches, "{selection:?}");
        assert_eq!(unknown, said);
        assert_eq!(count, 3);
    }
    let (_, _, said) = pieces(&folder, &Selection::all()).expect("it can be read");
    assert_eq!(said.len(), 1);
    assert!(
        said[0].contains("kernel of 2 row(s), such as 4000000"),
        "{said:?}"
    );
}

#[test]
fn times_count_from_the_origin() {
    let (_temporary, folder) = written(|trace| {
        trace.tables.dispatches.start_ns.set(77_777, None);
    });
    let (whole, _) = read(&folder, &Selection::all()).expect("it opens");
    let origin_ns = whole.manifest.start_ns;
    assert!(origin_ns > 0);
    let pieces = DispatchPieces::open(&folder, &Selection::all()).expect("it is whole");
    let mut expected = whole.tables.dispatches.clone();
    expected.start_ns.change(|ns| Some(ns - origin_ns));
    let mut all = Dispatches::default();
    let taken = pieces
        .from_origin(origin_ns)
        .each(&whole, &mut |piece| all.append(&mut piece.clone()));
    assert!(taken.is_some() && all == expected);
}

#[test]
fn what_is_damaged_is_not_passed_off_as_whole() {
    let (_temporary, folder) = written(|_| {});
    let file = folder.join("dispatches.parquet");
    let bytes = fs::read(&file).expect("readable");
    let (whole, _) = read(&folder, &Selection::all()).expect("it opens");
    let (mut refused, all) = (0, &whole.tables.dispatches);
    for at in (0..bytes.len()).step_by(bytes.len() / 40) {
        let mut damaged = bytes.clone();
        damaged[at] ^= 0x55;
        fs::write(&file, damaged).expect("writable");
        match pieces(&folder, &Selection::all()) {
            None => refused += 1,
            // A flipped bit may hit a value or unused bytes: the diagnostics equal those of reading at once.
            Some((found, ..)) => {
                let (whole, _) = read(&folder, &Selection::all()).expect("it opens");
                assert!(found == whole.tables.dispatches, "at {at}");
                assert_eq!(found.len(), all.len());
            }
        }
    }
    assert!(refused > 0, "no byte of forty matters");
    fs::write(&file, &bytes[..bytes.len() / 2]).expect("writable");
    assert!(DispatchPieces::open(&folder, &Selection::all()).is_none());
    fs::remove_file(&file).expect("removable");
    assert!(DispatchPieces::open(&folder, &Selection::all()).is_none());
}
