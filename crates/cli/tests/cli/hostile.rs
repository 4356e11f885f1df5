//! Tests that a stranger's trace shows and changes nothing of its reader's: every command opens traces whose files are
//! links to the reader's, and that name the reader's files as the program's source.

use crate::{Workplace, assert_status, text};
use std::collections::BTreeSet;
use std::fs;
use std::io::{BufRead, BufReader, Read, Write};
use std::net::TcpStream;
use std::os::unix::fs::{PermissionsExt, symlink};
use std::os::unix::net::UnixListener;
use std::path::{Path, PathBuf};
use std::process::{Child, Stdio};

/// The text that the reader's files hold, and nothing else.
const SECRET: &str = "planted-secret-5e1f";

/// The size of files that are longer than any of their kind. They have no blocks on the disk.
const HUGE_BYTES: u64 = 4 << 30;

/// A trace that names the reader's file as the line behind its samples, recorded after that file changed.
fn sampled(file: &Path) -> String {
    format!(
        "manifest sampling_mode=dispatch start_ns=0 end_ns=1ms start_unix_ns=4000000000000000000
process id=1 pid=100 executable=/usr/bin/python
thread process=1 thread=101 name=main
device id=1 process=1 api=vulkan name=GPU
queue id=1 device=1 name=compute
kernel id=1 process=1 name=k source=48373bb5c0de
submission id=1 process=1 queue=1 thread=101 start_ns=100us duration_ns=10us command_buffers=1
submission id=2 process=1 queue=1 thread=101 start_ns=700us duration_ns=10us command_buffers=1
command_buffer id=1 process=1 queue=1 submission=1 start_ns=120us duration_ns=10us dispatches=1
command_buffer id=2 process=1 queue=1 submission=2 start_ns=720us duration_ns=10us dispatches=1
dispatch command_buffer=1 position=0 queue=1 kernel=1 start_ns=120us duration_ns=10us
dispatch command_buffer=2 position=0 queue=1 kernel=1 start_ns=720us duration_ns=10us
frame id=5 kind=python function=main file={file} line=1
stack id=0 frame=5
sample time_ns=200us process=1 thread=101 stack=0 state=running source=sampled period_ns=100us
sample time_ns=300us process=1 thread=101 stack=0 state=running source=sampled period_ns=100us
sample time_ns=400us process=1 thread=101 stack=0 state=running source=sampled period_ns=100us
sample time_ns=500us process=1 thread=101 stack=0 state=running source=sampled period_ns=100us
",
        file = file.display()
    )
}

/// The reader's files, beside the traces of a stranger.
struct Reader {
    workplace: Workplace,
}

impl Reader {
    fn new() -> Reader {
        let workplace = Workplace::new();
        let home = workplace.path("home");
        fs::create_dir(&home).unwrap();
        for name in [
            "secret",
            "secret.py",
            "code.spv",
            "notes.json",
            "t-000001.parquet",
        ] {
            fs::write(home.join(name), format!("{SECRET}\n")).unwrap();
        }
        Reader { workplace }
    }

    fn home(&self, name: &str) -> PathBuf {
        self.workplace.path("home").join(name)
    }

    /// Writes the trace NAME, with links in place of the files and folders in `links`.
    fn trace(&self, name: &str, links: &[(&str, &str)]) {
        self.workplace
            .trace_of(name, &sampled(&self.home("secret.py")));
        for (place, target) in links {
            let place = self.workplace.path(name).join(place);
            let _ = fs::remove_file(&place);
            if place.is_dir() {
                fs::remove_dir_all(&place).unwrap();
            }
            symlink(self.home(target), place).unwrap();
        }
    }

    /// Writes all hostile traces, and returns their names.
    fn traces(&self) -> Vec<String> {
        self.trace("named.gapscope", &[]);
        let links = [
            ("notes.json", "notes.json"),
            ("trace.json.new", "secret"),
            ("dispatches.parquet.new", "secret"),
            ("rank=0", ""),
            ("sources/48373bb5c0de.spv", "code.spv"),
        ];
        self.trace("links.gapscope", &links);
        self.trace(
            "folders.gapscope",
            &[("sources", ""), ("spool", ""), ("layer", "")],
        );
        self.trace("manifest.gapscope", &[("trace.json", "secret")]);
        let tables = [
            "dispatches",
            "kernels",
            "submissions",
            "frames",
            "samples",
            "labels",
        ];
        let tables: Vec<String> = tables.map(|table| format!("{table}.parquet")).to_vec();
        let links: Vec<(&str, &str)> = tables.iter().map(|table| (&**table, "secret")).collect();
        self.trace("tables.gapscope", &links);
        self.trace("unfinished.gapscope", &[("parts", ""), ("spool", "")]);
        let manifest = "unfinished.gapscope/trace.json";
        self.workplace
            .edit(manifest, "\"complete\": true", "\"complete\": false");
        self.trace("checkpoint.gapscope", &[]);
        let parts = self.workplace.path("checkpoint.gapscope/parts");
        fs::create_dir(&parts).unwrap();
        for name in ["state", "state.new", "frames-000001.parquet"] {
            symlink(self.home("secret"), parts.join(name)).unwrap();
        }
        let manifest = "checkpoint.gapscope/trace.json";
        self.workplace
            .edit(manifest, "\"complete\": true", "\"complete\": false");
        let pipe = self.workplace.path("pipe.gapscope");
        self.trace("pipe.gapscope", &[]);
        for name in ["frames.parquet", "notes.json"] {
            let _ = fs::remove_file(pipe.join(name));
            let made = std::process::Command::new("mkfifo")
                .arg(pipe.join(name))
                .status();
            assert!(made.unwrap().success());
        }
        self.trace("socket.gapscope", &[]);
        let socket = self.workplace.path("socket.gapscope");
        for name in ["frames.parquet", "notes.json", "kernels.parquet"] {
            let _ = fs::remove_file(socket.join(name));
            // The path of a socket is short.
            let beside = tempfile::tempdir().unwrap();
            drop(UnixListener::bind(beside.path().join("s")).unwrap());
            fs::rename(beside.path().join("s"), socket.join(name)).unwrap();
        }
        for name in ["trace.json", "notes.json"] {
            let trace = format!("huge-{name}.gapscope");
            self.trace(&trace, &[]);
            let path = self.workplace.path(&trace).join(name);
            let file = fs::OpenOptions::new()
                .write(true)
                .create(true)
                .truncate(false)
                .open(path);
            file.unwrap().set_len(HUGE_BYTES).unwrap();
        }
        let capture = self.workplace.path("links.gapcapture");
        fs::create_dir(&capture).unwrap();
        for name in ["capture.jsonl", "content.bin"] {
            symlink(self.home("secret"), capture.join(name)).unwrap();
        }
        let all = fs::read_dir(self.workplace.folder.path()).unwrap();
        let names = all.map(|entry| entry.unwrap().file_name().into_string().unwrap());
        let mut names: Vec<String> = names.filter(|name| name.contains(".gap")).collect();
        names.sort();
        names
    }

    /// Checks that nothing of the reader's came out in a text, and that the reader's files are as they were.
    #[track_caller]
    fn check(&self, told: &[u8], by: &str) {
        let told = String::from_utf8_lossy(told);
        assert!(!told.contains(SECRET), "{by} shows the secret: {told}");
        let mut home = BTreeSet::new();
        for entry in fs::read_dir(self.home("")).unwrap() {
            let entry = entry.unwrap();
            home.insert(entry.file_name().into_string().unwrap());
            let content = fs::read_to_string(entry.path()).unwrap();
            assert_eq!(content, format!("{SECRET}\n"), "{by} changed {entry:?}");
        }
        let names = [
            "code.spv",
            "notes.json",
            "secret",
            "secret.py",
            "t-000001.parquet",
        ];
        assert_eq!(home, names.map(str::to_owned).into(), "{by}");
    }

    /// Checks all files that commands have written.
    fn check_written(&self, folder: &Path, by: &str) {
        for entry in fs::read_dir(folder).unwrap().map(Result::unwrap) {
            let kind = entry.file_type().unwrap();
            match kind.is_dir() {
                true if entry.path() == self.home("") => {}
                true => self.check_written(&entry.path(), by),
                false if entry.metadata().unwrap().len() >= HUGE_BYTES => {}
                false if kind.is_file() => self.check(&fs::read(entry.path()).unwrap(), by),
                false => {}
            }
        }
    }
}

/// Returns the lines to try of a command. `{}` stands for a trace or capture of the stranger.
fn lines(command: &str) -> Option<&'static [&'static str]> {
    Some(match command {
        "record" => &["record -o {} -- true"],
        "capture" => &["capture -o {} -- true"],
        "report" => &[
            "report {}",
            "report --full {}",
            "report --json {}",
            "report --markdown {}",
            "report --html out.html {}",
            "report --label x {}",
        ],
        "explain" => &["explain {}", "explain --json {}"],
        "diff" => &["diff {} named.gapscope", "diff --json named.gapscope {}"],
        "baseline" => &[
            "baseline save b {}",
            "baseline compare b {}",
            "baseline list",
        ],
        "view" => &["view --html view.html {}"],
        "export" => &[
            "export --format perfetto -o out.pftrace {}",
            "export --format chrome -o out.json {}",
            "export --format firefox -o out.firefox {}",
            "export --format speedscope -o out.speedscope {}",
            "export --format csv -o out-csv {}",
            "export --format chrome -o - {}",
        ],
        // Where the program of its own is absent, that is said.
        "query" => &[
            "query --schema {}",
            "query --saved code {}",
            "query --format csv {} SELECT_*_FROM_frames",
        ],
        "import" => &["import -o imported.gapscope {}"],
        "deps" => &["deps {}", "deps --json {}"],
        "what-if" => &["what-if {}", "what-if --json --set host=0 {}"],
        "replay" => &["replay {}"],
        "info" => &["info {}"],
        "recover" => &["recover {}", "recover --force {}"],
        // They read no traces; what `mcp` answers is what the commands above print.
        "bench" | "doctor" | "schema" | "mcp" | "completions" | "help" => &[],
        _ => return None,
    })
}

/// Returns the names of all commands, from the help.
fn commands(reader: &Reader) -> Vec<String> {
    let help = text(&reader.workplace.run(&["help"]).stdout);
    let (_, list) = help.split_once("Commands:").unwrap();
    let lines = list
        .lines()
        .skip(1)
        .take_while(|line| !line.trim().is_empty());
    let named = lines.filter(|line| line.starts_with("  ") && !line.starts_with("   "));
    let names = named.filter_map(|line| line.split_whitespace().next());
    names.map(str::to_owned).collect()
}

#[test]
fn no_command_shows_or_changes_what_is_the_readers() {
    let reader = Reader::new();
    let traces = reader.traces();
    let commands = commands(&reader);
    assert!(commands.len() > 15, "{commands:?}");
    for command in commands {
        let lines = lines(&command);
        let lines = lines.unwrap_or_else(|| panic!("`{command}` is new: add its lines above"));
        for line in lines {
            for trace in &traces {
                let line = line.replace("{}", trace);
                let words = line
                    .split(' ')
                    .map(|word| match word.starts_with("SELECT") {
                        true => word.replace('_', " "),
                        false => word.to_owned(),
                    });
                let words: Vec<String> = words.collect();
                let words: Vec<&str> = words.iter().map(|word| &**word).collect();
                let output = reader.workplace.run(&words);
                reader.check(&output.stdout, &line);
                reader.check(&output.stderr, &line);
                reader.check_written(reader.workplace.folder.path(), &line);
                // The next trace is written there, too.
                for name in [
                    "out.html",
                    "view.html",
                    "out.pftrace",
                    "out.json",
                    "out.firefox",
                    "out.speedscope",
                ] {
                    let _ = fs::remove_file(reader.workplace.path(name));
                }
                for name in ["out-csv", "imported.gapscope"] {
                    let _ = fs::remove_dir_all(reader.workplace.path(name));
                }
            }
        }
    }
}

/// A running `gapscope view`.
struct Page {
    child: Child,
    host: String,
    root: String,
}

impl Page {
    fn start(reader: &Reader, trace: &str) -> Option<Page> {
        let mut child = reader
            .workplace
            .command(&["view", "--no-open", trace])
            .stdout(Stdio::piped())
            .stderr(Stdio::null())
            .spawn()
            .unwrap();
        let mut line = String::new();
        BufReader::new(child.stdout.take().unwrap())
            .read_line(&mut line)
            .unwrap();
        let Some((_, url)) = line.split_once("http://") else {
            child.wait().unwrap();
            return None;
        };
        let url = url.split_whitespace().next().unwrap();
        let (host, root) = url.split_once('/').unwrap();
        Some(Page {
            child,
            host: host.to_owned(),
            root: root.to_owned(),
        })
    }

    fn ask(&self, method: &str, path: &str, body: &str) -> Vec<u8> {
        let mut stream = TcpStream::connect(&self.host).unwrap();
        let (host, root) = (&self.host, &self.root);
        let request = format!(
            "{method} /{root}api/{path} HTTP/1.1\r\nHost: {host}\r\nOrigin: http://{host}\r\nContent-Type: application/json\r\n\
             Content-Length: {}\r\nConnection: close\r\n\r\n{body}",
            body.len()
        );
        stream.write_all(request.as_bytes()).unwrap();
        let mut answer = Vec::new();
        stream.read_to_end(&mut answer).unwrap();
        answer
    }
}

impl Drop for Page {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

#[test]
fn the_page_shows_and_changes_nothing_of_the_readers() {
    let reader = Reader::new();
    let mut served = 0;
    for trace in reader.traces() {
        let Some(page) = Page::start(&reader, &trace) else {
            continue;
        };
        served += 1;
        for path in [
            "overview",
            "t/0/findings",
            "t/0/code",
            "t/0/code/idle",
            "t/0/source/0",
            "t/0/notes",
            "t/0/strings",
        ] {
            reader.check(&page.ask("GET", path, ""), &format!("{path} of {trace}"));
        }
        let note = r#"{"revision": "", "notes": [{"from_ns": 5, "to_ns": null, "text": "mine"}]}"#;
        reader.check(
            &page.ask("PUT", "t/0/notes", note),
            &format!("notes of {trace}"),
        );
        drop(page);
        reader.check_written(reader.workplace.folder.path(), &trace);
    }
    assert!(served >= 3, "{served}");
}

#[test]
fn lines_of_source_are_quoted_on_request_and_for_own_recordings() {
    let reader = Reader::new();
    reader.trace("named.gapscope", &[]);
    let state = reader.workplace.path("state");
    let quoted = |arguments: &[&str]| {
        let mut command = reader.workplace.command(arguments);
        let output = command.env("XDG_STATE_HOME", &state).output().unwrap();
        assert_status(&output, 0);
        text(&output.stdout).contains(SECRET)
    };
    let sources = reader.home("");
    let sources = sources.to_str().unwrap();
    assert!(!quoted(&["report", "--json", "named.gapscope"]));
    assert!(quoted(&[
        "report",
        "--json",
        "--sources",
        sources,
        "named.gapscope"
    ]));
    let own = gapscope_trace::own_recordings::OwnRecordings::new(&state.join("gapscope"));
    own.remember(&reader.workplace.path("named.gapscope"))
        .unwrap();
    assert!(quoted(&["report", "--json", "named.gapscope"]));
    assert!(quoted(&[
        "report",
        "--json",
        "--sources-within",
        sources,
        "named.gapscope"
    ]));
    // A client of `gapscope mcp` may read other folders.
    let elsewhere = reader.workplace.path("hooks");
    let elsewhere = elsewhere.to_str().unwrap();
    assert!(!quoted(&[
        "report",
        "--json",
        "--sources-within",
        elsewhere,
        "named.gapscope"
    ]));
    assert!(!quoted(&["report", "--html", "out.html", "named.gapscope"]));
    let html = reader.workplace.path("out.html");
    assert_eq!(html.metadata().unwrap().permissions().mode() & 0o777, 0o600);
}

#[test]
fn a_link_among_runs_is_named_and_not_followed() {
    let reader = Reader::new();
    for name in ["own.gapscope", "a.gapscope"] {
        reader.trace(name, &[]);
    }
    let runs = reader.workplace.path("runs");
    fs::create_dir(&runs).unwrap();
    fs::rename(reader.workplace.path("a.gapscope"), runs.join("a.gapscope")).unwrap();
    symlink("../own.gapscope", runs.join("b.gapscope")).unwrap();
    let output = reader.workplace.run(&["diff", "runs", "own.gapscope"]);
    assert_status(&output, 1);
    let said = text(&output.stderr);
    assert!(
        said.contains("runs/b.gapscope is a symbolic link"),
        "{said}"
    );
}

#[test]
fn exports_are_private_and_have_no_leftovers() {
    let reader = Reader::new();
    reader.trace("a.gapscope", &[]);
    let mode = |name: &str| {
        let facts = reader.workplace.path(name).metadata().unwrap();
        facts.permissions().mode() & 0o777
    };
    for (format, name) in [
        ("chrome", "a.json"),
        ("perfetto", "a.pftrace"),
        ("csv", "a-csv"),
    ] {
        let output =
            reader
                .workplace
                .run(&["export", "--format", format, "-o", name, "a.gapscope"]);
        assert_status(&output, 0);
    }
    assert_eq!(
        [mode("a.json"), mode("a.pftrace"), mode("a-csv")],
        [0o600, 0o600, 0o700]
    );
    let all = fs::read_dir(reader.workplace.folder.path()).unwrap();
    let left = all.filter(|entry| {
        let name = entry.as_ref().unwrap().file_name();
        name.to_str().unwrap().ends_with(".part")
    });
    assert_eq!(left.count(), 0);
}

#[test]
fn secrets_of_a_command_line_are_in_no_output() {
    let reader = Reader::new();
    reader.trace("a.gapscope", &[]);
    let path = reader.workplace.path("a.gapscope/trace.json");
    let mut json: serde_json::Value = serde_json::from_slice(&fs::read(&path).unwrap()).unwrap();
    json["command"] = serde_json::json!(["train", "--password", SECRET]);
    // As other programs write a manifest.
    json.as_object_mut().unwrap().remove("crc32");
    fs::write(&path, serde_json::to_vec_pretty(&json).unwrap()).unwrap();
    for line in [
        "report a.gapscope",
        "report --json a.gapscope",
        "info a.gapscope",
        "export --format chrome -o - a.gapscope",
        "export --format perfetto -o - a.gapscope",
        "export --format firefox -o - a.gapscope",
        "report --html a.html a.gapscope",
        "export --format csv -o a-csv a.gapscope",
    ] {
        let output = reader.workplace.run(&line.split(' ').collect::<Vec<_>>());
        assert_status(&output, 0);
        reader.check(&output.stdout, line);
    }
    for name in ["a.html", "a-csv/trace.json"] {
        reader.check(&fs::read(reader.workplace.path(name)).unwrap(), name);
    }
}
