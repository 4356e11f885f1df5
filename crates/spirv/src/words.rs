//! Splits the words of a module into its header and its instructions, without allocating.

use crate::error::ReadError;

/// The first word of every module.
const MAGIC: u32 = 0x0723_0203;
/// The length of a module's header, in words.
pub const HEADER_WORDS: usize = 5;

/// The header of a module.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Header {
    /// The version as the header has it: `0x1_0600` for 1.6.
    pub version: u32,
    /// The bound of ids: all are below it.
    pub bound: u32,
    /// Reserved; 0 in every version.
    pub schema: u32,
}

impl Header {
    /// Reads the header of a module.
    ///
    /// # Errors
    /// The words are too few, or do not begin with SPIR-V's magic number.
    pub fn read(words: &[u32]) -> Result<Header, ReadError> {
        match *words {
            [MAGIC, version, _, bound, schema, ..] => Ok(Header {
                version,
                bound,
                schema,
            }),
            [_, _, _, _, _, ..] => Err(ReadError::NotSpirv),
            _ => Err(ReadError::NoHeader),
        }
    }
}

/// An instruction of a module.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Instruction<'a> {
    /// The index of the instruction's first word in the module.
    pub at: usize,
    /// The opcode: one of [`crate::numbers::op`], or any other number.
    pub op: u16,
    /// All words after the first one, the type and id of the result among them.
    pub operands: &'a [u32],
}

/// The instructions of a module in their order. An instruction that is cut off is an error and the last item.
#[derive(Debug, Clone)]
pub struct Instructions<'a> {
    words: &'a [u32],
    /// The index of the next instruction's first word.
    at: usize,
}

impl<'a> Instructions<'a> {
    /// Returns the instructions behind the header of a module, whatever the header says.
    pub fn new(words: &'a [u32]) -> Instructions<'a> {
        Instructions {
            words,
            at: HEADER_WORDS,
        }
    }
}

impl<'a> Iterator for Instructions<'a> {
    type Item = Result<Instruction<'a>, ReadError>;

    fn next(&mut self) -> Option<Self::Item> {
        let (at, rest) = (self.at, self.words.get(self.at..)?);
        let head = *rest.first()?;
        let length = (head >> 16) as usize;
        Some(match rest.get(1..length) {
            Some(operands) => {
                self.at += length;
                Ok(Instruction {
                    at,
                    op: head as u16,
                    operands,
                })
            }
            None => {
                self.at = self.words.len();
                Err(ReadError::TornInstruction { at })
            }
        })
    }
}

/// A literal string among the operands of an instruction.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Literal<'a> {
    /// The text; bytes that are not UTF-8 are replaced.
    pub text: String,
    /// Whether the string is UTF-8 and ends in a zero byte, as SPIR-V demands.
    pub is_valid: bool,
    /// The operands behind the string.
    pub rest: &'a [u32],
}

impl<'a> Literal<'a> {
    /// Reads the string at the start of operands.
    pub fn read(operands: &'a [u32]) -> Literal<'a> {
        let mut bytes = Vec::new();
        let mut is_terminated = false;
        for byte in operands.iter().flat_map(|word| word.to_le_bytes()) {
            if byte == 0 {
                is_terminated = true;
                break;
            }
            bytes.push(byte);
        }
        let rest = operands.get(bytes.len() / 4 + 1..).unwrap_or_default();
        let (text, is_utf8) = match String::from_utf8(bytes) {
            Ok(text) => (text, true),
            Err(error) => (
                String::from_utf8_lossy(error.as_bytes()).into_owned(),
                false,
            ),
        };
        Literal {
            text,
            is_valid: is_terminated && is_utf8,
            rest,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_torn_instruction_is_the_last() {
        let words = [MAGIC, 0x10300, 0, 9, 0, 0x0002_0011, 1, 0xffff_0011, 2];
        let found: Vec<_> = Instructions::new(&words).collect();
        let first = Instruction {
            at: 5,
            op: 17,
            operands: &[1],
        };
        let torn = ReadError::TornInstruction { at: 7 };
        assert_eq!(found, [Ok(first), Err(torn)]);
        // A length of zero would otherwise be read for ever.
        assert_eq!(Instructions::new(&[0; 9]).count(), 1);
        assert_eq!(Instructions::new(&[1, 2]).count(), 0);
    }

    #[test]
    fn strings_end_at_their_zero() {
        let word = |text: &[u8; 4]| u32::from_le_bytes(*text);
        let operands = [word(b"abcd"), word(b"e\0xy"), 7];
        let found = Literal::read(&operands);
        assert_eq!((found.text.as_str(), found.rest), ("abcde", &[7][..]));
        assert!(found.is_valid);
        assert!(!Literal::read(&operands[..1]).is_valid);
        assert!(!Literal::read(&[word(b"\xff\0\0\0")]).is_valid);
    }
}
