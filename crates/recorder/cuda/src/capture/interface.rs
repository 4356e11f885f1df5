//! The functions that the program itself may call while it is captured: see [`gapscope_spool::interface`]. A window that
//! the program begins becomes a capture, and labels of its threads, of NVTX too, may choose the window.

use super::control::{CaptureControl, control};
use gapscope_capture::model::EndReason;
use gapscope_capture::request::Window;
use gapscope_spool::event::LabelEdge;
use gapscope_spool::interface::{CaptureProvider, Status, StopOutcome, Table};
use std::cell::RefCell;
use std::ffi::CStr;
use std::path::PathBuf;
use std::sync::atomic::Ordering::Relaxed;
use std::sync::{Mutex, MutexGuard, PoisonError};

/// The functions by which the program speaks to this library.
pub static TABLE: Table = Table::for_captures::<CaptureControl>();

thread_local! {
    /// The open labels of the thread, the innermost last: whether each chooses the window.
    static LABELS: RefCell<Vec<bool>> = const { RefCell::new(Vec::new()) };
}

impl CaptureProvider for CaptureControl {
    const NAME: &'static CStr = c"cuda";

    fn get() -> Option<&'static CaptureControl> {
        control()
    }

    fn start_by_program(&self, path: Option<PathBuf>) -> Result<u32, Status> {
        match self.request.window {
            Window::Program => {}
            // Nobody asked for a window, and the program does.
            Window::All => {
                if !self.is_by_program.swap(true, Relaxed) {
                    let what = "what the program captures itself, by start_capture";
                    self.end_between_launches(EndReason::Refused(what.to_owned()));
                }
            }
            _ => return Err(Status::NotRecorded),
        }
        let number = self.program_windows.ask(path)?;
        self.arm();
        Ok(number)
    }

    fn stop_by_program(&self, number: u32) -> Status {
        match self.program_windows.stop(number) {
            StopOutcome::EndWindow => self.end_between_launches(EndReason::Complete),
            StopOutcome::NothingBegun => self.disarm(),
            StopOutcome::AlreadyEnded => {}
            StopOutcome::Unknown => return Status::NotCapturing,
        }
        Status::Done
    }

    fn program_may_start(&self) -> Status {
        match self.request.window {
            Window::Program | Window::All => Status::Off,
            _ => Status::NotRecorded,
        }
    }

    fn state_of_window(&self, number: u32) -> Status {
        self.program_windows.state(number)
    }

    fn push_label(&self, text: &str) {
        let chooses = self.label_begins(text);
        LABELS.with_borrow_mut(|open| open.push(chooses));
    }

    fn pop_label(&self) -> bool {
        let ended = LABELS.with_borrow_mut(Vec::pop);
        if ended == Some(true) {
            self.label_ends();
        }
        ended.is_some()
    }
}

/// Handles one end of a label that the program has set by NVTX: of a range, which may end on another thread, or of the
/// calling thread.
pub fn label(control: &CaptureControl, range: Option<u64>, edge: LabelEdge, text: &str) {
    match (range, edge) {
        (None, LabelEdge::Begin) => control.push_label(text),
        (None, LabelEdge::End) => {
            control.pop_label();
        }
        (Some(range), LabelEdge::Begin) => {
            if control.label_begins(text) {
                ranges().push(range);
            }
        }
        (Some(range), LabelEdge::End) => {
            let mut open = ranges();
            let at = open.iter().position(|other| *other == range);
            if let Some(at) = at {
                open.swap_remove(at);
                drop(open);
                control.label_ends();
            }
        }
        (_, LabelEdge::Instant) => {}
    }
}

/// Returns the open ranges of NVTX that choose the window.
fn ranges() -> MutexGuard<'static, Vec<u64>> {
    static RANGES: Mutex<Vec<u64>> = Mutex::new(Vec::new());
    RANGES.lock().unwrap_or_else(PoisonError::into_inner)
}
