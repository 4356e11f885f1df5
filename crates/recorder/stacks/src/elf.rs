//! Reads symbols and sections of ELF files (programs and libraries) that processes have mapped: the addresses of a
//! Python interpreter's data ([`Interpreters::get`]), and what unwinding and naming of native code need
//! ([`Module::read`]). The files are not mapped here, because a file that is shortened while it is mapped would end
//! this process.

use object::read::elf::{ElfFile64, FileHeader, ProgramHeader, SectionHeader};
use object::{Object, ObjectSection, ObjectSymbol, ObjectSymbolTable, ReadCache, ReadRef};
use rustc_hash::FxHashMap;
use std::fs::{File, Metadata};
use std::ops::Range;
use std::os::unix::fs::{FileExt, MetadataExt};
use std::sync::Arc;

/// Larger sections are not read.
const MAX_SECTION_BYTES: u64 = 128 << 20;

/// Device, inode and time of modification, which tell a file from others and from itself before it was rewritten.
pub type Identity = (u64, u64, i64, i64);

/// Returns a file's identity; `None` when it is no regular file.
pub fn identity(file: &File) -> Option<Identity> {
    let data = file.metadata().ok().filter(Metadata::is_file)?;
    Some((data.dev(), data.ino(), data.mtime(), data.mtime_nsec()))
}

/// The link-time addresses of an interpreter's data, and of the file's first byte.
#[derive(Debug, Clone, Copy)]
pub struct Interpreter {
    /// `_PyRuntime`.
    pub runtime: Option<u64>,
    /// `Py_Version`, which Python has since 3.11.
    pub version: Option<u64>,
    /// `PyCode_Type`.
    pub code_type: Option<u64>,
    pub first_address: u64,
}

/// The interpreters of files that were searched: files may be large and used by many processes.
#[derive(Debug, Default)]
pub struct Interpreters {
    known: FxHashMap<Identity, Option<Interpreter>>,
}

impl Interpreters {
    /// Returns the interpreter in a file, or `None` if it has none.
    pub fn get(&mut self, file: &File) -> Option<Interpreter> {
        const MAX_FILES: usize = 4096;
        let identity = identity(file)?;
        if let Some(known) = self.known.get(&identity) {
            return *known;
        }
        let wanted = ["_PyRuntime", "Py_Version", "PyCode_Type", "Py_GetVersion"];
        let found = find(file, wanted).and_then(|(addresses, first_address)| {
            let [runtime, version, code_type, any] = addresses;
            any.map(|_| Interpreter {
                runtime,
                version,
                code_type,
                first_address,
            })
        });
        if self.known.len() >= MAX_FILES {
            self.known.clear();
        }
        self.known.insert(identity, found);
        found
    }
}

/// Returns the link-time addresses of the wanted symbols, `None` for those that are missing, and the address of the first byte.
fn find<const N: usize>(file: &File, wanted: [&str; N]) -> Option<([Option<u64>; N], u64)> {
    let cache = ReadCache::new(file.try_clone().ok()?);
    let elf = ElfFile64::<object::Endianness, _>::parse(&cache).ok()?;
    let mut found = [None; N];
    let tables = [elf.dynamic_symbol_table(), elf.symbol_table()];
    for symbol in tables.into_iter().flatten().flat_map(|t| t.symbols()) {
        if found.iter().all(Option::is_some) {
            break;
        }
        if symbol.address() == 0 {
            continue;
        }
        let Ok(name) = symbol.name_bytes() else {
            continue;
        };
        if let Some(at) = wanted.iter().position(|wanted| wanted.as_bytes() == name) {
            found[at] = Some(symbol.address());
        }
    }
    Some((found, first_address(&elf)))
}

/// The parts of a file that unwinding and naming need.
#[derive(Debug)]
pub struct Module {
    /// The link-time address of the file's first byte: 0, except for programs at a fixed address.
    pub first_address: u64,
    /// The link-time addresses of the code; the sections below hold the tables for unwinding.
    pub text: Option<Range<u64>>,
    pub eh_frame: Option<Section>,
    pub eh_frame_hdr: Option<Section>,
    /// The link-time addresses of the table of addresses in other files.
    pub got: Option<Range<u64>>,
    /// The functions, sorted by address, each address once.
    symbols: Vec<Symbol>,
    file: File,
}

/// The content of a section.
#[derive(Debug, Clone)]
pub struct Section {
    /// The link-time addresses, and the bytes there.
    pub addresses: Range<u64>,
    pub bytes: Arc<[u8]>,
}

/// A function of a file, by its link-time address.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
struct Symbol {
    address: u64,
    /// The offset of its name in the file.
    name: u64,
    /// The size of its code.
    bytes: u32,
}

impl Module {
    /// Reads the file; `None` when it is no 64-bit ELF file. Sections that are missing or too large are left out.
    pub fn read(file: File) -> Option<Module> {
        let cache = ReadCache::new(file.try_clone().ok()?);
        let elf = ElfFile64::<object::Endianness, _>::parse(&cache).ok()?;
        let range = |name: &str| {
            let section = elf.section_by_name(name)?;
            let end = section.address().checked_add(section.size())?;
            Some(section.address()..end)
        };
        let section = |name: &str| {
            let section = elf.section_by_name(name)?;
            let (offset, length) = section.file_range()?;
            (length <= MAX_SECTION_BYTES).then_some(())?;
            let mut bytes = vec![0; usize::try_from(length).ok()?];
            file.read_exact_at(&mut bytes, offset).ok()?;
            Some(Section {
                addresses: range(name)?,
                bytes: bytes.into(),
            })
        };
        Some(Module {
            first_address: first_address(&elf),
            text: range(".text"),
            eh_frame: section(".eh_frame"),
            eh_frame_hdr: section(".eh_frame_hdr"),
            got: range(".got"),
            symbols: symbols(&elf),
            file,
        })
    }

    /// Returns how many bytes of memory it takes.
    pub fn bytes(&self) -> usize {
        let section = |section: &Option<Section>| section.as_ref().map_or(0, |s| s.bytes.len());
        section(&self.eh_frame)
            + section(&self.eh_frame_hdr)
            + self.symbols.len() * size_of::<Symbol>()
    }

    /// Returns the name of the function at an address, as the file has it.
    pub fn name(&self, address: u64) -> Option<String> {
        const MAX_NAME_BYTES: usize = 4096;
        let after = self
            .symbols
            .partition_point(|symbol| symbol.address <= address);
        let symbol = self.symbols.get(after.checked_sub(1)?)?;
        (address - symbol.address < u64::from(symbol.bytes.max(1))).then_some(())?;
        let mut bytes = [0; MAX_NAME_BYTES];
        let length = self.file.read_at(&mut bytes, symbol.name).ok()?;
        let name = bytes[..length].split(|byte| *byte == 0).next()?;
        (!name.is_empty() && name.len() < MAX_NAME_BYTES)
            .then(|| String::from_utf8_lossy(name).into_owned())
    }
}

/// Returns the functions of both symbol tables, sorted by address, each address once.
fn symbols<'data, R: ReadRef<'data>>(elf: &ElfFile64<'data, object::Endianness, R>) -> Vec<Symbol> {
    let (endian, data) = (elf.endian(), elf.data());
    let Ok(sections) = elf.elf_header().sections(endian, data) else {
        return Vec::new();
    };
    let mut all = Vec::new();
    for kind in [object::elf::SHT_SYMTAB, object::elf::SHT_DYNSYM] {
        let Ok(table) = sections.symbols(endian, data, kind) else {
            continue;
        };
        let Ok(names) = sections.section(table.string_section()) else {
            continue;
        };
        let Some((names, _)) = names.file_range(endian) else {
            continue;
        };
        for symbol in table.symbols() {
            use object::read::elf::Sym;
            let address = symbol.st_value(endian);
            let is_function = matches!(
                symbol.st_type(),
                object::elf::STT_FUNC | object::elf::STT_GNU_IFUNC
            );
            if is_function && address != 0 {
                all.push(Symbol {
                    address,
                    name: names.saturating_add(u64::from(symbol.st_name(endian))),
                    bytes: u32::try_from(symbol.st_size(endian)).unwrap_or(u32::MAX),
                });
            }
        }
    }
    all.sort_unstable();
    all.dedup_by_key(|symbol| symbol.address);
    all.shrink_to_fit();
    all
}

/// Returns the link-time address of the file's first byte.
fn first_address<'data, R: ReadRef<'data>>(elf: &ElfFile64<'data, object::Endianness, R>) -> u64 {
    let endian = elf.endian();
    let first = elf
        .elf_program_headers()
        .iter()
        .find(|header| header.p_type(endian) == object::elf::PT_LOAD);
    first.map_or(0, |header| {
        header.p_vaddr(endian).wrapping_sub(header.p_offset(endian))
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn this_program_is_read() {
        let module = Module::read(File::open("/proc/self/exe").unwrap()).unwrap();
        assert!(module.eh_frame.is_some() && module.eh_frame_hdr.is_some());
        assert!(module.bytes() > 0);
        let first = module.symbols[module.symbols.len() / 2];
        assert!(module.name(first.address).is_some());
        assert_eq!(module.name(0), None);
    }

    #[test]
    fn what_is_no_program_has_nothing() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("no");
        for bytes in [&b""[..], b"\x7fELF", &[0xff; 4096]] {
            std::fs::write(&path, bytes).unwrap();
            assert!(find(&File::open(&path).unwrap(), ["a"]).is_none());
            assert!(Module::read(File::open(&path).unwrap()).is_none());
        }
    }
}
