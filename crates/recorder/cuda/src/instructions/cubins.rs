//! Keeps cubins (files with machine code for GPUs) that have tables of source lines, and writes them as events, so
//! that the session (gapscope's process that writes the trace) finds the lines of sampled instructions.
//!
//! CUPTI hands over each cubin as it is loaded, also those that the driver has made of PTX. The thread that loads a
//! cubin copies it, if it has lines; the flusher's thread, which writes every 100 ms, asks CUPTI for its checksum and
//! writes it.

use crate::recorder::Recorder;
use gapscope_cupti::CubinLibrary;
use gapscope_spool::event::CudaEvent;
use rustc_hash::FxHashSet;
use std::ffi::c_void;
use std::path::Path;
use std::sync::{Mutex, OnceLock, PoisonError};

/// The most bytes of a cubin; larger ones are not kept, and their samples have no lines.
const MAX_CUBIN_BYTES: usize = 32 << 20;
/// The most bytes of copies that wait to be written; further cubins are not kept.
const MAX_PENDING_BYTES: usize = 64 << 20;
/// The most bytes of cubins that a process writes; further cubins are written without their bytes.
const MAX_WRITTEN_BYTES: usize = 256 << 20;
/// The first bytes of an ELF file, the format of cubins.
const ELF: &[u8] = b"\x7fELF";
/// The name of the section with source lines, among the names of sections.
const LINES: &[u8] = b"\0.debug_line\0";

/// CUPTI's functions for cubins, once [`prepare`] has found them.
static LIBRARY: OnceLock<CubinLibrary> = OnceLock::new();
/// What the loading threads pass on to the flusher's.
static PENDING: Mutex<PendingCubins> = Mutex::new(PendingCubins {
    copies: Vec::new(),
    not_kept: Vec::new(),
    bytes: 0,
});

/// The cubins that have not been written yet, and the bytes of their copies.
#[derive(Default)]
struct PendingCubins {
    /// Copies of cubins with line tables.
    copies: Vec<Vec<u8>>,
    /// The checksums of cubins that were too large or found no room.
    not_kept: Vec<u64>,
    /// The bytes of the copies together.
    bytes: usize,
}

/// The cubins that have been written of this process.
#[derive(Default)]
pub struct WrittenCubins {
    /// The checksums of the written cubins.
    known: FxHashSet<u64>,
    /// The bytes that were written of them together.
    bytes: usize,
}

/// CUpti_ModuleResourceData: CUPTI's description of loaded code.
#[repr(C)]
struct ModuleResource {
    id: u32,
    bytes: usize,
    cubin: *const u8,
}

/// Returns whether this libcupti can tell cubins apart.
pub fn prepare(libcupti: &Path) -> bool {
    let library = CubinLibrary::open(libcupti);
    library.is_ok_and(|library| LIBRARY.set(library).is_ok() || LIBRARY.get().is_some())
}

/// Returns the cubin that CUPTI describes.
///
/// # Safety
/// The pointer is null, or CUPTI's description of a module, whose code exists while the bytes are used.
pub unsafe fn loaded_cubin<'a>(module: *const c_void) -> Option<&'a [u8]> {
    // SAFETY: as the caller promises.
    unsafe {
        match module.cast::<ModuleResource>().as_ref() {
            Some(module) if !module.cubin.is_null() && module.bytes <= isize::MAX as usize => {
                Some(std::slice::from_raw_parts(module.cubin, module.bytes))
            }
            _ => None,
        }
    }
}

/// Keeps a copy of a loaded cubin that has line tables; if it is too large or finds no room, only the checksum.
///
/// # Safety
/// The pointer is null, or CUPTI's description of a module, whose code exists.
pub unsafe fn loaded(module: *const c_void) {
    let Some(library) = LIBRARY.get() else { return };
    // SAFETY: as the caller promises.
    let Some(cubin) = (unsafe { loaded_cubin(module) }) else {
        return;
    };
    if !has_lines(cubin) {
        return;
    }
    let has_room = with_pending(|pending| pending.bytes + cubin.len() <= MAX_PENDING_BYTES);
    if cubin.len() > MAX_CUBIN_BYTES || !has_room {
        if let Ok(crc) = library.crc(cubin) {
            with_pending(|pending| pending.not_kept.push(crc));
        }
        return;
    }
    let copy = cubin.to_vec();
    with_pending(|pending| {
        pending.bytes += copy.len();
        pending.copies.push(copy);
    });
}

/// Returns whether one of an ELF file's sections is a line table.
fn has_lines(cubin: &[u8]) -> bool {
    let names = || {
        let number = |at: usize, bytes: usize| {
            let mut wide = [0; 8];
            wide[..bytes].copy_from_slice(cubin.get(at..at.checked_add(bytes)?)?);
            usize::try_from(u64::from_le_bytes(wide)).ok()
        };
        // The ELF header has the offset of the table of sections, the size of an entry, and the index of the names'
        // one.
        let (sections, each, names) = (number(0x28, 8)?, number(0x3a, 2)?, number(0x3e, 2)?);
        let header = sections.checked_add(each.checked_mul(names)?)?;
        let start = number(header.checked_add(0x18)?, 8)?;
        let length = number(header.checked_add(0x20)?, 8)?;
        cubin.get(start..start.checked_add(length)?)
    };
    let contains = |names: &[u8]| names.windows(LINES.len()).any(|name| name == LINES);
    cubin.starts_with(ELF) && names().is_some_and(contains)
}

fn with_pending<T>(change: impl FnOnce(&mut PendingCubins) -> T) -> T {
    change(&mut PENDING.lock().unwrap_or_else(PoisonError::into_inner))
}

impl WrittenCubins {
    /// Writes the cubins that have been loaded.
    pub fn write(&mut self, recorder: &Recorder) {
        let Some(library) = LIBRARY.get() else { return };
        let PendingCubins {
            copies, not_kept, ..
        } = with_pending(std::mem::take);
        for crc in not_kept {
            self.write_one(recorder, crc, &[]);
        }
        for copy in copies {
            match library.crc(&copy) {
                Ok(crc) => self.write_one(recorder, crc, &copy),
                Err(failure) => recorder.note(&format!(
                    "Lines of sampled instructions are not known: {failure}."
                )),
            }
        }
    }

    /// Writes a cubin by its checksum, unless it was written before; without its bytes where too many were written.
    fn write_one(&mut self, recorder: &Recorder, cubin: u64, bytes: &[u8]) {
        if !self.known.insert(cubin) {
            return;
        }
        let all = self.bytes.saturating_add(bytes.len());
        let bytes = if all > MAX_WRITTEN_BYTES { &[] } else { bytes };
        self.bytes = self.bytes.saturating_add(bytes.len());
        recorder.write(&CudaEvent::SampledCubin { cubin, bytes });
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_cubins_with_lines_are_kept() {
        let with = include_bytes!("../../../recorder/src/code/testdata/lines.cubin");
        let without = include_bytes!("../../../recorder/src/code/testdata/plain.cubin");
        assert!(has_lines(with));
        assert!(!has_lines(without));
        for end in 0..with.len() {
            has_lines(&with[..end]);
        }
        let mut damaged = with.to_vec();
        for at in 0x28..0x40 {
            damaged[at] = 0xff;
            has_lines(&damaged);
        }
    }
}
