use crate::{Workplace, exists, text};
use std::process::{Command, Output, Stdio};

const SQL: &str = "select kernel_name, count(*) as n from dispatches group by kernel_name order by n desc, kernel_name";

fn place() -> Workplace {
    let workplace = Workplace::new();
    workplace.trace("t.gapscope");
    workplace
}

fn one_line(output: &Output) -> String {
    let text = text(&output.stderr);
    assert_eq!(text.lines().count(), 1, "{text}");
    text
}

#[test]
fn an_answer_is_a_table() {
    let output = place().run(&["query", "t.gapscope", "select name, api from devices"]);
    assert!(output.status.success(), "{}", text(&output.stderr));
    insta::assert_snapshot!(text(&output.stdout));
}

#[test]
fn the_forms_and_files_of_answers() {
    let workplace = place();
    for format in ["table", "csv", "json", "parquet"] {
        let piped = workplace.run(&["query", "--format", format, "t.gapscope", SQL]);
        assert!(piped.status.success(), "{}", text(&piped.stderr));
        let to_file = ["query", "--format", format, "-o", format, "t.gapscope", SQL];
        let filed = workplace.run(&to_file);
        assert!(filed.status.success() && filed.stdout.is_empty());
        assert!(!piped.stdout.is_empty());
        assert_eq!(piped.stdout, std::fs::read(workplace.path(format)).unwrap());
        let again = workplace.run(&to_file);
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
fn a_query_that_fails_leaves_no_file() {
    let workplace = place();
    let output = workplace.run(&[
        "query",
        "-o",
        "out.csv",
        "t.gapscope",
        "select nosuch from dispatches",
    ]);
    assert_eq!(output.status.code(), Some(1));
    assert!(one_line(&output).starts_with("gapscope: there is no column nosuch"));
    assert!(!exists(&workplace.path("out.csv")));
    let output = workplace.run(&["query", "-o", "no/where.csv", "t.gapscope", "select 1"]);
    assert_eq!(
        one_line(&output),
        "gapscope: no/where.csv cannot be written: No such file or directory\n"
    );
}

#[test]
fn sql_comes_from_stdin_when_none_is_given() {
    let workplace = place();
    let ask = |sql: &str| {
        let mut command = workplace.command(&["query", "--format", "csv", "t.gapscope"]);
        std::fs::write(workplace.path("question.sql"), sql).unwrap();
        let file = std::fs::File::open(workplace.path("question.sql")).unwrap();
        command.stdin(Stdio::from(file)).output().unwrap()
    };
    let given = workplace.run(&["query", "--format", "csv", "t.gapscope", SQL]);
    assert_eq!(ask(&format!("{SQL};\n")).stdout, given.stdout);
    assert!(one_line(&ask("  \n")).starts_with("gapscope: no SQL was given"));
}

#[test]
fn a_skipped_trace_is_named_and_the_status_says_so() {
    let workplace = place();
    std::fs::create_dir(workplace.path("other.gapscope")).unwrap();
    let sql = "select trace from traces";
    let output = workplace.run(&["query", "--format", "csv", "*.gapscope", sql]);
    assert_eq!(output.status.code(), Some(3));
    assert_eq!(text(&output.stdout), "trace\nt.gapscope\n");
    assert_eq!(
        one_line(&output),
        "gapscope: skipped: other.gapscope is no gapscope trace: it has no trace.json, which a recording writes first\n"
    );
    let file = workplace.path("t.gapscope/kernels.parquet");
    let bytes = std::fs::read(&file).unwrap();
    std::fs::write(&file, &bytes[..bytes.len() - 9]).unwrap();
    let output = workplace.run(&[
        "query",
        "--format",
        "csv",
        "t.gapscope",
        "select count(*) as n from kernels",
    ]);
    assert_eq!(
        (output.status.code(), text(&output.stdout)),
        (Some(3), "n\n0\n".to_owned())
    );
    assert!(one_line(&output).starts_with("gapscope: t.gapscope/kernels.parquet cannot be read ("));
}

#[test]
fn what_was_typed_wrong() {
    let workplace = place();
    for arguments in [
        &["query", "nothing.gapscope", "select 1"][..],
        &["query", "t.gapscope", "selct 1"],
        &["query", "--saved", "nosuch", "t.gapscope"],
        &["query", "t.gapscope", "copy dispatches to 'stolen.csv'"],
    ] {
        let output = workplace.run(arguments);
        assert_eq!(output.status.code(), Some(1), "{arguments:?}");
        one_line(&output);
    }
    assert!(!exists(&workplace.path("stolen.csv")));
}

#[test]
fn a_reader_that_has_had_enough_is_no_failure() {
    let workplace = place();
    let sql = "select * from (values (1)) a cross join generate_series(1, 3000000)";
    let mut child = workplace
        .command(&["query", "--format", "csv", "t.gapscope", sql])
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
    let workplace = place();
    let help = text(&workplace.run(&["query", "--help"]).stdout);
    for saved in gapscope_query::saved::ALL {
        let output = workplace.run(&["query", "--saved", saved.name, "t.gapscope"]);
        assert!(output.status.success(), "{}", text(&output.stderr));
        assert!(
            help.contains(&format!("  {} ", saved.name)),
            "{}",
            saved.name
        );
    }
}

/// The prompt, on a terminal that `script` makes.
#[test]
fn the_prompt_answers_and_keeps_a_history() {
    let has_script = Command::new("script")
        .arg("--version")
        .output()
        .is_ok_and(|o| o.status.success());
    if !has_script {
        eprintln!("skipped: there is no `script`");
        return;
    }
    let workplace = place();
    // What is typed ahead is dropped when the prompt takes the terminal.
    let typed = [
        "select count(*)\\n  as answer\\n from devices;\\n",
        ".schema queues\\n",
        "select nosuch;\\n",
        ".quit\\n",
    ]
    .map(|line| format!("sleep 1; printf '{line}'; "))
    .concat();
    let shell = format!(
        "({typed}sleep 1) | script -qec '{} query t.gapscope' /dev/null",
        env!("CARGO_BIN_EXE_gapscope")
    );
    let output = Command::new("sh")
        .args(["-c", &shell])
        .current_dir(workplace.path("."))
        .env("XDG_STATE_HOME", workplace.path("state"))
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
    let history = std::fs::read_to_string(workplace.path("state/gapscope/query-history")).unwrap();
    assert!(history.contains("as answer"), "{history}");
}
