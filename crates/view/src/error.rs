//! Defines [`Error`], the reasons why a trace or capture cannot be served or written as a page.

use std::path::PathBuf;
use std::sync::Arc;

/// The reason why a trace cannot be shown. A store keeps it and returns it to everyone who asks.
#[derive(Debug, Clone, thiserror::Error)]
#[non_exhaustive]
pub enum Error {
    /// The trace cannot be opened.
    #[error("{0}")]
    Trace(Arc<gapscope_trace::Error>),
    /// The capture cannot be opened.
    #[error("{0}")]
    Capture(String),
    /// A capture was named together with another path.
    #[error("{} is a capture, which is shown by itself: name no other beside it", .0.display())]
    Several(PathBuf),
    /// The recording of the trace goes on, or was killed.
    #[error(
        "{path} is not complete: it is still being recorded, or its recording was killed; wait for its end, or run \
         `gapscope recover {path}`",
        path = .0.display()
    )]
    Unfinished(PathBuf),
    /// Ranks were recorded on several machines, or at several times.
    #[error(
        "{path} holds the traces of ranks that were recorded apart: their times are of different clocks and cannot be put \
         beside each other; name one of them, such as {first}",
        path = path.display(),
        first = first.display()
    )]
    Apart {
        /// The folder.
        path: PathBuf,
        /// The trace of its first rank.
        first: PathBuf,
    },
    /// The port cannot be opened.
    #[error("port {port} cannot be opened: {reason}; choose another with --port, or leave it out")]
    Port {
        /// The port.
        port: u16,
        /// The system's error message.
        reason: String,
    },
    /// The system refuses something that the server needs.
    #[error("the page cannot be served: {0}")]
    System(String),
    /// A file cannot be written.
    #[error("{} cannot be written: {reason}", path.display())]
    Write {
        /// The file.
        path: PathBuf,
        /// The system's error message.
        reason: String,
    },
    /// The file exists already.
    #[error("{} exists already: choose another name or remove it", .0.display())]
    Exists(PathBuf),
    /// A file is not a saved view.
    #[error("{} is no saved view: {reason}", path.display())]
    Saved {
        /// The file.
        path: PathBuf,
        /// The reason.
        reason: String,
    },
    /// The trace of a saved view is not there.
    #[error(
        "{} is a view of {}, which is neither there nor beside it: put the trace beside the view",
        path.display(),
        trace.display()
    )]
    Gone {
        /// The saved view.
        path: PathBuf,
        /// The trace that it shows.
        trace: PathBuf,
    },
    /// A comparison has a side without work, or one whose causes are not known.
    #[error("{0}")]
    NotComparable(String),
    /// The analysis panicked.
    #[error("the analysis of this trace failed")]
    Analysis,
}

impl From<gapscope_trace::Error> for Error {
    fn from(error: gapscope_trace::Error) -> Error {
        Error::Trace(Arc::new(error))
    }
}
