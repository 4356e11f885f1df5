//! Tests `gapscope mcp`, which serves traces to agents, with the protocol's own client.

use std::fs;
use std::io::Write;
use std::path::Path;
use std::process::{Command, Stdio};
use std::thread;
use std::time::{Duration, Instant};

use serde_json::{Value, json};

use crate::driver::{Driver, Lavapipe};
use crate::recording::{assert_contains, planted};
use crate::{client, product};

/// The answers of a server.
struct Served {
    tools: Value,
    answers: Vec<Value>,
}

impl Served {
    fn text(&self, call: usize) -> &str {
        self.answers[call]["text"].as_str().expect("a text")
    }

    /// Returns the text of the answer to a call, which must have succeeded.
    fn fine(&self, call: usize) -> &str {
        assert_eq!(
            self.answers[call]["error"],
            false,
            "{call}: {}",
            self.text(call)
        );
        self.text(call)
    }

    /// Returns the sentence of the answer to a call, which must have been refused.
    fn refused(&self, call: usize) -> &str {
        assert_eq!(
            self.answers[call]["error"],
            true,
            "{call}: {}",
            self.text(call)
        );
        self.text(call)
    }
}

/// The way in which the client connects.
#[derive(Clone, Copy)]
struct ServerOptions<'a> {
    options: &'a [&'a str],
    mode: &'a str,
    roots: Option<&'a [String]>,
}

const PLAIN: ServerOptions = ServerOptions {
    options: &[],
    mode: "auto",
    roots: None,
};

/// Starts a server in `folder` and makes calls; `None` if the client is not installed.
fn serve(folder: &Path, server: ServerOptions, calls: &Value) -> Option<Served> {
    let [python, script] = client::script("mcp")?;
    product::built("gapscope-mcp");
    let mut command = vec![
        product::built("gapscope").display().to_string(),
        "mcp".into(),
    ];
    command.extend(server.options.iter().map(ToString::to_string));
    let environment: serde_json::Map<String, Value> = Lavapipe
        .variables()
        .into_iter()
        .map(|(name, value)| (name, json!(value)))
        .collect();
    let question = json!({
        "command": command, "mode": server.mode, "roots": server.roots, "calls": calls,
        "folder": folder, "environment": environment,
    });
    let mut ran = Command::new(python)
        .arg(script)
        .env("PYTHONDONTWRITEBYTECODE", "1")
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .spawn()
        .expect("Python starts");
    let mut stdin = ran.stdin.take().expect("it is piped");
    stdin
        .write_all(question.to_string().as_bytes())
        .expect("it reads");
    drop(stdin);
    let output = ran.wait_with_output().expect("it ends");
    assert!(output.status.success(), "{}", output.status);
    let answer: Value = serde_json::from_slice(&output.stdout).expect("JSON");
    assert_eq!(answer["strays"], json!([]), "stdout has the protocol alone");
    Some(Served {
        tools: answer["tools"].clone(),
        answers: answer["answers"].as_array().expect("answers").clone(),
    })
}

/// Returns a folder with a recording, `run.gapscope`.
fn recorded() -> tempfile::TempDir {
    let folder = tempfile::tempdir().expect("a folder");
    let recording = planted("steady --n 6 --iterations 4").recorded();
    let copied = Command::new("cp")
        .arg("-r")
        .arg(recording.path())
        .arg(folder.path().join("run.gapscope"))
        .status();
    assert!(copied.expect("cp starts").success());
    folder
}

#[test]
fn each_tool_answers() {
    let folder = recorded();
    let planted = product::built("planted");
    let program = [
        planted.to_str().expect("a path of text"),
        "steady",
        "--n",
        "3",
    ];
    let sql = "select count(*) as n from dispatches";
    let calls = json!([
        ["report", {"trace": "run.gapscope"}],
        ["report", {"trace": "run.gapscope", "keys": ["verdict", "dispatch_count"]}],
        ["query", {"traces": ["*.gapscope"], "sql": sql}],
        ["query", {"traces": ["run.gapscope"]}],
        ["explain", {"trace": "run.gapscope"}],
        ["explain", {"trace": "run.gapscope", "format": "json"}],
        ["record", {"command": program, "output": "again.gapscope", "time_limit_s": 30}],
        ["query", {"traces": ["again.gapscope"], "sql": sql}],
        ["record", {"command": ["sleep", "30"], "output": "slow.gapscope", "time_limit_s": 1}],
        ["diff", {"before": "run.gapscope", "after": "again.gapscope"}],
        ["import", {"inputs": ["h100.json"], "output": "imported.gapscope"}],
        ["what_if", {"trace": "run.gapscope", "changes": ["device=0.5x"]}],
    ]);
    let profile = product::source("../../fixtures/kineto/h100.json");
    fs::copy(profile, folder.path().join("h100.json")).expect("a file");
    let Some(served) = serve(folder.path(), PLAIN, &calls) else {
        return;
    };
    let tools: Vec<&String> = served.tools.as_object().expect("tools").keys().collect();
    assert_eq!(
        tools,
        [
            "diff", "explain", "import", "query", "record", "report", "what_if"
        ]
    );
    assert!(served.fine(0).contains("## Kernels"), "{}", served.fine(0));
    let report: Value = serde_json::from_str(served.fine(1)).expect("JSON");
    assert_eq!(report.as_object().expect("keys").len(), 2, "{report}");
    let rows: Value = serde_json::from_str(served.fine(2)).expect("JSON");
    assert_eq!(rows[0]["n"], report["dispatch_count"]);
    assert!(served.fine(3).contains("dispatches"));
    assert_contains(served.fine(4), "gapscope query");
    let predicted: Value = serde_json::from_str(served.fine(11)).expect("JSON");
    assert_eq!(predicted["changes"], json!(["device=0.5x"]), "{predicted}");
    let claims: Value = serde_json::from_str(served.fine(5)).expect("JSON");
    assert!(
        claims["claims"]
            .as_array()
            .is_some_and(|all| !all.is_empty())
    );
    let recorded: Value = serde_json::from_str(served.fine(6)).expect("JSON");
    assert_eq!(recorded["exit_status"], 0, "{recorded}");
    assert!(folder.path().join("again.gapscope/trace.json").exists());
    let rows: Value = serde_json::from_str(served.fine(7)).expect("JSON");
    assert!(rows[0]["n"].as_u64() > Some(0), "{rows}");
    let compared = served.fine(9);
    assert_contains(compared, "\"verdict\": \"");
    assert_contains(compared, "\"equal_work\"");
    let imported: Value = serde_json::from_str(served.fine(10)).expect("JSON");
    assert!(
        imported["said"]
            .as_str()
            .is_some_and(|said| said.contains("GPU work"))
    );
    assert!(folder.path().join("imported.gapscope/trace.json").exists());
    assert!(
        served.refused(8).starts_with("nothing was recorded"),
        "{}",
        served.text(8)
    );
}

#[test]
fn what_is_wrong_or_hostile_gets_a_sentence() {
    let folder = recorded();
    let outer = tempfile::tempdir().expect("a folder");
    fs::create_dir(outer.path().join("secret.gapscope")).expect("a folder");
    let link = folder.path().join("link.gapscope");
    std::os::unix::fs::symlink(outer.path().join("secret.gapscope"), link).expect("a link");
    let written = outer.path().join("written");
    let copy = format!("copy (select 1) to '{}.csv'", written.display());
    let external = "create external table t stored as csv location '/etc/passwd'";
    let trace = json!(["run.gapscope"]);
    let calls = json!([
        ["report", {"trace": "none.gapscope"}],
        ["report", {"trace": "../x"}],
        ["report", {"trace": "/etc"}],
        ["report", {"trace": "link.gapscope"}],
        ["report", {"trace": "--help"}],
        ["report", {"trace": "run.gapscope", "label": "--html=/tmp/x"}],
        ["query", {"traces": ["/*/*"], "sql": "select 1"}],
        ["query", {"traces": ["l*"], "sql": "select 1"}],
        ["query", {"traces": trace, "sql": "selec 1"}],
        ["query", {"traces": trace, "sql": "--schema"}],
        ["query", {"traces": trace, "sql": copy}],
        ["query", {"traces": trace, "sql": external}],
        ["query", {"traces": trace, "sql": "select * from '/etc/passwd'"}],
        ["query", {"traces": []}],
        ["record", {"command": ["true"], "output": written}],
        ["record", {"command": ["true"], "output": "run.gapscope"}],
        ["record", {"command": [], "output": "new.gapscope"}],
        ["record", {"command": ["true"], "output": "new.gapscope", "time_limit_s": 1_000_000}],
        ["record", {"command": ["./none"], "output": "new.gapscope"}],
        ["record", {"command": ["true"], "output": "new.gapscope", "folder": "/"}],
        ["import", {"inputs": ["/etc/passwd"], "output": "new.gapscope"}],
        ["import", {"inputs": ["run.gapscope"], "output": "../new.gapscope"}],
        ["diff", {"before": "run.gapscope", "after": "/etc"}],
        ["report", {"trace": "run.gapscope", "more": 1}],
        ["report", {}],
        ["report", {"trace": 7}],
        ["shell", {"command": "true"}],
    ]);
    let Some(served) = serve(folder.path(), PLAIN, &calls) else {
        return;
    };
    for call in 0..served.answers.len() {
        let sentence = served.refused(call);
        assert!(sentence.len() < 2_000, "{call}: {sentence}");
    }
    for (call, part) in [
        (0, "none.gapscope does not exist in "),
        (1, "goes upwards"),
        (2, "/etc is outside of the folders that may be used"),
        (3, "link.gapscope is outside of"),
        (4, "--help does not exist"),
        (5, "no label \"--html=/tmp/x\""),
        (15, "exists already"),
        (17, "a recording may take 1 to 120 s"),
    ] {
        assert_contains(served.text(call), part);
    }
    assert_eq!(fs::read_dir(outer.path()).expect("a folder").count(), 1);
    assert!(!folder.path().join("new.gapscope").exists());
}

/// A trace whose frames name a file of its reader, and whose tables are links to that file.
#[test]
fn a_strangers_trace_shows_nothing_of_the_readers_to_a_client() {
    const SECRET: &str = "planted-secret-5e1f";
    let folder = recorded();
    let home = tempfile::tempdir().expect("a folder");
    let secret = home.path().join("secret.py");
    fs::write(&secret, format!("{SECRET}\n")).expect("a file");
    let trace = folder.path().join("run.gapscope");
    let tables = [
        "frames.parquet",
        "kernels.parquet",
        "notes.json",
        "trace.json",
    ];
    for table in tables {
        let hostile = folder.path().join(format!("{table}.gapscope"));
        let copied = Command::new("cp")
            .arg("-r")
            .arg(&trace)
            .arg(&hostile)
            .status();
        assert!(copied.expect("cp starts").success());
        let _ = fs::remove_file(hostile.join(table));
        std::os::unix::fs::symlink(&secret, hostile.join(table)).expect("a link");
    }
    let text = SAMPLED.replace("SECRET", &secret.display().to_string());
    let sampled = gapscope_trace::Trace::from_text(&text).expect("a trace");
    let named = folder.path().join("named.gapscope");
    let mut writer = gapscope_trace::TraceWriter::create(&named).expect("a folder");
    *writer.tables_mut() = sampled.tables;
    writer.finish(&sampled.manifest).expect("a trace");
    let mut calls = Vec::new();
    let names = tables.map(|table| format!("{table}.gapscope"));
    for name in names.iter().map(|name| &**name).chain(["named.gapscope"]) {
        calls.extend([
            json!(["report", {"trace": name}]),
            json!(["report", {"trace": name, "keys": ["code", "causes", "losses"]}]),
            json!(["explain", {"trace": name}]),
            json!(["explain", {"trace": name, "format": "json"}]),
            json!(["query", {"traces": [name], "sql": "select * from frames"}]),
            json!(["query", {"traces": [name], "sql": "select * from kernels"}]),
            json!(["diff", {"before": name, "after": "run.gapscope"}]),
            json!(["import", {"inputs": [format!("{name}/kernels.parquet")], "output": "i.gapscope"}]),
        ]);
    }
    let Some(served) = serve(folder.path(), PLAIN, &json!(calls)) else {
        return;
    };
    let mut answered = 0;
    for (call, answer) in served.answers.iter().enumerate() {
        let text = served.text(call);
        assert!(!text.contains(SECRET), "{}: {text}", calls[call]);
        answered += usize::from(answer["error"] == false);
    }
    assert!(answered >= calls.len() / 3, "{answered} of {}", calls.len());
    assert_eq!(
        fs::read_to_string(&secret).expect("a file"),
        format!("{SECRET}\n")
    );
}

/// A trace of which a sample lies in the line of a file.
const SAMPLED: &str =
    "manifest sampling_mode=dispatch start_ns=0 end_ns=1ms start_unix_ns=4000000000000000000
process id=1 pid=100 executable=/usr/bin/python
thread process=1 thread=101 name=main
device id=1 process=1 api=vulkan name=GPU
queue id=1 device=1 name=compute
kernel id=1 process=1 name=k
submission id=1 process=1 queue=1 thread=101 start_ns=100us duration_ns=10us command_buffers=1
submission id=2 process=1 queue=1 thread=101 start_ns=700us duration_ns=10us command_buffers=1
command_buffer id=1 process=1 queue=1 submission=1 start_ns=120us duration_ns=10us dispatches=1
command_buffer id=2 process=1 queue=1 submission=2 start_ns=720us duration_ns=10us dispatches=1
dispatch command_buffer=1 position=0 queue=1 kernel=1 start_ns=120us duration_ns=10us
dispatch command_buffer=2 position=0 queue=1 kernel=1 start_ns=720us duration_ns=10us
frame id=5 kind=python function=main file=SECRET line=1
stack id=0 frame=5
sample time_ns=300us process=1 thread=101 stack=0 state=running source=sampled period_ns=100us
sample time_ns=500us process=1 thread=101 stack=0 state=running source=sampled period_ns=100us
";

#[test]
fn roots_and_limits_are_those_that_were_named() {
    let folder = recorded();
    let other = tempfile::tempdir().expect("a folder");
    let trace = folder.path().join("run.gapscope");
    let calls =
        json!([["report", {"trace": trace}], ["record", {"command": ["true"], "output": "a"}]]);
    let root = folder.path().to_str().expect("a path of text");
    // The folder has no traces. The option names another folder …
    let options = ["--root", root, "--read-only", "--most", "1000"];
    let server = ServerOptions {
        options: &options,
        ..PLAIN
    };
    let Some(served) = serve(other.path(), server, &calls) else {
        return;
    };
    let tools: Vec<&String> = served.tools.as_object().expect("tools").keys().collect();
    assert_eq!(tools, ["diff", "explain", "query", "report", "what_if"]);
    let text = served.fine(0);
    assert_contains(text, "The answer was cut here");
    assert!(text.chars().count() < 1_300);
    assert_contains(served.refused(1), "tool not found");
    // … or the client does, in a version of the protocol that has roots …
    let roots = [format!("file://{root}")];
    let server = ServerOptions {
        mode: "legacy",
        roots: Some(&roots),
        ..PLAIN
    };
    serve(other.path(), server, &calls)
        .expect("it is installed")
        .fine(0);
    // … or neither does.
    let served = serve(other.path(), PLAIN, &calls).expect("it is installed");
    assert_contains(served.refused(0), "outside of");
}

/// The test does not use the client's package, so that it runs everywhere.
#[test]
fn a_client_that_goes_leaves_nothing_running_and_stdout_has_the_protocol_alone() {
    let folder = tempfile::tempdir().expect("a folder");
    product::built("gapscope-mcp");
    let mut server = Command::new(product::built("gapscope"))
        .arg("mcp")
        .current_dir(folder.path())
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .stderr(Stdio::null())
        .spawn()
        .expect("it starts");
    let command = ["sh", "-c", "echo $$ > pid; exec sleep 100"];
    let arguments = json!({"command": command, "output": "o.gapscope", "time_limit_s": 100});
    let mut stdin = server.stdin.take().expect("it is piped");
    for line in [
        json!({"jsonrpc": "2.0", "id": 1, "method": "initialize", "params": {
            "protocolVersion": "2025-06-18", "capabilities": {}, "clientInfo": {"name": "test", "version": "1"}}}),
        json!({"jsonrpc": "2.0", "method": "notifications/initialized"}),
        json!("no message of the protocol"),
        json!({"jsonrpc": "2.0", "id": 2, "method": "tools/call", "params": {"name": "record", "arguments": arguments}}),
    ] {
        writeln!(stdin, "{line}").expect("it reads");
    }
    writeln!(stdin, "{{ not JSON").expect("it reads");
    let file = folder.path().join("pid");
    let started = Instant::now();
    let pid = loop {
        match fs::read_to_string(&file) {
            Ok(pid) if pid.ends_with('\n') => break pid.trim().to_owned(),
            _ => assert!(started.elapsed().as_secs() < 60, "the recording began"),
        }
        thread::sleep(Duration::from_millis(50));
    };
    drop(stdin);
    let output = server.wait_with_output().expect("it ends");
    assert!(output.status.success(), "{}", output.status);
    for line in String::from_utf8_lossy(&output.stdout).lines() {
        let message: Value =
            serde_json::from_str(line).unwrap_or_else(|error| panic!("{error}: {line}"));
        assert_eq!(message["jsonrpc"], "2.0", "{line}");
    }
    // A killed process takes a moment to end. A process that was not killed would sleep for 100 s.
    let left = Instant::now();
    loop {
        let status = fs::read_to_string(format!("/proc/{pid}/status")).unwrap_or_default();
        let runs = status
            .lines()
            .any(|line| line.starts_with("State:") && !line.contains('Z'));
        if !runs {
            break;
        }
        assert!(left.elapsed().as_secs() < 20, "{status}");
        thread::sleep(Duration::from_millis(10));
    }
}
