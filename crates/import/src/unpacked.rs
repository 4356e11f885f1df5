//! Unpacks files that gzip or zstd made, converts texts in UTF-16, and takes prefixes of lines off, for importers that read
//! files in place: the packed file goes in, and a temporary file with its content and its name without the last extension
//! comes out.

use crate::counted::{self, Gunzip};
use crate::line_prefix::{self, LinePrefix, WithoutPrefix};
use crate::{Error, GZIP, Options};
use gapscope_files::Unfinished;
use std::fs::File;
use std::io::{self, BufRead, BufReader, Read, Write};
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use tempfile::TempDir;

/// The first bytes of a file that zstd made.
const ZSTD: [u8; 4] = [0x28, 0xb5, 0x2f, 0xfd];
/// How often a file may be packed, such as a log with prefixes in a file of gzip.
const MAX_LAYERS: usize = 3;
/// The maximum size of an unpacked file, so that a small hostile file does not fill the disk.
const MAX_BYTES: u64 = 1 << 34;

/// Inputs, of which the packed ones are replaced by unpacked temporary files.
pub(crate) struct Unpacked {
    pub inputs: Vec<PathBuf>,
    /// The reasons why ends of packed files could not be unpacked, one for each such file.
    pub unread_ends: Vec<String>,
    /// The folder of the temporary files, which is removed at the end, and by a signal.
    _unfinished: Unfinished,
    _folder: TempDir,
}

/// Returns the inputs with unpacked files in place of packed ones; `None` if none is packed.
///
/// # Errors
/// A packed file is damaged at its start or too large, or the system refuses to read or write.
pub(crate) fn unpack(inputs: &[PathBuf]) -> Result<Option<Unpacked>, Error> {
    let is_packed: Vec<bool> = inputs.iter().map(|path| packing(path).is_some()).collect();
    if !is_packed.contains(&true) {
        return Ok(None);
    }
    let parent = std::env::temp_dir();
    let folder = TempDir::with_prefix("gapscope-import-").map_err(Error::read(&parent))?;
    let unfinished = Unfinished::new(folder.path());
    let (mut unpacked, mut unread_ends) = (Vec::new(), Vec::new());
    for (at, (path, is_packed)) in inputs.iter().zip(is_packed).enumerate() {
        if !is_packed {
            unpacked.push(path.clone());
            continue;
        }
        let mut file = path.clone();
        for layer in 0..MAX_LAYERS {
            let Some(packing) = packing(&file) else { break };
            // Inputs of several folders may have the same name.
            let own_folder = folder.path().join(format!("{at}-{layer}"));
            std::fs::create_dir(&own_folder).map_err(Error::read(&own_folder))?;
            let name = match packing {
                Packing::Gzip | Packing::Zstd => file.file_stem(),
                Packing::Utf16 { .. } | Packing::Prefixed => file.file_name(),
            };
            let target = own_folder.join(name.unwrap_or(file.as_os_str()));
            unread_ends.extend(unpack_file(&file, packing, &target)?);
            file = target;
        }
        unpacked.push(file);
    }
    Ok(Some(Unpacked {
        inputs: unpacked,
        unread_ends,
        _unfinished: unfinished,
        _folder: folder,
    }))
}

/// Returns the options with the ends of packed files that could not be read.
pub(crate) fn with_unread_ends(options: &Options, unpacked: Option<&Unpacked>) -> Options {
    let mut options = options.clone();
    let unread_ends = unpacked.iter().flat_map(|unpacked| &unpacked.unread_ends);
    options.unread_ends.extend(unread_ends.cloned());
    options
}

/// The ways in which files are packed.
#[derive(Debug, Clone, Copy)]
enum Packing {
    Gzip,
    Zstd,
    /// Text in UTF-16, which shells of Windows write, with or without a mark of the order of bytes in front.
    Utf16 {
        order: Utf16,
        has_mark: bool,
    },
    /// JSON with a prefix before each line, which logs of containers are.
    Prefixed,
}

/// The order of bytes in UTF-16.
#[derive(Debug, Clone, Copy)]
enum Utf16 {
    Little,
    Big,
}

/// Reads UTF-16 as UTF-8. What is no character becomes the replacement character.
struct FromUtf16<R> {
    inner: R,
    order: Utf16,
    /// Characters in UTF-8, of which the bytes from `at` on have not been read.
    characters: Vec<u8>,
    at: usize,
}

impl<R: Read> FromUtf16<R> {
    fn unit(&mut self) -> Option<io::Result<u16>> {
        let mut bytes = [0; 2];
        match self.inner.read_exact(&mut bytes) {
            Ok(()) => Some(Ok(match self.order {
                Utf16::Little => u16::from_le_bytes(bytes),
                Utf16::Big => u16::from_be_bytes(bytes),
            })),
            Err(error) if error.kind() == io::ErrorKind::UnexpectedEof => None,
            Err(error) => Some(Err(error)),
        }
    }
}

impl<R: Read> Read for FromUtf16<R> {
    fn read(&mut self, out: &mut [u8]) -> io::Result<usize> {
        if self.at == self.characters.len() {
            self.characters.clear();
            self.at = 0;
            // Many characters at once, and the second half of a pair with the first one.
            let mut units = Vec::with_capacity(1 << 12);
            while units.len() < 1 << 12 || matches!(units.last(), Some(0xd800..0xdc00)) {
                match self.unit() {
                    Some(unit) => units.push(unit?),
                    None => break,
                }
            }
            let text = char::decode_utf16(units);
            let text: String = text
                .map(|character| character.unwrap_or('\u{fffd}'))
                .collect();
            self.characters.extend_from_slice(text.as_bytes());
        }
        let read = out.len().min(self.characters.len() - self.at);
        out[..read].copy_from_slice(&self.characters[self.at..self.at + read]);
        self.at += read;
        Ok(read)
    }
}

/// Returns the way in which a file is packed, by the file's first bytes; `None` for other files.
fn packing(path: &Path) -> Option<Packing> {
    let file = path.is_file().then(|| File::open(path))?.ok()?;
    let mut start = Vec::new();
    let mut looked_at = file.take(line_prefix::LOOKED_AT as u64);
    looked_at.read_to_end(&mut start).ok()?;
    let utf16 = |order, has_mark| Some(Packing::Utf16 { order, has_mark });
    let is_text = |byte: u8| byte.is_ascii_graphic() || byte.is_ascii_whitespace();
    match *start.first_chunk::<4>()? {
        [first, second, ..] if [first, second] == GZIP => Some(Packing::Gzip),
        ZSTD => Some(Packing::Zstd),
        [0xff, 0xfe, ..] => utf16(Utf16::Little, true),
        [0xfe, 0xff, ..] => utf16(Utf16::Big, true),
        [first, 0, second, 0] if first.is_ascii_graphic() && is_text(second) => {
            utf16(Utf16::Little, false)
        }
        [0, first, 0, second] if first.is_ascii_graphic() && is_text(second) => {
            utf16(Utf16::Big, false)
        }
        _ => LinePrefix::find(&start).map(|_| Packing::Prefixed),
    }
}

/// Unpacks a file into `target`. Of a file that is cut or damaged, what comes before the damage is unpacked, and the reason why
/// the rest is not is returned.
fn unpack_file(path: &Path, packing: Packing, target: &Path) -> Result<Option<String>, Error> {
    let failed = Error::read(path);
    let file = File::open(path).map_err(failed)?;
    let bytes = file.metadata().map_err(failed)?.len();
    // How much of the file was used, where that is known exactly.
    let used = (matches!(packing, Packing::Gzip)).then(|| Arc::new(AtomicU64::new(0)));
    let mut file = BufReader::with_capacity(line_prefix::LOOKED_AT, file);
    let unpacking: Box<dyn Read> = match packing {
        Packing::Gzip => {
            let used = used.clone().unwrap_or_default();
            Box::new(Gunzip::new(file.into_inner(), used))
        }
        Packing::Zstd => Box::new(zstd::Decoder::new(file).map_err(failed)?),
        Packing::Utf16 { order, has_mark } => {
            if has_mark {
                file.read_exact(&mut [0; 2]).map_err(failed)?;
            }
            Box::new(FromUtf16 {
                inner: file,
                order,
                characters: Vec::new(),
                at: 0,
            })
        }
        Packing::Prefixed => match LinePrefix::find(file.fill_buf().map_err(failed)?) {
            Some(prefix) => Box::new(WithoutPrefix::new(file, prefix)),
            None => Box::new(file),
        },
    };
    let mut unpacking = unpacking.take(MAX_BYTES);
    let mut target_file = File::create_new(target).map_err(Error::read(target))?;
    let mut block = vec![0; 1 << 17];
    let (mut written, mut unread) = (0, None);
    loop {
        match unpacking.read(&mut block) {
            Ok(0) => break,
            Ok(read) => {
                let write = target_file.write_all(&block[..read]);
                write.map_err(Error::read(target))?;
                written += read as u64;
            }
            Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
            Err(error) if written == 0 => return Err(failed(error)),
            Err(error) => {
                let name = path.file_name().unwrap_or(path.as_os_str());
                let why = match used {
                    Some(used) => counted::stopped(&error, used.load(Ordering::Relaxed), bytes),
                    None => error.to_string(),
                };
                unread = Some(format!(
                    "{} cannot be unpacked further: {why}",
                    name.display()
                ));
                break;
            }
        }
    }
    if written == MAX_BYTES {
        return Err(Error::nothing(format!(
            "{} holds more than 16 GiB: unpack it yourself and import what is inside",
            path.display()
        )));
    }
    Ok(unread)
}
