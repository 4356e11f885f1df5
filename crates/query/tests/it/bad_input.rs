//! Invalid SQL and invalid traces: each error is one sentence that says what to do.

use crate::{TEXT, TestFolder, csv, cut_short, error, one};
use gapscope_trace::TraceWriter;

#[test]
fn wrong_sql_gets_one_sentence_with_a_hint() {
    let (_place, session) = one();
    for (sql, expected) in [
        (
            "select duraton_ns from dispatches",
            "there is no column duraton_ns: did you mean duration_ns?",
        ),
        (
            "select name from dispatches",
            "there is no column name: did you mean device_name, kernel_full_name or kernel_name?",
        ),
        (
            "select 1 from dispatch",
            "there is no table dispatch: did you mean dispatches?",
        ),
        (
            "select id from queues q join devices d on d.id = q.device",
            "id is a column of several tables: write which, as in TABLE.id",
        ),
    ] {
        assert_eq!(error(&session, sql), expected);
    }
    let unknown = error(&session, "select 1 from zebra");
    assert!(
        unknown.starts_with("there is no table zebra: there are traces, "),
        "{unknown}"
    );
    let broken = error(&session, "selct 1");
    assert!(
        broken.starts_with("the SQL cannot be understood: "),
        "{broken}"
    );
    assert!(error(&session, "select nosuch(1)").contains("nosuch"));
    for nothing in ["", " ", ";"] {
        assert!(error(&session, nothing).starts_with("no SQL was given"));
    }
    assert!(error(&session, "select 1; select 2").contains("these are 2: ask them one by one"));
}

#[test]
fn statements_that_do_not_read_get_one_sentence() {
    let (folder, session) = one();
    let copy = format!(
        "copy (select 1) to '{}'",
        folder.path("stolen.csv").display()
    );
    for sql in [
        "alter table dispatches rename to d",
        "set x = 1",
        "prepare p as select 1",
        "begin",
        &copy,
    ] {
        let verb = sql.split(' ').next().unwrap();
        let said = error(&session, sql);
        let expected =
            format!("explain), and {verb} is none: the file for an answer is named by -o");
        assert!(
            said.starts_with("only statements that read are answered") && said.ends_with(&expected),
            "{said}"
        );
    }
}

#[test]
fn nothing_is_written_but_the_answer() {
    let (folder, session) = one();
    let path = folder.path("stolen.csv");
    for sql in [
        format!("copy (select 1) to '{}'", path.display()),
        "insert into dispatches select * from dispatches".to_owned(),
        "delete from dispatches".to_owned(),
    ] {
        error(&session, &sql);
    }
    for sql in [
        "create table mine as select * from dispatches",
        "create view mine as select * from dispatches",
        "drop table dispatches",
    ] {
        let said = error(&session, sql);
        assert!(
            said.starts_with("a query only reads, and makes no tables"),
            "{said}"
        );
    }
    assert_eq!(
        csv(&session, "select count(*) as n from dispatches"),
        "n\n4\n"
    );
    let window = "select kernel_name, sum(duration_ns) over () from dispatches group by all";
    assert!(error(&session, window).ends_with("name the columns to group by instead"));
    assert!(!path.exists());
}

#[test]
fn a_torn_table_is_named_and_the_rest_is_answered() {
    let folder = TestFolder::new();
    folder.trace("a.gapscope", TEXT);
    folder.trace("b.gapscope", TEXT);
    cut_short(&folder.path("b.gapscope/dispatches.parquet"));
    std::fs::remove_file(folder.path("b.gapscope/transfers.parquet")).unwrap();
    let session = folder.session(&["a.gapscope", "b.gapscope"]);
    assert_eq!(
        csv(&session, "select count(*) as n from command_buffers"),
        "n\n2\n"
    );
    assert!(
        session.take_remarks().is_empty(),
        "nobody asked for the torn table"
    );
    assert_eq!(
        csv(&session, "select count(*) as n from dispatches"),
        "n\n4\n"
    );
    let remarks = session.take_remarks();
    assert_eq!(remarks.len(), 1);
    let remark = folder.without_folder(&remarks[0]);
    assert!(
        remark.starts_with("b.gapscope/dispatches.parquet cannot be read ("),
        "{remark}"
    );
    assert_eq!(
        csv(&session, "select count(*) as n from transfers"),
        "n\n1\n"
    );
    assert_eq!(
        folder.without_folder(&session.take_remarks()[0]),
        "b.gapscope/transfers.parquet is missing: its rows are unknown"
    );
    assert_eq!(
        csv(&session, "select count(*) as n from dispatches"),
        "n\n4\n"
    );
    assert!(session.take_remarks().is_empty(), "said once");
}

#[test]
fn a_damaged_page_fails_and_names_the_trace() {
    let folder = TestFolder::new();
    folder.trace("a.gapscope", TEXT);
    let path = folder.path("a.gapscope/dispatches.parquet");
    let mut bytes = std::fs::read(&path).unwrap();
    // Pages come before the footer, which stays intact.
    for byte in &mut bytes[4..200] {
        *byte = 0xff;
    }
    std::fs::write(&path, bytes).unwrap();
    let session = folder.session(&["a.gapscope"]);
    let text = error(&session, "select * from dispatches");
    let text = folder.without_folder(&text);
    assert!(text.starts_with("a.gapscope is damaged ("), "{text}");
}

#[test]
fn what_is_no_trace_is_named_and_skipped() {
    let folder = TestFolder::new();
    folder.trace("a.gapscope", TEXT);
    std::fs::create_dir(folder.path("empty.gapscope")).unwrap();
    std::fs::write(folder.path("file.gapscope"), "hello").unwrap();
    drop(
        TraceWriter::create(&folder.path("begun.gapscope")).map(|writer| {
            writer.write_manifest(&Default::default()).unwrap();
        }),
    );
    let traces = folder.open(&["*.gapscope"]).unwrap();
    assert_eq!(traces.sources.len(), 1);
    let skipped: Vec<String> = traces
        .skipped
        .iter()
        .map(|text| folder.without_folder(text))
        .collect();
    assert_eq!(skipped.len(), 3);
    assert!(
        skipped[0].starts_with("begun.gapscope is not complete"),
        "{skipped:?}"
    );
    assert!(
        skipped[1].starts_with("empty.gapscope is not a gapscope trace"),
        "{skipped:?}"
    );
    assert!(
        skipped[2].starts_with("file.gapscope is not a gapscope trace"),
        "{skipped:?}"
    );
}

#[test]
fn traces_that_cannot_be_found_are_said() {
    let folder = TestFolder::new();
    folder.trace("runs/rank=0", TEXT);
    let error =
        |names: &[&str]| folder.without_folder(&folder.open(names).unwrap_err().to_string());
    assert_eq!(error(&["nothing"]), "nothing does not exist");
    assert!(error(&["*.gapscope"]).starts_with("nothing is called *.gapscope: "));
    assert!(error(&["[.gapscope"]).contains("cannot be understood"));
    assert_eq!(
        error(&["runs"]),
        "runs is not a gapscope trace: it is a folder without a trace.json; for the traces in it write 'runs/*'"
    );
}
