//! The destinations of captures: a file or folder, or a tool that watches.

use std::path::{Path, PathBuf};

/// The destination of a capture.
///
/// ```
/// use gapscope_sdk::capture::Destination;
///
/// let file = Destination::File("step 3.gapscope".into());
/// assert_eq!(file, Destination::from_path("step 3.gapscope"));
/// ```
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub enum Destination {
    /// A path, which must not exist. Relative paths are those of the process.
    File(PathBuf),
    /// The tool that is watching: Xcode on Metal; elsewhere the running recording, which marks the window.
    Live,
}

impl Destination {
    /// Converts a path to a destination; `""` is [`Destination::Live`], as in MLX.
    ///
    /// ```
    /// # use gapscope_sdk::capture::Destination;
    /// assert_eq!(Destination::from_path(""), Destination::Live);
    /// ```
    pub fn from_path(path: impl AsRef<Path>) -> Destination {
        let path = path.as_ref();
        if path.as_os_str().is_empty() {
            Destination::Live
        } else {
            Destination::File(path.to_owned())
        }
    }

    /// Returns the path, if the destination has one.
    ///
    /// ```
    /// # use gapscope_sdk::capture::Destination;
    /// assert_eq!(Destination::Live.path(), None);
    /// ```
    pub fn path(&self) -> Option<&Path> {
        match self {
            Destination::File(path) => Some(path),
            Destination::Live => None,
        }
    }
}
