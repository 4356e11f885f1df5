//! Makes cubins: ELF files with a symbol for each kernel and each global. The code of a kernel is a text that names one of the
//! stub's kernels in Rust (`driver/kernels.rs`), and may say how many nanoseconds a run takes, such as `scale 5000`.

/// A cubin that is being made.
#[derive(Debug, Clone, Default)]
pub struct Cubin {
    kernels: Vec<(String, String)>,
    globals: Vec<(String, Vec<u8>)>,
    undefined: Vec<String>,
}

/// The code of a kernel begins so.
pub const CODE: &str = "fake-cuda ";
/// The section of initialised globals.
const GLOBALS: &str = ".nv.global.init";

const FUNCTION: u8 = 0x12;
const OBJECT: u8 = 0x11;
const UNDEFINED: u8 = 0x10;
/// The flags of code for compute capability 9.0, and the marks of CUDA 13.
const IDENTITY: [u8; 16] = *b"\x7fELF\x02\x01\x01\x41\x08\0\0\0\0\0\0\0";
const FLAGS: u32 = 0x0600_5a04;
const OF_CUDA: u16 = 190;
const HEADER_BYTES: usize = 64;
/// R_CUDA_ABS32_LO_20, one of the kinds by which code names a function
const RELOCATION: u64 = 0x2a;
/// STO_CUDA_ENTRY
const ENTRY: u8 = 0x10;

/// The texts of an ELF file, each of which ends with a zero.
struct Texts(Vec<u8>);

impl Texts {
    fn add(&mut self, text: &str) -> u32 {
        let at = self.0.len() as u32;
        self.0.extend(text.as_bytes());
        self.0.push(0);
        at
    }
}

struct Section {
    name: String,
    kind: u32,
    link: u32,
    /// Of symbols the first that is not local; of relocations the section that they are of.
    info: u32,
    entry_bytes: u64,
    bytes: Vec<u8>,
}

impl Cubin {
    pub fn new() -> Cubin {
        Cubin::default()
    }

    /// Adds a kernel with this code; code that the stub does not know does nothing.
    pub fn kernel(mut self, name: &str, code: &str) -> Cubin {
        self.kernels
            .push((name.to_owned(), format!("{CODE}{code}")));
        self
    }

    /// Adds a global with its first bytes.
    pub fn global(mut self, name: &str, bytes: &[u8]) -> Cubin {
        self.globals.push((name.to_owned(), bytes.to_owned()));
        self
    }

    /// Adds a symbol that the driver defines, such as `malloc`, and to which each kernel refers.
    pub fn undefined(mut self, name: &str) -> Cubin {
        self.undefined.push(name.to_owned());
        self
    }

    pub fn build(&self) -> Vec<u8> {
        let mut texts = Texts(vec![0]);
        let mut symbols = symbol(0, [0, 0], 0, [0, 0]);
        let section = |name: &str, bytes: Vec<u8>| Section {
            name: name.to_owned(),
            kind: 1,
            link: 0,
            info: 0,
            entry_bytes: 0,
            bytes,
        };
        // The first four sections are none, the names of sections, the names of symbols, and the symbols.
        let mut sections = Vec::new();
        for (name, code) in &self.kernels {
            let index = 4 + sections.len() as u16;
            let size = code.len() as u64;
            symbols.extend(symbol(texts.add(name), [FUNCTION, ENTRY], index, [0, size]));
            sections.push(section(&format!(".text.{name}"), code.clone().into_bytes()));
        }
        let index = 4 + sections.len() as u16;
        let mut values = Vec::new();
        for (name, bytes) in &self.globals {
            let place = [values.len() as u64, bytes.len() as u64];
            symbols.extend(symbol(texts.add(name), [OBJECT, 0], index, place));
            values.extend(bytes);
            values.resize(values.len().next_multiple_of(16), 0);
        }
        sections.push(section(GLOBALS, values));
        for name in &self.undefined {
            symbols.extend(symbol(texts.add(name), [UNDEFINED, 0], 0, [0, 0]));
        }
        let first = 1 + self.kernels.len() + self.globals.len();
        for (number, (name, _)) in self.kernels.iter().enumerate() {
            let relocations = (0..self.undefined.len()).flat_map(|at| {
                let words = [0, ((first + at) as u64) << 32 | RELOCATION, 0];
                words.into_iter().flat_map(u64::to_le_bytes)
            });
            sections.push(Section {
                kind: 4,
                link: 3,
                info: 4 + number as u32,
                entry_bytes: 24,
                ..section(&format!(".rela.text.{name}"), relocations.collect())
            });
        }
        let mut names = Texts(vec![0]);
        let tables = [
            Section {
                kind: 3,
                ..section(".shstrtab", Vec::new())
            },
            Section {
                kind: 3,
                ..section(".strtab", texts.0)
            },
            Section {
                kind: 2,
                link: 2,
                info: 1,
                entry_bytes: 24,
                ..section(".symtab", symbols)
            },
        ];
        let mut all: Vec<Section> = tables.into_iter().chain(sections).collect();
        let places: Vec<u32> = all.iter().map(|section| names.add(&section.name)).collect();
        all[0].bytes = names.0;
        let mut file = vec![0; HEADER_BYTES];
        let mut headers = vec![0; HEADER_BYTES];
        for (section, name) in all.iter().zip(places) {
            file.resize(file.len().next_multiple_of(16), 0);
            let place = [file.len() as u64, section.bytes.len() as u64];
            headers.extend(header(section, name, place));
            file.extend(&section.bytes);
        }
        file.resize(file.len().next_multiple_of(16), 0);
        let at = file.len() as u64;
        file.extend(headers);
        file[..HEADER_BYTES].copy_from_slice(&file_header(at, 1 + all.len() as u16));
        file
    }
}

fn symbol(name: u32, [info, other]: [u8; 2], section: u16, [value, size]: [u64; 2]) -> Vec<u8> {
    let mut bytes = name.to_le_bytes().to_vec();
    bytes.extend([info, other]);
    bytes.extend(section.to_le_bytes());
    bytes.extend(value.to_le_bytes());
    bytes.extend(size.to_le_bytes());
    bytes
}

fn header(section: &Section, name: u32, [at, size]: [u64; 2]) -> Vec<u8> {
    let mut bytes = [name.to_le_bytes(), section.kind.to_le_bytes()].concat();
    for word in [0, 0, at, size] {
        bytes.extend(u64::to_le_bytes(word));
    }
    bytes.extend(section.link.to_le_bytes());
    bytes.extend(section.info.to_le_bytes());
    bytes.extend(16u64.to_le_bytes());
    bytes.extend(section.entry_bytes.to_le_bytes());
    bytes
}

fn file_header(sections_at: u64, sections: u16) -> Vec<u8> {
    let mut bytes = IDENTITY.to_vec();
    // An executable of version 1.
    bytes.extend(2u16.to_le_bytes());
    bytes.extend(OF_CUDA.to_le_bytes());
    bytes.extend(1u32.to_le_bytes());
    for word in [0, 0, sections_at] {
        bytes.extend(u64::to_le_bytes(word));
    }
    bytes.extend(FLAGS.to_le_bytes());
    for half in [HEADER_BYTES as u16, 56, 0, 64, sections, 1] {
        bytes.extend(u16::to_le_bytes(half));
    }
    bytes
}
