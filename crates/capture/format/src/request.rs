//! Defines the [`Request`] that `gapscope capture` sends to the layer in the program, through an environment
//! variable, and the [`Notice`]s that the layer sends back, through a file.

use std::fmt;
use std::io::Write;
use std::ops::Range;
use std::path::{Path, PathBuf};

use serde::{Deserialize, Serialize};

/// Name of the environment variable that holds a [`Request`] as JSON.
pub const VARIABLE: &str = "GAPSCOPE_CAPTURE_REQUEST";

/// A request to capture a window.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Request {
    /// The absolute path of the capture's folder, which does not exist yet.
    pub output: PathBuf,
    /// The window to capture.
    pub window: Window,
    /// Whether to keep the bytes that the window wrote, and not only their hashes.
    #[serde(default)]
    pub keep_outputs: bool,
    /// The most bytes of memory that one launch of CUDA may reach; a launch that reaches more is refused.
    #[serde(default = "default_most_bytes")]
    pub most_bytes: u64,
    /// A folder in which the command and the layer exchange files. It outlives the program.
    pub exchange: PathBuf,
}

/// The default of [`Request::most_bytes`]: 8 GiB.
pub const DEFAULT_MAX_BYTES: u64 = 8 << 30;

fn default_most_bytes() -> u64 {
    DEFAULT_MAX_BYTES
}

/// The part of the program's work to capture.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Window {
    /// All work.
    All,
    /// A range of calls that hand work to a queue, counted from 0.
    Submissions(Range<u64>),
    /// The submissions that contain a range of dispatches, counted from 0.
    Dispatches(Range<u64>),
    /// A range of launches of CUDA kernels, counted from 0.
    Launches(Range<u64>),
    /// One launch of a CUDA kernel.
    Kernel {
        /// A text that the kernel's name contains, as the code spells it or as a programmer does.
        name: String,
        /// Which of the launches of kernels whose name contains the text, counted from 0.
        number: u64,
    },
    /// The first consecutive submissions under a label that contains this text.
    Label(String),
    /// The windows that the program begins and ends with calls of gapscope's SDK.
    Program,
    /// The work from one signal of the command to the next.
    Signal,
}

impl Window {
    /// Returns whether only CUDA has such windows.
    pub fn is_of_cuda(&self) -> bool {
        matches!(self, Window::Launches(_) | Window::Kernel { .. })
    }
}

impl fmt::Display for Window {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Window::All => f.write_str("all"),
            Window::Submissions(range) => write!(f, "submissions {}..{}", range.start, range.end),
            Window::Dispatches(range) => write!(f, "dispatches {}..{}", range.start, range.end),
            Window::Launches(range) => write!(f, "launches {}..{}", range.start, range.end),
            Window::Kernel { name, number } => write!(f, "kernel {name}:{number}"),
            Window::Label(text) => write!(f, "label {text}"),
            Window::Program => f.write_str("start_capture"),
            Window::Signal => f.write_str("signal"),
        }
    }
}

/// A notice from a process that was asked to capture: a line of the file that [`Request::notices`] reads.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Notice {
    /// The process has a device.
    Device,
    /// The process is writing a capture to this folder.
    Begun(PathBuf),
    /// The process could not begin a capture, for this reason.
    NotBegun(String),
    /// A capture broke off. The notice repeats the reason, since the capture's end may not fit on its disk.
    BrokenOff {
        /// The capture's folder.
        capture: PathBuf,
        /// Why the capture broke off.
        reason: String,
    },
    /// The process ended or destroyed its Vulkan device. Dispatches are counted only if the window is one of dispatches.
    Ended {
        /// Number of calls that handed work to a queue.
        submissions: u64,
        /// Number of dispatches in them.
        dispatches: u64,
    },
    /// The process has initialised CUDA.
    Cuda,
    /// The process that used CUDA ended. Launches are counted only while a window may begin.
    CudaEnded {
        /// Number of launches of kernels.
        launches: u64,
        /// Number of launches of kernels that the window names, also inside of graphs; or of labels that it names.
        named: u64,
        /// Number of launches of graphs whose kernels are not counted.
        graphs: u64,
    },
}

impl Request {
    /// Reads the request to this process, if there is one.
    pub fn from_environment() -> Option<Request> {
        serde_json::from_str(&std::env::var(VARIABLE).ok()?).ok()
    }

    /// Returns the value for [`VARIABLE`].
    pub fn to_text(&self) -> String {
        serde_json::to_string(self).unwrap_or_default()
    }

    /// Returns the path of a file of eight bytes that counts signals, in this machine's byte order.
    pub fn signals(&self) -> PathBuf {
        self.exchange.join("signals")
    }

    fn notices_file(&self) -> PathBuf {
        self.exchange.join("notices")
    }

    /// Sends a notice to the command; failures are ignored.
    pub fn notify(&self, notice: &Notice) {
        let file = (std::fs::File::options().append(true).create(true)).open(self.notices_file());
        if let (Ok(mut file), Ok(mut line)) = (file, serde_json::to_vec(notice)) {
            line.push(b'\n');
            // The line is written at once, so that lines of several processes do not mix.
            let _ = file.write_all(&line);
        }
    }

    /// Returns the notices that processes have sent so far.
    pub fn notices(&self) -> Vec<Notice> {
        let text = std::fs::read_to_string(self.notices_file()).unwrap_or_default();
        (text.lines())
            .filter_map(|line| serde_json::from_str(line).ok())
            .collect()
    }

    /// Returns the path of the capture with this number, from 1, where the program gave none: the output, then
    /// `OUT-2`, and so on.
    pub fn output_of(&self, number: u32) -> PathBuf {
        numbered(&self.output, number)
    }
}

/// Returns a path with a number before its extension, or as it is for numbers up to 1.
fn numbered(path: &Path, number: u32) -> PathBuf {
    if number <= 1 {
        return path.to_owned();
    }
    let stem = path.file_stem().unwrap_or_default().to_string_lossy();
    let extension = path
        .extension()
        .map(|e| format!(".{}", e.to_string_lossy()));
    path.with_file_name(format!("{stem}-{number}{}", extension.unwrap_or_default()))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_request_survives_its_text() {
        let request = Request {
            output: "/tmp/a.gapcapture".into(),
            window: Window::Dispatches(3..5),
            keep_outputs: true,
            most_bytes: DEFAULT_MAX_BYTES,
            exchange: "/tmp/x".into(),
        };
        assert_eq!(
            serde_json::from_str::<Request>(&request.to_text()).unwrap(),
            request
        );
        assert_eq!(request.window.to_string(), "dispatches 3..5");
        assert_eq!(request.output_of(1), Path::new("/tmp/a.gapcapture"));
        assert_eq!(request.output_of(2), Path::new("/tmp/a-2.gapcapture"));
    }

    #[test]
    fn what_a_process_says_is_read() {
        let folder = tempfile::tempdir().unwrap();
        let request = Request {
            output: "/tmp/a.gapcapture".into(),
            window: Window::All,
            keep_outputs: false,
            most_bytes: DEFAULT_MAX_BYTES,
            exchange: folder.path().to_owned(),
        };
        assert_eq!(request.notices(), []);
        request.notify(&Notice::Device);
        let ended = Notice::Ended {
            submissions: 2,
            dispatches: 0,
        };
        request.notify(&ended);
        assert_eq!(request.notices(), [Notice::Device, ended]);
    }
}
