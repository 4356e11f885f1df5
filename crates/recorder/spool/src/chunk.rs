//! Reads and writes one chunk file, a piece of a spool (what the processes of a recorded program write for the
//! session, the process of `gapscope record`): a header and the records of one thread. The writer appends events as
//! bytes inside the program; the reader returns whole records to the session. A record becomes visible when it is
//! committed: complete, and counted in the header.

use crate::control::map_new_file;
use crate::{Error, VERSION};
use gapscope_files::ContainedPath;
use memmap2::{MmapOptions, MmapRaw};
use std::path::{Path, PathBuf};
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

/// The writing end of a chunk file, which one thread has.
pub(crate) struct ChunkWriter {
    map: MmapRaw,
    /// The bytes behind the header that hold records.
    used: usize,
}

impl ChunkWriter {
    /// Creates a chunk file of this size, for the records of a thread.
    pub fn create(path: &Path, thread: u32, bytes: usize) -> Result<ChunkWriter, Error> {
        let map = map_new_file(path, bytes.max(HEADER_BYTES + RECORD_HEADER_BYTES))?;
        let chunk = ChunkWriter { map, used: 0 };
        chunk.header().version.store(VERSION, Relaxed);
        chunk.header().thread.store(thread, Relaxed);
        chunk.header().magic.store(MAGIC, Release);
        Ok(chunk)
    }

    /// Returns the size of a chunk that holds one record of `payload` bytes.
    pub fn bytes_for(payload: usize) -> usize {
        HEADER_BYTES + RECORD_HEADER_BYTES + payload.next_multiple_of(8)
    }

    fn header(&self) -> &Header {
        // SAFETY: the mapping is page-aligned and longer than the header, which consists of atomics.
        unsafe { &*self.map.as_ptr().cast::<Header>() }
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
        let free = self.map.len().checked_sub(at + RECORD_HEADER_BYTES)?;
        // SAFETY: the range lies inside the mapping, and no other reference to it exists: readers touch only
        // committed bytes, which end before `at`, and this thread alone writes.
        let (head, body) = unsafe {
            std::slice::from_raw_parts_mut(
                self.map.as_mut_ptr().add(at),
                RECORD_HEADER_BYTES + free,
            )
        }
        .split_at_mut(RECORD_HEADER_BYTES);
        let length = fill(body)?;
        head[..4].copy_from_slice(&(length as u32).to_le_bytes());
        head[4..8].copy_from_slice(&group.to_le_bytes());
        // The number is taken as late as possible: the reader waits from then until the record is committed.
        head[8..].copy_from_slice(&sequence().to_le_bytes());
        // The last record may end within the padding of a full chunk.
        self.used = (self.used + RECORD_HEADER_BYTES + length.next_multiple_of(8))
            .min(self.map.len() - HEADER_BYTES);
        self.header().committed.store(self.used as u64, Release);
        Some(())
    }

    /// Marks that nothing more will be appended.
    pub fn seal(&self) {
        self.header().sealed.store(1, Release);
    }

    /// Returns the size of the file.
    pub fn bytes(&self) -> usize {
        self.map.len()
    }
}

/// The reading end of a chunk file, which may still be written to.
pub(crate) struct ChunkReader {
    map: MmapRaw,
    path: PathBuf,
}

impl ChunkReader {
    /// Maps a chunk file for reading.
    pub fn open(chunk: &ContainedPath) -> Result<ChunkReader, Error> {
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
        let map = MmapOptions::new()
            .map_raw_read_only(&file)
            .map_err(|e| Error::io(path, e))?;
        let chunk = ChunkReader {
            map,
            path: path.to_owned(),
        };
        if chunk.header().magic.load(Acquire) != MAGIC {
            return Err(foreign("its first bytes differ".to_owned()));
        }
        let version = chunk.header().version.load(Relaxed);
        if version != VERSION {
            return Err(foreign(format!("its version is {version}")));
        }
        Ok(chunk)
    }

    fn header(&self) -> &Header {
        // SAFETY: as in `ChunkWriter::header`; the length was checked when the file was opened.
        unsafe { &*self.map.as_ptr().cast::<Header>() }
    }

    /// Returns true once nothing more will be appended.
    pub fn sealed(&self) -> bool {
        self.header().sealed.load(Acquire) != 0
    }

    /// Returns the size of the file.
    pub fn bytes(&self) -> u64 {
        self.map.len() as u64
    }

    /// Returns the committed bytes, at most as many as the file has: a damaged file may claim more.
    fn committed(&self) -> &[u8] {
        let length =
            (self.header().committed.load(Acquire) as usize).min(self.map.len() - HEADER_BYTES);
        // SAFETY: the range lies inside the mapping and the writer never touches committed bytes again.
        unsafe { std::slice::from_raw_parts(self.map.as_ptr().add(HEADER_BYTES), length) }
    }

    /// Returns the record at `offset` (bytes behind the header; 0 is the first record), or `None` when nothing more
    /// is committed.
    ///
    /// # Errors
    /// The record reaches past the committed bytes: the file is damaged from here on.
    pub fn record(&self, offset: usize) -> Result<Option<Record<'_>>, Error> {
        let committed = self.committed();
        let Some(head) = committed.get(offset..offset + RECORD_HEADER_BYTES) else {
            return Ok(None);
        };
        let length = u32::from_le_bytes([head[0], head[1], head[2], head[3]]) as usize;
        let mut sequence = [0; 8];
        sequence.copy_from_slice(&head[8..]);
        let start = offset + RECORD_HEADER_BYTES;
        match committed.get(start..start + length) {
            Some(payload) => Ok(Some(Record {
                sequence: u64::from_le_bytes(sequence),
                group: u32::from_le_bytes([head[4], head[5], head[6], head[7]]),
                payload,
                next: start + length.next_multiple_of(8),
            })),
            None => Err(Error::Foreign {
                path: self.path.clone(),
                reason: format!(
                    "the record at byte {offset} says {length} bytes, more than are there"
                ),
            }),
        }
    }
}
