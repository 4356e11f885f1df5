//! Starts programs with the settings that this process was started with, as if no `gapscope` stood between.
//! Rust's runtime ignores SIGPIPE (the signal of writing to a closed pipe) here, and gives launched programs the
//! default and an empty mask of blocked signals. A session raises its own limit of open descriptors.
#![allow(unsafe_code)]

use std::os::unix::process::CommandExt;
use std::process::Command;
use std::sync::OnceLock;
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

/// The limit of open descriptors before [`raise_descriptor_limit`]; absent where that was not called.
static DESCRIPTORS: OnceLock<libc::rlimit> = OnceLock::new();

/// Raises the number of descriptors that this process may open as far as the system permits: the user has limited the
/// program, and a recording must not end for it.
pub fn raise_descriptor_limit() {
    // SAFETY: the all-zero bytes are a valid value of the type, and the call stores the limit there.
    let mut limit = unsafe {
        let mut limit: libc::rlimit = std::mem::zeroed();
        if libc::getrlimit(libc::RLIMIT_NOFILE, &mut limit) != 0 {
            return;
        }
        limit
    };
    DESCRIPTORS.get_or_init(|| limit);
    limit.rlim_cur = limit.rlim_max;
    // SAFETY: the call reads the limit.
    unsafe { libc::setrlimit(libc::RLIMIT_NOFILE, &limit) };
}

/// Starts the command with the SIGPIPE, the blocked signals and the limit of descriptors that this process was started
/// with.
pub fn pass_to(command: &mut Command) {
    let descriptors = DESCRIPTORS.get().copied();
    let ignored = PIPE_IGNORED.load(Relaxed);
    // SAFETY: the all-zero bytes are a valid value of the type, and the call only stores the thread's mask there.
    let mask = unsafe {
        let mut mask: libc::sigset_t = std::mem::zeroed();
        libc::pthread_sigmask(libc::SIG_SETMASK, std::ptr::null(), &mut mask);
        mask
    };
    let restore = move || {
        // SAFETY: the functions may be called between fork and exec, and mask and limit are valid ones.
        unsafe {
            if let Some(limit) = descriptors {
                libc::setrlimit(libc::RLIMIT_NOFILE, &limit);
            }
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
