//! Runs a process of the session's own that keeps the pools (memory into which hooks write, `gapscope_spool::pool`).
//! It goes on when the session (the process of `gapscope record`) is killed: it then writes what the program records to
//! the spool's files, from which `gapscope recover` completes the trace.
//!
//! [`Keeper::start`] begins it, [`Keeper::end`] ends it with the session, and [`dismiss`] ends it for a recovery.
#![allow(unsafe_code)]

use crate::procfs;
use gapscope_files::ContainedPath;
use gapscope_spool::pool::{self, Pool, SPARES};
use gapscope_spool::{ProcessSpool, SpoolReader};
use std::fs::{self, File};
use std::io::{self, Read, Write};
use std::os::fd::AsRawFd;
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
/// The name that the keeper's file gets when the session ends with an error. A full disk has room for a new name.
const FAILED_FILE: &str = "failed";
/// The file in the spool that says that the keeper has written everything after the end of the session.
const KEPT_FILE: &str = "kept";

/// The session's end of its keeper.
#[derive(Debug)]
pub struct Keeper {
    process: libc::pid_t,
    /// The keeper sees the end of the session by the end of this stream.
    _stream: UnixStream,
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
                Some(Keeper {
                    process,
                    _stream: stream,
                })
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

/// Ends the keeper of a session that was killed, and waits until all that it has is in files. The program's later work is
/// not recorded. Returns false where the keeper was killed too, or hangs, so that what it had is lost.
pub fn dismiss(root: &Path) -> bool {
    let root = ContainedPath::from(root);
    let Ok(lock) = root.join(LOCK_FILE).open() else {
        return true;
    };
    let _ = root.join(END_FILE).create();
    let begun = Instant::now();
    while !is_free(&lock) && begun.elapsed() < PATIENCE {
        std::thread::sleep(INTERVAL / 4);
    }
    root.join(KEPT_FILE).is_file()
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

/// The pools of a spool, in the keeper.
struct Pools {
    root: PathBuf,
    /// The pools that wait to be claimed, by slot; absent where none could be made.
    spares: Vec<Option<KeptPool>>,
    claimed: Vec<KeptPool>,
    /// The number of pools so far.
    made: u64,
}

/// A pool that this process holds.
struct KeptPool {
    /// Its first page.
    pool: Pool,
    /// Keeps the memory.
    _file: File,
    /// Its name in the spool.
    path: PathBuf,
}

impl Pools {
    fn new(root: &Path) -> Pools {
        Pools {
            root: root.to_owned(),
            spares: (0..SPARES).map(|_| None).collect(),
            claimed: Vec::new(),
            made: 0,
        }
    }

    /// Makes new pools for those that have been claimed, and lets those go that nobody reads any more.
    fn renew(&mut self) {
        for slot in 0..self.spares.len() {
            let is_claimed = |kept: &KeptPool| kept.pool.is_claimed();
            if let Some(claimed) = self.spares[slot].take_if(|kept| is_claimed(kept)) {
                self.claimed.push(claimed);
            }
            if self.spares[slot].is_none() {
                self.spares[slot] = self.make(slot as u32).ok();
            }
        }
        self.claimed.retain(|kept| {
            let keep = !kept.pool.is_finished();
            if !keep {
                let _ = fs::remove_file(&kept.path);
            }
            keep
        });
    }

    /// Makes a pool, names it for the session, and then for hooks.
    fn make(&mut self, slot: u32) -> io::Result<KeptPool> {
        let (own, number) = (std::process::id(), self.made);
        self.made += 1;
        let file = pool::create(&format!("gapscope-{own}-{number}"))?;
        let target = format!("/proc/{own}/fd/{}", file.as_raw_fd());
        let path = self.root.join(pool::pool_name(number));
        std::os::unix::fs::symlink(&target, &path)?;
        let new = self.root.join("spare.new");
        let _ = fs::remove_file(&new);
        std::os::unix::fs::symlink(&target, &new)?;
        fs::rename(&new, self.root.join(pool::spare_name(slot)))?;
        let (pool, _) = Pool::open(&path).map_err(io::Error::other)?;
        Ok(KeptPool {
            pool,
            _file: file,
            path,
        })
    }
}

/// Runs in the keeper, to its end.
fn keep(root: &Path, mut session: UnixStream) {
    leave_the_session(&session);
    let lock = ContainedPath::from(root).join(LOCK_FILE).create();
    if !lock.as_ref().is_ok_and(is_free) {
        return;
    }
    let mut pools = Pools::new(root);
    pools.renew();
    if session.write_all(&[0]).is_err() {
        return;
    }
    let _ = session.set_read_timeout(Some(INTERVAL));
    // The session writes nothing: the stream ends where the session was killed.
    while session.read(&mut [0]).is_err() {
        pools.renew();
    }
    let mut reader = SpoolReader::attach(root);
    let mut processes: Vec<ProcessSpool> = Vec::new();
    loop {
        pools.renew();
        let ends = root.join(END_FILE).exists() || !root.exists();
        // The processes are looked for before their records are read, so that all records of a dead one are there.
        let alive = |process: &ProcessSpool| {
            procfs::pid_here(process).is_some_and(|pid| procfs::is_alive(pid, process.start_ns()))
        };
        processes.extend(reader.new_processes().unwrap_or_default());
        let live = processes.iter().any(alive);
        for process in &mut processes {
            if ends {
                process.control().record(false);
            }
            process.keep();
        }
        if ends || !live {
            let _ = ContainedPath::from(root).join(KEPT_FILE).create();
            return;
        }
        std::thread::sleep(INTERVAL);
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
        let mut limit: libc::rlimit = std::mem::zeroed();
        if libc::getrlimit(libc::RLIMIT_NOFILE, &mut limit) == 0 {
            limit.rlim_cur = limit.rlim_max;
            libc::setrlimit(libc::RLIMIT_NOFILE, &limit);
        }
    }
}
