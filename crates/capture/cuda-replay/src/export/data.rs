//! Writes pieces of content one after the other, each once, and says where each is.

use std::collections::HashMap;
use std::io::{self, Write};

use gapscope_capture::Hash;
use gapscope_capture::cuda::CudaCapture;

/// The content that was written so far.
pub struct Data<'a, W> {
    capture: &'a CudaCapture,
    file: W,
    places: HashMap<Hash, u64>,
    bytes: u64,
    /// Why a piece could not be read from the capture.
    pub damage: Option<io::Error>,
}

impl<'a, W: Write> Data<'a, W> {
    pub fn new(capture: &'a CudaCapture, file: W) -> Data<'a, W> {
        Data {
            capture,
            file,
            places: HashMap::new(),
            bytes: 0,
            damage: None,
        }
    }

    /// Returns the offset of a piece, which is written if it is not there yet.
    pub fn place(&mut self, hash: Hash) -> io::Result<u64> {
        if let Some(at) = self.places.get(&hash) {
            return Ok(*at);
        }
        let bytes = self.capture.chunk(hash).map_err(|error| {
            let kind = error.kind();
            self.damage = Some(error);
            kind
        })?;
        self.file.write_all(&bytes)?;
        let at = self.bytes;
        self.bytes += bytes.len() as u64;
        self.places.insert(hash, at);
        Ok(at)
    }

    /// Returns the number of bytes so far.
    pub fn bytes(&self) -> u64 {
        self.bytes
    }

    pub fn flush(&mut self) -> io::Result<()> {
        self.file.flush()
    }
}
