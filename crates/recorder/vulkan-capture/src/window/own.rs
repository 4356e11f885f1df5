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

    /// The open one has ended, with work to replay or without.
    pub fn settle(&self, has_work: bool) {
        if let Some(last @ State::Open) = lock(&self.0).last_mut() {
            *last = match has_work {
                true => State::Written,
                false => State::Failed,
            };
        }
    }
}

impl Capture {
    /// The program begins a capture: gives its number.
    pub fn start_own(&self, path: Option<PathBuf>) -> Result<u32, Status> {
        let mut gate = self.alone();
        match self.request.window {
            Window::Program => {}
            // Nobody asked for a window, and the program does.
            Window::All => {
                if !self.is_own.swap(true, Relaxed) {
                    let what = "what the program captures itself, by start_capture";
                    self.end(&mut gate, EndReason::Refused(what.to_owned()));
                }
            }
            _ => return Err(Status::NotRecorded),
        }
        let mut own = lock(&self.own.0);
        if matches!(own.last(), Some(State::Asked(_) | State::Open)) {
            return Err(Status::AlreadyCapturing);
        }
        // The program names a trace; this is a capture.
        let path = path.map(|path| match path.extension() {
            Some(extension) if extension == "gapscope" => path.with_extension("gapcapture"),
            _ => path,
        });
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

    /// Whether the program may begin captures.
    pub fn own_possible(&self) -> Status {
        match self.request.window {
            Window::Program | Window::All => Status::Off,
            _ => Status::NotRecorded,
        }
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
