//! Runs the program like its users: output, streams and exit status.

use crate::TestFolder;
use gapscope_query::saved;
use std::process::{Command, Output, Stdio};

const PROGRAM: &str = env!("CARGO_BIN_EXE_gapscope-query");
const TRACE: &str = include_str!("../../../report/tests/traces/host_bound.txt");

const SQL: &str = "select kernel_name, count(*) as n from dispatches group by kernel_name order by n desc, kernel_name";

/// A folder with a trace, in which the program runs.
fn folder() -> TestFolder {
    let folder = TestFolder::new();
    folder.trace("t.gapscope", TRACE);
    folder
}

impl TestFolder {
    fn command(&self, arguments: &[&str]) -> Command {
        let mut command = Command::new(PROGRAM);
        command
            .args(arguments)
            .current_dir(self.path(""))
            .env_remove("RUST_BACKTRACE");
        command
    }

    fn run(&self, arguments: &[&str]) -> Output {
        self.command(arguments).output().unwrap()
    }
}

fn text(bytes: &[u8]) -> String {
    String::from_utf8(bytes.to_vec()).unwrap()
}

fn one_line(output: &Output) -> String {
    let text = text(&output.stderr);
    assert_eq!(text.lines().count(), 1, "{text}");
    text
}

#[test]
fn an_answer_is_a_table() {
    let output = folder().run(&["t.gapscope", "select name, api from devices"]);
    assert!(output.status.success(), "{}", text(&output.stderr));
    insta::assert_snapshot!(text(&output.stdout));
}

#[test]
fn a_table_is_for_people_and_the_other_forms_for_programs() {
    let folder = folder();
    let sql = "select 492521621 as busy_ns, 492521621 as id, 2186853.9 as mean_ns, v as ms from (values (99.31141), (130.0157)) t(v)";
    let table = text(&folder.run(&["t.gapscope", sql]).stdout);
    let lines: Vec<&str> = table.lines().skip(2).collect();
    let expected = [
        "492,521,621  492521621  2,186,853.9   99.31",
        "492,521,621  492521621  2,186,853.9  130.02",
    ];
    assert_eq!(lines, expected);
    let csv = text(&folder.run(&["--format", "csv", "t.gapscope", sql]).stdout);
    let row = "492521621,492521621,2186853.9,130.0157";
    assert!(csv.contains(row), "{csv}");
}

#[test]
fn sql_that_begins_with_a_comment_is_sql() {
    let folder = folder();
    for sql in [
        "-- the answer = 1\nselect 1 as n",
        "--note\nselect 1 as n",
        "/* note */ select 1 as n",
    ] {
        for arguments in [
            ["t.gapscope", sql, "--format", "csv"],
            ["--format", "csv", "t.gapscope", sql],
        ] {
            let output = folder.run(&arguments);
            assert_eq!(text(&output.stdout), "n\n1\n", "{}", text(&output.stderr));
        }
    }
    let output = folder.run(&["t.gapscope", "--frmat", "csv"]);
    assert_eq!(
        output.status.code(),
        Some(2),
        "an option that does not exist"
    );
}

#[test]
fn what_is_no_question_fails_with_one_sentence() {
    let folder = folder();
    for sql in [
        " ",
        "begin",
        "set x = 1",
        "alter table dispatches rename to d",
        "select 1; select 2",
    ] {
        let output = folder.run(&["t.gapscope", sql]);
        assert_eq!(output.status.code(), Some(1), "{sql}");
        let said = one_line(&output);
        let mut starts = [
            "no SQL was given",
            "only statements that read",
            "one statement is answered",
        ]
        .into_iter();
        assert!(
            starts.any(|start| said.starts_with(&format!("gapscope: {start}"))),
            "{said}"
        );
    }
}

#[test]
fn the_forms_and_files_of_answers() {
    let folder = folder();
    for format in ["table", "csv", "json", "rows", "parquet"] {
        let piped = folder.run(&["--format", format, "t.gapscope", SQL]);
        assert!(piped.status.success(), "{}", text(&piped.stderr));
        let to_file = ["--format", format, "-o", format, "t.gapscope", SQL];
        let filed = folder.run(&to_file);
        assert!(filed.status.success() && filed.stdout.is_empty());
        assert!(!piped.stdout.is_empty());
        assert_eq!(piped.stdout, std::fs::read(folder.path(format)).unwrap());
        let again = folder.run(&to_file);
        assert_eq!(again.status.code(), Some(1));
        assert_eq!(
            one_line(&again),
            format!(
                "gapscope: {format} is there already, and nothing is overwritten: choose another name after -o, or remove it\n"
            )
        );
    }
}

#[test]
fn rows_for_programs_are_exact_and_have_their_types() {
    let sql = "select cast(18446744073709551615 as bigint unsigned) as n, 1.5 as x, true as b, null as nothing, 'a\"b\n' as t, '' as e";
    let output = folder().run(&["--format", "rows", "t.gapscope", sql]);
    assert!(output.status.success(), "{}", text(&output.stderr));
    let said = text(&output.stdout);
    let lines = said.lines().map(|line| serde_json::from_str(line).unwrap());
    let lines: Vec<serde_json::Value> = lines.collect();
    let columns = [
        ("n", "integer"),
        ("x", "fraction"),
        ("b", "boolean"),
        ("nothing", "text"),
        ("t", "text"),
        ("e", "text"),
    ];
    let columns = columns.map(|(name, kind)| serde_json::json!({"name": name, "type": kind}));
    assert_eq!(lines[0]["columns"], serde_json::json!(columns));
    let row = serde_json::json!(["18446744073709551615", "1.5", "true", null, "a\"b\n", ""]);
    assert_eq!(lines[1..], [row]);
    // Columns are printed even without rows.
    let sql = "select 1 as n where false";
    let none = folder().run(&["--format", "rows", "t.gapscope", sql]);
    let columns = "{\"columns\":[{\"name\":\"n\",\"type\":\"integer\"}]}\n";
    assert_eq!(text(&none.stdout), columns);
}

#[test]
fn an_answer_has_at_most_the_rows_that_are_asked_for() {
    let folder = folder();
    let rows = |sql: &str| {
        let output = folder.run(&["--format", "csv", "--most", "3", "t.gapscope", sql]);
        assert!(output.status.success(), "{sql}: {}", text(&output.stderr));
        text(&output.stdout).lines().count() - 1
    };
    let all = "select * from generate_series(1, 10)";
    assert_eq!(rows(all), 3);
    assert_eq!(rows(&format!("{all} limit 2")), 2);
    let sorted = "select value from generate_series(1, 10) order by value desc";
    let output = folder.run(&["--format=csv", "--most=2", "t.gapscope", sorted]);
    assert_eq!(text(&output.stdout), "value\n10\n9\n");
    // A limit cannot be put around these statements.
    for other in ["explain select 1", "describe devices", "show tables"] {
        assert!(rows(other) > 0, "{other}");
    }
}

#[test]
fn the_schema_as_json_has_tables_and_saved_queries() {
    let output = folder().run(&["--schema", "--format", "json", "t.gapscope"]);
    let all: serde_json::Value = serde_json::from_str(&text(&output.stdout)).unwrap();
    let names = |what: &str| -> Vec<String> {
        let all = all[what].as_array().unwrap().iter();
        all.map(|one| one["name"].as_str().unwrap().to_owned())
            .collect()
    };
    for table in ["dispatches", "gaps", "traces"] {
        assert!(names("tables").iter().any(|name| name == table), "{table}");
    }
    assert_eq!(names("saved"), saved::ALL.map(|saved| saved.name));
    for saved in all["saved"].as_array().unwrap() {
        assert!(!saved["sql"].as_str().unwrap().contains("{by}"));
    }
}

#[test]
fn a_query_that_fails_leaves_no_file() {
    let folder = folder();
    let sql = "select nosuch from dispatches";
    let output = folder.run(&["-o", "out.csv", "t.gapscope", sql]);
    assert_eq!(output.status.code(), Some(1));
    assert!(one_line(&output).starts_with("gapscope: there is no column nosuch"));
    assert!(!folder.path("out.csv").exists());
    let output = folder.run(&["-o", "no/where.csv", "t.gapscope", "select 1"]);
    let unwritten = "gapscope: no/where.csv cannot be written: No such file or directory\n";
    assert_eq!(one_line(&output), unwritten);
}

#[test]
fn sql_comes_from_stdin_when_none_is_given() {
    let folder = folder();
    let ask = |sql: &str| {
        let mut command = folder.command(&["--format", "csv", "t.gapscope"]);
        std::fs::write(folder.path("question.sql"), sql).unwrap();
        let file = std::fs::File::open(folder.path("question.sql")).unwrap();
        command.stdin(Stdio::from(file)).output().unwrap()
    };
    let given = folder.run(&["--format", "csv", "t.gapscope", SQL]);
    assert_eq!(ask(&format!("{SQL};\n")).stdout, given.stdout);
    assert!(one_line(&ask("  \n")).starts_with("gapscope: no SQL was given"));
}

#[test]
fn a_skipped_trace_is_named_and_the_status_says_so() {
    let folder = folder();
    std::fs::create_dir(folder.path("other.gapscope")).unwrap();
    let sql = "select trace from traces";
    let output = folder.run(&["--format", "csv", "*.gapscope", sql]);
    assert_eq!(output.status.code(), Some(3));
    assert_eq!(text(&output.stdout), "trace\nt.gapscope\n");
    assert_eq!(
        one_line(&output),
        "gapscope: skipped: other.gapscope is not a gapscope trace: it has no trace.json, which a recording writes first\n"
    );
    let file = folder.path("t.gapscope/kernels.parquet");
    let bytes = std::fs::read(&file).unwrap();
    std::fs::write(&file, &bytes[..bytes.len() - 9]).unwrap();
    let sql = "select count(*) as n from kernels";
    let output = folder.run(&["--format", "csv", "t.gapscope", sql]);
    assert_eq!(output.status.code(), Some(3));
    assert_eq!(text(&output.stdout), "n\n0\n");
    assert!(one_line(&output).starts_with("gapscope: t.gapscope/kernels.parquet cannot be read ("));
}

#[test]
fn what_was_typed_wrong() {
    let folder = folder();
    for arguments in [
        &["nothing.gapscope", "select 1"][..],
        &["t.gapscope", "selct 1"],
        &["--saved", "nosuch", "t.gapscope"],
        &["t.gapscope", "copy dispatches to 'stolen.csv'"],
    ] {
        let output = folder.run(arguments);
        assert_eq!(output.status.code(), Some(1), "{arguments:?}");
        one_line(&output);
    }
    assert!(!folder.path("stolen.csv").exists());
}

#[test]
fn a_reader_that_has_had_enough_is_not_a_failure() {
    let folder = folder();
    let sql = "select * from (values (1)) a cross join generate_series(1, 3000000)";
    let mut child = folder
        .command(&["--format", "csv", "t.gapscope", sql])
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .unwrap();
    drop(child.stdout.take());
    let output = child.wait_with_output().unwrap();
    assert!(output.status.success(), "{}", text(&output.stderr));
    assert!(output.stderr.is_empty());
}

#[test]
fn saved_queries_are_in_the_help() {
    let folder = folder();
    let help = text(&folder.run(&["--help"]).stdout);
    for saved in saved::ALL {
        let output = folder.run(&["--saved", saved.name, "t.gapscope"]);
        assert!(output.status.success(), "{}", text(&output.stderr));
        let listed = format!("  {} ", saved.name);
        assert!(help.contains(&listed), "{listed}");
    }
}

/// Runs the prompt on a terminal that `script` creates.
#[test]
fn the_prompt_answers_and_keeps_a_history() {
    let script = Command::new("script").arg("--version").output();
    if !script.is_ok_and(|output| output.status.success()) {
        let required = std::env::var_os("GAPSCOPE_REQUIRE_CLIENTS").is_some_and(|of| of == "1");
        assert!(!required, "there is no `script`");
        eprintln!("skipped: there is no `script`");
        return;
    }
    let folder = folder();
    // The prompt drops input that was typed before it took over the terminal.
    let typed = [
        "select count(*)\\n  as answer\\n from devices;\\n",
        ".schema queues\\n",
        "select nosuch;\\n",
        ".quit\\n",
    ]
    .map(|line| format!("sleep 1; printf '{line}'; "))
    .concat();
    let shell = format!("({typed}sleep 1) | script -qec '{PROGRAM} t.gapscope' /dev/null");
    let output = Command::new("sh")
        .args(["-c", &shell])
        .current_dir(folder.path("."))
        .env("XDG_STATE_HOME", folder.path("state"))
        .env("TERM", "xterm")
        .output()
        .unwrap();
    let said = text(&output.stdout);
    for part in [
        "answer",
        "(1 row, ",
        "queues: Queues.",
        "there is no column nosuch",
    ] {
        assert!(said.contains(part), "{part}: {said}");
    }
    let history = std::fs::read_to_string(folder.path("state/gapscope/query-history")).unwrap();
    assert!(history.contains("as answer"), "{history}");
}

#[test]
#[cfg(target_os = "linux")]
fn what_would_take_the_machine_ends_with_one_sentence() {
    let folder = folder();
    let additions = format!("select {} as n", vec!["1"; 20_000].join("+"));
    for (sql, says) in [
        ("select length(repeat('x', 2000000000)) as n", "more memory"),
        (
            "select cardinality(array_repeat(1, 1000000000)) as n",
            "more memory",
        ),
        (
            "select length(string_agg(repeat('x', 1000000), '')) as n from generate_series(1, 3000)",
            "cannot compute this",
        ),
        (&*additions, "operators"),
    ] {
        let mut command = folder.command(&["t.gapscope", sql]);
        let output = command.env("GAPSCOPE_MEMORY_LIMIT", "500M").output();
        let output = output.unwrap();
        assert_eq!(output.status.code(), Some(1), "{sql:.60}");
        let said = one_line(&output);
        assert!(said.contains(says), "{said}");
    }
}

#[test]
fn a_value_that_takes_longer_than_the_limit_ends_the_query_and_leaves_no_file() {
    let folder = folder();
    // The engine computes the value at once, and looks at nothing meanwhile.
    let sql = "select length(lpad('x', 2000000000, 'yz')) as n";
    let output = folder
        .command(&["--time-limit", "50ms", "-o", "n.csv", "t.gapscope", sql])
        .env("GAPSCOPE_MEMORY_LIMIT", "16G")
        .output()
        .unwrap();
    assert_eq!(output.status.code(), Some(1));
    assert_eq!(
        one_line(&output),
        "gapscope: the query was stopped after 0.05 s: ask for less, or give a longer --time-limit\n"
    );
    let names = std::fs::read_dir(folder.path(".")).unwrap();
    let names = names.map(|entry| entry.unwrap().file_name());
    let left: Vec<_> = names
        .filter(|name| name.to_str().unwrap().contains("n.csv"))
        .collect();
    assert!(left.is_empty(), "{left:?}");
}
