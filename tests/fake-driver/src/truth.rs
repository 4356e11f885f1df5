//! Writes the truth log: what the simulated queues really did, one JSON object per line, written before the program
//! can see that the submission ended. Times are host CLOCK_MONOTONIC nanoseconds.
//!
//! Each line has `pid`, `queue_family`, `queue_index`, `submission` (ordinal on its queue), `kind`, `start_ns`, `end_ns`.
//! - `submission`: also `submitted_ns`, the submit call, and `command_buffers`, their count. It starts when its waits and
//!   the submit latency are over, even if the queue is still busy.
//! - A command also has `command_buffer` (ordinal in its submission) and, where they apply, `groups`, `bytes`, `kernel` (the
//!   entry point of the bound pipeline). Kinds: `dispatch`, `draw`, `render_pass`, `copy`, `fill`, `update`, `query_copy`,
//!   `query_reset`, `timestamp`, `barrier`.

use std::fmt::Write as _;
use std::fs::{File, OpenOptions};
use std::io::Write as _;
use std::sync::OnceLock;

fn log() -> Option<&'static File> {
    static LOG: OnceLock<Option<File>> = OnceLock::new();
    LOG.get_or_init(|| {
        let path = std::env::var_os("FAKE_VK_TRUTH")?;
        OpenOptions::new().create(true).append(true).open(path).ok()
    })
    .as_ref()
}

/// The lines of one submission, kept until its end to be written at once.
pub struct Lines {
    prefix: String,
    text: String,
}

/// The facts of a command's line besides its times.
#[derive(Default)]
pub struct LoggedCommand<'a> {
    pub kind: &'static str,
    pub groups: Option<[u32; 3]>,
    pub bytes: Option<u64>,
    pub kernel: Option<&'a str>,
}

impl LoggedCommand<'_> {
    pub fn kind(kind: &'static str) -> Self {
        Self {
            kind,
            ..Self::default()
        }
    }
}

impl Lines {
    /// `None` where no truth log is wanted.
    pub fn new(family: u32, queue: u32, submission: u64) -> Option<Self> {
        log()?;
        let pid = std::process::id();
        let prefix = format!(
            r#"{{"pid":{pid},"queue_family":{family},"queue_index":{queue},"submission":{submission}"#
        );
        Some(Self {
            prefix,
            text: String::new(),
        })
    }

    pub fn submission(
        &mut self,
        submitted_ns: u64,
        (start_ns, end_ns): (u64, u64),
        command_buffers: usize,
    ) {
        let prefix = &self.prefix;
        let _ = writeln!(
            self.text,
            r#"{prefix},"kind":"submission","submitted_ns":{submitted_ns},"start_ns":{start_ns},"end_ns":{end_ns},"command_buffers":{command_buffers}}}"#
        );
    }

    pub fn command(
        &mut self,
        command_buffer: usize,
        command: &LoggedCommand<'_>,
        (start_ns, end_ns): (u64, u64),
    ) {
        let Self { prefix, text } = self;
        let kind = command.kind;
        let _ = write!(
            text,
            r#"{prefix},"command_buffer":{command_buffer},"kind":"{kind}","start_ns":{start_ns},"end_ns":{end_ns}"#
        );
        if let Some([x, y, z]) = command.groups {
            let _ = write!(text, r#","groups":[{x},{y},{z}]"#);
        }
        if let Some(bytes) = command.bytes {
            let _ = write!(text, r#","bytes":{bytes}"#);
        }
        if let Some(kernel) = command.kernel {
            // Rust's `escape_default` does not write JSON, but agrees with it for the characters of entry points.
            let _ = write!(text, r#","kernel":"{}""#, kernel.escape_default());
        }
        text.push_str("}\n");
    }

    pub fn write(self) {
        if let Some(mut file) = log() {
            let _ = file.write_all(self.text.as_bytes());
        }
    }
}
