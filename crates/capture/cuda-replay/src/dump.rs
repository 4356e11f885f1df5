//! Runs a capture up to a launch, and writes the memory behind a parameter to a file.

use std::fs::File;
use std::io::{BufWriter, Write};
use std::path::Path;

use gapscope_capture::cuda::CudaCapture;
use gapscope_capture::pieces;
use gapscope_replay::{Dumped, Element, npy_head};

use crate::error::Error;
use crate::options::Options;
use crate::parameters;
use crate::session::Session;
use crate::transfer::Range;

/// The most pieces that are read at once.
const AT_ONCE: usize = 1024;

/// Runs a capture up to a launch, and writes the memory from where `memory` leads to its end into a new file: as NumPy's
/// format if its name ends in `.npy`, else as plain bytes.
///
/// # Errors
/// There is no such memory or launch, or the capture cannot be run, or the file cannot be written.
pub fn dump(
    capture: &CudaCapture,
    memory: &str,
    launch: u64,
    to: &Path,
    options: &Options,
) -> Result<Dumped, Error> {
    let mut session = Session::open(capture, options.device.as_ref())?;
    let stage = session.plan.index(launch)?;
    let (id, offset) = parameters::find(&session, stage, memory)?;
    let size = capture.memories.get(&id).map_or(0, |memory| memory.bytes);
    let bytes = size.saturating_sub(offset);
    let element = options.element.unwrap_or(Element::U8);
    let is_npy = to.extension().is_some_and(|extension| extension == "npy");
    let failed = |error| Error::File {
        path: to.display().to_string(),
        error,
    };
    let mut file = BufWriter::new(File::create_new(to).map_err(failed)?);
    session.reset()?;
    session.run(0..stage + 1)?;
    // An allocation may be larger than the array in it: an incomplete element at its end is left out.
    let bytes = match is_npy {
        true => bytes / element.bytes() * element.bytes(),
        false => bytes,
    };
    if is_npy {
        file.write_all(&npy_head(element, bytes / element.bytes()))
            .map_err(failed)?;
    }
    let ranges: Vec<Range> = pieces(offset, bytes)
        .map(|(offset, bytes)| Range {
            memory: id,
            offset,
            bytes,
        })
        .collect();
    for some in ranges.chunks(AT_ONCE) {
        for bytes in session
            .stager
            .bytes(&session.gpu.driver, &session.placed, some)?
        {
            file.write_all(&bytes).map_err(failed)?;
        }
    }
    file.flush().map_err(failed)?;
    Ok(Dumped {
        buffer: id.0,
        bytes,
        touched_bytes: bytes,
        element,
    })
}
