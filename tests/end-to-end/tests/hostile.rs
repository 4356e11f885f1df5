//! Tests programs that limit themselves, filter their system calls, close what they have not opened or handle every
//! signal, and a spool that somebody cuts while the program is recorded. The program's output and exit status must be
//! those without gapscope, and its work must be in the trace.

use std::os::unix::fs::MetadataExt;
use std::path::Path;
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

use gapscope_trace::LossKind;
use gapscope_trace::tables::Table;

use crate::counts::{check, compare};
use crate::driver::{Driver, Fake, Lavapipe};
use crate::product;
use crate::recording::{Program, Run, assert_contains, open, planted};
use crate::truth::Truth;

/// Enough dispatches for several chunks of the spool.
const WORK: &str = "steady --n 40 --iterations 200 --spin 10";

fn is_root() -> bool {
    let own = std::fs::metadata("/proc/self").expect("this process's folder");
    own.uid() == 0
}

#[test]
fn filters_of_system_calls_that_are_set_before_the_work_change_nothing() {
    for conduct in [
        "filter-kill",
        "filter-thread",
        "filter-error",
        "filter-trap",
    ] {
        let arguments = format!("{WORK} --conduct {conduct}");
        let trace = check(&arguments, &Lavapipe);
        assert_eq!(trace.manifest.losses, [], "{conduct}");
        // Every thread has its name, whoever has asked for it.
        let threads = &trace.manifest.threads;
        assert!(threads.iter().all(|t| !t.name.is_empty()), "{threads:?}");
    }
}

/// The fake driver makes no files after its start, so that these filters leave it alone.
#[test]
fn filters_that_are_set_before_the_device_or_before_vulkan_change_nothing() {
    for moment in ["start", "instance"] {
        let fake = Fake::new(&[("DISPATCH_NS", "100")]);
        let arguments = format!("steady --conduct filter-writes --moment {moment}");
        let trace = check(&arguments, &fake);
        assert_eq!(trace.manifest.losses, [], "{moment}");
        assert_eq!(fake.misuse(), "");
    }
}

#[test]
fn a_program_that_its_filter_ends_is_said_to_have_been() {
    // Lavapipe starts threads for a device.
    let recording = planted("steady --conduct filter-kill --moment instance").record();
    recording.run.assert_status(128 + 31);
    let notes = recording.trace().manifest.notes;
    let note = "ended by a filter of system calls (SIGSYS)";
    assert!(notes.iter().any(|n| n.contains(note)), "{notes:?}");
}

#[test]
fn programs_that_limit_or_empty_themselves_are_recorded_whole() {
    let mut conducts = vec![
        "close-all",
        "close-all --moment start",
        "close-all --moment instance",
        "no-descriptors",
        "no-memory",
        "signals",
        "signals --moment start",
    ];
    if is_root() {
        conducts.extend([
            "chroot",
            "chroot --moment instance",
            "setuid",
            "lock-memory",
        ]);
    }
    for conduct in conducts {
        let trace = check(&format!("{WORK} --conduct {conduct}"), &Lavapipe);
        assert_eq!(trace.manifest.losses, [], "{conduct}");
    }
}

#[test]
fn a_limit_on_files_that_is_less_than_any_log_costs_nothing() {
    for moment in ["start", "instance", "work"] {
        let fake = Fake::new(&[("DISPATCH_NS", "100")]);
        let arguments = format!("steady --conduct small-files --moment {moment}");
        let trace = check(&arguments, &fake);
        assert_eq!(trace.manifest.losses, [], "{moment}");
    }
}

#[test]
fn children_that_use_no_gpu_are_no_processes_of_the_trace_and_end_as_they_would() {
    for conduct in ["forks", "sandboxed-child"] {
        let trace = check(&format!("{WORK} --conduct {conduct}"), &Lavapipe);
        assert_eq!(trace.manifest.losses, [], "{conduct}");
        assert_eq!(trace.manifest.processes.len(), 1, "{conduct}");
    }
}

/// A recording that runs while the test meddles with its spool.
struct Running {
    session: Child,
    folder: tempfile::TempDir,
}

impl Running {
    /// Starts the recording of a program that submits for some seconds, and waits until it has begun.
    fn start(driver: &dyn Driver) -> Running {
        let folder = tempfile::tempdir().expect("a temporary folder");
        let mut command = Command::new(product::built("gapscope"));
        command.envs(driver.variables());
        command.args(["record", "--no-report", "-o"]);
        command.arg(folder.path().join("t.gapscope")).arg("--");
        command.arg(product::built("planted"));
        command.args([
            "host-sleep",
            "--n",
            "400",
            "--iterations",
            "60",
            "--spin",
            "10",
        ]);
        command.args(["--sleep-us", "50000"]);
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
    let mut trace = open(&folder.path().join("t.gapscope"));
    trace
        .manifest
        .losses
        .retain(|loss| loss.kind != LossKind::StackSamples);
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
    let folder = tempfile::tempdir().expect("a temporary folder");
    let trace = folder.path().join("t.gapscope");
    let planted = product::built("planted");
    let script = format!(
        "'{0}' host-sleep --iterations 20 --sleep-us 50000 & '{0}' steady; sleep 0.5; '{0}' steady; wait",
        planted.display()
    );
    let mut command = Command::new(product::built("gapscope"));
    command.envs(Lavapipe.variables());
    command.args(["record", "--no-report", "-o"]).arg(&trace);
    command.args(["--", "sh", "-c", &script]);
    command
        .stdin(Stdio::null())
        .stdout(Stdio::piped())
        .stderr(Stdio::null());
    let mut running = Running {
        session: command.spawn().expect("gapscope starts"),
        folder,
    };
    running.until(|| running.chunks() > 0);
    kill_session(&mut running);
    let mut stdout = String::new();
    let pipe = running.session.stdout.as_mut().expect("a pipe");
    std::io::Read::read_to_string(pipe, &mut stdout).expect("text");
    recover(&trace);
    let recovered = open(&trace);
    compare(&recovered.tables, &Truth::parse(&stdout));
    assert_eq!(recovered.manifest.processes.len(), 3);
}

#[test]
fn a_full_disk_ends_the_recording_and_not_the_program() {
    let folder = tempfile::tempdir().expect("a temporary folder");
    let program = planted("steady --n 200 --iterations 100");
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
fn a_program_whose_address_space_is_limited_from_the_start_keeps_it() {
    let planted = product::built("planted");
    let script = format!("ulimit -v 800000; exec '{}' steady", planted.display());
    let recording = Program::new(["sh", "-c", &script], &Lavapipe).recorded();
    compare(&recording.trace().tables, &recording.truth());
}
