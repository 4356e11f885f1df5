//! Reads and writes one chunk, a piece of a spool (what the processes of a recorded program write for the session, the
//! process of `gapscope record`): a header and the records of one thread, in a pool or in a file. The writer appends
//! events as bytes inside the program; the reader returns whole records to the session. A record becomes visible when
//! it is committed: complete, and counted in the header.

use crate::control::map_new_file;
use crate::pool::{Blocks, Pool};
use crate::{Error, VERSION};
use gapscope_files::ContainedPath;
use memmap2::MmapRaw;
use std::io::{self, ErrorKind};
use std::os::unix::fs::FileExt;
use std::path::Path;
use std::sync::atomic::Ordering::{Acquire, Relaxed, Release};
use std::sync::atomic::{AtomicU32, AtomicU64};

/// The first 8 bytes of a chunk file. They are written last, so that whoever finds them finds a whole header.
const MAGIC: u64 = u64::from_le_bytes(*b"GAPSPOOL");
/// The bytes of a chunk file before its first record.
const HEADER_BYTES: usize = 64;
/// The bytes of a record's header: length of the payload (the encoded event; u32), its group (u32), sequence number
/// (u64).
pub(crate) const RECORD_HEADER_BYTES: usize = 16;

/// The first 64 bytes of a chunk file.
#[repr(C)]
struct Header {
    magic: AtomicU64,
    version: AtomicU32,
    thread: AtomicU32,
    /// The bytes of complete records behind the header.
    committed: AtomicU64,
    /// 1 once the writer will append nothing more.
    sealed: AtomicU32,
    /// In a pool: the number of the chunk among those of the process; in a file, its name says it.
    number: AtomicU64,
    /// In a pool: the lower bound of the sequence numbers; in a file, its name says it.
    from: AtomicU64,
    /// In a pool: how many of the committed bytes are in the chunk's file.
    collected: AtomicU64,
}

/// The bytes of a header that a file has.
const FILE_HEADER_BYTES: usize = 28;

/// Returns the name of a chunk's file.
fn file_name(thread: u32, number: u64, from: u64) -> String {
    format!("t{thread}-{number:08}-{from}.chunk")
}

/// A committed record, as read from a chunk.
pub(crate) struct Record<'a> {
    /// The number of the record among those of all threads of the process, in the order of writing.
    pub sequence: u64,
    /// The group of the event ([`crate::event::EventGroup::GROUP`]).
    pub group: u32,
    pub payload: &'a [u8],
    /// The offset of the next record.
    pub next: usize,
}

/// The writing end of a chunk, which one thread has.
pub(crate) struct ChunkWriter {
    memory: ChunkMemory,
    /// The bytes behind the header that hold records.
    used: usize,
}

/// Where a chunk is written.
enum ChunkMemory {
    File(MmapRaw),
    Pool(Blocks),
}

impl ChunkMemory {
    fn start(&self) -> *mut u8 {
        match self {
            ChunkMemory::File(map) => map.as_mut_ptr(),
            ChunkMemory::Pool(blocks) => blocks.start.as_ptr(),
        }
    }

    fn bytes(&self) -> usize {
        match self {
            ChunkMemory::File(map) => map.len(),
            ChunkMemory::Pool(blocks) => blocks.bytes,
        }
    }
}

impl ChunkWriter {
    /// Creates a chunk file of this size in `folder`, for the records of a thread.
    pub fn create(
        folder: &Path,
        (thread, number, from): (u32, u64, u64),
        bytes: usize,
    ) -> Result<ChunkWriter, Error> {
        let path = folder.join(file_name(thread, number, from));
        let map = map_new_file(&path, bytes.max(HEADER_BYTES + RECORD_HEADER_BYTES))?;
        Ok(ChunkWriter::begin(ChunkMemory::File(map), thread))
    }

    /// Makes a chunk of this size in a pool; `None` when the pool has no such room.
    pub fn in_pool(
        pool: &Pool,
        (thread, number, from): (u32, u64, u64),
        bytes: usize,
    ) -> Option<ChunkWriter> {
        let blocks = pool.allocate(bytes.max(HEADER_BYTES + RECORD_HEADER_BYTES))?;
        let header = header_of(&blocks);
        header.number.store(number, Relaxed);
        header.from.store(from, Relaxed);
        Some(ChunkWriter::begin(ChunkMemory::Pool(blocks), thread))
    }

    fn begin(memory: ChunkMemory, thread: u32) -> ChunkWriter {
        let chunk = ChunkWriter { memory, used: 0 };
        let header = chunk.header();
        header.version.store(VERSION, Relaxed);
        header.thread.store(thread, Relaxed);
        // An earlier chunk in the same blocks may have left its numbers.
        header.committed.store(0, Relaxed);
        header.sealed.store(0, Relaxed);
        header.collected.store(0, Relaxed);
        header.magic.store(MAGIC, Release);
        chunk
    }

    /// Returns the size of a chunk that holds one record of `payload` bytes.
    pub fn bytes_for(payload: usize) -> usize {
        HEADER_BYTES + RECORD_HEADER_BYTES + payload.next_multiple_of(8)
    }

    fn header(&self) -> &Header {
        // SAFETY: the memory is page-aligned and longer than the header, which consists of atomics.
        unsafe { &*self.memory.start().cast::<Header>() }
    }

    /// Lets `fill` write a payload into the free space and return its length, then takes a number from `sequence` and
    /// commits the record. Returns `None`, without taking a number, when the payload did not fit.
    pub fn append(
        &mut self,
        group: u32,
        sequence: impl FnOnce() -> u64,
        fill: impl FnOnce(&mut [u8]) -> Option<usize>,
    ) -> Option<()> {
        let at = HEADER_BYTES + self.used;
        let free = (self.memory.bytes()).checked_sub(at + RECORD_HEADER_BYTES)?;
        // SAFETY: the range lies inside the memory, and no other reference to it exists: readers touch only
        // committed bytes, which end before `at`, and this thread alone writes.
        let (head, body) = unsafe {
            std::slice::from_raw_parts_mut(self.memory.start().add(at), RECORD_HEADER_BYTES + free)
        }
        .split_at_mut(RECORD_HEADER_BYTES);
        let length = fill(body)?;
        head[..4].copy_from_slice(&(length as u32).to_le_bytes());
        head[4..8].copy_from_slice(&group.to_le_bytes());
        // The number is taken as late as possible: the reader waits from then until the record is committed.
        head[8..].copy_from_slice(&sequence().to_le_bytes());
        // The last record may end within the padding of a full chunk.
        self.used = (self.used + RECORD_HEADER_BYTES + length.next_multiple_of(8))
            .min(self.memory.bytes() - HEADER_BYTES);
        self.header().committed.store(self.used as u64, Release);
        Some(())
    }

    /// Marks that nothing more will be appended.
    pub fn seal(&self) {
        self.header().sealed.store(1, Release);
    }

    /// Returns the size of the chunk.
    pub fn bytes(&self) -> usize {
        self.memory.bytes()
    }
}

fn header_of(blocks: &Blocks) -> &Header {
    // SAFETY: blocks are page-aligned, mapped and longer than the header, which consists of atomics.
    unsafe { blocks.start.cast::<Header>().as_ref() }
}

/// A chunk in a pool, as the session finds it.
pub(crate) struct PoolChunk {
    blocks: Blocks,
    pub thread: u32,
    pub number: u64,
    /// The lower bound of the sequence numbers.
    pub from: u64,
}

impl PoolChunk {
    /// Returns the chunks of a pool, in the order in which they were made.
    pub fn all(pool: &Pool) -> Vec<PoolChunk> {
        let mut chunks: Vec<PoolChunk> = (pool.chunks().into_iter())
            .filter(|blocks| header_of(blocks).magic.load(Acquire) == MAGIC)
            .map(|blocks| {
                let header = header_of(&blocks);
                PoolChunk {
                    thread: header.thread.load(Relaxed),
                    number: header.number.load(Relaxed),
                    from: header.from.load(Relaxed),
                    blocks,
                }
            })
            .collect();
        chunks.sort_by_key(|chunk| chunk.number);
        chunks
    }

    /// Returns the name of the file into which the chunk is collected.
    pub fn file_name(&self) -> String {
        file_name(self.thread, self.number, self.from)
    }

    /// Returns the size of the chunk.
    pub fn bytes(&self) -> u64 {
        self.blocks.bytes as u64
    }

    /// Writes what has been committed since the last call to `file`, appends it to `reader`, and gives the memory back
    /// once the chunk is sealed.
    ///
    /// # Errors
    /// The file cannot be written, and the records stay for the next call. With a `reader`, the file is needed only when this
    /// process is killed, and there is no error; neither is there for a file that somebody has deleted.
    pub fn collect(
        self,
        pool: &Pool,
        file: &ContainedPath,
        reader: Option<&mut ChunkReader>,
    ) -> io::Result<()> {
        let header = header_of(&self.blocks);
        // The seal is read before the records: once sealed, the committed records are complete.
        let sealed = header.sealed.load(Acquire) != 0;
        let room = self.blocks.bytes - HEADER_BYTES;
        let committed = (header.committed.load(Acquire) as usize).min(room);
        let collected = (header.collected.load(Relaxed) as usize).min(committed);
        // SAFETY: the range lies inside the chunk, and the writer never touches committed bytes again. A program that
        // does so nevertheless damages its own records.
        let new = unsafe {
            let start = self.blocks.start.as_ptr().add(HEADER_BYTES + collected);
            std::slice::from_raw_parts(start, committed - collected)
        };
        if !new.is_empty() || sealed {
            match self.write(file, collected, new, sealed) {
                Err(error) if reader.is_none() && !is_meddling(&error) => return Err(error),
                _ => {}
            }
        }
        if let Some(reader) = reader {
            reader.records.extend_from_slice(new);
            reader.sealed |= sealed;
        }
        header.collected.store(committed as u64, Relaxed);
        if sealed {
            header.magic.store(0, Relaxed);
            pool.free(self.blocks);
        }
        Ok(())
    }

    /// Writes new records to the chunk's file, then the header that counts them.
    fn write(
        &self,
        file: &ContainedPath,
        collected: usize,
        new: &[u8],
        sealed: bool,
    ) -> io::Result<()> {
        // Somebody may have deleted the file: what comes from now on is kept.
        let file = match collected {
            0 => file.create_new().or_else(|_| file.open_for_changes())?,
            _ => file.open_for_changes().or_else(|_| file.create_new())?,
        };
        file.write_all_at(new, (HEADER_BYTES + collected) as u64)?;
        let mut header = Vec::with_capacity(FILE_HEADER_BYTES);
        header.extend(MAGIC.to_ne_bytes());
        header.extend(VERSION.to_ne_bytes());
        header.extend(self.thread.to_ne_bytes());
        header.extend(((collected + new.len()) as u64).to_ne_bytes());
        header.extend(u32::from(sealed).to_ne_bytes());
        header.resize(HEADER_BYTES, 0);
        file.write_all_at(&header, 0)
    }
}

/// Returns true for an error of a file that somebody has replaced, or whose folder is gone, which no later attempt mends.
pub(crate) fn is_meddling(error: &io::Error) -> bool {
    matches!(
        error.kind(),
        ErrorKind::NotFound | ErrorKind::InvalidInput | ErrorKind::AlreadyExists
    )
}

/// The reading end of a chunk, which may still be written to: a copy of its committed records. A mapping of the file
/// would end this process when somebody cuts the file.
pub(crate) struct ChunkReader {
    /// Where the chunk is read again; absent for one in a pool, whose records [`PoolChunk::collect`] appends.
    file: Option<ContainedPath>,
    records: Vec<u8>,
    sealed: bool,
    /// The size of the chunk.
    bytes: u64,
}

impl ChunkReader {
    /// Reads a chunk file.
    pub fn open(chunk: &ContainedPath) -> Result<ChunkReader, Error> {
        let mut reader = ChunkReader {
            file: Some(chunk.clone()),
            records: Vec::new(),
            sealed: false,
            bytes: 0,
        };
        reader.read(chunk)?;
        Ok(reader)
    }

    /// Begins a reader of a chunk in a pool.
    pub fn of_pool(bytes: u64) -> ChunkReader {
        ChunkReader {
            file: None,
            records: Vec::new(),
            sealed: false,
            bytes,
        }
    }

    /// Reads what a chunk file has more by now. A file that has been cut has no more.
    pub fn refresh(&mut self) {
        if let Some(file) = self.file.take() {
            if !self.sealed {
                let _ = self.read(&file);
            }
            self.file = Some(file);
        }
    }

    fn read(&mut self, chunk: &ContainedPath) -> Result<(), Error> {
        let path = chunk.path();
        let file = chunk.open().map_err(|e| Error::io(path, e))?;
        let foreign = |reason: String| Error::Foreign {
            path: path.to_owned(),
            reason,
        };
        let length = file.metadata().map_err(|e| Error::io(path, e))?.len();
        if length < HEADER_BYTES as u64 {
            return Err(foreign(format!("it has {length} bytes")));
        }
        let header = || {
            let mut bytes = [0; FILE_HEADER_BYTES];
            file.read_exact_at(&mut bytes, 0).map(|()| bytes)
        };
        let number = |bytes: &[u8]| {
            let mut whole = [0; 8];
            whole[..bytes.len()].copy_from_slice(bytes);
            u64::from_le_bytes(whole)
        };
        // The seal is read before the records: once sealed, the committed records are complete.
        let first = header().map_err(|e| Error::io(path, e))?;
        let sealed = number(&first[24..28]) != 0;
        let second = header().map_err(|e| Error::io(path, e))?;
        if first[..8] != MAGIC.to_le_bytes() {
            return Err(foreign("its first bytes differ".to_owned()));
        }
        let version = number(&first[8..12]);
        if version != u64::from(VERSION) {
            return Err(foreign(format!("its version is {version}")));
        }
        // A damaged file may claim more than it has.
        let committed = number(&second[16..24]).min(length - HEADER_BYTES as u64) as usize;
        let old = self.records.len();
        if committed > old {
            self.records.resize(committed, 0);
            let read = file.read_exact_at(&mut self.records[old..], (HEADER_BYTES + old) as u64);
            if let Err(error) = read {
                self.records.truncate(old);
                return Err(Error::io(path, error));
            }
        }
        (self.sealed, self.bytes) = (sealed, length);
        Ok(())
    }

    /// Returns true once nothing more will be appended.
    pub fn sealed(&self) -> bool {
        self.sealed
    }

    /// Returns the size of the chunk.
    pub fn bytes(&self) -> u64 {
        self.bytes
    }

    /// Returns the record at `offset` (bytes behind the header; 0 is the first record), or `None` when nothing more
    /// is committed. The error says that the record reaches past the committed bytes: the chunk is damaged from here on.
    pub fn record(&self, offset: usize) -> Result<Option<Record<'_>>, Damaged> {
        let committed = &self.records;
        let offset = self.after_hole(offset);
        let Some(head) = committed.get(offset..offset + RECORD_HEADER_BYTES) else {
            return Ok(None);
        };
        let length = u32::from_le_bytes([head[0], head[1], head[2], head[3]]) as usize;
        let mut sequence = [0; 8];
        sequence.copy_from_slice(&head[8..]);
        let start = offset + RECORD_HEADER_BYTES;
        let payload = committed.get(start..start + length).ok_or(Damaged)?;
        Ok(Some(Record {
            sequence: u64::from_le_bytes(sequence),
            group: u32::from_le_bytes([head[4], head[5], head[6], head[7]]),
            payload,
            next: start + length.next_multiple_of(8),
        }))
    }

    /// Returns the offset of the record at or behind `offset`: a file that somebody has cut or deleted has zeros in place of
    /// the records that were written before. No record has a length of zero, because each has a payload.
    fn after_hole(&self, offset: usize) -> usize {
        /// Records begin at multiples of this number of bytes. Length and group take as many.
        const STEP: usize = 8;
        let in_hole = |at: &usize| {
            let start = self.records.get(*at..*at + STEP);
            start.is_some_and(|bytes| bytes == [0; STEP])
        };
        let mut at = offset;
        while in_hole(&at) {
            at += STEP;
        }
        at
    }
}

/// Says that a chunk is damaged.
#[derive(Debug)]
pub(crate) struct Damaged;
