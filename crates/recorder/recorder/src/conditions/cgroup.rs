//! Reads the program's control group (cgroup version 2, a folder of files of the kernel for a set of processes): its
//! stalls (the time in which processes waited for a resource), its memory, and how often it reached its memory
//! limits. [`Cgroup::find`] finds the files; [`Cgroup::read`] reads them in each round.

use super::ConditionUpdate;
use super::kernel_files::{FileError, PressureFile, source, value_after};
use gapscope_trace::tables::Condition;
use std::io::ErrorKind;
use std::path::{Path, PathBuf};
use std::sync::Arc;

/// The counts in `memory.events` and their conditions.
const EVENTS: [(&str, Condition); 3] = [
    ("high ", Condition::GroupMemoryHigh),
    ("max ", Condition::GroupMemoryMax),
    ("oom_kill ", Condition::GroupKilled),
];

/// The files of the program's control group that are read.
pub struct Cgroup {
    /// The files that can be read; a file that fails is dropped.
    stalls: Vec<PressureFile>,
    events: Option<MemoryEvents>,
    memory: Option<MemoryUse>,
}

/// The file with the memory that the group holds.
struct MemoryUse {
    path: PathBuf,
    /// The path as text, as readings name their source.
    source: Arc<str>,
}

/// The file that counts how often the group reached its memory limits.
struct MemoryEvents {
    path: PathBuf,
    source: Arc<str>,
    /// The counts at the first reading, in the order of [`EVENTS`], which are subtracted from later ones.
    first: Option<[Option<u64>; EVENTS.len()]>,
}

/// The reason why a process has no control group that can be read.
#[derive(Debug, thiserror::Error)]
pub enum CgroupError {
    #[error(transparent)]
    File(#[from] FileError),
    #[error("process {pid} is in no cgroup of version 2")]
    NotOfVersion2 { pid: u32 },
    #[error("process {pid} is in the root cgroup: the machine's are its own")]
    Root { pid: u32 },
    #[error("the cgroup {0} has no files for them")]
    NoFiles(String),
}

impl Cgroup {
    /// Finds the control group of a process and its files below `root`, the folder with `proc` and `sys`. The files
    /// of stalls and of events may be those of the nearest enclosing group that has them.
    pub fn find(root: &Path, pid: u32) -> Result<Cgroup, CgroupError> {
        let path = root.join(format!("proc/{pid}/cgroup"));
        let groups =
            std::fs::read_to_string(&path).map_err(|error| FileError::new(&path, error))?;
        let none = || CgroupError::NotOfVersion2 { pid };
        let group = groups.lines().find_map(|line| line.strip_prefix("0::"));
        let group = group.ok_or_else(none)?;
        let mount_point = mount_point(root).ok_or_else(none)?;
        let folder = mount_point.join(group.trim_start_matches('/'));
        // Controllers are switched on for some groups only, so limits may be those of an enclosing group. The root
        // group has no type; its files hold the same as the machine's.
        let within = || {
            let groups = folder
                .ancestors()
                .take_while(|f| f.starts_with(&mount_point));
            groups.filter(|f| f.join("cgroup.type").is_file())
        };
        let nearest = |name: &str| within().map(|f| f.join(name)).find(|file| file.is_file());
        let stalls = [
            ("cpu.pressure", Condition::GroupCpuStall, None),
            (
                "memory.pressure",
                Condition::GroupMemoryStall,
                Some(Condition::GroupMemoryStallFull),
            ),
            (
                "io.pressure",
                Condition::GroupIoStall,
                Some(Condition::GroupIoStallFull),
            ),
        ];
        let stalls: Vec<PressureFile> = stalls
            .into_iter()
            .filter_map(|(name, some, full)| Some(PressureFile::new(nearest(name)?, some, full)))
            .collect();
        let events = nearest("memory.events").map(|path| MemoryEvents {
            source: source(&path),
            path,
            first: None,
        });
        // An enclosing group's file would count the memory of others too.
        let memory = folder.join("memory.current");
        let memory = memory.is_file().then(|| MemoryUse {
            source: source(&memory),
            path: memory,
        });
        if stalls.is_empty() && events.is_none() && memory.is_none() {
            return Err(match group {
                "/" => CgroupError::Root { pid },
                _ => CgroupError::NoFiles(group.to_owned()),
            });
        }
        Ok(Cgroup {
            stalls,
            events,
            memory,
        })
    }

    /// Returns true when the group's memory is counted by itself.
    pub fn has_memory(&self) -> bool {
        self.memory.is_some()
    }

    /// Reads all files and adds their readings to `updates`.
    pub fn read(&mut self, now_ns: i64, updates: &mut Vec<ConditionUpdate>) {
        self.stalls.retain_mut(|stall| stall.read(now_ns, updates));
        if let Some(memory) = &self.memory
            && !memory.read(now_ns, updates)
        {
            self.memory = None;
        }
        let Some(events) = &mut self.events else {
            return;
        };
        let text = match std::fs::read_to_string(&events.path) {
            Ok(text) => text,
            // The group ends with its program.
            Err(error) if error.kind() == ErrorKind::NotFound => {
                self.events = None;
                return;
            }
            Err(error) => {
                let reason = FileError::new(&events.path, error);
                updates.push(ConditionUpdate::unmeasured(
                    "memory limits of the program's cgroup",
                    reason,
                ));
                self.events = None;
                return;
            }
        };
        let counts = EVENTS.map(|(key, _)| value_after(&text, key));
        let first = *events.first.get_or_insert(counts);
        for ((_, condition), (now, first)) in EVENTS.iter().zip(counts.into_iter().zip(first)) {
            if let Some((now, first)) = now.zip(first) {
                updates.push(ConditionUpdate::of_machine(
                    *condition,
                    [now_ns, now_ns],
                    Some(now.saturating_sub(first) as f64),
                    &events.source,
                ));
            }
        }
    }
}

impl MemoryUse {
    /// Reads the memory in use. Returns false when it cannot be read any more, which is reported unless the group has
    /// ended with its program.
    fn read(&self, now_ns: i64, updates: &mut Vec<ConditionUpdate>) -> bool {
        let (value, error) = match std::fs::read_to_string(&self.path) {
            Ok(text) => match text.trim().parse::<u64>() {
                Ok(bytes) => (Some(bytes), None),
                Err(_) => (None, Some(FileError::NoNumber(self.path.clone()))),
            },
            Err(error) if error.kind() == ErrorKind::NotFound => (None, None),
            Err(error) => (None, Some(FileError::new(&self.path, error))),
        };
        updates.push(ConditionUpdate::of_machine(
            Condition::GroupMemory,
            [now_ns, now_ns],
            value.map(|bytes| bytes as f64),
            &self.source,
        ));
        if let Some(error) = error {
            updates.push(ConditionUpdate::unmeasured(
                "memory of the program's cgroup",
                error,
            ));
        }
        value.is_some()
    }
}

/// Returns the folder at which control groups of version 2 are mounted.
fn mount_point(root: &Path) -> Option<PathBuf> {
    let mounts = std::fs::read_to_string(root.join("proc/self/mountinfo")).ok()?;
    let of_version_2 = |line: &&str| {
        let kind = line.split_once(" - ").map(|(_, rest)| rest);
        kind.is_some_and(|kind| kind.starts_with("cgroup2 "))
    };
    let line = mounts.lines().find(of_version_2)?;
    let point = line.split(' ').nth(4)?;
    Some(root.join(point.trim_start_matches('/')))
}
