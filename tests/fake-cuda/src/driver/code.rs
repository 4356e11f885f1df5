//! Reads the kernels and globals of an ELF file, of the stub's own cubins and of real ones.

use super::kernels::Program;
use crate::cubin::CODE;

/// The symbols of an ELF file.
#[derive(Debug, Default)]
pub struct Code {
    /// The kernels' names, and their programs where the stub knows them.
    pub kernels: Vec<(String, Option<Program>)>,
    /// The globals' names and first bytes.
    pub globals: Vec<(String, Vec<u8>)>,
}

const SYMBOLS: u64 = 2;
const OBJECT: u64 = 1;
const FUNCTION: u64 = 2;
/// A section without bytes in the file.
const NO_BITS: u64 = 8;

fn number(file: &[u8], at: u64, bytes: usize) -> Option<u64> {
    let at = usize::try_from(at).ok()?;
    let found = file.get(at..at.checked_add(bytes)?)?;
    let mut word = [0; 8];
    word[..bytes].copy_from_slice(found);
    Some(u64::from_le_bytes(word))
}

fn text(file: &[u8], at: u64) -> Option<String> {
    let from = file.get(usize::try_from(at).ok()?..)?;
    let end = from.iter().position(|byte| *byte == 0)?;
    String::from_utf8(from[..end].to_vec()).ok()
}

/// Returns `None` where the file is none, or has no symbols.
pub fn read(file: &[u8]) -> Option<Code> {
    let mut code = Code::default();
    let (sections, count) = (number(file, 0x28, 8)?, number(file, 0x3c, 2)?);
    let field = |section: u64, at: u64, bytes| {
        let header = sections.checked_add(section * 64)?;
        number(file, header.checked_add(at)?, bytes)
    };
    let table = (0..count).find(|index| field(*index, 4, 4) == Some(SYMBOLS))?;
    let (at, size) = (field(table, 24, 8)?, field(table, 32, 8)?);
    let texts = field(field(table, 40, 4)?, 24, 8)?;
    for symbol in 0..size / 24 {
        let at = at.checked_add(symbol * 24)?;
        let name = text(file, texts.checked_add(number(file, at, 4)?)?)?;
        let (kind, section) = (number(file, at + 4, 1)? & 15, number(file, at + 6, 2)?);
        let (value, bytes) = (number(file, at + 8, 8)?, number(file, at + 16, 8)?);
        if section == 0 || section >= count || bytes == 0 {
            continue;
        }
        let content = match field(section, 4, 4)? {
            NO_BITS => Some(vec![0; usize::try_from(bytes).ok()?]),
            _ => {
                let begin = field(section, 24, 8)?.checked_add(value)?;
                let range = usize::try_from(begin).ok()?
                    ..usize::try_from(begin.checked_add(bytes)?).ok()?;
                file.get(range).map(<[u8]>::to_vec)
            }
        };
        match kind {
            FUNCTION => {
                let content = String::from_utf8(content.unwrap_or_default()).unwrap_or_default();
                let program = content.strip_prefix(CODE).and_then(Program::of_code);
                code.kernels.push((name, program));
            }
            OBJECT => code.globals.push((name, content?)),
            _ => {}
        }
    }
    Some(code)
}
