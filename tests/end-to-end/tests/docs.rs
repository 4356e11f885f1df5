//! Runs the commands that README and `docs/` print, page by page, in a folder with stand-ins for the programs and files that
//! they name. Each command must succeed.

use std::collections::BTreeSet;
use std::fs;
use std::os::unix::fs::{PermissionsExt, symlink};
use std::path::Path;
use std::process::Command;

use crate::driver::{Driver, Lavapipe};
use crate::product;
use crate::recording::{Program, Run, planted};

/// Pages whose commands are not run here, each with the reason.
const LEFT_OUT: [(&str, &str); 5] = [
    (
        "docs/cases/README.md",
        "the cases need torch, Taichi and a GPU",
    ),
    (
        "docs/cuda-capture.md",
        "cuda/captures.rs captures on the stub of CUDA and runs the launches again",
    ),
    ("docs/fleet.md", "fleet.rs runs the commands on many ranks"),
    (
        "docs/import.md",
        "import.rs imports a real file of each kind",
    ),
    ("docs/metal.md", "the commands need macOS"),
];

/// Parts of commands that are not run here, each with the reason.
const NOT_RUN: [(&str, &str); 12] = [
    (
        "gapscope view",
        "it serves until it is stopped: see view.rs",
    ),
    ("--view", "the same"),
    ("# a prompt", "it waits for input"),
    ("torchrun", "ranks need torch: see cuda/"),
    ("runs/*/rank=*", "see fleet.rs"),
    ("rank=3", "see fleet.rs"),
    (
        "gapscope bench device",
        "measuring takes minutes: see bench_device.rs",
    ),
    ("gapscope capture", "see capture.rs"),
    ("--capture-only", "the program must capture: see sdk.rs"),
    (
        "--dump weights",
        "the program has no such buffer: see replay.rs",
    ),
    ("--device H200", "it needs this GPU"),
    ("seq -w", "it records 40 runs"),
];

/// The traces for names that are patterns or folders.
const PATTERNS: [(&str, &str); 6] = [
    ("runs/*.gapscope", "runs/1.gapscope"),
    ("new/*.gapscope", "new/1.gapscope"),
    ("a-*.gapscope", "a-1.gapscope"),
    ("b-*.gapscope", "b-1.gapscope"),
    ("runs/main", "runs/main/1.gapscope"),
    ("runs/branch", "runs/branch/1.gapscope"),
];

/// The programs that the pages record. Each is `planted` here.
const PROGRAMS: [&str; 5] = ["python", "python3", "my-program", "old", "new"];
/// Programs that only read what gapscope printed.
const READERS: [&str; 2] = ["jq", "dot"];

/// Returns the lines of a page that run gapscope: of its blocks `sh`, with the lines that continue them.
fn commands(page: &str) -> Vec<String> {
    let mut commands: Vec<String> = Vec::new();
    let mut inside = false;
    let mut continues = false;
    for line in page.lines().map(str::trim) {
        if line.starts_with("```") {
            inside = line == "```sh";
        } else if inside && continues {
            let last = commands.last_mut().expect("a line continues another");
            last.push(' ');
            last.push_str(line);
            continues = line.ends_with('|');
        } else if inside && line.contains("gapscope ") && !line.starts_with('#') {
            commands.push(line.to_owned());
            continues = line.ends_with('|');
        }
    }
    commands.retain(|line| {
        ["cargo ", "pip ", "uvx "]
            .iter()
            .all(|p| !line.starts_with(p))
    });
    commands
}

/// Makes a script in `folder`.
fn script(folder: &Path, name: &str, text: &str) {
    let path = folder.join(name);
    fs::write(&path, format!("#!/bin/sh\n{text}\n")).expect("the folder can be written");
    fs::set_permissions(&path, fs::Permissions::from_mode(0o755)).expect("it may be run");
}

/// Returns the names with an extension that the commands read, and do not write with `-o`.
fn names_read<'a>(commands: &'a [String], extension: &str) -> BTreeSet<&'a str> {
    let is_name = |word: &str| word.ends_with(extension) && !word.contains(['*', '/', '\'', '$']);
    let words = || {
        commands
            .iter()
            .map(|line| line.split(' ').collect::<Vec<_>>())
    };
    let read: BTreeSet<&str> = words()
        .flat_map(|words| words.into_iter().filter(|word| is_name(word)))
        .collect();
    let written: BTreeSet<&str> = words()
        .flat_map(|words| {
            let after = words.windows(2).filter(|pair| pair[0] == "-o");
            after.map(|pair| pair[1]).collect::<Vec<_>>()
        })
        .collect();
    &read - &written
}

/// Copies a trace or capture.
fn copy(from: &Path, to: &Path) {
    fs::create_dir_all(to.parent().expect("it is in a folder")).expect("folders can be made");
    let copied = Command::new("cp").arg("-r").args([from, to]).status();
    assert!(
        copied.is_ok_and(|status| status.success()),
        "{}",
        to.display()
    );
}

/// Returns a sentence for each command of a page that fails.
fn failures(page: &str, trace: &Path, fusion: &Path) -> Vec<String> {
    let text = fs::read_to_string(product::source("../..").join(page)).expect("the page is there");
    let mut commands = commands(&text);
    commands.retain(|line| NOT_RUN.iter().all(|(part, _)| !line.contains(part)));
    let matches = |pattern: &str| commands.iter().any(|line| line.contains(pattern));
    let folder = tempfile::tempdir().expect("a temporary folder");
    let bin = folder.path().join("bin");
    fs::create_dir(&bin).expect("the folder is new");
    let planted = product::built("planted");
    let run = format!(
        "exec '{}' host-sleep --iterations 4 --sleep-us 2000",
        planted.display()
    );
    for program in PROGRAMS {
        script(&bin, program, &run);
        if !matches(&format!("{program}/")) {
            script(folder.path(), program, &run);
        }
    }
    for reader in READERS {
        script(&bin, reader, "cat > /dev/null");
    }
    for name in ["gapscope", "fusion"] {
        symlink(product::built(name), bin.join(name)).expect("the name is free");
    }
    fs::write(folder.path().join("names.txt"), "48373bb5 = matmul_f16\n").expect("it is written");
    fs::write(folder.path().join("question.sql"), "select 1;\n").expect("it is written");
    let named = PATTERNS.into_iter().filter(|(pattern, _)| matches(pattern));
    let named = named.map(|(_, name)| name);
    for name in names_read(&commands, ".gapscope").into_iter().chain(named) {
        let recording = if name == "fusion.gapscope" {
            fusion
        } else {
            trace
        };
        copy(recording, &folder.path().join(name));
    }
    for name in names_read(&commands, ".gapcapture") {
        let capture = product::source("../../fixtures/fusion.gapcapture");
        copy(&capture, &folder.path().join(name));
    }
    let path = std::env::var("PATH").unwrap_or_default();
    let mut failures = Vec::new();
    for line in &commands {
        let line = line
            .replace("-- …", "-- ./my-program")
            .replace("'select …'", "'select 1'");
        let mut command = Command::new("sh");
        command.args(["-c", &line]).current_dir(folder.path());
        command.env("PATH", format!("{}:{path}", bin.display()));
        command
            .env("HOME", folder.path())
            .stdin(std::process::Stdio::null());
        command.envs(Lavapipe.variables());
        let run = Run::from_command(&mut command);
        // The gates of the examples are broken by these runs, or cannot be judged.
        let is_gate = line.contains("--gate") && run.status.code() == Some(1);
        if !run.status.success() && !is_gate {
            failures.push(format!("{page}: `{line}`: {}\n{}", run.status, run.stderr));
        }
    }
    failures
}

#[test]
fn every_command_of_the_docs_succeeds() {
    let recording = planted("host-sleep --iterations 6 --sleep-us 2000").recorded();
    let fusion = Program::new(
        [
            product::built("fusion").to_string_lossy().as_ref(),
            "--iterations",
            "20",
            "--n",
            "10000",
        ],
        &Lavapipe,
    );
    let fusion = fusion.recorded();
    let (trace, fusion) = (recording.path(), fusion.path());
    let docs = fs::read_dir(product::source("../../docs")).expect("it is there");
    let mut pages: Vec<String> = docs
        .map(|file| {
            file.expect("it can be listed")
                .file_name()
                .to_string_lossy()
                .into_owned()
        })
        .filter(|name| name.ends_with(".md"))
        .map(|name| format!("docs/{name}"))
        .collect();
    pages.push("README.md".to_owned());
    pages.sort();
    pages.retain(|page| LEFT_OUT.iter().all(|(left_out, _)| page != left_out));
    let failures: Vec<String> = pages
        .iter()
        .flat_map(|page| failures(page, &trace, &fusion))
        .collect();
    assert!(failures.is_empty(), "{}", failures.join("\n"));
}
