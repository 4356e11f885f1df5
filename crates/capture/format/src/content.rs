//! Splits memory into pieces and hashes them, so that equal pieces are kept once. The bytes of a piece in
//! `content.bin` are called a chunk.

use std::fmt;

use serde::{Deserialize, Deserializer, Serialize, Serializer};

use crate::hex;

/// The size of pieces of memory, which are split at its multiples, so that equal bytes at the same place are equal
/// pieces.
pub const CHUNK_BYTES: u64 = 64 * 1024;
/// The most bytes of a piece; no shader, which is one piece, is larger.
pub(crate) const MAX_CHUNK_BYTES: u32 = 64 << 20;
/// A frame of zstd expands by at most this factor: four bytes may stand for 128 KiB.
pub(crate) const ZSTD_RATIO: u64 = 32 << 10;

/// The first 16 bytes of the BLAKE3 hash of a piece.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Hash([u8; 16]);

impl Hash {
    /// Returns the hash of bytes.
    pub fn new(bytes: &[u8]) -> Hash {
        Hash::first_half(blake3::hash(bytes))
    }

    fn first_half(whole: blake3::Hash) -> Hash {
        let mut hash = [0; 16];
        hash.copy_from_slice(&whole.as_bytes()[..16]);
        Hash(hash)
    }
}

/// The hash of all bytes that were added so far.
#[derive(Debug, Default)]
pub(crate) struct RunningHash(blake3::Hasher);

impl RunningHash {
    pub(crate) fn add(&mut self, bytes: &[u8]) {
        self.0.update(bytes);
    }

    /// Returns the hash; more bytes may be added after.
    pub(crate) fn so_far(&self) -> Hash {
        Hash::first_half(self.0.finalize())
    }
}

impl fmt::Display for Hash {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&hex::text(&self.0))
    }
}

impl fmt::Debug for Hash {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Display::fmt(self, f)
    }
}

impl Serialize for Hash {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        hex::serialize(&self.0, serializer)
    }
}

impl<'de> Deserialize<'de> for Hash {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Hash, D::Error> {
        let bytes = hex::deserialize(deserializer)?;
        bytes
            .try_into()
            .map(Hash)
            .map_err(|_| serde::de::Error::custom("a hash has 32 hexadecimal digits"))
    }
}

/// Splits `bytes` bytes from `offset` on, and returns each piece as offset and size.
pub fn pieces(offset: u64, bytes: u64) -> impl Iterator<Item = (u64, u64)> {
    let end = offset.saturating_add(bytes);
    let mut at = offset;
    std::iter::from_fn(move || {
        let next = (at / CHUNK_BYTES)
            .saturating_add(1)
            .saturating_mul(CHUNK_BYTES)
            .min(end);
        (at < end).then(|| {
            let piece = (at, next - at);
            at = next;
            piece
        })
    })
}

/// Returns the number of pieces that [`pieces`] returns.
pub fn piece_count(offset: u64, bytes: u64) -> u64 {
    match offset.checked_add(bytes) {
        Some(end) if bytes > 0 => (end - 1) / CHUNK_BYTES - offset / CHUNK_BYTES + 1,
        _ => 0,
    }
}
