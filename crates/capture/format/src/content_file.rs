//! Reads `content.bin`: a [`Chunk`] record with the place of a compressed frame goes in, the frame's bytes come out.

use std::fs::File;
use std::io;
use std::os::unix::fs::FileExt;

use crate::invalid::Fault;
use crate::model::Chunk;

/// The file `content.bin`, a sequence of frames.
#[derive(Debug)]
pub(crate) struct ContentFile {
    file: File,
    /// Size of the file when it was last read.
    bytes: u64,
    /// End of the last frame that was claimed.
    taken: u64,
}

impl ContentFile {
    pub(crate) fn new(file: File) -> ContentFile {
        ContentFile {
            file,
            bytes: 0,
            taken: 0,
        }
    }

    /// Claims the frame of a chunk, which must not overlap frames claimed before, and must be in the file completely.
    pub(crate) fn take(&mut self, chunk: &Chunk) -> Result<(), Fault> {
        let Chunk {
            hash, at, stored, ..
        } = *chunk;
        if at < self.taken {
            let taken = self.taken;
            return Err(Fault::Overlap { hash, at, taken });
        }
        let end = at.checked_add(u64::from(stored));
        let end = end.ok_or(Fault::Start { hash, at })?;
        if end > self.bytes {
            // The program may still be writing.
            let metadata = self.file.metadata();
            let metadata = metadata.map_err(|error| Fault::Unreadable(error.to_string()))?;
            self.bytes = metadata.len();
        }
        if end > self.bytes {
            let bytes = self.bytes;
            return Err(Fault::End { hash, end, bytes });
        }
        self.taken = end;
        Ok(())
    }

    /// Reads a frame, whose place was claimed before.
    pub(crate) fn read(&self, chunk: &Chunk) -> io::Result<Vec<u8>> {
        let mut frame = vec![0; chunk.stored as usize];
        self.file.read_exact_at(&mut frame, chunk.at)?;
        Ok(frame)
    }
}
