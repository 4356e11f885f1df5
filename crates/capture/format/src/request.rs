//! What `gapscope capture` asks of the layer inside the program, and what the layer says in return.

use std::fmt;
use std::io::Write;
use std::ops::Range;
use std::path::{Path, PathBuf};

use serde::{Deserialize, Serialize};

/// The environment variable that holds a [`Request`], as JSON.
pub const VARIABLE: &str = "GAPSCOPE_CAPTURE_REQUEST";

/// Which window to capture, and where to.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Request {
    /// The folder of the capture, an absolute path. It does not exist.
    pub output: PathBuf,
    /// The window.
    pub window: Window,
    /// Keep what the window wrote, and not its hash alone.
    #[serde(default)]
    pub keep_outputs: bool,
    /// A folder in which command and layer exchange files; it outlives the program.
    pub exchange: PathBuf,
}

/// Which part of the program's work.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Window {
    /// All of it.
    All,
    /// Calls that hand work to a queue, counted from 0, without the end.
    Submissions(Range<u64>),
    /// Dispatches, counted from 0, without the end: the whole submissions that contain them.
    Dispatches(Range<u64>),
    /// The first run of submissions under a label that contains this text.
    Label(String),
    /// What the program captures itself, through the SDK.
    Program,
    /// From one signal to the next.
    Signal,
}

impl fmt::Display for Window {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Window::All => f.write_str("all"),
            Window::Submissions(range) => write!(f, "submissions {}..{}", range.start, range.end),
            Window::Dispatches(range) => write!(f, "dispatches {}..{}", range.start, range.end),
            Window::Label(text) => write!(f, "label {text}"),
            Window::Program => f.write_str("start_capture"),
            Window::Signal => f.write_str("signal"),
        }
    }
}

/// What a process says that was asked to capture: a line of the file [`Request::notices`].
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Notice {
    /// It has a device.
    Device,
    /// It writes a capture, to this folder.
    Begun(PathBuf),
    /// A capture that it wanted to begin could not be written, for this reason.
    NotBegun(String),
    /// A capture broke off: what its end says, which may not fit on its disk.
    BrokenOff {
        /// Its folder.
        capture: PathBuf,
        /// Why.
        reason: String,
    },
    /// It ended, or destroyed its device, after so many submissions and dispatches; dispatches are counted if the window is one of them.
    Ended {
        /// Calls that handed work to a queue.
        submissions: u64,
        /// Dispatches in them.
        dispatches: u64,
    },
}

impl Request {
    /// The request to this process, if there is one.
    pub fn of_environment() -> Option<Request> {
        serde_json::from_str(&std::env::var(VARIABLE).ok()?).ok()
    }

    /// The value of [`VARIABLE`].
    pub fn to_text(&self) -> String {
        serde_json::to_string(self).unwrap_or_default()
    }

    /// A file of eight bytes: how often a signal has come, of this machine's order of bytes.
    pub fn signals(&self) -> PathBuf {
        self.exchange.join("signals")
    }

    fn notices_file(&self) -> PathBuf {
        self.exchange.join("notices")
    }

    /// Says something to the command. What cannot be said is not said.
    pub fn notify(&self, notice: &Notice) {
        let file = (std::fs::File::options().append(true).create(true)).open(self.notices_file());
        if let (Ok(mut file), Ok(mut line)) = (file, serde_json::to_vec(notice)) {
            line.push(b'\n');
            // One write, so that lines of several processes do not mix.
            let _ = file.write_all(&line);
        }
    }

    /// What processes have said.
    pub fn notices(&self) -> Vec<Notice> {
        let text = std::fs::read_to_string(self.notices_file()).unwrap_or_default();
        (text.lines())
            .filter_map(|line| serde_json::from_str(line).ok())
            .collect()
    }

    /// Where the capture with this number, from 1, goes that the program gave no path for: the output, then `OUT-2`, and so on.
    pub fn output_of(&self, number: u32) -> PathBuf {
        numbered(&self.output, number)
    }
}

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
