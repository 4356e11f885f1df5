//! Tests the export as CSV: a file for each table.

use super::traces;
use gapscope_export::csv;
use gapscope_trace::for_each_table;
use gapscope_trace::tables::*;

/// The names of all tables of a trace.
const TABLES: &[&str] = {
    macro_rules! names {
        ($($field:ident: $table:ty,)+) => { &[$(<$table>::NAME),+] };
    }
    for_each_table!(names)
};

#[test]
fn each_table_is_a_file_with_a_line_for_each_row() {
    let folder = tempfile::tempdir().unwrap();
    for (name, trace) in traces::all() {
        let folder = folder.path().join(name);
        let exported = csv::write(&trace, &folder).unwrap();
        assert_eq!(exported.rows.len(), TABLES.len());
        for rows in exported.rows {
            let path = folder.join(format!("{}.csv", rows.table));
            let text = std::fs::read_to_string(path).unwrap();
            let lines = text.lines().count() as u64;
            assert_eq!(lines, rows.written + 1, "{name} {}", rows.table);
        }
        let manifest = std::fs::read(folder.join("trace.json")).unwrap();
        let manifest: gapscope_trace::Manifest = serde_json::from_slice(&manifest).unwrap();
        assert_eq!(manifest, trace.manifest);
    }
}

#[test]
fn what_is_unknown_is_empty_and_texts_are_quoted_where_needed() {
    let folder = tempfile::tempdir().unwrap();
    let folder = folder.path().join("csv");
    let mut trace = gapscope_trace::Trace::from_text(traces::CROSSING).unwrap();
    trace.tables.kernels.name.set(0, "a, \"b\"\nc".into());
    trace.tables.kernels.entry_point.set(0, Some("".into()));
    csv::write(&trace, &folder).unwrap();
    let read = |name: &str| std::fs::read_to_string(folder.join(name)).unwrap();
    // The third dispatch has no times, and nothing stands for what is unknown.
    let dispatches = read("dispatches.csv");
    let mut lines = dispatches.lines();
    assert_eq!(lines.next().unwrap(), Dispatches::COLUMNS.join(","));
    assert_eq!(lines.next().unwrap(), "1,0,1,1,1100000,40000,16,2,1,,2,,");
    assert_eq!(dispatches.lines().last().unwrap(), "3,0,2,1,,,,,,,,,");
    let kernels = read("kernels.csv");
    // The kind of the code (the fourth column) has a value for unknown. An empty text is quoted, as nothing is unknown.
    let head = Kernels::COLUMNS.join(",");
    let row = "1,1,\"a, \"\"b\"\"\nc\",unknown,\"\",00ff,,64,1,1,,,,,,,,";
    assert_eq!(kernels, format!("{head}\n{row}\n"));
}

#[test]
fn nothing_is_overwritten() {
    let folder = tempfile::tempdir().unwrap();
    let trace = gapscope_trace::Trace::default();
    let error = csv::write(&trace, folder.path()).unwrap_err().to_string();
    assert!(error.contains("cannot be written"), "{error}");
}
