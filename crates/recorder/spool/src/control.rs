//! Maps the control page of a process: a file with counters and switches in the process's folder of the spool (the
//! log of hooks), which the hooks (gapscope's libraries in the process) and the session (the process of `gapscope
//! record`) read and write. The process creates it ([`Control::create`]); the session opens it ([`Control::open`]).

use crate::{Error, Rank, VERSION};
use gapscope_files::ContainedPath;
use memmap2::{MmapOptions, MmapRaw};
use std::fs::OpenOptions;
use std::os::fd::AsRawFd;
use std::os::unix::fs::MetadataExt;
use std::path::Path;
use std::sync::atomic::{AtomicI64, AtomicU32, AtomicU64};

/// The first 8 bytes of a control page, which are written last.
const MAGIC: u64 = u64::from_le_bytes(*b"GAPSCTL\0");

/// The mapped page that a process and the session share. Either side may change any field at any time.
#[repr(C)]
#[derive(Debug)]
pub struct Page {
    magic: AtomicU64,
    version: AtomicU32,
    /// The id of the process.
    pub pid: AtomicU32,
    /// The start of the process's recording, on the host's monotonic clock.
    pub start_ns: AtomicI64,
    /// The sequence number of the next record.
    pub next_sequence: AtomicU64,
    /// The bytes of chunk files that the process has created.
    pub bytes_created: AtomicU64,
    /// The bytes of chunk files that the session has read and deleted.
    pub bytes_drained: AtomicU64,
    /// Records that were dropped because the spool was at its limit or the disk was full. They have sequence numbers.
    pub dropped: AtomicU64,
    /// 1 while the hooks record.
    pub recording: AtomicU32,
    /// Incremented by the session at each drain, so that a process can tell whether it is being drained.
    pub drains: AtomicU32,
    /// The number of windows (`start_capture`) that the process has begun.
    pub captures: AtomicU32,
    /// The number of windows that the session has finished; they are numbered from 1 and finished in order.
    pub captures_finished: AtomicU32,
    /// Bit `n % 64` is set when the session could not write window `n`.
    pub captures_failed: AtomicU64,
    /// Rank (number in a distributed program) of the process plus one; 0 when it has none.
    rank_and_one: AtomicU32,
    /// The number of ranks; meaningless without a rank.
    world_size: AtomicU32,
    /// The local rank plus one; 0 when unknown.
    local_rank_and_one: AtomicU32,
    /// The number of forked processes that could not create their spool: nothing of them is recorded.
    pub unrecorded_children: AtomicU64,
    /// The PID namespace of `pid`, as in [`pid_namespace`].
    pub pid_namespace: AtomicU64,
}

/// Returns the number of this process's PID namespace; 0 when unknown.
pub fn pid_namespace() -> u64 {
    std::fs::metadata("/proc/self/ns/pid").map_or(0, |namespace| namespace.ino())
}

/// The mapped control page of one process.
#[derive(Debug)]
pub struct Control {
    map: MmapRaw,
}

impl Control {
    /// The size of the file.
    const BYTES: usize = 4096;

    /// Creates the page of this process in `folder`; `recording` is whether the hooks record from the start on.
    pub fn create(folder: &Path, start_ns: i64, recording: bool) -> Result<Control, Error> {
        let path = folder.join("control");
        let map = map_new_file(&path, Self::BYTES)?;
        let control = Control { map };
        let page = control.page();
        use std::sync::atomic::Ordering::{Relaxed, Release};
        page.version.store(VERSION, Relaxed);
        page.pid.store(std::process::id(), Relaxed);
        page.pid_namespace.store(pid_namespace(), Relaxed);
        page.start_ns.store(start_ns, Relaxed);
        page.recording.store(u32::from(recording), Relaxed);
        if let Some(rank) = Rank::from_environment() {
            let local = rank.local_rank.and_then(|local| local.checked_add(1));
            page.local_rank_and_one.store(local.unwrap_or(0), Relaxed);
            page.world_size.store(rank.world_size, Relaxed);
            page.rank_and_one.store(rank.rank + 1, Relaxed);
        }
        page.magic.store(MAGIC, Release);
        Ok(control)
    }

    /// Maps the page of another process from its folder in the spool.
    pub fn open(folder: &ContainedPath) -> Result<Control, Error> {
        let file = folder.join("control");
        let path = file.path().to_owned();
        let file = file.open_for_changes().map_err(|e| Error::io(&path, e))?;
        let length = file.metadata().map_err(|e| Error::io(&path, e))?.len();
        let foreign = |reason: String| Error::Foreign {
            path: path.clone(),
            reason,
        };
        if length < Self::BYTES as u64 {
            return Err(foreign(format!(
                "it has {length} bytes instead of {}",
                Self::BYTES
            )));
        }
        let map = MmapOptions::new()
            .len(Self::BYTES)
            .map_raw(&file)
            .map_err(|e| Error::io(&path, e))?;
        let control = Control { map };
        use std::sync::atomic::Ordering::{Acquire, Relaxed};
        if control.page().magic.load(Acquire) != MAGIC {
            return Err(foreign("its first bytes differ".to_owned()));
        }
        match control.page().version.load(Relaxed) {
            VERSION => Ok(control),
            version => Err(Error::OtherBuild { path, version }),
        }
    }

    /// Returns the rank of the process, if it has one.
    pub fn rank(&self) -> Option<Rank> {
        use std::sync::atomic::Ordering::Relaxed;
        let page = self.page();
        let (rank, world_size) = (
            page.rank_and_one.load(Relaxed).checked_sub(1)?,
            page.world_size.load(Relaxed),
        );
        (rank < world_size).then(|| Rank {
            rank,
            world_size,
            local_rank: page.local_rank_and_one.load(Relaxed).checked_sub(1),
        })
    }

    /// Returns the shared page.
    pub fn page(&self) -> &Page {
        // SAFETY: the mapping is page-aligned, at least `BYTES` long, lives as long as `self`, and `Page` consists of
        // atomics, for which every bit pattern is valid and which may be shared with another process.
        unsafe { &*self.map.as_ptr().cast::<Page>() }
    }
}

/// Creates and maps a file with allocated blocks: a sparse file would raise SIGBUS in the program when the disk fills
/// up.
pub(crate) fn map_new_file(path: &Path, bytes: usize) -> Result<MmapRaw, Error> {
    let file = OpenOptions::new()
        .read(true)
        .write(true)
        .create_new(true)
        .open(path)
        .map_err(|e| Error::io(path, e))?;
    let refused = match exceeds_file_limit(bytes as u64) {
        // Beyond the limit, the call would raise SIGXFSZ in the program.
        true => libc::EFBIG,
        // SAFETY: the descriptor is open for writing for the whole call.
        false => unsafe { libc::posix_fallocate(file.as_raw_fd(), 0, bytes as libc::off_t) },
    };
    if refused != 0 {
        let _ = std::fs::remove_file(path);
        return Err(Error::io(path, std::io::Error::from_raw_os_error(refused)));
    }
    MmapOptions::new()
        .len(bytes)
        .map_raw(&file)
        .map_err(|e| Error::io(path, e))
}

/// Returns true when a file of this size would exceed the limit of this process (`ulimit -f`): creating it would
/// raise SIGXFSZ, which ends the program.
pub fn exceeds_file_limit(bytes: u64) -> bool {
    let mut limit = libc::rlimit {
        rlim_cur: libc::RLIM_INFINITY,
        rlim_max: libc::RLIM_INFINITY,
    };
    // SAFETY: the call stores the limit.
    unsafe { libc::getrlimit(libc::RLIMIT_FSIZE, &mut limit) };
    bytes > limit.rlim_cur
}
