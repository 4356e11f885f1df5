//! Writes files inside the program without a signal (SIGXFSZ) reaching it when a file may not grow, and words the
//! error as the reason why the window (the captured part of the run) ends.

use std::io;

use gapscope_capture::model::EndReason;

/// Returns the reason for the end of a window that cannot be written.
pub fn end_reason(error: io::Error) -> EndReason {
    match error.kind() {
        io::ErrorKind::StorageFull | io::ErrorKind::QuotaExceeded => {
            EndReason::Failed("no space is left on the disk".to_owned())
        }
        io::ErrorKind::FileTooLarge => {
            EndReason::Failed("a file reached the largest size that is allowed".to_owned())
        }
        _ => EndReason::Failed(format!("the capture cannot be written: {error}")),
    }
}

/// Writes without the signal that a file at its largest allowed size sends, which would end the program. The signal
/// is blocked for this thread, and taken away if it came from here.
pub fn quietly<R>(write: impl FnOnce() -> io::Result<R>) -> io::Result<R> {
    // SAFETY: the sets are this function's own and valid; the thread's mask is restored.
    unsafe {
        let mut ours: libc::sigset_t = std::mem::zeroed();
        let mut before: libc::sigset_t = std::mem::zeroed();
        libc::sigemptyset(&mut ours);
        libc::sigaddset(&mut ours, libc::SIGXFSZ);
        libc::pthread_sigmask(libc::SIG_BLOCK, &ours, &mut before);
        let written = write();
        if written
            .as_ref()
            .is_err_and(|e| e.kind() == io::ErrorKind::FileTooLarge)
            && libc::sigismember(&before, libc::SIGXFSZ) == 0
        {
            let now = libc::timespec {
                tv_sec: 0,
                tv_nsec: 0,
            };
            libc::sigtimedwait(&ours, std::ptr::null_mut(), &now);
        }
        libc::pthread_sigmask(libc::SIG_SETMASK, &before, std::ptr::null_mut());
        written
    }
}
