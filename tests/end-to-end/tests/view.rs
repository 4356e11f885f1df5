//! Tests `gapscope view` on traces and on a program that is still running.

use std::io::{BufRead, BufReader, Read, Write};
use std::net::TcpStream;
use std::os::unix::process::ExitStatusExt;
use std::path::Path;
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};

use serde_json::Value;

use crate::driver::{Driver, Lavapipe};
use crate::product;
use crate::recording::assert_contains;
use crate::truth::Truth;

/// Returns the answer of a running server to a request.
fn get(url: &str, key: &str) -> Vec<u8> {
    let rest = url.strip_prefix("http://").expect("an address");
    let (host, root) = rest.split_once('/').expect("a path");
    let mut stream = TcpStream::connect(host).expect("the server listens");
    let request =
        format!("GET /{root}api/{key} HTTP/1.1\r\nHost: {host}\r\nConnection: close\r\n\r\n");
    stream.write_all(request.as_bytes()).expect("a request");
    let mut answer = Vec::new();
    stream.read_to_end(&mut answer).expect("an answer");
    let head = answer.windows(4).position(|four| four == b"\r\n\r\n");
    answer.split_off(head.expect("a head") + 4)
}

/// Returns the number of rows on the tracks of work.
fn work_rows(overview: &Value) -> u64 {
    let tracks = overview["traces"][0]["tracks"].as_array().expect("tracks");
    let work = tracks.iter().filter(|track| track["kind"] == "work");
    work.filter_map(|track| track["rows"].as_u64()).sum()
}

/// Returns the number of rows of work that `gapscope view` serves for a trace.
pub fn rows_of_work(trace: &Path) -> u64 {
    let mut command = Command::new(product::built("gapscope"));
    let mut viewer = command
        .args(["view", "--no-open"])
        .arg(trace)
        .stdin(Stdio::null())
        .stdout(Stdio::piped())
        .spawn()
        .expect("gapscope starts");
    let mut line = String::new();
    let mut said = BufReader::new(viewer.stdout.take().expect("stdout"));
    said.read_line(&mut line).expect("a line");
    let mut words = line.split_whitespace();
    let url = words.find(|word| word.starts_with("http://"));
    let overview = get(url.expect("an address"), "overview");
    viewer.kill().expect("it runs");
    viewer.wait().expect("it ends");
    work_rows(&serde_json::from_slice(&overview).expect("JSON"))
}

#[test]
fn a_recording_is_seen_while_the_program_runs_and_after_it() {
    let folder = tempfile::tempdir().expect("a temporary folder");
    let mut command = Command::new(product::built("gapscope"));
    let mut recorder = command
        .args(["record", "--view", "--no-report", "-o"])
        .arg(folder.path().join("t.gapscope"))
        .arg("--")
        .arg(product::built("planted"))
        .args(["host-sleep", "--iterations", "50", "--sleep-us", "200000"])
        .envs(Lavapipe.variables())
        // Without these variables, no browser is opened.
        .env_remove("DISPLAY")
        .env_remove("WAYLAND_DISPLAY")
        .stdin(Stdio::null())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .expect("gapscope starts");
    let mut said = BufReader::new(recorder.stderr.take().expect("stderr"));
    let mut line = String::new();
    said.read_line(&mut line).expect("a line");
    let url = line
        .split_whitespace()
        .find(|word| word.starts_with("http://"));
    let url = url
        .unwrap_or_else(|| panic!("no address in {line}"))
        .to_owned();

    // The program sleeps ten seconds, and a checkpoint comes every four.
    let begin = Instant::now();
    let mut generation = 1;
    let mut first_seen = 0;
    let ended = loop {
        let live: Value =
            serde_json::from_slice(&get(&url, &format!("live?generations={generation}")))
                .expect("JSON");
        generation = live["traces"][0]["generation"]
            .as_u64()
            .expect("a generation");
        let overview: Value = serde_json::from_slice(&get(&url, "overview")).expect("JSON");
        if overview["traces"][0]["live"] == false {
            break overview;
        }
        if first_seen == 0 {
            first_seen = work_rows(&overview);
        }
        assert!(begin.elapsed() < Duration::from_secs(300), "{live}");
    };
    let mut stdout = String::new();
    let mut out = recorder.stdout.take().expect("stdout");
    // The program has ended, so that nothing else writes here.
    let mut rest = String::new();
    said.read_line(&mut rest).expect("a line");
    said.read_line(&mut rest).expect("a line");
    assert_contains(&rest, "until Ctrl-C");
    let pid = recorder.id().to_string();
    let killed = Command::new("kill").args(["-INT", &pid]).status();
    assert!(killed.expect("kill runs").success());
    // The command ends as any program ends that receives Ctrl-C.
    assert_eq!(recorder.wait().expect("it ends").signal(), Some(2));
    out.read_to_string(&mut stdout).expect("text");

    let truth = Truth::parse(&stdout);
    let dispatches = truth.sum("dispatches");
    assert_eq!(work_rows(&ended), dispatches, "all are there at the end");
    assert!(
        0 < first_seen && first_seen < dispatches,
        "{first_seen} of {dispatches} were seen first, while it ran"
    );
    assert_eq!(ended["traces"][0]["complete"], true);
}
