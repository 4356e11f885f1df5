//! Decodes strings in the compact form of PEP 393, which names and paths of code always have.

use super::bytes::{Inconsistent, at, word};
use super::layout::TextOffsets;

/// The most characters; a longer string counts as inconsistent.
const MAX_CHARACTERS: usize = 16 << 10;

/// The location of a string's characters.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Text {
    /// Offset of the first character in the string.
    pub offset: u64,
    /// Number of characters.
    pub characters: usize,
    /// Bytes per character: 1, 2 or 4.
    pub width: usize,
}

/// Decodes the header of a string into the location of its characters.
pub fn text(offsets: &TextOffsets, header: &[u8]) -> Result<Text, Inconsistent> {
    const NO_TEXT: Inconsistent = Inconsistent("a string is not one");
    let state = u32::from_le_bytes(at(header, offsets.state)?);
    let length = word(header, offsets.length)?;
    // Bits 2 to 4 are the bytes per character, bit 5 says compact, and bit 6 ASCII.
    let (kind, is_compact, is_ascii) = (state >> 2 & 7, state >> 5 & 1 == 1, state >> 6 & 1 == 1);
    let characters = usize::try_from(length).unwrap_or(usize::MAX);
    if characters > MAX_CHARACTERS || !is_compact || !matches!(kind, 1 | 2 | 4) {
        return Err(NO_TEXT);
    }
    if is_ascii && kind != 1 {
        return Err(NO_TEXT);
    }
    Ok(Text {
        offset: if is_ascii {
            offsets.ascii_data
        } else {
            offsets.other_data
        },
        characters,
        width: kind as usize,
    })
}

impl Text {
    /// Returns the length of the characters in bytes: at most 64 KiB.
    pub fn bytes(&self) -> usize {
        self.characters * self.width
    }

    /// Decodes characters. Invalid ones, such as lone surrogates, are replaced; missing ones are left out.
    pub fn decode(&self, bytes: &[u8]) -> String {
        let bytes = &bytes[..bytes.len().min(self.bytes())];
        let decode = |code: u32| char::from_u32(code).unwrap_or(char::REPLACEMENT_CHARACTER);
        match self.width {
            1 => bytes.iter().map(|byte| char::from(*byte)).collect(),
            2 => bytes
                .as_chunks::<2>()
                .0
                .iter()
                .map(|code| decode(u32::from(u16::from_le_bytes(*code))))
                .collect(),
            _ => bytes
                .as_chunks::<4>()
                .0
                .iter()
                .map(|code| decode(u32::from_le_bytes(*code)))
                .collect(),
        }
    }
}
