//! The outcomes of captures, which write a window of a program's GPU work: what was written, or why nothing was.

use super::Destination;
use crate::text::{shown, shown_path};
use std::path::PathBuf;

/// A capture that succeeded.
///
/// ```
/// fn said(captured: gapscope_sdk::Captured) -> String {
///     format!("{:?}, {:?} bytes", captured.path(), captured.bytes)
/// }
/// ```
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub struct Captured {
    /// The destination of the capture.
    pub destination: Destination,
    /// The size of the file, or of all files in the folder; `None` if the capture has no file of its own.
    pub bytes: Option<u64>,
}

impl Captured {
    pub(super) fn new(destination: Destination, bytes: Option<u64>) -> Captured {
        Captured { destination, bytes }
    }

    /// Returns the path of the capture, if it has a file of its own.
    ///
    /// ```
    /// # fn example(captured: gapscope_sdk::Captured) {
    /// if let Some(path) = captured.path() {
    ///     println!("gapscope report {}", path.display());
    /// }
    /// # }
    /// ```
    pub fn path(&self) -> Option<&std::path::Path> {
        self.destination.path()
    }
}

/// A reason why nothing was captured. Its text says what is wrong, where, and what to do.
///
/// ```
/// use gapscope_sdk::{Capture, NotCaptured, capture::CaptureDevice};
///
/// fn why(device: &impl CaptureDevice) -> Option<String> {
///     match Capture::from_env(device) {
///         Err(why @ NotCaptured::Exists { .. }) => Some(format!("move it away: {why}")),
///         Err(why) if !why.is_expected() => Some(why.to_string()),
///         _ => None,
///     }
/// }
/// ```
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum NotCaptured {
    /// No environment variable asks for a capture.
    #[error(
        "no capture was asked for: set GAPSCOPE_CAPTURE (or MLX_METAL_CAPTURE) to the path of the capture"
    )]
    NotRequested,
    /// A variable has an invalid value.
    #[error("{variable}={} is not understood: {expected}", shown(value))]
    BadVariable {
        /// The variable.
        variable: &'static str,
        /// Its value.
        value: String,
        /// A description of valid values.
        expected: &'static str,
    },
    /// The schedule does not choose this unit of work, such as a forward pass.
    #[error("unit {unit} is not captured: {schedule}")]
    NotThisUnit {
        /// The unit, counted from 1.
        unit: u64,
        /// The description of the units that are captured.
        schedule: String,
    },
    /// This unit of work has ended, and the capture goes on with the next: `GAPSCOPE_CAPTURE_TAKE` asks for several.
    #[error("the capture goes on for {units_left} more units")]
    Continues {
        /// The units that are still to be captured.
        units_left: u64,
    },
    /// This process has made its one capture.
    #[error(
        "the one capture of this process has been made: start it again, or arm a trigger, for another"
    )]
    Spent,
    /// Another capture is running.
    #[error("a capture is already running: end it before another starts")]
    AlreadyCapturing,
    /// `end` without `begin`, or `stop_capture` without `start_capture`.
    #[error("no capture has been started")]
    NotBegun,
    /// The capture has ended; a [`super::Capture`] is for one window.
    #[error("this capture has ended: make another one for another window")]
    Ended,
    /// A gate of the system, such as Metal's `MTL_CAPTURE_ENABLED`, is closed.
    #[error("{backend} does not allow captures: {reason}")]
    Gate {
        /// The backend.
        backend: &'static str,
        /// The gate that is closed and how to open it.
        reason: String,
    },
    /// The device or its driver does not support captures.
    #[error("{backend} cannot capture here: {reason}")]
    Unsupported {
        /// The backend.
        backend: &'static str,
        /// The reason.
        reason: String,
    },
    /// No hook (library that records) of gapscope is in this process.
    #[error(
        "gapscope does not record this process: run it as `gapscope record --capture-only -- COMMAND`, or as `gapscope capture -- COMMAND`"
    )]
    NoHook,
    /// The hook of gapscope is not in this process yet, because the process has not used a GPU.
    #[error(
        "this process has not used a GPU through Vulkan or CUDA yet: make the device before the capture"
    )]
    NoGpuYet,
    /// The path is empty.
    #[error("the path of the capture is empty")]
    NoPath,
    /// The path cannot be the name of a file.
    #[error(
        "{} cannot be the path of a capture: {}",
        shown_path(path),
        shown(reason)
    )]
    BadPath {
        /// The path.
        path: PathBuf,
        /// The reason.
        reason: String,
    },
    /// The path exists.
    #[error(
        "{} exists and is not overwritten: remove it, or choose another path",
        shown_path(path)
    )]
    Exists {
        /// The path.
        path: PathBuf,
    },
    /// The folder of the path does not exist or is not a folder.
    #[error(
        "{} is not a folder: make it, or choose another path for the capture",
        shown_path(parent)
    )]
    NoParent {
        /// The folder.
        parent: PathBuf,
    },
    /// The folder of the path cannot be written.
    #[error("{} cannot be written: {}", shown_path(parent), shown(reason))]
    NotWritable {
        /// The folder.
        parent: PathBuf,
        /// The error of the system.
        reason: String,
    },
    /// The path does not have the extension of the backend.
    #[error(
        "{} must end in .{expected}, the extension of what {backend} captures",
        shown_path(path)
    )]
    Extension {
        /// The path.
        path: PathBuf,
        /// The required extension, without the dot.
        expected: &'static str,
        /// The backend.
        backend: &'static str,
    },
    /// The folder has too little space.
    #[error(
        "{} has {free_bytes} bytes free and a capture wants {wanted_bytes}: free some, or choose another path",
        shown_path(parent)
    )]
    NoSpace {
        /// The folder.
        parent: PathBuf,
        /// The free space of the folder.
        free_bytes: u64,
        /// The required space.
        wanted_bytes: u64,
    },
    /// Waiting for the device failed.
    #[error("waiting for the device failed: {0}")]
    Synchronise(#[from] WaitError),
    /// The capture did not start.
    #[error("{backend} did not start the capture: {reason}")]
    Start {
        /// The backend.
        backend: &'static str,
        /// The error of the backend.
        reason: String,
    },
    /// The capture was not stopped properly.
    #[error("{backend} did not stop the capture properly: {reason}")]
    Stop {
        /// The backend.
        backend: &'static str,
        /// The error of the backend.
        reason: String,
    },
    /// The file is missing or empty after the stop.
    #[error("the capture {} was not written: {}", shown_path(path), shown(reason))]
    NotWritten {
        /// The path.
        path: PathBuf,
        /// The reason.
        reason: String,
    },
}

impl NotCaptured {
    /// Returns true for reasons that are no faults: no capture was asked for, or none of this unit.
    ///
    /// ```
    /// # use gapscope_sdk::NotCaptured;
    /// assert!(NotCaptured::NotRequested.is_expected());
    /// assert!(!NotCaptured::NoHook.is_expected());
    /// ```
    pub fn is_expected(&self) -> bool {
        matches!(
            self,
            NotCaptured::NotRequested
                | NotCaptured::NotThisUnit { .. }
                | NotCaptured::Continues { .. }
                | NotCaptured::Spent
        )
    }
}

/// A reason why waiting for a device failed.
///
/// ```
/// # use gapscope_sdk::capture::{NotCaptured, WaitError};
/// let why = NotCaptured::from(WaitError::device("the device was lost"));
/// assert_eq!(why.to_string(), "waiting for the device failed: the device was lost");
/// ```
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum WaitError {
    /// Metal created no command buffer to wait for.
    #[error("Metal gave no command buffer")]
    NoCommandBuffer,
    /// The device or its driver reported this error.
    #[error("{0}")]
    Device(String),
}

impl WaitError {
    /// Converts the error of a device or its driver.
    ///
    /// ```
    /// # use gapscope_sdk::capture::WaitError;
    /// let error = WaitError::device(std::fmt::Error);
    /// assert!(matches!(error, WaitError::Device(_)));
    /// ```
    pub fn device(error: impl std::fmt::Display) -> WaitError {
        WaitError::Device(error.to_string())
    }
}
