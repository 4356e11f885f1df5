//! Captures through the hook that `gapscope record` or `gapscope capture` loads into the process, for Vulkan and CUDA.
//! The session, the process of that command, writes a trace of the window, or the hook a capture that can be replayed.

use super::{Backend, CaptureDevice, Destination, NotCaptured, Running, WaitError};
use crate::environment::{Session, session};
use gapscope_spool::interface::{Hook, Hooks, Status};
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::{Duration, Instant};

/// The maximum time for the work of a window to arrive at the hook after the device was waited for.
const ARRIVES_WITHIN: Duration = Duration::from_secs(10);
/// The maximum time for the session to write a capture.
const WRITTEN_WITHIN: Duration = Duration::from_secs(60);

/// The program's function that waits until the device has finished all submitted work.
type Wait = dyn Fn() -> Result<(), WaitError> + Send + Sync;

/// A Vulkan or CUDA device of this process that can be waited for.
///
/// ```
/// use gapscope_sdk::{Capture, capture::{Hooked, WaitError}};
///
/// # struct Device;
/// # impl Device { fn wait_idle(&self) -> Result<(), WaitError> { Ok(()) } }
/// # let device = std::sync::Arc::new(Device);
/// // With ash: `move || unsafe { device.device_wait_idle() }.map_err(WaitError::device)`, while no other thread uses
/// // the device's queues; with cudarc: `move || context.synchronize().map_err(WaitError::device)`.
/// let hooked = Hooked::new(move || device.wait_idle());
/// match Capture::from_env(&hooked) {
///     Ok(mut capture) => drop(capture.begin()),
///     Err(why) => println!("{why}"),
/// }
/// ```
#[derive(Clone)]
pub struct Hooked(Arc<HookBackend>);

/// The backend behind [`Hooked`].
struct HookBackend {
    /// The program's way to wait; without it, only the hooks see the end of work.
    wait: Option<Box<Wait>>,
}

impl Hooked {
    /// Creates a device from a function that waits until everything submitted has finished, or returns why it cannot.
    ///
    /// ```
    /// # use gapscope_sdk::capture::{Hooked, WaitError};
    /// # fn wait_for_the_device() -> Result<(), WaitError> { Ok(()) }
    /// let device = Hooked::new(wait_for_the_device);
    /// ```
    pub fn new(wait: impl Fn() -> Result<(), WaitError> + Send + Sync + 'static) -> Hooked {
        Hooked(Arc::new(HookBackend {
            wait: Some(Box::new(wait)),
        }))
    }

    /// Returns a device that stands for all devices of the hooks in this process. Work that was submitted before a
    /// window started does not belong to the window, whose end waits until the hooks have seen all its work finished.
    ///
    /// ```
    /// use gapscope_sdk::Capture;
    /// use gapscope_sdk::capture::{Destination, Hooked, NotCaptured};
    ///
    /// let capture = Capture::to(&Hooked::any(), Destination::from_path("step.gapscope"));
    /// assert_eq!(capture.unwrap_err(), NotCaptured::NoHook, "this is not run under `gapscope record`");
    /// ```
    pub fn any() -> Hooked {
        Hooked(Arc::new(HookBackend { wait: None }))
    }
}

impl CaptureDevice for Hooked {
    fn backend(&self) -> Arc<dyn Backend> {
        let backend: Arc<HookBackend> = Arc::clone(&self.0);
        backend
    }
}

/// Returns the hooks of this process that a session records.
fn recorded() -> Vec<Hook> {
    let hooks = Hooks::loaded();
    hooks
        .iter()
        .filter(|hook| matches!(hook.state(), Status::Done | Status::Off))
        .copied()
        .collect()
}

/// Says what an answer of a hook means, for messages.
fn reason(status: Status) -> String {
    match status {
        Status::NotRecorded => "no session records this process",
        Status::AlreadyCapturing => "another capture of this process is open",
        Status::NotCapturing => "it does not know this capture",
        Status::BadText => "the path is too long for it",
        Status::NotWritten if session() == Some(Session::Capture) => {
            "no work that can be replayed was submitted in the window; what gapscope capture printed says more"
        }
        Status::NotWritten => "the session could not write it; its standard error says why",
        Status::NoSession => "the session that recorded this process is gone",
        Status::TimedOut => {
            "work of the capture was still running 10 s after the device was waited for"
        }
        Status::Internal => "internal error",
        _ => "it gave an answer that this version does not know",
    }
    .to_owned()
}

/// Returns the path that a session writes a capture to; `None` if the name does not fit.
fn output_of(session: Option<Session>, path: &Path) -> Option<PathBuf> {
    let extension = path.extension()?.to_str()?.to_ascii_lowercase();
    match (session, &*extension) {
        (Some(Session::Capture), "gapscope" | "gapcapture") => {
            Some(path.with_extension("gapcapture"))
        }
        (_, "gapscope") => Some(path.to_owned()),
        _ => None,
    }
}

/// Returns the error for a capture that a hook did not stop.
fn not_stopped(status: Status) -> NotCaptured {
    NotCaptured::Stop {
        backend: "gapscope",
        reason: reason(status),
    }
}

impl Backend for HookBackend {
    fn name(&self) -> &'static str {
        "gapscope"
    }

    fn extension(&self) -> &'static str {
        "gapscope"
    }

    /// Under `gapscope capture`, a name for a trace becomes that of a capture.
    fn output(&self, path: &Path) -> Option<PathBuf> {
        output_of(session(), path)
    }

    /// A trace of a window needs little space: some bytes for each dispatch.
    fn least_free_bytes(&self) -> u64 {
        64 << 20
    }

    fn ready(&self, _: &Destination) -> Result<(), NotCaptured> {
        if !recorded().is_empty() {
            return Ok(());
        }
        match session() {
            Some(Session::Capture) if !Hooks::loaded().is_empty() => Err(NotCaptured::Gate {
                backend: "gapscope capture",
                reason: "it was told which window to capture: leave its option for the window out"
                    .to_owned(),
            }),
            Some(_) => Err(NotCaptured::NoGpuYet),
            None => Err(NotCaptured::NoHook),
        }
    }

    fn waited_since(&self, start_ns: u64) {
        // One hook is enough: the rows of a process are of all its hooks.
        if let Some(hook) = recorded().first() {
            hook.own_time(i64::try_from(start_ns).unwrap_or(-1));
        }
    }

    fn synchronise(&self) -> Result<(), NotCaptured> {
        match &self.wait {
            Some(wait) => Ok(wait()?),
            None => Ok(()),
        }
    }

    fn start(&self, destination: &Destination) -> Result<Box<dyn Running>, NotCaptured> {
        let mut window = Window {
            open: Vec::new(),
            path: destination.path().map(PathBuf::from),
            written_by: None,
        };
        for hook in recorded() {
            // All hooks of a process record the window, and the session writes it once.
            let first = window.open.is_empty();
            let path = destination.path().filter(|_| first);
            match hook.start_capture(path) {
                Ok(capture) => window.open.push(HookCapture { hook, capture }),
                // Hooks that have started stop when the window is dropped.
                Err(status) => {
                    return Err(NotCaptured::Start {
                        backend: "gapscope",
                        reason: reason(status),
                    });
                }
            }
        }
        if window.open.is_empty() {
            return Err(NotCaptured::NoHook);
        }
        Ok(Box::new(window))
    }
}

/// A hook with the number that it gave to its capture.
#[derive(Clone, Copy)]
struct HookCapture {
    hook: Hook,
    capture: u32,
}

/// An open window: the captures that each hook has started.
struct Window {
    /// The captures that have not been stopped, the one with the path first.
    open: Vec<HookCapture>,
    /// The path of the trace; `None` for [`Destination::Live`].
    path: Option<PathBuf>,
    /// The hook through which the session is told to write the capture.
    written_by: Option<HookCapture>,
}

impl Running for Window {
    fn stop(&mut self) -> Result<(), NotCaptured> {
        let mut outcome = Ok(());
        self.written_by = self.open.first().copied();
        for open in &self.open {
            let flushed = open.hook.flush(ARRIVES_WITHIN);
            if let status @ (Status::TimedOut | Status::Internal) = flushed {
                outcome = Err(not_stopped(status));
            }
        }
        // The hook with the path is ended last, when the session has seen the ends of the others.
        while let Some(HookCapture { hook, capture }) = self.open.pop() {
            match hook.stop_capture(capture) {
                Status::Done => {}
                status => outcome = Err(not_stopped(status)),
            }
        }
        outcome
    }

    fn finished(&mut self) -> Result<(), NotCaptured> {
        let (Some(HookCapture { hook, capture }), Some(path)) = (self.written_by, &self.path)
        else {
            return Ok(());
        };
        let started = Instant::now();
        loop {
            let reason = match hook.capture_state(capture) {
                Status::Done => return Ok(()),
                Status::Pending if started.elapsed() < WRITTEN_WITHIN => {
                    std::thread::sleep(Duration::from_millis(2));
                    continue;
                }
                Status::Pending => "the session has not written it in 60 s".to_owned(),
                status => reason(status),
            };
            let path = path.clone();
            return Err(NotCaptured::NotWritten { path, reason });
        }
    }
}

impl Drop for Window {
    fn drop(&mut self) {
        for HookCapture { hook, capture } in self.open.drain(..) {
            hook.stop_capture(capture);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_command_decides_what_a_capture_is_called() {
        let output = |session, path: &str| {
            let output = output_of(session, Path::new(path));
            output.map(|path| path.to_str().unwrap().to_owned())
        };
        let (record, capture) = (Some(Session::Record), Some(Session::Capture));
        for (session, path, expected) in [
            (record, "a.gapscope", Some("a.gapscope")),
            (None, "a.gapscope", Some("a.gapscope")),
            (capture, "a.gapscope", Some("a.gapcapture")),
            (capture, "b/a.gapcapture", Some("b/a.gapcapture")),
            (record, "a.gapcapture", None),
            (capture, "a.gputrace", None),
            (capture, "a", None),
        ] {
            assert_eq!(output(session, path).as_deref(), expected, "{path}");
        }
    }
}
