//! Keeps the promises of the format: its documentation, and traces of earlier versions.

use gapscope_trace::manifest::{Clock, Device, Host, Loss, Manifest, Process, Queue, Thread};
use gapscope_trace::reader::is_optional;
use gapscope_trace::tables::*;
use gapscope_trace::{Selection, Trace, TraceWriter, for_each_table, read, table_sizes};
use std::fmt::Write;
use std::fs;
use std::path::{Path, PathBuf};

fn in_repository(path: &str) -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR"))
        .join("../..")
        .join(path)
}

const MARK: &str = "<!-- columns:";

fn describe<T: Table>(text: &mut String) {
    let _ = write!(
        text,
        "\n### `{}`\n\n{}\n\n| column | type | meaning |\n|---|---|---|\n",
        T::NAME,
        T::MEANING.trim()
    );
    for column in T::columns() {
        let arrow = column.data_type.to_string();
        let name = match arrow.as_str() {
            "UInt32" => "u32",
            "UInt64" => "u64",
            "Int32" => "i32",
            "Int64" => "i64",
            "Float64" => "f64",
            dictionary if dictionary.starts_with("Dictionary") => "text",
            other => panic!("{other} has no name on the page"),
        };
        let unknown = if column.nullable { "?" } else { "" };
        let _ = write!(
            text,
            "| `{}` | {name}{unknown} | {}",
            column.name,
            column.meaning.trim()
        );
        for (index, (value, meaning)) in column.values.iter().enumerate() {
            let begin = if index == 0 { " " } else { "; " };
            let _ = write!(
                text,
                "{begin}`{value}`: {}",
                meaning.trim().trim_end_matches('.')
            );
        }
        text.push_str(" |\n");
    }
}

#[test]
fn the_page_lists_the_columns_of_the_code() {
    let path = in_repository("docs/trace-format.md");
    let page = fs::read_to_string(&path).expect("the page is there");
    let mark = page.find(MARK).expect("the page has the mark");
    let line = page[mark..]
        .find('\n')
        .map_or(page.len(), |end| mark + end + 1);
    let mut expected = page[..line].to_owned();
    macro_rules! describe_all {
        ($($field:ident: $table:ty,)+) => {$(describe::<$table>(&mut expected);)+};
    }
    for_each_table!(describe_all);
    if std::env::var_os("UPDATE").is_some() {
        fs::write(&path, &expected).expect("the page can be written");
    } else {
        assert_eq!(page, expected, "UPDATE=1 renews the page");
    }
}

#[test]
fn the_page_names_every_field_of_the_manifest() {
    let page =
        fs::read_to_string(in_repository("docs/trace-format.md")).expect("the page is there");
    let parts = [
        serde_json::to_value(Manifest::default()),
        serde_json::to_value(Host::default()),
        serde_json::to_value(Process::default()),
        serde_json::to_value(Thread::default()),
        serde_json::to_value(Device::default()),
        serde_json::to_value(Clock::default()),
        serde_json::to_value(Queue::default()),
        serde_json::to_value(Loss::default()),
    ];
    for part in parts {
        let part = part.expect("it is JSON");
        for field in part.as_object().expect("it has fields").keys() {
            let named =
                page.contains(&format!("`{field}`")) || page.contains(&format!("`{field}[]`"));
            assert!(named, "the page does not name `{field}`");
        }
    }
}

/// Returns the trace of a version and its text form.
fn fixture(version: u32) -> (Trace, Trace) {
    let text = fs::read_to_string(in_repository(&format!("fixtures/v{version}.txt")));
    let expected = Trace::from_text(&text.expect("the text is there")).expect("it is a trace");
    let folder = in_repository(&format!("fixtures/v{version}.gapscope"));
    let (found, diagnostics) = read(&folder, &Selection::all()).expect("it opens");
    assert_eq!(diagnostics, []);
    assert_eq!(found.manifest.format_version, version);
    (found, expected)
}

#[test]
fn a_trace_of_version_1_opens() {
    let (found, expected) = fixture(1);
    assert_eq!(found.manifest.losses, expected.manifest.losses);
    assert_eq!(found, expected);
    // These columns replaced others in version 2.
    assert_eq!(found.tables.submissions.duration_ns, [20_000, 20_000]);
    let kinds = &found.tables.submissions.kind;
    assert_eq!(kinds, &[SubmissionKind::CommandBuffers; 2]);
    // Tables that version 1 did not have are not missing.
    let sizes = table_sizes(&in_repository("fixtures/v1.gapscope"), 1).expect("readable");
    assert!(
        sizes
            .iter()
            .all(|size| size.rows.is_some_and(|rows| rows > 0))
    );
    assert_eq!(sizes.len(), 14);
}

#[test]
fn a_trace_of_version_2_opens() {
    let (found, expected) = fixture(2);
    assert_eq!(found, expected);
    let sizes = table_sizes(&in_repository("fixtures/v2.gapscope"), 2).expect("readable");
    assert_eq!(sizes.len(), 16);
}

#[test]
fn a_trace_of_version_3_opens() {
    let (found, expected) = fixture(3);
    assert_eq!(found, expected);
    macro_rules! has_rows {
        ($($field:ident: $table:ty,)+) => {$(
            let is_later = is_optional(<$table>::NAME);
            assert_eq!(found.tables.$field.is_empty(), is_later, stringify!($field));
        )+};
    }
    for_each_table!(has_rows);
}

#[test]
#[ignore = "makes the fixture anew: only before its version is released"]
fn write_version_3() {
    let text = fs::read_to_string(in_repository("fixtures/v3.txt")).expect("the text is there");
    let trace = Trace::from_text(&text).expect("it is a trace");
    let folder = in_repository("fixtures/v3.gapscope");
    let _ = fs::remove_dir_all(&folder);
    let mut writer = TraceWriter::create(&folder).expect("create");
    *writer.tables_mut() = trace.tables.clone();
    writer
        .add_source("00ff", "spv", &0x0723_0203u32.to_le_bytes())
        .expect("source");
    writer.finish(&trace.manifest).expect("finish");
}
