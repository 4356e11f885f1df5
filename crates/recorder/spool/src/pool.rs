//! Memory that a session (the process of `gapscope record`) has ready for the processes that begin to record: a file
//! without a name (memfd) of a fixed size, which nobody can cut while it is mapped, because it is sealed against that.
//! A hook claims a pool when it is loaded ([`Pool::claim`]) and then writes its records there without any system call,
//! so that a filter of system calls that the program sets later ends nothing. The session maps the same memory
//! ([`Pool::open`]), copies what is committed and gives the blocks back.
//!
//! ```text
//! block 0                the control page, then the table: the use of each block
//! block FIRST_BLOCK ..   chunks, each in consecutive blocks
//! ```

pub mod handover;

use crate::page::Page;
use crate::{Error, VERSION, limits};
use std::fs::{File, OpenOptions};
use std::io::{self, ErrorKind};
use std::os::fd::{AsRawFd, FromRawFd};
use std::os::unix::fs::OpenOptionsExt;
use std::path::{Path, PathBuf};
use std::ptr::NonNull;
use std::sync::atomic::AtomicU32;
use std::sync::atomic::Ordering::{AcqRel, Acquire, Relaxed, Release};

/// The size of a pool. Memory is used only where something has been written and not been collected.
pub const POOL_BYTES: usize = 128 << 20;
/// The least that a hook maps where its address space is limited.
const LEAST_BYTES: usize = 1 << 20;
/// The unit in which chunks take memory: a multiple of the size of a page, so that the memory of one chunk can be given
/// back alone. Linux on ARM may have pages of 64 KiB.
pub const BLOCK_BYTES: usize = if cfg!(target_arch = "aarch64") {
    64 << 10
} else {
    16 << 10
};
/// The number of pools that wait to be claimed.
pub const SPARES: u32 = 16;

/// The offset of the table of blocks.
const TABLE: usize = 4096;
/// The first block that chunks may use.
const FIRST_BLOCK: usize = (TABLE + 4 * (POOL_BYTES / BLOCK_BYTES)).div_ceil(BLOCK_BYTES);

/// The state of a block that no chunk uses.
const FREE: u32 = 0;
/// The state of a block that belongs to the chunk of a block before it, or to one that is being made.
const TAKEN: u32 = 1;
/// A state from this on is that of the first block of a chunk: this number plus the chunk's number of blocks.
const FIRST_OF: u32 = 2;

/// Returns the name in the spool of a pool, which the session opens: `maker` is the process that has made it.
pub fn pool_name(maker: u32, number: u64) -> String {
    format!("pool-{maker}-{number}")
}

/// Returns the name in the spool of a pool that waits to be claimed.
pub fn spare_name(slot: u32) -> String {
    format!("spare-{slot}")
}

/// Returns true for a name in the spool of a pool, claimed or not.
fn is_name_of_pool(name: &str) -> bool {
    name.starts_with("pool-") || name.starts_with("spare-")
}

/// Creates a pool; `name` is what `/proc/PID/maps` shows of it.
///
/// # Errors
/// The system has no such files, or refuses one of this size.
pub fn create(name: &str) -> io::Result<File> {
    let name = std::ffi::CString::new(name)?;
    /// `MFD_NOEXEC_SEAL`, which new kernels may demand and old ones refuse.
    const NOT_EXECUTABLE: libc::c_uint = 8;
    let flags = libc::MFD_CLOEXEC | libc::MFD_ALLOW_SEALING;
    // SAFETY: the name is a C string.
    let made = |flags| match unsafe { libc::memfd_create(name.as_ptr(), flags) } {
        -1 => Err(io::Error::last_os_error()),
        // SAFETY: the descriptor is new, and nothing else owns it.
        descriptor => Ok(unsafe { File::from_raw_fd(descriptor) }),
    };
    let file = made(flags | NOT_EXECUTABLE).or_else(|_| made(flags))?;
    if limits::exceeds_file_limit(POOL_BYTES as u64) {
        return Err(ErrorKind::FileTooLarge.into());
    }
    file.set_len(POOL_BYTES as u64)?;
    let seals = libc::F_SEAL_SHRINK | libc::F_SEAL_GROW | libc::F_SEAL_SEAL;
    // SAFETY: the descriptor is open.
    if unsafe { libc::fcntl(file.as_raw_fd(), libc::F_ADD_SEALS, seals) } != 0 {
        return Err(io::Error::last_os_error());
    }
    let pool = Pool::map(&file, TABLE)?;
    pool.page().pool_version.store(VERSION, Release);
    Ok(file)
}

/// The mapped memory of a pool.
#[derive(Debug)]
pub struct Pool {
    start: NonNull<u8>,
    /// The mapped bytes: all, or as many as a hook may map.
    bytes: usize,
}

// SAFETY: the memory is shared with another process anyway; what both sides change consists of atomics.
unsafe impl Send for Pool {}
// SAFETY: as above.
unsafe impl Sync for Pool {}

/// The memory of one chunk in a pool.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Blocks {
    /// The first byte.
    pub start: NonNull<u8>,
    pub bytes: usize,
    /// The number of the first block.
    first: usize,
}

// SAFETY: one thread writes to the memory, and readers look at what is committed.
unsafe impl Send for Blocks {}
// SAFETY: as above.
unsafe impl Sync for Blocks {}

impl Pool {
    /// Returns true once a process has claimed the pool.
    pub fn is_claimed(&self) -> bool {
        self.page().claimed.load(Acquire) != 0
    }

    /// Returns true once nothing will be read from the pool any more.
    pub fn is_finished(&self) -> bool {
        self.page().finished.load(Acquire) != 0
    }

    /// Claims one of the pools that wait in the spool `root`, and maps it for good; `None` where there is none, as
    /// without a session. The calls are those of the loading of a library, and `fcntl`; where no pool waits, the keeper is asked for one.
    pub(crate) fn claim(root: &Path) -> Option<Pool> {
        let process = std::process::id();
        for turn in 0..SPARES {
            let slot = process.wrapping_add(turn) % SPARES;
            match open(&root.join(spare_name(slot))) {
                Ok(file) => match Pool::claim_file(&file) {
                    None => continue,
                    claimed => return claimed,
                },
                Err(error) if error.kind() == ErrorKind::NotFound && turn == 0 => break,
                Err(_) => continue,
            }
        }
        Pool::claim_file(&handover::ask(root)?)
    }

    /// Claims and maps this pool for good; `None` where another process has claimed it or the memory is refused.
    fn claim_file(file: &File) -> Option<Pool> {
        let page = Pool::map(file, TABLE).ok()?;
        if page.page().pool_version.load(Acquire) != VERSION {
            return None;
        }
        let claimed = &page.page().claimed;
        claimed.compare_exchange(0, 1, AcqRel, Acquire).ok()?;
        let mut bytes = mappable_bytes();
        while bytes >= LEAST_BYTES {
            if let Ok(pool) = Pool::map(file, bytes) {
                // SAFETY: the range is that of the mapping. A dump of the program shall not hold the records.
                unsafe { libc::madvise(pool.start.as_ptr().cast(), bytes, libc::MADV_DONTDUMP) };
                return Some(pool);
            }
            bytes /= 2;
        }
        claimed.store(0, Release);
        None
    }

    /// Maps a pool that the spool names, for the session, and returns the name that `/proc/PID/maps` shows of it. The mapping
    /// needs no descriptor.
    ///
    /// # Errors
    /// It is gone, or no pool that nobody can cut.
    pub fn open(path: &Path) -> Result<(Pool, PathBuf), Error> {
        let file = open(path).map_err(|e| Error::io(path, e))?;
        let pool = Pool::map_whole(&file).map_err(|e| Error::io(path, e))?;
        let name = std::fs::read_link(format!("/proc/self/fd/{}", file.as_raw_fd()));
        let name = name.unwrap_or_default().into_os_string().into_string();
        let name = name.unwrap_or_default();
        Ok((pool, name.trim_end_matches(" (deleted)").into()))
    }

    /// Maps the whole pool of an open file.
    ///
    /// # Errors
    /// The system refuses the memory.
    pub fn map_whole(file: &File) -> io::Result<Pool> {
        Pool::map(file, POOL_BYTES)
    }

    fn map(file: &File, bytes: usize) -> io::Result<Pool> {
        let access = libc::PROT_READ | libc::PROT_WRITE;
        // SAFETY: a new mapping at an address of the kernel's choice.
        let start = unsafe {
            libc::mmap(
                std::ptr::null_mut(),
                bytes,
                access,
                libc::MAP_SHARED | libc::MAP_NORESERVE,
                file.as_raw_fd(),
                0,
            )
        };
        match NonNull::new(start.cast::<u8>()) {
            Some(start) if start.as_ptr().cast() != libc::MAP_FAILED => Ok(Pool { start, bytes }),
            _ => Err(io::Error::last_os_error()),
        }
    }

    /// Returns the control page of the process that claims the pool.
    pub fn page(&self) -> &Page {
        // SAFETY: the mapping is page-aligned and at least a page long, and `Page` consists of atomics.
        unsafe { self.start.cast::<Page>().as_ref() }
    }

    /// Returns the bytes of the control page, for a copy of it.
    pub(crate) fn page_bytes(&self) -> Vec<u8> {
        let mut copy = vec![0; TABLE];
        // SAFETY: both ranges are a page long. The other side may change the page meanwhile, so that the copy may mix
        // states of different fields, each of which is whole.
        unsafe {
            std::ptr::copy_nonoverlapping(self.start.as_ptr(), copy.as_mut_ptr(), TABLE);
        }
        copy
    }

    /// Returns the states of the blocks that are mapped.
    fn table(&self) -> &[AtomicU32] {
        let blocks = self.bytes / BLOCK_BYTES;
        // SAFETY: the table lies in the blocks before the first one of chunks, which are mapped, and consists of atomics.
        unsafe {
            std::slice::from_raw_parts(self.start.as_ptr().add(TABLE).cast::<AtomicU32>(), blocks)
        }
    }

    fn blocks(&self, first: usize, count: usize) -> Blocks {
        Blocks {
            // SAFETY: callers give blocks that are mapped.
            start: unsafe { self.start.add(first * BLOCK_BYTES) },
            bytes: count * BLOCK_BYTES,
            first,
        }
    }

    /// Takes memory for a chunk; `None` when there is not so much in one piece. No lock is taken: threads that want the
    /// same blocks see that at the first of them.
    pub(crate) fn allocate(&self, bytes: usize) -> Option<Blocks> {
        let (table, count) = (self.table(), bytes.div_ceil(BLOCK_BYTES));
        let mut first = FIRST_BLOCK;
        while first.checked_add(count)? <= table.len() {
            let wanted = &table[first..first + count];
            if let Some(used) = wanted.iter().rposition(|block| block.load(Relaxed) != FREE) {
                first += used + 1;
                continue;
            }
            let take = |block: &AtomicU32| block.compare_exchange(FREE, TAKEN, AcqRel, Relaxed);
            match wanted.iter().position(|block| take(block).is_err()) {
                None => {
                    table[first].store(FIRST_OF + count as u32, Release);
                    return Some(self.blocks(first, count));
                }
                Some(lost) => {
                    (wanted[..lost].iter()).for_each(|block| block.store(FREE, Release));
                    first += lost + 1;
                }
            }
        }
        None
    }

    /// Returns the memory of all chunks. The process may have written anything into the table.
    pub(crate) fn chunks(&self) -> Vec<Blocks> {
        let table = self.table();
        let mut chunks = Vec::new();
        let mut block = FIRST_BLOCK;
        while block < table.len() {
            let count = (table[block].load(Acquire).saturating_sub(FIRST_OF) as usize)
                .min(table.len() - block);
            if count > 0 {
                chunks.push(self.blocks(block, count));
            }
            block += count.max(1);
        }
        chunks
    }

    /// Gives the memory of a chunk back, to the system too where that takes it. Whoever takes the blocks next may find
    /// the old bytes: emulators (qemu 7.2) ignore the advice.
    pub(crate) fn free(&self, chunk: Blocks) {
        let bytes = chunk.bytes;
        // SAFETY: the blocks are mapped, and the thread that wrote them has left them.
        unsafe { libc::madvise(chunk.start.as_ptr().cast(), bytes, libc::MADV_REMOVE) };
        let blocks = &self.table()[chunk.first..chunk.first + bytes / BLOCK_BYTES];
        (blocks.iter().rev()).for_each(|block| block.store(FREE, Release));
    }
}

impl Drop for Pool {
    fn drop(&mut self) {
        // SAFETY: the mapping is this value's own.
        unsafe { libc::munmap(self.start.as_ptr().cast(), self.bytes) };
    }
}

/// Returns how much of a pool this process may map: all of it, or a small share of its limited address space (`ulimit -v`),
/// which the program needs for itself.
fn mappable_bytes() -> usize {
    /// With 800 MB of address space, a program of a software GPU mostly failed when it lacked 128 MiB; a share of 128 is 4 MiB then.
    const SHARE: u64 = 128;
    let most = limits::address_space().map_or(u64::MAX, |bytes| bytes / SHARE);
    let mut bytes = POOL_BYTES;
    while bytes > LEAST_BYTES && bytes as u64 > most {
        bytes /= 2;
    }
    bytes
}

/// Opens the pool that a link in the spool leads to. The link may be older than what it leads to by now.
fn open(path: &Path) -> io::Result<File> {
    let mut options = OpenOptions::new();
    options.read(true).write(true);
    let file =
        (options.custom_flags(libc::O_CLOEXEC | libc::O_NONBLOCK | libc::O_NOCTTY)).open(path)?;
    match is_sealed(&file) {
        true => Ok(file),
        false => Err(io::Error::other("it is no memory that nobody can cut")),
    }
}

/// Returns true for a file of a pool's size that nobody can cut.
fn is_sealed(file: &File) -> bool {
    // SAFETY: the descriptor is open.
    let seals = unsafe { libc::fcntl(file.as_raw_fd(), libc::F_GET_SEALS) };
    let bytes = file.metadata().map(|facts| facts.len());
    seals >= 0
        && seals & libc::F_SEAL_SHRINK != 0
        && bytes.is_ok_and(|bytes| bytes == POOL_BYTES as u64)
}
