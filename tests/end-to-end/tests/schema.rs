//! Tests that the JSON of all commands matches their published schemas.

use std::fs;
use std::io::Write;
use std::path::Path;
use std::process::{Command, Stdio};

use gapscope_trace::{Trace, TraceWriter};
use serde_json::{Value, json};

use crate::driver::{Driver, Lavapipe};
use crate::recording::{Run, planted};
use crate::{client, product};

/// The answers of commands, each with the name of its schema.
#[derive(Default)]
pub struct Answers {
    pairs: Vec<Value>,
    commands: Vec<String>,
}

impl Answers {
    /// Runs a command that prints JSON on stdout, keeps the answer and returns it.
    pub fn validated(&mut self, schema: &str, arguments: &[&str], path: &Path) -> Value {
        let mut command = Command::new(product::built("gapscope"));
        command.args(arguments).arg(path).envs(Lavapipe.variables());
        let run = Run::from_command(&mut command);
        let answer: Value = serde_json::from_str(&run.stdout)
            .unwrap_or_else(|error| panic!("{arguments:?}: {error}: {}", run.stderr));
        self.add(
            schema,
            &format!("{arguments:?} {}", path.display()),
            &answer,
        );
        answer
    }

    pub fn add(&mut self, schema: &str, command: &str, answer: &Value) {
        let path = product::source("../../docs/schemas").join(format!("{schema}.schema.json"));
        let text = fs::read_to_string(path).expect("the schema is published");
        let mut rules: Value = serde_json::from_str(&text).expect("a schema is JSON");
        close(&mut rules);
        self.pairs.push(json!([rules, answer]));
        self.commands.push(command.to_owned());
    }

    /// Fails if an answer does not match its schema, or has a key that the schema does not name.
    pub fn hold(self) {
        let Some([python, script]) = client::script("json-schema") else {
            return;
        };
        let mut check = Command::new(python)
            .arg(script)
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .spawn()
            .expect("Python starts");
        let text = serde_json::to_vec(&self.pairs).expect("it is JSON");
        let mut stdin = check.stdin.take().expect("it is piped");
        stdin.write_all(&text).expect("Python reads");
        drop(stdin);
        let output = check.wait_with_output().expect("Python ends");
        let wrong = String::from_utf8_lossy(&output.stdout);
        assert!(
            output.status.success() && wrong.is_empty(),
            "{wrong}{:#?}",
            self.commands
        );
    }
}

/// Forbids keys that the schema does not name. Published schemas allow them, because later versions may add keys.
fn close(rules: &mut Value) {
    let shut = |rules: &mut Value| {
        if rules["type"] == "object" && rules.get("additionalProperties").is_none() {
            rules["unevaluatedProperties"] = false.into();
        }
    };
    shut(rules);
    if let Some(definitions) = rules.get_mut("$defs").and_then(Value::as_object_mut) {
        definitions.values_mut().for_each(shut);
    }
}

/// Writes the trace that a text describes.
pub fn write(text: &str, folder: &Path) {
    let trace = Trace::from_text(text).expect("a text trace");
    let mut writer = TraceWriter::create(folder).expect("a new folder");
    *writer.tables_mut() = trace.tables;
    writer.finish(&trace.manifest).expect("it is written");
}

#[test]
fn reports_hold() {
    let folder = tempfile::tempdir().expect("a folder");
    let mut answers = Answers::default();
    let texts = product::source("../../crates/report/tests/traces");
    for entry in fs::read_dir(texts).expect("traces") {
        let path = entry.expect("an entry").path();
        let trace = folder.path().join(path.file_stem().expect("a name"));
        write(&fs::read_to_string(&path).expect("a trace"), &trace);
        for options in [&[][..], &["--all"], &["--slices", "3"]] {
            answers.validated("report", &[&["report", "--json"], options].concat(), &trace);
        }
    }
    for (rank, name) in ["rank_0", "rank_1"].into_iter().enumerate() {
        let to = folder.path().join(format!("run/rank={rank}"));
        fs::create_dir_all(folder.path().join("run")).expect("a folder");
        fs::rename(folder.path().join(name), to).expect("it moves");
    }
    answers.validated(
        "report-ranks",
        &["report", "--json"],
        &folder.path().join("run"),
    );
    for version in ["v1", "v2"] {
        let fixture = product::source("../../fixtures").join(format!("{version}.gapscope"));
        answers.validated("report", &["report", "--json"], &fixture);
    }
    for table in ["dispatches", "submissions", "labels"] {
        let damaged = folder.path().join("host_bound");
        fs::write(damaged.join(format!("{table}.parquet")), "no").expect("it is damaged");
        let report = answers.validated("report", &["report", "--json"], &damaged);
        assert_ne!(report["unread"], json!([]));
    }
    answers.hold();
}

#[test]
fn a_real_recording_and_its_capture_hold() {
    let mut answers = Answers::default();
    let program = "steady --n 6 --iterations 4";
    let recording = planted(program).recorded();
    answers.validated("report", &["report", "--json"], &recording.path());
    answers.validated("deps", &["deps", "--json"], &recording.path());
    let path = recording.path();
    let gates = [
        "diff",
        "--json",
        "--gate",
        "gpu_time > 3%",
        path.to_str().expect("UTF-8"),
    ];
    answers.validated("diff", &gates, &path);
    let folder = tempfile::tempdir().expect("a folder");
    let capture = folder.path().join("a.gapcapture");
    let mut command = Command::new(product::built("gapscope"));
    command
        .args(["capture", "--json", "-o"])
        .arg(&capture)
        .arg("--")
        .arg(product::built("planted"))
        .args(program.split_whitespace())
        .envs(Lavapipe.variables());
    let run = Run::from_command(&mut command).ok();
    let line = run.stderr.lines().find(|line| line.starts_with('{'));
    let captured = serde_json::from_str(line.expect("a line of JSON")).expect("it is JSON");
    answers.add("capture", "capture --json", &captured);
    for (schema, options) in [
        ("deps", &["deps", "--json"][..]),
        ("replay", &["replay", "--json"]),
        ("replay", &["replay", "--json", "--tight"]),
        ("replay-find-nan", &["replay", "--json", "--find-nan"]),
    ] {
        answers.validated(schema, options, &capture);
    }
    answers.hold();
}

#[test]
fn captures_that_are_kept_hold() {
    let folder = tempfile::tempdir().expect("a folder");
    let fusion = product::source("../../fixtures/fusion.gapcapture");
    let v1 = product::source("../../fixtures/v1.gapcapture");
    let mut answers = Answers::default();
    for capture in [&fusion, &v1] {
        answers.validated("deps", &["deps", "--json"], capture);
        answers.validated("replay", &["replay", "--json"], capture);
    }
    answers.validated("replay-fuse", &["replay", "--fuse", "--json"], &fusion);
    let to = folder.path().join("buffer.bin");
    let to = to.to_str().expect("a path of text");
    let dump = ["replay", "--json", "--dump", "0@0", "--to", to];
    answers.validated("replay-dump", &dump, &fusion);
    answers.hold();
}
