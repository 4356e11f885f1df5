//! Tests programs that limit themselves, filter their system calls, close what they have not opened or handle every signal. The
//! program's output and exit status must be those without gapscope, and its work must be in the trace.

use std::os::unix::fs::MetadataExt;
use std::process::Command;

use crate::counts::{check, compare};
use crate::driver::{Driver, Fake, Lavapipe};
use crate::product;
use crate::recording::{Program, Run, open, planted};

/// Enough dispatches for several chunks of the spool.
const WORK: &str = "steady --n 40 --iterations 200 --spin 10";

pub fn is_root() -> bool {
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

#[test]
fn children_by_other_calls_than_fork_and_a_loader_that_is_unloaded_change_nothing() {
    for conduct in [
        "spawns",
        "spawns --moment instance",
        "unload --moment start",
        "unload",
    ] {
        let trace = check(&format!("{WORK} --conduct {conduct}"), &Lavapipe);
        assert_eq!(trace.manifest.losses, [], "{conduct}");
        assert_eq!(trace.manifest.processes.len(), 1, "{conduct}");
    }
}

/// The most stack that the hook, built without optimisation, adds to a thread that only submits.
const HOOK_STACK_KIB: u32 = 32;

/// The loader needs the most where a thread does all, so that the hook adds nothing. It adds a bounded amount on a thread that
/// only submits.
#[test]
fn a_thread_needs_little_more_stack_than_without_the_hook() {
    let fake = Fake::new(&[("DISPATCH_NS", "100")]);
    for (mode, more_kib) in [
        ("steady --n 10", 0),
        ("submitter --n 10 --iterations 200", HOOK_STACK_KIB),
    ] {
        let program = |kib: u32| Program::planted(&format!("{mode} --stack-kib {kib}"), &fake);
        let mut sizes = (16..=512).step_by(16);
        let least = sizes.find(|kib| program(*kib).run().status.success());
        let least = least.expect("a size that is enough");
        let recording = program(least + more_kib).recorded();
        compare(&recording.trace().tables, &recording.truth());
    }
}

#[test]
fn a_program_with_clocks_of_its_own_is_recorded_whole() {
    if !is_root() {
        return eprintln!("skipped: only root makes a time namespace");
    }
    let planted = product::built("planted");
    // A machine that has just started has no time to take away.
    for offset in ["100000", "-60"] {
        let command = format!("unshare --time --monotonic {offset} --boottime {offset} --fork");
        let words = command
            .split(' ')
            .chain([planted.to_str().expect("UTF-8"), "steady"]);
        let recording = Program::new(words, &Lavapipe).recorded();
        let trace = recording.trace();
        compare(&trace.tables, &recording.truth());
        assert_eq!(trace.manifest.losses, [], "{offset}");
        let notes = &trace.manifest.notes;
        let says = |note: &String| note.contains("has clocks of its own");
        assert!(!notes.iter().any(says), "{notes:?}");
        // Its times are on the session's clock, as those of its stacks.
        let run = trace.manifest.start_ns..=trace.manifest.end_ns;
        let submissions = &trace.tables.submissions.start_ns;
        assert!(
            submissions.iter().all(|at| run.contains(at)),
            "{run:?}: {submissions:?}"
        );
        let dispatches = trace.tables.dispatches.start_ns.iter().flatten();
        assert!({ dispatches }.all(|at| run.contains(&at)), "{run:?}");
    }
}

#[test]
fn a_session_in_a_pid_namespace_without_a_proc_of_its_own_names_no_stranger() {
    if !is_root() {
        return eprintln!("skipped: only root makes a PID namespace");
    }
    let folder = tempfile::tempdir().expect("a temporary folder");
    let recording = planted("steady").record_command(folder.path());
    let mut command = Command::new("unshare");
    command.args(["--pid", "--fork"]);
    command
        .arg(recording.get_program())
        .args(recording.get_args());
    for (name, value) in recording.get_envs() {
        if let Some(value) = value {
            command.env(name, value);
        }
    }
    let run = Run::from_command(&mut command).ok();
    let trace = open(&folder.path().join("t.gapscope"));
    compare(&trace.tables, &run.truth());
    let notes = &trace.manifest.notes;
    assert!(
        notes.iter().all(|n| !n.contains("still running")),
        "{notes:?}"
    );
    assert!(
        notes.iter().any(|n| n.starts_with("/proc shows")),
        "{notes:?}"
    );
    assert_eq!(trace.manifest.losses, []);
}

#[test]
fn a_limit_on_descriptors_is_the_programs_and_does_not_end_the_recording() {
    let folder = tempfile::tempdir().expect("a temporary folder");
    for (number, limit) in ["-Sn 16", "-n 24"].into_iter().enumerate() {
        let planted = product::built("planted");
        let script = format!("ulimit -Sn >&2; exec '{}' steady", planted.display());
        let folder = folder.path().join(number.to_string());
        std::fs::create_dir(&folder).expect("a folder");
        let program = Program::new(["sh", "-c", &script], &Lavapipe);
        let recording = program.record_command(&folder);
        let mut command = Command::new("sh");
        command.args(["-c", &format!("ulimit {limit} && exec \"$0\" \"$@\"")]);
        command
            .arg(recording.get_program())
            .args(recording.get_args());
        command.envs(Lavapipe.variables());
        let run = Run::from_command(&mut command).ok();
        let most = limit.split(' ').nth(1).expect("a number");
        assert!(
            run.stderr.lines().any(|line| line == most),
            "{}",
            run.stderr
        );
        let trace = open(&folder.join("t.gapscope"));
        compare(&trace.tables, &run.truth());
        assert_eq!(trace.manifest.losses, [], "{limit}");
    }
}

#[test]
fn a_program_whose_address_space_is_limited_from_the_start_keeps_it() {
    let planted = product::built("planted");
    let script = format!("ulimit -v 800000; exec '{}' steady", planted.display());
    let recording = Program::new(["sh", "-c", &script], &Lavapipe).recorded();
    compare(&recording.trace().tables, &recording.truth());
}
