//! Passes the user's signals on to the running tool, while gapscope lives on to finish the trace.

use crate::Error;
use rustix::process::{Pid, Signal, kill_process};
use signal_hook::consts::{SIGHUP, SIGINT, SIGTERM};
use std::io;
use std::path::Path;
use std::process::{Child, ExitStatus};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

/// The time between two looks at the tool and the signals.
const PAUSE: Duration = Duration::from_millis(20);

/// The end of a tool.
#[derive(Debug, Clone, Copy)]
pub(crate) struct ToolExit {
    pub status: ExitStatus,
    /// A signal was passed on to it.
    pub interrupted: bool,
}

/// Handlers of signals, which are taken as long as this value lives.
#[derive(Debug)]
pub(crate) struct Interrupts {
    /// Whether a signal came that was not asked about yet.
    came: Arc<AtomicBool>,
    handlers: Vec<signal_hook::SigId>,
}

impl Interrupts {
    /// Takes SIGINT, SIGTERM and SIGHUP, which then end this process no more.
    pub fn take() -> io::Result<Interrupts> {
        let came = Arc::new(AtomicBool::new(false));
        let mut handlers = Vec::new();
        for signal in [SIGINT, SIGTERM, SIGHUP] {
            handlers.push(signal_hook::flag::register(signal, came.clone())?);
        }
        Ok(Interrupts { came, handlers })
    }

    /// Returns whether a signal came since the last call.
    pub fn came(&self) -> bool {
        self.came.swap(false, Ordering::Relaxed)
    }

    /// Waits for a tool. A signal is passed on to it as one SIGINT, which ends a recording in order.
    pub fn wait(&self, child: &mut Child, program: &Path) -> Result<ToolExit, Error> {
        let mut interrupted = false;
        loop {
            if let Some(status) = child.try_wait().map_err(Error::io(program))? {
                return Ok(ToolExit {
                    status,
                    interrupted,
                });
            }
            if self.came() && !interrupted {
                interrupted = true;
                if let Some(pid) = i32::try_from(child.id()).ok().and_then(Pid::from_raw) {
                    // A failure means that the tool has just ended by itself.
                    let _ = kill_process(pid, Signal::INT);
                }
            }
            std::thread::sleep(PAUSE);
        }
    }
}

impl Drop for Interrupts {
    fn drop(&mut self) {
        for handler in self.handlers.drain(..) {
            signal_hook::low_level::unregister(handler);
        }
    }
}
