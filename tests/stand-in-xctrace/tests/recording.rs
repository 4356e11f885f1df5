//! Records with stand-ins for Apple's tools. Apple's own are not here: the tests show that gapscope handles the behaviour of the
//! stand-ins, which imitate what Apple's tools were seen to do.

use gapscope_metal::*;
use gapscope_trace::LossKind;
use gapscope_trace::manifest::Exit;
use std::path::{Path, PathBuf};
use std::time::Duration;
use tempfile::TempDir;

/// Creates a stand-in with oddities as a program of its own: tests run at once and share their environment.
fn xctrace(folder: &Path, quirks: &str) -> Xctrace {
    let path = folder.join("xctrace");
    let stand_in = env!("CARGO_BIN_EXE_stand-in-xctrace");
    script(
        &path,
        &format!("#!/bin/sh\nSTAND_IN_XCTRACE='{quirks}' exec '{stand_in}' \"$@\"\n"),
    );
    Xctrace::at(path)
}

fn script(path: &Path, text: &str) {
    use std::os::unix::fs::PermissionsExt;
    // A file that another thread's child still has open for writing cannot be run, so the script is copied by another process.
    let fresh = path.with_extension("new");
    std::fs::write(&fresh, text).unwrap();
    std::fs::set_permissions(&fresh, std::fs::Permissions::from_mode(0o755)).unwrap();
    let status = std::process::Command::new("cp")
        .arg(&fresh)
        .arg(path)
        .status()
        .unwrap();
    assert!(status.success());
}

struct Case {
    folder: TempDir,
}

impl Case {
    fn new() -> Case {
        Case {
            folder: tempfile::tempdir().unwrap(),
        }
    }

    fn output(&self) -> PathBuf {
        self.folder.path().join("out.gapscope")
    }

    fn recording(&self, quirks: &str, command: &[&str]) -> Recording {
        Recording {
            target: Target::Launch(command.iter().map(Into::into).collect()),
            output: self.output(),
            time_limit: None,
            xctrace: xctrace(self.folder.path(), quirks),
        }
    }

    fn run(&self, quirks: &str, command: &[&str]) -> Result<Recorded, Error> {
        self.recording(quirks, command).run(|_| {})
    }

    /// Returns the files left beside the trace and the stand-in.
    fn left(&self) -> Vec<String> {
        let entries = std::fs::read_dir(self.folder.path()).unwrap();
        let names = entries.map(|entry| entry.unwrap().file_name().to_string_lossy().into_owned());
        names.filter(|name| name.starts_with(".gapscope")).collect()
    }
}

const RECORDED: Outcome = Outcome::Recorded {
    command_buffers: 5,
    timed_work: 5,
};

#[test]
fn a_command_is_recorded_and_nothing_else_is_left() {
    let case = Case::new();
    let mut stages = Vec::new();
    let recorded = case
        .recording("", &["true"])
        .run(|stage| stages.push(stage))
        .unwrap();
    assert_eq!(recorded.outcome, RECORDED);
    assert_eq!(recorded.exit, Some(Exit::Code(0)));
    assert!(!recorded.timed_out);
    assert_eq!(case.left(), [""; 0]);
    assert_eq!(stages.first(), Some(&Stage::Recording));
    assert_eq!(stages.last(), Some(&Stage::Importing));
    let (trace, _) =
        gapscope_trace::read(&case.output(), &gapscope_trace::Selection::all()).unwrap();
    assert_eq!(trace.manifest.command, ["true"]);
    assert_eq!(
        trace.tables.command_buffers.name[4].as_deref(),
        Some("step 4")
    );
    assert!(
        trace
            .manifest
            .notes
            .iter()
            .any(|note| note.contains("xctrace version 27.2"))
    );
}

#[test]
fn a_command_that_fails_is_recorded_with_its_status() {
    let case = Case::new();
    let recorded = case.run("", &["sh", "-c", "exit 7"]).unwrap();
    assert_eq!(
        (recorded.outcome, recorded.exit),
        (RECORDED, Some(Exit::Code(7)))
    );
}

#[test]
fn a_script_is_run_by_its_interpreter_with_the_environment() {
    let case = Case::new();
    let path = case.folder.path().join("run me");
    let seen = case.folder.path().join("seen");
    script(
        &path,
        &format!(
            "#!/usr/bin/env sh\necho \"$HOME $1\" > '{}'\n",
            seen.display()
        ),
    );
    case.run("", &[path.to_str().unwrap(), "a b"]).unwrap();
    let home = std::env::var("HOME").unwrap_or_default();
    assert_eq!(
        std::fs::read_to_string(seen).unwrap(),
        format!("{home} a b\n")
    );
}

#[test]
fn the_time_limit_ends_the_command() {
    let case = Case::new();
    let mut recording = case.recording("", &["sleep", "60"]);
    recording.time_limit = Some(Duration::from_millis(300));
    let recorded = recording.run(|_| {}).unwrap();
    assert!(recorded.timed_out);
    assert_eq!((recorded.outcome, recorded.exit), (RECORDED, None));
}

#[test]
fn a_running_process_is_recorded() {
    let case = Case::new();
    let mut recording = case.recording("", &[]);
    recording.target = Target::Attach(4711);
    recording.time_limit = Some(Duration::from_millis(20));
    assert_eq!(recording.run(|_| {}).unwrap().outcome, RECORDED);
    let manifest = gapscope_trace::read_manifest(&case.output()).unwrap();
    assert_eq!(manifest.processes[0].pid, 4711);
}

#[test]
fn a_crash_after_a_whole_table_is_noted_and_its_rows_are_kept() {
    let case = Case::new();
    let recorded = case.run("crash", &["true"]).unwrap();
    assert_eq!(recorded.outcome, RECORDED);
    assert!(recorded.notes.iter().any(
        |n| n.contains("133") && n.contains("after it had written all of metal-gpu-intervals")
    ));
}

#[test]
fn a_crash_before_the_end_of_a_table_is_said() {
    let case = Case::new();
    let recorded = case.run("crash,cut-after-row", &["true"]).unwrap();
    assert_eq!(recorded.outcome, RECORDED);
    assert!(recorded.notes.iter().any(|n| {
        n.contains("before metal-gpu-intervals was written to its end: 5 rows were read")
    }));
}

#[test]
fn an_empty_result_with_status_0_is_an_error_and_the_recording_is_kept() {
    let case = Case::new();
    let error = case.run("empty", &["true"]).unwrap_err();
    let Error::NotExported { what, reason, kept } = &error else {
        panic!("{error}");
    };
    assert_eq!(what, "metal-gpu-intervals");
    assert!(reason.contains("empty result"), "{reason}");
    assert!(kept.is_dir());
    assert!(!case.output().exists());
}

#[test]
fn no_gpu_rows_are_unknown_times() {
    let case = Case::new();
    let recorded = case.run("no-gpu-rows,no-points", &["true"]).unwrap();
    let expected = Outcome::Recorded {
        command_buffers: 5,
        timed_work: 0,
    };
    assert_eq!(recorded.outcome, expected);
    assert!(
        recorded
            .losses
            .iter()
            .any(|loss| loss.kind == LossKind::ImportedCommandBufferTimes && loss.count == 5)
    );
}

#[test]
fn what_xctrace_complains_of_is_passed_on() {
    let case = Case::new();
    let error = case.run("refuse", &["true"]).unwrap_err().to_string();
    assert!(error.contains("Developer mode is not enabled"), "{error}");
    assert_eq!(case.left(), [""; 0]);
}

#[test]
fn nothing_runs_when_the_trace_cannot_be_written() {
    let case = Case::new();
    let witness = case.folder.path().join("ran");
    std::fs::create_dir(case.output()).unwrap();
    let error = case
        .run("", &["touch", witness.to_str().unwrap()])
        .unwrap_err();
    assert!(error.to_string().contains("exists already"), "{error}");
    assert!(!witness.exists());
}

fn gpucapture() -> GpuCapture {
    GpuCapture::at(env!("CARGO_BIN_EXE_stand-in-gpucapture")).unwrap()
}

fn window(output: PathBuf) -> GpuWindow {
    GpuWindow {
        boundary: Some(Boundary::Label("step 3".to_owned())),
        length: Length::Count(2),
        output,
    }
}

#[test]
fn gpucapture_gets_the_window_and_its_file_is_checked() {
    let folder = tempfile::tempdir().unwrap();
    let gpucapture = gpucapture();
    assert!(gpucapture.list().unwrap().contains("4711 python\n"));
    let mut window = window(folder.path().join("a b.gputrace"));
    let bytes = gpucapture.capture(4711, &window).unwrap();
    let captured = std::fs::read_to_string(window.output.join("capture")).unwrap();
    assert_eq!(bytes, captured.len() as u64);
    assert_eq!(
        captured,
        format!(
            "start --pid 4711 --label step 3 --count 2 --output {}",
            window.output.display()
        )
    );
    let said = |pid, window: &GpuWindow| gpucapture.capture(pid, window).unwrap_err().to_string();
    assert!(said(4711, &window).contains("not overwritten"));
    window.output = folder.path().join("x.trace");
    assert!(said(4711, &window).contains("NAME.gputrace"));
    window.output = folder.path().join("none/x.gputrace");
    assert!(said(4711, &window).contains("folder does not exist"));
    window.output = folder.path().join("x.gputrace");
    assert!(
        said(666, &window).contains("cannot be captured")
            && said(666, &window).contains("MTL_CAPTURE_ENABLED=1")
    );
    assert!(
        GpuCapture::at("/nowhere")
            .unwrap_err()
            .to_string()
            .contains("version 27")
    );
}

#[test]
fn gpucapture_captures_a_command_when_it_sees_it() {
    let folder = tempfile::tempdir().unwrap();
    let window = window(folder.path().join("x.gputrace"));
    let waits = format!(
        "while [ ! -e '{0}/capture' ]; do sleep 0.01; done; exit 3",
        window.output.display()
    );
    let command: Vec<_> = ["sh", "-c", &waits].iter().map(Into::into).collect();
    let LaunchOutcome { exit, captured } = gpucapture().launch(&command, &window).unwrap();
    assert_eq!(exit, Exit::Code(3), "the command's own");
    let written = std::fs::read_to_string(window.output.join("capture")).unwrap();
    assert_eq!(captured.unwrap(), written.len() as u64);
}

#[test]
fn a_command_that_gpucapture_never_sees_is_said_and_ends_as_it_did() {
    let folder = tempfile::tempdir().unwrap();
    let window = window(folder.path().join("x.gputrace"));
    let blind = folder.path().join("gpucapture");
    script(&blind, "#!/bin/sh\necho '4711 python'\n");
    let launch = |command: &[&str]| {
        let command: Vec<_> = command.iter().map(Into::into).collect();
        GpuCapture::at(&blind).unwrap().launch(&command, &window)
    };
    let LaunchOutcome { exit, captured } = launch(&["sh", "-c", "sleep 0.3; exit 5"]).unwrap();
    assert_eq!(exit, Exit::Code(5));
    let said = captured.unwrap_err().to_string();
    assert!(said.contains("before gpucapture saw it"), "{said}");
    assert!(!window.output.exists());
    assert!(matches!(
        launch(&["no-such-command-anywhere"]),
        Err(Error::NoSuchCommand { .. })
    ));
}
