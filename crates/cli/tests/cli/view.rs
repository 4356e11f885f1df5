//! Tests `gapscope view` and reports as pages: the address, the end, and the files that open a view again.

use crate::{Workplace, assert_contains, assert_status, exists, text};
use std::io::{BufRead, BufReader, Read, Write};
use std::net::{TcpListener, TcpStream};
use std::process::{Child, Stdio};

/// A running `gapscope view`, and the line with its address.
struct Viewer {
    child: Child,
    line: String,
}

impl Viewer {
    fn start(workplace: &Workplace, arguments: &[&str]) -> Viewer {
        Viewer::serve(workplace, &[&["view", "--no-open"], arguments].concat())
    }

    fn serve(workplace: &Workplace, arguments: &[&str]) -> Viewer {
        let mut child = workplace
            .command(arguments)
            .env_remove("DISPLAY")
            .env_remove("WAYLAND_DISPLAY")
            .stdout(Stdio::piped())
            .stderr(Stdio::piped())
            .spawn()
            .unwrap();
        let lines = BufReader::new(child.stdout.as_mut().unwrap()).lines();
        let mut lines = lines.map(Result::unwrap);
        let line = lines.find(|line| line.contains("http://127.0.0.1:"));
        Viewer {
            child,
            line: line.unwrap_or_default(),
        }
    }

    fn get(&self, key: &str) -> String {
        let url = self
            .line
            .split_whitespace()
            .find(|word| word.starts_with("http://"));
        let (host, root) = url.unwrap()[7..].split_once('/').unwrap();
        let mut stream = TcpStream::connect(host).unwrap();
        let request =
            format!("GET /{root}{key} HTTP/1.1\r\nHost: {host}\r\nConnection: close\r\n\r\n");
        stream.write_all(request.as_bytes()).unwrap();
        let mut answer = Vec::new();
        stream.read_to_end(&mut answer).unwrap();
        String::from_utf8_lossy(&answer).into_owned()
    }

    /// Presses Ctrl-C.
    fn interrupt(mut self) -> (Option<i32>, String) {
        let pid = self.child.id().to_string();
        assert!(
            std::process::Command::new("kill")
                .args(["-INT", &pid])
                .status()
                .unwrap()
                .success()
        );
        let status = self.child.wait().unwrap();
        let mut said = String::new();
        self.child
            .stderr
            .take()
            .unwrap()
            .read_to_string(&mut said)
            .unwrap();
        (status.code(), said)
    }
}

#[test]
fn one_line_gives_the_address_and_ctrl_c_ends() {
    let workplace = Workplace::new();
    workplace.trace("run.gapscope");
    let viewer = Viewer::start(&workplace, &["run.gapscope"]);
    assert!(
        viewer.line.starts_with("run.gapscope: http://127.0.0.1:"),
        "{}",
        viewer.line
    );
    assert!(viewer.get("").contains("<!doctype html>"));
    assert!(
        viewer
            .get("api/overview")
            .contains("\"name\":\"run.gapscope\"")
    );
    let (status, said) = viewer.interrupt();
    assert_eq!((status, said.as_str()), (Some(0), ""));
}

#[test]
fn two_traces_are_compared_at_the_port_that_is_asked_for() {
    let workplace = Workplace::new();
    workplace.trace("before.gapscope");
    workplace.trace("after.gapscope");
    let free = TcpListener::bind(("127.0.0.1", 0)).unwrap();
    let port = free.local_addr().unwrap().port().to_string();
    drop(free);
    let viewer = Viewer::start(
        &workplace,
        &["--port", &port, "before.gapscope", "after.gapscope"],
    );
    assert!(
        viewer.line.contains(&format!("127.0.0.1:{port}/")),
        "{}",
        viewer.line
    );
    let overview = viewer.get("api/overview");
    assert!(overview.contains("before.gapscope") && overview.contains("after.gapscope"));
    assert!(viewer.get("api/compare?a=0&b=1").contains("\"ratios\""));
    viewer.interrupt();
}

#[test]
fn of_several_runs_that_of_median_time_is_shown_and_named() {
    let workplace = Workplace::new();
    let longer = |ns: u32| {
        crate::TRACE.replace(
            "duration_ns=20us groups",
            &format!("duration_ns={ns}us groups"),
        )
    };
    for (name, us) in [("a1", 90), ("a2", 20), ("a3", 50), ("b", 20)] {
        workplace.trace_of(&format!("{name}.gapscope"), &longer(us));
    }
    let before = ["a1.gapscope", "a2.gapscope", "a3.gapscope"];
    let sets = [
        &["diff", "--view", "--before"],
        &before[..],
        &["--after", "b.gapscope"],
    ];
    // The comparison is printed before the address.
    let viewer = Viewer::serve(&workplace, &sets.concat());
    let address = &viewer.line;
    assert!(
        address.starts_with("a3.gapscope and b.gapscope: "),
        "{address}"
    );
    let (_, said) = viewer.interrupt();
    let line = "gapscope: the page shows one run of each side, that of median time from start to end: a3.gapscope and b.gapscope";
    assert!(said.lines().any(|said| said == line), "{said}");
}

#[test]
fn what_cannot_be_viewed_is_said_in_one_sentence() {
    let workplace = Workplace::new();
    workplace.trace("run.gapscope");
    workplace.trace("unfinished.gapscope");
    workplace.edit(
        "unfinished.gapscope/trace.json",
        "\"complete\": true",
        "\"complete\": false",
    );
    let taken = TcpListener::bind(("127.0.0.1", 0)).unwrap();
    let port = taken.local_addr().unwrap().port().to_string();
    for (arguments, says) in [
        (&["nothing.gapscope"][..], "nothing.gapscope"),
        (&["hooks"], "not a gapscope trace"),
        (&["unfinished.gapscope"], "gapscope recover"),
        (&["run.gapscope", "hooks"], "not a gapscope trace"),
        (&["--port", &port, "run.gapscope"], "another program has it"),
    ] {
        let output = workplace.run(&[&["view", "--no-open"], arguments].concat());
        assert_eq!(
            (output.status.code(), text(&output.stdout).as_str()),
            (Some(1), "")
        );
        let said = text(&output.stderr);
        assert!(said.lines().count() == 1 && said.contains(says), "{said}");
    }
    let output = workplace.run(&["view", "a", "b", "c"]);
    assert_status(&output, 2);
}

#[test]
fn a_report_as_a_page_is_one_file_and_overwrites_nothing() {
    let workplace = Workplace::new();
    workplace.trace("run.gapscope");
    let output = workplace.run(&["report", "--html", "run.html", "run.gapscope"]);
    assert_status(&output, 0);
    assert_contains(text(&output.stderr), "run.html is written");
    let html = std::fs::read_to_string(workplace.path("run.html")).unwrap();
    assert!(html.contains("id=\"gapscope-data\""));
    let again = workplace.run(&["report", "--html", "run.html", "run.gapscope"]);
    assert_status(&again, 1);
    assert_contains(text(&again.stderr), "run.html exists already");
    assert_eq!(
        std::fs::read_to_string(workplace.path("run.html")).unwrap(),
        html
    );
    let nothing = workplace.run(&["report", "--html", "other.html", "hooks"]);
    assert_status(&nothing, 1);
    assert!(!exists(&workplace.path("other.html")));
}

#[test]
fn a_view_is_opened_again_by_its_state_and_by_its_file() {
    let workplace = Workplace::new();
    workplace.trace("run.gapscope");
    let state = "run.gapscope#t=1000-2000&p=kernels&first=rank+1";
    let viewer = Viewer::start(&workplace, &[state]);
    assert!(viewer.line.starts_with("run.gapscope: "), "{}", viewer.line);
    assert_contains(&viewer.line, "/?first=rank+1#t=1000-2000&p=kernels ");
    viewer.interrupt();
    let saved =
        r##"{"gapscope_view": 1, "traces": ["/elsewhere/run.gapscope"], "state": "p=labels"}"##;
    std::fs::write(workplace.path("run.view.json"), saved).unwrap();
    let viewer = Viewer::start(&workplace, &["run.view.json"]);
    assert_contains(&viewer.line, "/#p=labels ");
    viewer.interrupt();
    let output = workplace.run(&["view", "--html", "again.html", "run.view.json"]);
    assert_status(&output, 0);
    assert_contains(text(&output.stderr), "again.html is written");
    std::fs::write(workplace.path("run.view.json"), "{}").unwrap();
    let output = workplace.run(&["view", "--no-open", "run.view.json"]);
    assert_status(&output, 1);
    let said = text(&output.stderr);
    assert!(
        said.lines().count() == 1 && said.contains("run.view.json is no saved view"),
        "{said}"
    );
}
