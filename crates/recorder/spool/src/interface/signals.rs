//! Reads the number of signals that `gapscope capture` has received, by which the user opens and ends windows. The
//! number is in a file that both processes map, so that the program's own signal handlers are left alone.

use std::fs::File;
use std::os::fd::AsRawFd;
use std::path::Path;
use std::sync::atomic::{AtomicU64, Ordering::Relaxed};

/// The count of signals: a window is open while it is odd.
#[derive(Debug)]
pub struct Signals {
    /// The number of signals so far, in the mapped file.
    count: &'static AtomicU64,
    /// The count at which a window ended for another reason.
    off_at: AtomicU64,
}

impl Signals {
    /// Maps the file; returns `None` unless there is such a file of at least eight bytes.
    pub fn map(path: &Path) -> Option<Signals> {
        let file = File::options().read(true).write(true).open(path).ok()?;
        if file.metadata().ok()?.len() < 8 {
            return None;
        }
        // SAFETY: the file is at least as long as what is used of the mapping, which is never unmapped; others change it only by
        // whole words.
        let count = unsafe {
            let mapped = libc::mmap(
                std::ptr::null_mut(),
                8,
                libc::PROT_READ,
                libc::MAP_SHARED,
                file.as_raw_fd(),
                0,
            );
            if mapped == libc::MAP_FAILED {
                return None;
            }
            &*mapped.cast::<AtomicU64>()
        };
        Some(Signals {
            count,
            off_at: AtomicU64::new(u64::MAX),
        })
    }

    /// Returns whether a window is to be open.
    pub fn is_on(&self) -> bool {
        let count = self.count.load(Relaxed);
        count % 2 == 1 && count != self.off_at.load(Relaxed)
    }

    /// Makes no window begin before the next but one signal, if one is to be open now; otherwise changes nothing.
    pub fn turn_off(&self) {
        self.off_at.store(self.count.load(Relaxed), Relaxed);
    }
}
