//! Keeps the captures that the program begins itself, through the SDK: whether each waits for its first submission,
//! is open, or has ended.

use std::path::PathBuf;
use std::sync::Mutex;

use gapscope_spool::interface::Status;
use gapscope_vulkan_layer::handles::lock;

/// The state of each capture, by its number less 1.
#[derive(Default)]
pub struct ProgramCaptures(Mutex<Vec<CaptureState>>);

/// The state of a capture that the program has asked for.
enum CaptureState {
    /// The capture begins with the next submission, at this path if the program gave one.
    Asked(Option<PathBuf>),
    /// The window of the capture is open.
    Open,
    /// The window has ended, and holds work that can be replayed.
    Written,
    /// The window has ended without work.
    Failed,
}

/// The state in which a capture is when the program ends it, from which follows what is left to do.
pub enum StopOutcome {
    /// The window is open, and ends.
    EndWindow,
    /// Nothing was submitted, so there is nothing to write.
    NothingBegun,
    /// The window has ended by itself.
    AlreadyEnded,
    /// The number is not that of the last capture.
    Unknown,
}

impl ProgramCaptures {
    /// Returns the path of the capture that is to begin now, if one is.
    pub fn begin(&self) -> Option<Option<PathBuf>> {
        match lock(&self.0).last_mut() {
            Some(last @ CaptureState::Asked(_)) => {
                match std::mem::replace(last, CaptureState::Open) {
                    CaptureState::Asked(path) => Some(path),
                    _ => None,
                }
            }
            _ => None,
        }
    }

    /// Notes that the open capture has ended, with work to replay or without.
    pub fn settle(&self, has_work: bool) {
        if let Some(last @ CaptureState::Open) = lock(&self.0).last_mut() {
            *last = match has_work {
                true => CaptureState::Written,
                false => CaptureState::Failed,
            };
        }
    }

    /// Adds a capture that begins with the next submission; returns its number.
    pub fn ask(&self, path: Option<PathBuf>) -> Result<u32, Status> {
        let mut captures = lock(&self.0);
        if matches!(
            captures.last(),
            Some(CaptureState::Asked(_) | CaptureState::Open)
        ) {
            return Err(Status::AlreadyCapturing);
        }
        // The program names a trace, and this is a capture.
        let path = path.map(|path| match path.extension() {
            Some(extension) if extension == "gapscope" => path.with_extension("gapcapture"),
            _ => path,
        });
        captures.push(CaptureState::Asked(path));
        Ok(captures.len() as u32)
    }

    /// Ends a capture; an open one stays open until its window has ended.
    pub fn stop(&self, number: u32) -> StopOutcome {
        let mut captures = lock(&self.0);
        let is_last = captures.len() as u32 == number;
        match captures.last_mut() {
            Some(last @ CaptureState::Asked(_)) if is_last => {
                *last = CaptureState::Failed;
                StopOutcome::NothingBegun
            }
            Some(CaptureState::Open) if is_last => StopOutcome::EndWindow,
            Some(_) if is_last => StopOutcome::AlreadyEnded,
            _ => StopOutcome::Unknown,
        }
    }

    /// Returns the state of a capture.
    pub fn state(&self, number: u32) -> Status {
        let captures = lock(&self.0);
        let state = (number as usize)
            .checked_sub(1)
            .and_then(|index| captures.get(index));
        match state {
            None => Status::NotCapturing,
            Some(CaptureState::Asked(_) | CaptureState::Open) => Status::Pending,
            Some(CaptureState::Written) => Status::Done,
            Some(CaptureState::Failed) => Status::NotWritten,
        }
    }
}
