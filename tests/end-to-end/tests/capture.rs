//! Tests that `gapscope capture` leaves the program's results unchanged, and that the capture contains the window's
//! work.

use std::path::PathBuf;
use std::process::Command as Process;
use std::time::{Duration, Instant};

use gapscope_capture::model::{Command, Content, ContentCause, EndReason, Groups, Outcome};
use gapscope_capture::{Capture, Hash, RECORDS, Record};
use tempfile::TempDir;

use crate::driver::{Fake, Lavapipe};
use crate::product;
use crate::recording::{Program, Run, assert_contains, planted};
use crate::validation::messages;

/// A run of `gapscope capture` with the path of its output.
struct Captured {
    run: Run,
    path: PathBuf,
    _folder: TempDir,
}

fn captured(program: &Program) -> Captured {
    let folder = tempfile::tempdir().expect("a temporary folder");
    let path = folder.path().join("c.gapcapture");
    Captured {
        run: program.capture(&path),
        path,
        _folder: folder,
    }
}

impl Captured {
    /// Returns the capture, which must be readable to its end.
    fn open(&self) -> Capture {
        let (capture, problem) = Capture::open(&self.path)
            .unwrap_or_else(|error| panic!("{error}\n{}", self.run.stderr));
        assert_eq!(problem, None);
        capture
    }

    fn end(&self) -> EndReason {
        self.open().end.expect("the window has an end").reason
    }

    fn records(&self) -> Vec<Record> {
        let text = std::fs::read_to_string(self.path.join(RECORDS)).expect("records");
        let records = text
            .lines()
            .map(|line| serde_json::from_str(line).expect("a record"));
        records.collect()
    }

    fn contents(&self) -> Vec<Content> {
        let contents = self
            .records()
            .into_iter()
            .filter_map(|record| match record {
                Record::Content(content) => Some(content),
                _ => None,
            });
        contents.collect()
    }

    fn outcomes(&self) -> Vec<Outcome> {
        let outcomes = self
            .records()
            .into_iter()
            .filter_map(|record| match record {
                Record::Outcome(outcome) => Some(outcome),
                _ => None,
            });
        outcomes.collect()
    }

    fn dispatches(&self) -> usize {
        let capture = self.open();
        let is_dispatch = |command: &&Command| matches!(command, Command::Dispatch(_));
        capture.executed().filter(is_dispatch).count()
    }

    fn submissions(&self) -> usize {
        self.open().submissions().count()
    }

    /// Checks that nothing was captured, for a reason that contains this text.
    fn assert_nothing(&self, reason: &str) {
        self.run.assert_status(125);
        assert_contains(&self.run.stderr, "nothing was captured");
        assert_contains(&self.run.stderr, reason);
        assert!(!self.path.exists());
    }
}

/// Captures all work of `planted` and checks that its results are the same as without capturing.
fn check(arguments: &str) -> Captured {
    let program = planted(arguments);
    let alone = program.run().ok();
    let captured = captured(&program);
    captured.run.assert_status(0);
    let (with, without) = (captured.run.truth(), alone.truth());
    assert_eq!(with.results(), without.results(), "{arguments}");
    captured
}

macro_rules! whole_programs {
    ($($name:ident: $arguments:literal, $dispatches:literal;)+) => {$(
        #[test]
        fn $name() {
            let captured = check($arguments);
            assert_eq!(captured.end(), EndReason::Complete);
            assert_eq!(captured.dispatches(), $dispatches);
        }
    )+};
}

whole_programs! {
    captures_command_buffers_submitted_again: "resubmit --n 4", 20;
    captures_simultaneous_instances: "simultaneous --n 2", 26;
    captures_secondary_command_buffers: "secondary --n 2", 30;
    captures_handles_that_come_again: "host-pool-reset --n 2", 40;
    captures_indirect_dispatches: "indirect --n 2", 10;
    captures_specialised_kernels: "specialise --n 2", 20;
    captures_pushed_descriptors: "push-descriptors --n 4", 20;
    captures_updated_sets: "updated-sets --n 2", 10;
    captures_dynamic_offsets: "dynamic-offsets --n 4", 20;
    captures_submit2_with_timelines: "submit2 --n 2", 10;
    captures_threads: "threads --n 2 --count 3", 30;
    captures_transfers: "transfers --n 2 --bytes 200000", 0;
    captures_labels: "labels --n 2", 20;
    captures_children_once: "children --n 2", 10;
    captures_results_of_queries: "queries --n 2", 10;
    captures_what_is_left_behind: "abandon --n 2", 10;
}

/// Computes on the CPU the results of the kernel of `planted`.
fn spun(data: &[u32], rounds: u32) -> Vec<u32> {
    let one = |(id, value): (u32, &u32)| {
        let mut value = value.wrapping_add(id).wrapping_add(1);
        for _ in 0..rounds {
            value = (value ^ (value >> 15))
                .wrapping_mul(739_982_445)
                .wrapping_add(1_013_904_223);
        }
        value
    };
    (0..).zip(data).map(one).collect()
}

fn bytes(words: &[u32]) -> Vec<u8> {
    words.iter().flat_map(|word| word.to_le_bytes()).collect()
}

#[test]
fn content_and_outcome_are_what_the_kernel_reads_and_writes() {
    let program = planted("steady --n 1 --iterations 2 --groups 2 --spin 7");
    let captured = captured(&program.options(&["--submissions", "1..2"]));
    let capture = captured.open();
    let before = spun(&[0; 128], 7);
    let content = captured.contents();
    assert_eq!(content.len(), 1, "{content:?}");
    assert_eq!(content[0].chunks, [Hash::new(&bytes(&before))]);
    assert_eq!(capture.chunk(content[0].chunks[0]).unwrap(), bytes(&before));
    let outcomes = captured.outcomes();
    assert_eq!(outcomes.len(), 1, "{outcomes:?}");
    assert_eq!(outcomes[0].hashes, [Hash::new(&bytes(&spun(&before, 7)))]);
    let mut executed = capture.executed();
    let Some(Command::Dispatch(dispatch)) = executed.next() else {
        panic!("it begins with a dispatch");
    };
    assert_eq!(dispatch.groups, Groups::Direct([2, 1, 1]));
    assert_eq!(dispatch.push_constants, 7_u32.to_le_bytes());
    assert_eq!(capture.pipelines[&dispatch.pipeline].name, "spin");
    assert!(
        capture
            .submissions()
            .all(|submission| submission.device_ns.is_some())
    );
}

#[test]
fn writes_of_the_host_are_found_whoever_makes_them() {
    let captured = check("host-writes --n 1 --iterations 6");
    let causes: Vec<_> = captured
        .contents()
        .iter()
        .map(|content| content.cause)
        .collect();
    let mut expected = vec![ContentCause::HostWrite; 6];
    expected[0] = ContentCause::FirstUse;
    assert_eq!(causes, expected);
}

#[test]
fn what_nobody_writes_is_captured_once() {
    assert_eq!(check("steady --iterations 6").contents().len(), 1);
}

#[test]
fn a_wait_for_what_has_not_come_ends_the_window_and_hangs_nothing() {
    let captured = check("wait-first --n 1");
    let EndReason::Refused(reason) = captured.end() else {
        panic!("{:?}", captured.end());
    };
    assert_contains(&reason, "timeline semaphore");
    assert_eq!(captured.submissions(), 1);
}

#[test]
fn what_cannot_be_captured_is_refused_by_name() {
    captured(&planted("render-pass --n 1")).assert_nothing("vkCmdBeginRendering");
    captured(&planted("shader-objects --n 1")).assert_nothing("vkCmdBindShadersEXT");
    for (mode, name) in [
        ("sparse --n 1", "vkQueueBindSparse"),
        ("devices --n 1", "second device"),
    ] {
        let captured = captured(&planted(mode));
        let EndReason::Refused(reason) = captured.end() else {
            panic!("{mode}: {:?}", captured.end());
        };
        assert!(reason.contains(name), "{mode}: {reason}");
    }
}

#[test]
fn a_window_of_submissions_is_those() {
    let captured = captured(&planted("steady --n 3").options(&["--submissions", "1..3"]));
    assert_eq!(captured.end(), EndReason::Complete);
    assert_eq!((captured.submissions(), captured.dispatches()), (2, 6));
}

/// The program hands over submissions 3 to 5 in one call.
#[test]
fn submissions_are_counted_as_the_report_counts_them() {
    let program = || planted("simultaneous --iterations 3 --n 1");
    let recorded = program().recorded().report();
    assert_eq!(recorded["submission_count"], 8);
    assert_eq!(captured(&program()).open().submission_count(), 8);
    let window = captured(&program().options(&["--submissions", "4..5"]));
    assert_eq!(window.end(), EndReason::Complete);
    assert_eq!(window.open().submission_count(), 3);
    assert_contains(&window.run.stderr, "all of the calls that hand them over");
    captured(&program().options(&["--submissions", "8..9"])).assert_nothing("8 submissions");
}

#[test]
fn a_window_of_dispatches_is_cut_out_of_its_submissions() {
    // The windows are inside one submission, across two, and of whole submissions.
    for (window, submissions, before) in [("12..15", 1, 12), ("15..25", 2, 15), ("10..30", 2, 10)] {
        let arguments = "steady --n 10 --iterations 4 --groups 2 --spin 7";
        let alone = planted(arguments).run().ok().truth().results();
        let captured = captured(&planted(arguments).options(&["--dispatches", window]));
        assert_eq!(captured.run.truth().results(), alone, "{window}");
        let (start, end) = window.split_once("..").expect("a range");
        let dispatches = end.parse::<usize>().unwrap() - start.parse::<usize>().unwrap();
        assert_eq!(captured.dispatches(), dispatches, "{window}");
        assert_eq!(captured.submissions(), submissions, "{window}");
        assert_eq!(captured.end(), EndReason::Complete);
        let mut data = vec![0; 128];
        for _ in 0..before {
            data = spun(&data, 7);
        }
        assert_eq!(
            captured.contents()[0].chunks,
            [Hash::new(&bytes(&data))],
            "{window}"
        );
        for _ in 0..dispatches {
            data = spun(&data, 7);
        }
        let outcomes = captured.outcomes();
        assert_eq!(
            outcomes.last().unwrap().hashes,
            [Hash::new(&bytes(&data))],
            "{window}"
        );
    }
}

#[test]
fn a_submission_that_cannot_be_cut_is_captured_whole() {
    let captured = captured(&planted("secondary --n 2").options(&["--dispatches", "7..8"]));
    assert_eq!(captured.dispatches(), 6);
    assert_contains(&captured.run.stderr, "whole ones around");
}

#[test]
fn a_window_of_a_label_is_what_is_under_it() {
    let program = planted("labels --n 2");
    let captured = captured(&program.options(&["--label", "step 2"]));
    assert_eq!(captured.submissions(), 1, "{}", captured.run.stderr);
    let program = planted("labels --n 2");
    self::captured(&program.options(&["--label", "no such"])).assert_nothing("no such");
}

#[test]
fn a_window_behind_the_end_captures_nothing_and_says_so() {
    let program = planted("steady --n 3");
    captured(&program.options(&["--submissions", "9..10"])).assert_nothing("5 submissions");
}

#[test]
fn a_program_captures_itself() {
    let folder = tempfile::tempdir().expect("a temporary folder");
    let arguments = format!("windows --n 2 --captures {}", folder.path().display());
    let captured = captured(&planted(&arguments).options(&["--capture-only"]));
    captured.run.assert_status(0);
    let dispatches = [1, 2, 3].map(|number| {
        let path = folder.path().join(format!("{number}.gapcapture"));
        let (capture, problem) = Capture::open(&path).expect("a capture");
        assert_eq!(problem, None);
        capture
            .executed()
            .filter(|command| matches!(command, Command::Dispatch(_)))
            .count()
    });
    assert_eq!(dispatches, [5, 3, 6]);
    assert!(!captured.path.exists());
}

#[test]
fn what_is_there_is_not_overwritten() {
    let folder = tempfile::tempdir().expect("a temporary folder");
    let run = planted("steady --n 1").capture(folder.path());
    assert_eq!(run.status.code(), Some(125));
    assert!(run.stdout.is_empty(), "the program was not started");
    assert_contains(&run.stderr, "exists");
}

#[test]
fn the_status_is_the_programs() {
    let captured = captured(&planted("killed --n 1"));
    assert_eq!(captured.run.status.code(), Some(137));
    assert!(captured.open().end.is_none(), "it was cut off");
    assert_eq!(captured.submissions(), 5);
}

#[test]
fn a_full_disk_ends_the_window_and_not_the_program() {
    let folder = tempfile::tempdir().expect("a temporary folder");
    let program = planted("transfers --n 2 --bytes 4000000");
    let capture = program.capture_command(&folder.path().join("c.gapcapture"));
    let Some(run) = Run::on_small_disk(&capture, folder.path(), 128, "") else {
        return;
    };
    assert_contains(&run.stderr, "no space is left on the disk");
    let alone = program.run().ok();
    let result = |run: &Run| {
        run.stdout
            .split("result_hash")
            .nth(1)
            .map(|rest| rest[..21].to_owned())
    };
    assert_eq!(result(&run), result(&alone));
}

/// Returns true if a process has a handler for SIGUSR2.
fn catches_usr2(pid: u32) -> bool {
    const SIGUSR2: u32 = 12;
    let status = std::fs::read_to_string(format!("/proc/{pid}/status")).unwrap_or_default();
    let caught = status.lines().find_map(|line| line.strip_prefix("SigCgt:"));
    let caught = caught.and_then(|set| u64::from_str_radix(set.trim(), 16).ok());
    caught.is_some_and(|set| set >> (SIGUSR2 - 1) & 1 == 1)
}

#[test]
fn signals_to_the_command_begin_and_end_a_window() {
    let folder = tempfile::tempdir().expect("a temporary folder");
    let path = folder.path().join("c.gapcapture");
    let program =
        planted("host-sleep --n 1 --iterations 300 --sleep-us 20000").options(&["--signal"]);
    let mut child = program
        .capture_command(&path)
        .stdout(std::process::Stdio::null())
        .spawn()
        .expect("it starts");
    let signal = || {
        let sent = Process::new("kill")
            .args(["-USR2", &child.id().to_string()])
            .status();
        assert!(sent.expect("kill runs").success());
    };
    let begun = Instant::now();
    while !catches_usr2(child.id()) {
        assert!(
            begun.elapsed() < Duration::from_secs(20),
            "it catches SIGUSR2"
        );
        std::thread::sleep(Duration::from_millis(5));
    }
    std::thread::sleep(Duration::from_millis(1500));
    signal();
    let begun = Instant::now();
    while !path.exists() && begun.elapsed() < Duration::from_secs(20) {
        std::thread::sleep(Duration::from_millis(5));
    }
    std::thread::sleep(Duration::from_millis(200));
    signal();
    assert!(child.wait().expect("it ends").success());
    let (capture, problem) = Capture::open(&path).expect("a capture");
    assert_eq!(problem, None);
    assert_eq!(capture.end.expect("an end").reason, EndReason::Complete);
    let submissions = capture
        .steps
        .iter()
        .filter(|step| matches!(step, gapscope_capture::Step::Submission(_)))
        .count();
    assert!((1..200).contains(&submissions), "{submissions}");
}

/// Runs a program with and without capturing, above the validation layer, and compares the layer's messages.
fn check_validation(arguments: &str, options: &[&str]) {
    let program = planted(arguments)
        .variable("VK_INSTANCE_LAYERS", "VK_LAYER_KHRONOS_validation")
        .variable(
            "VK_LAYER_ENABLES",
            "VK_VALIDATION_FEATURE_ENABLE_SYNCHRONIZATION_VALIDATION_EXT",
        )
        .options(options);
    let alone = messages(&program.run().ok());
    let captured = captured(&program);
    let with = messages(&captured.run);
    let new: Vec<_> = with.difference(&alone).collect();
    assert!(new.is_empty(), "{arguments}: {new:?}");
    assert!(captured.submissions() > 0);
}

#[test]
fn the_validation_layer_says_nothing_new() {
    for arguments in [
        "steady --n 4",
        "simultaneous --n 2",
        "secondary --n 2",
        "push-descriptors --n 4",
        "submit2 --n 2",
        "threads --n 2",
        "transfers --n 1",
        "queries --n 2",
        "host-writes --n 1",
    ] {
        check_validation(arguments, &[]);
    }
}

#[test]
fn the_validation_layer_says_nothing_new_of_submissions_that_are_cut() {
    for arguments in [
        "steady --n 4",
        "push-descriptors --n 4",
        "dynamic-offsets --n 4",
        "specialise --n 4",
        "transfer-stall --n 4",
        "submit2 --n 4",
        "base --n 4",
        "indirect --n 4",
    ] {
        check_validation(arguments, &["--dispatches", "6..7"]);
        check_validation(arguments, &["--dispatches", "5..11"]);
    }
}

#[test]
fn a_wgpu_program_is_captured_whole() {
    let fusion = [
        product::built("fusion").into_os_string(),
        "--n".into(),
        "100000".into(),
        "--iterations".into(),
        "3".into(),
    ];
    let captured = captured(&Program::new(fusion, &Lavapipe));
    captured.run.assert_status(0);
    assert_eq!(captured.end(), EndReason::Complete);
    assert_eq!(captured.dispatches(), 25);
}

#[test]
fn two_queues_and_their_semaphores_are_captured() {
    let driver = Fake::new(&[]);
    let captured = captured(&Program::planted("ping-pong --n 2", &driver));
    captured.run.assert_status(0);
    let capture = captured.open();
    assert_eq!(capture.queues.len(), 2);
    let mut signalled = std::collections::HashSet::new();
    for batch in capture.submissions().flat_map(|s| &s.batches) {
        for wait in &batch.waits {
            assert!(signalled.contains(&wait.semaphore), "{wait:?}");
        }
        signalled.extend(batch.signals.iter().map(|signal| signal.semaphore));
    }
    assert!(!signalled.is_empty());
    assert_eq!(driver.misuse(), "");
}

#[test]
fn a_queue_without_timestamps_has_no_device_times() {
    let driver = Fake::new(&[("TIMESTAMP_BITS", "0")]);
    let captured = captured(&Program::planted("steady --n 2", &driver));
    let capture = captured.open();
    assert_eq!(captured.submissions(), 5);
    assert!(capture.submissions().all(|s| s.device_ns.is_none()));
    assert_eq!(driver.misuse(), "");
}

#[test]
fn a_device_that_is_lost_breaks_the_window_off() {
    let driver = Fake::new(&[("LOST_AFTER", "15")]);
    let program = Program::planted("device-lost --n 2 --iterations 20", &driver);
    let alone = program.run();
    let captured = captured(&program);
    assert_eq!(captured.run.status.code(), alone.status.code());
    assert!(
        matches!(captured.end(), EndReason::Failed(_)),
        "{:?}",
        captured.end()
    );
}
