//! Keeps the windows (captured parts of the run) that the program begins itself, by `start_capture` of the SDK, where
//! they become captures:
//! whether each waits for its first submission, is open, or has ended. For each come, in this order,
//! [`ProgramWindows::ask`], [`ProgramWindows::begin`] with the first submission, [`ProgramWindows::stop`] if the
//! program ends the window, and [`ProgramWindows::settle`] once the window has ended.

use std::path::PathBuf;
use std::sync::{Mutex, MutexGuard, PoisonError};

use super::Status;

/// The state of each window, by its number less 1.
#[derive(Debug, Default)]
pub struct ProgramWindows(Mutex<Vec<ProgramWindow>>);

/// The state of a window that the program has asked for.
#[derive(Debug)]
enum ProgramWindow {
    /// The window begins with the next submission; its capture is written to this path if the program gave one.
    Asked(Option<PathBuf>),
    /// The window is open.
    Open,
    /// The window has ended, and holds work that can be replayed.
    Written,
    /// The window has ended without work.
    Failed,
}

/// The work that is left when the program ends a window.
#[derive(Debug)]
pub enum StopOutcome {
    /// The window is open, and ends.
    EndWindow,
    /// Nothing was submitted, so there is nothing to write.
    NothingBegun,
    /// The window has ended by itself.
    AlreadyEnded,
    /// The number is not that of the last window.
    Unknown,
}

impl ProgramWindows {
    fn lock(&self) -> MutexGuard<'_, Vec<ProgramWindow>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Opens the window that waits for a submission, and returns the path that the program gave for its capture;
    /// `None` if no window waits.
    pub fn begin(&self) -> Option<Option<PathBuf>> {
        match self.lock().last_mut() {
            Some(last @ ProgramWindow::Asked(_)) => {
                match std::mem::replace(last, ProgramWindow::Open) {
                    ProgramWindow::Asked(path) => Some(path),
                    _ => None,
                }
            }
            _ => None,
        }
    }

    /// Notes that the open window has ended, with work to replay or without.
    pub fn settle(&self, has_work: bool) {
        if let Some(last @ ProgramWindow::Open) = self.lock().last_mut() {
            *last = match has_work {
                true => ProgramWindow::Written,
                false => ProgramWindow::Failed,
            };
        }
    }

    /// Adds a window that begins with the next submission; returns its number.
    ///
    /// # Errors
    /// Another window is open or waits.
    pub fn ask(&self, path: Option<PathBuf>) -> Result<u32, Status> {
        let mut windows = self.lock();
        if matches!(
            windows.last(),
            Some(ProgramWindow::Asked(_) | ProgramWindow::Open)
        ) {
            return Err(Status::AlreadyCapturing);
        }
        // The program names a trace, and this is a capture.
        let path = path.map(|path| match path.extension() {
            Some(extension) if extension == "gapscope" => path.with_extension("gapcapture"),
            _ => path,
        });
        windows.push(ProgramWindow::Asked(path));
        Ok(windows.len() as u32)
    }

    /// Ends a window; an open one stays open until [`ProgramWindows::settle`].
    pub fn stop(&self, number: u32) -> StopOutcome {
        let mut windows = self.lock();
        let is_last = windows.len() as u32 == number;
        match windows.last_mut() {
            Some(last @ ProgramWindow::Asked(_)) if is_last => {
                *last = ProgramWindow::Failed;
                StopOutcome::NothingBegun
            }
            Some(ProgramWindow::Open) if is_last => StopOutcome::EndWindow,
            Some(_) if is_last => StopOutcome::AlreadyEnded,
            _ => StopOutcome::Unknown,
        }
    }

    /// Returns the state of a window, as the interface words it.
    pub fn state(&self, number: u32) -> Status {
        let windows = self.lock();
        let state = (number as usize)
            .checked_sub(1)
            .and_then(|index| windows.get(index));
        match state {
            None => Status::NotCapturing,
            Some(ProgramWindow::Asked(_) | ProgramWindow::Open) => Status::Pending,
            Some(ProgramWindow::Written) => Status::Done,
            Some(ProgramWindow::Failed) => Status::NotWritten,
        }
    }
}
