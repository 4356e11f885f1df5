//! Imports gapscope's own exports to Chrome's JSON and to Perfetto: takes the trace that is embedded behind the
//! drawing, with everything that the format itself cannot hold. Where there is none, or where the drawing was changed
//! after it was written, the drawing is imported as the file of any other tool.

use crate::error::only_file;
use crate::protobuf::{Message, Value};
use crate::{Error, Importer, Options, Output, kineto, perfetto};
use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use flate2::bufread::MultiGzDecoder;
use gapscope_trace::embedded::{PIECE_BYTES, Piece, Seal, Sealing, Unpacking};
use gapscope_trace::tables::{CommandBuffers, Dispatches, OpaqueWork, Transfers};
use gapscope_trace::{Selection, rank_folders, read_manifest};
use std::cell::Cell;
use std::collections::BTreeSet;
use std::fs::File;
use std::io::{self, BufRead, BufReader, Read};
use std::path::{Path, PathBuf};

/// Imports gapscope's own exports.
pub const IMPORTER: Importer = Importer {
    name: "gapscope",
    reads: "gapscope's own exports to Chrome's JSON and Perfetto",
    recognises: |path| format(path).is_some(),
    read,
    joins_named_ranks: false,
};

/// The beginning of an export to Chrome's JSON.
const CHROME: &[u8] = b"{\"displayTimeUnit\":\"ns\",\"drawnBy\":\"gapscope\"";
/// The beginning of an export to Perfetto with an embedded trace: a packet that says so.
const PERFETTO: &[u8] = b"\x0a\x08\x50\x01\xc2\xb5\x03\x02\x28\x01";
/// The field of Perfetto's packets that holds pieces.
const EMBEDDED: u32 = 7000;
/// The beginning of the lines of Chrome's JSON that hold pieces.
const PIECE_LINE: &[u8] = b"{\"ph\":\"M\",\"name\":\"gapscope trace\",";
/// The most bytes of a line or packet with a piece, beyond which it is none.
const MAX_PIECE_BYTES: usize = 2 * PIECE_BYTES;
/// The most bytes of a packet, many times what an export writes. A packed file can claim more than memory holds.
const MAX_PACKET_BYTES: u64 = 64 << 20;

/// The formats of exports that hold a trace.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Format {
    Chrome,
    Perfetto,
}

impl Format {
    /// The importer of the drawing.
    fn importer(self) -> Importer {
        match self {
            Format::Chrome => kineto::IMPORTER,
            Format::Perfetto => perfetto::IMPORTER,
        }
    }
}

/// Returns the format of an export; `None` for any other file.
fn format(path: &Path) -> Option<Format> {
    if !path.is_file() {
        return None;
    }
    let mut first = Vec::new();
    let limit = CHROME.len().max(PERFETTO.len()) as u64;
    open(path).ok()?.take(limit).read_to_end(&mut first).ok()?;
    match first.as_slice() {
        first if first.starts_with(CHROME) => Some(Format::Chrome),
        first if first.starts_with(PERFETTO) => Some(Format::Perfetto),
        _ => None,
    }
}

/// Opens a file, which may be compressed as a whole.
fn open(path: &Path) -> io::Result<Box<dyn BufRead>> {
    let mut file = BufReader::with_capacity(1 << 18, File::open(path)?);
    Ok(match file.fill_buf()?.starts_with(&crate::GZIP) {
        true => Box::new(BufReader::with_capacity(1 << 18, MultiGzDecoder::new(file))),
        false => Box::new(file),
    })
}

/// Imports the embedded trace of an export, or else its drawing.
fn read(inputs: &[PathBuf], options: &Options, output: &mut Output) -> Result<(), Error> {
    let format_of_first = inputs.iter().find_map(|path| format(path));
    let importer = format_of_first.map_or(kineto::IMPORTER, Format::importer);
    // A process or a rank can be chosen for what is drawn only.
    if options.pid.is_some() || !options.ranks.is_empty() {
        return (importer.read)(inputs, options, output);
    }
    // Several files are ranks of one program.
    if inputs.len() > 1 {
        return match unpack_ranks(inputs, options, output)? {
            true => Ok(()),
            false => (importer.read)(inputs, options, output),
        };
    }
    let path = only_file(inputs, "export of gapscope")?;
    let unpacked = match format_of_first {
        Some(format) => unpack(path, format, None, output)?,
        None => Unpacked::None,
    };
    match unpacked {
        Unpacked::Trace => output.finish_unpacked(),
        Unpacked::None => (importer.read)(inputs, options, output),
        Unpacked::Changed => {
            let note = "The file was changed after gapscope exported it: what it draws was read, and not the trace behind the drawing.";
            let mut options = options.clone();
            options.notes.push(note.to_owned());
            (importer.read)(inputs, &options, output)
        }
    }
}

/// Unpacks the traces of ranks that are embedded in a file each. Returns false, with nothing left behind, where a file has
/// none, or where the traces are not those of different ranks.
fn unpack_ranks(inputs: &[PathBuf], options: &Options, output: &mut Output) -> Result<bool, Error> {
    let formats: Vec<Format> = inputs.iter().filter_map(|path| format(path)).collect();
    if formats.len() < inputs.len() {
        return Ok(false);
    }
    let root = output.trace()?;
    let mut ranks = BTreeSet::new();
    for (at, (path, format)) in inputs.iter().zip(formats).enumerate() {
        let name = format!("unpacked-{at}");
        let is_unpacked = matches!(unpack(path, format, Some(&name), output)?, Unpacked::Trace);
        let folder = output.folder().join(name);
        let manifest = is_unpacked.then(|| read_manifest(&folder)).transpose()?;
        let rank = manifest.and_then(|manifest| manifest.rank);
        let Some(rank) = rank.filter(|rank| ranks.insert(rank.rank)) else {
            drop(root);
            output.withdraw();
            return Ok(false);
        };
        let own = output.folder().join(format!("rank={}", rank.rank));
        std::fs::rename(&folder, &own)
            .map_err(|source| gapscope_trace::Error::Write { path: own, source })?;
    }
    let ranks: Vec<u32> = ranks.into_iter().collect();
    output.finish_ranks(root, ranks, options, Vec::new())?;
    output.finish_unpacked()?;
    Ok(true)
}

/// What was behind the drawing of an export.
enum Unpacked {
    /// A trace, which is written.
    Trace,
    /// Nothing.
    None,
    /// A trace that does not belong to the drawing, or that is damaged.
    Changed,
}

/// Writes the embedded trace of a file to the folder of the output's trace, or to the folder `inside` of it.
fn unpack(
    path: &Path,
    format: Format,
    inside: Option<&str>,
    output: &mut Output,
) -> Result<Unpacked, Error> {
    let failed = Error::read(path);
    let mut file = open(path).map_err(failed)?;
    let mut unpacking: Option<Unpacking> = None;
    let mut drawing = Sealing::new(());
    let mut fits = None;
    let mut torn = false;
    let size = path.metadata().map_or(0, |facts| facts.len());
    let (mut bytes, mut told) = (0, 0);
    // The parts of the file: lines or packets.
    let mut part = Vec::new();
    loop {
        part.clear();
        // A file that is cut is imported as far as it is drawn.
        let Ok(payload) = next(&mut *file, format, &mut part) else {
            torn = true;
            break;
        };
        if part.is_empty() {
            break;
        }
        bytes += part.len() as u64;
        if bytes >= told {
            told = bytes + (1 << 20);
            output.progress(bytes.min(size), size);
        }
        match piece(&part[payload..], format) {
            Some(Embedded::Piece(name, bytes)) => {
                if unpacking.is_none() {
                    unpacking = Some(output.unpack(inside)?);
                }
                let piece = Piece {
                    file: &name,
                    bytes: &bytes,
                };
                if let Some(unpacking) = &mut unpacking {
                    torn |= !unpacking.take(piece)?;
                }
            }
            Some(Embedded::Seal(seal)) => fits = Some(seal == drawing.seal()),
            None if unpacking.is_some() => {}
            None => drawing.add(&part),
        }
    }
    let Some(unpacking) = unpacking else {
        return Ok(Unpacked::None);
    };
    if !torn && fits == Some(true) {
        return match unpacking.finish()? {
            true => Ok(Unpacked::Trace),
            false => Err(Error::nothing(format!(
                "the trace behind the drawing of {} is incomplete",
                path.display()
            ))),
        };
    }
    unpacking.remove();
    Ok(Unpacked::Changed)
}

/// What a part of a file holds of an embedded trace.
enum Embedded {
    /// A piece: the name of its file, and its bytes.
    Piece(String, Vec<u8>),
    /// The seal of the drawing.
    Seal(Seal),
}

/// Appends the next part of a file to `part`, and returns where its content begins. At the end nothing is appended.
fn next(file: &mut dyn BufRead, format: Format, part: &mut Vec<u8>) -> io::Result<usize> {
    match format {
        Format::Chrome => {
            // A line of an export is shorter, and anything else is hashed in parts.
            file.take(1 << 20).read_until(b'\n', part)?;
            Ok(0)
        }
        Format::Perfetto => {
            let mut byte = [0];
            // A tag, then a length of at most ten bytes.
            let mut length = 0u64;
            for place in 0..11 {
                if file.read(&mut byte)? == 0 {
                    return match place {
                        0 => Ok(0),
                        _ => Err(io::ErrorKind::UnexpectedEof.into()),
                    };
                }
                part.push(byte[0]);
                match place {
                    0 if byte[0] != 0x0a => return Err(io::ErrorKind::InvalidData.into()),
                    0 => continue,
                    _ => length |= u64::from(byte[0] & 0x7f) << (7 * (place - 1)).min(57),
                }
                if byte[0] < 0x80 {
                    break;
                }
            }
            if length > MAX_PACKET_BYTES {
                return Err(io::ErrorKind::InvalidData.into());
            }
            let payload = part.len();
            let read = file.take(length).read_to_end(part)?;
            match read as u64 == length {
                true => Ok(payload),
                false => Err(io::ErrorKind::UnexpectedEof.into()),
            }
        }
    }
}

/// Reads a part of a file; `None` where it belongs to the drawing.
fn piece(part: &[u8], format: Format) -> Option<Embedded> {
    if part.len() > MAX_PIECE_BYTES {
        return None;
    }
    match format {
        Format::Chrome => {
            if !part.starts_with(PIECE_LINE) {
                return None;
            }
            let line = part.trim_ascii_end();
            let line = line.strip_suffix(b",").unwrap_or(line);
            let event: serde_json::Value = serde_json::from_slice(line).ok()?;
            let arguments = &event["args"];
            match (arguments["file"].as_str(), arguments["base64"].as_str()) {
                (Some(file), Some(text)) => Some(Embedded::Piece(
                    file.to_owned(),
                    STANDARD.decode(text).ok()?,
                )),
                _ => Some(Embedded::Seal(Seal {
                    bytes: arguments["drawing_bytes"].as_u64()?,
                    crc32: u32::try_from(arguments["drawing_crc32"].as_u64()?).ok()?,
                })),
            }
        }
        Format::Perfetto => {
            let torn = Cell::new(0);
            let packet = Message::new(part, &torn);
            let embedded = packet.field(EMBEDDED).and_then(Value::message)?;
            match (embedded.field(1), embedded.field(2)) {
                (Some(file), Some(bytes)) => Some(Embedded::Piece(
                    file.text().into_owned(),
                    bytes.message()?.bytes().to_vec(),
                )),
                _ => Some(Embedded::Seal(Seal {
                    bytes: embedded.field(3)?.number(),
                    crc32: u32::try_from(embedded.field(4)?.number()).ok()?,
                })),
            }
        }
    }
}

impl Output<'_> {
    /// Counts the work of the unpacked trace and of its ranks, whose losses and notes are those of the import.
    fn finish_unpacked(&mut self) -> Result<(), Error> {
        let counted = || {
            Selection::manifest()
                .columns::<Dispatches>(&["start_ns"])
                .columns::<Transfers>(&["start_ns"])
                .columns::<OpaqueWork>(&["start_ns"])
                .columns::<CommandBuffers>(&["id"])
                .unchecked()
        };
        let selection = match self.keeps_traces() {
            true => Selection::all(),
            false => counted(),
        };
        let ranks = rank_folders(&self.folder()).into_iter();
        let folders: Vec<PathBuf> = std::iter::once(self.folder())
            .chain(ranks.map(|(_, folder)| folder))
            .collect();
        for folder in folders {
            let (trace, _) = gapscope_trace::read(&folder, &selection)?;
            self.unpacked(&trace);
        }
        Ok(())
    }
}
