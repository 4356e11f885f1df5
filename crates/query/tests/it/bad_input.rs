//! Invalid SQL and invalid traces: each error is one sentence that says what to do.

use crate::{TEXT, TestFolder, count, cut_short, error, one};
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
    for (sql, start) in [
        (
            "select 1 from zebra",
            "there is no table zebra: there are traces, ",
        ),
        ("selct 1", "the SQL cannot be understood: "),
        ("", "no SQL was given"),
        (" ", "no SQL was given"),
        (";", "no SQL was given"),
    ] {
        let said = error(&session, sql);
        assert!(said.starts_with(start), "{said}");
    }
    assert!(error(&session, "select nosuch(1)").contains("nosuch"));
    assert!(error(&session, "select 1; select 2").contains("these are 2: ask them one by one"));
}

#[test]
fn statements_that_do_not_read_get_one_sentence() {
    let (folder, session) = one();
    let path = folder.path("stolen.csv");
    let copy = format!("copy (select 1) to '{}'", path.display());
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
        let start = "a query only reads, and makes no tables";
        assert!(said.starts_with(start), "{said}");
    }
    assert_eq!(count(&session, "dispatches"), 4);
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
    assert_eq!(count(&session, "command_buffers"), 2);
    assert!(
        session.take_remarks().is_empty(),
        "nobody asked for the torn table"
    );
    assert_eq!(count(&session, "dispatches"), 4);
    let remarks = session.take_remarks();
    assert_eq!(remarks.len(), 1);
    let remark = folder.without_folder(&remarks[0]);
    assert!(
        remark.starts_with("b.gapscope/dispatches.parquet cannot be read ("),
        "{remark}"
    );
    assert_eq!(count(&session, "transfers"), 1);
    assert_eq!(
        folder.without_folder(&session.take_remarks()[0]),
        "b.gapscope/transfers.parquet is missing: its rows are unknown"
    );
    assert_eq!(count(&session, "dispatches"), 4);
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
    let begun = TraceWriter::create(&folder.path("begun.gapscope")).unwrap();
    begun.write_manifest(&Default::default()).unwrap();
    drop(begun);
    let traces = folder.open(&["*.gapscope"]).unwrap();
    assert_eq!(traces.sources.len(), 1);
    let starts = [
        "begun.gapscope is not complete",
        "empty.gapscope is not a gapscope trace",
        "file.gapscope is not a gapscope trace",
    ];
    assert_eq!(traces.skipped.len(), starts.len());
    for (skipped, start) in traces.skipped.iter().zip(starts) {
        let skipped = folder.without_folder(skipped);
        assert!(skipped.starts_with(start), "{skipped}");
    }
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
