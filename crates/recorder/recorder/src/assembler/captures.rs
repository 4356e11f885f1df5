//! Tracks windows: parts of a recording whose start and end the recorded program marks (`start_capture`), and which
//! may become traces of their own.

use super::Assembler;
use gapscope_spool::ids as hook;
use gapscope_timeline_builder::rows;
use gapscope_trace::ids::{ProcessId, ThreadId};
use gapscope_trace::manifest::Loss;
use gapscope_trace::tables::{Marker, MarkerScope, Tables};
use serde::{Deserialize, Serialize};
use std::path::PathBuf;

/// A window that a recorded process marked.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Capture {
    /// The id of the process in the trace.
    pub process: ProcessId,
    /// The thread that started the window.
    pub thread: ThreadId,
    /// The number of the window in its process.
    pub number: u32,
    /// The path of the trace that the program wants of the window; `None` if it wants none.
    pub path: Option<PathBuf>,
    /// The start on the host's clock.
    pub start_ns: i64,
    /// The end; `None` while the window is open.
    pub end_ns: Option<i64>,
    /// The losses before the window.
    pub lost_before: Vec<Loss>,
}

/// The start or the end of a window.
pub(super) struct CaptureRecord<'a> {
    pub thread: hook::Thread,
    pub capture: hook::Capture,
    /// At the start, the path of the trace that the program wants; empty if it wants none.
    pub path: &'a [u8],
    pub at_ns: i64,
}

impl Assembler {
    /// Starts a window.
    pub(super) fn start_capture(&mut self, process: ProcessId, record: CaptureRecord<'_>) {
        self.saw(record.at_ns);
        self.captures.push(Capture {
            process,
            thread: ThreadId(record.thread.0),
            number: record.capture.0,
            path: (!record.path.is_empty()).then(|| path_of(record.path)),
            start_ns: record.at_ns,
            end_ns: None,
            lost_before: self.ledger.losses(),
        });
    }

    /// Ends a window, the last that was started with this number, and writes it as a marker (a labelled time).
    pub(super) fn end_capture(
        &mut self,
        process: ProcessId,
        record: CaptureRecord<'_>,
        tables: &mut Tables,
    ) {
        let CaptureRecord { capture, at_ns, .. } = record;
        let number = capture.0;
        self.saw(at_ns);
        let open = |c: &&mut Capture| c.process == process && c.number == number;
        let Some(capture) = self.captures.iter_mut().rev().find(open) else {
            return;
        };
        capture.end_ns = Some(at_ns);
        let start_ns = capture.start_ns;
        let thread = capture.thread;
        let label = self.labels.named(None, &format!("capture {number}"));
        let duration_ns = at_ns.saturating_sub(start_ns);
        let scope = MarkerScope::Thread;
        let row = rows::marker_row(process, scope, label, Some(start_ns), Some(duration_ns));
        let thread = Some(thread);
        rows::marker(tables, Marker { thread, ..row });
    }

    /// Returns all windows in the order in which they started.
    pub fn captures(&self) -> &[Capture] {
        &self.captures
    }

    /// Returns the processes of the trace with the same pid as `process`: each hook (gapscope's library in a recorded
    /// program) has its own in the trace.
    pub fn same_process(&self, process: ProcessId) -> Vec<ProcessId> {
        let pid = self.processes[process].facts.pid;
        let same = self.processes.iter().filter(|p| p.facts.pid == pid);
        same.map(|p| p.facts.id).collect()
    }

    /// Returns true if all work that the processes submitted until `end_ns` was seen finished.
    pub fn seen_until(&self, processes: &[ProcessId], end_ns: i64) -> bool {
        processes.iter().all(|process| {
            let mut open = self.processes[*process].instances.values();
            !open.any(|instance| instance.submitted_ns <= end_ns)
        })
    }
}

fn path_of(bytes: &[u8]) -> PathBuf {
    use std::os::unix::ffi::OsStrExt;
    PathBuf::from(std::ffi::OsStr::from_bytes(bytes))
}
