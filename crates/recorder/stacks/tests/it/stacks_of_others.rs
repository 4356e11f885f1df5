//! Programs that may not be looked into, or cannot be read.

use crate::watched::{newest, python, script, watch};
use gapscope_model::LossKind;
use std::os::unix::process::CommandExt;
use std::process::Command;

const NOBODY: u32 = 65534;
/// Names the part of [`refusals_have_one_reason`] that another user runs.
const PART: &str = "GAPSCOPE_STACKS_TEST_PART";

const NOT_DUMPABLE: &str = r#"
import ctypes, time
ctypes.CDLL(None).prctl(4, 0)
print()
time.sleep(0.7)
"#;

/// Root may look into everything, so that another user does this where root runs the tests.
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
    // Where the interpreter is in a folder of root's alone, another one does.
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

#[test]
fn an_old_python_is_said_and_its_native_stacks_are_read() {
    let Some(python) = python(10) else {
        eprintln!("not tested: there is no Python 3.10");
        return;
    };
    let (_folder, mut command) = script(&python, "import time\nprint()\ntime.sleep(0.7)\n");
    let watched = watch(&mut command);
    let losses = watched.losses(&LossKind::Stacks);
    assert_eq!(losses.len(), 1, "{losses:?}");
    assert!(losses[0].1.contains("before 3.11"), "{losses:?}");
    let native = watched
        .samples()
        .filter(|sample| !sample.native().is_empty());
    assert!(native.count() > 20);
}

#[test]
fn what_does_not_exist_is_no_error() {
    let mut stacks = gapscope_stacks::Stacks::start(gapscope_stacks::Options::default());
    stacks.follow(u32::MAX, 1);
    stacks.follow(0, 0);
    std::thread::sleep(std::time::Duration::from_millis(50));
    assert_eq!(stacks.finish(), []);
}
