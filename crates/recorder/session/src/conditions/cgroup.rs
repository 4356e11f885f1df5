//! The control group (version 2) of the program: its stalls, its memory, and how often it reached its limits of that.

use super::machine::{PressureFile, source, value_after, why};
use super::{ConditionUpdate, Of, Reading};
use gapscope_trace::tables::Condition;
use std::io::ErrorKind;
use std::path::{Path, PathBuf};
use std::sync::Arc;

/// What is counted in `memory.events`, and as what.
const EVENTS: [(&str, Condition); 3] = [
    ("high ", Condition::GroupMemoryHigh),
    ("max ", Condition::GroupMemoryMax),
    ("oom_kill ", Condition::GroupKilled),
];

pub struct Cgroup {
    stalls: Vec<PressureFile>,
    events: Option<MemoryEvents>,
    memory: Option<MemoryUse>,
}

/// How much memory the group holds.
struct MemoryUse {
    path: PathBuf,
    source: Arc<str>,
}

struct MemoryEvents {
    path: PathBuf,
    source: Arc<str>,
    /// What had happened before.
    first: Option<[Option<u64>; EVENTS.len()]>,
}

impl Cgroup {
    /// That of a process; a sentence why there is none.
    pub fn find(root: &Path, pid: u32) -> Result<Cgroup, String> {
        let path = root.join(format!("proc/{pid}/cgroup"));
        let groups = std::fs::read_to_string(&path).map_err(|error| why(&path, &error))?;
        let none = || format!("process {pid} is in no cgroup of version 2");
        let group = groups.lines().find_map(|line| line.strip_prefix("0::"));
        let group = group.ok_or_else(none)?;
        let mount_point = mount_point(root).ok_or_else(none)?;
        let folder = mount_point.join(group.trim_start_matches('/'));
        // Controllers are switched on for groups, not for each: limits may be those of a group further out.
        // The root group has no type; its files say the same as the machine's.
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
        // That of a group further out would be others' memory too.
        let memory = folder.join("memory.current");
        let memory = memory.is_file().then(|| MemoryUse {
            source: source(&memory),
            path: memory,
        });
        if stalls.is_empty() && events.is_none() && memory.is_none() {
            return Err(match group {
                "/" => format!("process {pid} is in the root cgroup: the machine's are its own"),
                _ => format!("the cgroup {group} has no files for them"),
            });
        }
        Ok(Cgroup {
            stalls,
            events,
            memory,
        })
    }

    /// True where its memory is counted by itself.
    pub fn has_memory(&self) -> bool {
        self.memory.is_some()
    }

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
            // It goes with its program.
            Err(error) if error.kind() == ErrorKind::NotFound => {
                self.events = None;
                return;
            }
            Err(error) => {
                let reason = why(&events.path, &error);
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
                updates.push(ConditionUpdate::Reading(Reading {
                    of: Of::Machine,
                    condition: *condition,
                    from_ns: now_ns,
                    seen_ns: now_ns,
                    value: Some(now.saturating_sub(first) as f64),
                    source: events.source.clone(),
                }));
            }
        }
    }
}

impl MemoryUse {
    /// False: it cannot be read any more; why is said, unless the group went with its program.
    fn read(&self, now_ns: i64, updates: &mut Vec<ConditionUpdate>) -> bool {
        let read = std::fs::read_to_string(&self.path);
        let value = match &read {
            Ok(text) => text.trim().parse::<u64>().ok(),
            Err(_) => None,
        };
        let reason = match &read {
            Ok(_) if value.is_some() => None,
            Ok(_) => Some(format!("{} is not a number", self.path.display())),
            Err(error) if error.kind() == ErrorKind::NotFound => None,
            Err(error) => Some(why(&self.path, error)),
        };
        updates.push(ConditionUpdate::Reading(Reading {
            of: Of::Machine,
            condition: Condition::GroupMemory,
            from_ns: now_ns,
            seen_ns: now_ns,
            value: value.map(|bytes| bytes as f64),
            source: self.source.clone(),
        }));
        if let Some(reason) = reason {
            updates.push(ConditionUpdate::unmeasured(
                "memory of the program's cgroup",
                reason,
            ));
        }
        value.is_some()
    }
}

/// Where control groups of version 2 are.
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
