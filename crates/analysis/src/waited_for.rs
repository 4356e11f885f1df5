//! Says what a blocked thread waits for. The first of these that tells decides: whether it waits for the lock of the Python
//! interpreter; the module in which its innermost Python frame lies; the system call in which it is blocked; the innermost native
//! function.

use crate::stacks::{CodeFrame, is_idle_event_loop};
use gapscope_trace::tables::FrameKind;
use schemars::JsonSchema;
use serde::Serialize;

/// What a blocked thread waits for.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum WaitedFor {
    /// The lock of the Python interpreter.
    InterpreterLock,
    /// A lock or a condition that another thread gives.
    Thread,
    /// Another process, such as a worker or a child.
    Process,
    /// A socket: the network, or another process of the machine.
    Socket,
    /// An event loop that has nothing to do.
    EventLoop,
    /// Events on any of several files or sockets.
    Events,
    /// A time: the program sleeps by itself.
    Timer,
    /// A file or a pipe.
    File,
    /// A disk.
    Disk,
    /// A driver.
    Driver,
    /// A signal.
    Signal,
    /// The trace does not say.
    Unknown,
}

impl WaitedFor {
    /// Returns what was waited for, as the end of a sentence.
    pub fn words(self) -> &'static str {
        match self {
            WaitedFor::InterpreterLock => "the interpreter's lock (GIL)",
            WaitedFor::Thread => "another thread",
            WaitedFor::Process => "another process",
            WaitedFor::Socket => "a socket (the network or another process)",
            WaitedFor::EventLoop => "events, with its event loop idle",
            WaitedFor::Events => "events on files or sockets, as an event loop does",
            WaitedFor::Timer => "a sleep of its own to end",
            WaitedFor::File => "a file or a pipe",
            WaitedFor::Disk => "a disk",
            WaitedFor::Driver => "a driver",
            WaitedFor::Signal => "a signal",
            WaitedFor::Unknown => "something that the trace does not name",
        }
    }

    /// Returns what to do about it, as the end of a sentence.
    pub fn advice(self) -> &'static str {
        match self {
            WaitedFor::InterpreterLock | WaitedFor::Thread => {
                "shorten what the other thread does meanwhile, or let it run ahead"
            }
            WaitedFor::Process => "let the other process run ahead, or use more of them",
            WaitedFor::Socket | WaitedFor::Events => "ask earlier for what is awaited",
            WaitedFor::EventLoop => {
                "the thread had nothing to do: send more work to the thread at once"
            }
            WaitedFor::Timer => "shorten the sleep, or wait for the event itself",
            WaitedFor::File | WaitedFor::Disk => "read ahead on another thread",
            WaitedFor::Driver | WaitedFor::Signal | WaitedFor::Unknown => "prepare work ahead",
        }
    }

    /// Returns what a thread waits for whose innermost range or function, the first of these frames, is a wait by its name; `None` for all
    /// others.
    pub(crate) fn by_name(frames: &[CodeFrame]) -> Option<WaitedFor> {
        if is_idle_event_loop(frames) {
            return Some(WaitedFor::EventLoop);
        }
        let innermost = frames.first()?;
        let named = waiting_function(innermost.function.as_deref()?)?;
        let module = innermost.file.as_deref().and_then(by_module);
        Some(module.unwrap_or(named))
    }

    /// Returns what a thread waits for that is blocked in a system call with these frames, the innermost first.
    pub(super) fn new(system_call: Option<&str>, frames: &[CodeFrame]) -> WaitedFor {
        if is_idle_event_loop(frames) {
            return WaitedFor::EventLoop;
        }
        let python = frames.iter().find(|frame| frame.kind == FrameKind::Python);
        let by_module = python.and_then(|frame| by_module(frame.file.as_deref()?));
        let by_call = system_call.and_then(by_call);
        let native = frames
            .iter()
            .take_while(|frame| frame.kind == FrameKind::Native);
        let mut functions = native.filter_map(|frame| frame.function.as_deref());
        (by_module.or(by_call))
            .or_else(|| functions.find_map(by_function))
            .unwrap_or(WaitedFor::Unknown)
    }
}

/// Returns what a function waits for that does nothing but wait, by its name: `epoll_wait`, `__select`, `poll of select.epoll`,
/// `Condition.wait`.
fn waiting_function(function: &str) -> Option<WaitedFor> {
    let name = function.split([' ', '@', '(']).next()?;
    let name = name.rsplit('.').next()?.trim_start_matches('_');
    let name = name.strip_prefix("GI_").unwrap_or(name);
    let name = name.strip_prefix("libc_").unwrap_or(name);
    let name = name.trim_start_matches('_');
    let begins = |beginnings: &[&str]| beginnings.iter().any(|start| name.starts_with(start));
    Some(match name {
        "poll" | "ppoll" | "select" | "pselect" | "pselect6" | "kevent" | "io_uring_enter" => {
            WaitedFor::Events
        }
        "sleep" | "usleep" | "nanosleep" | "clock_nanosleep" => WaitedFor::Timer,
        "recv" | "recvfrom" | "recvmsg" | "recv_into" | "recvmmsg" | "accept" | "accept4" => {
            WaitedFor::Socket
        }
        "waitpid" | "wait4" | "waitid" => WaitedFor::Process,
        "acquire" | "futex" | "lll_lock_wait" => WaitedFor::Thread,
        "wait" => WaitedFor::Unknown,
        _ if begins(&["epoll_"]) && name.contains("wait") => WaitedFor::Events,
        _ if begins(&[
            "pthread_cond_",
            "pthread_mutex_lock",
            "pthread_join",
            "sem_wait",
            "sem_timedwait",
            "wait_for_tstate_lock",
        ]) =>
        {
            WaitedFor::Thread
        }
        _ => return None,
    })
}

/// Returns what the modules of Python wait for that hand over work or data.
fn by_module(file: &str) -> Option<WaitedFor> {
    const MODULES: [(&str, WaitedFor); 11] = [
        ("/multiprocessing/", WaitedFor::Process),
        ("/torch/utils/data/", WaitedFor::Process),
        ("/concurrent/futures/process.py", WaitedFor::Process),
        ("/subprocess.py", WaitedFor::Process),
        ("/concurrent/futures/", WaitedFor::Thread),
        ("/threading.py", WaitedFor::Thread),
        ("/queue.py", WaitedFor::Thread),
        ("/socket.py", WaitedFor::Socket),
        ("/ssl.py", WaitedFor::Socket),
        ("/http/client.py", WaitedFor::Socket),
        ("/urllib3/", WaitedFor::Socket),
    ];
    // PyTorch's profiler names the modules of Python from the folder of the library on.
    let is_in = |module: &str| file.contains(module) || file.starts_with(&module[1..]);
    let mut modules = MODULES.into_iter();
    modules
        .find(|(module, _)| is_in(module))
        .map(|(_, waited_for)| waited_for)
}

/// Returns what a blocking system call waits for.
fn by_call(call: &str) -> Option<WaitedFor> {
    Some(match call {
        call if call.starts_with("futex") => WaitedFor::Thread,
        "wait4" | "waitid" | "waitpid" | "semop" | "semtimedop" | "msgrcv" | "msgsnd"
        | "mq_timedreceive" | "mq_timedsend" | "flock" => WaitedFor::Process,
        "recvmsg" | "recvfrom" | "recvmmsg" | "recv" | "sendmsg" | "sendto" | "sendmmsg"
        | "accept" | "accept4" | "connect" => WaitedFor::Socket,
        "epoll_wait" | "epoll_pwait" | "epoll_pwait2" | "poll" | "ppoll" | "select"
        | "pselect6" | "kevent" | "io_uring_enter" => WaitedFor::Events,
        "nanosleep" | "clock_nanosleep" => WaitedFor::Timer,
        "read" | "readv" | "write" | "writev" | "splice" | "sendfile" => WaitedFor::File,
        "pread64" | "preadv" | "preadv2" | "pwrite64" | "pwritev" | "pwritev2" | "fsync"
        | "fdatasync" | "sync" | "msync" | "io_getevents" | "openat" | "open" => WaitedFor::Disk,
        "ioctl" => WaitedFor::Driver,
        "pause" | "rt_sigtimedwait" | "rt_sigsuspend" => WaitedFor::Signal,
        _ => return None,
    })
}

/// Returns what a function of the C library waits for.
fn by_function(function: &str) -> Option<WaitedFor> {
    let name = function.trim_start_matches('_');
    let name = name.split(['@', '(']).next().unwrap_or(name);
    let name = name
        .strip_prefix("GI_")
        .or(name.strip_prefix("libc_"))
        .unwrap_or(name);
    let begins = |beginnings: &[&str]| beginnings.iter().any(|start| name.starts_with(start));
    match name {
        "usleep" | "sleep" => Some(WaitedFor::Timer),
        "waitpid" | "wait" => Some(WaitedFor::Process),
        _ if begins(&[
            "pthread_cond_",
            "pthread_mutex_",
            "pthread_rwlock_",
            "pthread_join",
            "sem_",
            "lll_lock",
            "futex_",
        ]) =>
        {
            Some(WaitedFor::Thread)
        }
        name => by_call(name),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::range_name::frame_of_range;

    #[test]
    fn names_of_waits_say_what_is_waited_for() {
        for (name, expected) in [
            ("epoll_wait", Some(WaitedFor::EventLoop)),
            ("select", Some(WaitedFor::Events)),
            ("__GI___poll", Some(WaitedFor::Events)),
            (
                "<built-in method poll of select.epoll object at 0x7f3e>",
                Some(WaitedFor::Events),
            ),
            ("<built-in function select>", Some(WaitedFor::Events)),
            ("pthread_cond_timedwait", Some(WaitedFor::Thread)),
            ("threading.py(355): wait", Some(WaitedFor::Thread)),
            (
                "multiprocessing/connection.py(257): poll",
                Some(WaitedFor::Process),
            ),
            (
                "<built-in method acquire of _thread.lock object at 0x1>",
                Some(WaitedFor::Thread),
            ),
            (
                "<built-in method recv_into of _socket.socket object at 0x1>",
                Some(WaitedFor::Socket),
            ),
            ("<built-in function sleep>", Some(WaitedFor::Timer)),
            ("aten::select", None),
            ("train.py(41): step", None),
            ("wait", Some(WaitedFor::Unknown)),
            ("sem_post", None),
            ("pollution", None),
            ("decode_jpeg", None),
        ] {
            assert_eq!(
                WaitedFor::by_name(&[frame_of_range(name)]),
                expected,
                "{name}"
            );
        }
    }
}
