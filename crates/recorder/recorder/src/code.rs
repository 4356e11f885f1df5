//! Reads the GPU code that a CUDA program loaded: its kernels come out, and the part of it that people can read
//! (PTX, text) or that has lines of source (cubins, machine code).

mod cubin;
mod fat_binary;
mod lines;
mod ptx;

use gapscope_spool::event::SourceFormat;
pub use lines::Lines;
use std::borrow::Cow;
use std::fs::{self, File, Metadata};
use std::io::Read;
use std::path::Path;
use std::sync::Arc;

/// Code that is worth keeping.
#[derive(Debug, PartialEq, Eq)]
pub struct Piece<'a> {
    /// The extension of the code's file: `ptx` or `cubin`.
    pub extension: &'static str,
    pub bytes: Cow<'a, [u8]>,
    /// The kernels that the code has.
    pub kernels: Vec<Kernel>,
    /// Whether its kernels can launch others, or graphs.
    pub launches: bool,
}

/// A kernel in code.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Kernel {
    /// The name, as in records of the kernel's runs.
    pub name: String,
    /// The file that the kernel was written in, where the code tells it.
    pub file: Option<Arc<str>>,
}

/// The functions that launch kernels and graphs from the device: their names in libcudadevrt of CUDA 12, 13 and older
/// versions.
const LAUNCHERS: [&str; 3] = [
    "cudaCDP2LaunchDevice",
    "cudaLaunchDevice",
    "cudaGraphLaunch",
];

/// Returns the pieces of loaded code, the most readable first. Returns none when nothing of the code can be read.
pub fn pieces(format: SourceFormat, bytes: &[u8]) -> Vec<Piece<'_>> {
    match format {
        SourceFormat::SpirV => Vec::new(),
        SourceFormat::Ptx => ptx::piece(Cow::Borrowed(bytes)).into_iter().collect(),
        SourceFormat::Cubin => cubin::piece(Cow::Borrowed(bytes)).into_iter().collect(),
        SourceFormat::FatBinary => fat_binary::pieces(bytes),
    }
}

/// The extensions of files that kernels are written in. The code of a stranger may name any file, so no other is
/// read.
const SOURCE_EXTENSIONS: [&str; 6] = ["py", "cu", "cuh", "cpp", "hpp", "h"];
/// The most bytes of a source file; larger ones are not kept. The limit is that of a piece of code.
const MAX_FILE_BYTES: u64 = 4 << 20;

/// Returns the extension and the contents of a source file. Returns `None` when the file does not exist here, as for
/// libraries that were built elsewhere.
pub fn read_code_file(path: &Path) -> Option<(&'static str, Vec<u8>)> {
    let end = path.extension()?;
    let extension = SOURCE_EXTENSIONS
        .into_iter()
        .find(|language| end == *language)?;
    let is_kept = |file: &Metadata| file.is_file() && file.len() <= MAX_FILE_BYTES;
    // The file is checked before it is opened too, because opening a pipe waits.
    if !path.is_absolute() || !is_kept(&fs::metadata(path).ok()?) {
        return None;
    }
    let mut bytes = Vec::new();
    let read = File::open(path)
        .ok()?
        .take(MAX_FILE_BYTES)
        .read_to_end(&mut bytes);
    read.ok().map(|_| (extension, bytes))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_files_of_code_are_read() {
        let folder = tempfile::tempdir().expect("a folder");
        let written = |name: &str, bytes: &[u8]| {
            let path = folder.path().join(name);
            std::fs::write(&path, bytes).expect("written");
            path
        };
        let python = written("a.py", b"x = 1\n");
        assert_eq!(read_code_file(&python), Some(("py", b"x = 1\n".to_vec())));
        assert_eq!(read_code_file(&written("key.pem", b"x")), None);
        assert_eq!(read_code_file(&written("big.py", &vec![0; 5 << 20])), None);
        assert_eq!(read_code_file(Path::new("a.py")), None);
        assert_eq!(read_code_file(&folder.path().join("none.py")), None);
    }

    const WITH_LINES: &[u8] = include_bytes!("code/testdata/add.cubin");
    const PLAIN: &[u8] = include_bytes!("code/testdata/plain.cubin");
    /// Two fat binaries, with PTX that zstd and LZ4 have compressed.
    const FAT: &[u8] = include_bytes!("code/testdata/add.fatbin");
    const LZ4: &[u8] = include_bytes!("code/testdata/lz4.fatbin");

    fn add(file: Option<&str>) -> Vec<Kernel> {
        vec![Kernel {
            name: "add".to_owned(),
            file: file.map(Into::into),
        }]
    }

    #[test]
    fn ptx_says_its_kernels_and_their_files() {
        let text = "// .entry commented\n.version 8.0\n.visible .entry first(\n.param .u64 a\n)\n{\n\
                    .loc 2 1 0, function_name $L, inlined_at 1 2 3\n.loc\t1 7 0\nret;\n}\n\
                    .weak .entry second ( )\n{ ret; }\n.file 1 \"/tmp/a b.py\"\n.file 2 \"/lib.py\"\n";
        let [piece] = &pieces(SourceFormat::Ptx, text.as_bytes())[..] else {
            panic!("one piece")
        };
        let kernel = |name: &str, file: Option<&str>| Kernel {
            name: name.to_owned(),
            file: file.map(Into::into),
        };
        let kernels = [kernel("first", Some("/tmp/a b.py")), kernel("second", None)];
        assert_eq!(piece.kernels, kernels);
        assert_eq!((piece.extension, piece.launches), ("ptx", false));
        let launches = b".extern .func (.param .b32 r) cudaGraphLaunch ( );\n.entry k() {}";
        assert!(pieces(SourceFormat::Ptx, launches)[0].launches);
    }

    #[test]
    fn a_cubin_with_lines_has_the_ptx_that_it_was_made_of() {
        let [piece] = &pieces(SourceFormat::Cubin, WITH_LINES)[..] else {
            panic!("one piece")
        };
        assert_eq!(piece.extension, "ptx");
        assert_eq!(piece.kernels, add(Some("/tmp/kernels/add.cu")));
        let text = str::from_utf8(&piece.bytes).expect("text");
        assert!(text.starts_with(".version 9.5\n.target sm_90\n"), "{text}");
        assert!(text.contains("\n.visible .entry add("));
    }

    #[test]
    fn a_cubin_without_is_kept_as_it_is() {
        let [piece] = &pieces(SourceFormat::Cubin, PLAIN)[..] else {
            panic!("one piece")
        };
        assert_eq!((piece.extension, &*piece.bytes), ("cubin", PLAIN));
        assert_eq!(piece.kernels, add(None));
    }

    #[test]
    fn the_ptx_of_a_fat_binary_comes_first() {
        for bytes in [FAT, LZ4] {
            let pieces = pieces(SourceFormat::FatBinary, bytes);
            let extensions: Vec<_> = pieces.iter().map(|piece| piece.extension).collect();
            assert_eq!(extensions, ["ptx", "cubin"]);
            assert!(pieces.iter().all(|piece| piece.kernels == add(None)));
            let text = str::from_utf8(&pieces[0].bytes).expect("text");
            assert!(text.contains(".visible .entry add("), "{text}");
            assert!(!text.ends_with('\0'));
        }
    }

    #[test]
    fn of_a_fat_binary_no_more_is_unpacked_than_there_is_room_for() {
        for bytes in [FAT, LZ4] {
            let has_ptx = |room| {
                let pieces = fat_binary::pieces_within(bytes, room);
                pieces.iter().any(|piece| piece.extension == "ptx")
            };
            assert!(has_ptx(1 << 20));
            assert!(!has_ptx(100));
        }
    }

    #[test]
    fn damaged_code_gives_what_can_be_read_and_never_a_panic() {
        for whole in [WITH_LINES, PLAIN, FAT, LZ4] {
            for format in [
                SourceFormat::Ptx,
                SourceFormat::Cubin,
                SourceFormat::FatBinary,
            ] {
                for end in (0..whole.len()).step_by(7) {
                    pieces(format, &whole[..end]);
                }
                let mut bytes = whole.to_vec();
                for at in (0..whole.len()).step_by(3) {
                    for value in [0xff, 0x7f, 0] {
                        let before = std::mem::replace(&mut bytes[at], value);
                        pieces(format, &bytes);
                        bytes[at] = before;
                    }
                }
            }
        }
        assert_eq!(pieces(SourceFormat::Ptx, b"no code at all"), []);
    }
}
