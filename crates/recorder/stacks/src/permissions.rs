//! Finds out whether the system permits to sample the stacks of a process, by trying it once: reading its memory, and
//! having the kernel record its running threads.

use crate::memory::Memory;
use crate::perf_ring::{self, RATE_HZ, Ring};
use crate::process::is_refused;
use crate::procfs::Proc;
use gapscope_model::memory_maps::mappings;
use std::borrow::Cow;
use std::fs;
use std::path::Path;

/// The permissions to sample a process.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Permissions {
    /// Reading its memory, and with it the stacks of its threads.
    pub memory: Result<(), Denied>,
    /// Recording native frames of its running threads: the records a second of the thread's own time.
    pub running: Result<u64, Denied>,
}

/// Why something is not permitted and what to do about it, as the end of a sentence.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{0}")]
pub struct Denied(Cow<'static, str>);

impl<T: Into<Cow<'static, str>>> From<T> for Denied {
    fn from(reason: T) -> Denied {
        Denied(reason.into())
    }
}

/// Checks what may be read of a process, such as one that this process has started. `root` is the folder that holds `proc`.
#[must_use]
pub fn check_permissions(pid: u32, root: &Path) -> Permissions {
    let proc = Proc(root.join("proc"));
    let memory = readable_address(&proc, pid).and_then(|address| {
        let word = Memory::new(pid).word(address);
        word.map(|_| ()).map_err(|error| match is_refused(&error) {
            true => proc.why_refused(pid).into(),
            false => format!("its memory cannot be read: {error}").into(),
        })
    });
    let running = Ring::open(pid).map(|_| RATE_HZ);
    Permissions {
        memory,
        running: running.map_err(|error| perf_ring::why_refused(&error).into()),
    }
}

/// Returns the address of a readable mapping of the process.
fn readable_address(proc: &Proc, pid: u32) -> Result<u64, Denied> {
    let path = proc.process(pid).join("maps");
    let maps =
        fs::read(&path).map_err(|error| format!("{} cannot be read: {error}", path.display()))?;
    let readable = mappings(&maps).find(|mapping| mapping.is_readable);
    let address = readable.map(|mapping| mapping.start);
    Ok(address.ok_or_else(|| format!("{} names nothing that may be read", path.display()))?)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn our_own_memory_may_be_read_and_that_of_nobody_not() {
        assert_eq!(
            check_permissions(std::process::id(), Path::new("/")).memory,
            Ok(())
        );
        let nobody = check_permissions(u32::MAX, Path::new("/"));
        assert!(
            nobody
                .memory
                .unwrap_err()
                .to_string()
                .contains("cannot be read")
        );
        assert!(nobody.running.is_err());
    }

    #[test]
    fn a_process_without_mappings_is_not_read() {
        let root = tempfile::tempdir().unwrap();
        let folder = root.path().join("proc/7");
        fs::create_dir_all(&folder).unwrap();
        fs::write(folder.join("maps"), "1000-2000 ---p 00000000 00:00 0\n").unwrap();
        let why = check_permissions(7, root.path())
            .memory
            .unwrap_err()
            .to_string();
        assert!(why.contains("names nothing"), "{why}");
    }
}
