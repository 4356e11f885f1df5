//! Runs a capture once, without comparing, and returns chosen bytes of the memory that it leaves.

use gapscope_capture::Capture;
use gapscope_capture::model::MemoryId;

use crate::adapter::DeviceChoice;
use crate::error::Error;
use crate::options::Options;
use crate::program::Extent;
use crate::session::Session;

/// Runs a capture once, and returns the bytes of ranges of its memory, each given as allocation, first byte and size.
/// Bytes that nothing touches are 0. With `robust`, accesses stay within their buffers, if the device can do it.
///
/// # Errors
/// The capture cannot be run.
pub fn outputs(
    capture: &Capture,
    device: Option<&DeviceChoice>,
    robust: bool,
    ranges: &[(MemoryId, u64, u64)],
) -> Result<Vec<Vec<u8>>, Error> {
    let options = Options {
        device: device.cloned(),
        robust,
        ..Options::default()
    };
    let mut session = Session::open(capture, Extent::Whole, &options)?;
    session.run_once()?;
    let mut all = Vec::new();
    for (memory, offset, bytes) in ranges {
        let mut held = vec![0; *bytes as usize];
        for (at, place, size) in session.regions.parts(*memory, *offset, *bytes) {
            let read = session.memory.read(place, size)?;
            held[at as usize..][..read.len()].copy_from_slice(&read);
        }
        all.push(held);
    }
    Ok(all)
}
