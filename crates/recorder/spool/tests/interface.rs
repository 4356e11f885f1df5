//! Calls the in-process interface like a program, with a fake hook that only has a spool.

use gapscope_spool::event::{CommonEvent, Event, LabelEdge, LabelScope, Layer};
use gapscope_spool::interface::{Hooks, Provider, Status, Table, VERSION};
use gapscope_spool::reader::DrainUntil;
use gapscope_spool::{Spool, SpoolReader, ids};
use std::borrow::Cow;
use std::ffi::CStr;
use std::path::PathBuf;
use std::sync::OnceLock;
use std::sync::atomic::Ordering::Relaxed;

/// A fake hook without a GPU.
struct FakeHook(Spool);

static HOOK: OnceLock<FakeHook> = OnceLock::new();

impl Provider for FakeHook {
    const NAME: &'static CStr = c"fake";

    fn get() -> Option<&'static FakeHook> {
        HOOK.get()
    }

    fn spool(&self) -> &Spool {
        &self.0
    }

    fn text(&self, text: &str) -> ids::Text {
        assert_ne!(text, "panic", "the planted panic");
        ids::Text(text.len() as u32)
    }

    fn flush(&self) -> bool {
        false
    }
}

static TABLE: Table = Table::new::<FakeHook>();

fn hello() -> CommonEvent<'static> {
    CommonEvent::ProcessEnd { at_ns: 0 }
}

fn push(text: &str) -> Status {
    // SAFETY: the text lives through the call.
    Status::from_code(unsafe { (TABLE.push_label)(text.as_ptr().cast(), text.len()) })
}

fn state() -> Status {
    Status::from_code((TABLE.state)())
}

fn pop_label() -> Status {
    Status::from_code((TABLE.pop_label)())
}

fn pop_label_at(end_ns: i64) -> Status {
    Status::from_code((TABLE.pop_label_at)(end_ns))
}

fn stop_capture(capture: u32) -> Status {
    Status::from_code((TABLE.stop_capture)(capture))
}

fn capture_state(capture: u32) -> Status {
    Status::from_code((TABLE.capture_state)(capture))
}

fn pop_layer(layer: u32) -> Status {
    Status::from_code((TABLE.pop_layer)(layer))
}

fn flush(timeout_ns: u64) -> Status {
    Status::from_code((TABLE.flush)(timeout_ns))
}

fn start(path: &str) -> Result<u32, Status> {
    let mut capture = 0;
    // SAFETY: text and variable live through the call.
    let status = unsafe { (TABLE.start_capture)(path.as_ptr().cast(), path.len(), &mut capture) };
    match Status::from_code(status) {
        Status::Done => Ok(capture),
        other => Err(other),
    }
}

#[derive(Debug, PartialEq)]
enum ProgramEvent {
    Label(LabelEdge, u32),
    Domain(String),
    Layer(Layer, LabelEdge, u32),
    Capture(u32, LabelEdge, PathBuf),
}

/// This is one test, because a process has one hook of a kind and one capture at a time.
#[test]
fn a_program_captures_and_labels() {
    // A panic of a hook must not print.
    std::panic::set_hook(Box::new(|_| {}));
    assert!(
        Hooks::loaded().is_empty(),
        "no library of a hook is in this process"
    );
    assert_eq!(state(), Status::NotRecorded);
    assert_eq!(push("x"), Status::NotRecorded);
    assert_eq!(start("x"), Err(Status::NotRecorded));

    let folder = tempfile::tempdir().expect("a folder");
    let spool = Spool::create(folder.path().to_owned(), u64::MAX, false, hello);
    assert!(HOOK.set(FakeHook(spool.expect("a spool"))).is_ok());
    let page = HOOK
        .get()
        .and_then(|hook| hook.0.control())
        .expect("a page")
        .page();

    assert!(!TABLE.answer(VERSION).is_null());
    assert!(TABLE.answer(VERSION + 1).is_null() && TABLE.answer(0).is_null());
    assert_eq!(TABLE.bytes as usize, size_of::<Table>());
    assert_eq!(state(), Status::Off);

    assert_eq!(push("one"), Status::Done);
    assert_eq!(pop_label(), Status::Done);
    assert_eq!(pop_label(), Status::NoLabel, "each end has its start");
    assert_eq!(push("another"), Status::Done);
    assert_eq!(pop_label_at(5), Status::Done);
    assert_eq!(pop_label_at(5), Status::NoLabel);
    assert_eq!(
        push("panic"),
        Status::Internal,
        "no panic reaches the program"
    );
    assert_eq!(push(&"x".repeat(1 << 20)), Status::BadText);
    // SAFETY: null is a valid argument that is refused.
    let null = unsafe { (TABLE.push_label)(std::ptr::null(), 5) };
    assert_eq!(Status::from_code(null), Status::BadText);

    // SAFETY: the text lives through the call.
    let push_layer = |layer: u32| unsafe { (TABLE.push_layer)(layer, "m".as_ptr().cast(), 1) };
    assert_eq!(
        Status::from_code(push_layer(2)),
        Status::BadText,
        "no such layer"
    );
    assert_eq!(pop_layer(0), Status::NoLabel);
    assert_eq!(Status::from_code(push_layer(0)), Status::Done);
    assert_eq!(pop_layer(1), Status::NoLabel);
    assert_eq!(pop_label(), Status::NoLabel);
    assert_eq!(pop_layer(0), Status::Done);
    assert_eq!(pop_layer(0), Status::NoLabel);

    let first = start("relative.gapscope").expect("it starts");
    assert_eq!(state(), Status::Done, "recording is on");
    assert_eq!(start("other"), Err(Status::AlreadyCapturing));
    assert_eq!(stop_capture(first + 7), Status::NotCapturing);
    assert_eq!(capture_state(first), Status::Pending);
    assert_eq!(stop_capture(first), Status::Done);
    assert_eq!(stop_capture(first), Status::NotCapturing);
    assert_eq!(state(), Status::Off, "as before the capture");
    page.captures_finished.store(first, Relaxed);
    assert_eq!(capture_state(first), Status::Done);

    page.recording.store(1, Relaxed);
    let second = start("").expect("it starts");
    assert_eq!(stop_capture(second), Status::Done);
    assert_eq!(state(), Status::Done, "it was on before");
    page.captures_failed.store(1 << second, Relaxed);
    page.captures_finished.store(second, Relaxed);
    assert_eq!(capture_state(second), Status::NotWritten);
    assert_eq!(capture_state(second + 1), Status::NotCapturing);
    assert_eq!(flush(1), Status::TimedOut, "the fake never finishes");

    let mut said = Vec::new();
    let mut ends = Vec::new();
    let mut process = SpoolReader::open(folder.path())
        .new_processes()
        .expect("readable")
        .remove(0);
    let note = |_, event: Event<'_>| match event {
        Event::Common(CommonEvent::Label {
            scope: LabelScope::Thread,
            edge,
            text,
            at_ns,
        }) => {
            said.push(ProgramEvent::Label(edge, text.0));
            ends.extend((edge == LabelEdge::End).then_some(at_ns));
        }
        Event::Common(CommonEvent::Label {
            scope: LabelScope::Domain(domain),
            edge,
            text,
            ..
        }) => said.extend(
            Layer::with_domain(domain).map(|layer| ProgramEvent::Layer(layer, edge, text.0)),
        ),
        Event::Common(CommonEvent::Name { name, .. }) => {
            said.push(ProgramEvent::Domain(name.to_owned()))
        }
        Event::Common(CommonEvent::Capture {
            capture,
            edge,
            path,
            ..
        }) => {
            let path = String::from_utf8(Cow::into_owned(path)).expect("UTF-8");
            said.push(ProgramEvent::Capture(capture.0, edge, PathBuf::from(path)));
        }
        _ => {}
    };
    process
        .drain(DrainUntil::Committed, note)
        .expect("readable");
    let here = std::env::current_dir().expect("a folder");
    assert_eq!(
        said,
        [
            ProgramEvent::Label(LabelEdge::Begin, 3),
            ProgramEvent::Label(LabelEdge::End, 0),
            ProgramEvent::Label(LabelEdge::Begin, 7),
            ProgramEvent::Label(LabelEdge::End, 0),
            ProgramEvent::Domain("torch.module".to_owned()),
            ProgramEvent::Layer(Layer::Module, LabelEdge::Begin, 1),
            ProgramEvent::Layer(Layer::Module, LabelEdge::End, 0),
            ProgramEvent::Capture(1, LabelEdge::Begin, here.join("relative.gapscope")),
            ProgramEvent::Capture(1, LabelEdge::End, PathBuf::new()),
            ProgramEvent::Capture(2, LabelEdge::Begin, PathBuf::new()),
            ProgramEvent::Capture(2, LabelEdge::End, PathBuf::new()),
        ]
    );
    assert_eq!(ends[1], 5, "the end that another thread noticed");
}
