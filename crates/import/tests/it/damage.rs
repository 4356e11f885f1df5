//! Tests odd, torn and foreign files.

use crate::imported::{loss, noted};
use crate::{Exports, plain};
use gapscope_import::xctrace::{check, read};
use gapscope_import::{Error, Options, import};
use gapscope_trace::tables::Timing;
use stand_in_xctrace::{Cut, Quirks, Scene};

const GPU: &str = "metal-gpu-intervals";

fn with(quirks: &str) -> Exports {
    Exports::from_scene(&Scene::labelled_chain(6), &Quirks::parse(quirks).unwrap())
}

#[test]
fn a_second_node_without_schema_has_that_of_the_first() {
    assert_eq!(
        with("two-nodes").trace().tables,
        plain(&Scene::labelled_chain(6)).tables
    );
}

#[test]
fn references_that_lead_forwards_are_resolved() {
    let trace = with("forward-references").trace();
    let mut work = trace.tables.opaque_work.start_ns.to_vec();
    work.sort();
    assert_eq!(
        work,
        plain(&Scene::labelled_chain(6))
            .tables
            .opaque_work
            .start_ns
            .to_vec()
    );
    assert_eq!(loss(&trace, "rows of"), 0);
}

#[test]
fn a_document_without_its_end_gives_all_rows_and_a_note() {
    let trace = with("cut-after-row").trace();
    assert_eq!(trace.tables, plain(&Scene::labelled_chain(6)).tables);
    assert!(noted(
        &trace,
        "metal-gpu-intervals.xml ends without its closing tags after 6 whole rows"
    ));
}

#[test]
fn a_torn_row_is_counted() {
    let exports = with("");
    let torn = Quirks {
        cut: Cut::InLastRow,
        ..Quirks::default()
    };
    exports.add(GPU, &Scene::labelled_chain(6).table(GPU, &torn));
    let trace = exports.trace();
    assert_eq!(trace.tables.opaque_work.start_ns.len(), 5);
    assert_eq!(loss(&trace, "rows of metal-gpu-intervals.xml"), 1);
    assert_eq!(loss(&trace, "times of command buffers"), 1);
    assert_eq!(trace.tables.command_buffers.timing[5], Timing::Unknown);
    assert_eq!(trace.tables.command_buffers.start_ns.at(5), None);
}

#[test]
fn shifted_cells_are_refused_and_never_read_as_other_columns() {
    let exports = with("");
    let quirks = Quirks::parse("dropped-sentinels").unwrap();
    exports.add(GPU, &Scene::labelled_chain(6).table(GPU, &quirks));
    let trace = exports.trace();
    assert_eq!(
        trace.tables.opaque_work.start_ns.len(),
        6,
        "starts and ends of work stand in"
    );
    exports.remove("metal-gpu-execution-points");
    let trace = exports.trace();
    assert!(trace.tables.opaque_work.start_ns.is_empty());
    assert_eq!(loss(&trace, "rows of metal-gpu-intervals"), 6);
    assert_eq!(trace.tables.command_buffers.start_ns, [None; 6]);
}

#[test]
fn no_gpu_rows_are_unknown_times_and_not_an_idle_gpu() {
    let trace = with("no-gpu-rows,no-points").trace();
    assert_eq!(trace.tables.command_buffers.timing, [Timing::Unknown; 6]);
    assert_eq!(loss(&trace, "times of command buffers"), 6);
    let reason = "exported no GPU intervals of this process";
    assert_eq!(loss(&trace, reason), 6);
    assert!(noted(
        &trace,
        "the recording has the table and its export has no rows"
    ));
}

#[test]
fn starts_and_ends_of_work_stand_in_for_missing_intervals() {
    let trace = with("no-gpu-rows").trace();
    let planted = plain(&Scene::labelled_chain(6));
    assert_eq!(
        trace.tables.opaque_work.start_ns,
        planted.tables.opaque_work.start_ns
    );
    assert_eq!(
        trace.tables.opaque_work.duration_ns,
        planted.tables.opaque_work.duration_ns
    );
    assert_eq!(
        trace.tables.opaque_work.label,
        planted.tables.opaque_work.label
    );
    assert!(noted(&trace, "metal-gpu-execution-points"));
}

#[test]
fn empty_results_are_nothing_recorded() {
    let error = with("empty").read().unwrap_err();
    assert!(matches!(error, Error::NothingRecorded { .. }), "{error}");
    assert!(
        error
            .to_string()
            .contains("no Metal work of the process (99926)"),
        "{error}"
    );
}

#[test]
fn one_empty_result_among_others_is_noted() {
    let exports = with("");
    exports.add(
        "metal-command-buffer-completed",
        &Scene::chain(1).table("nothing", &Quirks::default()),
    );
    let trace = exports.trace();
    assert!(noted(
        &trace,
        "metal-command-buffer-completed.xml holds no table"
    ));
    assert_eq!(trace.manifest.devices[0].clock.error_ns, None);
}

#[test]
fn exports_are_checked_for_whoever_makes_them() {
    let exports = with("");
    let path = exports.folder.path().join("metal-gpu-intervals.xml");
    let whole = check(&path).unwrap();
    assert_eq!((whole.nodes, whole.rows, whole.whole), (1, 6, true));
    let empty = check(&exports.add(
        "empty",
        &Scene::chain(1).table("nothing", &Quirks::default()),
    ))
    .unwrap();
    assert_eq!((empty.nodes, empty.rows, empty.whole), (0, 0, true));
}

#[test]
fn a_missing_column_is_named() {
    let exports = with("");
    let table = Scene::labelled_chain(6).table(GPU, &Quirks::default());
    exports.add(
        GPU,
        &table.replace(
            "<mnemonic>duration</mnemonic>",
            "<mnemonic>length</mnemonic>",
        ),
    );
    let trace = exports.trace();
    assert!(loss(&trace, "the table has no column duration") > 0);
    assert!(loss(&trace, "rows of metal-gpu-intervals") > 0);
}

#[test]
fn exports_are_told_by_their_content_and_other_files_are_refused() {
    let exports = with("");
    let folder = exports.folder.path();
    let unnamed = folder.join("gpu work of a program");
    std::fs::rename(folder.join(format!("{GPU}.xml")), &unnamed).unwrap();
    let imported = |input: &str| {
        let output = folder.join(format!("{input}.gapscope"));
        import(
            &[folder.join(input)],
            &output,
            &Options::default(),
            &|_, _| {},
        )
    };
    assert_eq!(imported("gpu work of a program").unwrap().timed_work, 6);
    std::fs::write(folder.join("a.txt"), "hello").unwrap();
    std::fs::create_dir(folder.join("empty")).unwrap();
    for input in ["a.txt", "empty"] {
        let error = imported(input).unwrap_err();
        assert!(matches!(error, Error::Unrecognised { .. }), "{error}");
        assert!(error.to_string().contains("it imports exports of xctrace"));
    }
    let error = imported("missing").unwrap_err();
    assert!(matches!(error, Error::Read { .. }), "{error}");
}

#[test]
fn what_is_not_an_export_is_said_in_a_sentence() {
    let exports = Exports::new();
    let said = |name: &str, text: &str| {
        let path = exports.add(name, text);
        read(&[path], &Options::default()).unwrap_err().to_string()
    };
    assert!(said("a", "hello").contains("is not an export of xctrace"));
    assert!(said("b", "").contains("it has no XML element"));
    assert!(said("c", "<html></html>").contains("its root element is <html>"));
    assert!(said("d", "<trace-toc><run").contains("table of contents"));
    let folder = exports.folder.path().join("none");
    std::fs::create_dir(&folder).unwrap();
    let error = read(std::slice::from_ref(&folder), &Options::default())
        .unwrap_err()
        .to_string();
    assert!(error.contains("holds no .xml files"), "{error}");
    let error = read(&[folder.join("x.trace")], &Options::default())
        .unwrap_err()
        .to_string();
    assert!(error.contains("only xctrace on a Mac can read"), "{error}");
    let error = read(&[folder.join("x.xml")], &Options::default()).unwrap_err();
    assert!(matches!(error, Error::Read { .. }), "{error}");
}
