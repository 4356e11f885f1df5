//! Reads numbers at offsets of bytes that may be too short.

use std::fmt;

/// The error for bytes that are inconsistent, because they changed while they were read or are not the expected
/// structure; the text says which part.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Inconsistent(pub &'static str);

impl fmt::Display for Inconsistent {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.0)
    }
}

impl std::error::Error for Inconsistent {}

pub(super) fn word(bytes: &[u8], offset: u64) -> Result<u64, Inconsistent> {
    Ok(u64::from_le_bytes(at(bytes, offset)?))
}

pub(super) fn at<const N: usize>(bytes: &[u8], offset: u64) -> Result<[u8; N], Inconsistent> {
    let start = usize::try_from(offset).ok();
    start
        .and_then(|start| bytes.get(start..)?.first_chunk::<N>())
        .copied()
        .ok_or(Inconsistent("fewer bytes than a structure has"))
}
