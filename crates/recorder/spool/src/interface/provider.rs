//! The hook's side of the interface between a recorded program and the hooks (gapscope's libraries inside it):
//! answers the calls by which a program starts and stops windows (captures: parts of its run that are recorded), and
//! sets labels. A hook implements [`Provider`]; [`Table::new`] makes its table of C functions from that.

use super::{Status, Table, VERSION};
use crate::event::{CommonEvent, LabelEdge, LabelScope, Layer, Object, Span};
use crate::hook::guard;
use crate::{Control, Spool, ids, monotonic_ns, to_session_ns};
use std::borrow::Cow;
use std::cell::Cell;
use std::ffi::{CStr, OsStr, c_char};
use std::os::unix::ffi::{OsStrExt, OsStringExt};
use std::path::{Path, PathBuf};
use std::sync::atomic::AtomicU32;
use std::sync::atomic::Ordering::{Acquire, Relaxed};
use std::sync::{Mutex, PoisonError};
use std::time::{Duration, Instant};

/// The most bytes of a text; longer ones are refused.
const MAX_TEXT_BYTES: usize = 64 * 1024;

/// The hook behind a table that [`Table::new`] makes.
pub trait Provider: Sync + 'static {
    /// The hook's name.
    const NAME: &'static CStr;

    /// Returns the hook's state, when this process is recorded.
    fn get() -> Option<&'static Self>;

    /// Returns the hook's spool.
    fn spool(&self) -> &Spool;

    /// Returns the id of a text, which is written to the spool once.
    fn text(&self, text: &str) -> ids::Text;

    /// Called before recording starts or stops.
    fn recording_changes(&self) {}

    /// Switches recording on or off.
    fn record(&self, on: bool) {
        self.spool().record(on);
    }

    /// Writes the results of finished work to the spool. Returns true when no work is pending any more.
    fn flush(&self) -> bool;
}

/// The open window of a process, and whether the process was recorded before it.
struct OpenCapture {
    /// The process, as [`crate::writer::generation`] numbers it: a forked child has no open window.
    generation: u32,
    capture: u32,
    was_recording: bool,
}

/// The open window, if there is one.
static OPEN: Mutex<Option<OpenCapture>> = Mutex::new(None);

thread_local! {
    /// The number of labels that the thread has begun with `push_label` and not ended.
    static DEPTH: Cell<u32> = const { Cell::new(0) };
    /// The number of open labels for each kind of injected labels ([`Layer`]).
    static LAYER_DEPTHS: Cell<[u32; Layer::ALL.len()]> = const { Cell::new([0; Layer::ALL.len()]) };
}

impl Table {
    /// Creates the table of a hook.
    pub const fn new<H: Provider>() -> Table {
        Table {
            version: VERSION,
            bytes: size_of::<Table>() as u32,
            hook: H::NAME.as_ptr(),
            state: state::<H>,
            start_capture: start_capture::<H>,
            stop_capture: stop_capture::<H>,
            capture_state: capture_state::<H>,
            push_label: push_label::<H>,
            pop_label: pop_label::<H>,
            instant_label: instant_label::<H>,
            flush: flush::<H>,
            push_layer: push_layer::<H>,
            pop_layer: pop_layer::<H>,
            own_time: own_time::<H>,
            pop_label_at: pop_label_at::<H>,
        }
    }

    /// Returns the table, or null for a caller who needs a newer version. The exported function returns this.
    pub fn answer(&'static self, version: u32) -> *const Table {
        if (1..=VERSION).contains(&version) {
            self
        } else {
            std::ptr::null()
        }
    }
}

/// Runs a function of the interface with the hook, without letting a panic out, and returns its [`Status`] as a
/// number: that this process is not recorded when there is no hook.
fn guarded<H: Provider>(work: impl FnOnce(&'static H) -> Status) -> i32 {
    let status = guard(|| match H::get() {
        Some(hook) => work(hook),
        None => Status::NotRecorded,
    });
    status.unwrap_or(Status::Internal) as i32
}

/// Returns the bytes of a text that the program passes; `None` if it is null or too long.
///
/// # Safety
/// `text` is null or points to `bytes` bytes.
pub unsafe fn bytes_at<'a>(text: *const c_char, bytes: usize) -> Option<&'a [u8]> {
    if text.is_null() || bytes > MAX_TEXT_BYTES {
        return None;
    }
    // SAFETY: as the caller promises.
    Some(unsafe { std::slice::from_raw_parts(text.cast(), bytes) })
}

/// Returns the control page that the session shares; `None` when this process has no spool.
fn page<H: Provider>(hook: &H) -> Option<&'static crate::Page> {
    hook.spool().control().map(Control::page)
}

// From here on, the functions of the table, each of which does what [`Table`] says of its field.
extern "C" fn state<H: Provider>() -> i32 {
    guarded::<H>(|hook| {
        if hook.spool().recording() {
            Status::Done
        } else {
            Status::Off
        }
    })
}

/// Begins a window, writes its start to the spool, and switches recording on ([`Table::start_capture`]).
unsafe extern "C" fn start_capture<H: Provider>(
    path: *const c_char,
    path_bytes: usize,
    capture: *mut u32,
) -> i32 {
    guarded::<H>(|hook| {
        let path = if path.is_null() {
            &[]
        } else {
            // SAFETY: the caller's own text.
            match unsafe { bytes_at(path, path_bytes) } {
                Some(path) => path,
                None => return Status::BadText,
            }
        };
        if capture.is_null() || path.contains(&0) {
            return Status::BadText;
        }
        let Some(page) = page(hook) else {
            return Status::NotRecorded;
        };
        let generation = crate::writer::generation();
        let mut open = OPEN.lock().unwrap_or_else(PoisonError::into_inner);
        if open.as_ref().is_some_and(|o| o.generation == generation) {
            return Status::AlreadyCapturing;
        }
        let number = page.captures.fetch_add(1, Relaxed) + 1;
        let was_recording = hook.spool().recording();
        if !was_recording {
            hook.recording_changes();
        }
        // The event is written first: everything recorded because of the capture follows its start.
        hook.spool().write(&CommonEvent::Capture {
            capture: ids::Capture(number),
            edge: LabelEdge::Begin,
            path: absolute(path),
            at_ns: monotonic_ns(),
        });
        hook.record(true);
        *open = Some(OpenCapture {
            generation,
            capture: number,
            was_recording,
        });
        // SAFETY: checked for null above; the caller's own variable.
        unsafe { capture.write(number) };
        Status::Done
    })
}

/// Makes a path usable by the session, which may have another working directory.
fn absolute(path: &[u8]) -> Cow<'_, [u8]> {
    if path.is_empty() {
        return Cow::Borrowed(path);
    }
    match std::path::absolute(Path::new(OsStr::from_bytes(path))) {
        Ok(absolute) => Cow::Owned(PathBuf::into_os_string(absolute).into_vec()),
        Err(_) => Cow::Borrowed(path),
    }
}

/// Ends the window: writes out finished work, restores whether recording was on, and writes the end to the spool
/// ([`Table::stop_capture`]).
extern "C" fn stop_capture<H: Provider>(capture: u32) -> i32 {
    guarded::<H>(|hook| {
        let generation = crate::writer::generation();
        let mut open = OPEN.lock().unwrap_or_else(PoisonError::into_inner);
        let Some(ended) = open.take_if(|o| o.generation == generation && o.capture == capture)
        else {
            return Status::NotCapturing;
        };
        hook.flush();
        if !ended.was_recording {
            hook.recording_changes();
            hook.record(false);
        }
        hook.spool().write(&CommonEvent::Capture {
            capture: ids::Capture(capture),
            edge: LabelEdge::End,
            path: Cow::Borrowed(&[]),
            at_ns: monotonic_ns(),
        });
        Status::Done
    })
}

/// Answers from the numbers that the session keeps in the control page ([`Table::capture_state`]).
extern "C" fn capture_state<H: Provider>(capture: u32) -> i32 {
    guarded::<H>(|hook| {
        let Some(page) = page(hook) else {
            return Status::NotRecorded;
        };
        if capture == 0 || capture > page.captures.load(Relaxed) {
            return Status::NotCapturing;
        }
        // Captures are written in order, and a failure is stored before the count is raised.
        if page.captures_finished.load(Acquire) < capture {
            return Status::Pending;
        }
        // There is one bit for each of the last 64 captures.
        let failed = page.captures_failed.load(Relaxed) >> (capture % 64) & 1 == 1;
        if failed {
            Status::NotWritten
        } else {
            Status::Done
        }
    })
}

/// Writes one end of an injected label, after the name of its domain if that is the first one of the process.
pub fn write_layer(spool: &Spool, layer: Layer, edge: LabelEdge, text: ids::Text, at_ns: i64) {
    /// The generation of the process in whose spool the name is.
    static NAMED: [AtomicU32; Layer::ALL.len()] = [const { AtomicU32::new(0) }; Layer::ALL.len()];
    let generation = crate::writer::generation();
    if NAMED[layer.index()].swap(generation, Relaxed) != generation {
        spool.write(&CommonEvent::Name {
            object: Object::LabelDomain(layer.domain()),
            name: layer.name(),
        });
    }
    spool.write(&CommonEvent::Label {
        scope: LabelScope::Domain(layer.domain()),
        edge,
        text,
        at_ns,
    });
}

unsafe extern "C" fn push_layer<H: Provider>(layer: u32, text: *const c_char, bytes: usize) -> i32 {
    guarded::<H>(|hook| {
        let at_ns = monotonic_ns();
        // SAFETY: the caller's own text.
        let text = unsafe { bytes_at(text, bytes) };
        let (Some(layer), Some(text)) = (Layer::ALL.get(layer as usize), text) else {
            return Status::BadText;
        };
        let text = hook.text(&String::from_utf8_lossy(text));
        let mut open = LAYER_DEPTHS.get();
        open[layer.index()] = open[layer.index()].saturating_add(1);
        LAYER_DEPTHS.set(open);
        write_layer(hook.spool(), *layer, LabelEdge::Begin, text, at_ns);
        Status::Done
    })
}

extern "C" fn pop_layer<H: Provider>(layer: u32) -> i32 {
    guarded::<H>(|hook| {
        let Some(layer) = Layer::ALL.get(layer as usize) else {
            return Status::NoLabel;
        };
        let mut open = LAYER_DEPTHS.get();
        let Some(left) = open[layer.index()].checked_sub(1) else {
            return Status::NoLabel;
        };
        open[layer.index()] = left;
        LAYER_DEPTHS.set(open);
        write_layer(
            hook.spool(),
            *layer,
            LabelEdge::End,
            ids::Text::NONE,
            monotonic_ns(),
        );
        Status::Done
    })
}

/// Sets one end of a label of the calling thread, and returns the [`Status`] as a number.
///
/// # Safety
/// `text` is null or points to `bytes` bytes.
unsafe fn label<H: Provider>(text: *const c_char, bytes: usize, edge: LabelEdge) -> i32 {
    guarded::<H>(|hook| {
        // SAFETY: as the caller promises.
        let Some(text) = (unsafe { bytes_at(text, bytes) }) else {
            return Status::BadText;
        };
        // The text may start the recording.
        let text = hook.text(&String::from_utf8_lossy(text));
        if edge == LabelEdge::Begin {
            DEPTH.set(DEPTH.get().saturating_add(1));
        }
        // The label is written even while recording is off: a label that is open when recording starts applies from
        // then on.
        hook.spool().write(&CommonEvent::Label {
            scope: LabelScope::Thread,
            edge,
            text,
            at_ns: monotonic_ns(),
        });
        Status::Done
    })
}

unsafe extern "C" fn push_label<H: Provider>(text: *const c_char, bytes: usize) -> i32 {
    // SAFETY: the caller's own text.
    unsafe { label::<H>(text, bytes, LabelEdge::Begin) }
}

unsafe extern "C" fn instant_label<H: Provider>(text: *const c_char, bytes: usize) -> i32 {
    // SAFETY: the caller's own text.
    unsafe { label::<H>(text, bytes, LabelEdge::Instant) }
}

extern "C" fn pop_label<H: Provider>() -> i32 {
    guarded::<H>(|hook| end_label(hook, monotonic_ns()))
}

extern "C" fn pop_label_at<H: Provider>(end_ns: i64) -> i32 {
    guarded::<H>(|hook| {
        let now_ns = monotonic_ns();
        end_label(
            hook,
            match end_ns {
                // The caller has read its own clock.
                0.. => to_session_ns(end_ns).min(now_ns),
                _ => now_ns,
            },
        )
    })
}

/// Ends the innermost label of the calling thread.
fn end_label<H: Provider>(hook: &H, at_ns: i64) -> Status {
    let Some(left) = DEPTH.get().checked_sub(1) else {
        return Status::NoLabel;
    };
    DEPTH.set(left);
    hook.spool().write(&CommonEvent::Label {
        scope: LabelScope::Thread,
        edge: LabelEdge::End,
        text: ids::Text::NONE,
        at_ns,
    });
    Status::Done
}

/// Writes the time that the calling thread has spent for gapscope ([`Table::own_time`]).
extern "C" fn own_time<H: Provider>(start_ns: i64) -> i32 {
    guarded::<H>(|hook| {
        // The caller has read its own clock.
        let start_ns = match start_ns {
            0.. => to_session_ns(start_ns),
            unknown => unknown,
        };
        if !hook.spool().recording() {
            return Status::Off;
        }
        let duration_ns = monotonic_ns().saturating_sub(start_ns);
        if start_ns >= 0 && duration_ns > 0 {
            let span = Span {
                start_ns,
                duration_ns,
            };
            hook.spool().write(&CommonEvent::OwnTime { span });
        }
        Status::Done
    })
}

/// Asks the hook once a millisecond until no work is pending or the time is over ([`Table::flush`]).
extern "C" fn flush<H: Provider>(timeout_ns: u64) -> i32 {
    guarded::<H>(|hook| {
        let begun = Instant::now();
        let timeout = Duration::from_nanos(timeout_ns);
        loop {
            if hook.flush() {
                return Status::Done;
            }
            if begun.elapsed() >= timeout {
                return Status::TimedOut;
            }
            std::thread::sleep(Duration::from_millis(1).min(timeout));
        }
    })
}
