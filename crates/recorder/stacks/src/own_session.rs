//! Runs the sampling thread's work where the system gives it turns of its own: in a process of its own session, which shares the memory
//! and the files of this one.
//!
//! Linux gives turns by sessions first (`/proc/sys/kernel/sched_autogroup_enabled`). In the session of a busy program the
//! sampling thread would wait for that session's turn however it is scheduled. A session that nearly always sleeps gets its turn at once.

use libc::{c_int, c_void};
use std::fs;
use std::path::Path;
use std::ptr;

/// The size of the stack on which the work runs. The system provides what is used of it.
const STACK_BYTES: usize = 8 << 20;
/// The lowest part of the stack, which is left inaccessible: too deep calls end the process and not the program's recording.
const GUARD_BYTES: usize = 64 << 10;

/// The work, and whether it was done.
struct Job<W> {
    work: Option<W>,
    parent: libc::pid_t,
    /// The file by which the kernel tells what the calling thread does.
    activity: String,
}

/// Calls `work` in a process of its own session and returns when it has ended. Where the kernel does not schedule by sessions, or the
/// other process may not read what this thread may, `work` runs in this thread. `root` is the folder that holds `proc`.
pub fn run<W: FnOnce()>(root: &Path, work: W) {
    let mut job = Job {
        work: Some(work),
        parent: std::process::id() as libc::pid_t,
        activity: format!(
            "/proc/{}/task/{}/syscall",
            std::process::id(),
            rustix::thread::gettid().as_raw_nonzero()
        ),
    };
    if schedules_by_sessions(root) {
        block_signals();
        run_apart(&mut job);
    }
    if let Some(work) = job.work.take() {
        work();
    }
}

/// Returns whether the kernel gives turns by sessions. Processes in a control group for processors get turns by these groups instead, which
/// another session does not change.
fn schedules_by_sessions(root: &Path) -> bool {
    let enabled = fs::read_to_string(root.join("proc/sys/kernel/sched_autogroup_enabled"));
    enabled.is_ok_and(|text| text.trim() == "1")
}

/// Blocks all signals in this thread and the process that it starts: this process handles its signals in its other threads.
fn block_signals() {
    // SAFETY: the set is initialised before it is used, and the call concerns this thread alone.
    unsafe {
        let mut all = std::mem::zeroed();
        libc::sigfillset(&raw mut all);
        libc::pthread_sigmask(libc::SIG_BLOCK, &raw const all, ptr::null_mut());
    }
}

/// Tries to do the job in another process. The job keeps its work where that was not possible.
fn run_apart<W: FnOnce()>(job: &mut Job<W>) {
    // SAFETY: a new mapping at an address of the kernel's choice.
    let stack = unsafe {
        libc::mmap(
            ptr::null_mut(),
            STACK_BYTES,
            libc::PROT_READ | libc::PROT_WRITE,
            libc::MAP_PRIVATE | libc::MAP_ANONYMOUS | libc::MAP_NORESERVE | libc::MAP_STACK,
            -1,
            0,
        )
    };
    if stack == libc::MAP_FAILED {
        return;
    }
    // Without a signal at its end (the lowest byte of the flags) only waiting for it by its number finds the other process.
    let flags = libc::CLONE_VM | libc::CLONE_VFORK | libc::CLONE_FILES | libc::CLONE_FS;
    // SAFETY: the guard is inside of the new mapping. `entry` runs on that mapping, which nothing else uses, with the thread-local values
    // of this thread, which sleeps until the other process has ended (`CLONE_VFORK`): to the program they are one thread.
    unsafe {
        libc::mprotect(stack, GUARD_BYTES, libc::PROT_NONE);
        let top = stack.byte_add(STACK_BYTES);
        let pid = libc::clone(entry::<W>, top, flags, ptr::from_mut(job).cast::<c_void>());
        if pid > 0 {
            libc::waitpid(pid, ptr::null_mut(), libc::__WCLONE);
        }
        libc::munmap(stack, STACK_BYTES);
    }
}

/// Begins the other process: `job` is the [`Job`].
extern "C" fn entry<W: FnOnce()>(job: *mut c_void) -> c_int {
    // SAFETY: `run_apart` passes its job, which it does not touch before this process has ended.
    let job = unsafe { &mut *job.cast::<Job<W>>() };
    // SAFETY: the calls concern this process alone.
    let is_apart = unsafe {
        // The process ends with the recording, whatever ends that.
        libc::prctl(libc::PR_SET_PDEATHSIG, libc::SIGKILL) == 0
            && libc::getppid() == job.parent
            && libc::setsid() > 0
    };
    // Yama permits a process to read its descendants alone: it refuses this process the thread that started it, as it would the program.
    if is_apart
        && fs::read(&job.activity).is_ok()
        && let Some(work) = job.work.take()
    {
        work();
    }
    0
}
