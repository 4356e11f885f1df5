//! Keeps where each piece of content is: `chunk` records go in, the bytes of pieces come out. What captures of Vulkan
//! and of CUDA check of content and outcomes in the same way is here, too.

use std::collections::HashMap;
use std::io;

use crate::content::{CHUNK_BYTES, Hash, MAX_CHUNK_BYTES, ZSTD_RATIO, piece_count};
use crate::content_file::ContentFile;
use crate::invalid::Fault;
use crate::model::{Chunk, Content, Outcome};

/// The pieces of content of a capture.
#[derive(Debug)]
pub(crate) struct Contents {
    /// The file that has the bytes of all chunks.
    file: ContentFile,
    /// The place and size of each chunk, by the hash of its bytes.
    chunks: HashMap<Hash, Chunk>,
}

impl Contents {
    pub(crate) fn new(file: ContentFile) -> Contents {
        Contents {
            file,
            chunks: HashMap::new(),
        }
    }

    /// Claims the chunk's place in the file. A chunk must not expand by more than zstd can.
    pub(crate) fn add(&mut self, chunk: Chunk) -> Result<(), Fault> {
        let Chunk { hash, bytes, .. } = chunk;
        let most = u64::from(chunk.stored).saturating_mul(ZSTD_RATIO);
        if bytes > MAX_CHUNK_BYTES || u64::from(bytes) > most {
            let stored = chunk.stored;
            return Err(Fault::Ratio {
                hash,
                bytes,
                stored,
            });
        }
        if self.chunks.contains_key(&hash) {
            return Err(Fault::SecondContent(hash));
        }
        self.file.take(&chunk)?;
        self.chunks.insert(hash, chunk);
        Ok(())
    }

    /// Reads a chunk.
    ///
    /// # Errors
    /// The chunk is not in the file, or its bytes have another hash.
    pub(crate) fn read(&self, hash: Hash) -> io::Result<Vec<u8>> {
        let damaged = |what: &str| {
            io::Error::new(io::ErrorKind::InvalidData, format!("content {hash} {what}"))
        };
        let chunk = (self.chunks.get(&hash)).ok_or_else(|| damaged("is missing"))?;
        let frame = (self.file.read(chunk)).map_err(|_| damaged("is cut off"))?;
        let bytes = zstd::bulk::decompress(&frame, chunk.bytes as usize)
            .map_err(|_| damaged("cannot be decompressed"))?;
        // Callers have relied on the size that the record gives.
        if bytes.len() != chunk.bytes as usize || Hash::new(&bytes) != hash {
            return Err(damaged("has been changed"));
        }
        Ok(bytes)
    }

    /// Returns the size of a chunk; `None` if the capture does not have it.
    pub(crate) fn bytes(&self, hash: Hash) -> Option<u32> {
        self.chunks.get(&hash).map(|chunk| chunk.bytes)
    }

    /// Returns the size of a chunk, or a fault if there is none.
    pub(crate) fn has(&self, hash: Hash) -> Result<u32, Fault> {
        self.bytes(hash).ok_or(Fault::NoContent(hash))
    }

    /// Returns the number of bytes of these chunks together; chunks that are not here count as none.
    pub(crate) fn total(&self, hashes: &[Hash]) -> u64 {
        let sizes = hashes.iter().map(|hash| self.bytes(*hash));
        sizes.flatten().map(u64::from).sum()
    }

    /// Checks that the chunks follow each other inside an allocation of so many bytes, and end where pieces do.
    pub(crate) fn check_content(&self, content: &Content, of: u64) -> Result<(), Fault> {
        if content.chunks.is_empty() {
            return Err(Fault::NoPieces);
        }
        let mut at = content.offset;
        for (index, hash) in content.chunks.iter().enumerate() {
            let bytes = u64::from(self.has(*hash)?);
            inside(at, bytes, of)?;
            let room = CHUNK_BYTES - at % CHUNK_BYTES;
            let is_last = index + 1 == content.chunks.len();
            if bytes == 0 || bytes > room || (bytes < room && !is_last) {
                return Err(Fault::PieceBytes { index, bytes, room });
            }
            at += bytes;
        }
        Ok(())
    }
}

/// Checks that the range of an outcome is in an allocation of so many bytes and has a hash for each piece.
pub(crate) fn check_outcome(outcome: &Outcome, of: u64) -> Result<(), Fault> {
    inside(outcome.offset, outcome.bytes, of)?;
    let expected = piece_count(outcome.offset, outcome.bytes);
    let found = outcome.hashes.len();
    if expected != found as u64 {
        return Err(Fault::HashCount { found, expected });
    }
    if found == 0 {
        return Err(Fault::NoPieces);
    }
    Ok(())
}

/// Checks that a range of bytes is in a whole of `of` bytes.
pub(crate) fn inside(offset: u64, bytes: u64, of: u64) -> Result<(), Fault> {
    match offset.checked_add(bytes) {
        Some(end) if end <= of => Ok(()),
        _ => Err(Fault::Outside { offset, bytes, of }),
    }
}
