//! Formats hashes of code and ids of devices as a trace has them.

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
