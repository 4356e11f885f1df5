//! Tests programs that fail, end early or consist of several processes.

use std::ffi::OsString;
use std::os::unix::process::{CommandExt, ExitStatusExt};
use std::process::Stdio;
use std::time::Duration;

use gapscope_trace::manifest::Exit;
use gapscope_trace::tables::{Table, Timing};
use gapscope_trace::{LossKind, Selection};

use crate::counts::compare;
use crate::driver::{Driver, Fake, Lavapipe};
use crate::losses;
use crate::product;
use crate::recording::{Program, Run, open, planted};

#[test]
fn a_killed_program_leaves_a_complete_trace() {
    let recording = planted("killed").record();
    assert_eq!(
        recording.run.status.code(),
        Some(128 + 9),
        "{}",
        recording.run.stderr
    );
    let trace = recording.trace();
    compare(&trace.tables, &recording.truth());
    assert_eq!(trace.manifest.exit, Some(Exit::Signal(9)));
    assert_eq!(trace.manifest.processes.len(), 1);
    assert_eq!(
        trace.manifest.processes[0].end_ns, None,
        "its end was not orderly"
    );
}

#[test]
fn a_program_that_destroys_nothing_is_recorded_whole() {
    for arguments in ["abandon", "abandon --hard-exit"] {
        let recording = planted(arguments).recorded();
        compare(&recording.trace().tables, &recording.truth());
    }
}

/// The process ends in the way of the children of Python's multiprocessing.
#[test]
fn what_was_waited_for_has_times_when_the_process_ends_without_handlers() {
    let small = "abandon --hard-exit --spin 0 --groups 1 --iterations 30 --n 50";
    let large = "abandon --hard-exit --spin 0 --groups 1 --iterations 3 --n 500";
    for arguments in [small, large] {
        let fake = Fake::new(&[("DISPATCH_NS", "100")]);
        let drivers: [&dyn Driver; 2] = [&Lavapipe, &fake];
        for driver in drivers {
            // The program's thread spends a bounded time on reading times. On a busy machine, the last of them may
            // be lost, and are counted.
            let whole = (0..5).any(|_| {
                let recording = Program::planted(arguments, driver).recorded();
                let trace = recording.trace();
                compare(&trace.tables, &recording.truth());
                losses::assert_exact(&trace);
                trace.manifest.losses.is_empty()
            });
            assert!(whole, "{arguments}: each of five recordings lost times");
        }
    }
}

#[test]
fn work_that_was_pending_at_the_end_is_counted_and_its_times_are_unknown() {
    let recording = planted("in-flight --n 50 --spin 20000").recorded();
    let trace = recording.trace();
    let buffers = &trace.tables.command_buffers;
    assert_eq!(
        buffers.len() as u64,
        recording.truth().sum("command_buffers")
    );
    let unseen = buffers
        .timing
        .iter()
        .filter(|&&timing| timing == Timing::NotSeen)
        .count();
    assert!(unseen > 0, "{:?}", buffers.timing);
    losses::assert_exact(&trace);
}

#[test]
fn each_child_is_a_process_of_its_own() {
    let recording = planted("children --count 3").recorded();
    let trace = recording.trace();
    compare(&trace.tables, &recording.truth());
    let processes = &trace.manifest.processes;
    assert_eq!(processes.len(), 4, "{processes:?}");
    let parent = processes
        .iter()
        .find(|process| {
            process
                .arguments
                .iter()
                .any(|argument| argument == "children")
        })
        .expect("the parent")
        .pid;
    let children = processes
        .iter()
        .filter(|process| process.parent_pid == Some(parent))
        .count();
    assert_eq!(children, 3, "{processes:?}");
}

#[test]
fn a_forked_child_is_a_process_of_its_own() {
    let recording = planted("fork").recorded();
    let trace = recording.trace();
    compare(&trace.tables, &recording.truth());
    assert_eq!(
        trace.manifest.processes.len(),
        recording.truth().processes()
    );
}

#[test]
fn a_program_behind_a_shell_is_recorded() {
    let planted = product::built("planted");
    let script = format!("true; exec '{}' steady", planted.display());
    let recording = Program::new(["sh", "-c", &script], &Lavapipe).recorded();
    compare(&recording.trace().tables, &recording.truth());
}

#[test]
fn a_limit_on_the_size_of_files_costs_times_and_not_the_program() {
    let planted = product::built("planted");
    // The memory of a software GPU is a file without a name. The file for timestamps exceeds the limit, and the
    // program's does not.
    let script = format!("ulimit -f 192; exec '{}' steady", planted.display());
    let recording = Program::new(["sh", "-c", &script], &Lavapipe).recorded();
    let trace = recording.trace();
    compare(&trace.tables, &recording.truth());
    losses::assert_exact(&trace);
    assert!(losses::counted(&trace, &LossKind::TimestampMemory) > 0);
}

#[test]
fn a_recording_inside_another_has_the_work_and_the_outer_one_says_so() {
    let folder = tempfile::tempdir().expect("a temporary folder");
    let inner = folder.path().join("inner.gapscope");
    let gapscope = product::built("gapscope").into_os_string();
    let planted = product::built("planted").into_os_string();
    let words = ["record", "--quiet", "-o"].map(OsString::from);
    let command = [gapscope].into_iter().chain(words).chain([
        inner.clone().into(),
        "--".into(),
        planted,
        "steady".into(),
    ]);
    let outer = Program::new(command, &Lavapipe).record();
    let (trace, _) = gapscope_trace::read(&inner, &Selection::all()).expect("the inner trace");
    compare(&trace.tables, &outer.truth());
    let said = &outer.run.stderr;
    assert!(said.contains(&inner.display().to_string()), "{said}");
    assert_eq!(said.lines().count(), 1, "{said}");
    assert_eq!(outer.run.status.code(), Some(0), "{said}");
    assert!(!outer.path().exists());
}

/// Returns what `gapscope record` says of a command whose GPU work it cannot record.
fn reason_of(program: &Program) -> String {
    let recording = program.record();
    recording.run.assert_status(125);
    assert!(!recording.path().exists());
    recording.run.stderr
}

#[test]
fn layers_that_the_user_switched_off_are_the_reason_and_the_driver_is_the_one_that_ran() {
    // The program runs long enough to be seen.
    let program = || planted("host-sleep --iterations 8 --sleep-us 50000");
    let reason = reason_of(&program().variable("VK_LOADER_LAYERS_DISABLE", "~all~"));
    assert!(
        reason.contains("VK_LOADER_LAYERS_DISABLE=~all~"),
        "{reason}"
    );
    assert!(reason.contains("libvulkan_lvp"), "{reason}");
}

#[test]
fn a_program_that_drops_its_privileges_is_said_to_run_as_another_user() {
    let mut dropping = std::process::Command::new("setpriv");
    dropping.args(["--reuid", "65534", "true"]);
    if !dropping.status().is_ok_and(|status| status.success()) {
        return eprintln!("skipped: only root can become another user");
    }
    let planted = product::built("planted");
    let planted = planted.to_str().expect("a path in UTF-8");
    let command = "setpriv --reuid 65534 --regid 65534 --clear-groups";
    let options = "host-sleep --iterations 8 --sleep-us 50000";
    let words = command
        .split(' ')
        .chain([planted])
        .chain(options.split(' '));
    let reason = reason_of(&Program::new(words, &Lavapipe));
    assert!(reason.contains("runs as user 65534"), "{reason}");
}

#[test]
fn options_for_cuda_alone_are_said_to_do_nothing_for_vulkan() {
    for options in [&["--profile-kernel", "spin"][..], &["--instructions"]] {
        let recording = planted("steady --n 1").options(options).recorded();
        let notes = recording.trace().manifest.notes;
        let starts = format!("{} did nothing: ", options[0]);
        assert!(notes.iter().any(|n| n.starts_with(&starts)), "{notes:?}");
    }
}

#[test]
fn a_signal_at_any_moment_leaves_no_folder_that_nothing_opens() {
    for after_ms in [0, 2, 4, 8, 16, 32, 64] {
        let folder = tempfile::tempdir().expect("a temporary folder");
        let trace = folder.path().join("t.gapscope");
        let mut command = std::process::Command::new(product::built("gapscope"));
        command.args(["record", "--quiet", "-o"]).arg(&trace);
        command.args(["--", "sleep", "60"]);
        let mut running = command.spawn().expect("gapscope");
        std::thread::sleep(std::time::Duration::from_millis(after_ms));
        let number = running.id().to_string();
        let sent = std::process::Command::new("kill")
            .args(["-TERM", &number])
            .status();
        assert!(sent.expect("kill").success());
        running.wait().expect("its end");
        assert!(!trace.exists(), "after {after_ms} ms");
    }
}

/// Starts a recording in a process group of its own, as a shell does.
fn in_own_group(program: &Program, folder: &std::path::Path) -> std::process::Child {
    let mut command = program.record_command(folder);
    command
        .process_group(0)
        .stdout(Stdio::null())
        .stderr(Stdio::null());
    command.spawn().expect("gapscope")
}

/// Sends SIGINT to a whole process group, as the terminal does at Ctrl-C.
fn interrupt(group: &std::process::Child) {
    let group = format!("-{}", group.id());
    // The group may have ended.
    let _ = std::process::Command::new("kill")
        .args(["-INT", "--", &group])
        .status();
}

#[test]
fn an_interrupt_at_any_stage_leaves_a_whole_trace_or_none() {
    let program = planted("host-sleep --iterations 12 --sleep-us 50000");
    for after_ms in [0, 5, 10, 20, 40, 80, 160, 320, 640, 900] {
        let folder = tempfile::tempdir().expect("a temporary folder");
        let mut running = in_own_group(&program, folder.path());
        for _ in 0..2 {
            std::thread::sleep(Duration::from_millis(after_ms));
            interrupt(&running);
        }
        running.wait().expect("its end");
        let trace = folder.path().join("t.gapscope");
        if trace.exists() {
            open(&trace);
        }
    }
}

#[test]
fn an_interrupt_while_the_trace_is_written_does_not_cut_it() {
    let fake = Fake::new(&[("DISPATCH_NS", "100")]);
    let program = Program::planted("steady --n 2000 --iterations 200", &fake);
    let folder = tempfile::tempdir().expect("a temporary folder");
    let mut running = in_own_group(&program, folder.path());
    let children = format!("/proc/{0}/task/{0}/children", running.id());
    let runs = || {
        let children = std::fs::read_to_string(&children).unwrap_or_default();
        let name = |pid: &str| std::fs::read_to_string(format!("/proc/{pid}/comm"));
        (children.split_whitespace())
            .any(|pid| name(pid).is_ok_and(|name| name.trim() == "planted"))
    };
    while !runs() {
        std::thread::sleep(Duration::from_millis(1));
    }
    while runs() {
        std::thread::sleep(Duration::from_millis(1));
    }
    for _ in 0..10 {
        interrupt(&running);
        std::thread::sleep(Duration::from_millis(10));
    }
    running.wait().expect("its end");
    let trace = open(&folder.path().join("t.gapscope"));
    assert_eq!(trace.tables.dispatches.len(), 400_000);
}

#[test]
fn a_folder_that_cannot_be_written_is_named_before_the_program_starts() {
    let folder = tempfile::tempdir().expect("a temporary folder");
    let recording = planted("steady --n 1").record_command(folder.path());
    let mut command = std::process::Command::new("sh");
    command.args(["-c", "mount -o remount,ro none \"$0\" && exec \"$@\""]);
    command.arg(folder.path());
    command
        .arg(recording.get_program())
        .args(recording.get_args());
    for (name, value) in recording.get_envs() {
        value.map(|value| command.env(name, value));
    }
    let Some(run) = Run::on_small_disk(&command, folder.path(), 300, "true") else {
        return;
    };
    run.assert_status(125);
    assert_eq!(run.stdout, "");
    assert_eq!(run.stderr.lines().count(), 1, "{}", run.stderr);
    let said = run.stderr.to_lowercase();
    assert!(
        said.contains("t.gapscope") && said.contains("read-only"),
        "{said}"
    );
}

#[test]
fn the_exit_code_of_the_program_is_passed_on() {
    let planted = product::built("planted");
    let script = format!("'{}' steady; exit 7", planted.display());
    let recording = Program::new(["sh", "-c", &script], &Lavapipe).record();
    recording.run.assert_status(7);
    assert_eq!(recording.trace().manifest.exit, Some(Exit::Code(7)));
    assert_eq!(recording.run.status.signal(), None);
}
