//! Finds the source lines of the instructions of a cubin (machine code of an NVIDIA GPU, an ELF file):
//! [`Lines::from_cubin`] reads its table once, [`Lines::at`] then finds the line of one instruction.
//!
//! The line table (`.debug_line`, DWARF) has a sequence for each section of code. All sequences begin at address 0;
//! the table's relocations tell which section each belongs to. NVIDIA's own opcodes about inlined calls are skipped.

use super::cubin::{self, Elf};
use gimli::{DebugLine, DebugLineOffset, LittleEndian};
use object::{Object, ObjectSection, ObjectSymbol, RelocationTarget, SectionKind};
use rustc_hash::FxHashMap;
use serde::{Deserialize, Serialize};
use std::sync::Arc;

/// The bits of an address that are left for the offset in a section; the bits above hold the section's number.
const SECTION_BITS: u32 = 32;
/// The most rows of a table; larger ones are cut off.
const MAX_ROWS: usize = 1 << 22;

/// The line table of a cubin.
#[derive(Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Lines {
    /// The paths of the source files.
    files: Vec<Arc<str>>,
    /// The rows of each section with code, by the section's number in the ELF file; each section's rows are sorted by
    /// offset.
    sections: FxHashMap<u32, Vec<Row>>,
    /// The section and offset at which each function begins.
    functions: FxHashMap<String, (u32, u64)>,
}

/// The line of the code from an offset in a section up to the next row's offset.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
struct Row {
    offset: u32,
    /// An index into [`Lines::files`].
    file: u32,
    /// The line, or 0 when there is none.
    line: u32,
}

impl Lines {
    /// Reads the table of a cubin; `None` when there is none.
    pub fn from_cubin(bytes: &[u8]) -> Option<Lines> {
        let elf = Elf::parse(bytes).ok()?;
        let data = relocated(&elf)?;
        let mut lines = Lines::default();
        lines.read(&data);
        if lines.sections.is_empty() {
            return None;
        }
        for symbol in elf.symbols() {
            let (Ok(name), Some(section)) = (symbol.name(), symbol.section_index()) else {
                continue;
            };
            let Ok(section) = u32::try_from(section.0) else {
                continue;
            };
            let is_function = symbol.kind() == object::SymbolKind::Text;
            if is_function && lines.sections.contains_key(&section) {
                let begins = (section, symbol.address());
                lines.functions.insert(name.to_owned(), begins);
            }
        }
        Some(lines)
    }

    /// Returns the file and line of the instruction `offset` bytes from a function's start.
    pub fn at(&self, function: &str, offset: u64) -> Option<(&Arc<str>, u32)> {
        let (section, begins) = self.functions.get(function)?;
        let rows = self.sections.get(section)?;
        let offset = u32::try_from(begins.checked_add(offset)?).ok()?;
        let after = rows.partition_point(|row| row.offset <= offset);
        let row = rows[..after].last().filter(|row| row.line > 0)?;
        Some((self.files.get(row.file as usize)?, row.line))
    }

    /// Returns the number of rows, for limits on memory.
    pub fn len(&self) -> usize {
        self.sections.values().map(Vec::len).sum()
    }

    /// Adds the rows of all units (a unit is the table of one compiled file) of a table that [`relocated`] returned.
    /// What follows damage is left out.
    fn read(&mut self, data: &[u8]) {
        let table = DebugLine::new(data, LittleEndian);
        let mut files: FxHashMap<String, u32> = FxHashMap::default();
        let mut at = 0;
        let mut left = MAX_ROWS;
        while let Ok(program) = table.program(DebugLineOffset(at), 8, None, None) {
            let unit = program.header().unit_length();
            // The path is made for the first row of a file in a unit.
            let mut known: FxHashMap<u64, Option<u32>> = FxHashMap::default();
            let mut rows = program.rows();
            while let Ok(Some((header, row))) = rows.next_row() {
                let (section, offset) = (row.address() >> SECTION_BITS, row.address() as u32);
                left = left.saturating_sub(1);
                if left == 0 {
                    break;
                }
                let file = known.entry(row.file_index()).or_insert_with(|| {
                    let path = cubin::path(row.file(header)?, header)?;
                    let next = files.len() as u32;
                    Some(*files.entry(path).or_insert(next))
                });
                let line = match (row.end_sequence(), row.line(), &file) {
                    (false, Some(line), Some(_)) => u32::try_from(line.get()).unwrap_or(0),
                    _ => 0,
                };
                // Rows that no relocation covers belong to no section.
                if section > 0 {
                    self.sections.entry(section as u32).or_default().push(Row {
                        offset,
                        file: file.unwrap_or(0),
                        line,
                    });
                }
            }
            at = at.saturating_add(4).saturating_add(unit);
            if left == 0 || at >= data.len() {
                break;
            }
        }
        for rows in self.sections.values_mut() {
            // Of several rows at one offset the last one holds, and the start of a sequence comes after the end of
            // another.
            rows.sort_by_key(|row| (row.offset, row.line > 0));
        }
        let mut paths: Vec<_> = files.into_iter().collect();
        paths.sort_unstable_by_key(|(_, place)| *place);
        self.files = paths.into_iter().map(|(path, _)| path.into()).collect();
    }
}

/// Returns the line table with addresses in which the section's number stands above [`SECTION_BITS`].
fn relocated(elf: &Elf<'_>) -> Option<Vec<u8>> {
    let section = elf.section_by_name(".debug_line")?;
    let mut data = section
        .data()
        .ok()
        .filter(|data| !data.is_empty())?
        .to_vec();
    for (at, relocation) in section.relocations() {
        let RelocationTarget::Symbol(symbol) = relocation.target() else {
            continue;
        };
        let address = (|| {
            let symbol = elf.symbol_by_index(symbol).ok()?;
            let section = symbol.section_index()?;
            let kind = elf.section_by_index(section).ok()?.kind();
            let number = u64::try_from(section.0).ok()?;
            let place = symbol.address().checked_add_signed(relocation.addend())?;
            let fits = kind == SectionKind::Text && number < 1 << 31 && place >> SECTION_BITS == 0;
            fits.then_some(number << SECTION_BITS | place)
        })();
        let there = usize::try_from(at).ok().and_then(|at| {
            let end = at.checked_add(8)?;
            data.get_mut(at..end)
        });
        if let (Some(address), Some(there)) = (address, there) {
            there.copy_from_slice(&address.to_le_bytes());
        }
    }
    Some(data)
}

#[cfg(test)]
mod tests {
    use super::*;
    use gapscope_cupti::CubinLibrary;

    /// Made by ptxas 12.9 with `-lineinfo`. It has a C++ kernel that inlines a function of another file, a kernel
    /// with a mangled name, and a kernel as Triton makes them, which calls a function in its section.
    const CUBIN: &[u8] = include_bytes!("testdata/lines.cubin");

    /// Returns `file:line` of an instruction.
    fn at(lines: &Lines, function: &str, offset: u64) -> Option<String> {
        let (file, line) = lines.at(function, offset)?;
        Some(format!("{file}:{line}"))
    }

    #[test]
    fn instructions_have_the_lines_that_they_were_compiled_from() {
        let lines = Lines::from_cubin(CUBIN).expect("it has lines");
        for (function, offset, line) in [
            ("scale", 0, Some("/src/kernels/scale.cu:10")),
            ("scale", 0xc0, Some("/src/kernels/helpers.cuh:4")),
            ("scale", 0x1b0, Some("/src/kernels/scale.cu:14")),
            ("scale", 0x3f0, Some("/src/kernels/scale.cu:15")),
            ("scale", 0x400, None),
            ("_Z3addPfS_", 0x20, Some("/src/kernels/scale.cu:31")),
            ("_Z3addPfS_", 0x180, None),
            ("triton_kernel_0d1", 0x60, Some("/home/user/train.py:14")),
            (
                "triton_kernel_0d1",
                0x220,
                Some("/src/kernels/helpers.cuh:41"),
            ),
            (
                "$triton_kernel_0d1$slow",
                0x10,
                Some("/src/kernels/helpers.cuh:41"),
            ),
            ("gone", 0, None),
            ("scale", u64::MAX, None),
        ] {
            let found = at(&lines, function, offset);
            assert_eq!(found.as_deref(), line, "{function}+{offset:#x}");
        }
    }

    #[test]
    fn cubins_without_lines_and_other_files_have_none() {
        let plain = include_bytes!("testdata/plain.cubin");
        for bytes in [&plain[..], b"", b"\x7fELF", b".version 8.0\n"] {
            assert_eq!(Lines::from_cubin(bytes), None);
        }
    }

    /// CUPTI returns the file and the folder separately.
    #[test]
    fn lines_are_those_that_cupti_says() {
        let Some(path) = crate::test_tools::cupti() else {
            return;
        };
        let cupti = CubinLibrary::open(&path).expect("a libcupti");
        assert_eq!(cupti.crc(CUBIN), Ok(0x9157_ef3b));
        let with_one = include_bytes!("testdata/add.cubin");
        // Only bytes of each function's own code are asked for: behind its end, CUPTI answers with lines of the next
        // function.
        for (cubin, function, bytes) in [
            (CUBIN, c"scale", 0x400),
            (CUBIN, c"_Z3addPfS_", 0x180),
            (CUBIN, c"triton_kernel_0d1", 0x400),
            (with_one, c"add", code_bytes(with_one, "add")),
        ] {
            let lines = Lines::from_cubin(cubin).expect("it has lines");
            let name = function.to_str().expect("text");
            for offset in (0..bytes).step_by(16) {
                let said = cupti.line(cubin, function, offset).expect("it answers");
                let said = said.map(|(folder, file, line)| {
                    let [folder, file] = [&folder, &file].map(|text| text.to_str().expect("text"));
                    format!("{folder}/{file}:{line}")
                });
                assert_eq!(at(&lines, name, offset), said, "{name}+{offset:#x}");
            }
        }
    }

    /// Returns the size of a function's code.
    fn code_bytes(cubin: &[u8], function: &str) -> u64 {
        let elf = Elf::parse(cubin).expect("ELF");
        let symbol = elf.symbol_by_name(function).expect("a function");
        symbol.size()
    }

    proptest::proptest! {
        #[test]
        fn damaged_tables_never_panic(
            changes in proptest::collection::vec((0..CUBIN.len(), proptest::num::u8::ANY), 1..40),
            end in 0..CUBIN.len() * 2,
        ) {
            let mut bytes = CUBIN.to_vec();
            for (at, value) in changes {
                bytes[at] = value;
            }
            bytes.truncate(end);
            if let Some(lines) = Lines::from_cubin(&bytes) {
                for offset in (0..0x500).step_by(16) {
                    lines.at("scale", offset);
                    lines.at("triton_kernel_0d1", offset);
                }
            }
        }
    }

    #[test]
    fn damage_in_the_table_itself_never_panics() {
        let elf = Elf::parse(CUBIN).expect("ELF");
        let section = elf.section_by_name(".debug_line").expect("a table");
        let (start, length) = section.file_range().expect("in the file");
        let mut bytes = CUBIN.to_vec();
        for at in start as usize..(start + length) as usize {
            for value in [0, 1, 0x7f, 0x80, 0x90, 0xff] {
                let before = std::mem::replace(&mut bytes[at], value);
                if let Some(lines) = Lines::from_cubin(&bytes) {
                    lines.at("scale", 0xc0);
                }
                bytes[at] = before;
            }
        }
    }
}
