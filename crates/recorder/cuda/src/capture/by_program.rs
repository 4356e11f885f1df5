//! Begins and ends the windows that the program asks for itself, by `start_capture`.

use super::control::CaptureControl;
use gapscope_capture::model::EndReason;
use gapscope_capture::request::Window;
use gapscope_spool::interface::{Status, StopOutcome};
use std::path::PathBuf;
use std::sync::atomic::Ordering::Relaxed;

impl CaptureControl {
    /// Adds a window that the program asks for, and returns its number.
    ///
    /// # Errors
    /// Returns the status for the program if there can be no window now.
    pub fn start_by_program(&self, path: Option<PathBuf>) -> Result<u32, Status> {
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

    /// Ends a window that the program has begun.
    pub fn stop_by_program(&self, number: u32) -> Status {
        match self.program_windows.stop(number) {
            StopOutcome::EndWindow => self.end_between_launches(EndReason::Complete),
            StopOutcome::NothingBegun => self.disarm(),
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
}
