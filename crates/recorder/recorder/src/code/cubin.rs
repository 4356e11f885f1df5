//! Reads cubins, which are ELF files with machine code for one kind of NVIDIA GPU. The bytes of a cubin go in; a
//! [`Piece`] comes out: the code that is kept for the user, with the names and source files of its kernels.

use super::{Kernel, LAUNCHERS, Piece};
use gimli::{
    AttributeValue, DebugLine, DebugLineOffset, EndianSlice, FileEntry, LineProgramHeader,
    LittleEndian,
};
use object::read::elf::{ElfFile64, Sym};
use object::{Endianness, Object, ObjectSection, ObjectSymbol};
use std::borrow::Cow;
use std::sync::Arc;

/// STO_CUDA_ENTRY in a symbol's `st_other`, which marks a kernel.
const ENTRY: u8 = 0x10;

/// A cubin as the `object` crate reads it.
pub(super) type Elf<'a> = ElfFile64<'a, Endianness>;

/// Returns the piece of a cubin; `None` when the bytes are not a cubin. The piece's bytes are the PTX that the
/// assembler has put beside the lines of the source, where it is there, otherwise the cubin itself.
pub fn piece(bytes: Cow<'_, [u8]>) -> Option<Piece<'_>> {
    let elf = Elf::parse(&*bytes).ok()?;
    let file: Option<Arc<str>> = written_in(&elf).map(Into::into);
    let mut launches = false;
    let mut kernels = Vec::new();
    for symbol in elf.symbols() {
        let Ok(name) = symbol.name() else { continue };
        launches |= LAUNCHERS.iter().any(|launcher| name.contains(launcher));
        if symbol.elf_symbol().st_other().0 & ENTRY != 0 && !symbol.is_undefined() {
            kernels.push(Kernel {
                name: name.to_owned(),
                file: file.clone(),
            });
        }
    }
    let text = ptx(&elf);
    let (extension, bytes) = match text {
        Some(text) => ("ptx", Cow::Owned(text.into_bytes())),
        None => ("cubin", bytes),
    };
    Some(Piece {
        extension,
        bytes,
        kernels,
        launches,
    })
}

/// Returns the PTX that the assembler read; the cubin holds it with a zero byte after each line. Lines that told
/// where the code comes from are empty. `None` when the cubin has no such section, or its text is not PTX.
fn ptx(elf: &Elf<'_>) -> Option<String> {
    let section = elf.section_by_name(".nv_debug_ptx_txt")?;
    let text = str::from_utf8(section.data().ok()?).ok()?;
    let text = text.trim_matches('\0').replace('\0', "\n") + "\n";
    text.starts_with(".version").then_some(text)
}

/// Returns the file in which the functions begin, by the first row of each sequence of the first line table
/// (`.debug_line`); `None` when there are several such files, or no table. Code that the functions inline may come
/// from other files.
fn written_in(elf: &Elf<'_>) -> Option<String> {
    let data = elf.section_by_name(".debug_line")?.data().ok()?;
    let lines = DebugLine::new(data, LittleEndian);
    let program = lines.program(DebugLineOffset(0), 8, None, None).ok()?;
    let mut rows = program.rows();
    let (mut found, mut begins) = (None, true);
    while let Some((header, row)) = rows.next_row().ok()? {
        if std::mem::replace(&mut begins, row.end_sequence()) {
            let file = path(row.file(header)?, header)?;
            if found.get_or_insert_with(|| file.clone()) != &file {
                return None;
            }
        }
    }
    found
}

/// Bytes of a line table.
type Bytes<'a> = EndianSlice<'a, LittleEndian>;

/// Returns the path of a file of a line table: its folder and its name, or the name alone when that is absolute or
/// the folder is empty. Names that stand in another section of the cubin are not resolved (`None`).
pub(super) fn path(
    file: &FileEntry<Bytes<'_>>,
    header: &LineProgramHeader<Bytes<'_>>,
) -> Option<String> {
    let text = |value: AttributeValue<Bytes<'_>>| match value {
        AttributeValue::String(text) => text.to_string().ok().map(str::to_owned),
        _ => None,
    };
    let name = text(file.path_name())?;
    let folder = file.directory(header).and_then(text).unwrap_or_default();
    Some(match folder.is_empty() || name.starts_with('/') {
        true => name,
        false => format!("{}/{name}", folder.trim_end_matches('/')),
    })
}
