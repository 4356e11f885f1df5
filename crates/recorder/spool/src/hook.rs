//! Keeps a hook (our library inside the program) invisible to the recorded program: catches its panics, starts its
//! threads without the program's signals, and keeps its library loaded.

use crate::event::CommonEvent;
use crate::filters;
use std::borrow::Cow;
use std::io;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::atomic::{AtomicU64, Ordering::Relaxed};
use std::thread::JoinHandle;

/// The panics since the last [`take_caught`].
static CAUGHT: AtomicU64 = AtomicU64::new(0);

/// Runs the hook's own work. A panic in it is counted and does not reach the program; the result is then `None`.
#[inline]
pub fn guard<T>(work: impl FnOnce() -> T) -> Option<T> {
    match catch_unwind(AssertUnwindSafe(work)) {
        Ok(value) => Some(value),
        Err(_) => {
            CAUGHT.fetch_add(1, Relaxed);
            None
        }
    }
}

/// Returns the number of panics that were caught since the last call.
pub fn take_caught() -> u64 {
    CAUGHT.swap(0, Relaxed)
}

/// Makes panics of the hook print nothing: standard error belongs to the program.
pub fn silence() {
    std::panic::set_hook(Box::new(|_| {}));
}

/// Returns the first event of a process; `hook` is the name of the hook.
pub fn process_event(hook: &'static str) -> CommonEvent<'static> {
    let arguments = command_line().into_iter().map(Cow::Owned).collect();
    let executable = std::env::current_exe()
        .map(|p| p.to_string_lossy().into_owned())
        .unwrap_or_default();
    CommonEvent::Process {
        pid: std::process::id(),
        // SAFETY: getppid has no preconditions.
        parent: unsafe { libc::getppid() as u32 },
        executable: Cow::Owned(executable),
        arguments,
        hook: Cow::Borrowed(hook),
    }
}

/// Returns the program of this process and its arguments, without empty ones.
pub fn command_line() -> Vec<String> {
    let arguments = std::fs::read("/proc/self/cmdline").unwrap_or_default();
    let words = arguments.split(|byte| *byte == 0);
    words
        .filter(|word| !word.is_empty())
        .map(|word| String::from_utf8_lossy(word).into_owned())
        .collect()
}

/// Keeps the hook's library mapped to the end of the process. Its user may unload it while exit handlers are
/// registered and a thread of the hook, or a driver, still calls it.
pub fn pin_library() {
    // SAFETY: dladdr fills `info` for an address inside the library that this code is linked into, whose file name then
    // lives as long as the library; dlopen of a library that is loaded already runs no initialiser.
    unsafe {
        let mut info: libc::Dl_info = std::mem::zeroed();
        if libc::dladdr(pin_library as *const libc::c_void, &mut info) != 0
            && !info.dli_fname.is_null()
        {
            libc::dlopen(info.dli_fname, libc::RTLD_NOW | libc::RTLD_NODELETE);
        }
    }
}

/// Starts a thread of the hook. The thread handles none of the program's signals, and its panics are swallowed.
///
/// # Errors
/// The system cannot create a thread, or the program filters its system calls, so that creating one could end it.
pub fn spawn(work: impl FnOnce() + Send + 'static) -> io::Result<JoinHandle<()>> {
    if filters::has_own() {
        return Err(io::ErrorKind::PermissionDenied.into());
    }
    with_signals_blocked(|| {
        std::thread::Builder::new()
            .name("gapscope".to_owned())
            .stack_size(256 << 10)
            .spawn(move || {
                guard(work);
            })
    })
}

/// Runs `work`, which starts threads, with all signals blocked, so that the threads handle none of the program's.
pub fn with_signals_blocked<R>(work: impl FnOnce() -> R) -> R {
    // SAFETY: both sets are valid; the mask is this thread's own, new threads inherit it, and it is restored.
    unsafe {
        let mut all: libc::sigset_t = std::mem::zeroed();
        let mut before: libc::sigset_t = std::mem::zeroed();
        libc::sigfillset(&mut all);
        libc::pthread_sigmask(libc::SIG_SETMASK, &all, &mut before);
        let done = work();
        libc::pthread_sigmask(libc::SIG_SETMASK, &before, std::ptr::null_mut());
        done
    }
}
