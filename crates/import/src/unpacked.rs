//! Unpacks files that gzip or zstd made, and converts texts in UTF-16, for importers that read files in place: the packed
//! file goes in, and a temporary file with its content and its name without the last extension comes out.

use crate::{Error, GZIP};
use std::fs::File;
use std::io::{self, BufReader, Read, Write};
use std::path::{Path, PathBuf};
use tempfile::TempDir;

/// The first bytes of a file that zstd made.
const ZSTD: [u8; 4] = [0x28, 0xb5, 0x2f, 0xfd];
/// The maximum size of an unpacked file, so that a small hostile file does not fill the disk.
const MAX_BYTES: u64 = 1 << 34;

/// Inputs, of which the packed ones are replaced by unpacked temporary files.
pub(crate) struct Unpacked {
    pub inputs: Vec<PathBuf>,
    /// The folder of the temporary files, which is removed at the end.
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
    let mut unpacked = Vec::new();
    for (at, (path, is_packed)) in inputs.iter().zip(is_packed).enumerate() {
        if !is_packed {
            unpacked.push(path.clone());
            continue;
        }
        // Inputs of several folders may have the same name.
        let own_folder = folder.path().join(at.to_string());
        std::fs::create_dir(&own_folder).map_err(Error::read(&own_folder))?;
        let name = match packing(path) {
            Some(Packing::Utf16(_)) => path.file_name(),
            _ => path.file_stem(),
        };
        let name = name.unwrap_or(path.as_os_str());
        let target = own_folder.join(name);
        unpack_file(path, &target)?;
        unpacked.push(target);
    }
    Ok(Some(Unpacked {
        inputs: unpacked,
        _folder: folder,
    }))
}

/// The programs that pack files.
#[derive(Debug, Clone, Copy)]
enum Packing {
    Gzip,
    Zstd,
    /// No program: text in UTF-16, which shells of Windows write.
    Utf16(Utf16),
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

/// Returns the program that packed a file, by the file's first bytes; `None` for other files.
fn packing(path: &Path) -> Option<Packing> {
    let mut start = [0; 4];
    let is_file = path.is_file();
    let read = is_file.then(|| File::open(path).and_then(|mut file| file.read_exact(&mut start)));
    match read? {
        Ok(()) if start.starts_with(&GZIP) => Some(Packing::Gzip),
        Ok(()) if start == ZSTD => Some(Packing::Zstd),
        Ok(()) if start.starts_with(&[0xff, 0xfe]) => Some(Packing::Utf16(Utf16::Little)),
        Ok(()) if start.starts_with(&[0xfe, 0xff]) => Some(Packing::Utf16(Utf16::Big)),
        _ => None,
    }
}

/// Unpacks a file into `target`. Of a file that is cut or damaged, what comes before the damage is unpacked.
fn unpack_file(path: &Path, target: &Path) -> Result<(), Error> {
    let failed = Error::read(path);
    let mut file = BufReader::new(File::open(path).map_err(failed)?);
    let unpacking: Box<dyn Read> = match packing(path) {
        Some(Packing::Zstd) => Box::new(zstd::Decoder::new(file).map_err(failed)?),
        Some(Packing::Utf16(order)) => {
            // The mark of the order is no part of the text.
            file.read_exact(&mut [0; 2]).map_err(failed)?;
            Box::new(FromUtf16 {
                inner: file,
                order,
                characters: Vec::new(),
                at: 0,
            })
        }
        _ => Box::new(flate2::read::MultiGzDecoder::new(file)),
    };
    let mut unpacking = unpacking.take(MAX_BYTES);
    let mut target_file = File::create_new(target).map_err(Error::read(target))?;
    let mut block = vec![0; 1 << 17];
    let mut written = 0;
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
            Err(_) => break,
        }
    }
    if written == MAX_BYTES {
        return Err(Error::nothing(format!(
            "{} holds more than 16 GiB: unpack it yourself and import what is inside",
            path.display()
        )));
    }
    Ok(())
}
