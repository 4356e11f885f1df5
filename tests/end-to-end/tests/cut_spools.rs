//! Tests sessions and their spools that somebody cuts, deletes or kills while a program is recorded, and full disks: the program
//! runs on as it would, and the trace has its work.

use std::path::Path;
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

use gapscope_trace::tables::Table;

use crate::counts::compare;
use crate::driver::{Driver, Fake, Lavapipe};
use crate::hostile::is_root;
use crate::product;
use crate::recording::{Run, assert_contains, open, planted};
use crate::truth::Truth;

/// A recording that runs while the test meddles with its spool.
struct Running {
    session: Child,
    folder: tempfile::TempDir,
}

impl Running {
    /// Starts the recording of a program that submits for some seconds, and waits until it has begun.
    fn start(driver: &dyn Driver) -> Running {
        let planted = product::built("planted");
        let program = format!(
            "exec '{}' host-sleep --n 400 --iterations 60 --spin 10 --sleep-us 50000",
            planted.display()
        );
        Running::start_script(&program, driver)
    }

    /// Starts the recording of a shell's script, and waits until a program of it has begun.
    fn start_script(script: &str, driver: &dyn Driver) -> Running {
        let folder = tempfile::tempdir().expect("a temporary folder");
        let mut command = Command::new(product::built("gapscope"));
        command.envs(driver.variables());
        command.args(["record", "--no-report", "-o"]);
        command.arg(folder.path().join("t.gapscope"));
        command.args(["--", "sh", "-c", script]);
        command
            .stdin(Stdio::null())
            .stdout(Stdio::piped())
            .stderr(Stdio::piped());
        let running = Running {
            session: command.spawn().expect("gapscope starts"),
            folder,
        };
        running.until(|| running.chunks() > 0);
        running
    }

    fn trace(&self) -> std::path::PathBuf {
        self.folder.path().join("t.gapscope")
    }

    fn chunks(&self) -> usize {
        let files = files_in(&self.trace().join("spool"));
        let chunks = files.iter().filter(|file| file.ends_with("chunk"));
        chunks.count()
    }

    fn until(&self, what: impl Fn() -> bool) {
        let begun = Instant::now();
        while !what() {
            assert!(
                begun.elapsed() < Duration::from_secs(30),
                "it takes too long"
            );
            std::thread::sleep(Duration::from_millis(5));
        }
    }

    /// Cuts each file of the spool, also through links, and deletes each third one, again and again.
    fn meddle(&self, rounds: u32) {
        for round in 0..rounds {
            for (number, file) in files_in(&self.trace().join("spool")).iter().enumerate() {
                if (number + round as usize) % 3 == 2 {
                    let _ = std::fs::remove_file(file);
                } else if let Ok(file) = std::fs::OpenOptions::new().write(true).open(file) {
                    // A pool refuses.
                    let _ = file.set_len(u64::from(round % 2) * 100);
                }
            }
            std::thread::sleep(Duration::from_millis(50));
        }
    }

    /// Waits for the end, and returns the run.
    fn end(self) -> (Run, tempfile::TempDir) {
        let output = self.session.wait_with_output().expect("gapscope ends");
        let run = Run {
            status: output.status,
            stdout: String::from_utf8_lossy(&output.stdout).into_owned(),
            stderr: String::from_utf8_lossy(&output.stderr).into_owned(),
        };
        (run, self.folder)
    }
}

/// Returns the files and links in a folder and the folders in it.
fn files_in(folder: &Path) -> Vec<String> {
    let mut files = Vec::new();
    let entries = std::fs::read_dir(folder).into_iter().flatten().flatten();
    for path in entries.map(|entry| entry.path()) {
        match path.is_dir() {
            true => files.extend(files_in(&path)),
            false => files.push(path.to_string_lossy().into_owned()),
        }
    }
    files.sort();
    files
}

#[test]
fn a_spool_that_is_cut_and_deleted_while_recording_costs_nothing() {
    let running = Running::start(&Lavapipe);
    running.meddle(20);
    let (run, folder) = running.end();
    let run = run.ok();
    let trace = open(&folder.path().join("t.gapscope"));
    compare(&trace.tables, &run.truth());
    assert_eq!(trace.manifest.losses, []);
}

#[test]
fn a_spool_folder_that_is_removed_while_recording_costs_nothing() {
    let running = Running::start(&Lavapipe);
    let spool = running.trace().join("spool");
    let begun = Instant::now();
    // The session makes new files meanwhile.
    while std::fs::remove_dir_all(&spool).is_err() {
        assert!(begun.elapsed().as_secs() < 10, "the folder stays");
    }
    let (run, folder) = running.end();
    let run = run.ok();
    let trace = open(&folder.path().join("t.gapscope"));
    compare(&trace.tables, &run.truth());
}

/// Kills the session, and returns what the program prints, which runs on.
fn kill_session(running: &mut Running) {
    running.session.kill().expect("killed");
    running.session.wait().expect("its end");
}

fn recover(trace: &Path) -> Run {
    let begun = Instant::now();
    loop {
        let run = Run::from_command(
            Command::new(product::built("gapscope"))
                .arg("recover")
                .arg(trace),
        );
        if run.status.success() || begun.elapsed() > Duration::from_secs(30) {
            return run.ok();
        }
        assert_contains(&run.stderr, "runs");
        std::thread::sleep(Duration::from_millis(50));
    }
}

#[test]
fn a_session_that_is_killed_loses_nothing_and_a_cut_spool_is_recovered_as_far_as_it_goes() {
    for meddles in [false, true] {
        let mut running = Running::start(&Lavapipe);
        kill_session(&mut running);
        if meddles {
            running.meddle(10);
        }
        recover(&running.trace());
        let trace = open(&running.trace());
        let mut stdout = String::new();
        let pipe = running.session.stdout.as_mut().expect("a pipe");
        std::io::Read::read_to_string(pipe, &mut stdout).expect("text");
        let truth = Truth::parse(&stdout);
        let dispatches = trace.tables.dispatches.len() as u64;
        if meddles {
            // The program has run to its end, and what was written after the last cut is there.
            assert!(
                dispatches > 0 && dispatches <= truth.sum("dispatches"),
                "{dispatches}"
            );
        } else {
            compare(&trace.tables, &truth);
        }
    }
}

#[test]
fn a_program_that_starts_after_its_session_was_killed_and_its_keeper_lives_is_recovered_too() {
    let planted = product::built("planted");
    let script = format!(
        "'{0}' host-sleep --iterations 20 --sleep-us 50000 & '{0}' steady; sleep 0.5; '{0}' steady; wait",
        planted.display()
    );
    let mut running = Running::start_script(&script, &Lavapipe);
    let trace = running.trace();
    kill_session(&mut running);
    let mut stdout = String::new();
    let pipe = running.session.stdout.as_mut().expect("a pipe");
    std::io::Read::read_to_string(pipe, &mut stdout).expect("text");
    recover(&trace);
    let recovered = open(&trace);
    compare(&recovered.tables, &Truth::parse(&stdout));
    assert_eq!(recovered.manifest.processes.len(), 3);
}

/// Checks that nothing of a script's programs is lost while somebody cuts and deletes the files of the spool.
fn meddled(script: &str, driver: &dyn Driver, processes: usize) {
    let running = Running::start_script(script, driver);
    running.meddle(20);
    let (run, folder) = running.end();
    let run = run.ok();
    let trace = open(&folder.path().join("t.gapscope"));
    compare(&trace.tables, &run.truth());
    assert_eq!(trace.manifest.losses, []);
    assert_eq!(trace.manifest.processes.len(), processes);
}

#[test]
fn a_spool_that_is_cut_costs_nothing_where_the_program_has_its_own_pid_namespace() {
    let script = format!(
        "exec unshare --pid --fork --mount-proc '{}' host-sleep --n 400 --iterations 30 --sleep-us 50000",
        product::built("planted").display()
    );
    if !is_root() {
        return eprintln!("skipped: only root makes a PID namespace");
    }
    meddled(&script, &Lavapipe, 1);
}

#[test]
fn a_spool_that_is_cut_costs_nothing_where_more_processes_start_at_once_than_have_memory_ready() {
    let fake = Fake::new(&[("DISPATCH_NS", "100")]);
    let script = format!(
        "children=; for child in $(seq 40); do
             '{}' host-sleep --n 10 --iterations 20 --sleep-us 50000 & children=\"$children $!\"
         done; for child in $children; do wait $child || exit $?; done",
        product::built("planted").display()
    );
    meddled(&script, &fake, 40);
}

/// Returns the process that keeps the memory of a session.
fn keeper(session: u32) -> u32 {
    let children = format!("/proc/{session}/task/{session}/children");
    let children = std::fs::read_to_string(children).expect("the session's children");
    let name = |pid: &str| std::fs::read_to_string(format!("/proc/{pid}/comm"));
    let keeper = (children.split_whitespace())
        .find(|pid| name(pid).is_ok_and(|name| name.trim() == "gapscope-keeper"));
    keeper.expect("a keeper").parse().expect("a number")
}

fn kill(pid: u32) {
    let killed = Command::new("kill")
        .args(["-KILL", &pid.to_string()])
        .status();
    assert!(killed.expect("kill").success());
}

#[test]
fn a_keeper_that_is_killed_costs_nothing_also_of_programs_that_start_afterwards() {
    let planted = product::built("planted");
    let script = format!(
        "'{0}' host-sleep --n 400 --iterations 40 --sleep-us 50000 & sleep 1; '{0}' host-sleep --iterations 20 --sleep-us 50000; \
         wait",
        planted.display()
    );
    let running = Running::start_script(&script, &Lavapipe);
    kill(keeper(running.session.id()));
    running.meddle(30);
    let (run, folder) = running.end();
    let run = run.ok();
    let trace = open(&folder.path().join("t.gapscope"));
    compare(&trace.tables, &run.truth());
    assert_eq!(trace.manifest.processes.len(), 2);
}

#[test]
fn a_recovery_beside_a_program_that_runs_on_says_so() {
    let mut running = Running::start(&Lavapipe);
    kill_session(&mut running);
    let mut command = Command::new(product::built("gapscope"));
    command.args(["recover", "--force"]).arg(running.trace());
    let run = Run::from_command(&mut command).ok();
    let sentence = "was still running when the recording ended";
    assert_contains(&run.stdout, sentence);
    let notes = open(&running.trace()).manifest.notes;
    assert!(notes.iter().any(|n| n.contains(sentence)), "{notes:?}");
    // The program ends as it would.
    let mut stdout = String::new();
    let pipe = running.session.stdout.as_mut().expect("a pipe");
    std::io::Read::read_to_string(pipe, &mut stdout).expect("text");
    assert!(Truth::parse(&stdout).sum("dispatches") > 0);
}

#[test]
fn a_full_disk_ends_the_recording_and_not_the_program() {
    let folder = tempfile::tempdir().expect("a temporary folder");
    let program = planted("steady --n 200 --iterations 100 --spin 0 --groups 1");
    let recover = format!(
        "mount -o remount,size=64m none \"$0\" && '{}' recover \"$0/t.gapscope\" >&2 && cat \"$0/t.gapscope/trace.json\"",
        product::built("gapscope").display()
    );
    let recording = program.record_command(folder.path());
    let Some(run) = Run::on_small_disk(&recording, folder.path(), 300, &recover) else {
        return;
    };
    run.assert_status(125);
    assert_contains(run.stderr.to_lowercase(), "no space");
    assert_contains(&run.stderr, "`gapscope recover ");
    assert_contains(&run.stderr, "is complete now");
    assert_contains(&run.stdout, "The recording's session ended with an error");
    let result = |run: &Run| {
        let rest = run.stdout.split("result_hash").nth(1).expect("a result");
        rest[..21].to_owned()
    };
    assert_eq!(result(&run), result(&program.run().ok()));
}

#[test]
fn a_disk_that_is_full_for_a_while_after_the_sessions_end_costs_nothing() {
    let folder = tempfile::tempdir().expect("a temporary folder");
    let outside = tempfile::tempdir().expect("a temporary folder");
    let recording = planted("host-sleep --n 400 --iterations 40 --sleep-us 50000");
    let recording = recording.record_command(folder.path());
    let afterwards = format!(
        "sleep 1; until grep -q result_hash '{1}/out'; do sleep 0.1; done; rm \"$0/fill\"; \
         until '{0}' recover \"$0/t.gapscope\" >&2; do sleep 0.1; done; cp -r \"$0/t.gapscope\" '{1}'",
        product::built("gapscope").display(),
        outside.path().display()
    );
    let out = outside.path().join("out");
    let script = format!(
        "\"$@\" > '{}' & session=$!; sleep 1.5; kill -9 $session; cat /dev/zero > \"$0/fill\"; true",
        out.display()
    );
    let mut filling = Command::new("sh");
    filling.args(["-c", &script]).arg(folder.path());
    filling
        .arg(recording.get_program())
        .args(recording.get_args());
    let variables = recording.get_envs();
    filling.envs(variables.filter_map(|(name, value)| Some((name, value?))));
    let Some(run) = Run::on_small_disk(&filling, folder.path(), 4096, &afterwards) else {
        return;
    };
    assert_contains(&run.stderr, "is complete now");
    let trace = open(&outside.path().join("t.gapscope"));
    let text = std::fs::read_to_string(out).expect("the program's output");
    compare(&trace.tables, &Truth::parse(&text));
}
