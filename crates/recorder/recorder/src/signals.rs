//! Handles signals to gapscope while it records.
//!
//! Ctrl-C reaches every process of the terminal's foreground group, which includes the recorded program. The program
//! decides what happens, and the session only survives the signal. A signal that was sent to gapscope alone is passed
//! on.

use rustix::process::{Pid, Signal, getpgrp, kill_process};
use signal_hook::consts::{SIGHUP, SIGINT, SIGQUIT, SIGTERM, SIGXFSZ};
use std::sync::Arc;
use std::sync::atomic::AtomicBool;
use std::sync::atomic::Ordering::{AcqRel, Release};

/// The signals that are passed on: their numbers, and the same for `rustix`.
const SIGNALS: [(i32, Signal); 4] = [
    (SIGINT, Signal::INT),
    (SIGTERM, Signal::TERM),
    (SIGHUP, Signal::HUP),
    (SIGQUIT, Signal::QUIT),
];

/// Keeps this process alive through signals until it is dropped.
#[derive(Debug)]
pub struct Signals {
    /// Once set, signals have their default effect again.
    over: Arc<AtomicBool>,
    /// Set when a signal arrives, in the order of [`SIGNALS`].
    arrived: [Arc<AtomicBool>; 4],
}

impl Signals {
    /// Installs the handlers.
    ///
    /// # Errors
    /// The system refuses a handler.
    pub fn catch() -> std::io::Result<Signals> {
        let signals = Signals {
            over: Arc::default(),
            arrived: Default::default(),
        };
        for ((number, _), arrived) in SIGNALS.into_iter().zip(&signals.arrived) {
            // Where a signal is ignored, as under `nohup`, the program must inherit that.
            if is_ignored(number) {
                continue;
            }
            // The handlers stay when `self` is dropped; without any, the signals would be ignored from then on.
            signal_hook::flag::register_conditional_default(number, signals.over.clone())?;
            signal_hook::flag::register(number, arrived.clone())?;
        }
        Ok(signals)
    }

    /// Passes signals that have arrived since the last call on to the process `child`. Where a terminal's keys reach
    /// it as well, only SIGTERM is passed on.
    pub fn pass_on(&self, child: u32) {
        for ((number, signal), arrived) in SIGNALS.into_iter().zip(&self.arrived) {
            if arrived.swap(false, AcqRel) && (number == SIGTERM || !in_foreground()) {
                send(child, signal);
            }
        }
    }
}

impl Drop for Signals {
    fn drop(&mut self) {
        self.over.store(true, Release);
    }
}

/// Makes a write past the file size limit (`ulimit -f`) fail instead of ending this process. Launched programs have
/// the default again, because a handler does not outlive the start of a program.
pub fn survive_file_size_limit() {
    if !is_ignored(SIGXFSZ) {
        // If the handler is refused, the signal ends the process as before.
        let _ = signal_hook::flag::register(SIGXFSZ, Arc::default());
    }
}

/// Sends a signal to a process that has not been waited for yet.
pub fn send(pid: u32, signal: Signal) {
    let pid = i32::try_from(pid).ok().and_then(Pid::from_raw);
    if let Some(pid) = pid {
        // The process may have ended by itself.
        let _ = kill_process(pid, signal);
    }
}

/// Returns whether this process ignores a signal, such as SIGHUP under `nohup`.
pub fn is_ignored(signal: i32) -> bool {
    let status = std::fs::read_to_string("/proc/self/status").unwrap_or_default();
    let mask = status.lines().find_map(|line| line.strip_prefix("SigIgn:"));
    // The lowest bit is that of signal 1.
    mask.and_then(|mask| u64::from_str_radix(mask.trim(), 16).ok())
        .is_some_and(|mask| mask & (1 << (signal - 1)) != 0)
}

/// Returns true when this process is in the foreground of a terminal, so that the terminal's keys reach the program
/// as well.
fn in_foreground() -> bool {
    std::fs::File::open("/dev/tty")
        .and_then(|terminal| Ok(rustix::termios::tcgetpgrp(terminal)?))
        .is_ok_and(|group| group == getpgrp())
}
