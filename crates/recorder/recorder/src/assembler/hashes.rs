//! Makes hashes of code, and formats them and ids of devices as a trace has them.

/// Returns the hash of code: the first 16 bytes of BLAKE3.
pub fn hash(code: &[u8]) -> [u8; 16] {
    let mut short = [0; 16];
    short.copy_from_slice(&blake3::hash(code).as_bytes()[..16]);
    short
}

/// Formats 16 bytes as hexadecimal.
pub fn hex(bytes: [u8; 16]) -> String {
    use std::fmt::Write;
    bytes
        .iter()
        .fold(String::with_capacity(32), |mut text, byte| {
            // Writing to a string does not fail.
            let _ = write!(text, "{byte:02x}");
            text
        })
}
