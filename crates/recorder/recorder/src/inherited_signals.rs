//! Starts programs with the signal settings that this process was started with, as if no `gapscope` stood between.
//! Rust's runtime ignores SIGPIPE (the signal of writing to a closed pipe) here, and gives launched programs the
//! default and an empty mask of blocked signals.
#![allow(unsafe_code)]

use std::os::unix::process::CommandExt;
use std::process::Command;
use std::sync::atomic::AtomicBool;
use std::sync::atomic::Ordering::Relaxed;

/// Whether SIGPIPE was ignored at the start of this process, as in services of systemd.
static PIPE_IGNORED: AtomicBool = AtomicBool::new(false);

/// Runs [`note`] before Rust's runtime changes the setting.
#[used]
#[unsafe(link_section = ".init_array")]
static AT_START: extern "C" fn() = note;

/// Notes whether SIGPIPE is ignored now. The system's loader calls it before `main`.
extern "C" fn note() {
    // SAFETY: the all-zero bytes are a valid value of the type, and the call only stores the current setting.
    let ignored = unsafe {
        let mut action: libc::sigaction = std::mem::zeroed();
        libc::sigaction(libc::SIGPIPE, std::ptr::null(), &mut action) == 0
            && action.sa_sigaction == libc::SIG_IGN
    };
    PIPE_IGNORED.store(ignored, Relaxed);
}

/// Starts the command with the SIGPIPE and the blocked signals that this process was started with.
pub fn pass_to(command: &mut Command) {
    let ignored = PIPE_IGNORED.load(Relaxed);
    // SAFETY: the all-zero bytes are a valid value of the type, and the call only stores the thread's mask there.
    let mask = unsafe {
        let mut mask: libc::sigset_t = std::mem::zeroed();
        libc::pthread_sigmask(libc::SIG_SETMASK, std::ptr::null(), &mut mask);
        mask
    };
    let restore = move || {
        // SAFETY: both functions may be called between fork and exec, and the mask is a valid one.
        unsafe {
            if ignored {
                libc::signal(libc::SIGPIPE, libc::SIG_IGN);
            }
            libc::pthread_sigmask(libc::SIG_SETMASK, &mask, std::ptr::null_mut());
        }
        Ok(())
    };
    // SAFETY: the closure allocates nothing and takes no lock.
    unsafe { command.pre_exec(restore) };
}
