//! Writes the spool inside the recorded program: events of hooks (gapscope's libraries there) go in, records in a
//! chunk file of the calling thread come out. What cannot be kept is dropped and counted. A hook opens the spool once
//! ([`Spool::from_env`]) and then calls [`Spool::write`] from any thread.

use crate::chunk::ChunkWriter;
use crate::control::Start;
use crate::event::{CommonEvent, EventGroup};
use crate::pool::Pool;
use crate::{Control, Error, clock, filters, ids, monotonic_ns};
use std::cell::RefCell;
use std::fs::DirBuilder;
use std::io::ErrorKind;
use std::os::unix::fs::DirBuilderExt;
use std::path::{Path, PathBuf};
use std::sync::atomic::Ordering::{AcqRel, Acquire, Relaxed};
use std::sync::atomic::{AtomicBool, AtomicPtr, AtomicU32, AtomicU64};
use std::sync::{Arc, Mutex, TryLockError};

/// The size of a thread's first chunk, which is small so that many threads with few records do not fill the spool. Each
/// next chunk is larger, up to [`MAX_CHUNK_BYTES`].
const FIRST_CHUNK_BYTES: usize = 64 << 10;
/// The size up to which a thread's chunks grow; only a record that needs more gets a larger one.
const MAX_CHUNK_BYTES: usize = 1 << 20;
/// The factor by which each chunk is larger than the one before.
const CHUNK_GROWTH: usize = 4;
/// The size of a chunk when there is no space for a larger one, and of the log for records of ending threads.
const MIN_CHUNK_BYTES: usize = 16 << 10;
/// The time after a failure in which no chunk is created: a program that records into a full disk must not pay for
/// an attempt with each record.
const RETRY_NS: i64 = 10_000_000;
/// The number of attempts of a thread to lock the log of late records, before it drops its record.
const LATE_LOCK_ATTEMPTS: u32 = 1000;
/// The bytes of chunk files that may wait for the session where [`crate::env::LIMIT`] sets no other limit (2 GiB);
/// records beyond it are dropped and counted.
const DEFAULT_LIMIT_BYTES: u64 = 2 << 30;

/// Returns the first event of a process ([`CommonEvent::Process`]); called again in each forked child that records.
pub type FirstEvent = fn() -> CommonEvent<'static>;

/// The spool of this process and its forked children.
pub struct Spool {
    /// The folder in which each process has its own.
    root: PathBuf,
    /// The most bytes of chunk files of a process that may wait for the session.
    limit: u64,
    /// Whether a process records from its start on.
    record_at_once: bool,
    first_event: FirstEvent,
    /// A [`Process`] that is never freed: that of this process, or that of its parent until this process has created
    /// its own. There is no lock, because a fork while another thread holds it would leave it locked in the child for
    /// ever.
    process: AtomicPtr<Process>,
}

/// The spool folder of one process.
struct Process {
    /// The process, as [`generation`] numbers it.
    generation: u32,
    /// `None` when the folder could not be created: then nothing of the process is recorded.
    folder: Option<ProcessFolder>,
    /// The parent's folder, in which an unrecorded child is counted.
    parent: Option<&'static ProcessFolder>,
}

/// Where a process writes its chunks.
enum LogPlace {
    /// The pool that it has claimed.
    Pool(Arc<Pool>),
    /// Files of its own in this folder, where it has found no pool.
    Folder(PathBuf),
}

/// The part of the spool that belongs to a process: its control page and its chunks.
struct ProcessFolder {
    place: LogPlace,
    control: Control,
    /// The number of chunks so far, which is the next one's number.
    chunks: AtomicU64,
    /// Whether the event of [`FirstEvent`] has been written.
    has_first_event: AtomicBool,
    /// The log for threads whose own log is gone because they are ending.
    late: Mutex<Option<ThreadLog>>,
}

/// Counts forks: a thread's log belongs to one generation.
static GENERATION: AtomicU32 = AtomicU32::new(1);

/// Returns a number that changes with each fork: earlier records are not in the child's spool.
pub fn generation() -> u32 {
    GENERATION.load(Acquire)
}

thread_local! {
    /// The calling thread's log; absent before its first record.
    static LOG: RefCell<Option<ThreadLog>> = const { RefCell::new(None) };
}

/// The log of one thread, whose records go to its current chunk.
struct ThreadLog {
    generation: u32,
    thread: u32,
    folder: &'static ProcessFolder,
    /// The size of the next chunk.
    chunk_bytes: usize,
    /// The chunk that is written to; absent before the first, and after a failure to create one.
    chunk: Option<ChunkWriter>,
    /// The time before which no chunk is created.
    retry_ns: i64,
}

impl Drop for ThreadLog {
    fn drop(&mut self) {
        if let (Some(chunk), true) = (&self.chunk, self.generation == GENERATION.load(Relaxed)) {
            chunk.seal();
        }
    }
}

impl Spool {
    /// Opens the spool that the environment names; `Ok(None)` when it names none.
    ///
    /// # Errors
    /// The folder cannot be written: the program then runs unrecorded.
    pub fn from_env(first_event: FirstEvent) -> Result<Option<Spool>, Error> {
        // SAFETY: the call only reads what the kernel has told the process.
        let privileged = unsafe { libc::getauxval(libc::AT_SECURE) } != 0;
        let root = std::env::var_os(crate::env::SPOOL).filter(|v| !v.is_empty());
        // A user who starts a program with elevated rights must not choose where it writes.
        let (Some(root), false) = (root, privileged) else {
            return Ok(None);
        };
        let limit = std::env::var(crate::env::LIMIT)
            .ok()
            .and_then(|v| v.parse().ok())
            .unwrap_or(DEFAULT_LIMIT_BYTES);
        let record_at_once = std::env::var(crate::env::RECORDING).map_or(true, |v| v != "0");
        Spool::create(PathBuf::from(root), limit, record_at_once, first_event).map(Some)
    }

    /// Creates this process's spool under `root`.
    ///
    /// # Errors
    /// The folder cannot be written.
    pub fn create(
        root: PathBuf,
        limit: u64,
        record_at_once: bool,
        first_event: FirstEvent,
    ) -> Result<Spool, Error> {
        let generation = generation();
        let filtered = filters::look();
        let folder = ProcessFolder::create(&root, record_at_once)?;
        let filters = &folder.control.page().filters_system_calls;
        filters.store(u32::from(filtered), Relaxed);
        // SAFETY: the handler only increments an atomic.
        unsafe { libc::pthread_atfork(None, None, Some(forked)) };
        let process = Process {
            generation,
            folder: Some(folder),
            parent: None,
        };
        let spool = Spool {
            root,
            limit,
            record_at_once,
            first_event,
            process: AtomicPtr::new(Box::into_raw(Box::new(process))),
        };
        let _ = LOG.try_with(|log| {
            if let Ok(mut log) = log.try_borrow_mut() {
                spool.open_log(&mut log);
            }
        });
        Ok(spool)
    }

    /// Returns true while hooks record work. Definitions (devices, kernels, names, buffers) are always written.
    #[inline]
    pub fn recording(&self) -> bool {
        self.folder()
            .is_some_and(|folder| folder.control.page().recording.load(Relaxed) != 0)
    }

    /// Starts recording in this process, as a start label does.
    pub fn start(&self) {
        self.record(true);
    }

    /// Switches recording on or off in this process, as a capture does.
    pub fn record(&self, on: bool) {
        if let Some(folder) = self.folder() {
            let recording = &folder.control.page().recording;
            recording.store(u32::from(on), Relaxed);
        }
    }

    /// Returns true where this process filters its system calls, so that one which a hook can do without might end it.
    pub fn filters_calls(&self) -> bool {
        filters::has_own() || self.folder().is_some_and(ProcessFolder::filters_calls)
    }

    /// Returns the shared counters of this process.
    pub fn control(&self) -> Option<&'static Control> {
        self.folder().map(|folder| &folder.control)
    }

    /// Returns this process's folder, which is created anew in a forked child.
    #[inline]
    fn folder(&self) -> Option<&'static ProcessFolder> {
        let process = self.process();
        if process.generation != generation() {
            return self.create_folder(process);
        }
        process.folder.as_ref()
    }

    /// Returns true where this process has begun its part of the spool: a forked child begins with its first record. A
    /// child that records nothing shall do nothing at its end either, because it may be in a sandbox by then.
    pub fn has_begun(&self) -> bool {
        self.process().generation == generation()
    }

    /// Returns the process that has created the newest folder: this one, or its parent.
    #[inline]
    fn process(&self) -> &'static Process {
        // SAFETY: the pointer always comes from `Box::into_raw`, and what it points to is never freed nor changed.
        unsafe { &*self.process.load(Acquire) }
    }

    /// Creates the folder of a forked child. Of several threads that do so at once, one wins.
    #[cold]
    fn create_folder(&self, forked: &'static Process) -> Option<&'static ProcessFolder> {
        let generation = generation();
        let parent = forked.folder.as_ref().or(forked.parent);
        // Opening a file could end a process that filters its system calls.
        let filtered = filters::has_own() || parent.is_some_and(ProcessFolder::filters_calls);
        let create = || ProcessFolder::create(&self.root, self.record_at_once).ok();
        let new = Box::into_raw(Box::new(Process {
            generation,
            folder: if filtered { None } else { create() },
            parent,
        }));
        let old = std::ptr::from_ref(forked).cast_mut();
        match self.process.compare_exchange(old, new, AcqRel, Acquire) {
            Ok(_) => {
                let folder = self.process().folder.as_ref();
                if let (None, Some(parent)) = (folder, parent) {
                    let page = parent.control.page();
                    match filtered {
                        true => page.filtered_children.fetch_add(1, Relaxed),
                        false => page.unrecorded_children.fetch_add(1, Relaxed),
                    };
                }
                folder
            }
            Err(_) => {
                // SAFETY: nobody else has seen the pointer.
                let lost = unsafe { Box::from_raw(new) };
                match lost.folder.map(|folder| folder.place) {
                    Some(LogPlace::Folder(path)) => drop(std::fs::remove_dir_all(path)),
                    // Its page says that it is claimed, and it holds nothing.
                    Some(LogPlace::Pool(_)) | None => {}
                }
                self.process().folder.as_ref()
            }
        }
    }

    /// Appends a record to the calling thread's log. A record that cannot be kept is counted and never reported here.
    pub fn write(&self, event: &impl EventGroup) {
        let kept = LOG.try_with(|log| match log.try_borrow_mut() {
            Ok(mut log) => {
                if let Some(log) = self.open_log(&mut log) {
                    log.write(self.limit, event);
                }
            }
            // A signal handler of the program has called a hook while this thread was inside one.
            Err(_) => self.drop_record(),
        });
        if kept.is_err() {
            self.write_late(event);
        }
    }

    /// Returns the thread's log, which is begun with the thread's name if this process has none yet.
    fn open_log<'a>(&self, log: &'a mut Option<ThreadLog>) -> Option<&'a mut ThreadLog> {
        if log.as_ref().is_none_or(|l| l.generation != generation()) {
            let (folder, thread) = (self.folder()?, thread_id());
            // An earlier thread with the same number has ended: its records come first.
            if let Ok(mut late) = folder.late.try_lock()
                && late.as_ref().is_some_and(|late| late.thread == thread)
            {
                *late = None;
            }
            let new = log.insert(ThreadLog::new(folder, thread, FIRST_CHUNK_BYTES));
            self.write_first_event(new);
            // The session asks for the name of a thread without one.
            let name = match folder.filters_calls() {
                false => thread_name(),
                true => String::new(),
            };
            new.write(
                self.limit,
                &CommonEvent::Thread {
                    thread: ids::Thread(thread),
                    name: &name,
                },
            );
        }
        log.as_mut()
    }

    /// Writes a record of an ending thread, whose log is gone, to a log that such threads share.
    #[cold]
    fn write_late(&self, event: &impl EventGroup) {
        let Some(folder) = self.folder() else {
            return;
        };
        let thread = thread_id();
        for _ in 0..LATE_LOCK_ATTEMPTS {
            // `lock` could deadlock: a signal handler of the program may have interrupted this thread while it held
            // the lock.
            let mut late = match folder.late.try_lock() {
                Ok(late) => late,
                Err(TryLockError::Poisoned(late)) => late.into_inner(),
                Err(TryLockError::WouldBlock) => {
                    std::thread::yield_now();
                    continue;
                }
            };
            let log = match &mut *late {
                Some(log) if log.thread == thread => log,
                other => other.insert(ThreadLog::new(folder, thread, MIN_CHUNK_BYTES)),
            };
            self.write_first_event(log);
            log.write(self.limit, event);
            return;
        }
        folder.drop_record();
    }

    /// Starts the first log of a process with the event of [`FirstEvent`].
    fn write_first_event(&self, log: &mut ThreadLog) {
        if !log.folder.has_first_event.swap(true, Relaxed) {
            log.write(self.limit, &(self.first_event)());
        }
    }

    /// Counts a record that is not kept.
    fn drop_record(&self) {
        if let Some(folder) = self.folder() {
            folder.drop_record();
        }
    }
}

impl ProcessFolder {
    /// Claims a pool, or creates the folder `p<pid>-<start ns>` with its control page.
    fn create(root: &Path, recording: bool) -> Result<ProcessFolder, Error> {
        let on_session_clock = !filters::has_own() && clock::take_session_clock();
        let start_at = |at_ns| Start {
            at_ns,
            recording,
            on_session_clock,
        };
        if let Some(pool) = Pool::claim(root) {
            let pool = Arc::new(pool);
            let control = Control::in_claimed(pool.clone(), start_at(monotonic_ns()));
            return Ok(ProcessFolder::new(LogPlace::Pool(pool), control));
        }
        let (start_ns, path) = loop {
            let start_ns = monotonic_ns();
            let path = root.join(format!("p{}-{start_ns}", std::process::id()));
            // The mode is independent of the umask, because the files expose what the program runs.
            match DirBuilder::new().mode(0o700).create(&path) {
                // Another thread, or another hook, of this process created it in the same nanosecond.
                Err(e) if e.kind() == ErrorKind::AlreadyExists => continue,
                made => made.map_err(|e| Error::io(&path, e))?,
            }
            break (start_ns, path);
        };
        let control = Control::create(&path, start_at(start_ns))?;
        Ok(ProcessFolder::new(LogPlace::Folder(path), control))
    }

    fn new(place: LogPlace, control: Control) -> ProcessFolder {
        ProcessFolder {
            place,
            control,
            chunks: AtomicU64::new(0),
            has_first_event: AtomicBool::new(false),
            late: Mutex::new(None),
        }
    }

    /// Returns true where the process is known to filter its system calls.
    fn filters_calls(&self) -> bool {
        let filters = &self.control.page().filters_system_calls;
        filters.load(Relaxed) != 0
    }

    /// Counts a record that is not kept; it takes a sequence number, so that the reader does not wait for it.
    fn drop_record(&self) {
        let page = self.control.page();
        page.next_sequence.fetch_add(1, Relaxed);
        page.dropped.fetch_add(1, Relaxed);
    }
}

impl ThreadLog {
    fn new(folder: &'static ProcessFolder, thread: u32, chunk_bytes: usize) -> ThreadLog {
        ThreadLog {
            generation: generation(),
            thread,
            folder,
            chunk_bytes,
            chunk: None,
            retry_ns: i64::MIN,
        }
    }

    /// Appends an event to the chunk, or to a new one when that is full; otherwise drops it.
    fn write(&mut self, limit: u64, event: &impl EventGroup) {
        if self.append(event).is_some() {
            return;
        }
        if let Some(full) = self.chunk.take() {
            full.seal();
        }
        self.chunk = self.new_chunk(limit, event);
        if self.append(event).is_none() {
            self.folder.drop_record();
        }
    }

    /// Creates a chunk with space for the event; `None` beyond the limit, and when the pool or the disk is full.
    fn new_chunk(&mut self, limit: u64, event: &impl EventGroup) -> Option<ChunkWriter> {
        let page = self.folder.control.page();
        let (created, drained) = (&page.bytes_created, &page.bytes_drained);
        let waiting = created.load(Relaxed).saturating_sub(drained.load(Relaxed));
        let needed = event.encoded_bytes().map_or(0, ChunkWriter::bytes_for);
        for bytes in [self.chunk_bytes, MIN_CHUNK_BYTES] {
            let wanted = needed.max(bytes);
            if waiting + wanted as u64 > limit || monotonic_ns() < self.retry_ns {
                continue;
            }
            let number = self.folder.chunks.fetch_add(1, Relaxed);
            // The reader opens the chunk only after it has read the records below this number.
            let from = page.next_sequence.load(Relaxed);
            let name = (self.thread, number, from);
            let chunk = match &self.folder.place {
                LogPlace::Pool(pool) => ChunkWriter::in_pool(pool, name, wanted),
                LogPlace::Folder(path) => ChunkWriter::create(path, name, wanted).ok(),
            };
            if let Some(chunk) = chunk {
                created.fetch_add(chunk.bytes() as u64, Relaxed);
                self.chunk_bytes = (bytes * CHUNK_GROWTH).min(MAX_CHUNK_BYTES);
                return Some(chunk);
            }
            if bytes == MIN_CHUNK_BYTES {
                self.retry_ns = monotonic_ns() + RETRY_NS;
            }
        }
        None
    }

    /// Appends an event to the current chunk; `None` when there is none or the event does not fit.
    fn append<E: EventGroup>(&mut self, event: &E) -> Option<()> {
        let next = &self.folder.control.page().next_sequence;
        let chunk = self.chunk.as_mut()?;
        let sequence = || next.fetch_add(1, Relaxed);
        chunk.append(E::GROUP, sequence, |space| event.encode(space))
    }
}

/// Runs in a forked child before its other code.
extern "C" fn forked() {
    GENERATION.fetch_add(1, Relaxed);
}

fn thread_id() -> u32 {
    // SAFETY: gettid has no preconditions.
    unsafe { libc::gettid() as u32 }
}

fn thread_name() -> String {
    let mut name = [0u8; 16];
    // SAFETY: PR_GET_NAME writes at most 16 bytes, NUL included.
    unsafe { libc::prctl(libc::PR_GET_NAME, name.as_mut_ptr()) };
    let length = name.iter().position(|b| *b == 0).unwrap_or(name.len());
    String::from_utf8_lossy(&name[..length]).into_owned()
}
