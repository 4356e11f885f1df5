//! What the system allows, found out by doing it once.

use crate::memory::Memory;
use crate::process::is_refused;
use crate::procfs::Proc;
use crate::running::{self, RATE_HZ, Ring};
use std::fs;
use std::path::Path;

/// What may be read of a process. What may not be says why, and what to do, as the end of a sentence.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Allowed {
    /// Its memory, and with it the stacks of its threads.
    pub memory: Result<(), String>,
    /// Native frames of its threads while they run: so often a second of their own time.
    pub running: Result<u64, String>,
}

/// What may be read of a process with this number, such as one that this process has started. `root` is the folder with `proc`.
#[must_use]
pub fn allowed(pid: u32, root: &Path) -> Allowed {
    let proc = Proc(root.join("proc"));
    let memory = address(&proc, pid).and_then(|address| {
        let word = Memory::of(pid).word(address);
        word.map(|_| ()).map_err(|error| match is_refused(&error) {
            true => proc.why_refused(pid).to_owned(),
            false => format!("its memory cannot be read: {error}"),
        })
    });
    let running = Ring::open(pid).map(|_| RATE_HZ);
    Allowed {
        memory,
        running: running.map_err(|error| running::why_refused(&error)),
    }
}

/// Where the process has something mapped that may be read.
fn address(proc: &Proc, pid: u32) -> Result<u64, String> {
    let maps = proc.process(pid).join("maps");
    let text = fs::read_to_string(&maps)
        .map_err(|error| format!("{} cannot be read: {error}", maps.display()))?;
    let readable = text.lines().find_map(|line| {
        let (range, rest) = line.split_once(' ')?;
        let (start, _) = range.split_once('-')?;
        rest.starts_with('r').then_some(start)
    });
    readable
        .and_then(|start| u64::from_str_radix(start, 16).ok())
        .ok_or_else(|| format!("{} names nothing that may be read", maps.display()))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn our_own_memory_may_be_read_and_that_of_nobody_not() {
        assert_eq!(allowed(std::process::id(), Path::new("/")).memory, Ok(()));
        let nobody = allowed(u32::MAX, Path::new("/"));
        assert!(nobody.memory.unwrap_err().contains("cannot be read"));
        assert!(nobody.running.is_err());
    }

    #[test]
    fn a_process_without_mappings_is_not_read() {
        let root = tempfile::tempdir().unwrap();
        let folder = root.path().join("proc/7");
        fs::create_dir_all(&folder).unwrap();
        fs::write(folder.join("maps"), "1000-2000 ---p 00000000 00:00 0\n").unwrap();
        let why = allowed(7, root.path()).memory.unwrap_err();
        assert!(why.contains("names nothing"), "{why}");
    }
}
