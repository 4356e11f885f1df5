//! Runs a process of the session's own that keeps the pools (memory into which hooks write, `gapscope_spool::pool`).
//! It goes on when the session (the process of `gapscope record`) is killed: it then writes what the program records to
//! the spool's files, from which `gapscope recover` completes the trace.
//!
//! [`Keeper::start`] begins it, [`Keeper::end`] ends it with the session, and [`dismiss`] ends it for a recovery.
#![allow(unsafe_code)]

mod pools;

use crate::procfs;
use gapscope_files::ContainedPath;
use gapscope_spool::{ProcessSpool, SpoolReader};
use pools::Pools;
use std::fs::File;
use std::io::{Read, Write};
use std::os::fd::{AsFd, AsRawFd};
use std::os::unix::net::UnixStream;
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

/// The time between two looks at the pools while the session lives.
const INTERVAL: Duration = Duration::from_millis(20);
/// The longest wait for a keeper's end; one that hangs must not keep a trace from being recovered.
const PATIENCE: Duration = Duration::from_secs(5);
/// The file in the spool that the keeper has locked.
const LOCK_FILE: &str = "keeper";
/// The file in the spool that asks the keeper to end.
const END_FILE: &str = "end";
/// The time for which the keeper tries again to write to a full disk after the end of all processes.
const FULL_DISK_PATIENCE: Duration = Duration::from_secs(30);
/// The name that the keeper's file gets when not everything could be written.
const UNWRITTEN_FILE: &str = "unwritten";
/// The name that the keeper's file gets when the session ends with an error. A full disk has room for a new name.
const FAILED_FILE: &str = "failed";
/// The file in the spool that says that the keeper has written everything after the end of the session.
const KEPT_FILE: &str = "kept";

/// The session's end of its keeper.
#[derive(Debug)]
pub struct Keeper {
    process: libc::pid_t,
    /// Each side sees the end of the other by the end of this stream.
    stream: UnixStream,
    root: PathBuf,
    /// The pools that the session makes itself after somebody has killed the keeper.
    pools: Option<Pools>,
}

impl Keeper {
    /// Starts the keeper of the spool `root`, an absolute path; returns once the first pools are ready. `None` where the
    /// system refuses: hooks then write to files of their own.
    pub fn start(root: &Path) -> Option<Keeper> {
        let (mut stream, own) = UnixStream::pair().ok()?;
        // SAFETY: the child has one thread, and uses memory and files, which the C library makes usable in it.
        match unsafe { libc::fork() } {
            -1 => None,
            0 => {
                drop(stream);
                let work = std::panic::AssertUnwindSafe(|| keep(root, own));
                let _ = std::panic::catch_unwind(work);
                // SAFETY: ends the child without the handlers of its parent.
                unsafe { libc::_exit(0) }
            }
            process => {
                drop(own);
                let _ = stream.set_read_timeout(Some(PATIENCE));
                let mut ready = [0];
                // A keeper that could not begin has closed its end.
                let _ = stream.read(&mut ready);
                let _ = stream.set_nonblocking(true);
                Some(Keeper {
                    process,
                    stream,
                    root: root.to_owned(),
                    pools: None,
                })
            }
        }
    }

    /// Does the keeper's work from its end on, where somebody has killed it. Call it again and again.
    pub fn replace_killed(&mut self) {
        match &mut self.pools {
            Some(pools) => pools.renew(),
            // The keeper writes nothing more.
            None => {
                if matches!(self.stream.read(&mut [0]), Ok(0)) {
                    self.pools = Some(Pools::new(&self.root));
                }
            }
        }
    }

    /// Ends the keeper, which nobody needs when the session has drained everything.
    pub fn end(self) {
        // SAFETY: both calls are for the session's own child, which a stop does not keep from its end.
        unsafe {
            libc::kill(self.process, libc::SIGKILL);
            libc::waitpid(self.process, std::ptr::null_mut(), 0);
        }
    }
}

/// How much of the program's work after the end of the session the keeper has written.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum KeptRecords {
    /// Everything.
    Whole,
    /// Not all, because files could not be written.
    Unwritten,
    /// Nothing from the moment on at which the keeper was killed too, or began to hang.
    KeeperKilled,
}

/// Ends the keeper of a session that was killed, and waits until all that it has is in files. The program's later work is
/// not recorded.
pub fn dismiss(root: &Path) -> KeptRecords {
    let root = ContainedPath::from(root);
    let unwritten = root.join(UNWRITTEN_FILE);
    let Ok(lock) = root.join(LOCK_FILE).open() else {
        return match unwritten.is_file() {
            true => KeptRecords::Unwritten,
            false => KeptRecords::Whole,
        };
    };
    let _ = root.join(END_FILE).create();
    let begun = Instant::now();
    while !is_free(&lock) && begun.elapsed() < PATIENCE {
        std::thread::sleep(INTERVAL / 4);
    }
    match unwritten.is_file() {
        true => KeptRecords::Unwritten,
        false if root.join(KEPT_FILE).is_file() => KeptRecords::Whole,
        false => KeptRecords::KeeperKilled,
    }
}

/// Keeps for a recovery that the session ends with an error, such as one of a full disk, while the program may still run.
pub fn note_failure(root: &Path) {
    let root = ContainedPath::from(root);
    // Without the name, a recovery takes the session for a killed one.
    let _ = root.join(LOCK_FILE).rename(&root.join(FAILED_FILE));
}

/// Returns true where the session has ended with an error.
pub fn has_failed(root: &Path) -> bool {
    ContainedPath::from(root).join(FAILED_FILE).is_file()
}

/// Takes the lock, unless a keeper has it.
fn is_free(lock: &File) -> bool {
    // SAFETY: the descriptor is open.
    unsafe { libc::flock(lock.as_raw_fd(), libc::LOCK_EX | libc::LOCK_NB) == 0 }
}

/// Runs in the keeper, to its end.
fn keep(root: &Path, mut session: UnixStream) {
    leave_the_session(&session);
    let lock = ContainedPath::from(root).join(LOCK_FILE).create();
    if !lock.as_ref().is_ok_and(is_free) {
        return;
    }
    let mut pools = Pools::new(root);
    if session.write_all(&[0]).is_err() || session.set_nonblocking(true).is_err() {
        return;
    }
    // The session writes nothing: the stream ends where the session was killed.
    while session.read(&mut [0]).is_err() {
        pools.wait(Some(session.as_fd()), INTERVAL);
        pools.renew();
    }
    keep_without_session(root, &mut pools);
}

/// Writes what the program records to files, until all processes have ended or a recovery asks for the end.
fn keep_without_session(root: &Path, pools: &mut Pools) {
    let mut reader = SpoolReader::attach(root);
    let mut processes: Vec<ProcessSpool> = Vec::new();
    let mut last_life = Instant::now();
    loop {
        pools.renew();
        let ends = root.join(END_FILE).exists() || !root.exists();
        // The processes are looked for before their records are read, so that all records of a dead one are there.
        let alive = |process: &ProcessSpool| {
            procfs::pid_here(process).is_some_and(|pid| procfs::is_alive(pid, process.start_ns()))
        };
        processes.extend(reader.new_processes().unwrap_or_default());
        let live = processes.iter().any(alive);
        if live {
            last_life = Instant::now();
        }
        let mut is_kept = true;
        for process in &mut processes {
            if ends {
                process.control().record(false);
            }
            is_kept &= process.keep().is_ok();
        }
        // A full disk may have room again.
        let gives_up = !live && last_life.elapsed() > FULL_DISK_PATIENCE;
        if ends || gives_up || (is_kept && !live) {
            let spool = ContainedPath::from(root);
            let _ = match is_kept {
                true => spool.join(KEPT_FILE).create().map(drop),
                // A full disk has room for a new name.
                false => spool.join(LOCK_FILE).rename(&spool.join(UNWRITTEN_FILE)),
            };
            return;
        }
        pools.wait(None, INTERVAL);
    }
}

/// Frees what the session's process has given this one, so that it holds nothing open, and no signal to the session or
/// its terminal ends it.
fn leave_the_session(session: &UnixStream) {
    // SAFETY: calls that concern this process alone; the null device is opened for the three standard descriptors.
    unsafe {
        libc::setsid();
        let mut all: libc::sigset_t = std::mem::zeroed();
        libc::sigfillset(&mut all);
        libc::pthread_sigmask(libc::SIG_SETMASK, &all, std::ptr::null_mut());
        libc::prctl(libc::PR_SET_NAME, c"gapscope-keeper".as_ptr());
        let null = libc::open(c"/dev/null".as_ptr(), libc::O_RDWR);
        for descriptor in 0..3 {
            libc::dup2(null, descriptor);
        }
        let kept = session.as_raw_fd();
        for (first, last) in [(3, kept - 1), (kept + 1, i32::MAX)] {
            if first <= last {
                libc::syscall(libc::SYS_close_range, first, last, 0);
            }
        }
        libc::chdir(c"/".as_ptr());
    }
}
