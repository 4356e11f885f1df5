//! Captures that the program begins itself, through the SDK.

use std::path::PathBuf;
use std::sync::Mutex;

use gapscope_capture::model::EndReason;
use gapscope_capture::request::Window;
use gapscope_spool::interface::Status;
use gapscope_vulkan_layer::handles::lock;
use std::sync::atomic::Ordering::Relaxed;

use super::Capture;

/// How far each is, by its number less 1.
#[derive(Default)]
pub struct OwnCaptures(Mutex<Vec<State>>);

/// How far a capture is.
enum State {
    /// It begins with the next submission, at this path if the program gave one.
    Asked(Option<PathBuf>),
    Open,
    Written,
    Failed,
}

impl OwnCaptures {
    /// The path of the one that is to begin now; none: none is.
    pub fn begin(&self) -> Option<Option<PathBuf>> {
        match lock(&self.0).last_mut() {
            Some(last @ State::Asked(_)) => match std::mem::replace(last, State::Open) {
                State::Asked(path) => Some(path),
                _ => None,
            },
            _ => None,
        }
    }

    /// The open one has ended.
    pub fn settle(&self, reason: &EndReason) {
        if let Some(last @ State::Open) = lock(&self.0).last_mut() {
            *last = match reason {
                EndReason::Complete | EndReason::ProgramEnded => State::Written,
                EndReason::Refused(_) | EndReason::Failed(_) => State::Failed,
            };
        }
    }
}

impl Capture {
    /// The program begins a capture: gives its number.
    pub fn start_own(&self, path: Option<PathBuf>) -> Result<u32, Status> {
        if self.request.window != Window::Program {
            return Err(Status::AlreadyCapturing);
        }
        let _gate = self.alone();
        let mut own = lock(&self.own.0);
        if matches!(own.last(), Some(State::Asked(_) | State::Open)) {
            return Err(Status::AlreadyCapturing);
        }
        own.push(State::Asked(path));
        self.is_armed.store(true, Relaxed);
        Ok(own.len() as u32)
    }

    /// The program ends its capture.
    pub fn stop_own(&self, number: u32) -> Status {
        let mut gate = self.alone();
        let state = {
            let mut own = lock(&self.own.0);
            let is_last = own.len() as u32 == number;
            match own.last_mut() {
                // Nothing was submitted: there is nothing to write.
                Some(last @ State::Asked(_)) if is_last => {
                    *last = State::Failed;
                    self.is_armed.store(false, Relaxed);
                    Status::Done
                }
                Some(State::Open) if is_last => Status::Pending,
                // It ended before, by itself.
                Some(State::Written | State::Failed) if is_last => Status::Done,
                _ => Status::NotCapturing,
            }
        };
        if state == Status::Pending {
            self.end(&mut gate, EndReason::Complete);
            return Status::Done;
        }
        state
    }

    /// How far the program's capture is.
    pub fn own_state(&self, number: u32) -> Status {
        let own = lock(&self.own.0);
        let state = (number as usize)
            .checked_sub(1)
            .and_then(|index| own.get(index));
        match state {
            None => Status::NotCapturing,
            Some(State::Asked(_) | State::Open) => Status::Pending,
            Some(State::Written) => Status::Done,
            Some(State::Failed) => Status::NotWritten,
        }
    }
}
