//! Reads the pages of a database file by their numbers, and keeps the blocks that were used last in memory.

use crate::Error;
use std::fs::File;
use std::io::{ErrorKind, Read, Seek, SeekFrom};
use std::path::Path;

/// The first bytes of a database.
pub(super) const MAGIC: &[u8; 16] = b"SQLite format 3\0";
/// The number of bytes that are read at once, because tables that were written one after the other lie together.
const BLOCK_BYTES: usize = 1 << 18;
/// The number of blocks that are kept, because the pages of tables that were written at the same time alternate.
const BLOCKS: usize = 8;

/// The pages of a database, which are read on demand.
pub(super) struct Pages {
    file: File,
    file_bytes: u64,
    page_bytes: usize,
    /// The usable bytes of a page, which are the same for all pages.
    usable: usize,
    /// The number of whole pages in the file.
    count: u32,
    /// The number of pages that the header promises and the file lacks.
    missing: u64,
    blocks: Vec<Block>,
    /// The number of uses of blocks so far.
    clock: u64,
    /// A bit for each page that was read.
    seen: Vec<u64>,
}

/// A part of the file that is kept in memory: its number, its bytes, and the value of `clock` at its last use.
struct Block {
    number: u64,
    bytes: Vec<u8>,
    used: u64,
}

impl Pages {
    /// Opens a file and reads its header.
    ///
    /// # Errors
    /// The file cannot be read, or is no database of a supported kind.
    pub fn open(path: &Path) -> Result<Pages, Error> {
        let refused = Error::read(path);
        let foreign = |found: &str| Error::foreign(path, "a database of SQLite", found.to_owned());
        let mut file = File::open(path).map_err(refused)?;
        let file_bytes = file.metadata().map_err(refused)?.len();
        let mut header = [0; 100];
        file.read_exact(&mut header)
            .map_err(|source| match source.kind() {
                ErrorKind::UnexpectedEof => foreign("it is shorter than a database's header"),
                _ => refused(source),
            })?;
        if &header[..16] != MAGIC {
            return Err(foreign("it does not begin as one"));
        }
        let number = |at: usize| u32::from_be_bytes(std::array::from_fn(|i| header[at + i]));
        let page_bytes = match u16::from_be_bytes([header[16], header[17]]) {
            1 => 65_536,
            bytes => usize::from(bytes),
        };
        let usable = page_bytes.saturating_sub(usize::from(header[20]));
        if !page_bytes.is_power_of_two() || page_bytes < 512 || usable < 480 {
            return Err(foreign("its header has an impossible size of pages"));
        }
        // A database without a table has the encoding 0.
        if number(56) > 1 {
            return Err(foreign(
                "its texts are UTF-16, which gapscope does not read",
            ));
        }
        let whole = u32::try_from(file_bytes / page_bytes as u64).unwrap_or(u32::MAX);
        // Versions of SQLite before 3.7.0 do not keep the number of pages up to date.
        let told = Some(number(28)).filter(|count| *count > 0 && number(24) == number(92));
        Ok(Pages {
            file,
            file_bytes,
            page_bytes,
            usable,
            count: whole,
            missing: u64::from(told.unwrap_or(whole).saturating_sub(whole)),
            blocks: Vec::new(),
            clock: 0,
            seen: vec![0; whole as usize / 64 + 1],
        })
    }

    pub fn file_bytes(&self) -> u64 {
        self.file_bytes
    }

    pub fn missing(&self) -> u64 {
        self.missing
    }

    pub fn usable(&self) -> usize {
        self.usable
    }

    /// Reads a page, counted from 1, into `page`. Returns false if the page does not exist or was read before,
    /// because each page belongs to one table only.
    pub fn read(&mut self, number: u32, page: &mut Vec<u8>) -> bool {
        page.clear();
        if number == 0 || number > self.count {
            return false;
        }
        let (word, bit) = (number as usize / 64, 1u64 << (number % 64));
        if self.seen[word] & bit != 0 {
            return false;
        }
        self.seen[word] |= bit;
        let start = u64::from(number - 1) * self.page_bytes as u64;
        let (block, offset) = (
            start / BLOCK_BYTES as u64,
            (start % BLOCK_BYTES as u64) as usize,
        );
        let usable = self.usable;
        let Some(block) = self.block(block) else {
            return false;
        };
        match block.get(offset..offset + usable) {
            Some(bytes) => {
                page.extend_from_slice(bytes);
                true
            }
            None => false,
        }
    }

    /// Returns a block, which is read if it is not in memory; `None` if the system fails to read it.
    fn block(&mut self, number: u64) -> Option<&[u8]> {
        self.clock += 1;
        let at = match self.blocks.iter().position(|block| block.number == number) {
            Some(at) => at,
            None => {
                let at = self.place();
                let block = &mut self.blocks[at];
                block.number = number;
                block.bytes.clear();
                let read = self
                    .file
                    .seek(SeekFrom::Start(number * BLOCK_BYTES as u64))
                    .and_then(|_| {
                        let mut part = (&mut self.file).take(BLOCK_BYTES as u64);
                        part.read_to_end(&mut block.bytes)
                    });
                if read.is_err() {
                    block.number = u64::MAX;
                    return None;
                }
                at
            }
        };
        self.blocks[at].used = self.clock;
        Some(&self.blocks[at].bytes)
    }

    /// Returns the index of a new block, or of the least recently used one.
    fn place(&mut self) -> usize {
        if self.blocks.len() < BLOCKS {
            self.blocks.push(Block {
                number: u64::MAX,
                bytes: Vec::with_capacity(BLOCK_BYTES),
                used: 0,
            });
            return self.blocks.len() - 1;
        }
        let oldest = (0..BLOCKS).min_by_key(|at| self.blocks[*at].used);
        oldest.unwrap_or(0)
    }
}
