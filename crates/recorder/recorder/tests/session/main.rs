//! Tests whole sessions over real processes. The recorded program is this test binary itself, which writes to the
//! spool as a hook does.

mod limits;
#[path = "../../src/made_up.rs"]
#[allow(dead_code, reason = "other tests use the rest")]
mod made_up;
mod nested;

use gapscope_recorder::{
    Error, LabelInjection, Names, Outcome, Recorded, Recording, Recovered, Start, recover,
};
use gapscope_spool::event::{Api, Command, Op};
use gapscope_spool::{Spool, monotonic_ns};
use gapscope_trace::Selection;
use gapscope_trace::manifest::{Exit, SamplingMode};
use gapscope_trace::tables::Table;
use std::ffi::OsString;
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

/// The task of the child.
const CHILD: &str = "GAPSCOPE_TEST_CHILD";
/// The trace that a session in a child process writes.
const TRACE: &str = "GAPSCOPE_TEST_TRACE";

/// Runs the recorded program, or a session in a process of its own, when the variable asks for it.
#[test]
#[ignore = "runs as a child of the other tests"]
// One child outlives its parent, which is the test.
#[allow(clippy::zombie_processes)]
fn child() {
    let Ok(task) = std::env::var(CHILD) else {
        return;
    };
    let (task, number) = task.split_once(':').unwrap_or((&task, "0"));
    let number: u32 = number.parse().unwrap();
    match task {
        "work" => {
            program().run(100, Duration::ZERO);
            std::process::exit(number as i32);
        }
        "slow-work" => {
            program().run(number, Duration::from_millis(1));
            if let Some(trace) = std::env::var_os(TRACE) {
                let done = Path::new(&trace).with_file_name("done");
                std::fs::write(done, number.to_string()).unwrap();
            }
        }
        "device" => drop(program()),
        "of-another-build" => {
            let spool = PathBuf::from(std::env::var_os(gapscope_spool::env::SPOOL).unwrap());
            let elsewhere = tempfile::tempdir_in(spool.parent().unwrap()).unwrap();
            let process = || made_up::process("vulkan");
            drop(Spool::create(elsewhere.path().to_owned(), 1 << 20, true, process).unwrap());
            for process in std::fs::read_dir(elsewhere.path()).unwrap() {
                let process = process.unwrap();
                let control = process.path().join("control");
                let mut page = std::fs::read(&control).unwrap();
                // The version follows the magic number.
                page[8] -= 1;
                std::fs::write(&control, page).unwrap();
                std::fs::rename(process.path(), spool.join(process.file_name())).unwrap();
            }
        }
        "killed" => {
            program().run(number, Duration::ZERO);
            std::process::abort();
        }
        "waits" => {
            let mut program = program();
            while !program.spool.recording() {
                std::thread::sleep(Duration::from_millis(1));
            }
            program.run(10, Duration::ZERO);
        }
        "parent" => {
            let mut child = command("lingers");
            #[expect(
                clippy::zombie_processes,
                reason = "it outlives this process, which is what is tested"
            )]
            let _lingers = std::process::Command::new(child.remove(0))
                .args(child)
                .spawn()
                .unwrap();
            program().run(10, Duration::ZERO);
            std::thread::sleep(Duration::from_millis(300));
        }
        "lingers" => {
            program().run(10, Duration::ZERO);
            // The test ends this process.
            std::thread::sleep(Duration::from_secs(60));
        }
        "session" | "session-of-nothing" | "session-of-status" | "work-and-session" => {
            gapscope_recorder::survive_file_size_limit();
            let trace = std::env::var_os(TRACE).unwrap();
            if task == "work-and-session" {
                program().run(5, Duration::ZERO);
            }
            let recorded =
                record(
                    Path::new(&trace),
                    &format!("slow-work:{number}"),
                    |inner| match task {
                        "session-of-nothing" => inner.command = words(&["true"]),
                        "session-of-status" => {
                            let status = Path::new(&trace).with_file_name("status");
                            inner.command = words(&["cp", "/proc/self/status"]);
                            inner.command.push(status.into());
                        }
                        _ => {}
                    },
                )
                .unwrap();
            std::process::exit(match recorded.exit {
                Exit::Code(code) => code,
                Exit::Signal(signal) => 128 + signal,
            });
        }
        other => panic!("{other}"),
    }
}

struct Program {
    spool: Spool,
}

fn program() -> Program {
    let spool = Spool::from_env(|| made_up::process("vulkan"))
        .unwrap()
        .expect("the session names the spool");
    spool.write(&made_up::device(1, Api::Vulkan, 1.0));
    spool.write(&made_up::queue(1, 1));
    Program { spool }
}

impl Program {
    /// Submits command buffers of one dispatch each.
    fn run(&mut self, command_buffers: u32, pause: Duration) {
        for recording in 1..=command_buffers {
            let now = monotonic_ns();
            self.spool.write(&made_up::clock_sample(now));
            let commands = [
                Command::new(Op::Begin, 0, [0; 4]),
                Command::new(Op::Dispatch, 1, [1, 1, 1, 0]),
                Command::new(Op::End, 3, [0; 4]),
            ];
            let ticks = [100, 200, 300, 400].map(|tick| now as u64 + tick);
            let times = (now, now + 1000);
            made_up::run_command_buffer(&self.spool, recording, &commands, times, &ticks);
            std::thread::sleep(pause);
        }
    }
}

/// Returns the command that makes this binary a child with a task.
fn command(task: &str) -> Vec<OsString> {
    let mut command: Vec<OsString> = vec!["env".into(), format!("{CHILD}={task}").into()];
    command.push(std::env::current_exe().unwrap().into());
    command.extend(["--exact", "child", "--ignored", "--nocapture", "-q"].map(OsString::from));
    command
}

fn record(
    trace: &Path,
    task: &str,
    change: impl FnOnce(&mut Recording),
) -> Result<Recorded, Error> {
    let mut recording = Recording {
        command: command(task),
        output: trace.to_owned(),
        keep_arguments: true,
        mode: SamplingMode::Dispatch,
        names: Names::default(),
        start: Start::AtOnce,
        time_limit: None,
        layer: "/dev/null".into(),
        cuda: None,
        labels: LabelInjection::default(),
        profile: Vec::new(),
        instructions: None,
        stdout_to_stderr: false,
        spool_limit_bytes: None,
        stack_rate_hz: None,
        counters: None,
        system_root: "/".into(),
    };
    change(&mut recording);
    recording.start()?.wait()
}

/// Returns the path of a trace that does not exist yet, in a folder of its own.
fn new_trace() -> (tempfile::TempDir, PathBuf) {
    let folder = tempfile::tempdir().unwrap();
    let trace = folder.path().join("t.gapscope");
    (folder, trace)
}

fn words(words: &[&str]) -> Vec<OsString> {
    words.iter().map(OsString::from).collect()
}

#[test]
fn a_program_is_recorded_and_its_exit_code_given_back() {
    let (_folder, trace) = new_trace();
    let recorded = record(&trace, "work:3", |_| {}).unwrap();
    assert_eq!(recorded.exit, Exit::Code(3));
    assert_eq!(recorded.outcome, Outcome::Recorded);
    assert_eq!(recorded.dispatches, 100);
    assert_eq!(recorded.losses, []);
    let (found, diagnostics) = gapscope_trace::read(&trace, &Selection::all()).unwrap();
    assert!(diagnostics.is_empty(), "{diagnostics:?}");
    let manifest = &found.manifest;
    assert!(manifest.complete);
    assert_eq!(manifest.exit, Some(Exit::Code(3)));
    assert_eq!(manifest.command[0], "env");
    assert_eq!(manifest.processes.len(), 1);
    assert!(manifest.host.cores.is_some_and(|cores| cores > 0));
    assert!(manifest.devices[0].clock.error_ns.unwrap() < 10_000);
    assert_eq!(found.tables.dispatches.len(), 100);
    assert!(
        found
            .tables
            .dispatches
            .duration_ns
            .iter()
            .all(|d| d == Some(100))
    );
    let inside = |ns: &i64| (manifest.start_ns..=manifest.end_ns).contains(ns);
    assert!(found.tables.submissions.start_ns.iter().all(inside));
    for leftover in ["spool", "layer", "parts"] {
        assert!(!trace.join(leftover).exists(), "{leftover}");
    }
}

#[test]
fn a_command_that_cannot_run_leaves_no_output() {
    let (_folder, trace) = new_trace();
    for (command, expected) in [
        (
            words(&["no-such-command-here"]),
            "no such command on the PATH",
        ),
        (words(&["./no/such/file"]), "no such file"),
        (words(&["/etc/passwd"]), "it is not executable"),
        (words(&[]), "no command"),
    ] {
        let error = record(&trace, "", |r| r.command = command.clone()).unwrap_err();
        assert!(error.to_string().contains(expected), "{error}");
        assert!(!trace.exists(), "{command:?}");
    }
}

#[test]
fn an_output_that_exists_is_left_alone() {
    let folder = tempfile::tempdir().unwrap();
    let error = record(folder.path(), "work", |_| {}).unwrap_err();
    assert!(error.to_string().contains("exists already"), "{error}");
    assert_eq!(std::fs::read_dir(folder.path()).unwrap().count(), 0);
}

#[test]
fn a_program_without_vulkan_is_said_and_leaves_no_trace() {
    let (_folder, trace) = new_trace();
    let recorded = record(&trace, "", |r| r.command = words(&["sh", "-c", "exit 7"])).unwrap();
    assert_eq!(recorded.exit, Exit::Code(7));
    let Outcome::NothingRecorded {
        reason,
        trace_kept: false,
    } = recorded.outcome
    else {
        panic!("{recorded:?}");
    };
    assert!(reason.contains("used no Vulkan"), "{reason}");
    assert!(!trace.exists());
}

#[test]
fn a_hook_of_another_build_is_said() {
    let (_folder, trace) = new_trace();
    let recorded = record(&trace, "of-another-build", |_| {}).unwrap();
    let Outcome::NothingRecorded {
        reason,
        trace_kept: false,
    } = recorded.outcome
    else {
        panic!("{recorded:?}");
    };
    let version = gapscope_spool::VERSION;
    let expected = format!(
        "has version {}, and this build reads version {version}",
        version - 1
    );
    assert!(reason.contains("another build of gapscope"), "{reason}");
    assert!(reason.contains(&expected), "{reason}");
}

#[test]
fn a_device_without_submissions_is_a_trace_with_a_note() {
    let (_folder, trace) = new_trace();
    let recorded = record(&trace, "device", |_| {}).unwrap();
    assert!(matches!(
        recorded.outcome,
        Outcome::NothingRecorded {
            trace_kept: true,
            ..
        }
    ));
    let (found, _) = gapscope_trace::read(&trace, &Selection::all()).unwrap();
    assert!(
        found.manifest.notes[0].contains("submitted nothing"),
        "{:?}",
        found.manifest.notes
    );
}

#[test]
fn a_program_that_aborts_keeps_everything_it_wrote() {
    let (_folder, trace) = new_trace();
    let recorded = record(&trace, "killed:5000", |_| {}).unwrap();
    assert_eq!(recorded.exit, Exit::Signal(6));
    assert_eq!(recorded.dispatches, 5000);
    assert_eq!(recorded.losses, []);
}

#[test]
fn the_time_limit_ends_the_program_and_what_it_started() {
    let (_folder, trace) = new_trace();
    let begun = Instant::now();
    let recorded = record(&trace, "", |r| {
        r.command = words(&["sh", "-c", "sleep 30; true"]);
        r.time_limit = Some(Duration::from_millis(200));
    })
    .unwrap();
    assert!(recorded.timed_out);
    assert_eq!(recorded.exit, Exit::Signal(15));
    assert!(begun.elapsed() < Duration::from_secs(25));
}

#[test]
fn a_delayed_recording_begins_later() {
    let (_folder, trace) = new_trace();
    let before = monotonic_ns();
    let recorded = record(&trace, "waits", |r| {
        r.start = Start::After(Duration::from_millis(300))
    })
    .unwrap();
    assert_eq!(recorded.dispatches, 10);
    let (found, _) = gapscope_trace::read(&trace, &Selection::all()).unwrap();
    assert!(found.manifest.start_ns >= before + 300_000_000);
    assert!(found.tables.submissions.start_ns[0] >= found.manifest.start_ns);
}

#[test]
fn a_process_that_outlives_the_command_is_noted() {
    let (_folder, trace) = new_trace();
    let recorded = record(&trace, "parent", |_| {}).unwrap();
    assert_eq!(recorded.dispatches, 20);
    assert_eq!(recorded.notes.len(), 1, "{:?}", recorded.notes);
    assert!(
        recorded.notes[0].contains("was still running"),
        "{:?}",
        recorded.notes
    );
    let (found, _) = gapscope_trace::read(&trace, &Selection::all()).unwrap();
    let mut numbers = found.manifest.processes.iter().map(|process| process.pid);
    assert_eq!(numbers.len(), 2);
    let lingers = numbers.find(|pid| recorded.notes[0].contains(&format!("process {pid})")));
    let lingers = rustix::process::Pid::from_raw(lingers.unwrap() as i32).unwrap();
    rustix::process::kill_process(lingers, rustix::process::Signal::KILL).unwrap();
}

/// Starts a session in a process of its own.
fn session(trace: &Path, number: u32) -> std::process::Child {
    let mut command = command(&format!("session:{number}"));
    std::process::Command::new(command.remove(0))
        .args(command)
        .env(TRACE, trace)
        .spawn()
        .unwrap()
}

fn until(what: impl Fn() -> bool) {
    let begun = Instant::now();
    while !what() {
        assert!(
            begun.elapsed() < Duration::from_secs(20),
            "it takes too long"
        );
        std::thread::sleep(Duration::from_millis(5));
    }
}

fn program_has_begun(trace: &Path) -> bool {
    process_folders(trace).next().is_some()
}

/// Returns the names of the processes' folders in the spool of a trace.
fn process_folders(trace: &Path) -> impl Iterator<Item = String> {
    let entries = std::fs::read_dir(trace.join("spool"));
    let folders = (entries.into_iter().flatten().flatten()).filter(|entry| entry.path().is_dir());
    folders.filter_map(|folder| folder.file_name().into_string().ok())
}

#[test]
fn a_session_that_is_killed_is_recovered_once_the_program_has_ended() {
    let (_folder, trace) = new_trace();
    let mut session = session(&trace, 900);
    until(|| program_has_begun(&trace));
    std::thread::sleep(Duration::from_millis(200));
    let error = recover(&trace, false).unwrap_err();
    assert!(error.to_string().contains("its gapscope record"), "{error}");
    session.kill().unwrap();
    session.wait().unwrap();
    let error = recover(&trace, false).unwrap_err();
    assert!(
        error.to_string().contains("the recorded program"),
        "{error}"
    );
    until(|| {
        // The program runs on to its end.
        std::thread::sleep(Duration::from_millis(50));
        !matches!(recover(&trace, false), Err(Error::StillRunning { .. }))
    });
    assert_eq!(recover(&trace, false).unwrap(), Recovered::AlreadyComplete);
    let (found, _) = gapscope_trace::read(&trace, &Selection::all()).unwrap();
    assert!(found.manifest.complete);
    assert_eq!(found.manifest.losses, []);
    assert_eq!(found.tables.dispatches.len(), 900);
    assert_eq!(found.manifest.exit, None);
    assert!(found.manifest.notes[0].contains("gapscope recover"));
}

#[test]
fn a_signal_that_was_ignored_from_the_start_stays_ignored() {
    let (_folder, trace) = new_trace();
    let mut inner = command("session:600");
    inner.insert(0, "nohup".into());
    let mut session = std::process::Command::new(inner.remove(0))
        .args(inner)
        .env(TRACE, &trace)
        .stdout(std::process::Stdio::null())
        .spawn()
        .unwrap();
    until(|| program_has_begun(&trace));
    for process in [session.id(), recorded_process(&trace)] {
        let pid = rustix::process::Pid::from_raw(process as i32).unwrap();
        rustix::process::kill_process(pid, rustix::process::Signal::HUP).unwrap();
    }
    assert_eq!(session.wait().unwrap().code(), Some(0));
    let (found, _) = gapscope_trace::read(&trace, &Selection::all()).unwrap();
    assert_eq!(found.tables.dispatches.len(), 600);
}

/// Returns the process of the first spool in a trace.
fn recorded_process(trace: &Path) -> u32 {
    let name = process_folders(trace).next().unwrap();
    let (pid, _) = name.trim_start_matches('p').split_once('-').unwrap();
    pid.parse().unwrap()
}

#[test]
fn a_signal_to_the_session_reaches_the_program_and_the_trace_is_complete() {
    let (_folder, trace) = new_trace();
    let mut session = session(&trace, 100_000);
    until(|| program_has_begun(&trace));
    std::thread::sleep(Duration::from_millis(200));
    let pid = rustix::process::Pid::from_raw(session.id() as i32).unwrap();
    rustix::process::kill_process(pid, rustix::process::Signal::TERM).unwrap();
    let status = session.wait().unwrap();
    assert_eq!(status.code(), Some(128 + 15));
    let (found, _) = gapscope_trace::read(&trace, &Selection::all()).unwrap();
    assert!(found.manifest.complete);
    assert_eq!(found.manifest.exit, Some(Exit::Signal(15)));
    assert!(found.tables.dispatches.len() > 10);
}
