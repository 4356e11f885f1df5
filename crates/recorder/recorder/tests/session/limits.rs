//! Tests that what a shell sets before it starts gapscope (signals, limits, the umask) holds for the program as it
//! would without gapscope.

use crate::{TRACE, command, new_trace, program_has_begun, record, until, words};
use gapscope_recorder::Outcome;
use gapscope_trace::Selection;
use gapscope_trace::tables::Table;
use std::os::unix::fs::PermissionsExt;
use std::path::Path;
use std::process::{Command, ExitStatus};

/// Runs a session in a child, after the shell has run `before`.
fn session_after(before: &str, task: &str, trace: &Path) -> std::process::Child {
    Command::new("sh")
        .args(["-c", &format!("{before}; exec \"$@\""), "sh"])
        .args(command(task))
        .env(TRACE, trace)
        .stdout(std::process::Stdio::null())
        .spawn()
        .unwrap()
}

/// Returns the signals that `sh` ignores in a session that was started after `before`, with signal 1 in the lowest
/// bit.
fn ignored_after(before: &str) -> u64 {
    let folder = tempfile::tempdir().unwrap();
    let status: ExitStatus = session_after(
        before,
        "session-of-status",
        &folder.path().join("t.gapscope"),
    )
    .wait()
    .unwrap();
    assert!(status.success(), "{status}");
    let status = std::fs::read_to_string(folder.path().join("status")).unwrap();
    let mask = status.lines().find_map(|line| line.strip_prefix("SigIgn:"));
    u64::from_str_radix(mask.unwrap().trim(), 16).unwrap()
}

#[test]
fn sigpipe_is_ignored_by_the_program_where_it_was() {
    const PIPE: u64 = 1 << (libc::SIGPIPE - 1);
    assert_eq!(ignored_after("trap '' PIPE") & PIPE, PIPE);
    assert_eq!(ignored_after("trap - PIPE") & PIPE, 0);
}

#[test]
fn a_limit_on_the_size_of_files_ends_neither_program_nor_session() {
    let (folder, trace) = new_trace();
    // The limit is less than a chunk of the spool, and less than the tables will be.
    let status = session_after("ulimit -f 8", "session:200", &trace)
        .wait()
        .unwrap();
    // The session ends with the program's own exit code or with an error in words, not by a signal.
    assert!(status.code().is_some(), "{status}");
    let done = std::fs::read_to_string(folder.path().join("done"));
    assert_eq!(done.unwrap(), "200", "the program got to its end");
}

#[test]
fn where_large_chunks_find_no_space_smaller_ones_keep_all() {
    let (_folder, trace) = new_trace();
    // In units of 512 bytes, the limit allows a thread's first chunk and not its second.
    let status = session_after("ulimit -f 192", "session:1000", &trace)
        .wait()
        .unwrap();
    assert!(status.success(), "{status}");
    let (trace, _) = gapscope_trace::read(&trace, &Selection::all()).unwrap();
    assert_eq!(trace.manifest.losses, []);
    assert_eq!(trace.tables.dispatches.len(), 1000);
}

#[test]
fn a_trace_is_its_owners_alone_whatever_the_umask() {
    let (_folder, trace) = new_trace();
    let mut session = session_after("umask 000", "session:600", &trace);
    until(|| program_has_begun(&trace));
    let mut folders = vec![trace.clone()];
    let mut seen = 0;
    while let Some(folder) = folders.pop() {
        let mode = folder.metadata().unwrap().permissions().mode() & 0o777;
        assert_eq!(mode, 0o700, "{}", folder.display());
        seen += 1;
        let inside = std::fs::read_dir(&folder).into_iter().flatten().flatten();
        folders.extend(inside.map(|e| e.path()).filter(|path| path.is_dir()));
    }
    assert!(seen > 3, "{seen} folders");
    assert!(session.wait().unwrap().success());
    let (found, _) = gapscope_trace::read(&trace, &Selection::all()).unwrap();
    assert_eq!(found.tables.dispatches.len(), 600);
}

#[test]
fn a_pid_namespace_of_its_own_hides_no_process() {
    let (_folder, trace) = new_trace();
    let mut unshared = words(&["unshare", "-rpf", "--mount-proc"]);
    if !Command::new("unshare")
        .args(["-rpf", "true"])
        .status()
        .is_ok_and(|s| s.success())
    {
        let required = std::env::var_os("GAPSCOPE_REQUIRE_CLIENTS").is_some_and(|of| of == "1");
        assert!(!required, "this system allows no PID namespaces");
        eprintln!("skipped: this system allows no PID namespaces");
        return;
    }
    unshared.extend(command("slow-work:300"));
    let recorded = record(&trace, "", |recording| recording.command = unshared).unwrap();
    assert_eq!(
        recorded.notes,
        Vec::<String>::new(),
        "nothing is said to run on"
    );
    let (found, _) = gapscope_trace::read(&trace, &Selection::all()).unwrap();
    assert_eq!(found.manifest.losses, []);
    assert_eq!(found.tables.dispatches.len(), 300);
}

#[test]
fn what_goes_into_the_background_before_it_uses_a_gpu_is_said_to_run_on() {
    let (_folder, trace) = new_trace();
    let recorded = record(&trace, "", |recording| {
        recording.command = words(&["sh", "-c", "sleep 4 < /dev/null > /dev/null 2>&1 &"]);
    })
    .unwrap();
    let Outcome::NothingRecorded { reason, .. } = recorded.outcome else {
        panic!("{recorded:?}");
    };
    assert!(reason.contains("sleep (process "), "{reason}");
    assert!(reason.contains("runs on"), "{reason}");
}
