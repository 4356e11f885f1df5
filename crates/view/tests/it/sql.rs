//! Tests SQL from the page: how the program is run, and what becomes of its output. Scripts stand for the program;
//! `tests/end-to-end` runs the real one.

use crate::client::Client;
use crate::traces::{Folder, SMALL, assert_has, list};
use gapscope_view::Options;
use serde_json::{Value, json};
use std::io::Write;
use std::net::TcpStream;
use std::os::unix::fs::PermissionsExt;
use std::path::PathBuf;
use std::time::{Duration, Instant};

/// A server of traces, whose queries a shell script answers. `$HERE` is the folder of both.
struct SqlServer {
    folder: Folder,
    client: Client,
}

impl SqlServer {
    fn with(script: &str, traces: usize, longest: Duration) -> SqlServer {
        let folder = Folder::new();
        let program = folder.path().join("program");
        let here = folder.path().display();
        std::fs::write(&program, format!("#!/bin/sh\nHERE='{here}'\n{script}\n")).unwrap();
        std::fs::set_permissions(&program, PermissionsExt::from_mode(0o755)).unwrap();
        let traces: Vec<PathBuf> = (0..traces)
            .map(|number| folder.trace(&format!("t{number}"), SMALL))
            .collect();
        let options = Options {
            query_program: Some(program),
            longest_query: Some(longest),
            ..Options::default()
        };
        SqlServer {
            client: Client::with(&traces, options),
            folder,
        }
    }

    fn new(script: &str) -> SqlServer {
        SqlServer::with(script, 1, Duration::from_secs(30))
    }

    fn refused(&self, key: &str) -> (u16, String) {
        let response = self.client.key(key);
        let body: Value = serde_json::from_slice(&response.body).unwrap();
        (response.status, body["error"].as_str().unwrap().to_owned())
    }

    /// Waits for a file, and reads it.
    fn wait_for(&self, name: &str) -> String {
        let path = self.folder.path().join(name);
        let begun = Instant::now();
        loop {
            match std::fs::read_to_string(&path) {
                Ok(text) if text.ends_with('\n') => return text.trim().to_owned(),
                _ => assert!(begun.elapsed() < Duration::from_secs(20), "no {name}"),
            }
            std::thread::sleep(Duration::from_millis(10));
        }
    }
}

/// A script that writes its process id, and would go on for ever.
const ENDLESS: &str = "echo $$ > \"$HERE/pid\"\nexec sleep 1000";

fn ends(pid: &str) {
    let begun = Instant::now();
    // The process may be a zombie for a moment.
    let runs = || {
        std::fs::read_to_string(format!("/proc/{pid}/stat"))
            .is_ok_and(|stat| !stat.contains(") Z "))
    };
    while runs() {
        assert!(begun.elapsed() < Duration::from_secs(10), "{pid} runs on");
        std::thread::sleep(Duration::from_millis(10));
    }
}

const HEAD: &str = r#"{"columns":[{"name":"n","type":"integer"}]}"#;

#[test]
fn a_query_is_asked_of_all_traces_and_answered_in_rows() {
    let script = format!(
        "printf '%s\\n' \"$@\" > \"$HERE/arguments\"\ncat > \"$HERE/stdin\"; echo >> \"$HERE/stdin\"\necho '{HEAD}'\necho '[\"18446744073709551615\"]'\necho '[null]'"
    );
    let asked = SqlServer::with(&script, 2, Duration::from_secs(30));
    let answer = asked.client.json("query?sql=select%20'a+b'%3B");
    assert_eq!(answer["rows"], json!([["18446744073709551615"], [null]]));
    assert_eq!(answer["columns"][0]["type"], "integer");
    assert_has(&answer, json!({"more": false, "missing": []}));
    assert!(answer["took_ms"].as_f64().unwrap() > 0.0);
    let path = |name: &str| asked.folder.path().join(name).display().to_string();
    let traces = [path("t0.gapscope"), path("t1.gapscope")];
    assert_eq!(answer["traces"], json!(traces));
    let arguments = asked.wait_for("arguments");
    let traces = traces.join("\n");
    let expected = format!("--format=rows\n--most\n1001\n--\n{traces}");
    assert_eq!(arguments, expected);
    assert_eq!(asked.wait_for("stdin"), "select 'a b';");
}

#[test]
fn more_rows_than_are_shown_are_said() {
    for (rows, more) in [(1000, false), (1001, true)] {
        let script = format!(
            "echo '{HEAD}'\ni=0; while [ $i -lt {rows} ]; do echo '[\"1\"]'; i=$((i+1)); done"
        );
        let answer = SqlServer::new(&script).client.json("query?sql=x");
        assert_eq!(list(&answer["rows"]).len(), 1000);
        assert_eq!(answer["more"], more);
    }
}

#[test]
fn what_an_answer_lacks_is_said_beside_it() {
    let script =
        format!("echo '{HEAD}'\necho 'gapscope: skipped: t1 is not a gapscope trace' >&2\nexit 3");
    let answer = SqlServer::new(&script).client.json("query?sql=x");
    let missing = ["skipped: t1 is not a gapscope trace"];
    assert_has(&answer, json!({"missing": missing, "rows": []}));
}

#[test]
fn a_refusal_is_passed_on_as_it_is() {
    let asked =
        SqlServer::new("echo 'gapscope: there is no column x: did you mean y?' >&2\nexit 1");
    let said = (400, "there is no column x: did you mean y?".to_owned());
    assert_eq!(asked.refused("query?sql=x"), said);
    let too_large = format!("echo '{HEAD}'\nexec head -c 40000000 /dev/zero");
    for (script, part) in [
        ("kill -9 $$", "ended from outside"),
        ("echo nonsense", "another version"),
        (&too_large, "more than 32 MiB"),
    ] {
        let (status, sentence) = SqlServer::new(script).refused("query?sql=x");
        assert_eq!(status, 400);
        assert!(sentence.contains(part), "{sentence}");
    }
    assert_eq!(asked.refused("query").0, 400);
}

#[test]
fn a_query_that_takes_too_long_is_stopped() {
    let asked = SqlServer::with(ENDLESS, 1, Duration::from_millis(700));
    let (status, sentence) = asked.refused("query?sql=x");
    assert_eq!(status, 400);
    assert!(sentence.contains("stopped after 0.7 s"), "{sentence}");
    ends(&asked.wait_for("pid"));
}

/// Sends a query that has no end, and returns the connection and the id of the process that runs it.
fn endless() -> (SqlServer, TcpStream, String) {
    let asked = SqlServer::new(ENDLESS);
    let (root, host) = (&asked.client.root, &asked.client.host);
    let request = format!("GET {root}api/query?sql=x HTTP/1.1\r\nHost: {host}\r\n\r\n");
    let mut stream = TcpStream::connect(host).unwrap();
    stream.write_all(request.as_bytes()).unwrap();
    let pid = asked.wait_for("pid");
    assert!(std::path::Path::new(&format!("/proc/{pid}")).exists());
    (asked, stream, pid)
}

/// The page drops its request when it asks something else, or is closed.
#[test]
fn a_query_that_nobody_waits_for_is_stopped() {
    let (_asked, stream, pid) = endless();
    drop(stream);
    ends(&pid);
}

#[test]
fn a_query_ends_with_the_server() {
    let (asked, _stream, pid) = endless();
    drop(asked.client);
    ends(&pid);
}

#[test]
fn without_the_program_the_command_s_sentence_is_said() {
    if gapscope_companion::companion::find(gapscope_companion::QUERY_PROGRAM).is_some() {
        // The program is in PATH: the test runs itself again without it.
        let path = std::env::var_os("PATH").unwrap_or_default();
        assert!(!path.is_empty(), "the program is beside the tests");
        let test = "sql::without_the_program_the_command_s_sentence_is_said";
        let mut again = std::process::Command::new(std::env::current_exe().unwrap());
        let status = again.args(["--exact", test]).env("PATH", "").status();
        assert!(status.unwrap().success());
        return;
    }
    let (_folder, client) = Client::small();
    for key in ["query?sql=x", "catalogue"] {
        let response = client.key(key);
        assert_eq!(response.status, 501);
        let (said, part) = (
            response.text(),
            "`gapscope query` needs the program gapscope-query",
        );
        assert!(said.contains(part), "{said}");
    }
}

#[test]
fn the_catalogue_is_the_program_s() {
    let script = "echo '{\"tables\": [], \"saved\": []}'; printf '%s ' \"$1\" \"$2\" > \"$HERE/arguments\"; echo >> \"$HERE/arguments\"";
    let asked = SqlServer::new(script);
    let catalogue = json!({"tables": [], "saved": []});
    assert_eq!(asked.client.json("catalogue"), catalogue);
    assert_eq!(asked.wait_for("arguments"), "--schema --format=json");
}

#[test]
fn a_recording_that_goes_on_is_not_asked() {
    let folder = Folder::new();
    let options = Options {
        live: true,
        query_program: Some(folder.path().join("none")),
        ..Options::default()
    };
    let client = Client::with(&[folder.path().join("later.gapscope")], options);
    let response = client.key("query?sql=x");
    let said = response.text();
    assert_eq!(response.status, 400);
    assert!(said.contains("when the recording has ended"), "{said}");
}

#[test]
fn who_does_not_know_the_address_cannot_ask() {
    let asked = SqlServer::new("touch \"$HERE/ran\"");
    let foreign = asked.client.raw(&format!(
        "GET {}api/query?sql=x HTTP/1.1\r\nHost: evil.example\r\nConnection: close\r\n\r\n",
        asked.client.root
    ));
    assert_eq!(foreign.status, 403);
    assert_eq!(asked.client.path("/0123/api/query?sql=x").status, 404);
    for method in ["POST", "PUT"] {
        let sent = asked.client.send(method, "query?sql=x", "", "");
        assert_eq!(sent.status, 405);
    }
    assert!(!asked.folder.path().join("ran").exists());
}

#[test]
fn a_row_is_found_by_its_values() {
    let asked = SqlServer::new("");
    let row = |key: &str| asked.client.json(&format!("t/0/row/{key}"));
    assert_eq!(row("command_buffers?id=2"), json!({"row": 1}));
    assert!(row("dispatches?position=999999")["missing"].is_string());
    for key in ["t/0/row/kernels?id=1", "t/7/row/dispatches?position=0"] {
        assert_eq!(asked.client.status(key), 404);
    }
}
