//! Reads files, decompressed where gzip packed them, and counts the bytes that were used of them, so that an import can say
//! what share of a broken file it has read.

use crate::GZIP;
use flate2::bufread::MultiGzDecoder;
use std::fs::File;
use std::io::{self, BufReader, Read};
use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

/// The size of the buffer before a decoder.
const BUFFER_BYTES: usize = 1 << 18;

/// A file that is open for reading.
pub(crate) struct Opened {
    /// The content, decompressed if gzip packed it.
    pub content: Box<dyn Read + Send>,
    /// The size of the file.
    pub bytes: u64,
    pub is_gzip: bool,
}

/// Opens a file for reading. `count` becomes the number of its bytes that were used.
///
/// # Errors
/// The system refuses to open the file.
pub(crate) fn open(path: &Path, count: Arc<AtomicU64>) -> io::Result<Opened> {
    let mut file = File::open(path)?;
    let bytes = file.metadata()?.len();
    let mut magic = [0; 2];
    let is_gzip = read_full(&mut file, &mut magic)? == 2 && magic == GZIP;
    let file = File::open(path)?;
    let content: Box<dyn Read + Send> = match is_gzip {
        true => Box::new(Gunzip::new(file, count)),
        false => Box::new(Counted { file, count }),
    };
    Ok(Opened {
        content,
        bytes,
        is_gzip,
    })
}

/// Fills a buffer as far as there are bytes, and returns the number of bytes.
pub(crate) fn read_full(from: &mut dyn Read, to: &mut [u8]) -> io::Result<usize> {
    let mut filled = 0;
    while filled < to.len() {
        match from.read(&mut to[filled..]) {
            Ok(0) => break,
            Ok(read) => filled += read,
            Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
            Err(error) => return Err(error),
        }
    }
    Ok(filled)
}

/// Returns how much of a file was read, in words: `120 of 480 bytes (25.0 %)`.
pub(crate) fn share(read: u64, all: u64) -> String {
    // Rounded down: 100 % stands for all.
    let percent = read as f64 / all.max(1) as f64 * 100.0;
    format!(
        "{read} of {all} bytes ({:.1} %)",
        (percent * 10.0).floor() / 10.0
    )
}

/// Returns the reason why a file could not be read further than `read` of its bytes, from the error.
pub(crate) fn stopped(error: &io::Error, read: u64, all: u64) -> String {
    match read < all {
        true => format!("{error}; {} of it were read", share(read, all)),
        // A packed file that ends too early.
        false => format!("{error}; {}", ends_in_the_middle(all)),
    }
}

/// Returns the reason why the end of a file that is not packed is missing, from its size.
pub(crate) fn ends_in_the_middle(bytes: u64) -> String {
    format!(
        "the file ends in the middle: the {bytes} bytes that it has were read, and how many are missing is not known"
    )
}

/// A file that counts the bytes that were read of it.
struct Counted {
    file: File,
    count: Arc<AtomicU64>,
}

impl Read for Counted {
    fn read(&mut self, to: &mut [u8]) -> io::Result<usize> {
        let read = self.file.read(to)?;
        self.count.fetch_add(read as u64, Ordering::Relaxed);
        Ok(read)
    }
}

/// The content of a file that gzip packed, with the number of bytes of the packed file that were unpacked.
pub(crate) struct Gunzip {
    decoder: MultiGzDecoder<BufReader<Counted>>,
    /// The bytes that the buffer before the decoder has read.
    buffered: Arc<AtomicU64>,
    used: Arc<AtomicU64>,
}

impl Gunzip {
    pub(crate) fn new(file: File, used: Arc<AtomicU64>) -> Gunzip {
        let buffered = Arc::new(AtomicU64::new(0));
        let file = Counted {
            file,
            count: buffered.clone(),
        };
        let file = BufReader::with_capacity(BUFFER_BYTES, file);
        Gunzip {
            decoder: MultiGzDecoder::new(file),
            buffered,
            used,
        }
    }
}

impl Read for Gunzip {
    fn read(&mut self, to: &mut [u8]) -> io::Result<usize> {
        let result = self.decoder.read(to);
        let left = self.decoder.get_ref().buffer().len() as u64;
        let buffered = self.buffered.load(Ordering::Relaxed);
        self.used
            .store(buffered.saturating_sub(left), Ordering::Relaxed);
        result
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_share_is_never_rounded_up_to_all() {
        assert_eq!(share(9_999, 10_000), "9999 of 10000 bytes (99.9 %)");
        assert_eq!(share(0, 0), "0 of 0 bytes (0.0 %)");
    }
}
