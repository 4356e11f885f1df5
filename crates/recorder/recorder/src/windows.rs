//! Writes windows of a recording (parts of the program's run, from a start to an end) as traces of their own. The
//! program begins and ends a window by `start_capture` and `stop_capture` of the SDK, so that users know it as a
//! capture. The session (the process of `gapscope record`) calls [`Windows::write`] in each round, and
//! [`Windows::remain_alone`] at the end when it recorded windows only.

use crate::Error;
use crate::assembler::Capture;
use crate::drain::Drain;
use gapscope_files::{ContainedPath, move_new};
use gapscope_model::LossKind;
use gapscope_trace::manifest::Loss;
use gapscope_trace::writer::SOURCES_FOLDER;
use gapscope_trace::{Trace, TraceWriter};
use std::collections::HashSet;
use std::ffi::{OsStr, OsString};
use std::fs;
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

/// The longest wait for the work of a window after its end.
const MAX_WAIT: Duration = Duration::from_secs(10);

/// A window that the session has finished.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct WrittenWindow {
    /// The trace of the window; `None` when it was not written because the program named no path.
    pub path: Option<PathBuf>,
    /// The reason why the trace was not written.
    pub failure: Option<String>,
}

/// The windows of one recording.
#[derive(Debug, Default)]
pub struct Windows {
    /// The finished windows, in the order in which they started.
    done: Vec<WrittenWindow>,
    /// Time at which the session saw the end of the first window that is not finished.
    ended: Option<Instant>,
}

/// The traces that a recording of windows alone leaves.
#[derive(Debug, PartialEq, Eq)]
pub enum RemainingTraces {
    /// The recording's own trace, from the first start to the last end.
    Own { start_ns: i64, end_ns: i64 },
    /// The traces of the windows without the recording's own; this is the first of them.
    Windows(PathBuf),
}

impl Windows {
    /// Writes the windows that are complete, in their order, and tells their processes, which wait for that. With
    /// `last` nothing more comes, and every window that is still open ends at `end_ns`.
    pub fn write(&mut self, drain: &mut Drain, end_ns: i64, last: bool) {
        while let Some(window) = drain.assembler.captures().get(self.done.len()).cloned() {
            let Some(end_ns) = window.end_ns.or(last.then_some(end_ns)) else {
                return;
            };
            if !last && !self.is_whole(drain, &window, end_ns) {
                return;
            }
            self.ended = None;
            let failure = window
                .path
                .as_deref()
                .and_then(|path| write(drain, &window, path, end_ns).err())
                .map(|error| error.to_string());
            if let Some(failure) = &failure {
                drain
                    .assembler
                    .lose(LossKind::Captures, 1, format!("not written: {failure}"));
            }
            drain.window_done(window.process, window.number, failure.is_some());
            self.done.push(WrittenWindow {
                path: window.path,
                failure,
            });
        }
    }

    /// Returns true when all of a window has been read from the spool, or its work has been waited for long enough.
    fn is_whole(&mut self, drain: &Drain, window: &Capture, end_ns: i64) -> bool {
        let Some(ended) = self.ended else {
            // Events that other hooks of the process wrote before the end may come with the next drain.
            self.ended = Some(Instant::now());
            return false;
        };
        let processes = drain.assembler.same_process(window.process);
        drain.assembler.seen_until(&processes, end_ns) || ended.elapsed() >= MAX_WAIT
    }

    /// Ends a recording of windows alone. Every window becomes a trace; what lies between them, where nothing was
    /// recorded, is in none. Windows that name no path get the recording's: `OUT`, `OUT-2`, …, as far as these names
    /// are free. Returns which traces are left; `None` when there was no window. The recording's own trace is left
    /// when there is a single window, which names no path, or when a window could not be written.
    pub fn remain_alone(&mut self, drain: &mut Drain, end_ns: i64) -> Option<RemainingTraces> {
        let windows = drain.assembler.captures().to_vec();
        let start_ns = windows.iter().map(|c| c.start_ns).min()?;
        let end_of = |c: &Capture| c.end_ns.unwrap_or(end_ns);
        let last_ns = windows.iter().map(end_of).max()?;
        let own = RemainingTraces::Own {
            start_ns,
            end_ns: last_ns,
        };
        let unnamed = windows.iter().filter(|c| c.path.is_none()).count();
        if (windows.len() == 1 && unnamed == 1) || self.done.iter().any(|d| d.failure.is_some()) {
            return Some(own);
        }
        let output = drain.folder().to_owned();
        // The first trace takes the place of the recording's own at the end.
        let first = beside(&output);
        let mut made: Vec<PathBuf> = Vec::new();
        let unnamed_windows = windows.iter().filter(|c| c.path.is_none());
        let mut free = (2..).map(|n| numbered(&output, n));
        for window in unnamed_windows {
            let path = match made.is_empty() {
                true => first.clone(),
                false => free
                    .find(|path| path.symlink_metadata().is_err())
                    .unwrap_or_default(),
            };
            if let Err(failure) = write(drain, window, &path, end_of(window)) {
                for path in made {
                    let _ = fs::remove_dir_all(path);
                }
                let lost = format!("not written: {failure}");
                drain.assembler.lose(LossKind::Captures, 1, lost);
                return Some(own);
            }
            made.push(path);
        }
        if fs::remove_dir_all(&output).is_err()
            || (unnamed > 0 && move_new(&first, &output).is_err())
        {
            // A trace that could not be moved is whole where it is.
            return Some(RemainingTraces::Windows(
                made.into_iter().next().unwrap_or(output),
            ));
        }
        if let Some(moved) = made.first_mut() {
            *moved = output;
        }
        let unnamed = windows.iter().zip(&mut self.done);
        let unnamed = unnamed.filter(|(window, _)| window.path.is_none());
        for ((_, done), path) in unnamed.zip(made) {
            done.path = Some(path);
        }
        self.done
            .first()
            .and_then(|d| d.path.clone())
            .map(RemainingTraces::Windows)
    }

    /// Returns the finished windows.
    pub fn done(&self) -> &[WrittenWindow] {
        &self.done
    }
}

/// The reason why the trace of a window was not written.
#[derive(Debug, thiserror::Error)]
enum WindowError {
    #[error(transparent)]
    Recording(#[from] Error),
    #[error("{}: it exists and is not overwritten", .0.display())]
    Exists(PathBuf),
    #[error("{}: {source}", path.display())]
    Unwritable { path: PathBuf, source: Error },
}

/// Writes a window, which ends at `end_ns`, to `path`, which must not exist.
fn write(drain: &mut Drain, window: &Capture, path: &Path, end_ns: i64) -> Result<(), WindowError> {
    let trace = trace(drain, window, end_ns)?;
    write_to(&trace, drain.folder(), path)
}

/// Returns the trace of a window: the rows of its processes in its time, and the losses since its start.
fn trace(drain: &mut Drain, window: &Capture, end_ns: i64) -> Result<Trace, Error> {
    let losses = drain.manifest().losses;
    let mut whole = drain.trace_so_far()?;
    let processes = drain.assembler.same_process(window.process);
    whole.manifest.losses = since(&window.lost_before, losses);
    Ok(whole.window(&processes, window.start_ns, end_ns))
}

/// Returns the losses that were added after `before`.
fn since(before: &[Loss], now: Vec<Loss>) -> Vec<Loss> {
    let mut new = now;
    for loss in &mut new {
        let known = before
            .iter()
            .find(|b| b.kind == loss.kind && b.reason == loss.reason);
        loss.count -= known.map_or(0, |b| b.count.min(loss.count));
    }
    new.retain(|loss| loss.count > 0);
    new
}

/// Writes a trace beside `path` and moves it there when it is whole, so that nobody sees a part of a trace.
fn write_to(trace: &Trace, recording: &Path, path: &Path) -> Result<(), WindowError> {
    if path.symlink_metadata().is_ok() {
        return Err(WindowError::Exists(path.to_owned()));
    }
    let beside = beside(path);
    let written = write_trace(trace, recording, &beside)
        .map_err(|source| WindowError::Unwritable {
            path: path.to_owned(),
            source,
        })
        .and_then(|()| Ok(move_new(&beside, path).map_err(Error::io(path))?));
    if written.is_err() {
        let _ = fs::remove_dir_all(&beside);
    }
    written
}

/// Writes a trace into a new folder, with the sources of its kernels from the folder `recording`.
fn write_trace(trace: &Trace, recording: &Path, folder: &Path) -> Result<(), Error> {
    let mut writer = TraceWriter::create(folder)?;
    *writer.tables_mut() = trace.tables.clone();
    let wanted: HashSet<&str> = trace
        .tables
        .kernels
        .source
        .iter()
        .flatten()
        .map(|source| &**source)
        .collect();
    // A source that cannot be read is missing, which readers report; the times do not depend on it.
    let sources = ContainedPath::new(recording, SOURCES_FOLDER);
    for name in sources.names().unwrap_or_default() {
        let path = Path::new(&name);
        let part = |part: Option<&OsStr>| part.and_then(OsStr::to_str).map(str::to_owned);
        if let (Some(hash), Some(extension)) = (part(path.file_stem()), part(path.extension()))
            && wanted.contains(hash.as_str())
            && let Ok(bytes) = sources.join(path).read(u64::MAX)
        {
            writer.add_source(&hash, &extension, &bytes)?;
        }
    }
    Ok(writer.finish(&trace.manifest)?)
}

/// Returns `OUT-n` with the extension of `OUT`.
fn numbered(output: &Path, n: usize) -> PathBuf {
    let mut name = output.file_stem().unwrap_or_default().to_owned();
    name.push(format!("-{n}"));
    if let Some(extension) = output.extension() {
        name.push(".");
        name.push(extension);
    }
    output.with_file_name(name)
}

/// Returns a hidden name beside `path` with this process's id, which nothing else uses.
fn beside(path: &Path) -> PathBuf {
    let mut name = OsString::from(".");
    name.push(path.file_name().unwrap_or_default());
    name.push(format!(".{}", std::process::id()));
    path.with_file_name(name)
}
