//! Programs that may not be sampled, or cannot be read.

use crate::watched::{are_many, await_updates, missing, newest, retry, script, watch};
use gapscope_model::LossKind;
use gapscope_stacks::{Options, Stacks, Update};
use std::os::unix::process::CommandExt;
use std::process::Command;
use std::time::Duration;

const NOBODY: u32 = 65534;
/// Tells the test below that it runs as the other user.
const PART: &str = "GAPSCOPE_STACKS_TEST_PART";

const NOT_DUMPABLE: &str = r#"
import ctypes, time
ctypes.CDLL(None).prctl(4, 0)
print()
time.sleep(0.7)
"#;

/// Root may read every process, so the test runs itself again as another user where root runs it.
#[test]
fn what_may_not_be_looked_into_is_said_once() {
    let Some(python) = newest() else { return };
    if std::env::var_os(PART).is_none() && rustix::process::getuid().is_root() {
        let program = std::env::current_exe().unwrap();
        let folder = tempfile::tempdir().unwrap();
        let mut permissions = std::fs::metadata(folder.path()).unwrap().permissions();
        std::os::unix::fs::PermissionsExt::set_mode(&mut permissions, 0o777);
        std::fs::set_permissions(folder.path(), permissions).unwrap();
        let copy = folder.path().join("test");
        std::fs::copy(program, &copy).unwrap();
        let mut command = Command::new(copy);
        let output = command
            .args(["--exact", "--nocapture"])
            .arg("stacks_of_others::what_may_not_be_looked_into_is_said_once")
            .env(PART, "1")
            .env("TMPDIR", folder.path())
            .uid(NOBODY)
            .output()
            .unwrap();
        let said = String::from_utf8_lossy(&output.stdout);
        let error = String::from_utf8_lossy(&output.stderr);
        assert!(
            output.status.success() && said.contains("1 passed"),
            "{said}\n{error}"
        );
        return;
    }
    // An interpreter in a folder that only root may read is replaced by the system's.
    let python = match Command::new(&python).arg("-V").output() {
        Ok(_) => python,
        Err(_) => "/usr/bin/python3".into(),
    };
    let (_folder, mut command) = script(&python, NOT_DUMPABLE);
    let watched = watch(&mut command);
    let losses = watched.losses(&LossKind::Stacks);
    assert_eq!(losses.len(), 1, "{losses:?}");
    assert!(losses[0].1.contains("EPERM"), "{losses:?}");
    assert!(losses[0].1.contains("dumpable"), "{losses:?}");
    assert_eq!(watched.samples().count(), 0);
}

/// To the sampler a program with this function is an interpreter, and without `Py_Version` one before 3.11.
const OLD_PYTHON: &str = r#"
#include <stdio.h>
#include <time.h>
const char *Py_GetVersion(void) { return "3.10"; }
int main(void) {
    struct timespec time = {0, 700000000};
    puts("");
    fflush(stdout);
    return nanosleep(&time, 0);
}
"#;

#[test]
fn an_old_python_is_said_and_its_native_stacks_are_read() {
    let folder = tempfile::tempdir().unwrap();
    let (source, program) = (folder.path().join("old.c"), folder.path().join("python"));
    std::fs::write(&source, OLD_PYTHON).unwrap();
    let mut compiler = Command::new("cc");
    match compiler.arg("-o").arg(&program).arg(&source).status() {
        Ok(status) => assert!(status.success()),
        Err(_) => return missing("C compiler (cc)"),
    }
    retry(|| {
        let watched = watch(&mut Command::new(&program));
        let losses = watched.losses(&LossKind::Stacks);
        assert_eq!(losses.len(), 1, "{losses:?}");
        assert!(losses[0].1.contains("before 3.11"), "{losses:?}");
        let native = watched
            .samples()
            .filter(|sample| !sample.native().is_empty());
        match native.count() {
            0..=20 => Err("too few native stacks".to_owned()),
            _ => Ok(()),
        }
    });
}

const SLEEPER: &str = "import time\ndef wait(): time.sleep(300)\nwait()\n";

/// Programs end at any moment: while they are searched, read and unwound.
#[test]
fn killed_programs_are_no_trouble() {
    let Some(python) = newest() else { return };
    let (_folder, mut command) = script(&python, SLEEPER);
    let mut stacks = Stacks::start(Options::default());
    let mut run = |stacks: &mut Stacks, wait: &mut dyn FnMut(&Stacks, u32)| {
        let mut child = command.spawn().unwrap();
        stacks.follow(child.id(), child.id());
        wait(stacks, child.id());
        child.kill().unwrap();
        child.wait().unwrap();
    };
    for k in 0..12 {
        run(&mut stacks, &mut |_, _| {
            std::thread::sleep(Duration::from_millis(15 * k))
        });
    }
    let mut heard = Vec::new();
    run(&mut stacks, &mut |stacks, pid| {
        heard = await_updates(stacks, |updates| are_many(updates, pid));
    });
    heard.append(&mut stacks.finish());
    let is_loss = |heard: &Update| {
        matches!(
            heard,
            Update::Loss {
                kind: LossKind::Stacks,
                ..
            }
        )
    };
    assert!(
        !heard.iter().any(is_loss),
        "{:?}",
        heard.iter().find(|h| is_loss(h))
    );
}

/// The main thread has number 1 there.
#[test]
fn a_process_in_a_pid_namespace_is_read() {
    let Some(python) = newest() else { return };
    let (_folder, inner) = script(&python, SLEEPER);
    let mut outer = Command::new("unshare");
    outer.args(["--pid", "--fork", "--kill-child"]);
    let spawned = outer
        .arg(inner.get_program())
        .args(inner.get_args())
        .spawn();
    let Ok(mut outer) = spawned else {
        return missing("unshare");
    };
    let children = format!("/proc/{0}/task/{0}/children", outer.id());
    let pid = loop {
        let children = std::fs::read_to_string(&children).unwrap_or_default();
        let pid = children.split_whitespace().next();
        let pid = pid.and_then(|pid| pid.parse::<u32>().ok());
        if pid.is_some() || outer.try_wait().unwrap().is_some() {
            break pid;
        }
        std::thread::sleep(Duration::from_millis(10));
    };
    let Some(pid) = pid else {
        outer.kill().unwrap();
        outer.wait().unwrap();
        return eprintln!("not tested: namespaces are not allowed");
    };
    let mut stacks = Stacks::start(Options::default());
    stacks.follow(pid, 1);
    let is_waiting = |update: &Update| match update {
        Update::Stack { frames, .. } => frames
            .iter()
            .any(|frame| frame.function.as_deref() == Some("wait")),
        _ => false,
    };
    await_updates(&stacks, |updates| {
        are_many(updates, pid) && updates.iter().any(is_waiting)
    });
    let rest = stacks.finish();
    outer.kill().unwrap();
    outer.wait().unwrap();
    let is_other =
        |update: &Update| matches!(update, Update::Sample { thread, .. } if *thread != 1);
    assert!(!rest.iter().any(is_other), "{rest:?}");
}

#[test]
fn a_pause_has_no_samples() {
    let Some(python) = newest() else { return };
    let (_folder, mut command) = script(&python, SLEEPER);
    let mut child = command.spawn().unwrap();
    let mut stacks = Stacks::start(Options::default());
    stacks.pause(true);
    stacks.follow(child.id(), child.id());
    std::thread::sleep(Duration::from_millis(500));
    let in_pause = stacks.take();
    stacks.pause(false);
    await_updates(&stacks, |updates| are_many(updates, child.id()));
    child.kill().unwrap();
    child.wait().unwrap();
    assert_eq!(in_pause, []);
}

#[test]
fn what_does_not_exist_is_no_error() {
    let mut stacks = Stacks::start(Options::default());
    stacks.follow(u32::MAX, 1);
    stacks.follow(0, 0);
    std::thread::sleep(Duration::from_millis(50));
    assert_eq!(stacks.finish(), []);
}
