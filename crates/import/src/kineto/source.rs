//! Reads a file in blocks on a thread of its own, and decompresses it if needed: [`Source::open`] starts the thread,
//! and [`Source::next`] appends one block after the other to a buffer.

use crate::{Error, Output, counted};
use std::io::{self, Read};
use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::mpsc::{Receiver, SyncSender, sync_channel};
use std::thread::JoinHandle;

/// The size of a block, which stays in a core's cache on its way from one thread to the other.
const BLOCK_BYTES: usize = 1 << 18;
/// The number of blocks that may wait for the reader; the reading thread pauses beyond it.
const BLOCKS: usize = 8;

/// The way in which reading a file ended.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum Ending {
    /// The file was read to its end.
    Complete,
    /// The file cannot be read further, for the reason given.
    Broken(String),
}

/// Opens a file for reading and decompresses it if it is compressed.
///
/// # Errors
/// The system refuses to open the file.
pub(super) fn open(path: &Path) -> io::Result<Box<dyn Read + Send>> {
    Ok(counted::open(path, Arc::default())?.content)
}

/// A file that another thread reads.
pub(super) struct Source {
    /// The decompressed blocks; an error is the last item.
    blocks: Receiver<io::Result<Vec<u8>>>,
    /// Blocks that were used, which go back to the thread.
    spent: SyncSender<Vec<u8>>,
    thread: Option<JoinHandle<()>>,
    /// The number of bytes of the file that the thread has read.
    count: Arc<AtomicU64>,
    file_bytes: u64,
    /// The way in which the file ended; `None` while it is being read.
    ending: Option<Ending>,
}

impl Source {
    /// Opens a file and starts to read it.
    ///
    /// # Errors
    /// The file cannot be opened.
    pub(super) fn open(path: &Path) -> Result<Source, Error> {
        let failed = Error::read(path);
        let count = Arc::new(AtomicU64::new(0));
        let file = counted::open(path, count.clone()).map_err(failed)?;
        let (file, file_bytes) = (file.content, file.bytes);
        let (to, blocks) = sync_channel(BLOCKS);
        let (spent, from) = sync_channel(BLOCKS + 2);
        let thread = std::thread::Builder::new()
            .name("gapscope-read".to_owned())
            .spawn(move || read_blocks(file, &to, &from))
            .map_err(failed)?;
        Ok(Source {
            blocks,
            spent,
            thread: Some(thread),
            count,
            file_bytes,
            ending: None,
        })
    }

    /// Appends the next block. Returns false if there is none.
    pub(super) fn next(&mut self, to: &mut Vec<u8>) -> bool {
        if self.ending.is_some() {
            return false;
        }
        match self.blocks.recv() {
            Ok(Ok(block)) => {
                to.extend_from_slice(&block);
                // The memory of the block is used again if the reading thread needs it.
                let _ = self.spent.try_send(block);
                true
            }
            Ok(Err(error)) => {
                let read = self.count.load(Ordering::Relaxed);
                let why = counted::stopped(&error, read, self.file_bytes);
                self.ending = Some(Ending::Broken(why));
                false
            }
            Err(_) => {
                self.ending = Some(Ending::Complete);
                false
            }
        }
    }

    /// Returns the way in which the file ended; `None` while it is being read.
    pub(super) fn ending(&self) -> Option<&Ending> {
        self.ending.as_ref()
    }

    /// Reports how far the file was read, after `before` bytes of other files.
    pub(super) fn progress(&self, output: &Output, before: u64, all: u64) {
        let read = self.count.load(Ordering::Relaxed).min(self.file_bytes);
        output.progress(before + read, all);
    }
}

impl Drop for Source {
    fn drop(&mut self) {
        // The thread ends when nobody receives its blocks.
        let (_, nothing) = sync_channel(0);
        self.blocks = nothing;
        if let Some(thread) = self.thread.take() {
            let _ = thread.join();
        }
    }
}

/// Reads a file to its end or first error, and sends full blocks, only the last of which may be shorter.
fn read_blocks(
    mut file: Box<dyn Read + Send>,
    to: &SyncSender<io::Result<Vec<u8>>>,
    spent: &Receiver<Vec<u8>>,
) {
    loop {
        let mut block = spent.try_recv().unwrap_or_default();
        block.resize(BLOCK_BYTES, 0);
        // The bytes before an error are used.
        let mut filled = 0;
        let failed = loop {
            match file.read(&mut block[filled..]) {
                Ok(0) => break None,
                Ok(read) => filled += read,
                Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
                Err(error) => break Some(error),
            }
            if filled == BLOCK_BYTES {
                break None;
            }
        };
        let is_last = filled < BLOCK_BYTES;
        block.truncate(filled);
        if filled > 0 && to.send(Ok(block)).is_err() {
            return;
        }
        if let Some(error) = failed {
            let _ = to.send(Err(error));
        }
        if is_last {
            return;
        }
    }
}
