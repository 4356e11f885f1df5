//! Pieces of content, each kept once.

use std::fmt;

use serde::{Deserialize, Deserializer, Serialize, Serializer};

use crate::hex;

/// Memory is kept in pieces that end at multiples of this, so that the same bytes at the same place are the same piece.
pub const CHUNK_BYTES: u64 = 64 * 1024;
/// No shader is larger.
pub(crate) const CHUNK_BYTES_AT_MOST: u32 = 64 << 20;
/// A frame of zstd holds at most 128 KiB in 4 bytes.
pub(crate) const ZSTD_RATIO: u64 = 32 << 10;

/// The first 16 bytes of BLAKE3 of a piece.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Hash([u8; 16]);

impl Hash {
    /// Of these bytes.
    pub fn of(bytes: &[u8]) -> Hash {
        Hash::first_half(blake3::hash(bytes))
    }

    fn first_half(whole: blake3::Hash) -> Hash {
        let mut hash = [0; 16];
        hash.copy_from_slice(&whole.as_bytes()[..16]);
        Hash(hash)
    }
}

/// The hash of all bytes so far.
#[derive(Debug, Default)]
pub(crate) struct RunningHash(blake3::Hasher);

impl RunningHash {
    pub(crate) fn add(&mut self, bytes: &[u8]) {
        self.0.update(bytes);
    }

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

/// The pieces of `bytes` bytes from `offset` on: offset and size of each.
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

/// How many [`pieces`] there are.
pub fn piece_count(offset: u64, bytes: u64) -> u64 {
    match offset.checked_add(bytes) {
        Some(end) if bytes > 0 => (end - 1) / CHUNK_BYTES - offset / CHUNK_BYTES + 1,
        _ => 0,
    }
}
