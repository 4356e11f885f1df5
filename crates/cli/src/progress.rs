//! Shows the progress of a command as a line on stderr, if stderr is a terminal; that of a recording only where the user asks for it,
//! because the recorded program may use the terminal at any moment.

#[cfg(target_os = "linux")]
use crate::{page, terminal_line::TerminalLine};
#[cfg(target_os = "linux")]
use gapscope_recorder::{Progress, Session};
use gapscope_timeline::quantity as number;
use indicatif::{ProgressBar, ProgressDrawTarget, ProgressStyle};
use std::io::{self, Write};
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::mpsc::{self, RecvTimeoutError};
use std::time::{Duration, Instant};

/// The time between two redraws of the line.
#[cfg(target_os = "linux")]
const REDRAW_INTERVAL: Duration = Duration::from_millis(250);
/// The time between two checks for the end of the work, so that the report does not wait for the line.
const POLL_INTERVAL: Duration = Duration::from_millis(10);

/// Returns a line on stderr without a message, which is hidden if stderr is not a terminal.
pub fn line() -> ProgressBar {
    let style = ProgressStyle::with_template("{wide_msg}");
    let bar = ProgressBar::with_draw_target(None, ProgressDrawTarget::stderr());
    bar.with_style(style.expect("the template is constant"))
}

/// Returns a line for the progress of a recording that is about to begin, or none, with a note, where there is no terminal for it.
#[cfg(target_os = "linux")]
pub fn line_of_recording() -> Option<TerminalLine> {
    let line = TerminalLine::beside_program();
    line.inspect_err(|reason| page::note(format!("no progress is drawn: {reason}")))
        .ok()
}

/// Shows the progress of a recording until it is finished.
#[cfg(target_os = "linux")]
pub fn show(session: &Session, mut line: TerminalLine) {
    let mut drawn = Instant::now();
    while !session.is_finished() {
        if drawn.elapsed() >= REDRAW_INTERVAL {
            line.draw(&text(&session.progress()));
            drawn = Instant::now();
        }
        std::thread::sleep(POLL_INTERVAL);
    }
}

/// The time that work must take before a line is shown.
const MIN_SHOWN: Duration = Duration::from_secs(1);

/// A count of the bytes that were written so far.
#[derive(Debug, Default)]
pub struct WrittenBytes(AtomicU64);

impl WrittenBytes {
    /// Returns a writer to `out` that counts its bytes.
    pub fn count<W: Write + Send>(&self, out: W) -> impl Write + Send {
        CountingWriter { out, bytes: self }
    }
}

/// A writer that adds the bytes that it writes to a count.
struct CountingWriter<'a, W> {
    out: W,
    bytes: &'a WrittenBytes,
}

impl<W: Write> Write for CountingWriter<'_, W> {
    fn write(&mut self, buffer: &[u8]) -> io::Result<usize> {
        let written = self.out.write(buffer)?;
        self.bytes.0.fetch_add(written as u64, Ordering::Relaxed);
        Ok(written)
    }

    fn flush(&mut self) -> io::Result<()> {
        self.out.flush()
    }
}

/// Runs work that writes, with a line about the bytes written if it takes long.
pub fn while_working<T: Send>(work: impl FnOnce(&WrittenBytes) -> T + Send) -> T {
    let bytes = WrittenBytes::default();
    let shown = || {
        let written = number::bytes(bytes.0.load(Ordering::Relaxed));
        format!("{written} written")
    };
    while_showing(shown, || work(&bytes))
}

/// Runs work on `all` items, with a line about the items done if it takes long. The work calls the function that it is
/// given with the number of items that are done.
pub fn while_counting<T: Send>(
    what: &str,
    all: usize,
    work: impl FnOnce(&dyn Fn(usize)) -> T + Send,
) -> T {
    let done = AtomicU64::new(0);
    let shown = || {
        let count = number::count(done.load(Ordering::Relaxed));
        format!("{count} of {} {what}", number::count(all as u64))
    };
    while_showing(shown, || {
        work(&|count| done.store(count as u64, Ordering::Relaxed))
    })
}

/// A count of the runs and dispatches that were read.
#[derive(Debug, Default)]
pub struct RunsRead {
    runs: AtomicU64,
    dispatches: AtomicU64,
}

impl RunsRead {
    pub fn add_run(&self) {
        self.runs.fetch_add(1, Ordering::Relaxed);
    }

    pub fn add_dispatches(&self, count: usize) {
        self.dispatches.fetch_add(count as u64, Ordering::Relaxed);
    }

    /// Returns the line of a comparison that reads `all` runs.
    fn shown(&self, all: usize) -> String {
        let [runs, dispatches] = [&self.runs, &self.dispatches].map(|n| n.load(Ordering::Relaxed));
        format!(
            "{} of {} read, {} so far",
            number::count(runs),
            number::count_of(all as u64, "run", "runs"),
            number::count_of(dispatches, "dispatch", "dispatches")
        )
    }
}

/// Runs work that reads `all` runs, with a line about the runs read if it takes long.
pub fn while_reading_runs<T: Send>(all: usize, work: impl FnOnce(&RunsRead) -> T + Send) -> T {
    let read = RunsRead::default();
    while_showing(|| read.shown(all), || work(&read))
}

/// Runs work that reads files and reports the bytes read and all bytes, with a line if it takes long.
pub fn while_reading<T: Send>(work: impl FnOnce(gapscope_import::Progress) -> T + Send) -> T {
    let (done, all) = (AtomicU64::new(0), AtomicU64::new(0));
    let shown = || {
        let [done, all] = [&done, &all].map(|bytes| number::bytes(bytes.load(Ordering::Relaxed)));
        format!("{done} of {all} read")
    };
    while_showing(shown, || {
        work(&|read_bytes, all_bytes| {
            done.store(read_bytes, Ordering::Relaxed);
            all.store(all_bytes, Ordering::Relaxed);
        })
    })
}

/// Runs work, with a line that names `what` if it takes long.
pub fn while_running<T: Send>(what: &str, work: impl FnOnce() -> T + Send) -> T {
    let begin = Instant::now();
    while_showing(|| format!("{what}  {} s", begin.elapsed().as_secs()), work)
}

/// Runs work, with a changing line once it has taken long.
fn while_showing<T: Send>(shown: impl Fn() -> String, work: impl FnOnce() -> T + Send) -> T {
    let bar = line();
    if bar.is_hidden() {
        return work();
    }
    let begin = Instant::now();
    let result = std::thread::scope(|scope| {
        // The channel closes at the end of the work, even when that panics.
        let (working, ended) = mpsc::channel::<()>();
        let worker = scope.spawn(move || {
            let _working = working;
            work()
        });
        while ended.recv_timeout(POLL_INTERVAL) == Err(RecvTimeoutError::Timeout) {
            if begin.elapsed() >= MIN_SHOWN {
                bar.set_message(format!("gapscope  {}", shown()));
            }
        }
        worker.join()
    });
    bar.finish_and_clear();
    result.unwrap_or_else(|panic| std::panic::resume_unwind(panic))
}

/// Returns the line of a recording.
#[cfg(target_os = "linux")]
fn text(progress: &Progress) -> String {
    let seconds = progress.elapsed.as_secs();
    let elapsed = format!("{}:{:02}", seconds / 60, seconds % 60);
    if !progress.recording {
        return format!("gapscope  {elapsed}  waiting to record");
    }
    if progress.processes == 0 {
        return format!("gapscope  {elapsed}  no Vulkan yet");
    }
    let busy = match progress.gpu_busy_share {
        Some(share) => number::share(share),
        None => "–".to_owned(),
    };
    format!(
        "gapscope  {elapsed}  {}  GPU busy {busy}  {}",
        number::count_of(progress.dispatches, "dispatch", "dispatches"),
        number::bytes(progress.bytes_written),
    )
}

#[cfg(all(test, target_os = "linux"))]
mod tests {
    use super::*;

    #[test]
    fn the_line_of_a_comparison_counts_runs_and_dispatches() {
        let read = RunsRead::default();
        assert_eq!(read.shown(2), "0 of 2 runs read, 0 dispatches so far");
        read.add_dispatches(65_536);
        read.add_dispatches(1_000);
        read.add_run();
        assert_eq!(read.shown(2), "1 of 2 runs read, 66,536 dispatches so far");
    }

    #[test]
    fn the_line_says_what_is_known() {
        let mut progress = Progress {
            elapsed: Duration::from_secs(63),
            recording: true,
            processes: 1,
            dispatches: 12_345,
            gpu_busy_share: Some(0.372),
            bytes_written: 5 << 20,
        };
        assert_eq!(
            text(&progress),
            "gapscope  1:03  12,345 dispatches  GPU busy 37.2 %  5.00 MiB"
        );
        progress.gpu_busy_share = None;
        assert!(text(&progress).contains("GPU busy –"));
        progress.processes = 0;
        assert_eq!(text(&progress), "gapscope  1:03  no Vulkan yet");
        progress.recording = false;
        assert_eq!(text(&progress), "gapscope  1:03  waiting to record");
    }
}
