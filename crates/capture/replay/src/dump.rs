//! Runs a capture (recorded GPU work) up to a dispatch, and writes the contents of a buffer then to a file.

use std::fs::File;
use std::io::{BufWriter, Write};
use std::path::Path;

use gapscope_capture::Capture;
use gapscope_capture::model::{Binding, Buffer, BufferId};
use schemars::JsonSchema;
use serde::Serialize;

use crate::error::Error;
use crate::options::Options;
use crate::program::Extent;
use crate::session::Session;
use crate::values::{Element, npy_head};

/// A buffer that was written to a file.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, JsonSchema)]
pub struct Dumped {
    /// The buffer's number.
    pub buffer: u32,
    /// The buffer's size.
    pub bytes: u64,
    /// Number of its bytes that the capture touches. The others are zeros in the file.
    pub touched_bytes: u64,
    /// Type of the elements.
    pub element: Element,
}

/// Runs a capture up to a dispatch, and writes a whole buffer to a new file: as NumPy's format if its name ends in
/// `.npy`, else as plain bytes. Without an `element` the type is the one that the dispatch's kernel declares, or
/// bytes.
///
/// # Errors
/// There is no such buffer or dispatch, or the capture cannot be run, or the file cannot be written.
pub fn dump(
    capture: &Capture,
    buffer: &str,
    dispatch: u64,
    element: Option<Element>,
    to: &Path,
    options: &Options,
) -> Result<Dumped, Error> {
    let wanted = crate::alone::find(capture, dispatch)?;
    let buffer = find(capture, buffer)?;
    let failed = |error| Error::Write {
        path: to.display().to_string(),
        error,
    };
    let mut file = BufWriter::new(File::create_new(to).map_err(failed)?);
    let mut session = Session::open(capture, Extent::Until(dispatch), options)?;
    let declared = session.shaders.get(&wanted.pipeline).and_then(|shader| {
        let mut bindings = wanted.bindings.iter();
        let is_bound =
            |binding: &&Binding| binding.range.is_some_and(|range| range.buffer == buffer.id);
        shader.element(bindings.find(is_bound)?)
    });
    let element = element.or(declared).unwrap_or(Element::U8);
    let is_npy = to.extension().is_some_and(|extension| extension == "npy");
    if is_npy && !buffer.bytes.is_multiple_of(element.bytes()) {
        return Err(Error::Unsupported(format!(
            "buffer {} has {} bytes, which are no whole elements of {}: say --type u8",
            buffer.id,
            buffer.bytes,
            element.name()
        )));
    }
    session.run_once()?;
    if is_npy {
        let head = npy_head(element, buffer.bytes / element.bytes());
        file.write_all(&head).map_err(failed)?;
    }
    let mut at = 0;
    let mut touched_bytes = 0;
    for (from, place, bytes) in session
        .regions
        .parts(buffer.memory, buffer.offset, buffer.bytes)
    {
        zeros(&mut file, from - at).map_err(failed)?;
        let mut wrote = Ok(());
        session.memory.read_to(place, bytes, |bytes| {
            if wrote.is_ok() {
                wrote = file.write_all(bytes);
            }
        })?;
        wrote.map_err(failed)?;
        at = from + bytes;
        touched_bytes += bytes;
    }
    zeros(&mut file, buffer.bytes - at).map_err(failed)?;
    file.flush().map_err(failed)?;
    Ok(Dumped {
        buffer: buffer.id.0,
        bytes: buffer.bytes,
        touched_bytes,
        element,
    })
}

/// Finds a buffer by its number, or by its name if that is unique.
fn find<'a>(capture: &'a Capture, text: &str) -> Result<&'a Buffer, Error> {
    let by_number = text
        .parse()
        .ok()
        .and_then(|number| capture.buffers.get(&BufferId(number)));
    if let Some(buffer) = by_number {
        return Ok(buffer);
    }
    let mut named = capture
        .buffers
        .values()
        .filter(|buffer| buffer.name.as_deref() == Some(text));
    let first = named
        .next()
        .ok_or_else(|| Error::NoSuchBuffer(text.to_owned()))?;
    match named.next() {
        None => Ok(first),
        Some(second) => Err(Error::Unsupported(format!(
            "several buffers are called `{text}`: say {} or {}, their numbers",
            first.id, second.id
        ))),
    }
}

fn zeros(file: &mut impl Write, count: u64) -> std::io::Result<()> {
    std::io::copy(&mut std::io::Read::take(std::io::repeat(0), count), file).map(drop)
}
