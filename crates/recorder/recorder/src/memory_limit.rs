//! Tells whether the kernel has killed a process because the memory of this process's control group was at its limit, so that
//! the reason of a program's end is the true one: the session and the hooks count to the same limit.

use std::fs;
use std::path::{Path, PathBuf};

/// The reason for the end of a program that was killed while its control group was out of memory.
pub const KILLED_FOR_MEMORY: &str = "the kernel killed a process of the control group that the program is in, whose memory was at its limit; the session's memory, \
     some 20 MB, counts to that limit too: raise it, or limit the program alone";

/// The processes that the kernel has killed in the control group of this process.
#[derive(Debug)]
pub struct MemoryKills {
    /// The file that counts them; absent where no control group limits memory.
    file: Option<PathBuf>,
    before: u64,
}

impl MemoryKills {
    /// Counts from now on; `root` is the folder with `proc` and `sys`.
    pub fn watch(root: &Path) -> MemoryKills {
        let groups = fs::read_to_string(root.join("proc/self/cgroup")).unwrap_or_default();
        let mount = root.join("sys/fs/cgroup");
        let files = groups.lines().filter_map(|line| {
            let mut parts = line.splitn(3, ':').skip(1);
            let (controllers, group) = (parts.next()?, parts.next()?.trim_start_matches('/'));
            match controllers {
                "" => Some(mount.join(group).join("memory.events")),
                "memory" => Some(mount.join("memory").join(group).join("memory.oom_control")),
                _ => None,
            }
        });
        let file = files.into_iter().find(|file| kills(file).is_some());
        MemoryKills {
            before: file.as_deref().and_then(kills).unwrap_or_default(),
            file,
        }
    }

    /// Returns true where a process has been killed since the start.
    pub fn has_more(&self) -> bool {
        let now = self.file.as_deref().and_then(kills);
        now.is_some_and(|now| now > self.before)
    }
}

/// Returns the count in a file of either version of control groups.
fn kills(file: &Path) -> Option<u64> {
    let text = fs::read_to_string(file).ok()?;
    let count = text
        .lines()
        .find_map(|line| line.strip_prefix("oom_kill "))?;
    count.trim().parse().ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn kills_since_the_start_count_in_either_version() {
        for (groups, file) in [
            ("0::/a/b\n", "a/b/memory.events"),
            (
                "9:cpu:/x\n4:memory:/a\n0::/\n",
                "memory/a/memory.oom_control",
            ),
        ] {
            let root = tempfile::tempdir().unwrap();
            let file = root.path().join("sys/fs/cgroup").join(file);
            fs::create_dir_all(file.parent().unwrap()).unwrap();
            fs::create_dir_all(root.path().join("proc/self")).unwrap();
            fs::write(root.path().join("proc/self/cgroup"), groups).unwrap();
            fs::write(&file, "under_oom 0\noom_kill 3\n").unwrap();
            let kills = MemoryKills::watch(root.path());
            assert!(!kills.has_more());
            fs::write(&file, "under_oom 0\noom_kill 4\n").unwrap();
            assert!(kills.has_more());
        }
        let without = tempfile::tempdir().unwrap();
        assert!(!MemoryKills::watch(without.path()).has_more());
    }
}
