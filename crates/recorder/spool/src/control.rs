//! Keeps the control page of a process: counters and switches that the hooks (gapscope's libraries in the process) and
//! the session (the process of `gapscope record`) read and write. The page is the first one of a pool, or a file in the
//! process's folder of the spool (the log of hooks). The process creates it ([`Control::create`]); the session opens it
//! ([`Control::open`]).

use crate::limits::exceeds_file_limit;
use crate::page::Page;
use crate::pool::Pool;
use crate::{Error, Rank, VERSION};
use gapscope_files::ContainedPath;
use memmap2::{MmapOptions, MmapRaw};
use std::fs::OpenOptions;
use std::io;
use std::os::fd::AsRawFd;
use std::os::unix::fs::{FileExt, MetadataExt};
use std::path::Path;
use std::ptr::NonNull;
use std::sync::Arc;
use std::sync::atomic::Ordering::{Acquire, Relaxed, Release};

/// The first 8 bytes of a control page, which are written last.
const MAGIC: u64 = u64::from_le_bytes(*b"GAPSCTL\0");

/// Returns the number of this process's PID namespace; 0 when unknown.
pub fn pid_namespace() -> u64 {
    std::fs::metadata("/proc/self/ns/pid").map_or(0, |namespace| namespace.ino())
}

/// The control page of one process.
#[derive(Debug)]
pub struct Control {
    /// The page, which lies in `memory`: each record asks for it.
    page: NonNull<Page>,
    memory: Memory,
}

// SAFETY: the page consists of atomics and lives as long as `memory`.
unsafe impl Send for Control {}
// SAFETY: as above.
unsafe impl Sync for Control {}

/// Where a control page is.
#[derive(Debug)]
enum Memory {
    /// In a file that this process, which writes it, has mapped.
    Mapped(MmapRaw),
    /// In a pool.
    Pool(Arc<Pool>),
    /// In a file of another process. This is a copy: a mapping would end this process when somebody cuts the file.
    Copy(Box<Page>, ContainedPath),
}

/// The facts of the start of a process's recording.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Start {
    pub at_ns: i64,
    /// Whether the hooks record from the start on.
    pub recording: bool,
    /// Whether the times of the process are known to be on the session's clock.
    pub on_session_clock: bool,
}

impl Control {
    /// The size of the file.
    const BYTES: usize = 4096;

    fn in_memory(memory: Memory) -> Control {
        let page = match &memory {
            // A mapping is page-aligned and at least a page long.
            Memory::Mapped(map) => NonNull::new(map.as_mut_ptr().cast::<Page>()),
            Memory::Pool(pool) => Some(NonNull::from(pool.page())),
            Memory::Copy(page, _) => Some(NonNull::from(&**page)),
        };
        Control {
            page: page.expect("no mapping begins at address 0"),
            memory,
        }
    }

    /// Creates the page of this process in `folder`.
    pub(crate) fn create(folder: &Path, start: Start) -> Result<Control, Error> {
        let map = map_new_file(&folder.join("control"), Self::BYTES)?;
        Ok(Control::fill(Memory::Mapped(map), start))
    }

    /// Makes the first page of a pool that this process has claimed its control page.
    pub(crate) fn in_claimed(pool: Arc<Pool>, start: Start) -> Control {
        Control::fill(Memory::Pool(pool), start)
    }

    fn fill(memory: Memory, start: Start) -> Control {
        let control = Control::in_memory(memory);
        let page = control.page();
        page.version.store(VERSION, Relaxed);
        page.pid.store(std::process::id(), Relaxed);
        page.pid_namespace.store(pid_namespace(), Relaxed);
        page.start_ns.store(start.at_ns, Relaxed);
        let on_session_clock = u32::from(start.on_session_clock);
        page.on_session_clock.store(on_session_clock, Relaxed);
        page.recording.store(u32::from(start.recording), Relaxed);
        if let Some(rank) = Rank::from_environment() {
            let local = rank.local_rank.and_then(|local| local.checked_add(1));
            page.local_rank_and_one.store(local.unwrap_or(0), Relaxed);
            page.world_size.store(rank.world_size, Relaxed);
            page.rank_and_one.store(rank.rank + 1, Relaxed);
        }
        page.magic.store(MAGIC, Release);
        control
    }

    /// Returns the page of the process that has claimed a pool; `None` while none has, or the page is not filled.
    pub(crate) fn claimed(pool: &Arc<Pool>) -> Option<Control> {
        (pool.page().magic.load(Acquire) == MAGIC)
            .then(|| Control::in_memory(Memory::Pool(pool.clone())))
    }

    /// Reads the page of another process from its folder in the spool.
    pub(crate) fn open(folder: &ContainedPath) -> Result<Control, Error> {
        let file = folder.join("control");
        let path = file.path().to_owned();
        let page = read_page(&file).map_err(|e| Error::io(&path, e))?;
        let Some(page) = page else {
            return Err(Error::Cut { path });
        };
        match (page.magic.load(Relaxed), page.version.load(Relaxed)) {
            (MAGIC, VERSION) => Ok(Control::in_memory(Memory::Copy(page, file))),
            (MAGIC, version) => Err(Error::OtherBuild { path, version }),
            // Somebody has cut the file, and it has grown again.
            (0, _) => Err(Error::Cut { path }),
            _ => Err(Error::Foreign {
                path,
                reason: "its first bytes differ".to_owned(),
            }),
        }
    }

    /// Returns a page for a process whose own is lost, with what the name of its folder says.
    pub(crate) fn lost(folder: &ContainedPath, pid: u32, start_ns: i64) -> Control {
        let page = Box::<Page>::default();
        page.pid.store(pid, Relaxed);
        page.pid_namespace.store(pid_namespace(), Relaxed);
        page.start_ns.store(start_ns, Relaxed);
        page.next_sequence.store(u64::MAX, Relaxed);
        Control::in_memory(Memory::Copy(page, folder.join("control")))
    }

    /// Reads the other process's fields of the page again, where this is a copy. A page that has been cut stays as it was.
    pub(crate) fn refresh(&self) {
        if let Memory::Copy(copy, file) = &self.memory
            && let Ok(Some(page)) = read_page(file)
            && page.magic.load(Relaxed) == MAGIC
        {
            for (to, from) in [
                (&copy.next_sequence, &page.next_sequence),
                (&copy.bytes_created, &page.bytes_created),
                (&copy.dropped, &page.dropped),
                (&copy.unrecorded_children, &page.unrecorded_children),
                (&copy.filtered_children, &page.filtered_children),
            ] {
                to.store(from.load(Relaxed), Relaxed);
            }
            for (to, from) in [
                (&copy.recording, &page.recording),
                (&copy.captures, &page.captures),
            ] {
                to.store(from.load(Relaxed), Relaxed);
            }
        }
    }

    /// Writes a field of the session to the file, where this is a copy.
    fn publish<T>(&self, field: &T, bytes: &[u8]) {
        if let Memory::Copy(page, file) = &self.memory {
            let at = std::ptr::from_ref(field) as usize - std::ptr::from_ref(&**page) as usize;
            // A file that is gone has no reader either.
            let _ = file
                .open_for_changes()
                .and_then(|file| file.write_all_at(bytes, at as u64));
        }
    }

    /// Switches the recording of the process on or off.
    pub fn record(&self, on: bool) {
        let field = &self.page().recording;
        field.store(u32::from(on), Relaxed);
        self.publish(field, &u32::from(on).to_ne_bytes());
    }

    /// Counts a drain, so that the process sees that it is being drained.
    pub(crate) fn count_drain(&self) {
        let field = &self.page().drains;
        let drains = field.fetch_add(1, Relaxed).wrapping_add(1);
        self.publish(field, &drains.to_ne_bytes());
    }

    /// Counts bytes of chunk files that have been read and deleted.
    pub(crate) fn count_drained(&self, bytes: u64) {
        let field = &self.page().bytes_drained;
        let drained = field.fetch_add(bytes, Relaxed).wrapping_add(bytes);
        self.publish(field, &drained.to_ne_bytes());
    }

    /// Tells the process that one of its windows is finished, and whether its trace could not be written.
    pub fn finish_window(&self, number: u32, failed: bool) {
        let page = self.page();
        if failed {
            let bit = 1 << (number % 64);
            let failures = page.captures_failed.fetch_or(bit, Relaxed) | bit;
            self.publish(&page.captures_failed, &failures.to_ne_bytes());
        }
        let latest = page
            .captures_finished
            .fetch_max(number, Release)
            .max(number);
        self.publish(&page.captures_finished, &latest.to_ne_bytes());
    }

    /// Returns the rank of the process, if it has one.
    pub fn rank(&self) -> Option<Rank> {
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

    /// Returns the page: shared with the other side, or a copy of it as of the last drain.
    pub fn page(&self) -> &Page {
        // SAFETY: the page is in `memory`, which lives as long as `self`, and consists of atomics, for which every bit pattern
        // is valid and which may be shared with another process.
        unsafe { self.page.as_ref() }
    }
}

/// Reads a control page from its file; `None` when the file is too short.
fn read_page(file: &ContainedPath) -> io::Result<Option<Box<Page>>> {
    let mut page = Box::<Page>::default();
    // SAFETY: the bytes are those of the page, which consists of atomics, for which every bit pattern is valid.
    let bytes =
        unsafe { std::slice::from_raw_parts_mut((&raw mut *page).cast::<u8>(), size_of::<Page>()) };
    match file.open()?.read_exact_at(bytes, 0) {
        Ok(()) => Ok(Some(page)),
        Err(error) if error.kind() == io::ErrorKind::UnexpectedEof => Ok(None),
        Err(error) => Err(error),
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
