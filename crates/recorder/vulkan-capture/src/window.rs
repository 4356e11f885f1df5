//! When a window is open, and what it writes.

mod bound;
mod call;
mod disk;
mod intervals;
mod known;
mod labels;
mod memory;
mod objects;
mod open;
mod own;
mod repeat;
mod resolve;
mod signals;
mod split;
mod staging;

use std::path::PathBuf;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering::Relaxed};
use std::sync::{OnceLock, PoisonError, RwLock, RwLockWriteGuard};

use ash::vk::{self, Handle};
use gapscope_capture::model::EndReason;
use gapscope_capture::request::{Notice, Request, Window};
use gapscope_spool::hook;
use gapscope_vulkan_layer::handles::lock;

use crate::api::device::Device;
pub use call::{Batches, Call};
pub use labels::Labels;
use open::{Dispatches, Open};
use own::OwnCaptures;
use signals::Signals;

/// The capture that this process was asked for.
pub struct Capture {
    request: Request,
    /// A window may begin, or is open: submissions take a closer look.
    is_armed: AtomicBool,
    /// Submissions outside of a window share it; what begins, ends or fills a window has it alone.
    gate: RwLock<Gate>,
    submissions: AtomicU64,
    dispatches: AtomicU64,
    /// Labels that are open on queues and threads.
    pub labels: Labels,
    signals: Option<Signals>,
    process: u32,
    has_notified_end: AtomicBool,
    /// The program begins captures itself, and nothing else does.
    is_own: AtomicBool,
    /// Captures that the program begins itself.
    pub own: OwnCaptures,
}

/// The number of a submission, and of its dispatches.
struct Counted {
    submission: u64,
    first_dispatch: u64,
    dispatches: u64,
}

#[derive(Default)]
struct Gate {
    open: Option<Open>,
    /// How many windows have been begun.
    begun: u32,
}

/// The only window has ended: nothing of what the program records from here on is needed.
static OVER: AtomicBool = AtomicBool::new(false);

/// Keeps what a program records as long as a window may need it.
pub fn keep<R>(work: impl FnOnce() -> R) {
    if !OVER.load(Relaxed) {
        hook::guard(work);
    }
}

/// The capture that this process was asked for, if it was.
pub fn capture() -> Option<&'static Capture> {
    static CAPTURE: OnceLock<Option<Capture>> = OnceLock::new();
    let made = CAPTURE.get_or_init(|| hook::guard(Capture::of_environment).flatten());
    // A forked child has none of the parent's window.
    made.as_ref()
        .filter(|capture| capture.process == std::process::id())
}

impl Capture {
    fn of_environment() -> Option<Capture> {
        let request = Request::of_environment()?;
        hook::silence();
        hook::pin_library();
        end_at_exit();
        let signals = match request.window {
            Window::Signal => Some(Signals::map(&request.signals())?),
            _ => None,
        };
        Some(Capture {
            is_armed: AtomicBool::new(request.window != Window::Program),
            is_own: AtomicBool::new(request.window == Window::Program),
            request,
            gate: RwLock::default(),
            submissions: AtomicU64::new(0),
            dispatches: AtomicU64::new(0),
            labels: Labels::default(),
            signals,
            process: std::process::id(),
            has_notified_end: AtomicBool::new(false),
            own: OwnCaptures::default(),
        })
    }

    fn alone(&self) -> RwLockWriteGuard<'_, Gate> {
        self.gate.write().unwrap_or_else(PoisonError::into_inner)
    }

    /// The process has a device.
    pub fn device_made(&self) {
        self.request.notify(&Notice::Device);
    }

    /// A device is about to be destroyed: a window of it ends.
    pub fn device_ends(&self, device: &Device) {
        let mut gate = self.alone();
        if gate
            .open
            .as_ref()
            .is_some_and(|open| std::ptr::eq(open.device(), device))
        {
            let reason = self.reason_at_end();
            self.end(&mut gate, reason);
        }
    }

    /// The process ends.
    fn process_ends(&self) {
        // Who holds it is a thread that the end of the process has stopped or soon will.
        if let Ok(mut gate) = self.gate.try_write() {
            let reason = self.reason_at_end();
            if let Some(mut open) = gate.open.take() {
                // The device may be gone already: it is not touched.
                open.end(reason);
                std::mem::forget(open);
            }
        }
        if !self.has_notified_end.swap(true, Relaxed) {
            self.request.notify(&Notice::Ended {
                submissions: self.submissions.load(Relaxed),
                dispatches: self.dispatches.load(Relaxed),
            });
        }
    }

    /// A window of all ends with the program.
    fn reason_at_end(&self) -> EndReason {
        match self.request.window {
            Window::All if !self.is_own.load(Relaxed) => EndReason::Complete,
            _ => EndReason::ProgramEnded,
        }
    }

    /// Passes a submission on, and captures it if it is in the window.
    ///
    /// # Safety
    /// It is the program's own call.
    pub unsafe fn submit(&self, call: &Call<'_>) -> vk::Result {
        if !self.is_armed.load(Relaxed) {
            // SAFETY: as the caller promises.
            return unsafe { call.pass_on() };
        }
        let counted = {
            let shared = self.gate.read().unwrap_or_else(PoisonError::into_inner);
            let counted = hook::guard(|| match shared.open {
                Some(_) => None,
                None => Some(self.count(call)),
            });
            match counted {
                Some(Some(counted)) if !self.begins_with(call, &counted) => {
                    // SAFETY: as the caller promises.
                    return unsafe { call.pass_on() };
                }
                counted => counted.flatten(),
            }
        };
        let mut gate = self.alone();
        hook::guard(|| {
            let counted = counted.unwrap_or_else(|| self.count(call));
            // SAFETY: as the caller promises.
            unsafe { self.submit_alone(&mut gate, call, &counted) };
        });
        // SAFETY: as the caller promises. It has not been passed on where the window ended before it.
        (call.passed.get()).unwrap_or_else(|| unsafe { call.pass_on() })
    }

    /// Counts a submission, and its dispatches if the window is one of them.
    fn count(&self, call: &Call<'_>) -> Counted {
        let dispatches = match self.request.window {
            Window::Dispatches(_) => self.count_dispatches(call),
            _ => 0,
        };
        Counted {
            submission: self.submissions.fetch_add(1, Relaxed),
            first_dispatch: self.dispatches.fetch_add(dispatches, Relaxed),
            dispatches,
        }
    }

    /// Whether a window begins with this submission.
    fn begins_with(&self, call: &Call<'_>, counted: &Counted) -> bool {
        match &self.request.window {
            Window::All | Window::Program => true,
            Window::Submissions(range) => range.contains(&counted.submission),
            Window::Dispatches(range) => {
                let end = counted.first_dispatch.saturating_add(counted.dispatches);
                counted.first_dispatch < range.end && end > range.start
            }
            Window::Label(text) => self.labels.apply(call, text),
            Window::Signal => self.signals.as_ref().is_some_and(|signals| signals.is_on()),
        }
    }

    fn count_dispatches(&self, call: &Call<'_>) -> u64 {
        let mut count = 0;
        let mut pending = call.command_buffers();
        while let Some(buffer) = pending.pop() {
            if let Some(state) = call.device.objects.command_buffers.get(buffer.as_raw()) {
                let (own, secondary) = lock(&state).dispatches();
                count += own;
                pending.extend(secondary);
            }
        }
        count
    }

    /// Whether the open window is over before this submission.
    fn is_over_before(&self, call: &Call<'_>) -> bool {
        match &self.request.window {
            // A submission of semaphores alone has no label and ends nothing.
            Window::Label(text) => {
                !call.command_buffers().is_empty() && !self.labels.apply(call, text)
            }
            Window::Signal => !self.signals.as_ref().is_some_and(|signals| signals.is_on()),
            _ => false,
        }
    }

    /// Whether the open window is complete after this submission.
    fn is_complete_after(&self, counted: &Counted) -> bool {
        match &self.request.window {
            Window::Submissions(range) => counted.submission + 1 >= range.end,
            Window::Dispatches(range) => counted.first_dispatch + counted.dispatches >= range.end,
            _ => false,
        }
    }

    /// Which dispatches of the submission are in the window, if that is one of them.
    fn dispatches_of(&self, counted: &Counted) -> Option<Dispatches> {
        let Window::Dispatches(range) = &self.request.window else {
            return None;
        };
        let inside = |at: u64| {
            at.saturating_sub(counted.first_dispatch)
                .min(counted.dispatches)
        };
        Some(Dispatches {
            captured: inside(range.start)..inside(range.end),
            count: counted.dispatches,
        })
    }

    /// Captures a submission, which is passed on if it is in a window.
    ///
    /// # Safety
    /// It is the program's own call.
    unsafe fn submit_alone(&self, gate: &mut Gate, call: &Call<'_>, counted: &Counted) {
        if !self.is_armed.load(Relaxed) {
            return;
        }
        if gate.open.is_none() {
            let path = match self.is_own.load(Relaxed) {
                true => match self.own.begin() {
                    Some(path) => path,
                    None => return,
                },
                false => None,
            };
            self.begin(gate, call.device, path);
        } else if self.is_over_before(call) {
            self.end(gate, EndReason::Complete);
            return;
        }
        let Some(open) = &mut gate.open else { return };
        // SAFETY: as the caller promises; the gate keeps others from the queues.
        match unsafe { open.submit(call, self.dispatches_of(counted)) } {
            Err(reason) => self.end(gate, reason),
            Ok(()) if self.is_complete_after(counted) => self.end(gate, EndReason::Complete),
            Ok(()) => {}
        }
    }

    /// Opens a window on a device, if it can be written.
    fn begin(&self, gate: &mut Gate, device: &'static Device, path: Option<PathBuf>) {
        gate.begun += 1;
        let path = path.unwrap_or_else(|| self.request.output_of(gate.begun));
        let window = match self.is_own.load(Relaxed) {
            true => &Window::Program,
            false => &self.request.window,
        };
        match Open::begin(device, &path, window, self.request.keep_outputs) {
            Ok(open) => {
                self.request.notify(&Notice::Begun(path));
                gate.open = Some(open);
            }
            Err(reason) => {
                self.own.settle(false);
                self.request.notify(&Notice::NotBegun(reason));
                self.disarm();
            }
        }
    }

    /// Ends the open window, and with it the capture, unless there may be another.
    fn end(&self, gate: &mut Gate, reason: EndReason) {
        let Some(mut open) = gate.open.take() else {
            return;
        };
        self.own.settle(open.has_work());
        if let EndReason::Failed(reason) = &reason {
            let (capture, reason) = (open.path().to_owned(), reason.clone());
            self.request.notify(&Notice::BrokenOff { capture, reason });
        }
        open.end(reason);
        open.clean_up();
        match &self.signals {
            // A window that was refused does not begin again before the next signal.
            Some(signals) => signals.turn_off(),
            None => self.disarm(),
        }
    }

    /// Ends an open window before something that no capture can hold, which is then done.
    pub fn refuse<R>(&self, what: &str, work: impl FnOnce() -> R) -> R {
        if !self.is_armed.load(Relaxed) {
            return work();
        }
        let mut gate = self.alone();
        hook::guard(|| {
            if gate.open.is_some() {
                self.end(&mut gate, EndReason::Refused(what.to_owned()));
            }
        });
        // Alone: the window did not wait for others.
        work()
    }

    /// No window begins by itself any more.
    fn disarm(&self) {
        self.is_armed.store(false, Relaxed);
        let is_last = matches!(
            self.request.window,
            Window::Submissions(_) | Window::Dispatches(_) | Window::Label(_)
        );
        if is_last {
            OVER.store(true, Relaxed);
        }
    }
}

/// Ends the window at the exit of the process. Handlers run in the reverse order of their registration.
fn end_at_exit() {
    extern "C" fn ended() {
        hook::guard(|| {
            if let Some(capture) = capture() {
                capture.process_ends();
            }
        });
    }
    // SAFETY: the handler is a plain function of this library, which is pinned.
    unsafe { libc::atexit(ended) };
}
