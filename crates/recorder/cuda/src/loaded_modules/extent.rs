//! Finds out where GPU code is and how many bytes it has. Programs give the driver only an address; the format and
//! its length follow from the first bytes there.

use gapscope_spool::event::SourceFormat;

/// The first bytes of a cubin, which is an ELF file.
const ELF: [u8; 4] = *b"\x7fELF";
/// FATBINC_MAGIC: a structure of compilers that points to the binary (fatbinary_section.h).
const POINTER_TO_FAT_BINARY: [u8; 4] = 0x4662_43b1_u32.to_le_bytes();
/// The first bytes of a fat binary.
const FAT_BINARY: [u8; 4] = 0xba55_ed50_u32.to_le_bytes();

/// The place and the length of code, or the reason why they are not known.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Extent {
    /// The code starts at the address that was asked about, with so many bytes.
    Bytes(usize),
    /// The address points to a structure, and the code is elsewhere: its address, and its bytes.
    Elsewhere(usize, usize),
    /// The address is 0.
    Nothing,
    /// The code is a text longer than the caller's maximum.
    TooLarge,
    /// The bytes have no known format.
    Unknown,
}

/// Returns the format of code by its first bytes; `None` where they have no known format.
pub fn format(bytes: &[u8]) -> Option<SourceFormat> {
    match bytes.first_chunk::<4>() {
        Some(&ELF) => Some(SourceFormat::Cubin),
        Some(&FAT_BINARY) => Some(SourceFormat::FatBinary),
        _ => bytes
            .first()
            .is_some_and(is_text)
            .then_some(SourceFormat::Ptx),
    }
}

fn is_text(byte: &u8) -> bool {
    byte.is_ascii_graphic() || byte.is_ascii_whitespace()
}

/// Returns the extent of the code at an address: text ends with a zero, and binaries state their length in headers.
///
/// # Safety
/// The address is 0, or that of code that the driver has taken.
pub unsafe fn measure(at: usize, max_bytes: usize) -> Extent {
    // SAFETY: as the caller promises: the bytes that are read are part of the code, or of the structure that points
    // to it.
    unsafe {
        let code = at as *const u8;
        if code.is_null() {
            return Extent::Nothing;
        }
        // No format begins with a zero within the first four bytes, and a text may end there.
        if libc::strnlen(code.cast(), 4) < 4 {
            return Extent::Unknown;
        }
        match code.cast::<[u8; 4]>().read_unaligned() {
            ELF => Extent::Bytes(elf_bytes(code)),
            FAT_BINARY => Extent::Bytes(fat_binary_bytes(code)),
            POINTER_TO_FAT_BINARY => {
                let there = code.add(8).cast::<*const u8>().read_unaligned();
                if there.is_null() || there.cast::<[u8; 4]>().read_unaligned() != FAT_BINARY {
                    return Extent::Unknown;
                }
                Extent::Elsewhere(there as usize, fat_binary_bytes(there))
            }
            _ if is_text(&*code) => match libc::strnlen(code.cast(), max_bytes + 1) {
                bytes if bytes <= max_bytes => Extent::Bytes(bytes),
                _ => Extent::TooLarge,
            },
            _ => Extent::Unknown,
        }
    }
}

/// Returns the number of bytes of a fat binary, which its header states.
///
/// # Safety
/// A fat binary is at this address.
unsafe fn fat_binary_bytes(code: *const u8) -> usize {
    // SAFETY: as the caller promises: magic, version, bytes of the header, bytes behind it.
    let (header, rest) = unsafe {
        (
            code.add(6).cast::<u16>().read_unaligned(),
            code.add(8).cast::<u64>().read_unaligned(),
        )
    };
    usize::from(header).saturating_add(rest as usize)
}

/// Returns the number of bytes of an ELF file: the end of its last part, by its headers.
///
/// # Safety
/// An ELF file of 64 bits is at this address.
unsafe fn elf_bytes(code: *const u8) -> usize {
    // The size of an entry in the table of sections.
    const SECTION_BYTES: usize = 64;
    // SHT_NOBITS: the type of a section without bytes in the file.
    const NOT_IN_THE_FILE: u32 = 8;
    // SAFETY: as the caller promises.
    unsafe {
        let word = |at: usize| code.add(at).cast::<u64>().read_unaligned() as usize;
        let half = |at: usize| usize::from(code.add(at).cast::<u16>().read_unaligned());
        // The header has the offsets of the tables of segments and sections, and for each the size and number of
        // entries.
        let (segments, sections) = (word(0x20), word(0x28));
        let ends = [
            segments.saturating_add(half(0x36) * half(0x38)),
            sections.saturating_add(half(0x3a) * half(0x3c)),
        ];
        let section_ends = (0..half(0x3c))
            .filter(|_| half(0x3a) == SECTION_BYTES)
            .map(|index| {
                let section = sections + index * SECTION_BYTES;
                let kind = code.add(section + 4).cast::<u32>().read_unaligned();
                match kind {
                    NOT_IN_THE_FILE => 0,
                    _ => word(section + 0x18).saturating_add(word(section + 0x20)),
                }
            });
        section_ends.chain(ends).max().unwrap_or(0)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// nvcc 13.5 made both from three lines of CUDA.
    const CUBIN: &[u8] = include_bytes!("../../../recorder/src/code/testdata/add.cubin");
    const FAT: &[u8] = include_bytes!("../../../recorder/src/code/testdata/add.fatbin");

    #[test]
    fn code_says_itself_how_long_it_is() {
        let ptx = c".version 9.5\n";
        let pointer = {
            let mut bytes = POINTER_TO_FAT_BINARY.to_vec();
            bytes.extend(1u32.to_le_bytes());
            bytes.extend((FAT.as_ptr() as usize).to_le_bytes());
            bytes
        };
        for (code, extent) in [
            (ptx.as_ptr().cast(), Extent::Bytes(13)),
            (CUBIN.as_ptr(), Extent::Bytes(CUBIN.len())),
            (FAT.as_ptr(), Extent::Bytes(FAT.len())),
            (
                pointer.as_ptr(),
                Extent::Elsewhere(FAT.as_ptr() as usize, FAT.len()),
            ),
            (std::ptr::null(), Extent::Nothing),
            (b"\xed\x43\x4e\x7f".as_ptr(), Extent::Unknown),
        ] {
            // SAFETY: all are whole.
            assert_eq!(unsafe { measure(code as usize, 1 << 20) }, extent);
        }
        // SAFETY: as above.
        let longer = unsafe { measure(ptx.as_ptr() as usize, 12) };
        assert_eq!(longer, Extent::TooLarge);
    }
}
