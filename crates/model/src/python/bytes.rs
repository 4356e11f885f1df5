//! Reads numbers at offsets of bytes from the memory of CPython; too few bytes are an error.

/// The error for bytes that are inconsistent, because they changed while they were read or are not the expected
/// structure; the text says which part.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[error("{0}")]
pub struct Inconsistent(pub &'static str);

/// Returns the little-endian number of 8 bytes at `offset`.
pub(super) fn word(bytes: &[u8], offset: u64) -> Result<u64, Inconsistent> {
    Ok(u64::from_le_bytes(at(bytes, offset)?))
}

/// Returns the `N` bytes at `offset`; an error where `bytes` ends before.
pub(super) fn at<const N: usize>(bytes: &[u8], offset: u64) -> Result<[u8; N], Inconsistent> {
    let start = usize::try_from(offset).ok();
    start
        .and_then(|start| bytes.get(start..)?.first_chunk::<N>())
        .copied()
        .ok_or(Inconsistent("fewer bytes than a structure has"))
}
