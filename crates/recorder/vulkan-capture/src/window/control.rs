//! Decides which submissions are in a window (the captured part of the run): counts submissions, opens a window where
//! the user's choice or the program says so, hands submissions to it, and ends it. [`control`] returns the one
//! control of the process; each submission goes through [`WindowControl::submit`].

use std::path::PathBuf;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering::Relaxed};
use std::sync::{OnceLock, PoisonError, RwLock, RwLockWriteGuard};

use ash::vk::{self, Handle};
use gapscope_capture::model::EndReason;
use gapscope_capture::request::{Notice, Request, Window};
use gapscope_spool::hook;
use gapscope_spool::interface::{ProgramWindows, Signals, Status, StopOutcome};
use gapscope_vulkan_layer::handles::lock;

use super::labels::Labels;
use super::open_window::{Dispatches, OpenWindow};
use super::submit_call::SubmitCall;
use crate::api::device::Device;

/// The windows that this process was asked to capture.
pub struct WindowControl {
    /// The user's choice, which the command `gapscope capture` passes in the environment.
    request: Request,
    /// Whether a window may begin, or is open.
    is_armed: AtomicBool,
    /// Submissions outside of a window share the lock; a thread that begins, ends or fills a window has it alone.
    state: RwLock<WindowState>,
    /// The number of submissions, and of dispatches if the window counts them, so far.
    submissions: AtomicU64,
    dispatches: AtomicU64,
    /// The labels that are open on queues and threads.
    pub labels: Labels,
    /// The count of signals, where they open and end windows.
    signals: Option<Signals>,
    /// The process that the control was made for.
    process: u32,
    has_notified_end: AtomicBool,
    /// Whether the program begins windows itself, and nothing else does.
    is_by_program: AtomicBool,
    /// The windows that the program begins itself.
    pub program_windows: ProgramWindows,
}

/// The numbers of the submissions and of the dispatches of a call, each counted from 0. A call may hand over several
/// submissions (`VkSubmitInfo`), as recordings count them, or none.
struct CallNumbers {
    first_submission: u64,
    submissions: u64,
    first_dispatch: u64,
    dispatches: u64,
}

/// The open window, if there is one.
#[derive(Default)]
struct WindowState {
    open: Option<OpenWindow>,
    /// The number of windows that have been begun.
    begun: u32,
}

/// Whether the only window has ended, so that nothing that the program records from here on is needed.
static ALL_WINDOWS_OVER: AtomicBool = AtomicBool::new(false);

/// Runs `work`, which keeps what a program records, unless no window can need it any more. A panic in it is caught.
pub fn unless_over<R>(work: impl FnOnce() -> R) {
    if !ALL_WINDOWS_OVER.load(Relaxed) {
        hook::guard(work);
    }
}

/// Returns the control of this process's windows; `None` if the process was asked for none.
pub fn control() -> Option<&'static WindowControl> {
    static CONTROL: OnceLock<Option<WindowControl>> = OnceLock::new();
    let made = CONTROL.get_or_init(|| hook::guard(WindowControl::from_environment).flatten());
    // A forked child has none of the parent's window.
    made.as_ref()
        .filter(|control| control.process == std::process::id())
}

impl WindowControl {
    /// Reads the user's choice from the environment; `None` if the process was asked for no window.
    fn from_environment() -> Option<WindowControl> {
        let request = Request::from_environment().filter(|request| !request.window.is_of_cuda())?;
        hook::silence();
        hook::pin_library();
        end_at_exit();
        let signals = match request.window {
            Window::Signal => Some(Signals::map(&request.signals())?),
            _ => None,
        };
        Some(WindowControl {
            is_armed: AtomicBool::new(request.window != Window::Program),
            is_by_program: AtomicBool::new(request.window == Window::Program),
            request,
            state: RwLock::default(),
            submissions: AtomicU64::new(0),
            dispatches: AtomicU64::new(0),
            labels: Labels::default(),
            signals,
            process: std::process::id(),
            has_notified_end: AtomicBool::new(false),
            program_windows: ProgramWindows::default(),
        })
    }

    fn lock_window(&self) -> RwLockWriteGuard<'_, WindowState> {
        self.state.write().unwrap_or_else(PoisonError::into_inner)
    }

    /// Notifies the command that the process has a device.
    pub fn device_made(&self) {
        self.request.notify(&Notice::Device);
    }

    /// Ends the window of a device that is about to be destroyed.
    pub fn device_ends(&self, device: &Device) {
        let mut state = self.lock_window();
        if state
            .open
            .as_ref()
            .is_some_and(|open| std::ptr::eq(open.device(), device))
        {
            let reason = self.reason_at_end();
            self.end(&mut state, reason);
        }
    }

    /// Ends the window at the end of the process.
    fn process_ends(&self) {
        // The holder of the lock is a thread that the end of the process has stopped or soon will.
        if let Ok(mut state) = self.state.try_write() {
            let reason = self.reason_at_end();
            if let Some(mut open) = state.open.take() {
                // The device may be gone already, so it is not touched.
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

    /// Returns the reason for a window that ends with the program: a window of everything is then complete.
    fn reason_at_end(&self) -> EndReason {
        match self.request.window {
            Window::All if !self.is_by_program.load(Relaxed) => EndReason::Complete,
            _ => EndReason::ProgramEnded,
        }
    }

    /// Returns whether a window may begin, or is open.
    pub fn is_armed(&self) -> bool {
        self.is_armed.load(Relaxed)
    }

    /// Passes a submission on, and captures it if it is in the window.
    ///
    /// # Safety
    /// The call is the program's own.
    pub unsafe fn submit(&self, call: &SubmitCall<'_>) -> vk::Result {
        let counted = {
            let shared = self.state.read().unwrap_or_else(PoisonError::into_inner);
            let counted = hook::guard(|| match shared.open {
                Some(_) => None,
                None => Some(self.count(call)),
            });
            match counted {
                Some(Some(counted)) if !self.begins_with(call, &counted) => {
                    // SAFETY: as the caller promises.
                    return unsafe { call.pass_on(None) };
                }
                counted => counted.flatten(),
            }
        };
        let mut state = self.lock_window();
        hook::guard(|| {
            let counted = counted.unwrap_or_else(|| self.count(call));
            // SAFETY: as the caller promises.
            unsafe { self.submit_alone(&mut state, call, &counted) };
        });
        // SAFETY: as the caller promises. It has not been passed on where the window ended before it.
        (call.passed.get()).unwrap_or_else(|| unsafe { call.pass_on(None) })
    }

    /// Counts a call's submissions, and their dispatches if the window counts dispatches.
    fn count(&self, call: &SubmitCall<'_>) -> CallNumbers {
        let dispatches = match self.request.window {
            Window::Dispatches(_) => self.count_dispatches(call),
            _ => 0,
        };
        let submissions = call.batches.len() as u64;
        CallNumbers {
            first_submission: self.submissions.fetch_add(submissions, Relaxed),
            submissions,
            first_dispatch: self.dispatches.fetch_add(dispatches, Relaxed),
            dispatches,
        }
    }

    /// Returns whether a window begins with this submission.
    fn begins_with(&self, call: &SubmitCall<'_>, counted: &CallNumbers) -> bool {
        match &self.request.window {
            Window::All | Window::Program => true,
            // A call is captured as a whole if one of its submissions is in the window.
            Window::Submissions(range) => {
                let end = counted.first_submission.saturating_add(counted.submissions);
                counted.first_submission < range.end && end > range.start
            }
            Window::Dispatches(range) => {
                let end = counted.first_dispatch.saturating_add(counted.dispatches);
                counted.first_dispatch < range.end && end > range.start
            }
            Window::Label(text) => self.labels.apply(call, text),
            Window::Signal => self.signals.as_ref().is_some_and(|signals| signals.is_on()),
            Window::Launches(_) | Window::Kernel { .. } => false,
        }
    }

    /// Returns the number of dispatches in all command buffers of a call, secondary ones included.
    fn count_dispatches(&self, call: &SubmitCall<'_>) -> u64 {
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

    /// Returns whether the open window is over before this submission.
    fn is_over_before(&self, call: &SubmitCall<'_>) -> bool {
        match &self.request.window {
            // A submission of semaphores alone has no label and ends nothing.
            Window::Label(text) => {
                !call.command_buffers().is_empty() && !self.labels.apply(call, text)
            }
            Window::Signal => !self.signals.as_ref().is_some_and(|signals| signals.is_on()),
            _ => false,
        }
    }

    /// Returns whether the open window is complete after this submission.
    fn is_complete_after(&self, counted: &CallNumbers) -> bool {
        match &self.request.window {
            Window::Submissions(range) => {
                counted.first_submission + counted.submissions >= range.end
            }
            Window::Dispatches(range) => counted.first_dispatch + counted.dispatches >= range.end,
            _ => false,
        }
    }

    /// Returns the dispatches of the submission that are in the window, if the window counts dispatches.
    fn dispatches_of(&self, counted: &CallNumbers) -> Option<Dispatches> {
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

    /// Captures a submission, which is passed on if it is in a window, and begins or ends the window where that is
    /// due. The caller passes on what this leaves.
    ///
    /// # Safety
    /// The call is the program's own.
    unsafe fn submit_alone(
        &self,
        state: &mut WindowState,
        call: &SubmitCall<'_>,
        counted: &CallNumbers,
    ) {
        if !self.is_armed() {
            return;
        }
        if state.open.is_none() {
            let path = match self.is_by_program.load(Relaxed) {
                true => match self.program_windows.begin() {
                    Some(path) => path,
                    None => return,
                },
                false => None,
            };
            self.begin(state, call.device, path);
        } else if self.is_over_before(call) {
            self.end(state, EndReason::Complete);
            return;
        }
        let Some(open) = &mut state.open else { return };
        // SAFETY: as the caller promises; the state keeps others from the queues.
        match unsafe { open.submit(call, self.dispatches_of(counted)) } {
            Err(reason) => self.end(state, reason),
            Ok(()) if self.is_complete_after(counted) => self.end(state, EndReason::Complete),
            Ok(()) => {}
        }
    }

    /// Opens a window on a device, if it can be written.
    fn begin(&self, state: &mut WindowState, device: &'static Device, path: Option<PathBuf>) {
        state.begun += 1;
        let path = path.unwrap_or_else(|| self.request.output_of(state.begun));
        let window = match self.is_by_program.load(Relaxed) {
            true => &Window::Program,
            false => &self.request.window,
        };
        match OpenWindow::begin(device, &path, window, self.request.keep_outputs) {
            Ok(open) => {
                self.request.notify(&Notice::Begun(path));
                state.open = Some(open);
            }
            Err(reason) => {
                self.program_windows.settle(false);
                self.request.notify(&Notice::NotBegun(reason.to_string()));
                self.disarm();
            }
        }
    }

    /// Ends the open window: writes the reason and destroys the layer's objects. No other window begins unless the
    /// program or a signal asks for it.
    fn end(&self, state: &mut WindowState, reason: EndReason) {
        let Some(mut open) = state.open.take() else {
            return;
        };
        self.program_windows.settle(open.has_work());
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

    /// Ends an open window before `work`, which no capture can hold, and then does the work.
    pub fn refuse<R>(&self, what: &str, work: impl FnOnce() -> R) -> R {
        if !self.is_armed() {
            return work();
        }
        let mut state = self.lock_window();
        hook::guard(|| {
            if state.open.is_some() {
                self.end(&mut state, EndReason::Refused(what.to_owned()));
            }
        });
        // The lock is still held, since the window did not wait for other threads.
        work()
    }

    /// Adds a window that the program asks for, and returns its number. The capture is written to `path` if the program
    /// gave one.
    ///
    /// # Errors
    /// Returns the status for the program if there can be no window now.
    pub fn start_by_program(&self, path: Option<PathBuf>) -> Result<u32, Status> {
        let mut state = self.lock_window();
        match self.request.window {
            Window::Program => {}
            // Nobody asked for a window, and the program does.
            Window::All => {
                if !self.is_by_program.swap(true, Relaxed) {
                    let what = "what the program captures itself, by start_capture";
                    self.end(&mut state, EndReason::Refused(what.to_owned()));
                }
            }
            _ => return Err(Status::NotRecorded),
        }
        let number = self.program_windows.ask(path)?;
        self.is_armed.store(true, Relaxed);
        Ok(number)
    }

    /// Ends a window that the program has begun.
    pub fn stop_by_program(&self, number: u32) -> Status {
        let mut state = self.lock_window();
        match self.program_windows.stop(number) {
            StopOutcome::EndWindow => self.end(&mut state, EndReason::Complete),
            StopOutcome::NothingBegun => self.is_armed.store(false, Relaxed),
            StopOutcome::AlreadyEnded => {}
            StopOutcome::Unknown => return Status::NotCapturing,
        }
        Status::Done
    }

    /// Returns whether the program may begin windows.
    pub fn program_may_start(&self) -> Status {
        match self.request.window {
            Window::Program | Window::All => Status::Off,
            _ => Status::NotRecorded,
        }
    }

    /// Makes no further window begin by itself.
    fn disarm(&self) {
        self.is_armed.store(false, Relaxed);
        let is_last = matches!(
            self.request.window,
            Window::Submissions(_) | Window::Dispatches(_) | Window::Label(_)
        );
        if is_last {
            ALL_WINDOWS_OVER.store(true, Relaxed);
        }
    }
}

/// Ends the window at the exit of the process. Handlers run in the reverse order of their registration.
fn end_at_exit() {
    extern "C" fn ended() {
        hook::guard(|| {
            if let Some(control) = control() {
                control.process_ends();
            }
        });
    }
    // SAFETY: the handler is a plain function of this library, which is pinned.
    unsafe { libc::atexit(ended) };
}
