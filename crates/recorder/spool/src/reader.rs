//! Reads the spool for the session (the process of `gapscope record`): chunk files (files of records of one thread)
//! of all threads go in, events in the order of their sequence numbers come out, and what is missing is counted.
//! [`SpoolReader::new_processes`] finds processes; for each, [`ProcessSpool::drain`] delivers events again and again,
//! and [`ProcessSpool::delete_consumed`] deletes what has been kept elsewhere.

use crate::chunk::{ChunkReader, PoolChunk, is_meddling};
use crate::pool::Pool;
use crate::{Control, Error, Event, ids};
use gapscope_files::ContainedPath;
use serde::{Deserialize, Serialize};
use std::cmp::Reverse;
use std::collections::{BTreeMap, BinaryHeap, HashSet, VecDeque};
use std::io::{self, ErrorKind};
use std::os::unix::fs::FileExt;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::Ordering::{Acquire, Relaxed, Release};
use std::time::{Duration, Instant};

/// The longest wait for an uncommitted sequence number: after it, the number's thread has ended between taking and
/// committing the number, or hangs. A record that comes still later is skipped, so that it is counted once.
const GAP_PATIENCE: Duration = Duration::from_secs(2);

/// The most records that may be missing before one that is believed, where the page that counts them is lost.
const MAX_MISSING: u64 = 1 << 32;

/// Finds the processes under one spool folder.
#[derive(Debug)]
pub struct SpoolReader {
    root: ContainedPath,
    /// The folders that were returned, or reported as unreadable.
    known: HashSet<PathBuf>,
    /// The pools that no process has claimed yet; absent for a reader of files alone, which follows no links.
    pools: Option<Vec<OpenPool>>,
}

/// A pool in memory that the session has mapped.
#[derive(Debug)]
struct OpenPool {
    pool: Arc<Pool>,
    /// Its name in `/proc/PID/maps`.
    mapping: PathBuf,
}

impl SpoolReader {
    /// Opens the spool under `root`, which may still be empty. Links are not followed, neither to `root` nor in it: the
    /// spool of a recovered trace may be a stranger's.
    pub fn open(root: impl AsRef<Path>) -> SpoolReader {
        SpoolReader {
            root: ContainedPath::from(root.as_ref()),
            known: HashSet::new(),
            pools: None,
        }
    }

    /// Opens the spool under `root` of a recording that this process makes, with the pools in memory that are named there.
    pub fn attach(root: impl AsRef<Path>) -> SpoolReader {
        SpoolReader {
            pools: Some(Vec::new()),
            ..SpoolReader::open(root)
        }
    }

    /// Maps pools that have appeared, and returns the processes that have claimed one.
    fn claimed_pools(&mut self) -> Vec<ProcessSpool> {
        let Some(pools) = &mut self.pools else {
            return Vec::new();
        };
        // Without the folder, the pools that are mapped are still read.
        for entry in sorted_entries(&self.root).unwrap_or_default() {
            let path = entry.path();
            let is_pool = (path.file_name())
                .is_some_and(|name| name.as_encoded_bytes().starts_with(b"pool-"));
            // A pool that is just going is found no more.
            if is_pool
                && !self.known.contains(path)
                && let Ok((pool, mapping)) = Pool::open(path)
            {
                self.known.insert(path.to_owned());
                let pool = Arc::new(pool);
                pools.push(OpenPool { pool, mapping });
            }
        }
        let mut claimed = Vec::new();
        for open in std::mem::take(pools) {
            match Control::claimed(&open.pool) {
                Some(control) => claimed.push(ProcessSpool::in_pool(&self.root, control, open)),
                None => pools.push(open),
            }
        }
        for process in &claimed {
            self.known.insert(process.folder().to_owned());
        }
        claimed
    }

    /// Returns the processes that have appeared since the last call, oldest first.
    ///
    /// # Errors
    /// The spool folder cannot be read, or a process's control page cannot (reported once); the others are still
    /// found.
    pub fn new_processes(&mut self) -> Result<Vec<ProcessSpool>, Error> {
        let mut found = self.claimed_pools();
        let mut unreadable = None;
        for folder in sorted_entries(&self.root)? {
            if !self.known.contains(folder.path()) && folder.is_folder() {
                match ProcessSpool::open(&folder) {
                    Ok(process) => found.push(process),
                    // The folder is being created; the next call sees it complete. A version is written before all is complete.
                    Err(error)
                        if is_young(folder.path())
                            && !matches!(error, Error::OtherBuild { .. }) =>
                    {
                        continue;
                    }
                    Err(error) => match ProcessSpool::without_page(&folder, &error) {
                        Some(process) => found.push(process),
                        None => {
                            unreadable = Some((folder, error));
                            continue;
                        }
                    },
                }
                self.known.insert(folder.path().to_owned());
            }
        }
        if let (Some((folder, error)), true) = (unreadable, found.is_empty()) {
            self.known.insert(folder.path().to_owned());
            return Err(error);
        }
        found.sort_by_key(ProcessSpool::start_ns);
        Ok(found)
    }
}

/// Counts of records that [`ProcessSpool::drain`] could not deliver.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Damage {
    /// Records that were begun but never committed, dropped, or cut off.
    pub missing_records: u64,
    /// Records that could not be decoded.
    pub undecodable_records: u64,
}

/// The logs of one process, from which the session takes events.
pub struct ProcessSpool {
    folder: ContainedPath,
    control: Control,
    /// The pool in memory that the process writes to; absent where it writes files.
    pool: Option<OpenPool>,
    /// True where the control page has been lost, so that it is not known how many records were begun.
    lost_page: bool,
    /// The logs of threads, by the system's number of the thread.
    logs: BTreeMap<u32, ThreadLog>,
    seen_chunks: HashSet<ContainedPath>,
    /// The sequence number of the next record to deliver.
    expected: u64,
    /// The chunk files that were delivered completely and are not deleted yet, with their sizes.
    consumed: Vec<(ContainedPath, u64)>,
    damage: Damage,
    /// Missing records that the drop counter explains.
    explained: u64,
    /// The sequence number that is being waited for, and since when.
    waited_for: Option<(u64, Instant)>,
}

impl std::fmt::Debug for ProcessSpool {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("ProcessSpool")
            .field("folder", &self.folder)
            .field("expected", &self.expected)
            .finish()
    }
}

/// The log of one thread: its chunks, the oldest first, and the offset of the next record in the first of them.
#[derive(Default)]
struct ThreadLog {
    chunks: VecDeque<Chunk>,
    offset: usize,
}

/// A chunk. A file is read when its records are due, one at a time for each thread.
struct Chunk {
    path: ContainedPath,
    /// Lower bound of the sequence numbers in the chunk.
    from: u64,
    reader: Option<ChunkReader>,
}

/// The next record in a log, ordered by number.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
struct NextRecord {
    number: u64,
    /// False while the chunk has not been opened: the number is then a lower bound.
    is_known: bool,
}

/// The end of a drain.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum DrainUntil {
    /// Stops at the first sequence number that was taken and not committed, unless that was long ago.
    Committed,
    /// Drains everything: the process is gone, so missing records are lost.
    End,
}

impl ProcessSpool {
    fn open(folder: &ContainedPath) -> Result<ProcessSpool, Error> {
        Ok(ProcessSpool::new(folder.clone(), Control::open(folder)?))
    }

    /// Opens the folder of a process whose control page somebody has cut or removed: the name of the folder says which
    /// process it was. `None` where `error` is another one.
    fn without_page(folder: &ContainedPath, error: &Error) -> Option<ProcessSpool> {
        match error {
            Error::Cut { .. } => {}
            Error::Io { source, .. } if source.kind() == ErrorKind::NotFound => {}
            _ => return None,
        }
        let name = folder.path().file_name()?.to_str()?.strip_prefix('p')?;
        let (pid, start_ns) = name.split_once('-')?;
        let control = Control::lost(folder, pid.parse().ok()?, start_ns.parse().ok()?);
        let mut process = ProcessSpool::new(folder.clone(), control);
        process.lost_page = true;
        Some(process)
    }

    /// Takes the pool of a process that has claimed it, and makes the folder to which it is collected.
    fn in_pool(root: &ContainedPath, control: Control, pool: OpenPool) -> ProcessSpool {
        let page = control.page();
        let (pid, start_ns) = (page.pid.load(Relaxed), page.start_ns.load(Relaxed));
        let folder = root.join(format!("p{pid}-{start_ns}"));
        // The folder is there already when another process goes on with the session's work. Without it, nothing can be
        // recovered after a crash, and the recording goes on.
        let _ = gapscope_files::create_private_folder(folder.path());
        let mut process = ProcessSpool::new(folder, control);
        process.pool = Some(pool);
        // The next collection tries again.
        let _ = process.keep_page();
        process
    }

    fn new(folder: ContainedPath, control: Control) -> ProcessSpool {
        ProcessSpool {
            folder,
            control,
            pool: None,
            lost_page: false,
            logs: BTreeMap::new(),
            seen_chunks: HashSet::new(),
            expected: 0,
            consumed: Vec::new(),
            damage: Damage::default(),
            explained: 0,
            waited_for: None,
        }
    }

    /// Writes the control page of a pool to the file from which it is recovered.
    fn keep_page(&self) -> io::Result<()> {
        let Some(open) = &self.pool else {
            return Ok(());
        };
        let file = self.folder.join("control");
        let file = file.create_new().or_else(|_| file.open_for_changes())?;
        file.write_all_at(&open.pool.page_bytes(), 0)
    }

    /// Takes what the process has committed by now: from its pool, whose records are written to files too, or from the
    /// files that are being read.
    fn collect(&mut self) {
        let Some(open) = &self.pool else {
            self.control.refresh();
            let chunks = self
                .logs
                .values_mut()
                .filter_map(|log| log.chunks.front_mut());
            for reader in chunks.filter_map(|chunk| chunk.reader.as_mut()) {
                reader.refresh();
            }
            return;
        };
        // All chunks are listed before the first is read: a thread seals its chunk before it makes another.
        for chunk in PoolChunk::all(&open.pool) {
            let path = self.folder.join(chunk.file_name());
            let log = self.logs.entry(chunk.thread).or_default();
            if self.seen_chunks.insert(path.clone()) {
                log.chunks.push_back(Chunk {
                    path: path.clone(),
                    from: chunk.from,
                    reader: Some(ChunkReader::of_pool(chunk.bytes())),
                });
            }
            let own = log.chunks.iter_mut().find(|own| own.path == path);
            let reader = own.and_then(|own| own.reader.as_mut());
            // Without a reader, the chunk has been delivered, and its file is needed no more.
            let _ = chunk.collect(&open.pool, &path, reader);
        }
        // The page is needed when this process is killed, and the next collection tries again.
        let _ = self.keep_page();
    }

    /// Writes what the process has committed by now to its files, and delivers nothing: for whoever goes on with the work
    /// of a session that was killed.
    ///
    /// # Errors
    /// A file cannot be written, as on a full disk. What it lacks stays in the pool for the next call.
    pub fn keep(&mut self) -> io::Result<()> {
        let Some(open) = &self.pool else {
            return Ok(());
        };
        match gapscope_files::create_private_folder(self.folder.path()) {
            Err(error) if error.kind() != ErrorKind::AlreadyExists => return Err(error),
            _ => {}
        }
        let mut kept = self.keep_page();
        kept = kept.or_else(|error| is_meddling(&error).then_some(()).ok_or(error));
        for chunk in PoolChunk::all(&open.pool) {
            let path = self.folder.join(chunk.file_name());
            kept = kept.and(chunk.collect(&open.pool, &path, None));
        }
        kept
    }

    /// Says that nothing more will be read, so that the memory of a pool goes.
    pub fn finish(&mut self) {
        if let Some(open) = &self.pool {
            open.pool.page().finished.store(1, Release);
        }
    }

    /// Returns the name by which the process's mapping of its spool is known in `/proc/PID/maps`, from its last parts.
    pub fn mapping(&self) -> PathBuf {
        match &self.pool {
            Some(open) => open.mapping.clone(),
            None => {
                let folder = self.folder.path().file_name().unwrap_or_default();
                Path::new(folder).join("control")
            }
        }
    }

    /// Returns the process id.
    pub fn pid(&self) -> u32 {
        self.control.page().pid.load(Relaxed)
    }

    /// Returns the start of the recording, on the host's monotonic clock.
    pub fn start_ns(&self) -> i64 {
        self.control.page().start_ns.load(Relaxed)
    }

    /// Returns the folder.
    pub fn folder(&self) -> &Path {
        self.folder.path()
    }

    /// Returns the shared counters and switches.
    pub fn control(&self) -> &Control {
        &self.control
    }

    /// Returns the sequence number of the next record to deliver: a checkpoint.
    pub fn position(&self) -> u64 {
        self.expected
    }

    /// Continues from a checkpoint: records below `position` are skipped.
    pub fn resume_at(&mut self, position: u64) {
        self.expected = position;
    }

    /// Returns the counts of missing records so far.
    pub fn damage(&self) -> Damage {
        self.damage
    }

    /// Delivers new records in sequence, each with its thread, at least those that were committed at the call.
    /// Returns their number.
    ///
    /// # Errors
    /// The folder cannot be read. A damaged chunk is not an error: its rest is counted in [`Self::damage`].
    pub fn drain(
        &mut self,
        until: DrainUntil,
        mut deliver: impl FnMut(ids::Thread, Event<'_>),
    ) -> Result<u64, Error> {
        self.control.count_drain();
        self.control.refresh();
        // This read comes before the logs, so that everything below the number has at least been begun.
        let begun = self.control.page().next_sequence.load(Acquire);
        if self.pool.is_none() {
            self.find_chunks()?;
        }
        self.collect();
        let mut delivered = 0;
        let mut queue = self.queue();
        // The number that was looked for again in all logs, because it may have been committed meanwhile.
        let mut looked_for = None;
        while let Some(&Reverse((next, thread))) = queue.peek() {
            let sequence = next.number;
            if !next.is_known {
                queue.pop();
                if let Some(next) = self.peek(thread, sequence, until) {
                    queue.push(Reverse((next, thread)));
                }
                continue;
            }
            // Another log has a record of this number, so one of them is damaged.
            if sequence < self.expected {
                queue.pop();
                if let Some(next) = self.peek(thread, self.expected, until) {
                    queue.push(Reverse((next, thread)));
                }
                continue;
            }
            if sequence != self.expected && until == DrainUntil::Committed {
                if self.expected >= begun {
                    break;
                }
                if looked_for.replace(self.expected) != Some(self.expected) {
                    self.collect();
                    queue = self.queue();
                    continue;
                }
                if !self.gap_is_final(sequence) {
                    break;
                }
            }
            queue.pop();
            self.damage.missing_records += sequence - self.expected;
            self.expected = sequence + 1;
            if let Some(log) = self.logs.get_mut(&thread) {
                if let Some((group, payload)) = log.record() {
                    match Event::decode(group, payload) {
                        Some(event) => deliver(ids::Thread(thread), event),
                        None => self.damage.undecodable_records += 1,
                    }
                }
                log.skip();
            }
            delivered += 1;
            if let Some(next) = self.peek(thread, self.expected, until) {
                queue.push(Reverse((next, thread)));
            }
        }
        // Logs of threads that have ended go; a new thread with the same number gets a new log.
        self.logs.retain(|_, log| !log.chunks.is_empty());
        if until == DrainUntil::End {
            let begun = if self.lost_page { 0 } else { begun };
            let lost = begun.saturating_sub(self.expected);
            self.damage.missing_records += lost;
            self.expected += lost;
        }
        Ok(delivered)
    }

    /// Returns the threads in the order of their next records.
    fn queue(&self) -> BinaryHeap<Reverse<(NextRecord, u32)>> {
        let next = |(thread, log): (&u32, &ThreadLog)| {
            let next = NextRecord {
                number: log.chunks.front()?.from,
                is_known: false,
            };
            Some(Reverse((next, *thread)))
        };
        self.logs.iter().filter_map(next).collect()
    }

    /// Returns the next record in the log of a thread, see [`ThreadLog::peek`]; `None` when nothing is committed.
    /// Records that were delivered or counted as missing before are skipped.
    fn peek(&mut self, thread: u32, due: u64, until: DrainUntil) -> Option<NextRecord> {
        // Returns the number up to which records are believed.
        let end = || match self.lost_page {
            false => self.control.page().next_sequence.load(Acquire),
            true => self.expected.saturating_add(MAX_MISSING),
        };
        let log = self.logs.get_mut(&thread)?;
        loop {
            let next = log.peek(&mut self.damage, &mut self.consumed, due, until)?;
            if !next.is_known {
                return Some(next);
            }
            if next.number >= end() {
                // A copy of the page may be older than the record.
                self.control.refresh();
            }
            if next.number >= end() {
                // The number was never handed out: the bytes are damaged.
                self.damage.undecodable_records += 1;
            } else if next.number >= self.expected {
                return Some(next);
            }
            log.skip();
        }
    }

    /// Deletes the chunk files that were delivered completely. Call it once the data from them is durable.
    pub fn delete_consumed(&mut self) {
        for (path, bytes) in self.consumed.drain(..) {
            // A file that is gone waits no more either.
            let removed = path.remove_file();
            if self.pool.is_some() || removed.is_ok() {
                self.control.count_drained(bytes);
            }
            self.seen_chunks.remove(&path);
        }
    }

    /// Returns true when the records up to `sequence` will never come: drops, which have numbers, explain them, or
    /// they have been waited for long enough.
    fn gap_is_final(&mut self, sequence: u64) -> bool {
        let missing = sequence - self.expected;
        let dropped = self.control.page().dropped.load(Acquire);
        if missing <= dropped.saturating_sub(self.explained) {
            self.explained += missing;
            return true;
        }
        match self.waited_for {
            Some((number, since)) if number == self.expected => since.elapsed() >= GAP_PATIENCE,
            _ => {
                self.waited_for = Some((self.expected, Instant::now()));
                false
            }
        }
    }

    /// Adds chunk files that have appeared in the folder to the logs of their threads.
    fn find_chunks(&mut self) -> Result<(), Error> {
        let entries = match sorted_entries(&self.folder) {
            // Somebody has deleted the folder, and what is missing is counted.
            Err(Error::Io { source, .. }) if source.kind() == ErrorKind::NotFound => return Ok(()),
            entries => entries?,
        };
        for path in entries {
            if path.path().extension().is_none_or(|e| e != "chunk")
                || self.seen_chunks.contains(&path)
            {
                continue;
            }
            if let Some((thread, from)) = parse_chunk_name(path.path()) {
                let log = self.logs.entry(thread).or_default();
                self.seen_chunks.insert(path.clone());
                log.chunks.push_back(Chunk {
                    path,
                    from,
                    reader: None,
                });
            }
        }
        Ok(())
    }
}

impl ThreadLog {
    /// Returns the next record; `None` when nothing is committed. A chunk that only has numbers above `due` is not
    /// opened. A finished chunk is added to `consumed` and replaced by the next one; damage in it is counted in
    /// `damage`.
    fn peek(
        &mut self,
        damage: &mut Damage,
        consumed: &mut Vec<(ContainedPath, u64)>,
        due: u64,
        until: DrainUntil,
    ) -> Option<NextRecord> {
        loop {
            // A thread seals its chunk before it creates another.
            let is_last = self.chunks.len() == 1 && until != DrainUntil::End;
            let chunk = self.chunks.front_mut()?;
            if chunk.reader.is_none() {
                if chunk.from > due {
                    return Some(NextRecord {
                        number: chunk.from,
                        is_known: false,
                    });
                }
                match ChunkReader::open(&chunk.path) {
                    Ok(reader) => chunk.reader = Some(reader),
                    // A foreign or torn file never becomes whole; its records show as missing numbers.
                    Err(Error::Foreign { .. }) if !is_last => {
                        self.chunks.pop_front();
                        continue;
                    }
                    Err(_) if until == DrainUntil::End => {
                        self.chunks.pop_front();
                        continue;
                    }
                    // The thread is still writing the header, or the system cannot open the file now.
                    Err(_) => return None,
                }
            }
            let reader = chunk.reader.as_ref()?;
            // The seal is read before the records: once sealed, the committed records are complete.
            let finished = !is_last || reader.sealed();
            match reader.record(self.offset) {
                Ok(Some(record)) => {
                    return Some(NextRecord {
                        number: record.sequence,
                        is_known: true,
                    });
                }
                Ok(None) if !finished => return None,
                Ok(None) => {}
                Err(_) => damage.undecodable_records += 1,
            }
            consumed.push((chunk.path.clone(), reader.bytes()));
            self.chunks.pop_front();
            self.offset = 0;
        }
    }

    fn current(&self) -> Option<&ChunkReader> {
        self.chunks.front()?.reader.as_ref()
    }

    /// Returns the group (the number of the type of events) and the payload of the record at the offset.
    fn record(&self) -> Option<(u32, &[u8])> {
        let record = self.current()?.record(self.offset).ok()??;
        Some((record.group, record.payload))
    }

    /// Moves the offset behind the record there.
    fn skip(&mut self) {
        if let Some(Ok(Some(record))) = self.current().map(|c| c.record(self.offset)) {
            self.offset = record.next;
        }
    }
}

/// Parses the thread and the lower bound of sequence numbers from a chunk's name: `t<tid>-<n>-<number>.chunk`.
fn parse_chunk_name(path: &Path) -> Option<(u32, u64)> {
    let (thread, rest) = path
        .file_stem()?
        .to_str()?
        .strip_prefix('t')?
        .split_once('-')?;
    let (_, from) = rest.split_once('-')?;
    Some((thread.parse().ok()?, from.parse().ok()?))
}

/// Returns the paths in a folder, in the order of their names.
fn sorted_entries(folder: &ContainedPath) -> Result<Vec<ContainedPath>, Error> {
    let names = folder.names().map_err(|e| Error::io(folder.path(), e))?;
    Ok(names.into_iter().map(|name| folder.join(name)).collect())
}

/// Returns true for a folder that was changed less than 2 s ago.
fn is_young(folder: &Path) -> bool {
    std::fs::metadata(folder)
        .and_then(|m| m.modified())
        .is_ok_and(|made| made.elapsed().is_ok_and(|age| age.as_secs() < 2))
}
