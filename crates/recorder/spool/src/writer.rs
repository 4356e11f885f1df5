//! The hooks' end of the spool.

use crate::chunk::ChunkWriter;
use crate::{Control, Error, Event, monotonic_ns};
use std::cell::RefCell;
use std::path::PathBuf;
use std::sync::RwLock;
use std::sync::atomic::Ordering::{Acquire, Relaxed};
use std::sync::atomic::{AtomicBool, AtomicU32, AtomicU64};

const CHUNK_BYTES: usize = 1 << 20;
/// Default of [`crate::env::LIMIT`]: 2 GiB.
const DEFAULT_LIMIT: u64 = 2 << 30;

/// Makes the first event of a process ([`Event::Process`]); called again in each forked child that records.
pub type Hello = fn() -> Event<'static>;

/// The spool of this process, and of the processes that it forks.
pub struct Spool {
    root: PathBuf,
    limit: u64,
    record_at_once: bool,
    hello: Hello,
    /// `None` in a process that could not make its folder: its records are dropped.
    process: RwLock<Option<Process>>,
}

/// What a fork replaces. It is leaked, so that threads may use it without a lock.
#[derive(Clone, Copy)]
struct Process(&'static ProcessFolder);

struct ProcessFolder {
    folder: PathBuf,
    control: Control,
    chunks: AtomicU64,
    greeted: AtomicBool,
}

/// Counts forks: a thread's log belongs to one generation.
static GENERATION: AtomicU32 = AtomicU32::new(1);

/// Changes when the process has been forked: what was written before is not in the child's spool.
pub fn generation() -> u32 {
    GENERATION.load(Acquire)
}

thread_local! {
    static LOG: RefCell<Option<ThreadLog>> = const { RefCell::new(None) };
}

struct ThreadLog {
    generation: u32,
    thread: u32,
    process: Process,
    chunk: Option<ChunkWriter>,
}

impl Drop for ThreadLog {
    fn drop(&mut self) {
        if let (Some(chunk), true) = (&self.chunk, self.generation == GENERATION.load(Relaxed)) {
            chunk.seal();
        }
    }
}

impl Spool {
    /// Opens the spool that the environment names. `Ok(None)` when it names none.
    ///
    /// # Errors
    /// The folder cannot be written: the program runs on unrecorded.
    pub fn from_env(hello: Hello) -> Result<Option<Spool>, Error> {
        let Some(root) = std::env::var_os(crate::env::SPOOL).filter(|v| !v.is_empty()) else {
            return Ok(None);
        };
        let limit = std::env::var(crate::env::LIMIT)
            .ok()
            .and_then(|v| v.parse().ok())
            .unwrap_or(DEFAULT_LIMIT);
        let record_at_once = std::env::var(crate::env::RECORDING).map_or(true, |v| v != "0");
        Spool::create(PathBuf::from(root), limit, record_at_once, hello).map(Some)
    }

    /// Makes this process's spool under `root`.
    ///
    /// # Errors
    /// The folder cannot be written.
    pub fn create(
        root: PathBuf,
        limit: u64,
        record_at_once: bool,
        hello: Hello,
    ) -> Result<Spool, Error> {
        let process = Process::create(&root, record_at_once)?;
        // SAFETY: the handler only increments an atomic.
        unsafe { libc::pthread_atfork(None, None, Some(forked)) };
        let spool = Spool {
            root,
            limit,
            record_at_once,
            hello,
            process: RwLock::new(Some(process)),
        };
        let _ = LOG.try_with(|log| {
            if let Ok(mut log) = log.try_borrow_mut() {
                spool.open_log(&mut log);
            }
        });
        Ok(spool)
    }

    /// True while hooks shall record work. Definitions (devices, kernels, names, buffers) are always written.
    pub fn recording(&self) -> bool {
        self.current()
            .is_some_and(|p| p.0.control.page().recording.load(Relaxed) != 0)
    }

    /// Starts recording in this process, as a start label does.
    pub fn start(&self) {
        self.record(true);
    }

    /// Switches recording on or off in this process, as a capture does.
    pub fn record(&self, on: bool) {
        if let Some(process) = self.current() {
            let recording = &process.0.control.page().recording;
            recording.store(u32::from(on), Relaxed);
        }
    }

    /// The shared counters of this process.
    pub fn control(&self) -> Option<&'static Control> {
        self.current().map(|p| &p.0.control)
    }

    fn current(&self) -> Option<Process> {
        self.process.read().ok().and_then(|p| *p)
    }

    /// Appends a record to the calling thread's log. A record that cannot be kept is counted, never reported here.
    pub fn write(&self, event: &Event<'_>) {
        let kept = LOG.try_with(|log| match log.try_borrow_mut() {
            Ok(mut log) => self.write_to(&mut log, event),
            // A signal handler of the program has called a hook while this thread was inside one.
            Err(_) => self.drop_record(),
        });
        if kept.is_err() {
            // The thread is ending and its log is gone: the record gets a log of its own.
            self.write_to(&mut None, event);
        }
    }

    fn write_to(&self, log: &mut Option<ThreadLog>, event: &Event<'_>) {
        if let Some(log) = self.open_log(log) {
            log.write(self.limit, event);
        }
    }

    /// The thread's log in this process. The first log of a process begins with its greeting.
    fn open_log<'a>(&self, log: &'a mut Option<ThreadLog>) -> Option<&'a mut ThreadLog> {
        let generation = generation();
        if log.as_ref().is_none_or(|l| l.generation != generation) {
            let process = self.process_of(generation)?;
            let thread = thread_id();
            let new = log.insert(ThreadLog {
                generation,
                thread,
                process,
                chunk: None,
            });
            if !process.0.greeted.swap(true, Relaxed) {
                new.write(self.limit, &(self.hello)());
            }
            let name = thread_name();
            new.write(
                self.limit,
                &Event::Thread {
                    thread,
                    name: &name,
                },
            );
        }
        log.as_mut()
    }

    fn drop_record(&self) {
        if let Some(process) = self.current() {
            process.0.control.page().next_sequence.fetch_add(1, Relaxed);
            process.0.control.page().dropped.fetch_add(1, Relaxed);
        }
    }

    /// The process folder of a generation; made anew in a forked child.
    fn process_of(&self, generation: u32) -> Option<Process> {
        if let Some(process) = self.current()
            && process.0.control.page().pid.load(Relaxed) == std::process::id()
        {
            return Some(process);
        }
        let mut slot = self.process.try_write().ok()?;
        if generation != GENERATION.load(Acquire) {
            return None;
        }
        *slot = Process::create(&self.root, self.record_at_once).ok();
        *slot
    }
}

impl Process {
    fn create(root: &std::path::Path, recording: bool) -> Result<Process, Error> {
        let start_ns = monotonic_ns();
        let folder = root.join(format!("p{}-{start_ns}", std::process::id()));
        std::fs::create_dir(&folder).map_err(|e| Error::io(&folder, e))?;
        let control = Control::create(&folder, start_ns, recording)?;
        Ok(Process(Box::leak(Box::new(ProcessFolder {
            folder,
            control,
            chunks: AtomicU64::new(0),
            greeted: AtomicBool::new(false),
        }))))
    }
}

impl ThreadLog {
    fn write(&mut self, limit: u64, event: &Event<'_>) {
        let page = self.process.0.control.page();
        let sequence = page.next_sequence.fetch_add(1, Relaxed);
        if self.append(sequence, event).is_some() {
            return;
        }
        if let Some(full) = self.chunk.take() {
            full.seal();
        }
        let waiting = page
            .bytes_created
            .load(Relaxed)
            .saturating_sub(page.bytes_drained.load(Relaxed));
        let wanted = event
            .encoded_bytes()
            .map_or(CHUNK_BYTES, |b| ChunkWriter::bytes_for(b).max(CHUNK_BYTES));
        if waiting + wanted as u64 <= limit {
            let number = self.process.0.chunks.fetch_add(1, Relaxed);
            let path = self
                .process
                .0
                .folder
                .join(format!("t{}-{number:08}.chunk", self.thread));
            self.chunk = ChunkWriter::create(&path, self.thread, wanted).ok();
            if let Some(chunk) = &self.chunk {
                page.bytes_created.fetch_add(chunk.bytes() as u64, Relaxed);
            }
        }
        if self.append(sequence, event).is_none() {
            page.dropped.fetch_add(1, Relaxed);
        }
    }

    fn append(&mut self, sequence: u64, event: &Event<'_>) -> Option<()> {
        self.chunk
            .as_mut()?
            .append(sequence, |space| event.encode(space))
    }
}

extern "C" fn forked() {
    GENERATION.fetch_add(1, Relaxed);
}

fn thread_id() -> u32 {
    // SAFETY: gettid has no preconditions.
    unsafe { libc::gettid() as u32 }
}

/// The thread's name as the kernel has it.
fn thread_name() -> String {
    let mut name = [0u8; 16];
    // SAFETY: PR_GET_NAME writes at most 16 bytes, NUL included.
    unsafe { libc::prctl(libc::PR_GET_NAME, name.as_mut_ptr()) };
    let length = name.iter().position(|b| *b == 0).unwrap_or(name.len());
    String::from_utf8_lossy(&name[..length]).into_owned()
}
