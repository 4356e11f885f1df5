//! Tests the rules of captures with a fake backend.

use super::environment::Units;
use super::once::Once;
use super::{Backend, Capture, Captured, Destination, NotCaptured, Running, Trigger, WaitError};
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicBool, Ordering::Relaxed};
use std::sync::{Arc, Mutex};

macro_rules! assert_refused {
    ($result:expr, $kind:ident) => {
        let result = $result;
        assert!(
            matches!(result, Err(NotCaptured::$kind { .. })),
            "{result:?}"
        );
    };
}
pub(super) use assert_refused;

/// A fake backend that captures nothing, notes its calls, and writes a file at the stop.
#[derive(Default)]
struct FakeBackend {
    log: Arc<Mutex<Vec<&'static str>>>,
    refuses_start: AtomicBool,
    refuses_wait: AtomicBool,
    refuses_stop: AtomicBool,
    panics_at_wait: AtomicBool,
    writes_nothing: AtomicBool,
    wants_bytes: Option<u64>,
}

impl FakeBackend {
    fn note(&self, what: &'static str) {
        self.log.lock().unwrap().push(what);
    }

    fn take_log(&self) -> Vec<&'static str> {
        std::mem::take(&mut *self.log.lock().unwrap())
    }
}

struct FakeRunning {
    log: Arc<Mutex<Vec<&'static str>>>,
    path: Option<PathBuf>,
    refuses: bool,
    stopped: bool,
}

impl Backend for FakeBackend {
    fn name(&self) -> &'static str {
        "fake"
    }

    fn extension(&self) -> &'static str {
        "fake"
    }

    fn least_free_bytes(&self) -> u64 {
        self.wants_bytes.unwrap_or(1)
    }

    fn ready(&self, _: &Destination) -> Result<(), NotCaptured> {
        Ok(())
    }

    fn synchronise(&self) -> Result<(), NotCaptured> {
        self.note("wait");
        assert!(!self.panics_at_wait.load(Relaxed), "the planted panic");
        if self.refuses_wait.load(Relaxed) {
            return Err(WaitError::device("lost").into());
        }
        Ok(())
    }

    fn start(&self, destination: &Destination) -> Result<Box<dyn Running>, NotCaptured> {
        self.note("start");
        if self.refuses_start.load(Relaxed) {
            return Err(NotCaptured::Start {
                backend: "fake",
                reason: "busy".to_owned(),
            });
        }
        let path = destination.path().map(Path::to_owned);
        Ok(Box::new(FakeRunning {
            log: Arc::clone(&self.log),
            path: path.filter(|_| !self.writes_nothing.load(Relaxed)),
            refuses: self.refuses_stop.load(Relaxed),
            stopped: false,
        }))
    }
}

impl FakeRunning {
    fn halt(&mut self) {
        if !std::mem::replace(&mut self.stopped, true) {
            self.log.lock().unwrap().push("stop");
            if let Some(path) = &self.path {
                std::fs::write(path, "captured").unwrap();
            }
        }
    }
}

impl Running for FakeRunning {
    fn stop(&mut self) -> Result<(), NotCaptured> {
        self.halt();
        if self.refuses {
            return Err(NotCaptured::Stop {
                backend: "fake",
                reason: "torn".to_owned(),
            });
        }
        Ok(())
    }
}

impl Drop for FakeRunning {
    fn drop(&mut self) {
        self.halt();
    }
}

/// Returns the guard of a separate process.
fn process() -> &'static Once {
    Box::leak(Box::new(Once::new()))
}

struct Fixture {
    folder: tempfile::TempDir,
    fake: Arc<FakeBackend>,
    once: &'static Once,
}

impl Fixture {
    fn new() -> Fixture {
        Fixture {
            folder: tempfile::tempdir().unwrap(),
            fake: Arc::new(FakeBackend::default()),
            once: process(),
        }
    }

    fn path(&self, name: &str) -> PathBuf {
        self.folder.path().join(name)
    }

    fn capture(&self, name: &str) -> Result<Capture, NotCaptured> {
        self.capture_as(name, true)
    }

    fn capture_as(&self, name: &str, one_shot: bool) -> Result<Capture, NotCaptured> {
        let to = Destination::from_path(self.path(name));
        Capture::prepare(self.device(), to, one_shot, self.once)
    }

    fn device(&self) -> Arc<dyn Backend> {
        self.fake.clone()
    }
}

#[test]
fn a_window_is_waited_for_before_and_after() {
    let f = Fixture::new();
    let mut capture = f.capture("a b%20#.fake").unwrap();
    assert_eq!(f.fake.take_log(), [""; 0], "nothing starts before begin");
    capture.begin().unwrap();
    capture.begin().unwrap();
    assert_eq!(f.fake.take_log(), ["wait", "start"], "begin is idempotent");
    let captured = capture.end().unwrap();
    assert_eq!(f.fake.take_log(), ["wait", "stop"]);
    assert_eq!(captured.path(), Some(f.path("a b%20#.fake").as_path()));
    assert_eq!(captured.bytes, Some(8));
    assert_eq!(capture.end(), Ok(captured), "end is idempotent");
    assert_eq!(f.fake.take_log(), [""; 0]);
    assert_eq!(capture.begin(), Err(NotCaptured::Ended));
}

#[test]
fn one_capture_is_made_and_only_a_success_counts() {
    let f = Fixture::new();
    f.fake.refuses_start.store(true, Relaxed);
    let mut capture = f.capture("a.fake").unwrap();
    assert_refused!(capture.begin(), Start);
    f.fake.refuses_start.store(false, Relaxed);
    f.fake.writes_nothing.store(true, Relaxed);
    let mut capture = f.capture("a.fake").unwrap();
    capture.begin().unwrap();
    assert_refused!(capture.end(), NotWritten);
    f.fake.writes_nothing.store(false, Relaxed);
    let mut capture = f.capture("a.fake").expect("failures have spent nothing");
    capture.begin().unwrap();
    capture.end().unwrap();
    assert_eq!(f.capture("b.fake").unwrap_err(), NotCaptured::Spent);
    f.capture_as("b.fake", false)
        .expect("a capture by code is not a one-shot");
}

#[test]
fn a_capture_that_never_began_leaves_nothing_running() {
    let f = Fixture::new();
    drop(f.capture("a.fake").unwrap());
    assert_eq!(f.fake.take_log(), [""; 0]);
    assert_eq!(
        f.capture("a.fake").unwrap().end(),
        Err(NotCaptured::NotBegun)
    );
}

#[test]
fn one_capture_runs_at_a_time() {
    let f = Fixture::new();
    let mut first = f.capture("a.fake").unwrap();
    let mut second = f.capture("b.fake").unwrap();
    first.begin().unwrap();
    assert_eq!(second.begin(), Err(NotCaptured::AlreadyCapturing));
    assert_eq!(
        f.capture("c.fake").unwrap_err(),
        NotCaptured::AlreadyCapturing
    );
    first.end().unwrap();
    assert_eq!(second.begin(), Err(NotCaptured::Spent));
}

#[test]
fn a_panic_in_the_window_still_stops_the_capture() {
    let f = Fixture::new();
    let mut capture = f.capture("a.fake").unwrap();
    capture.begin().unwrap();
    let panicked = std::panic::catch_unwind(std::panic::AssertUnwindSafe(move || {
        let _capture = capture;
        panic!("planted");
    }));
    assert!(panicked.is_err());
    assert_eq!(f.fake.take_log(), ["wait", "start", "wait", "stop"]);
    assert!(f.path("a.fake").exists());
}

#[test]
fn a_panic_of_the_backend_during_a_panic_ends_nothing_but_the_capture() {
    let f = Fixture::new();
    let mut capture = f.capture("a.fake").unwrap();
    capture.begin().unwrap();
    f.fake.panics_at_wait.store(true, Relaxed);
    // If the second panic were not caught, the process would abort here.
    let panicked = std::panic::catch_unwind(std::panic::AssertUnwindSafe(move || {
        let _capture = capture;
        panic!("planted");
    }));
    assert!(panicked.is_err());
    assert_eq!(f.fake.take_log().last(), Some(&"stop"));
    f.fake.panics_at_wait.store(false, Relaxed);
    f.capture_as("b.fake", true)
        .expect("the turn has been given back");
}

#[test]
fn what_goes_wrong_at_the_end_is_said_and_the_capture_is_stopped() {
    let f = Fixture::new();
    let mut capture = f.capture("a.fake").unwrap();
    capture.begin().unwrap();
    f.fake.refuses_wait.store(true, Relaxed);
    assert_refused!(capture.end(), Synchronise);
    assert_eq!(f.fake.take_log().last(), Some(&"stop"));
    let f = Fixture::new();
    f.fake.refuses_stop.store(true, Relaxed);
    let mut capture = f.capture("a.fake").unwrap();
    capture.begin().unwrap();
    assert_refused!(capture.end(), Stop);
}

#[test]
fn paths_are_checked_before_anything_starts() {
    let f = Fixture::new();
    std::fs::write(f.path("taken.fake"), "precious").unwrap();
    assert_refused!(f.capture("taken.fake"), Exists);
    std::os::unix::fs::symlink("nowhere", f.path("link.fake")).unwrap();
    assert_refused!(f.capture("link.fake"), Exists);
    assert_refused!(f.capture("no/folder.fake"), NoParent);
    assert_refused!(f.capture("taken.fake/x.fake"), NoParent);
    for wrong in ["a", "a.gputrace", ".fake"] {
        assert_refused!(f.capture(wrong), Extension);
    }
    f.capture("A.FAKE").expect("case does not matter");
    let longest = "x".repeat(255 - ".fake".len());
    for long in [format!("{longest}.fake"), format!("{longest}xxxxx.fake")] {
        let why = f.capture(&long).unwrap_err();
        assert!(matches!(why, NotCaptured::BadPath { .. }), "{why}");
        assert!(why.to_string().contains("longer than") || why.to_string().contains("bytes"));
    }
    let nul = f.capture("a\0b.fake").unwrap_err().to_string();
    assert!(nul.contains("a·b.fake") && nul.contains("NUL"), "{nul}");
    assert_eq!(
        std::fs::read_to_string(f.path("taken.fake")).unwrap(),
        "precious"
    );
    let greedy = FakeBackend {
        wants_bytes: Some(u64::MAX),
        ..FakeBackend::default()
    };
    let to = Destination::from_path(f.path("big.fake"));
    let refused = Capture::prepare(Arc::new(greedy), to, true, f.once);
    assert_refused!(refused, NoSpace);
    assert_eq!(f.fake.take_log(), [""; 0]);
}

#[test]
fn units_are_skipped_and_taken_also_without_a_trigger() {
    let f = Fixture::new();
    let units = Units { skip: 2, take: 3 };
    let unit = || {
        let to = Destination::from_path(f.path("a.fake"));
        let mut capture = Capture::for_unit(f.device(), to, &units, f.once)?;
        capture.begin()?;
        // A unit inside of this one does not count.
        let to = Destination::from_path(f.path("inner.fake"));
        assert_refused!(
            Capture::for_unit(f.device(), to, &units, f.once),
            AlreadyCapturing
        );
        capture.end()
    };
    assert_refused!(unit(), NotThisUnit);
    assert_refused!(unit(), NotThisUnit);
    assert_eq!(f.fake.take_log(), [""; 0]);
    assert_eq!(unit(), Err(NotCaptured::Continues { units_left: 2 }));
    assert_refused!(f.capture_as("b.fake", false), AlreadyCapturing);
    assert_eq!(unit(), Err(NotCaptured::Continues { units_left: 1 }));
    assert_eq!(f.fake.take_log(), ["wait", "start"]);
    assert_eq!(unit().unwrap().path(), Some(&*f.path("a.fake")));
    assert_eq!(f.fake.take_log(), ["wait", "stop"]);
    assert_refused!(unit(), Spent);
}

#[test]
fn a_path_that_is_taken_later_is_not_overwritten() {
    let f = Fixture::new();
    let mut capture = f.capture("a.fake").unwrap();
    std::fs::write(f.path("a.fake"), "precious").unwrap();
    assert_refused!(capture.begin(), Exists);
    assert_eq!(
        std::fs::read_to_string(f.path("a.fake")).unwrap(),
        "precious"
    );
}

#[test]
fn relative_paths_are_those_of_the_moment_of_begin() {
    let f = Fixture::new();
    let name = format!("relative-{}.fake", std::process::id());
    let to = Destination::from_path(&name);
    let mut capture = Capture::prepare(f.device(), to, true, f.once).unwrap();
    capture.begin().unwrap();
    let captured = capture.end().unwrap();
    let path = captured.path().unwrap();
    assert!(path.is_absolute(), "{path:?}");
    std::fs::remove_file(path).unwrap();
}

/// Runs `units` units, and returns the outcome of each unit that ended a capture.
fn run(trigger: &Trigger, f: &Fixture, units: u64) -> Vec<(u64, Captured)> {
    let mut made = Vec::new();
    for unit in 1..=units {
        let _ = trigger.begin_unit(&f.device());
        if let Some(outcome) = trigger.end_unit() {
            made.push((unit, outcome.unwrap()));
        }
    }
    made
}

fn trigger(f: &Fixture) -> Trigger {
    Trigger::to(f.path("t.fake")).once_per_process(f.once)
}

#[test]
fn a_trigger_skips_and_takes() {
    let f = Fixture::new();
    let trigger = trigger(&f).skip(3).take(2);
    let made = run(&trigger, &f, 10);
    let [(last, captured)] = made.as_slice() else {
        panic!("{made:?}")
    };
    assert_eq!(*last, 5, "units 4 and 5 are one capture");
    assert_eq!(captured.path(), Some(f.path("t.fake").as_path()));
    assert_eq!(f.fake.take_log(), ["wait", "start", "wait", "stop"]);
    assert_eq!(trigger.begin_unit(&f.device()), Err(NotCaptured::Spent));
}

#[test]
fn a_trigger_that_is_armed_again_captures_to_the_next_name() {
    let f = Fixture::new();
    let trigger = trigger(&f).nth(2);
    assert_eq!(run(&trigger, &f, 5)[0].0, 2);
    let arm = trigger.arm();
    std::thread::spawn(move || arm.nth(3)).join().unwrap();
    let made = run(&trigger, &f, 5);
    assert_eq!(made[0].0, 3);
    assert_eq!(made[0].1.path(), Some(f.path("t-2.fake").as_path()));
}

#[test]
fn a_failed_unit_does_not_use_the_trigger_up() {
    let f = Fixture::new();
    f.fake.refuses_start.store(true, Relaxed);
    let trigger = trigger(&f).nth(1);
    assert_refused!(trigger.begin_unit(&f.device()), Start);
    assert_eq!(trigger.end_unit(), None);
    assert!(trigger.last_outcome().unwrap().is_err());
    f.fake.refuses_start.store(false, Relaxed);
    assert_eq!(run(&trigger, &f, 3)[0].0, 1);
}

#[test]
fn units_inside_units_are_one() {
    let f = Fixture::new();
    let trigger = trigger(&f).nth(1);
    trigger.begin_unit(&f.device()).unwrap();
    trigger.begin_unit(&f.device()).unwrap();
    assert_eq!(trigger.end_unit(), None);
    assert!(trigger.end_unit().unwrap().is_ok());
    assert_eq!(trigger.end_unit(), None, "more ends than begins do nothing");
}

#[test]
fn a_signal_arms_a_trigger() {
    let f = Fixture::new();
    let trigger = trigger(&f).disarmed();
    let usr2 = 12;
    trigger.arm_on_signal(usr2).unwrap();
    assert!(run(&trigger, &f, 3).is_empty());
    signal_hook::low_level::raise(usr2).unwrap();
    assert_eq!(run(&trigger, &f, 3)[0].0, 1);
}

#[test]
fn a_unit_that_is_dropped_has_ended() {
    let f = Fixture::new();
    let trigger = trigger(&f);
    {
        let unit = trigger.unit(&f.device());
        assert_eq!(unit.captured(), Ok(()));
    }
    assert_eq!(f.fake.take_log(), ["wait", "start", "wait", "stop"]);
    let unit = trigger.unit(&f.device());
    assert_eq!(unit.captured(), Err(&NotCaptured::Spent));
    assert!(unit.captured().unwrap_err().is_expected());
}

#[cfg(target_os = "linux")]
#[test]
fn without_a_hook_the_reason_names_the_command() {
    use super::CaptureDevice;
    let hooked = super::Hooked::any();
    let refused = hooked.backend().ready(&Destination::Live).unwrap_err();
    assert!(refused.to_string().contains("gapscope record"), "{refused}");
}
